"""On the driver: edges in, the components of the candidates out, spread over partitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.cluster.spanning_forest import join, roots
from textsim_db.errors import ConfigurationError
from textsim_db.spark.stage_2_edges import Edges
from textsim_db.text.array_types import Int32Array, Int64Array

MOST_EDGES = 30_000_000
"""The edges that the driver joins: 30 million take 20 s and 4.4 GB."""
PARTITION_DOCUMENTS = 5_000
"""PlacedCandidates of a partition. More take more memory in a task; fewer make more tasks."""


class PlacedCandidates(NamedTuple):
    """The documents that share a bucket with another document, each component in one partition."""

    numbers: Int64Array
    """(candidates,)."""
    partitions: Int32Array
    """The partition of each candidate: (candidates,)."""
    sizes: Int64Array
    """The candidates of each partition: (partitions,)."""


def find_components(edges: Edges, repeated: Int64Array) -> PlacedCandidates:
    """Join edges into components, and spread the components over partitions.

    repeated: numbers that several documents have, which are compared with each other too.
    """
    left, right = edges
    if len(left) > MOST_EDGES:
        raise ConfigurationError(
            f"{len(left):,} edges between candidates are too many to join on the driver; at most "
            f"{MOST_EDGES:,} are possible: use a higher threshold, more rows a band, or leave out "
            "boilerplate that many texts share"
        )
    numbers, ends = np.unique(np.concatenate((left, right, repeated)), return_inverse=True)
    parents = np.arange(len(numbers))
    join(parents, ends[: len(left)], ends[len(left) : 2 * len(left)])
    _, labels = np.unique(roots(parents), return_inverse=True)
    partitions = _spread(labels)
    return PlacedCandidates(numbers, partitions, np.bincount(partitions))


def _spread(labels: Int64Array) -> Int32Array:
    """Return the partition of each document; a component stays whole, and the largest come first."""
    sizes = np.bincount(labels)
    count = max(1, -(-len(labels) // PARTITION_DOCUMENTS))
    order = np.argsort(-sizes, kind="stable")
    starts = np.cumsum(sizes[order]) - sizes[order]
    places = np.empty(len(sizes), np.int64)
    places[order] = starts * count // max(1, len(labels))
    return np.unique(places[labels], return_inverse=True)[1].astype(np.int32)
