"""The stored clusters of a tracked corpus, read again when they have changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from textsim_db.results import ClusterEvent, Member
from textsim_db.review.clusters import ShownCluster

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


class StoredClusters:
    """The clusters of a tracked corpus, the largest first.

    Each change of a member is an event, so new events say that members must be read again.
    """

    def __init__(self, corpus: Corpus, linkage: str) -> None:
        self.linkage = linkage
        self._corpus = corpus
        self._lock = threading.Lock()
        self._last_event = 0
        self._events: dict[int, list[ClusterEvent]] = {}
        self._clusters: list[ShownCluster] = []
        self._cluster_of: dict[str, ShownCluster] = {}
        self.refresh(always=True)

    def refresh(self, always: bool = False) -> None:
        """Read what has changed."""
        with self._lock:
            if not self._read_events() and not always:
                return
            members = sorted(self._corpus.members(), key=lambda member: member.cluster)
            groups = groupby(members, key=lambda member: member.cluster)
            clusters = [_shown(number, list(group)) for number, group in groups]
            self._clusters = sorted(
                clusters, key=lambda cluster: (-len(cluster.keys), cluster.keys)
            )
            self._cluster_of = {key: each for each in self._clusters for key in each.keys}

    def __len__(self) -> int:
        return len(self._clusters)

    def page(self, start: int, count: int) -> list[ShownCluster]:
        """Return some clusters in order."""
        return self._clusters[start : start + count]

    def cluster_of(self, key: str) -> ShownCluster | None:
        """Return the cluster of a document."""
        return self._cluster_of.get(key)

    def events(self, cluster: ShownCluster, most: int) -> list[ClusterEvent]:
        """Return the last events of a cluster."""
        return [] if cluster.id is None else self._events.get(cluster.id, [])[-most:]

    def _read_events(self) -> bool:
        """Read the events since the last time, and return whether there are any."""
        is_new = False
        for event in self._corpus.cluster_events(self._last_event):
            is_new, self._last_event = True, event.id
            for cluster in {event.cluster, event.other} - {None}:
                self._events.setdefault(cluster or 0, []).append(event)
        return is_new


def _shown(number: int, members: list[Member]) -> ShownCluster:
    keys = sorted(member.key for member in members)
    representative = members[0].representative or keys[0]
    similarities = {member.key: member.similarity for member in members}
    return ShownCluster(keys, representative, number, tuple(_weakest(similarities, representative)))


def _weakest(
    similarities: dict[str, float | None], representative: str
) -> Iterator[tuple[str, str, float | None]]:
    """Yield the links to the representative, the weakest first; a link by judgement comes last."""
    others = [key for key in similarities if key != representative]
    for key in sorted(others, key=lambda key: (similarities[key] or 2, key)):
        low, high = sorted((key, representative))
        yield low, high, similarities[key]
