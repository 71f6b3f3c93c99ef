"""Clusters: the connected components of verified pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sqlalchemy import Engine

from textsim_db.db.corpora import StoredCorpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.forest import Forest, Links
from textsim_db.pairs import PairFinder, snapshot
from textsim_db.results import Cluster


def clusters(
    engine: Engine, dictionary: Dictionary, corpus: StoredCorpus, threshold: float
) -> Iterator[Cluster]:
    """Yield the connected components of the pairs at the threshold, the largest first.

    Memory grows with the documents in clusters, not with the pairs.
    """
    with snapshot(engine) as connection:
        finder = PairFinder(connection, dictionary, corpus, threshold)
        forest = Forest()
        for ids in finder.copies.classes:
            others = ids[1:]
            forest.add(Links(np.full(len(others), ids[0]), others, np.ones(len(others))))
        for links in finder.links(forest.labels):
            forest.add(links)
        members, labels, weakest = forest.components()
        keys = finder.keys(members)
    found: list[list[str]] = [[] for _ in weakest]
    for number, label in zip(members.tolist(), labels.tolist(), strict=True):
        found[label].append(keys[number])
    made = [Cluster(tuple(sorted(k)), w) for k, w in zip(found, weakest.tolist(), strict=True)]
    yield from sorted(made, key=lambda cluster: (-len(cluster.keys), cluster.keys))
