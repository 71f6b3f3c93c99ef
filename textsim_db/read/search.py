"""The read path: from a text to candidates by an indexed join, and to matches verified exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, LiteralString

import numpy as np
import numpy.typing as npt

from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.db.binary_format import Array, load_int4_array, load_int4_arrays
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.diff.explanation import Side, side_of_form
from textsim_db.errors import DocumentError, DocumentNotFound
from textsim_db.read.stored_documents import (
    Documents,
    Rows,
    Vocabulary,
    characters_of,
    normal_forms,
)
from textsim_db.results import Candidate, Match
from textsim_db.sketch import band_buckets, minhash
from textsim_db.sketch.sketches import Sketches, sketch, sketch_tokens
from textsim_db.text.streams import ahead, cut
from textsim_db.text.tokens import to_bytes, tokens_of

CHUNK_QUERIES = 500

# A bucket alone says its band, which its hash is seeded with.

_CANDIDATES = """
SELECT d.key, c.bands
FROM (
    SELECT b.document_id, count(*) AS bands
    FROM pg_catalog.unnest(%s::bigint[]) q (bucket)
    JOIN {band} b ON b.bucket = q.bucket
    GROUP BY b.document_id
) c
JOIN {document} d ON d.id = c.document_id
"""
_CANDIDATE_DOCUMENTS = """
SELECT d.id, d.key, d.shingle_count,
    pg_catalog.array_send(d.word_ids), pg_catalog.array_send(d.signature),
    d.normal_form
FROM (
    SELECT DISTINCT b.document_id
    FROM pg_catalog.unnest(%s::bigint[]) q (bucket)
    JOIN {band} b ON b.bucket = q.bucket
) c
JOIN {document} d ON d.id = c.document_id
"""
_CANDIDATES_OF_MANY = """
/* textsim-db: candidates of many texts in corpus {id} */
SELECT d.id, d.key, d.shingle_count,
    pg_catalog.array_send(d.word_ids), pg_catalog.array_send(d.signature),
    d.normal_form, pg_catalog.array_send(c.queries)
FROM (
    SELECT b.document_id, pg_catalog.array_agg(DISTINCT q.query) AS queries
    FROM unnest(%s::integer[], %s::bigint[]) q (query, bucket)
    JOIN {band} b ON b.bucket = q.bucket
    GROUP BY b.document_id
) c
JOIN {document} d ON d.id = c.document_id
"""
_BY_KEY = """
SELECT id, key, shingle_count,
    pg_catalog.array_send(word_ids), pg_catalog.array_send(signature),
    normal_form
