"""Passages: a text in, the runs of words that it shares with documents out.

The stages:

    text -> fingerprints -> documents that share one (a join with the index of the fingerprints)
         -> words as numbers -> shared runs -> passages, the longest first
"""

from __future__ import annotations

from typing import Any

import numpy as np

from textsim_db.compare.shared_runs import shared_runs
from textsim_db.db.binary_format import Array
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.read import statements
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers
from textsim_db.results import Passage
from textsim_db.sketch.ragged import Ragged
from textsim_db.sketch.scopes import in_scopes
from textsim_db.sketch.sketch_texts import Sketches, sketch
from textsim_db.text.array_types import Int32Array
from textsim_db.text.utf8 import to_bytes


def passages(store: Store, text: str, min_words: int, scope: str | None) -> list[Passage]:
    """Return the passages of a text of at least min_words words, the longest first."""
    sketches = sketch([to_bytes(text)], store.corpus.config)
    vocabulary = WordNumbers(store.dictionary)
    documents = StoredDocuments(
        store.corpus, vocabulary, _candidates(store, _fingerprints(sketches, scope), scope)
    )
    words, offsets, *_ = documents.rows(of_shingles=False)
    runs = shared_runs(vocabulary.numbers(sketches.tokens), words, offsets, min_words)
    keys = [documents.keys[place] for place in runs.documents.tolist()]
    columns = (runs.words.tolist(), runs.in_text.tolist(), runs.in_document.tolist())
    found = [Passage(*each) for each in zip(keys, *columns, strict=True)]
    return sorted(found, key=lambda each: (-each.words, each.key, each.in_document))


def _fingerprints(sketches: Sketches, scope: str | None) -> Int32Array:
    fingerprints = sketches.fingerprints or Ragged(np.empty(0, np.int32), np.zeros(2, np.int64))
    values: Int32Array = in_scopes(fingerprints, None if scope is None else [scope]).values
    return values


def _candidates(store: Store, fingerprints: Int32Array, scope: str | None) -> list[tuple[Any, ...]]:
    """Return the documents that share a fingerprint, in the form that StoredDocuments expects."""
    if not len(fingerprints):
        return []
    statement = store.corpus.statement(statements.DOCUMENTS_WITH_FINGERPRINTS)
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(statement, [Array(fingerprints)], prepare=True).fetchall()
    # By chance, fingerprints of other scopes are equal.
    return rows if scope is None else [row for row in rows if row[5] == scope]
