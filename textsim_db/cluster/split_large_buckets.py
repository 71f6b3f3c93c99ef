"""Verified links among many documents of one bucket, without comparing all its pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.spanning_forest import ComponentsOf, Ids, Links, join, roots
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import (
    BucketsOfDocuments,
    Members,
    documents_of,
    left_of,
    pack,
    right_of,
)
from textsim_db.compare.pair_values import Rows, jaccard_pairs
from textsim_db.compare.promising_pairs import promising_pairs

LARGE_BUCKET = 256
"""A bucket with more documents than this, after copies are folded, is not listed pair by pair."""
MOST_MET = 1_000_000_000
"""In an exact corpus larger buckets are listed too, until their pairs are more than this.

Counting a pair of a bucket takes a nanosecond, and few pairs share enough buckets to be candidates.
"""
LISTED_PAIRS = 200_000
"""The pairs of a large bucket that are listed at once, for a measure that no short cut serves."""
FIRST_PAIRS = 8_000
"""The pairs of crowds that are verified before joined documents are looked for; then twice as many."""
SAME = 0.5
"""The share of a bucket's documents that another bucket has if both are compared together."""
_MIXER = 0x9E3779B1
MAX_STARS = 64
"""Documents that are each compared with all other documents, before the promising pairs are."""
_POOR_STARS = 3
"""Stop these comparisons after this many that joined few documents."""
_RICH = 0.02
"""The share of documents that such a comparison has to join to count as useful."""


