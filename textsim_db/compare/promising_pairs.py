"""The pairs that can reach a threshold, among documents that all share a bucket.

Sort the elements of every set in the same order. Two sets with Jaccard similarity t or more then share
an element among their first few elements, the prefix. The order is from rare to frequent, so prefixes
rarely hold a shingle of boilerplate that most documents share. Chaudhuri, Ganti and Kaushik, "A
primitive operator for similarity joins in data cleaning", 2006; Bayardo, Ma and Srikant, "Scaling up
all pairs similarity search", 2007.

Past the prefix of one document, only its own other shingles can be shared. So the elements that two
prefixes share, and the larger number of other shingles, bound the similarity: Xiao, Wang, Lin and Yu,
"Efficient similarity joins for near duplicate detection", 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import HashArray, Int64Array, inlined_kernel, kernel, longest
from textsim_db.compare.pair_values import Rows, most_shingles, rolling_hashes, similarity_of
from textsim_db.sketch.ragged import begins_run

CHUNK_PAIRS = 200_000
_FREQUENCY_BITS = 20
_BASE = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio. It is not secret, because the order of the pairs depends on it."""
_ANY_NUMBER = np.int64(2**31)
"""More shingles than a document has."""


class _Prefixes(NamedTuple):
    """The rarest shingles of each document."""

    elements: HashArray
    """The hashes of the shingles: (entries,)."""
    owners: Int64Array
    """The document of each shingle: (entries,)."""
    others: Int64Array
    """The shingles of each document that are not in its prefix: (documents,)."""


class _Lists(NamedTuple):
    """The documents of each element as one list after another, and the entries of each document."""

    owners: Int64Array
    """The document of each entry: (entries,)."""
    starts: Int64Array
    """The start of the list of each entry's element: (entries,)."""
    by_owner: Int64Array
    """The numbers of the entries, sorted by document: (entries,)."""
    bounds: Int64Array
    """The start of each document in by_owner: (documents + 1,)."""
    groups: Int64Array
    """The group of each document."""
    shingle_counts: Int64Array
    others: Int64Array
    """The shingles of each document that are not in its prefix."""


