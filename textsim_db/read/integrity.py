"""Every invariant of a corpus's stored rows, checked: what check() runs.

The words must give the signature (computed here), and the signature the band rows (computed by the
server's own hash_array_extended), so that neither side checks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from textsim_db.db.binary_format import load_int4_array
from textsim_db.db.engine import Connection, transaction
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.results import Problem
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.sketches import sketch_tokens
from textsim_db.text.streams import cut
from textsim_db.text.tokens import tokens_of

CHUNK = 2_000

_WORDS = """
/* textsim-db: check the dictionary */
SELECT w.id, w.word FROM textsim.word w WHERE w.hash <> pg_catalog.hashtextextended(w.word, 0)
"""
_DOCUMENTS = """
SELECT d.key, d.shingle_count, pg_catalog.array_send(d.word_ids), pg_catalog.array_send(d.signature),
    coalesce(d.normal_form, t.text), d.language, t.unknown
FROM {document} d
CROSS JOIN LATERAL (
    SELECT coalesce(pg_catalog.string_agg(w.word, ' ' ORDER BY q.place), ''),
        min(q.id) FILTER (WHERE w.id IS NULL)
    FROM pg_catalog.unnest(d.word_ids) WITH ORDINALITY q (id, place)
    LEFT JOIN textsim.word w ON w.id = q.id
) t (text, unknown)
"""
# A document whose words wait for ids, and that no worker will be told of. Keys one by one can be
# hashed; d.key = ANY (p.keys) would compare each document with each row of the log.
_FORGOTTEN = """
/* textsim-db: check corpus {id}: words that wait for ids */
SELECT d.key FROM {document} d
WHERE d.word_ids IS NULL AND NOT EXISTS (
    SELECT FROM textsim.pending p CROSS JOIN pg_catalog.unnest(p.keys) k (key)
    WHERE p.corpus_id = %s AND k.key = d.key
)
"""
_SOURCES = """
/* textsim-db: check attached tables */
SELECT s.relation::text, p.problem
FROM textsim.source s CROSS JOIN LATERAL textsim._source_problems(s) p (problem)
WHERE s.corpus_id = %s AND s.active
"""
# Rows that the signatures give against rows that are there, as multisets; negative counts are rows
# too many.
_BANDS = """
/* textsim-db: check corpus {id}: band rows */
SELECT b.document_id, d.key, b.band, b.bucket, sum(b.sign)
FROM (
    SELECT document_id, band::integer, bucket, -1 AS sign FROM {band}
    UNION ALL
    SELECT d.id, j,
        pg_catalog.hash_array_extended(d.signature[j * %(rows)s + 1:(j + 1) * %(rows)s], j), 1
    FROM {document} d CROSS JOIN pg_catalog.generate_series(0, %(bands)s - 1) j
    WHERE pg_catalog.cardinality(d.signature) > 0
) b
LEFT JOIN {document} d ON d.id = b.document_id
GROUP BY b.document_id, d.key, b.band, b.bucket
HAVING sum(b.sign) <> 0
"""


def check(store: Store, progress: Callable[[int], None] | None = None) -> list[Problem]:
    """Return everything that is wrong in one snapshot of a corpus: nothing, it should be."""
    with transaction(store.engine) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return [
            *_word_problems(connection),
            *_document_problems(connection, store.corpus, progress),
            *_forgotten(connection, store.corpus),
            *_band_problems(connection, store.corpus),
            *_source_problems(connection, store.corpus),
        ]


def _word_problems(connection: Connection) -> Iterator[Problem]:
    for id_, word in connection.execute(_WORDS):
        yield Problem("word hash", f"word {id_}", f'the stored hash is not that of "{word[:40]}"')


def _document_problems(
    connection: Connection, corpus: StoredCorpus, progress: Callable[[int], None] | None
) -> Iterator[Problem]:
    done = 0
    with connection.cursor(corpus.label("check documents"), binary=True) as cursor:
        cursor.itersize = CHUNK
        cursor.execute(corpus.statement(_DOCUMENTS))
        for rows in cut(cursor, CHUNK, lambda row: len(row[4])):
            yield from _check_documents(corpus.config, rows)
            done += len(rows)
            if progress is not None:
                progress(done)


def _check_documents(config: CorpusConfig, rows: list[tuple[Any, ...]]) -> Iterator[Problem]:
    tokens = tokens_of([row[4].encode() for row in rows])
    made = sketch_tokens(tokens, config)
    counts = made.shingle_counts
    words = np.diff(tokens.word_offsets)
    for i, (key, shingle_count, word_ids, stored, form, language, unknown) in enumerate(rows):
        # Who gives the words ids identifies it too.
        expected_one = config.language is not None and word_ids is not None
        if (language is not None) != expected_one:
            told = "a language" if expected_one else "none"
            yield Problem("language", key, f"stored is {language}, expected {told}")
        if unknown is not None:
            yield Problem("unknown word", key, f"word id {unknown} is not in the dictionary")
            continue
        place = tokens.normal_offsets[i : i + 2].tolist()
        stored_words = words[i] if word_ids is None else len(load_int4_array(word_ids))
        if tokens.span(*place) != form or words[i] != stored_words:
            yield Problem("words", key, "the stored words are not a normal form")
        if shingle_count != counts[i]:
            yield Problem(
                "shingle count",
                key,
                f"the words give {counts[i]} shingles, stored is {shingle_count}",
            )
        expected = made.signatures[i] if counts[i] else made.signatures[i, :0]
        if not np.array_equal(expected, load_int4_array(stored)):
            yield Problem("signature", key, "the stored signature is not that of the words")


def _forgotten(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for (key,) in connection.execute(corpus.statement(_FORGOTTEN), [corpus.id]):
        yield Problem("words", key, "they wait for ids, but are not in the log of what is pending")


def _source_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    for table, problem in connection.execute(_SOURCES, [corpus.id]):
        yield Problem("attached table", table, problem)


def _band_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    config = corpus.config
    parameters = {"rows": config.rows, "bands": config.bands}
    for document_id, key, band, bucket, count in connection.execute(
        corpus.statement(_BANDS), parameters
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
