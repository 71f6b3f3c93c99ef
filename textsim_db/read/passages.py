"""Passages: a text in, the runs of words that it shares with documents out.

The stages:

    text -> fingerprints -> documents that share one (a join with the index of the fingerprints)
         -> words as numbers -> shared runs -> passages, the longest first
"""

from __future__ import annotations

from textsim_db.compare.shared_runs import shared_runs
from textsim_db.db.store import Store
from textsim_db.read.candidates import find_candidates, passage_look_up
from textsim_db.read.search import normal_form_and_scope
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers
from textsim_db.results import Passage
from textsim_db.sketch.scopes import Scopes
from textsim_db.sketch.sketch_texts import Sketches, sketch, sketch_tokens
from textsim_db.text.tokens import tokens_of
from textsim_db.text.utf8 import to_bytes


def passages(store: Store, text: str, min_words: int, scope: str | None) -> list[Passage]:
    """Return the passages of a text of at least min_words words, the longest first."""
    sketches = sketch([to_bytes(text)], store.corpus.config)
    return _passages(store, sketches, min_words, None if scope is None else [scope])


def passages_of(store: Store, key: str, min_words: int) -> list[Passage]:
    """Return the passages that a document shares with others; raises DocumentNotFound."""
    form, scope = normal_form_and_scope(store, key)
    sketches = sketch_tokens(tokens_of([form.encode()]), store.corpus.config)
    found = _passages(store, sketches, min_words, None if scope is None else [scope])
    return [passage for passage in found if passage.key != key]


def _passages(store: Store, sketches: Sketches, min_words: int, scopes: Scopes) -> list[Passage]:
    candidates = find_candidates(store, passage_look_up(sketches, scopes), None)
    vocabulary = WordNumbers(store.dictionary)
    documents = StoredDocuments(store.corpus, vocabulary, candidates.rows)
    words, offsets, *_ = documents.rows(of_shingles=False)
    runs = shared_runs(vocabulary.numbers(sketches.tokens), words, offsets, min_words)
    keys = [documents.keys[place] for place in runs.documents.tolist()]
    columns = (runs.words.tolist(), runs.in_text.tolist(), runs.in_document.tolist())
    found = [Passage(*each) for each in zip(keys, *columns, strict=True)]
    return sorted(found, key=lambda each: (-each.words, each.key, each.in_document))
