"""Searches: a text in, its matches out.

The stages:

    text -> sketch -> buckets -> candidates (a join with the band index)
         -> stored documents, words as numbers -> verify -> matches, best first
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.base.run_ahead import ahead, cut
from textsim_db.compare.match_rule import Criterion, is_match
from textsim_db.compare.pair_values import Rows, concatenated, values_of_pairs
from textsim_db.db.binary_format import array
from textsim_db.db.connections import Cursor
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DocumentError, DocumentNotFound
from textsim_db.files.several_texts import QueryTexts
from textsim_db.measures.by_name import CONTAINMENT, JACCARD
from textsim_db.read import statements
from textsim_db.read.find_candidates import (
    CandidateRows,
    LookUp,
    Numbers,
    find_candidates,
    look_up_of,
    look_up_of_shingles,
    passage_look_up,
    warn_of_missed_passages,
    warn_of_misses,
)
from textsim_db.read.stored_documents import (
    StoredDocuments,
    WordNumbers,
    forms_of_rows,
    rows_of_tokens,
)
from textsim_db.results import Candidate, Match
from textsim_db.sketch.exact_prefix import smallest_of
from textsim_db.sketch.fingerprints import passage_shingles
from textsim_db.sketch.ragged import Parts, in_parts, part_only
from textsim_db.sketch.sketch_texts import Sketches, buckets_of, sketch, sketch_tokens
from textsim_db.text.guard_lines import elements_apart
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import tokens_of
from textsim_db.text.utf8 import Tokens

QUERIES_AT_ONCE = 500
"""The queries of one round of SQL; a larger number takes more memory."""


LOOK_UPS = 2
"""The rounds whose candidates are looked up at once, each on its own connection.

The server takes twice as long for a round as the client, and a connection uses one core of the server.
"""


_NEAREST = 10
"""The documents that are sought before a write; if all of them match, all matches are sought."""
_REJECTED = "rejected"
"""The key of a rejected document begins so."""


class Queries(NamedTuple):
    """The rows of queries, which are compared with stored documents."""

    rows: Rows
    guards: Int64Array | None
    form_of: Callable[[int], str]
    """Returns the normal form of a query by its number."""


def query(store: Store, text: str, criterion: Criterion) -> list[Match]:
    store = _at_threshold(store, criterion)
    parts = part_only(criterion.part)
    sketches = _sketch_one(store, text, criterion.language, parts)
    if _finds_passages(store, criterion):
        look_up = _passage_look_up(store, sketches.tokens, parts)
    else:
        warn_of_misses(store.corpus, criterion, int(sketches.shingle_counts[0]))
        look_up = _look_up(store, sketches)
    candidates = find_candidates(store, look_up, criterion.language, criterion.finds_rejected)
    (matches,) = _matches(store, sketches, candidates, criterion)
    return matches


def matches_and_rejection(
    store: Store, text: str, part: int | None
) -> tuple[list[Match], str | None]:
    """Return the matches of a text, and why a document that would be its twin was rejected.

    In an exact corpus one search finds the nearest documents, too. If few match, these follow.
    """
    config = store.corpus.config
    criterion = Criterion(JACCARD, config.threshold, part=part, finds_rejected=True)
    matches = list[Match]()
    if config.is_exact:
        matches = nearest(store, text, _NEAREST, None, part, finds_rejected=True)
    if not config.is_exact or (
        len(matches) == _NEAREST and is_match(matches[-1].similarity, config.threshold)
    ):
        matches = query(store, text, criterion)
    keys = [match.key for match in matches if match.key.startswith(_REJECTED)]
    reasons = dict(store.read(statements.REJECTIONS, [keys])) if keys else {}
    for match in matches:
        is_twin = is_match(match.similarity, config.twins_from) and not match.differs
        if is_twin and match.key in reasons:
            return [], reasons[match.key]
    return [match for match in matches if match.key not in reasons], None


def nearest(
    store: Store,
    text: str,
    count: int,
    language: str | None,
    part: int | None,
    finds_rejected: bool = False,
) -> list[Match]:
    """Return the documents that are most similar to a text, best first."""
    any_similarity = Criterion(JACCARD, 1e-9, language, part)
    # At this threshold all shingles of the text are looked up.
    own = (
        _with_threshold(store, any_similarity.threshold) if store.corpus.config.is_exact else store
    )
    sketches = _sketch_one(own, text, language, part_only(part))
    if not sketches.shingle_counts[0]:
        return []
    limits = [
        array(sketches.buckets.values),
        int(sketches.shingle_counts[0]),
        language,
        part,
        finds_rejected,
        count,
    ]
    rows = store.read(statements.NEAREST_CANDIDATES, limits, binary=True, prepare=True)
    candidates = CandidateRows.of_one_query(rows)
    return _matches(store, sketches, candidates, any_similarity, count)[0][:count]


def query_many(
    store: Store, texts: Sequence[str], criterion: Criterion, parts: Parts = None
) -> list[list[Match]]:
    """Return the matches of several texts, with one round of SQL for each QUERIES_AT_ONCE texts."""
    data = [placed_bytes(text, f"text {number}") for number, text in enumerate(texts, 1)]
    return list(chain.from_iterable(_in_rounds(store, data, criterion, parts)))


def query_frame(
    store: Store, queries: QueryTexts, criterion: Criterion, parts: Parts, most: int | None
) -> tuple[list[int], list[str], list[float]]:
    """Return columns of the matches of a frame's texts: the row of the text, key and similarity."""
    data = [placed_bytes(text, queries.place(row)) for row, text in enumerate(queries.texts)]
    numbers: list[int] = []
    keys: list[str] = []
    similarities: list[float] = []
    first = 0
    for matches_of_texts in _in_rounds(store, data, criterion, parts):
        for number, matches in enumerate(matches_of_texts, first):
            for key, similarity, *_ in matches[:most]:
                numbers.append(number)
                keys.append(key)
                similarities.append(similarity)
        first += len(matches_of_texts)
    return numbers, keys, similarities