class LargeBuckets:
    """Buckets that are not listed pair by pair, numbered from 0."""

    def __init__(self, members: Members) -> None:
        bounds = pairwise(members.offsets.tolist())
        self.ids: list[Ids] = [np.unique(members.ids[a:b]).astype(np.int64) for a, b in bounds]
        """The documents of each bucket, sorted."""
        self._buckets = BucketsOfDocuments(members)

    def first_shared(self, pairs: Int64Array) -> Int64Array:
        """Return for each packed pair the number of the first bucket with both documents, or -1."""
        if not self.ids:
            return np.full(len(pairs), -1, np.int64)
        return self._buckets.least_shared(pairs)

    def documents_of(self, numbers: list[int]) -> Ids:
        return np.unique(np.concatenate([self.ids[number] for number in numbers]))

    def pairs_of(self, number: int) -> Iterator[Int64Array]:
        """Yield the packed pairs of a bucket, except pairs that an earlier bucket has too."""
        ids = self.ids[number]
        rows = max(1, LISTED_PAIRS // len(ids))
        for start in range(0, len(ids), rows):
            places = np.arange(start, min(start + rows, len(ids)))
            left, right = np.nonzero(places[:, np.newaxis] < np.arange(len(ids)))
            pairs = pack(ids[places[left]], ids[right])
            yield pairs[self.first_shared(pairs) == number]

    def groups(self) -> list[list[int]]:
        return groups_of(self.ids)


def split_large(members: Members, is_exact: bool) -> tuple[Members, LargeBuckets]:
    """Return the buckets that are listed pair by pair, and the large buckets."""
    is_large = members.sizes > _largest_listed(members.sizes, is_exact)
    listed = members.take(~is_large & (members.sizes > 1))
    return listed, LargeBuckets(members.take(is_large))


def _largest_listed(sizes: Int64Array, is_exact: bool) -> int:
    """Return the size of the largest bucket that is listed pair by pair; sizes: (buckets,)."""
    if not is_exact:
        return LARGE_BUCKET
    sizes = np.sort(sizes)
    above = np.flatnonzero(np.cumsum(sizes * sizes // 2) > MOST_MET)
    largest = int(sizes[above[0]]) - 1 if len(above) else int(sizes.max(initial=0))
    return max(LARGE_BUCKET, largest)


def joining_pairs(
    pairs: Int64Array,
    verified: Callable[[Int64Array], Iterator[Links]],
    components_of: ComponentsOf,
) -> Iterator[Links]:
    """Yield the verified pairs of a list, and of crowds only links that join components.

    pairs: packed and sorted. A document with many pairs is in a crowd, such as filled-in templates.
    The first pairs of a crowd join most of it, so most of its pairs need not be verified.
    """
    _, places, counts = np.unique(left_of(pairs), return_inverse=True, return_counts=True)
    is_crowded = counts[places] > LARGE_BUCKET
    yield from verified(pairs[~is_crowded])
    pairs, size = pairs[is_crowded], FIRST_PAIRS
    while len(pairs):
        yield from verified(pairs[:size])
        pairs = _apart(pairs[size:], components_of)
        size *= 2


def _apart(pairs: Int64Array, components_of: ComponentsOf) -> Int64Array:
    """Return the pairs of documents of different components."""
    ids = documents_of(pairs)
    components = components_of(ids)
    left, right = (components[np.searchsorted(ids, side(pairs))] for side in (left_of, right_of))
    apart: Int64Array = pairs[left != right]
    return apart


def groups_of(buckets: list[Ids]) -> list[list[int]]:
    """Group the numbers of buckets that have mostly the same documents.

    Documents that share boilerplate share many buckets, and comparing them once is enough. Buckets with
    mostly the same ids very likely have the same smallest hash, so they are neighbours in its order.
    """
    smallest = [int((ids.astype(np.uint32) * np.uint32(_MIXER)).min()) for ids in buckets]
    groups: list[list[int]] = []
    for number in sorted(range(len(buckets)), key=lambda number: (smallest[number], number)):
        ids = buckets[number]
        if groups and np.isin(ids, buckets[groups[-1][0]]).sum() > SAME * len(ids):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def all_links(rows: Rows, criterion: Criterion) -> Iterator[Links]:
    """Yield every pair of documents, as numbers, that match."""
    for left, right in promising_pairs(
        rows, np.arange(len(rows.shingle_counts)), criterion.threshold
    ):
        yield _verified(rows, left, right, criterion)


def joining_links(rows: Rows, groups: Int64Array, criterion: Criterion) -> Iterator[Links]:
    """Yield links, as numbers of documents, that join the same groups as all links would.

    groups: (documents,), the groups that are joined already. First a few documents are compared with
    all documents that they are not joined with. This joins most of a bucket whose documents differ
    little, such as filled-in templates. Then only promising pairs across groups are compared.
    """
    _, parents = np.unique(groups, return_inverse=True)
    firsts = np.full(parents.max(initial=-1) + 1, len(groups), np.int64)
    np.minimum.at(firsts, parents, np.arange(len(groups)))
    parents = firsts[parents]
    for links in _stars(rows, parents, criterion):
        yield links
    for left, right in promising_pairs(rows, roots(parents), criterion.threshold):
        apart = parents[left] != parents[right]
        links = _verified(rows, left[apart], right[apart], criterion)
        join(parents, links.left, links.right)
        parents = roots(parents)
        yield links


def _stars(rows: Rows, parents: Int64Array, criterion: Criterion) -> Iterator[Links]:
    """Yield the links of a few documents to all documents outside their groups; update parents."""
    centres: list[int] = []
    poor = 0
    while len(centres) < MAX_STARS and poor < _POOR_STARS:
        parents[:] = roots(parents)
        left_over = np.flatnonzero(~np.isin(parents, parents[centres]))
        if not len(left_over):
            return
        centre = int(left_over[0])
        centres.append(centre)
        others = np.flatnonzero(parents != parents[centre])
        links = _verified(rows, np.full(len(others), centre), others, criterion)
        join(parents, links.left, links.right)
        poor += len(links.left) < _RICH * len(others)
        yield links


def _verified(rows: Rows, left: Int64Array, right: Int64Array, criterion: Criterion) -> Links:
    order = np.argsort(left, kind="stable")
    left, right = left[order], right[order]
    similarity = jaccard_pairs(rows, left, right)
    return Links(left, right, similarity).take(criterion.accepted(similarity))
