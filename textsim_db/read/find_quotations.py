"""Quotations: a text in, the document of a corpus in which it stands, and what differs, out.

Without a key, the documents that share a fingerprint with the quotation or a piece of it are asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from textsim_db.compare.quotations import DocumentWords, best, verdict_on, with_places
from textsim_db.compare.readings import Reading, readings_of
from textsim_db.db.connections import Cursor
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, DocumentError, DocumentNotFound
from textsim_db.read.find_candidates import (
    look_up_of_shingles,
    read_candidates,
    warn_of_missed_passages,
)
from textsim_db.read.search import row_of_key
from textsim_db.read.snapshot import snapshot
from textsim_db.read.stored_documents import forms_of_rows
from textsim_db.results import Quotation
from textsim_db.sketch.fingerprints import count_units, passage_shingles
from textsim_db.sketch.ragged import part_only
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
    # One statement is a snapshot of its own.
    lend = snapshot if key is None else autocommit
    with lend(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        if key is None:
            rows = list(_candidates(store, cursor, readings, part))
        else:
            rows = [row_of_key(cursor, store.corpus, key)]
            if part is not None and rows[0][5] != part:
                raise DocumentNotFound(f'corpus "{store.corpus.name}" has no document "{key}"')
    verdicts = [Quotation("absent")]
    by_key = sorted(rows, key=lambda row: row[1])
    forms = forms_of_rows(store, by_key)
    for row, form in zip(by_key, forms, strict=True):
        verdict = verdict_on(readings, DocumentWords.of(form.split()), config.guard_words)
        if verdict.share is not None:
            verdicts.append(verdict._replace(key=row[1]))
    quotation = best(verdicts)
    if original is None or quotation.key is None:
        return quotation
    words, places = places_of_words(original, config)
    (form,) = (form for row, form in zip(by_key, forms, strict=True) if row[1] == quotation.key)
    if words != form.split():
        raise DocumentError(f'the original has other words than document "{quotation.key}"')
    return with_places(quotation, places)


def _candidates(
    store: Store, cursor: Cursor, readings: list[Reading], part: int | None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the documents that share a fingerprint with a quotation or a piece of it."""
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
    seen = set[int]()
    for tokens in all_tokens:
        shingles = passage_shingles(tokens, config)
        warn_of_missed_passages(corpus, tokens, shingles)
        look_up = look_up_of_shingles(shingles, config, part_only(part))
        if not len(look_up.buckets.values):
            continue
        for row in read_candidates(cursor, corpus, look_up).rows:
            if row[0] not in seen:
                seen.add(row[0])
                yield row