def query_forms(
    store: Store, forms: Sequence[str], criterion: Criterion, parts: Parts
) -> list[list[Match]]:
    """Return the matches of stored normal forms; a document is among its own matches."""
    data = [form.encode() for form in forms]
    rounds = _in_rounds(store, data, criterion, parts, are_forms=True)
    return list(chain.from_iterable(rounds))


def neighbours(store: Store, key: str, criterion: Criterion) -> list[Match]:
    """Return the matches of an indexed document, without itself; raises DocumentNotFound."""
    store = _at_threshold(store, criterion)
    config, vocabulary = store.corpus.config, WordNumbers(dictionary_of(store))
    stored = _row_of_key(store, key)
    document = StoredDocuments(store.corpus, vocabulary, [stored])
    signatures = document.signatures(np.zeros(1, np.int64))
    if config.is_exact:
        signatures = smallest_of(signatures, document.shingle_counts, config.threshold)
    if _finds_passages(store, criterion):
        tokens = tokens_of([form.encode() for form in forms_of_rows(store, [stored])])
        look_up = _passage_look_up(store, tokens, document.parts)
    else:
        warn_of_misses(store.corpus, criterion, int(document.shingle_counts[0]))
        buckets = in_parts(buckets_of(signatures, config), document.parts)
        look_up = look_up_of(buckets, document.shingle_counts, config, document.parts)
    rows = find_candidates(store, look_up, criterion.language).rows
    candidates = CandidateRows.of_one_query([row for row in rows if row[0] != stored[0]])
    if not candidates.rows:
        return []
    queries = Queries(
        document.rows(criterion.measure.of_shingles),
        document.guards,
        lambda _: forms_of_rows(store, [stored])[0],
    )
    documents = StoredDocuments(store.corpus, vocabulary, candidates.rows)
    return _verified(queries, candidates, documents, criterion)[0]


