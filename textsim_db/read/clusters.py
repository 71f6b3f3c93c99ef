"""Clusters of the verified pairs of a corpus, and the documents to remove from each cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, LiteralString, NamedTuple

import numpy as np

from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.judged_groups import JudgedPairs, judged_groups
from textsim_db.cluster.linkages import Group, Ranked
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.packed_pairs import pack
from textsim_db.compare.verify import Criterion
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.frames.arrow_results import ResultColumns, columns_of
from textsim_db.read import inspect_clusters, statements
from textsim_db.read.pairs import StoredHost
from textsim_db.read.snapshot import fetch, snapshot
from textsim_db.results import Cluster, InspectedCluster
from textsim_db.settings import Linkage
from textsim_db.text.array_types import Int64Array

Rank = Callable[[str], Any]
"""Returns the rank of a key; the document with the lowest rank of a cluster is kept."""


class ClusterRules(NamedTuple):
    """How pairs make clusters."""

    linkage: Linkage
    rank: Rank | None = None
    """Decides which document of a cluster is kept; None: the lowest key."""
    judgements: bool = False
    """Whether the judgements of the corpus are obeyed."""


def clusters(
    store: Store, criterion: Criterion, rules: ClusterRules
) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the clusters of the pairs that pass a criterion, the largest cluster first.

    The criterion is one of Jaccard similarity.
    Memory grows with the number of documents in clusters; with complete linkage it grows with the
    number of pairs. With judgements it also grows with the pairs of the connected documents of which
    one was judged.
    """
    with snapshot(store.engine) as connection:
        result = [cluster for cluster, _ in _find(connection, store, criterion, rules)]
    yield columns_of(Cluster, result)


def inspected(
    store: Store, criterion: Criterion, rules: ClusterRules, fewest: int
) -> list[InspectedCluster]:
    """Return the clusters of at least `fewest` documents, each with an inspection."""
    with snapshot(store.engine) as connection:
        clusters = _find(connection, store, criterion, rules)
        large = [(cluster, group) for cluster, group in clusters if len(cluster.keys) >= fewest]
        groups = [group for _, group in large]
        inspections = inspect_clusters.inspect(connection, store, groups, criterion.threshold)
        return [
            InspectedCluster(cluster, inspection)
            for (cluster, _), inspection in zip(large, inspections, strict=True)
        ]


def _find(
    connection: Connection, store: Store, criterion: Criterion, rules: ClusterRules
) -> list[tuple[Cluster[str], Group]]:
    """Return the clusters, the largest first."""
    corpus = StoredHost(connection, store, criterion)
    if rules.judgements:
        groups = list(_judged_groups(connection, store, corpus, criterion, rules))
    else:
        ranked = _ranking(corpus, rules.rank)
        groups = list(linkages.groups(Join(corpus, criterion), rules.linkage, ranked))
    keys = corpus.cache.keys(
        np.concatenate([np.empty(0, np.int64), *(group.ids for group in groups)])
    )
    result = [(group.with_keys(keys.__getitem__), group) for group in groups]
    result.sort(key=lambda each: (-len(each[0].keys), each[0].keys))
    return result


def duplicates(
    store: Store, criterion: Criterion, rules: ClusterRules
) -> Generator[ResultColumns, None, None]:
    """Yield columns: the documents to remove so that each cluster keeps one, with the kept documents."""
    with snapshot(store.engine) as connection:
        corpus = StoredHost(connection, store, criterion)
        join, ranked = Join(corpus, criterion), _ranking(corpus, rules.rank)
        if rules.judgements:
            groups = _judged_groups(connection, store, corpus, criterion, rules)
            removals = linkages.all_but_first(join, groups, ranked)
        else:
            removals = linkages.removals(join, rules.linkage, ranked)
        for links in removals:
            keys = corpus.cache.keys(np.unique(np.concatenate((links.left, links.right))))
            removed, kept, similarity = (column.tolist() for column in links)
            yield [keys[each] for each in removed], [keys[each] for each in kept], similarity


def _judged_groups(
    connection: Connection,
    store: Store,
    corpus: StoredHost,
    criterion: Criterion,
    rules: ClusterRules,
) -> Iterator[Group]:
    def only(ids: Ids) -> Join:
        return Join(StoredHost(connection, store, criterion, ids), criterion)

    def judged_pairs(statement: LiteralString, *parameters: str | None) -> Int64Array:
        rows = fetch(connection, store.corpus, statement, [store.corpus.name, *parameters])
        pairs = np.sort(np.array(rows, np.int64).reshape(-1, 2), axis=1)
        return np.sort(pack(pairs[:, 0], pairs[:, 1]))

    judged = JudgedPairs(
        judged_pairs(statements.SAME_PAIRS, criterion.language, criterion.scope),
        judged_pairs(statements.DIFFERENT_PAIRS),
    )
    rankings = _ranking(corpus, rules.rank), _ranking(corpus, None)
    return judged_groups(Join(corpus, criterion), only, judged, rules.linkage, *rankings)


def _ranking(corpus: StoredHost, rank: Rank | None) -> Ranked:
    """Return a function that sorts documents by the ranks of their keys, and then by their keys."""

    def ranked(ids: Ids) -> Ids:
        keys = corpus.cache.keys(ids)

        def place(id_: int) -> Any:
            key = keys[id_]
            return key if rank is None else (rank(key), key)

        return np.array(sorted(ids.tolist(), key=place), np.int64)

    return ranked
