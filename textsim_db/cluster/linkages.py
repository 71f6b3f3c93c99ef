"""Clusters of a join by its linkage, and the documents to remove so that each cluster keeps one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import FloatArray, Int64Array
from textsim_db.cluster.join import Join
from textsim_db.cluster.kept_linkage import Kept, keep_linked, keep_representatives
from textsim_db.cluster.spanning_forest import Forest, Ids, Links, join, joined_links, roots
from textsim_db.compare.packed_pairs import is_among, pack
from textsim_db.compare.pair_values import take
from textsim_db.results import Cluster
from textsim_db.results.rows import AnyKey
from textsim_db.settings.named_values import Linkage
from textsim_db.sketch.ragged import Ragged

_WEIGHT_OF_ONE = np.float64(1).view(np.uint64) | np.uint64(1)


def complete(links: Links) -> list[tuple[Ids, float]]:
    """Return clusters in which every two members are linked, with their weakest link.

    Links are added from the most similar pair downwards; ties go to the lowest numbers. Two clusters
    merge when all pairs of their members are linked. Copies merge before all others, and links between
    the same two sets of copies are added together, so the result does not depend on how many copies a
    document has. Defays, "An efficient algorithm for a complete link method", 1977.
    """
    ids, ends = np.unique(np.concatenate(links[:2]), return_inverse=True)
    left, right = np.sort(ends.reshape(2, -1), axis=0)
    sorted_links = Links(left, right, links.similarity)
    sets = np.sort(_lowest_copies(len(ids), sorted_links)[np.stack((left, right))], axis=0)
    order = np.lexsort((right, left, sets[1], sets[0], -links.similarity, sets[0] != sets[1]))
    clusters = _Clusters()
    columns = (column[order].tolist() for column in (left, right, links.similarity))
    for a, b, similarity in zip(*columns, strict=True):
        clusters.link(a, b, similarity)
    return [(ids[np.sort(members)], weakest) for members, weakest in clusters.all()]


def _lowest_copies(count: int, links: Links) -> Int64Array:
    """Return for each document the lowest of its copies: similarity is 1, and the other links are equal.

    A judgement can cut a link between documents with similarity 1, so they need not be copies.
    """
    weights = np.random.default_rng(0).integers(2**63, size=count, dtype=np.uint64)
    # Each document is linked to itself with 1. Other links with an equal sum have a chance of 1 in 2^63.
    sums = weights * _WEIGHT_OF_ONE
    of_links = links.similarity.view(np.uint64) | np.uint64(1)
    np.add.at(sums, links.left, weights[links.right] * of_links)
    np.add.at(sums, links.right, weights[links.left] * of_links)
    parents = np.arange(count)
    is_equal = (links.similarity == 1) & (sums[links.left] == sums[links.right])
    join(parents, links.left[is_equal], links.right[is_equal])
    return roots(parents)


class _Clusters:
    """Clusters that grow with each link; the number of a cluster is the number of one member."""

    def __init__(self) -> None:
        self._cluster_of: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        self._weakest: dict[int, float] = {}
        self._links: dict[int, dict[int, int]] = {}
        """The number of links between two clusters, by the number of each."""

    def link(self, a: int, b: int, similarity: float) -> None:
        x, y = self._add(a), self._add(b)
        if x == y:
            return
        links = self._links[x].get(y, 0) + 1
        if links == len(self._members[x]) * len(self._members[y]):
            self._merge(x, y, similarity)
        else:
            self._links[x][y] = self._links[y][x] = links

    def _add(self, node: int) -> int:
        """Add a node, if it is new, as a cluster of its own, and return its cluster."""
        if node not in self._cluster_of:
            self._cluster_of[node] = node
            self._members[node], self._links[node] = [node], {}
        return self._cluster_of[node]

    def all(self) -> list[tuple[Ids, float]]:
        return [(np.array(self._members[x]), weakest) for x, weakest in self._weakest.items()]

    def _merge(self, x: int, y: int, similarity: float) -> None:
        if self._size(x) < self._size(y):
            x, y = y, x
        for node in self._members[y]:
            self._cluster_of[node] = x
        self._members[x] += self._members.pop(y)
        self._weakest.pop(y, None)
        self._weakest[x] = similarity
        self._links[x].pop(y, None)
        for other, links in self._links.pop(y).items():
            if other != x:
                del self._links[other][y]
                total = self._links[x].get(other, 0) + links
                self._links[x][other] = self._links[other][x] = total

    def _size(self, x: int) -> int:
        return len(self._members[x]) + len(self._links[x])


MOST_RANKED = 10_000
"""The documents of several clusters that are ranked together; a larger cluster comes alone."""

Ranked = Callable[[Ids], Ids]
"""Sorts documents by rank, the document to keep first."""


class Group(NamedTuple):
    ids: Ids
    weakest: float
    """The weakest link that holds the cluster together."""
    kept: int | None = None
    """With linkage "kept", the document that is kept."""

    def with_keys(self, key_of: Callable[[int], AnyKey]) -> Cluster[AnyKey]:
        keys = tuple(sorted(map(key_of, self.ids.tolist())))
        return Cluster(keys, self.weakest, None if self.kept is None else key_of(self.kept))


def groups(join: Join, linkage: Linkage, ranked: Ranked) -> Iterator[Group]:
    """Yield the clusters, in any order."""
    if linkage is Linkage.COMPLETE:
        yield from _complete(join)
    elif linkage is Linkage.SINGLE:
        yield from _connected(*components(join))
    else:
        yield from groups_of_removals(joined_links(removals(join, linkage, ranked)))


def groups_of_links(
    links: Links, linkage: Linkage, apart: Mapping[int, Set[int]] | None = None
) -> Iterator[Group]:
    """Yield the clusters of links, each given once, in any order; the lowest number ranks first."""
    if linkage is Linkage.COMPLETE:
        yield from (Group(ids, weakest) for ids, weakest in complete(links))
    elif linkage is Linkage.SINGLE:
        forest = Forest()
        forest.add(links)
        yield from _connected(*_members(forest))
    else:
        yield from groups_of_removals(keep_linked(links, apart or {}))


def removals(join: Join, linkage: Linkage, ranked: Ranked) -> Iterator[Links]:
    """Yield the documents to remove, left, and the documents that are kept instead, right."""
    if linkage is Linkage.KEPT:
        all_ids = join.host.all_ids
        connected = [all_ids] if all_ids is not None else components(join)[0].arrays()
        yield from similar_to_kept(join, connected, ranked)
    else:
        yield from all_but_first(join, groups(join, linkage, ranked), ranked)


def similar_to_kept(join: Join, components: list[Ids], ranked: Ranked) -> Iterator[Links]:
    """Yield the documents that are similar to a kept document of a better rank, and this document.

    A large component is read in batches. Each batch is compared with the documents that are kept of the
    batches before it.
    """
    for group in _batches(components):
        kept = np.empty(0, np.int64)
        for batch in join.host.batches(ranked(np.concatenate(group))):
            compared = np.concatenate((kept, batch))
            kept_by, similarity = _keep(join, compared, len(kept))
            is_removed = kept_by != np.arange(len(compared))
            removed, keepers = compared[is_removed], compared[kept_by[is_removed]]
            yield Links(removed, keepers, similarity[is_removed])
            kept = compared[~is_removed]


def best_settled(join: Join, settled: Ids, others: Ids) -> Links:
    """Return the most similar settled document, right, of each other document that matches one, left.

    The settled documents are not compared with each other, and neither are the others. Ties go to the
    settled document that comes first.
    """
    _, firsts = np.unique(join.host.copies.representatives_of(settled), return_index=True)
    ids = np.concatenate((settled[np.sort(firsts)], others))
    never_kept = np.zeros(ids.max(initial=-1) + 1, np.bool_)
    never_kept[others] = True
    kept_by, similarity = _keep(Join(join.host, join.criterion, never_kept), ids, len(firsts))
    is_matched = (kept_by < len(firsts)) & (np.arange(len(ids)) >= len(firsts))
    return Links(ids[is_matched], ids[kept_by[is_matched]], similarity[is_matched])


def all_but_first(join: Join, groups: Iterable[Group], ranked: Ranked) -> Iterator[Links]:
    """Yield each document of a cluster except the first, left, with its similarity to the first."""
    for batch in _batches([group.ids for group in groups]):
        every = np.concatenate(batch)
        group_of, by_id = np.repeat(np.arange(len(batch)), [*map(len, batch)]), np.argsort(every)
        ids = ranked(every)
        group_of = group_of[by_id[np.searchsorted(every, ids, sorter=by_id)]]
        order = np.argsort(group_of, kind="stable")
        ids, group_of = ids[order], group_of[order]
        firsts = ids[np.searchsorted(group_of, group_of)]
        is_removed = ids != firsts
        for first, removed, values in join.similarities(np.sort(pack(firsts, ids)[is_removed])):
            yield Links(removed, first, values)


def components(join: Join) -> tuple[Ragged, FloatArray]:
    forest = Forest()
    forest.add(join.host.copies.links())
    for links in join.links(forest.labels):
        forest.add(links)
    return _members(forest)


def _members(forest: Forest) -> tuple[Ragged, FloatArray]:
    members, labels, weakest = forest.components()
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(len(weakest) + 1))
    return Ragged(members[order], bounds), weakest


def _connected(components: Ragged, weakest: FloatArray) -> Iterator[Group]:
    for number in range(len(weakest)):
        yield Group(components.of(number), float(weakest[number]))


def _complete(join: Join) -> Iterator[Group]:
    """Yield clusters in which every two documents are linked; copies join their representative."""
    copies, links = join.host.copies, joined_links(join.links())
    ids = join.host.in_key_order(np.unique(np.concatenate((links.left, links.right))))
    by_id = np.argsort(ids)
    left, right = (by_id[np.searchsorted(ids, s, sorter=by_id)] for s in (links.left, links.right))
    linked = np.zeros(len(copies.representatives), np.bool_)
    for numbers, weakest in complete(Links(left, right, links.similarity)):
        linked |= is_among(copies.representatives, np.sort(ids[numbers]))
        yield Group(copies.of(ids[numbers]).values, weakest)
    for number in np.flatnonzero(~linked).tolist():
        yield Group(copies.classes.of(number), 1.0)


def _keep(join: Join, ids: Ids, settled: int) -> Kept:
    """Return which document is kept instead of each document; ids: the best rank first.

    A copy of a kept document is removed. Copies of a document that is not kept are
    compared, because a later document may be kept that is more similar.
    """
    texts = join.host.copies.representatives_of(ids)
    _, firsts, numbers = np.unique(texts, return_index=True, return_inverse=True)
    chosen = np.sort(firsts)
    rows, buckets = join.host.rows(texts[chosen]), join.host.buckets(texts[chosen])
    never_kept = np.zeros(len(ids), np.bool_) if join.never_kept is None else join.never_kept[ids]
    keep = partial(
        keep_representatives,
        settled=settled,
        threshold=join.criterion.threshold,
        prefix_threshold=join.host.config.prefix_threshold,
    )
    kept = keep(rows, buckets, never_kept=never_kept[chosen])
    is_kept = np.zeros(len(ids), np.bool_)
    is_kept[chosen] = (kept.kept_by == np.arange(len(chosen))) & ~never_kept[chosen]
    is_first = np.zeros(len(ids), np.bool_)
    is_first[chosen] = True
    compared = np.flatnonzero(is_first | ~is_kept[firsts][numbers])
    if len(compared) > len(chosen):
        copied = np.searchsorted(chosen, firsts[numbers][compared])
        chosen = compared
        kept = keep(take(rows, copied), buckets.take(copied), never_kept=never_kept[chosen])
    kept_by, similarity = firsts[numbers], np.ones(len(ids))
    kept_by[chosen], similarity[chosen] = chosen[kept.kept_by], kept.similarity
    return Kept(kept_by, similarity)


def groups_of_removals(links: Links) -> Iterator[Group]:
    """Yield the clusters of links from each document to remove, left, to the kept document, right."""
    order = np.argsort(links.right, kind="stable")
    removed, kept, values = (column[order] for column in links)
    bounds = np.flatnonzero(np.diff(kept, prepend=-1, append=-1))
    for start, end in pairwise(bounds.tolist()):
        ids = np.append(removed[start:end], kept[start])
        yield Group(ids, float(values[start:end].min()), int(kept[start]))


def _batches(groups: list[Ids]) -> Iterator[list[Ids]]:
    """Yield groups together, up to MOST_RANKED documents; a larger group comes alone."""
    batch: list[Ids] = []
    count = 0
    for ids in groups:
        if batch and count + len(ids) > MOST_RANKED:
            yield batch
            batch, count = [], 0
        batch.append(ids)
        count += len(ids)
    if batch:
        yield batch