def candidates_of(
    store: Store, text: str, language: str | None, part: int | None
) -> list[Candidate]:
    """Return the candidates of a text, most shared buckets first."""
    sketches = _sketch_one(store, text, language, part_only(part))
    look_up = _look_up(store, sketches)
    statement = statements.COUNT_SHARED_BUCKETS
    parameters: list[Any] = [
        array(look_up.buckets.values),
        int(look_up.sizes[0]),
        look_up.threshold,
    ]
    if language is not None:
        statement, parameters = statement + statements.OF_LANGUAGE, [*parameters, language]
    if part is not None:
        statement, parameters = statement + statements.OF_PART, [*parameters, part]
    shared = store.read(statement, parameters, binary=True, prepare=True)
    return sorted((Candidate(*row) for row in shared), key=lambda c: (-c.shared, c.key))


def normal_form_of(store: Store, key: str) -> str:
    return forms_of_rows(store, [_row_of_key(store, key)])[0]


def _in_rounds(
    store: Store,
    data: Sequence[bytes],
    criterion: Criterion,
    parts: Parts,
    are_forms: bool = False,
) -> Iterator[list[list[Match]]]:
    """Yield the matches of each round of texts, or of stored forms; meanwhile fetch later ones."""
    store = _at_threshold(store, criterion)
    config, finds_passages = store.corpus.config, _finds_passages(store, criterion)
    if not (are_forms or finds_passages):
        warn_of_misses(store.corpus, criterion)

    def sketched(items: list[tuple[bytes, int]]) -> Sketches:
        own = None if parts is None else np.array([part for _, part in items], np.int64)
        texts = [text for text, _ in items]
        if are_forms:
            return sketch_tokens(tokens_of(texts), config, own, finds_passages)
        return sketch(texts, config, criterion.language, own, finds_passages)

    def with_candidates(sketches: Sketches) -> tuple[Sketches, CandidateRows]:
        look_up = (
            passage_look_up(sketches.fingerprints, sketches.parts)
            if finds_passages
            else _look_up(store, sketches)
        )
        if criterion.for_merges:
            look_up = look_up._replace(guards=sketches.guards)
        return sketches, find_candidates(store, look_up, criterion.language)

    items = zip(data, [0] * len(data) if parts is None else parts.tolist(), strict=True)
    with (
        closing(ahead(cut(items, QUERIES_AT_ONCE, lambda item: len(item[0])), sketched)) as queries,
        closing(ahead(queries, with_candidates, LOOK_UPS, LOOK_UPS)) as rounds,
    ):
        for sketches, candidates in rounds:
            yield _matches(store, sketches, candidates, criterion)


def _sketch_one(store: Store, text: str, language: str | None, parts: Parts) -> Sketches:
    """Return the sketch of one text, without fingerprints."""
    config = store.corpus.config
    return sketch([to_bytes(text)], config, language, parts, needs_fingerprints=False)


def _look_up(store: Store, sketches: Sketches) -> LookUp:
    config = store.corpus.config
    return look_up_of(sketches.buckets, sketches.shingle_counts, config, sketches.parts)


def _passage_look_up(store: Store, tokens: Tokens, parts: Parts) -> LookUp:
    """Return the look-up of one text by its passages, and log a warning if it may miss documents."""
    shingles = passage_shingles(tokens, store.corpus.config)
    warn_of_missed_passages(store.corpus, tokens, shingles)
    return look_up_of_shingles(shingles, store.corpus.config, parts)


def _finds_passages(store: Store, criterion: Criterion) -> bool:
    """Say whether the documents that share a passage with a text are its candidates."""
    return criterion.measure is CONTAINMENT and store.corpus.config.passages is not None


