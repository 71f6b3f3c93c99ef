"""The clusters that the pages show: the tracked ones, or else chains of the pairs that were read."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from textsim_db.corpus import Corpus
from textsim_db.results import ClusterEvent, Member
from textsim_db.review.survey import Pairs


class ShownCluster(NamedTuple):
    """A cluster of a page."""

    keys: list[str]
    representative: str
    weakest: tuple[str, str, float | None]
    """The link that a higher threshold cuts first: two keys and their similarity."""
    id: int | None
    """The id of a tracked cluster."""


def clusters_of(corpus: Corpus, pairs: Pairs, threshold: float) -> list[ShownCluster]:
    """Return clusters, the largest first; the threshold is for those that are not tracked."""
    if corpus.status().linkage is not None:
        members = sorted(corpus.members(), key=lambda member: member.cluster)
        groups = groupby(members, key=lambda member: member.cluster)
        found = [_tracked(number, list(group)) for number, group in groups]
        return sorted(found, key=lambda cluster: (-len(cluster.keys), cluster.keys))
    # The representative is the document that textsim clusters --linkage kept considers first.
    return [
        ShownCluster(chain.keys, chain.keys[0], chain.links[0], None)
        for chain in pairs.clusters(threshold)
    ]


def events_of(corpus: Corpus, cluster: ShownCluster, most: int) -> list[ClusterEvent]:
    """Return the last events of a tracked cluster."""
    if cluster.id is None:
        return []
    events = corpus.cluster_events()
    return [event for event in events if cluster.id in (event.cluster, event.other)][-most:]


def _tracked(number: int, members: list[Member]) -> ShownCluster:
    keys = sorted(member.key for member in members)
    first = members[0].representative or keys[0]
    others = [member for member in members if member.key != first]
    weakest = min(others, key=lambda member: member.similarity or 0, default=members[0])
    return ShownCluster(keys, first, (first, weakest.key, weakest.similarity), number)
