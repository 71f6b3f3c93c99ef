"""Clusters of verified pairs by three linkages, and the documents to remove from each cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from textsim_db.cluster import complete_linkage
from textsim_db.cluster.keep_representatives import Kept, keep_representatives
from textsim_db.cluster.spanning_forest import Forest, Ids, Links
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.verify import Criterion
from textsim_db.db.store import Store
from textsim_db.read.pairs import PairFinder
from textsim_db.read.snapshot import snapshot
from textsim_db.results import Cluster, Duplicate
from textsim_db.settings import Linkage
from textsim_db.sketch.sketches import buckets_of

DOCUMENTS_AT_ONCE = 10_000

Rank = Callable[[str], Any]
"""Returns the rank of a key; the document with the lowest rank of a cluster is kept."""
Similarities = npt.NDArray[np.float64]


def clusters(
    store: Store, criterion: Criterion, linkage: Linkage = Linkage.SINGLE, rank: Rank | None = None
) -> Generator[Cluster, None, None]:
    """Yield the clusters of the pairs that pass a criterion of Jaccard similarity, the largest first.

    Memory grows with the number of documents in clusters; with complete linkage it grows with the
    number of pairs.
    """
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store, criterion)
        if linkage is Linkage.KEPT:
            result = _clusters_of_removals(_removals_by_rank(finder, rank))
        elif linkage is Linkage.COMPLETE:
            result = _complete_clusters(finder)
        else:
            result = _single_clusters(finder)
    yield from sorted(result, key=lambda cluster: (-len(cluster.keys), cluster.keys))


def duplicates(
    store: Store, criterion: Criterion, linkage: Linkage = Linkage.KEPT, rank: Rank | None = None
) -> Generator[Duplicate, None, None]:
    """Yield the documents to remove so that each cluster keeps one, each with the kept document."""
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store, criterion)
        if linkage is Linkage.KEPT:
            yield from _removals_by_rank(finder, rank)
            return
        if linkage is Linkage.COMPLETE:
            groups = [ids for ids, _ in _complete_groups(finder)]
        else:
            groups = _components(finder).groups()
        for batch in _batches(groups):
            yield from _all_but_first(finder, batch, rank)


class _Components:
    """The connected components of a graph of links.

    members, labels: int64 of shape (members,), the documents and the numbers of their components;
    weakest: float64 of shape (components,), the weakest link that connects each component.
    """

    def __init__(self, members: Ids, labels: Ids, weakest: Similarities) -> None:
        self.members = members
        self.labels = labels
        self.weakest = weakest

    def groups(self) -> list[Ids]:
        """Return the documents of each component."""
        order = np.argsort(self.labels, kind="stable")
        bounds = np.flatnonzero(np.diff(self.labels[order], prepend=-1, append=-1))
        return [self.members[order[start:end]] for start, end in pairwise(bounds.tolist())]


def _components(finder: PairFinder) -> _Components:
    forest = Forest()
    for ids in finder.copies.classes:
        forest.add(Links(np.full(len(ids) - 1, ids[0]), ids[1:], np.ones(len(ids) - 1)))
    for links in finder.links(forest.labels):
        forest.add(links)
    return _Components(*forest.components())


def _single_clusters(finder: PairFinder) -> list[Cluster]:
    components = _components(finder)
    keys = finder.cache.keys(components.members)
    return [
        Cluster(_sorted_keys(ids, keys), weakest)
        for ids, weakest in zip(components.groups(), components.weakest.tolist(), strict=True)
    ]


def _complete_clusters(finder: PairFinder) -> list[Cluster]:
    return [
        Cluster(_sorted_keys(ids, finder.cache.keys(ids)), weakest)
        for ids, weakest in _complete_groups(finder)
    ]


def _sorted_keys(ids: Ids, keys: dict[int, str]) -> tuple[str, ...]:
    return tuple(sorted(keys[number] for number in ids.tolist()))


def _complete_groups(finder: PairFinder) -> Iterator[tuple[Ids, float]]:
    """Yield clusters with their weakest links; copies join the cluster of their representative."""
    empty = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    links = Links(*(np.concatenate(column) for column in zip(empty, *finder.links(), strict=True)))
    unlinked = dict(finder.copies.by_representative)
    ids, links = _numbered_by_key(finder, links)
    for numbers, weakest in complete_linkage.complete(links):
        representatives = ids[numbers].tolist()
        for number in representatives:
            unlinked.pop(number, None)
        yield np.concatenate([finder.copies.class_of(i) for i in representatives]), weakest
    for copies in unlinked.values():
        yield copies, 1.0


def _numbered_by_key(finder: PairFinder, links: Links) -> tuple[Ids, Links]:
    """Return documents in the order of the lowest keys of their copies, and the links between them.

    So ties do not depend on the ids, which change with a rebuild.
    """
    ids, ends = np.unique(np.concatenate(links[:2]), return_inverse=True)
    classes = [finder.copies.class_of(number) for number in ids.tolist()]
    keys = finder.cache.keys(np.concatenate([np.empty(0, np.int64), *classes]))
    lowest = [min(keys[number] for number in copies.tolist()) for copies in classes]
    order = np.array(sorted(range(len(ids)), key=lowest.__getitem__), np.int64)
    places = np.empty(len(ids), np.int64)
    places[order] = np.arange(len(ids))
    left, right = places[ends[: len(links.left)]], places[ends[len(links.left) :]]
    return ids[order], Links(left, right, links.similarity)


def _removals_by_rank(finder: PairFinder, rank: Rank | None) -> Iterator[Duplicate]:
    """Yield the documents that are similar to a kept document of a better rank.

    Small components are read together, a large component in parts. Each part is compared with the
    documents that are kept of the parts before it.
    """
    for batch in _batches(_components(finder).groups()):
        members = np.concatenate(batch)
        keys = finder.cache.keys(members)
        kept = np.empty(0, np.int64)
        for part in _parts(finder, _ranked(members, keys, rank)):
            ids = np.concatenate((kept, part))
            kept_by, similarity = _kept_by(finder, ids, len(kept))
            is_removed = kept_by != np.arange(len(ids))
            removed = (ids[is_removed], ids[kept_by[is_removed]], similarity[is_removed])
            for number, keeper, value in zip(*(c.tolist() for c in removed), strict=True):
                yield Duplicate(keys[number], keys[keeper], value)
            kept = ids[~is_removed]


def _kept_by(finder: PairFinder, ids: Ids, settled: int) -> Kept:
    documents = finder.cache.documents(ids)
    buckets = buckets_of(finder.cache.signatures(ids), finder.config)
    return keep_representatives(documents.rows(), buckets, settled, finder.criterion.threshold)


def _all_but_first(finder: PairFinder, groups: list[Ids], rank: Rank | None) -> Iterator[Duplicate]:
    """Yield each document of a cluster except the first, with its similarity to the first."""
    keys = finder.cache.keys(np.concatenate(groups))
    for group in groups:
        ids = _ranked(group, keys, rank)
        for part in _parts(finder, ids[1:]):
            rows = finder.cache.documents(np.concatenate((ids[:1], part))).rows()
            first, others = np.zeros(len(part), np.int64), np.arange(1, len(part) + 1)
            values = jaccard_pairs(rows, first, others)
            for number, value in zip(part.tolist(), values.tolist(), strict=True):
                yield Duplicate(keys[number], keys[int(ids[0])], value)


def _clusters_of_removals(removals: Iterator[Duplicate]) -> list[Cluster]:
    by_kept: dict[str, list[Duplicate]] = {}
    for removal in removals:
        by_kept.setdefault(removal.kept, []).append(removal)
    return [
        Cluster(
            tuple(sorted([kept, *(removal.key for removal in group)])),
            min(removal.similarity for removal in group),
            kept,
        )
        for kept, group in by_kept.items()
    ]


def _parts(finder: PairFinder, ids: Ids) -> Iterator[Ids]:
    """Yield documents in their order, in parts that fit into memory."""
    for start in range(0, len(ids), DOCUMENTS_AT_ONCE):
        yield from finder.cache.parts(ids[start : start + DOCUMENTS_AT_ONCE])


def _batches(groups: list[Ids]) -> Iterator[list[Ids]]:
    """Yield groups together, up to DOCUMENTS_AT_ONCE documents; a larger group comes alone."""
    batch: list[Ids] = []
    count = 0
    for ids in groups:
        if batch and count + len(ids) > DOCUMENTS_AT_ONCE:
            yield batch
            batch, count = [], 0
        batch.append(ids)
        count += len(ids)
    if batch:
        yield batch


def _ranked(ids: Ids, keys: dict[int, str], rank: Rank | None) -> Ids:
    def place(number: int) -> Any:
        key = keys[number]
        return key if rank is None else (rank(key), key)

    return np.array(sorted(ids.tolist(), key=place), np.int64)
