"""The integrity of a corpus: every invariant of its stored rows, as check() tests it.

The words must give the signature (computed here), and the signature the band rows (computed by the
server's own hash_array_extended), so that neither side checks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from textsim_db.db.binary_format import load_int4_array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.read.snapshot import snapshot
from textsim_db.results import Problem
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.sketches import sketch_tokens
from textsim_db.text.streams import cut
from textsim_db.text.tokens import tokens_of

DOCUMENTS_AT_ONCE = 2_000


def check(store: Store, progress: Callable[[int], None] | None = None) -> list[Problem]:
    """Return everything that is wrong in one snapshot of a corpus."""
    with snapshot(store.engine) as connection:
        return [
            *_word_problems(connection),
            *_document_problems(connection, store.corpus, progress),
            *_forgotten(connection, store.corpus),
            *_band_problems(connection, store.corpus),
            *_source_problems(connection, store.corpus),
        ]


def _word_problems(connection: Connection) -> Iterator[Problem]:
    for id_, word in connection.execute(statements.WRONG_WORD_HASHES):
        yield Problem("word hash", f"word {id_}", f'the stored hash is not that of "{word[:40]}"')


def _document_problems(
    connection: Connection, corpus: StoredCorpus, progress: Callable[[int], None] | None
) -> Iterator[Problem]:
    done = 0
    with connection.cursor(corpus.label("check documents"), binary=True) as cursor:
        cursor.itersize = DOCUMENTS_AT_ONCE
        cursor.execute(corpus.statement(statements.DOCUMENTS_WITH_WORDS))
        for rows in cut(cursor, DOCUMENTS_AT_ONCE, lambda row: len(row[4])):
            yield from _check_documents(corpus.config, rows)
            done += len(rows)
            if progress is not None:
                progress(done)


def _check_documents(config: CorpusConfig, rows: list[tuple[Any, ...]]) -> Iterator[Problem]:
    tokens = tokens_of([row[4].encode() for row in rows])
    sketches = sketch_tokens(tokens, config)
    shingle_counts = sketches.shingle_counts.tolist()
    word_counts = np.diff(tokens.word_offsets).tolist()
    for i, (key, shingle_count, word_ids, signature, form, language, unknown) in enumerate(rows):
        # A document gets its language together with its word ids.
        has_language = config.language is not None and word_ids is not None
        if (language is not None) != has_language:
            expected = "a language" if has_language else "none"
            yield Problem("language", key, f"stored is {language}, expected {expected}")
        if unknown is not None:
            yield Problem("unknown word", key, f"word id {unknown} is not in the dictionary")
            continue
        span = tokens.normal_offsets[i : i + 2].tolist()
        stored_words = word_counts[i] if word_ids is None else len(load_int4_array(word_ids))
        if tokens.span(*span) != form or word_counts[i] != stored_words:
            yield Problem("words", key, "the stored words are not a normal form")
        if shingle_count != shingle_counts[i]:
            detail = f"the words give {shingle_counts[i]} shingles, stored is {shingle_count}"
            yield Problem("shingle count", key, detail)
        computed = sketches.signatures[i] if shingle_counts[i] else sketches.signatures[i, :0]
        if not np.array_equal(computed, load_int4_array(signature)):
            yield Problem("signature", key, "the stored signature is not that of the words")


def _forgotten(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for (key,) in connection.execute(corpus.statement(statements.FORGOTTEN_DOCUMENTS), [corpus.id]):
        yield Problem("words", key, "they wait for ids, but are not in the log of what is pending")


def _source_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for table, problem in connection.execute(statements.SOURCE_PROBLEMS, [corpus.id]):
        yield Problem("attached table", table, problem)


def _band_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    config = corpus.config
    parameters = {"rows": config.rows, "bands": config.bands}
    for document_id, key, band, bucket, count in connection.execute(
        corpus.statement(statements.WRONG_BAND_ROWS), parameters
    ):
        place = f"band {band}, bucket {bucket}"
        if key is None:
            yield Problem(
                "orphan", f"document {document_id}", f"a band row without document: {place}"
            )
        elif count > 0:
            yield Problem("missing band row", key, place)
        else:
            yield Problem("extra band row", key, f"{place}, {-count} too many")