def _matches(
    store: Store,
    sketches: Sketches,
    candidates: CandidateRows,
    criterion: Criterion,
    most: int | None = None,
) -> list[list[Match]]:
    """Return the verified candidates of each query, best first; most: the matches that are needed."""
    if not candidates.rows:
        return [[] for _ in sketches.shingle_counts]
    vocabulary = WordNumbers(dictionary_of(store))
    documents = StoredDocuments(store.corpus, vocabulary, candidates.rows)
    rows = rows_of_tokens(
        sketches.tokens,
        sketches.shingle_counts,
        vocabulary,
        store.corpus.config.shingle,
        criterion.measure.of_shingles,
    )
    queries = Queries(rows, sketches.guards, sketches.tokens.form_of)
    return _verified(queries, candidates, documents, criterion, most)


def _verified(
    queries: Queries,
    candidates: CandidateRows,
    documents: StoredDocuments,
    criterion: Criterion,
    most: int | None = None,
) -> list[list[Match]]:
    rows = concatenated(queries.rows, documents.rows(criterion.measure.of_shingles))
    left, right = candidates.queries, candidates.documents
    count = len(queries.rows.shingle_counts)
    values = values_of_pairs(criterion, rows, left, right + count)
    accepted = criterion.accepted(values)
    if most is not None and len(values) > most:
        accepted &= values >= np.partition(values, -most)[-most]
    if not accepted.all():
        left, right, values = left[accepted], right[accepted], values[accepted]
    matches: list[list[Match]] = [[] for _ in range(count)]
    differs = _differs(queries, documents, left, right)
    columns = (left.tolist(), right.tolist(), values.tolist(), differs)
    for number, document, *fields in zip(*columns, strict=True):
        matches[number].append(Match(documents.keys[document], *fields))
    sign = 1 if criterion.measure.is_distance else -1
    return [
        sorted(each, key=lambda match: (sign * match.similarity, match.key)) for each in matches
    ]


def _differs(
    queries: Queries, documents: StoredDocuments, left: Numbers, right: Numbers
) -> list[tuple[str, ...]]:
    """Return the guards that differ, of each pair of a query and a document."""
    differs: list[tuple[str, ...]] = [()] * len(left)
    if queries.guards is None or documents.guards is None:
        return differs
    places = np.flatnonzero(queries.guards[left] != documents.guards[right])
    config = documents.config
    forms = documents.forms(right[places])
    for place, form in zip(places.tolist(), forms, strict=True):
        words = queries.form_of(int(left[place])).split(), form.split()
        differs[place] = tuple(elements_apart(*words, config.guard_rules))
    return differs


def _at_threshold(store: Store, criterion: Criterion) -> Store:
    """Return the store with the threshold of the queries, if its corpus is exact.

    A higher threshold needs fewer buckets. Other measures have thresholds of their own, so their
    candidates are the candidates at the threshold of the corpus.
    """
    config = store.corpus.config
    is_higher = criterion.measure is JACCARD and criterion.threshold > config.threshold
    if not (config.is_exact and is_higher):
        return store
    return _with_threshold(store, criterion.threshold)


def _with_threshold(store: Store, threshold: float) -> Store:
    config = replace(store.corpus.config, threshold=threshold)
    return replace(store, corpus=replace(store.corpus, config=config))


def _row_of_key(store: Store, key: str) -> tuple[Any, ...]:
    with autocommit(store.engine) as connection:
        return row_of_key(connection.cursor(binary=True), store.corpus, key)


def row_of_key(cursor: Cursor, corpus: StoredCorpus, key: str) -> tuple[Any, ...]:
    """Return the row of an indexed document as StoredDocuments expects it; raises DocumentNotFound."""
    statement = corpus.statement(statements.DOCUMENT_OF_KEY)
    row: tuple[Any, ...] | None = cursor.execute(statement, [key], prepare=True).fetchone()
    if row is None:
        raise DocumentNotFound(f'corpus "{corpus.name}" has no document "{key[:100]}"')
    return row


def placed_bytes(text: str, place: str) -> bytes:
    """Return a text as to_bytes() does; an error begins with the place of the text."""
    try:
        return to_bytes(text)
    except DocumentError as error:
        raise DocumentError(f"{place}: {error}") from error
