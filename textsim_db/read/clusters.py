"""Clusters of verified pairs, by three linkages, and what to remove so that one of each is left."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from textsim_db.cluster import complete_linkage as linkages
from textsim_db.cluster.keep_representatives import keep
from textsim_db.cluster.spanning_forest import Forest, Ids, Links
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.verify import Criterion
from textsim_db.db.store import Store
from textsim_db.read.pairs import PairFinder, snapshot
from textsim_db.results import Cluster, Duplicate
from textsim_db.settings import Linkage
from textsim_db.sketch import band_buckets

CHUNK_DOCUMENTS = 10_000

Rank = Callable[[str], Any]
Keys = dict[int, str]


def clusters(
    store: Store,
    criterion: Criterion,
    linkage: Linkage = Linkage.SINGLE,
    rank: Rank | None = None,
) -> Generator[Cluster, None, None]:
    """Yield the clusters of the pairs that pass a check by Jaccard similarity, the largest first.

    Memory grows with the documents in clusters, not with the pairs; with complete linkage, with
    the pairs.
    """
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store.dictionary, store.corpus, criterion)
        if linkage is Linkage.KEPT:
            made = _around_kept(_removed(finder, rank))
        elif linkage is Linkage.COMPLETE:
            made = [_named(finder, ids, weakest) for ids, weakest in _complete(finder)]
        else:
            made = [Cluster(tuple(sorted(k)), w) for k, w in _single(finder)]
    yield from sorted(made, key=lambda cluster: (-len(cluster.keys), cluster.keys))


def duplicates(
    store: Store,
    criterion: Criterion,
    linkage: Linkage = Linkage.KEPT,
    rank: Rank | None = None,
) -> Generator[Duplicate, None, None]:
    """Yield the documents to remove so that one of each cluster is left, with the one that is."""
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store.dictionary, store.corpus, criterion)
        if linkage is Linkage.KEPT:
            yield from _removed(finder, rank)
            return
        if linkage is Linkage.COMPLETE:
            found = [ids for ids, _ in _complete(finder)]
        else:
            members, labels, _ = _components(finder)
            found = _split(members, labels)
        for some in _batched(found):
            yield from _beside_first(finder, some, rank)


def _components(finder: PairFinder) -> tuple[Ids, Ids, npt.NDArray[np.float64]]:
    forest = Forest()
    for links in _between_copies(finder):
        forest.add(links)
    for links in finder.links(forest.labels):
        forest.add(links)
    return forest.components()


def _between_copies(finder: PairFinder) -> Iterator[Links]:
    for ids in finder.copies.classes:
        others = ids[1:]
        yield Links(np.full(len(others), ids[0]), others, np.ones(len(others)))


def _single(finder: PairFinder) -> Iterator[tuple[list[str], float]]:
    members, labels, weakest = _components(finder)
    keys = finder.keys(members)
    found: list[list[str]] = [[] for _ in weakest]
    for number, label in zip(members.tolist(), labels.tolist(), strict=True):
        found[label].append(keys[number])
    return zip(found, weakest.tolist(), strict=True)


def _complete(finder: PairFinder) -> Iterator[tuple[Ids, float]]:
    """Yield clusters with their weakest links; copies are where their representatives are."""
    empty = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    links = Links(*(np.concatenate(column) for column in zip(empty, *finder.links(), strict=True)))
    waiting = dict(finder.copies.of)
    for ids, weakest in linkages.complete(links):
        for number in ids.tolist():
            waiting.pop(number, None)
        yield np.concatenate([finder.copies.class_of(i) for i in ids.tolist()]), weakest
    for ids in waiting.values():
        yield ids, 1.0


def _named(finder: PairFinder, ids: Ids, weakest: float) -> Cluster:
    return Cluster(tuple(sorted(finder.keys(ids).values())), weakest)


def _removed(finder: PairFinder, rank: Rank | None) -> Iterator[Duplicate]:
    """Yield who is removed by going through each component in order of rank.

    A component at a time, or several small ones; of a large one, some documents and what is kept of
    those before them.
    """
    members, labels, _ = _components(finder)
    for some in _batched(_split(members, labels)):
        keys = finder.keys(np.concatenate(some))
        kept = np.empty(0, np.int64)
        ordered = _ranked(np.concatenate(some), keys, rank)
        for chosen in _parts(finder, ordered):
            ids = np.concatenate((kept, chosen))
            kept_by, similarity = _kept_by(finder, ids, len(kept))
            gone = kept_by != np.arange(len(ids))
            for x, y, value in zip(
                ids[gone].tolist(),
                ids[kept_by[gone]].tolist(),
                similarity[gone].tolist(),
                strict=True,
            ):
                yield Duplicate(keys[x], keys[y], value)
            kept = ids[~gone]


def _kept_by(finder: PairFinder, ids: Ids, settled: int) -> tuple[Ids, npt.NDArray[np.float64]]:
    documents = finder.documents(ids)
    config = finder.corpus.config
    signatures = documents.signatures(np.arange(len(ids)), config.num_hashes)
    return keep(
        documents.tokens,
        documents.offsets,
        documents.shingle_counts,
        config.shingle.n,
        band_buckets.buckets(signatures, config.banding),
        settled,
        finder.threshold,
    )


def _beside_first(finder: PairFinder, found: list[Ids], rank: Rank | None) -> Iterator[Duplicate]:
    """Yield all but the first of each cluster, with their similarity to it."""
    keys = finder.keys(np.concatenate(found))
    for cluster in found:
        ids = _ranked(cluster, keys, rank)
        for others in _parts(finder, ids[1:]):
            some = np.concatenate((ids[:1], others))
            documents = finder.documents(some)
            values = jaccard_pairs(
                documents.tokens,
                documents.offsets,
                documents.shingle_counts,
                np.zeros(len(some) - 1, np.int64),
                np.arange(1, len(some)),
                finder.corpus.config.shingle.n,
            )
            for number, value in zip(some[1:].tolist(), values.tolist(), strict=True):
                yield Duplicate(keys[number], keys[int(ids[0])], value)


def _parts(finder: PairFinder, ids: Ids) -> Iterator[Ids]:
    """Yield documents in their order, as many at a time as memory should hold."""
    for start in range(0, len(ids), CHUNK_DOCUMENTS):
        yield from finder.parts(ids[start : start + CHUNK_DOCUMENTS])


def _around_kept(removed: Iterator[Duplicate]) -> list[Cluster]:
    found: dict[str, list[Duplicate]] = {}
    for duplicate in removed:
        found.setdefault(duplicate.kept, []).append(duplicate)
    return [
        Cluster(
            tuple(sorted([kept, *(d.key for d in group)])), min(d.similarity for d in group), kept
        )
        for kept, group in found.items()
    ]


def _split(members: Ids, labels: Ids) -> list[Ids]:
    order = np.argsort(labels, kind="stable")
    bounds = np.flatnonzero(np.diff(labels[order], prepend=-1, append=-1))
    return [members[order[start:end]] for start, end in pairwise(bounds.tolist())]


def _batched(found: list[Ids]) -> Iterator[list[Ids]]:
    """Yield groups of documents together up to some number, or one large group alone."""
    some: list[Ids] = []
    count = 0
    for ids in found:
        if some and count + len(ids) > CHUNK_DOCUMENTS:
            yield some
            some, count = [], 0
        some.append(ids)
        count += len(ids)
    if some:
        yield some


def _ranked(ids: Ids, keys: Keys, rank: Rank | None) -> Ids:
    def place(number: int) -> Any:
        key = keys[number]
        return key if rank is None else (rank(key), key)

    return np.array(sorted(ids.tolist(), key=place), np.int64)