def promising_pairs(
    rows: Rows, groups: Int64Array, threshold: float
) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield every pair of documents of different groups whose similarity may reach the threshold.

    groups has the shape (documents,). Chunks are two arrays of shape (pairs,). Each pair comes once,
    and every pair that reaches the threshold comes.
    """
    order = np.argsort(groups, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    prefixes = _Prefixes(*_prefixes(rows, threshold))
    prefixes = prefixes._replace(owners=place[prefixes.owners], others=prefixes.others[order])
    lists = _lists_of(prefixes, groups[order], rows.shingle_counts[order])
    start = 0
    while start < len(order):
        left, right, start = _pair(lists, start, threshold)
        if len(left):
            yield order[left], order[right]


def _lists_of(prefixes: _Prefixes, groups: Int64Array, shingle_counts: Int64Array) -> _Lists:
    """Return the lists of the elements that occur in more than one group."""
    order = np.lexsort((prefixes.owners, prefixes.elements))
    elements, owners = prefixes.elements[order], prefixes.owners[order]
    starts, lengths = _runs(elements)
    several = groups[owners[starts]] != groups[owners[starts + lengths - 1]]
    kept = np.repeat(several, lengths)
    elements, owners = elements[kept], owners[kept]
    by_owner = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[by_owner], np.arange(len(groups) + 1))
    starts = np.repeat(*_runs(elements))
    return _Lists(owners, starts, by_owner, bounds, groups, shingle_counts, prefixes.others)


def _runs(elements: HashArray) -> tuple[Int64Array, Int64Array]:
    starts = np.flatnonzero(begins_run(elements))
    return starts, np.diff(starts, append=len(elements))


@kernel
def _prefixes(rows: Rows, threshold: float) -> tuple[HashArray, Int64Array, Int64Array]:
    """Return the prefix of each document: the elements of its rarest shingles.

    The high bits of an element are the approximate frequency of its shingle, the low bits come from the
    hash. The highest bit is 0, so elements sort as signed numbers. A shingle has the same element in all
    documents, so all documents have one order.
    """
    frequencies = np.zeros(1 << _FREQUENCY_BITS, np.uint32)
    hashes = np.empty(longest(rows.offsets), np.uint64)
    size = most_shingles(rows)
    documents = len(rows.shingle_counts)
    others = np.empty(documents, np.int64)
    prefixes = _Prefixes(np.empty(size, np.uint64), np.empty(size, np.int64), others)
    for document in range(documents):
        _count_frequencies(rows, document, hashes, frequencies)
    end = 0
    for document in range(documents):
        count = _write_elements(rows, document, frequencies, hashes)
        hashes[:count].view(np.int64).sort()  # one compiled sort serves all kernels
        # A match shares at least ceil(threshold * shingles) shingles, so one is in this prefix.
        shingles = rows.shingle_counts[document]
        wanted = shingles - np.int64(np.ceil(threshold * shingles - 1e-9)) + 1
        end = _append_distinct(hashes[:count], wanted, document, prefixes, end)
        # If two shingles have one element, the shared elements are fewer than the shared shingles.
        are_distinct = _count_distinct(hashes[:count]) == shingles
        others[document] = shingles - wanted if are_distinct else _ANY_NUMBER
    return prefixes.elements[:end], prefixes.owners[:end], others


@inlined_kernel
def _count_frequencies(
    rows: Rows, document: int, hashes: HashArray, frequencies: npt.NDArray[np.uint32]
) -> None:
    for k in range(rolling_hashes(rows, document, _BASE, hashes)):
        frequencies[_place_of(hashes[k] * np.uint64(_BASE))] += np.uint32(1)


@inlined_kernel
def _place_of(mixed: np.uint64) -> np.uint64:
    return np.uint64(mixed >> np.uint64(64 - _FREQUENCY_BITS))


@inlined_kernel
def _write_elements(
    rows: Rows, document: int, frequencies: npt.NDArray[np.uint32], elements: HashArray
) -> int:
    count = rolling_hashes(rows, document, _BASE, elements)
    for k in range(count):
        mixed = elements[k] * np.uint64(_BASE)
        frequency = min(frequencies[_place_of(mixed)], np.uint32(0x7FFFFF))
        elements[k] = (np.uint64(frequency) << np.uint64(40)) | (mixed & np.uint64(0xFFFFFFFFFF))
    return count


@inlined_kernel
def _append_distinct(
    elements: HashArray, wanted: int, owner: int, prefixes: _Prefixes, end: int
) -> int:
    """Append the first distinct elements, which are sorted, and return the new end."""
    last = end + wanted
    for k in range(len(elements)):
        if end >= last:
            break
        if k == 0 or elements[k] != elements[k - 1]:
            prefixes.elements[end], prefixes.owners[end] = elements[k], owner
            end += 1
    return end


@inlined_kernel
def _count_distinct(elements: HashArray) -> int:
    count = min(len(elements), 1)
    for k in range(1, len(elements)):
        count += elements[k] != elements[k - 1]
    return count


@kernel
def _pair(lists: _Lists, start: int, threshold: float) -> tuple[Int64Array, Int64Array, int]:
    """Return pairs of documents from start on, and the document at which the next call starts."""
    documents = len(lists.groups)
    size = max(CHUNK_PAIRS, documents)
    left = np.empty(size, np.int64)
    right = np.empty(size, np.int64)
    shared = np.zeros(documents, np.int64)
    count = 0
    document = start
    while document < documents and count + document <= size:
        end = _pair_document(lists, document, threshold, shared, left[count:])
        right[count : count + end] = document
        count += end
        document += 1
    return left[:count], right[:count], document


@inlined_kernel
def _pair_document(
    lists: _Lists, document: int, threshold: float, shared: Int64Array, left: Int64Array
) -> int:
    """Write the documents of earlier groups that pair with a document; return their number."""
    met = pairs = 0
    for i in range(lists.bounds[document], lists.bounds[document + 1]):
        entry = lists.by_owner[i]
        for k in range(lists.starts[entry], entry):
            other = lists.owners[k]
            if lists.groups[other] == lists.groups[document]:
                break  # all following entries of the list up to this entry belong to its group
            if shared[other] == 0:
                left[met] = other
                met += 1
            shared[other] += 1
    for i in range(met):
        other = left[i]
        if _is_promising(lists, document, other, shared[other], threshold):
            left[pairs] = other
            pairs += 1
        shared[other] = 0
    return pairs


@inlined_kernel
def _is_promising(lists: _Lists, document: int, other: int, shared: int, threshold: float) -> bool:
    """Say whether two documents may reach the threshold; shared: the elements of both prefixes."""
    count, other_count = lists.shingle_counts[document], lists.shingle_counts[other]
    others = max(lists.others[document], lists.others[other])
    common = max(1, min(count, other_count, shared + others))
    return similarity_of(common, count, other_count) >= threshold
