"""Candidates: the documents that share buckets with a query, found by a join with the band index.

One shared bucket makes a candidate. In an exact corpus, the sizes of both documents decide how many.

The Jaccard similarity of shingles chooses candidates. So a threshold below the threshold of the corpus,
or another measure, accepts documents that are no candidates. A warning says how many of them
are found.
"""

from __future__ import annotations

import logging
import shlex
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import Int32Array, Int64Array
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.binary_format import array, load_int4_array, load_int4_arrays
from textsim_db.db.connections import Cursor
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import statements
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.exact_prefix import least_needed
from textsim_db.sketch.fingerprints import (
    Fingerprints,
    PassageShingles,
    count_units,
    fingerprints_of_shingles,
    left_out_runs,
)
from textsim_db.sketch.ragged import Buckets, Parts, Ragged, in_parts
from textsim_db.text.utf8 import Tokens

log = logging.getLogger(__name__)


Numbers = npt.NDArray[np.int64]


class LookUp(NamedTuple):
    buckets: Buckets
    """The buckets of each query; in an exact corpus, its prefix."""
    sizes: Int32Array
    """The shingles of each query: int32 of shape (queries,)."""
    parts: Parts
    """The part of each query; None if the corpus has no parts."""
    threshold: float | None
    """In an exact corpus, the similarity that a candidate must be able to reach; None with bands."""
    of_passages: bool = False
    """Whether the buckets are fingerprints, so that a candidate shares a passage with the query."""
    guards: Int64Array | None = None
    """The guard of each query: only documents with the same guard are candidates. None: all are."""

    @property
    def needed(self) -> Int32Array:
        """How many buckets a candidate shares at least with each query: int32 of shape (queries,)."""
        if self.threshold is None:
            return np.ones(len(self.sizes), np.int32)
        return least_needed(self.sizes.astype(np.int64), self.threshold)


def look_up_of(
    buckets: Buckets, shingle_counts: Int64Array, config: CorpusConfig, parts: Parts
) -> LookUp:
    """Return the look-up of queries at the threshold of the configuration; buckets: in the parts."""
    threshold = config.threshold if config.is_exact else None
    return LookUp(buckets, shingle_counts.astype(np.int32), parts, threshold)


def passage_look_up(fingerprints: Fingerprints | None, parts: Parts) -> LookUp:
    """Return the look-up of queries by their fingerprints; the corpus has passages."""
    assert fingerprints is not None
    sizes = np.zeros(len(fingerprints.sizes), np.int32)  # any size may share a passage
    return LookUp(in_parts(fingerprints, parts), sizes, parts, None, of_passages=True)


def look_up_of_shingles(shingles: PassageShingles, config: CorpusConfig, parts: Parts) -> LookUp:
    """Return the look-up of one text by its fingerprints."""
    fingerprints = fingerprints_of_shingles(shingles, config)
    return passage_look_up(Ragged(fingerprints, np.array([0, len(fingerprints)])), parts)


def without_common(store: Store, look_up: LookUp, max_documents: int) -> tuple[LookUp, Int32Array]:
    """Return the look-up of one query without the fingerprints of more documents, and those."""
    fingerprints = look_up.buckets.values
    part = None if look_up.parts is None else int(look_up.parts[0])
    parameters = [array(fingerprints), part, max_documents]
    ((sent,),) = store.read(statements.COMMON_FINGERPRINTS, parameters, binary=True, prepare=True)
    common = load_int4_array(sent)
    rare = np.setdiff1d(fingerprints, common)
    return look_up._replace(buckets=Ragged(rare, np.array([0, len(rare)]))), common


class CandidateRows(NamedTuple):
    """The pairs of a query and a stored document that share enough buckets."""

    rows: list[tuple[Any, ...]]
    """Each document once, in the form that StoredDocuments expects."""
    queries: Numbers
    """The place of the query of each pair, sorted: (pairs,)."""
    documents: Numbers
    """The place in rows of the document of each pair: (pairs,)."""

    @classmethod
    def of_one_query(cls, rows: list[tuple[Any, ...]]) -> CandidateRows:
        return cls(rows, np.zeros(len(rows), np.int64), np.arange(len(rows)))


def find_candidates(
    store: Store, look_up: LookUp, language: str | None, finds_rejected: bool = False
) -> CandidateRows:
    """Return the documents that share enough buckets with any of several queries."""
    if not len(look_up.buckets.values):
        return CandidateRows.of_one_query([])
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        return read_candidates(cursor, store.corpus, look_up, language, finds_rejected)


