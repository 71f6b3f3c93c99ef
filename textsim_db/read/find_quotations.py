"""Quotations: a text in, the document of a corpus in which it stands, and what differs, out.

Without a key, the documents that share a fingerprint with the quotation or a piece of it are asked.
"""

from __future__ import annotations

import shlex
from itertools import chain
from typing import Any

import numpy as np

from textsim_db.compare.quotation_verdicts import (
    DocumentWords,
    Original,
    Reading,
    best,
    readings_of,
    verdict_on,
)
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, DocumentError, DocumentNotFound
from textsim_db.read.find_candidates import (
    LookUp,
    find_candidates,
    passage_look_up,
    warn_of_missed_passages,
)
from textsim_db.read.search import row_of_key
from textsim_db.read.stored_documents import WordNumbers, stored_word_numbers
from textsim_db.results import Quotation
from textsim_db.sketch.fingerprints import (
    count_units,
    fingerprints_of_shingles,
    passage_shingles,
)
from textsim_db.sketch.ragged import Ragged, part_only
from textsim_db.sketch.sketch_texts import places_of_words
from textsim_db.text.tokens import tokens_of


def quote(
    store: Store,
    text: str,
    key: str | None,
    part: int | None,
    shortest: int,
    original: str | None,
) -> Quotation:
    """Return the best verdict on a quotation, in one snapshot; of equals, by the first key."""
    config = store.corpus.config
    readings = readings_of(text, shortest, config)
    if key is None:
        # One statement, and so one snapshot.
        rows = find_candidates(store, _look_up(store, readings, part), None).rows
    else:
        with autocommit(store.engine) as connection:
            rows = [row_of_key(connection.cursor(binary=True), store.corpus, key)]
        if part is not None and rows[0][5] != part:
            raise DocumentNotFound(f'corpus "{store.corpus.name}" has no document "{key[:100]}"')
    return _best_verdict(store, readings, sorted(rows, key=lambda row: row[1]), original)


def _best_verdict(
    store: Store, readings: list[Reading], rows: list[tuple[Any, ...]], original: str | None
) -> Quotation:
    config, vocabulary = store.corpus.config, WordNumbers(dictionary_of(store))
    pieces = [piece for reading in readings for piece in reading.words]
    # Each piece is a text: one without words has its symbols as words.
    numbers = vocabulary.numbers(tokens_of([" ".join(piece).encode() for piece in pieces]))
    waiting = {i: row[4] for i, row in enumerate(rows) if row[3] is None}
    documents, offsets = stored_word_numbers([row[3] for row in rows], waiting, vocabulary)
    number_of = dict(zip(chain.from_iterable(pieces), numbers.tolist(), strict=True))
    searched = DocumentWords(documents, number_of, vocabulary.texts, None, config.guard_words)
    quotation = Quotation("absent")
    for row, start, end in zip(rows, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = searched._replace(numbers=documents[start:end])
        verdict = verdict_on(readings, own)._replace(key=row[1])
        if best([quotation, verdict]) is verdict:
            quotation, chosen = verdict, own
    if original is None or quotation.key is None:
        return quotation
    own_words, places = places_of_words(original, config)
    if own_words != chosen.words(0, len(chosen.numbers)):
        raise DocumentError(f'the original has other words than document "{quotation.key}"')
    verdict = verdict_on(readings, chosen._replace(original=Original(original, places)))
    return verdict._replace(key=quotation.key)


def _look_up(store: Store, readings: list[Reading], part: int | None) -> LookUp:
    """Return the look-up of the documents that share a fingerprint with a quotation or a piece of it."""
    corpus, config = store.corpus, store.corpus.config
    if config.passages is None:
        raise ConfigurationError(
            f'corpus "{corpus.name}" has no passages, by which it finds the documents that may have a '
            "quotation; name the key of the document, or rebuild the corpus, such as: "
            f"textsim rebuild {shlex.quote(corpus.name)} --passages 5"
        )
    forms = [" ".join(words).encode() for reading in readings for words in reading.words]
    all_tokens = [tokens_of([form]) for form in forms]
    if max(count_units(tokens, config) for tokens in all_tokens) < config.passages:
        raise DocumentError(
            f'corpus "{corpus.name}" finds only quotations with {config.passages} '
            f"{config.shingle.noun}s or more in a row; name the key of the document, or quote more words"
        )
    shingles = [passage_shingles(tokens, config) for tokens in all_tokens]
    warn_of_missed_passages(corpus, all_tokens[0], shingles[0])
    fingerprints = np.unique(
        np.concatenate([fingerprints_of_shingles(each, config) for each in shingles])
    )
    return passage_look_up(Ragged(fingerprints, np.array([0, len(fingerprints)])), part_only(part))
