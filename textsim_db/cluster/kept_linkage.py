"""Choose the documents to keep, so that every other document is a verified match of a kept one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np

from textsim_db.cluster.spanning_forest import Links
from textsim_db.compare.jaccard import (
    Rows,
    ShingleSet,
    may_reach,
    refilled,
    shingle_set,
    similarity_with,
)
from textsim_db.compare.match_rule import NOTHING_SEPARATES, Separation, merges
from textsim_db.sketch.ragged import Buckets
from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    enter,
    find,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.numba_compiler import BoolArray, FloatArray, Int64Array, inlined_kernel, kernel


class Kept(NamedTuple):
    """The document that is kept instead of each document: (documents,) each."""

    kept_by: Int64Array
    """The number of the kept document; a kept document has its own number."""
    similarity: FloatArray
    """The similarity to the kept document; 1 for a kept document."""


class _Chains(NamedTuple):
    """The kept documents of each bucket. An entry is one bucket of one document."""

    table: HashTable
    """The last entry that was added to each bucket."""
    previous: Int64Array
    """By entry, the entry that was added to the same bucket before it, or -1."""
    documents: Int64Array
    """The document of each entry."""
    last_visit: Int64Array
    """By document, the last document that reached it. That document and earlier ones skip it."""


def keep_representatives(
    rows: Rows,
    buckets: Buckets,
    settled: int,
    threshold: float,
    replaced: Int64Array | None = None,
    separation: Separation = NOTHING_SEPARATES,
    never_kept: BoolArray | None = None,
) -> Kept:
    """Go through documents in order, and keep each document that merges with no kept document.

    buckets: only documents that share a bucket are compared. The first settled documents are all kept.
    A document that is not kept is assigned to the most similar kept document; ties go to the document
    that comes first. replaced: (documents,), the settled document that each document replaces if it is
    kept, or -1. Its replacement and later documents are not compared with a replaced document.
    separation: what keeps documents from merging; pairs have the later document on the left.
    never_kept: (documents,), whether a document is removed anyway, so that none is assigned to it.
    """
    if replaced is None:
        replaced = np.full(len(rows.shingle_counts), -1, np.int64)
    if never_kept is None:
        never_kept = np.zeros(len(replaced), np.bool_)
    return Kept(*_keep(rows, buckets, settled, replaced, never_kept, threshold, separation, SPREAD))


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
    threshold: float,
    separation: Separation,
    spread: int,
) -> tuple[Int64Array, FloatArray]:
    documents = len(rows.shingle_counts)
    kept = Kept(np.arange(documents), np.ones(documents))
    chains = _empty_chains(buckets, spread)
    shingles = shingle_set(rows, spread)
    candidates = np.empty(documents, np.int64)
    for document in range(documents):
        if document >= settled:
            _take_out(chains, replaced[document], document)
            count = _find_candidates(chains, buckets, rows, document, threshold, candidates)
            if count:
                shingles = refilled(shingles, rows, document)
                _choose_kept(shingles, rows, candidates[:count], threshold, separation, kept)
        if kept.kept_by[document] == document and not never_kept[document]:
            _take_out(chains, replaced[document], documents)
            _add_to_chains(chains, buckets, document)
    return kept.kept_by, kept.similarity


@kernel
def _empty_chains(buckets: Buckets, spread: int) -> _Chains:
    entries = len(buckets.values)
    size = len(buckets.offsets) - 1
    documents = np.empty(entries, np.int64)
    for document in range(size):
        documents[buckets.offsets[document] : buckets.offsets[document + 1]] = document
    table = hash_table(buckets.values.astype(np.uint64), entries, spread)
    return _Chains(table, np.empty(entries, np.int64), documents, np.full(size, -1, np.int64))


@inlined_kernel
def _add_to_chains(chains: _Chains, buckets: Buckets, document: int) -> None:
    for entry in range(buckets.offsets[document], buckets.offsets[document + 1]):
        slot = find(chains.table, np.uint64(buckets.values[entry]))
        chains.previous[entry] = _entry_in(chains, slot)
        enter(chains.table, slot, entry)


@inlined_kernel
def _take_out(chains: _Chains, replaced: int, until: int) -> None:
    """Let later documents up to `until` skip the replaced document, if it is not -1."""
    if replaced >= 0:
        chains.last_visit[replaced] = max(chains.last_visit[replaced], until)


@inlined_kernel
def _entry_in(chains: _Chains, slot: np.uint64) -> int:
    return number_at(chains.table, slot) if is_taken(chains.table, slot) else -1


@inlined_kernel
def _find_candidates(
    chains: _Chains,
    buckets: Buckets,
    rows: Rows,
    document: int,
    threshold: float,
    candidates: Int64Array,
) -> int:
    """Write the kept documents that share a bucket and may match; return their number."""
    counts = rows.shingle_counts
    count = 0
    for i in range(buckets.offsets[document], buckets.offsets[document + 1]):
        entry = _entry_in(chains, find(chains.table, np.uint64(buckets.values[i])))
        while entry >= 0:
            other = chains.documents[entry]
            entry = chains.previous[entry]
            if chains.last_visit[other] >= document:
                continue
            chains.last_visit[other] = document
            if may_reach(threshold, counts[document], counts[other]):
                candidates[count] = other
                count += 1
    return count


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
