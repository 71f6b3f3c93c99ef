"""Clusters of the verified pairs of a corpus, and the documents to remove from each cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.verify import Criterion
from textsim_db.db.store import Store
from textsim_db.frames.arrow_results import ResultColumns, columns_of
from textsim_db.read.pairs import StoredHost
from textsim_db.read.snapshot import snapshot
from textsim_db.results import Cluster
from textsim_db.settings import Linkage

Rank = Callable[[str], Any]
"""Returns the rank of a key; the document with the lowest rank of a cluster is kept."""


def clusters(
    store: Store, criterion: Criterion, linkage: Linkage = Linkage.SINGLE, rank: Rank | None = None
) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the clusters of the pairs that pass a criterion, the largest cluster first.

    The criterion is one of Jaccard similarity.
    Memory grows with the number of documents in clusters; with complete linkage it grows with the
    number of pairs.
    """
    with snapshot(store.engine) as connection:
        corpus = StoredHost(connection, store, criterion)
        groups = linkages.groups(Join(corpus, criterion), linkage, _ranking(corpus, rank))
        found = list(groups)
        keys = corpus.cache.keys(
            np.concatenate([np.empty(0, np.int64), *(group.ids for group in found)])
        )
    result = [
        Cluster(
            tuple(sorted(keys[number] for number in group.ids.tolist())),
            group.weakest,
            None if group.kept is None else keys[group.kept],
        )
        for group in found
    ]
    result.sort(key=lambda cluster: (-len(cluster.keys), cluster.keys))
    yield columns_of(Cluster, result)


def duplicates(
    store: Store, criterion: Criterion, linkage: Linkage = Linkage.KEPT, rank: Rank | None = None
) -> Generator[ResultColumns, None, None]:
    """Yield columns: the documents to remove so that each cluster keeps one, with the kept documents."""
    with snapshot(store.engine) as connection:
        corpus = StoredHost(connection, store, criterion)
        join = Join(corpus, criterion)
        for links in linkages.removals(join, linkage, _ranking(corpus, rank)):
            keys = corpus.cache.keys(np.unique(np.concatenate((links.left, links.right))))
            removed, kept, similarity = (column.tolist() for column in links)
            yield [keys[each] for each in removed], [keys[each] for each in kept], similarity


def _ranking(corpus: StoredHost, rank: Rank | None) -> linkages.Ranked:
    """Return a function that sorts documents by the ranks of their keys, and then by their keys."""

    def ranked(ids: Ids) -> Ids:
        keys = corpus.cache.keys(ids)

        def place(number: int) -> Any:
            key = keys[number]
            return key if rank is None else (rank(key), key)

        return np.array(sorted(ids.tolist(), key=place), np.int64)

    return ranked
