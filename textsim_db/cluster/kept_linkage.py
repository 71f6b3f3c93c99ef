"""Choose the documents to keep, so that every other document is a verified match of a kept one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    FloatArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.cluster.spanning_forest import Links
from textsim_db.compare.match_rule import NOTHING_SEPARATES, Separation, merges
from textsim_db.compare.pair_values import (
    Rows,
    ShingleSet,
    may_reach,
    refilled,
    shingle_set,
    similarity_with,
)
from textsim_db.sketch.exact_prefix import shares_enough
from textsim_db.sketch.ragged import Buckets
from textsim_db.text.hashing import (
    SPREAD,
    enter,
    find,
    hash_table,
    is_taken,
    number_at,
)


class Kept(NamedTuple):
    """The document that is kept instead of each document: (documents,) each."""

    kept_by: Int64Array
    """The number of the kept document; a kept document has its own number."""
    similarity: FloatArray
    """The similarity to the kept document; 1 for a kept document."""


class _Thresholds(NamedTuple):
    match: float
    """The similarity from which documents match."""
    prefix: float
    """The threshold of the exact corpus whose prefixes the buckets are; 0 with bands."""


class _KeptLists(NamedTuple):
    """The kept documents of each bucket. An entry is one bucket of one document."""

    bucket_of: Int64Array
    """The bucket of each entry, numbered by the first entry that has it: (entries,)."""
    starts: Int64Array
    """The begin of the list of each bucket; a list has room for all documents of its bucket."""
    ends: Int64Array
    """The end so far of the list of each bucket."""
    documents: Int32Array
    """The documents of all lists: (entries,)."""


class _Visits(NamedTuple):
    """The documents that one document meets in the lists, and space for their counts."""

    shared: Int32Array
    """By document, the buckets that it shares; 0 between two visits: (documents,)."""
    skipped_by: Int64Array
    """By document, the last document that skips it; earlier documents skip it, too: (documents,)."""
    candidates: Int64Array
    """Space for the documents that are met: (documents,)."""


def keep_representatives(
    rows: Rows,
    buckets: Buckets,
    settled: int,
    threshold: float,
    replaced: Int64Array | None = None,
    separation: Separation = NOTHING_SEPARATES,
    never_kept: BoolArray | None = None,
    prefix_threshold: float = 0.0,
) -> Kept:
    """Go through documents in order, and keep each document that merges with no kept document.

    buckets: only documents that share a bucket are compared. If the buckets are the prefixes of an
    exact corpus, prefix_threshold is its threshold, and documents are compared only if they share as
    many values as shares_enough() asks for. With 0 one bucket is enough. The first settled documents
    are all kept. A document that is not kept is assigned to the most similar kept document; ties go to
    the document that comes first. replaced: (documents,), the settled document that each document
    replaces if it is kept, or -1. Its replacement and later documents are not compared with a replaced
    document. separation: what keeps documents from merging; pairs have the later document on the left.
    never_kept: (documents,), whether a document is removed anyway, so that none is assigned to it.
    """
    if replaced is None:
        replaced = np.full(len(rows.shingle_counts), -1, np.int64)
    if never_kept is None:
        never_kept = np.zeros(len(replaced), np.bool_)
    thresholds = _Thresholds(threshold, prefix_threshold)
    return Kept(
        *_keep(rows, buckets, settled, replaced, never_kept, thresholds, separation, SPREAD)
    )


def keep_linked(links: Links, apart: Mapping[int, Set[int]]) -> Links:
    """Return the links from each document that is not kept, left, to the kept document, right.

    The rule of keep_representatives, for links that are known: the lowest number comes first. A link of
    a similarity above 1 joins a document to the cluster of an earlier one, whatever that is. apart: for
    some documents the documents that may not be in one cluster with them.
    """
    first, second = np.sort(np.stack(links[:2]), axis=0)
    order = np.lexsort((first, -links.similarity, second))
    kept_by: dict[int, int] = {}
    chosen = []
    columns = (column[order].tolist() for column in (first, second, links.similarity))
    for link, a, b, similarity in zip(order.tolist(), *columns, strict=True):
        if b in kept_by or (a in kept_by and similarity <= 1):
            continue
        kept = kept_by.get(a, a)
        if similarity <= 1 and any(kept_by.get(x, x) == kept for x in apart.get(b, ())):
            continue
        kept_by[b] = kept
        chosen.append(link)
    kept_documents = np.array([*kept_by.values()], np.int64)
    return Links(second[chosen], kept_documents, links.similarity[chosen])


@kernel
def _keep(
    rows: Rows,
    buckets: Buckets,
    settled: int,
    replaced: Int64Array,
    never_kept: BoolArray,
    thresholds: _Thresholds,
    separation: Separation,
    spread: int,
) -> tuple[Int64Array, FloatArray]:
    documents = len(rows.shingle_counts)
    kept = Kept(np.arange(documents), np.ones(documents))
    lists = _empty_lists(buckets, spread)
    visits = _Visits(
        np.zeros(documents, np.int32),
        np.full(documents, -1, np.int64),
        np.empty(documents, np.int64),
    )
    shingles = shingle_set(rows, spread)
    for document in range(documents):
        if document >= settled:
            _skip(visits, replaced[document], document)
            count = _find_candidates(lists, visits, buckets, rows, document, thresholds)
            if count:
                shingles = refilled(shingles, rows, document)
                candidates = visits.candidates[:count]
                _choose_kept(shingles, rows, candidates, thresholds.match, separation, kept)
        if kept.kept_by[document] == document and not never_kept[document]:
            _skip(visits, replaced[document], documents)
            _add_to_lists(lists, buckets, document)
    return kept.kept_by, kept.similarity


@kernel
def _empty_lists(buckets: Buckets, spread: int) -> _KeptLists:
    entries = len(buckets.values)
    table = hash_table(buckets.values.astype(np.uint64), entries, spread)
    bucket_of = np.empty(entries, np.int64)
    starts = np.zeros(entries + 1, np.int64)
    for entry in range(entries):
        slot = find(table, np.uint64(buckets.values[entry]))
        if not is_taken(table, slot):
            enter(table, slot, entry)
        bucket_of[entry] = number_at(table, slot)
        starts[bucket_of[entry] + 1] += 1
    for entry in range(entries):
        starts[entry + 1] += starts[entry]
    return _KeptLists(bucket_of, starts, starts.copy(), np.empty(entries, np.int32))


@inlined_kernel
def _add_to_lists(lists: _KeptLists, buckets: Buckets, document: int) -> None:
    for entry in range(buckets.offsets[document], buckets.offsets[document + 1]):
        bucket = lists.bucket_of[entry]
        lists.documents[lists.ends[bucket]] = document
        lists.ends[bucket] += 1


@inlined_kernel
def _skip(visits: _Visits, replaced: int, until: int) -> None:
    """Let documents up to `until` skip the replaced document, if it is not -1."""
    if replaced >= 0:
        visits.skipped_by[replaced] = max(visits.skipped_by[replaced], until)


@inlined_kernel
def _find_candidates(
    lists: _KeptLists,
    visits: _Visits,
    buckets: Buckets,
    rows: Rows,
    document: int,
    thresholds: _Thresholds,
) -> int:
    """Write the kept documents that may match a document; return their number."""
    counts, candidates = rows.shingle_counts, visits.candidates
    count = 0
    for place in range(_count_shared(lists, visits, buckets, document)):
        other = candidates[place]
        shared = visits.shared[other]
        visits.shared[other] = 0
        if (
            visits.skipped_by[other] < document
            and may_reach(thresholds.match, counts[document], counts[other])
            and shares_enough(shared, counts[document], counts[other], thresholds.prefix)
        ):
            candidates[count] = other
            count += 1
    return count


@inlined_kernel
def _count_shared(lists: _KeptLists, visits: _Visits, buckets: Buckets, document: int) -> int:
    """Count the buckets that each kept document shares; write these documents, return their number."""
    met = 0
    for entry in range(buckets.offsets[document], buckets.offsets[document + 1]):
        bucket = lists.bucket_of[entry]
        for place in range(lists.starts[bucket], lists.ends[bucket]):
            other = lists.documents[place]
            if visits.shared[other] == 0:
                visits.candidates[met] = other
                met += 1
            visits.shared[other] += 1
    return met


@inlined_kernel
def _choose_kept(
    shingles: ShingleSet,
    rows: Rows,
    candidates: Int64Array,
    threshold: float,
    separation: Separation,
    kept: Kept,
) -> None:
    """Assign a document to the most similar candidate with which it merges."""
    document = shingles.document
    best = 0.0
    for other in candidates:
        mark = document * len(rows.shingle_counts) + other
        similarity = similarity_with(shingles, rows, other, mark)
        is_first = similarity == best and other < kept.kept_by[document]
        is_better = similarity > best or is_first
        if is_better and merges(similarity, threshold, document, other, separation):
            best = similarity
            kept.kept_by[document], kept.similarity[document] = other, similarity
