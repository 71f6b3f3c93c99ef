"""Pairs and clusters, and the clusters of a tracked corpus."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from textsim_db.results.html import count, note, output, table

Key = TypeVar("Key", str, int)

_SHOWN_KEYS = 20
"""The keys of a cluster that a notebook shows."""


class Pair(NamedTuple):
    """Two matching documents, with the keys `a` < `b`, and their exact similarity."""

    a: str
    b: str
    similarity: float


class Cluster(NamedTuple, Generic[Key]):
    """Documents that pairs connect."""

    keys: tuple[Key, ...]
    """The keys of two documents or more, in order."""
    weakest: float
    """The lowest similarity among the links that hold the cluster together.

    A threshold up to this value does not split the cluster.
    """
    kept: Key | None = None
    """The member that is kept, with linkage "kept"; else None."""

    def _repr_html_(self: Any) -> str:  # mypy knows no self of a generic named tuple
        shown = self.keys[:_SHOWN_KEYS]
        rows = [(key, "kept" if key == self.kept else "") for key in shown]
        members = f"{count(len(self.keys), 'document')}, the weakest link {self.weakest:.4f}"
        more = len(self.keys) - len(shown)
        left_out = note(f"and {count(more, 'more document')}") if more else ""
        return output(note(members), table(("key", ""), rows), left_out)


class Inspection(NamedTuple):
    """The result of comparing at most 50 members of a cluster with each other."""

    weakest_member: str
    """The member whose most similar other member is the least similar."""
    least: float
    """The least similarity of two members; if `is_exact` is false, it may be lower."""
    is_exact: bool
    """Whether all members were compared."""
    template: tuple[str, ...]
    """The shingles that most members share, and also documents outside, or most of the corpus."""
    held_by_template: bool
    """Whether most members match no other member without the template."""


class InspectedCluster(NamedTuple):
    """A cluster, and what holds it together."""

    cluster: Cluster[str]
    inspection: Inspection


class Member(NamedTuple):
    """A document of a cluster of a tracked corpus."""

    key: str
    """The key of the document."""
    cluster: int
    """The id of the cluster, which it keeps, and which no other cluster ever gets."""
    representative: str | None
    """The document that stands for the cluster; None if it was removed since the last update."""
    similarity: float | None
    """The similarity to the representative; None if it is below the threshold."""
    crowded: bool
    """Whether it has too many candidates, and was compared with at most 200 earlier ones.

    Texts of one template have as many. Its cluster may be incomplete.
    """


class ClusterEvent(NamedTuple):
    """An event in the life of a cluster of a tracked corpus."""

    id: int
    """The id of the event; an event that is committed later has a higher id."""
    at: datetime
    """When the clusters were updated."""
    what: str
    """One of created, joined, left, split, merged and ended."""
    cluster: int
    """The id of the cluster."""
    key: str | None
    """The document that joined or left; None for other events."""
    other: int | None
    """The cluster that the document left, that members went to, or that all members went to."""


class Duplicate(NamedTuple):
    """A document to remove (`key`), the document that is kept instead (`kept`), and their similarity."""

    key: str
    kept: str
    similarity: float