def read_candidates(
    cursor: Cursor,
    corpus: StoredCorpus,
    look_up: LookUp,
    language: str | None = None,
    finds_rejected: bool = False,
    in_write: bool = False,
) -> CandidateRows:
    """Return the candidates that a transaction sees.

    in_write: with their signatures, with rejected documents, and by a plan that fits the sizes of the
    tables.
    """
    buckets, sizes, parts, threshold, of_passages, guards = look_up
    is_exact = threshold is not None
    if guards is not None:
        statement = statements.CANDIDATES_FOR_MERGES
        parameters: list[Any] = [array(guards), array(guards)]
        parameters += [array(buckets.owners()), array(buckets.values)]
        parameters += [array(guards), array(sizes), threshold]
    elif len(sizes) == 1:  # without the numbers of the queries the join is a tenth quicker
        statement = statements.EXACT_CANDIDATES_OF_ONE if is_exact else statements.CANDIDATES_OF_ONE
        if of_passages:
            statement = statements.PASSAGE_CANDIDATES_OF_ONE
        parameters = [array(buckets.values)]
        if is_exact:
            parameters += [int(look_up.needed[0]), int(sizes[0]), threshold]
    else:
        statement = (
            statements.EXACT_CANDIDATES_OF_MANY if is_exact else statements.CANDIDATES_OF_MANY
        )
        if of_passages:
            statement = statements.PASSAGE_CANDIDATES_OF_MANY
        # In order, neighbouring look-ups read the same pages of the index, which are in the cache.
        order = np.argsort(buckets.values)
        parameters = [array(buckets.owners()[order]), array(buckets.values[order])]
        if is_exact:
            parameters += [array(look_up.needed), array(sizes), threshold]
    if language is not None:
        statement, parameters = statement + statements.OF_LANGUAGE, [*parameters, language]
    if in_write:
        statement = statement.replace(statements.TO_COMPARE, statements.FIELDS)
    if in_write or finds_rejected:
        statement = statement.replace("{alive}", "{unexpired}")
    rows = cursor.execute(corpus.statement(statement), parameters, prepare=not in_write).fetchall()
    if len(sizes) == 1 and guards is None:
        if parts is not None:  # by chance, buckets of other parts are equal
            rows = [row for row in rows if row[5] == parts[0]]
        return CandidateRows.of_one_query(rows)
    queries, offsets = load_int4_arrays([row[-1] for row in rows])
    documents = np.repeat(np.arange(len(rows)), np.diff(offsets))
    if parts is not None:
        stored = np.array([row[5] for row in rows], np.int64)
        is_inside = parts[queries] == stored[documents]
        queries, documents = queries[is_inside], documents[is_inside]
    by_query = np.argsort(queries, kind="stable")
    return CandidateRows(rows, queries[by_query].astype(np.int64), documents[by_query])


def warn_of_misses(
    corpus: StoredCorpus, criterion: Criterion, shingle_count: int | None = None
) -> None:
    """Log a warning if documents that the criterion accepts need not be candidates."""
    config, measure = corpus.config, criterion.measure
    least = measure.least_jaccard(criterion.threshold)
    if shingle_count == 0:  # a text without words matches nothing by any measure
        return
    if least is not None and least >= config.threshold:
        missed = config.many_missed(least)
        if missed is None:
            return
        message = f'corpus "{corpus.name}": {missed}'
    elif measure is JACCARD:
        message = (
            f"threshold {criterion.threshold:g} is below {config.threshold:g}, the threshold of corpus "
            f'"{corpus.name}": {config.share_found(criterion.threshold)} of the documents at '
            f"{criterion.threshold:g} are found; to find more: "
            f"textsim rebuild {shlex.quote(corpus.name)} --threshold {criterion.threshold:g}"
        )
    else:
        outcome = f"documents below {config.threshold:g} may be missed"
        if not config.is_exact:
            lower = config.threshold / 2 if least is None else least
            outcome = (
                f"{config.share_found(config.threshold)} of the documents at {config.threshold:g} are "
                f"found, {config.share_found(lower)} at {lower:.3g}"
            )
        message = (
            f'{measure.name}: the candidates of corpus "{corpus.name}" are chosen by Jaccard '
            f"similarity: {outcome}"
        )
    log.warning("%s", message, extra={"corpus": corpus.name})


def warn_of_missed_passages(
    corpus: StoredCorpus, tokens: Tokens, shingles: PassageShingles
) -> None:
    """Log a warning if documents that contain a text need not be found by its passages."""
    config = corpus.config
    units = count_units(tokens, config)
    name = f"{config.shingle.noun}s"
    if 0 < units < (config.passages or 0):
        message = (
            f"the text has {units} {name}, and only documents that share {config.passages} "
            f'{name} in a row with it are found in corpus "{corpus.name}"'
        )
    elif left_out_runs(shingles, config):
        command = f"textsim rebuild {shlex.quote(corpus.name)} --common-passages"
        message = (
            f'a run of the text is in very many documents of corpus "{corpus.name}", which are not '
            f"searched for it; to find them: {command}"
        )
    else:
        return
    log.warning("%s", message, extra={"corpus": corpus.name})