FROM {document} WHERE key = %s
"""


_OF_LANGUAGE = "WHERE d.language = %s"


def query(store: Store, text: str, criterion: Criterion) -> list[Match]:
    """Return the matches of a text, best first."""
    made = sketch([to_bytes(text)], store.corpus.config, criterion.language)
    if not made.shingle_counts[0]:
        return []
    rows = _candidate_documents(store, made.buckets[0], criterion.language)
    if not rows:
        return []
    vocabulary = Vocabulary(store.dictionary)
    found = Documents(store.corpus, vocabulary, rows)
    rows_of_query = _query_rows(made, store.corpus, vocabulary, criterion)
    return _matches_of_one(
        store.corpus, rows_of_query, made.shingle_counts, made.signatures[0], found, criterion
    )


def query_many(
    store: Store,
    texts: Sequence[str],
    criterion: Criterion,
) -> list[list[Match]]:
    """Return the matches of several texts; one round of SQL for some hundreds of them.

    While the server finds the candidates of some, those of the ones before are verified.
    """
    data = [_numbered(i, text) for i, text in enumerate(texts)]
    sketched = partial(sketch, config=store.corpus.config, language=criterion.language)
    return _query_all(store, data, sketched, criterion)


def query_forms(
    store: Store,
    forms: Sequence[str],
    criterion: Criterion,
) -> list[list[Match]]:
    """Return the matches of normal forms as the corpus stores them, each of itself among them."""

    def sketched(data: Sequence[bytes]) -> Sketches:
        return sketch_tokens(tokens_of(data), store.corpus.config)

    data = [form.encode() for form in forms]
    return _query_all(store, data, sketched, criterion)


def _query_all(
    store: Store,
    data: Sequence[bytes],
    sketched: Callable[[Sequence[bytes]], Sketches],
    criterion: Criterion,
) -> list[list[Match]]:
    results: list[list[Match]] = []
    with (
        closing(ahead(cut(data, CHUNK_QUERIES, len), sketched)) as queries,
        closing(
            ahead(queries, partial(_with_candidates, store, language=criterion.language))
        ) as found,
    ):
        for made, rows in found:
            results += _matches_of_many(store.dictionary, store.corpus, made, rows, criterion)
    return results


def neighbours(store: Store, key: str, criterion: Criterion) -> list[Match]:
    """Return the matches of an indexed document, itself left out; raises DocumentNotFound."""
    own = _row_of(store, key)
    signature = load_int4_array(own[4])
    if not len(signature):
        return []
    buckets = band_buckets.buckets(signature[np.newaxis], store.corpus.config.banding)[0]
    found = _candidate_documents(store, buckets, criterion.language)
    rows = [row for row in found if row[0] != own[0]]
    if not rows:
        return []
    vocabulary = Vocabulary(store.dictionary)
    itself = Documents(store.corpus, vocabulary, [own])
    return _matches_of_one(
        store.corpus,
        itself.rows(criterion.measure.of_shingles),
        itself.shingle_counts,
        signature,
        Documents(store.corpus, vocabulary, rows),
        criterion,
    )


def side_of(store: Store, key: str) -> Side:
    """Return an indexed document as explain_sides() takes it; raises DocumentNotFound."""
    own = _row_of(store, key)
    form = own[5]
    if form is None:
        (form,) = normal_forms(*load_int4_arrays([own[3]]), store.dictionary)
    return side_of_form(form, store.corpus.config)


def candidates(store: Store, text: str, language: str | None) -> list[Candidate]:
    """Return the documents that share a bucket with a text, most shared buckets first."""
    made = sketch([to_bytes(text)], store.corpus.config, language)
    if not made.shingle_counts[0]:
        return []
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        parameters = [Array(made.buckets[0])]
        cursor.execute(*_limited(store.corpus, _CANDIDATES, parameters, language), prepare=True)
        found = [Candidate(*row) for row in cursor]
    return sorted(found, key=lambda candidate: (-candidate.bands, candidate.key))


def best_first(matches: Iterable[Match], criterion: Criterion) -> list[Match]:
    """Return matches by similarity, or distance, and then by key."""
    sign = 1 if criterion.measure.is_distance else -1
    return sorted(matches, key=lambda match: (sign * match.similarity, match.key))


def _row_of(store: Store, key: str) -> tuple[Any, ...]:
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        own = cursor.execute(store.corpus.statement(_BY_KEY), [key], prepare=True).fetchone()
    if own is None:
        raise DocumentNotFound(f'corpus "{store.corpus.name}" has no document "{key}"')
    return own


def _candidate_documents(
    store: Store, buckets: npt.NDArray[np.int64], language: str | None
) -> list[tuple[Any, ...]]:
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        limited = _limited(store.corpus, _CANDIDATE_DOCUMENTS, [Array(buckets)], language)
        return cursor.execute(*limited, prepare=True).fetchall()


def _limited(
    corpus: StoredCorpus, statement: LiteralString, parameters: list[Any], language: str | None
) -> tuple[str, list[Any]]:
    """Return a statement that finds documents d, and its parameters, limited to a language."""
    if language is None:
        return corpus.statement(statement), parameters
    return corpus.statement(statement + _OF_LANGUAGE), [*parameters, language]


def _query_rows(
    made: Sketches, corpus: StoredCorpus, vocabulary: Vocabulary, criterion: Criterion
) -> Rows:
    """Return queries as rows of integers, comparable with those of stored documents."""
    if criterion.measure.of_shingles and corpus.config.shingle.unit == "char":
        return characters_of(made.tokens)
    return vocabulary.numbers(made.tokens), made.tokens.word_offsets


def _values(
    corpus: StoredCorpus,
    queries: Rows,
    shingle_counts: npt.NDArray[np.int64],
    found: Documents,
    query_numbers: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    criterion: Criterion,
) -> npt.NDArray[np.float64]:
    """Return the measure of pairs of a query and a document."""
    tokens, offsets = queries
    more, more_offsets = found.rows(criterion.measure.of_shingles)
    return values_of_pairs(
        criterion,
        np.concatenate((tokens, more)),
        np.concatenate((offsets, more_offsets[1:] + offsets[-1])),
        np.concatenate((shingle_counts, found.shingle_counts)),
        query_numbers,
        right + len(offsets) - 1,
        corpus.config.shingle.n,
    )


def _matches_of_one(
    corpus: StoredCorpus,
    query_rows: Rows,
    shingle_counts: npt.NDArray[np.int64],
    signature: npt.NDArray[np.int32],
    found: Documents,
    criterion: Criterion,
) -> list[Match]:
    count = len(found.keys)
    itself, others = np.zeros(count, np.int64), np.arange(count)
    values = _values(corpus, query_rows, shingle_counts, found, itself, others, criterion)
    reached = np.flatnonzero(criterion.accepted(values))
    estimates = minhash.estimates(signature, found.signatures(reached, len(signature)))
    matches = [
        Match(found.keys[i], s, e)
        for i, s, e in zip(
            reached.tolist(), values[reached].tolist(), estimates.tolist(), strict=True
        )
    ]
    return best_first(matches, criterion)


def _numbered(number: int, text: str) -> bytes:
    try:
        return to_bytes(text)
    except DocumentError as error:
        raise DocumentError(f"text {number + 1}: {error}") from error


def _with_candidates(
    store: Store, made: Sketches, language: str | None
) -> tuple[Sketches, list[tuple[Any, ...]]]:
    """Return queries with the documents that share a bucket with any of them."""
    filled = np.flatnonzero(made.shingle_counts)
    parameters = [
        Array(np.repeat(filled, store.corpus.config.bands).astype(np.int32)),
        Array(made.buckets[filled].ravel()),
    ]
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        limited = _limited(store.corpus, _CANDIDATES_OF_MANY, parameters, language)
        return made, cursor.execute(*limited, prepare=True).fetchall()


def _matches_of_many(
    dictionary: Dictionary,
    corpus: StoredCorpus,
    made: Sketches,
    rows: list[tuple[Any, ...]],
    criterion: Criterion,
) -> list[list[Match]]:
    results: list[list[Match]] = [[] for _ in made.signatures]
    if not rows:
        return results
    vocabulary = Vocabulary(dictionary)
    found = Documents(corpus, vocabulary, rows)
    left, per_document = load_int4_arrays([row[6] for row in rows])
    right = np.repeat(np.arange(len(rows)), np.diff(per_document))
    order = np.argsort(left, kind="stable")
    query_numbers, right = left[order].astype(np.int64), right[order]
    queries = _query_rows(made, corpus, vocabulary, criterion)
    values = _values(corpus, queries, made.shingle_counts, found, query_numbers, right, criterion)
    reached = np.flatnonzero(criterion.accepted(values))
    query_numbers, right, values = query_numbers[reached], right[reached], values[reached]
    estimates = minhash.estimates(
        made.signatures[query_numbers], found.signatures(right, corpus.config.num_hashes)
    )
    for i, j, s, e in zip(
        query_numbers.tolist(),
        right.tolist(),
        values.tolist(),
        estimates.tolist(),
        strict=True,
    ):
        results[i].append(Match(found.keys[j], s, e))
    return [best_first(matches, criterion) for matches in results]
