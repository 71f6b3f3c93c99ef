"""The clusters that the pages show: the stored ones of a tracked corpus, or those of a threshold."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.pair_groups import JUDGED_SAME, groups_judged_same
from textsim_db.cluster.spanning_forest import Links, join, joined_links, roots
from textsim_db.results import ClusterEvent, Judgement, Member
from textsim_db.review.pair_arrays import Pairs, ranks_of
from textsim_db.settings.named_values import Verdict

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
        return self._clusters[start : start + count]

    def cluster_of(self, key: str) -> ShownCluster | None:
        return self._cluster_of.get(key)

    def events(self, cluster: ShownCluster, most: int) -> list[ClusterEvent]:
        return [] if cluster.id is None else self._events.get(cluster.id, [])[-most:]

    def _read_events(self) -> bool:
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


class ShownCluster(NamedTuple):
    keys: list[str]
    """The keys in order."""
    representative: str
    id: int | None
    """The id of a tracked cluster."""
    links: tuple[tuple[str, str, float | None], ...]
    """The links that hold it together, the weakest first: two keys and their similarity.

    The similarity is None if the documents are linked because somebody judged them the same.
    """


class Judged(NamedTuple):
    """The meaning of judgements, as `clusters --judgements` obeys them."""

    groups: list[list[str]]
    """Documents that chains of pairs judged the same connect, without groups with a contradiction."""
    different: list[tuple[str, str]]

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> Judged:
        listed = [judgement for judgement in judgements if not judgement.is_stale]
        same, different = (
            [(each.a, each.b) for each in listed if each.verdict == verdict]
            for verdict in (Verdict.SAME, Verdict.DIFFERENT)
        )
        return cls(groups_judged_same(same, different), different)


class ChainClusters:
    """The documents that chains of pairs connect, with linkage single.

    A pair judged different is no link; the documents of a group judged the same are linked to the first.
    """

    def __init__(
        self,
        pairs: Pairs,
        threshold: float,
        judged: Judged,
        existing: set[str],
        kept: Collection[str] = (),
    ) -> None:
        """existing: the judged documents that exist. kept: the documents that represent clusters."""
        self._pairs = pairs
        self._kept = kept
        groups = [[key for key in group if key in existing] for group in judged.groups]
        # Judged documents without a pair have the numbers after the others.
        strangers = sorted({k for g in groups for k in g if pairs.document(k) is None})
        self._keys = [*pairs.keys, *strangers] if strangers else pairs.keys
        self._ranks = ranks_of(self._keys) if strangers else pairs.key_ranks
        self._numbers = {key: len(pairs.keys) + i for i, key in enumerate(strangers)}
        links = self._links(threshold, groups, judged.different)
        parents = np.arange(len(pairs.keys) + len(strangers))
        self._links_of_trees = links.take(join(parents, links.left, links.right))
        self._labels = roots(parents)
        self._order_members()

    def __len__(self) -> int:
        return len(self._starts)

    def page(self, start: int, count: int) -> list[ShownCluster]:
        return [self._cluster(place) for place in range(start, min(start + count, len(self)))]

    def cluster_of(self, key: str) -> ShownCluster | None:
        number = self._number(key)
        if number is None:
            return None
        places = np.flatnonzero(self._labels[self._members[self._starts]] == self._labels[number])
        return self._cluster(int(places[0])) if len(places) else None

    def events(self, cluster: ShownCluster, most: int) -> list[ClusterEvent]:
        return []

    def _number(self, key: str) -> int | None:
        number = self._pairs.document(key)
        return self._numbers.get(key) if number is None else number

    def _links(
        self, threshold: float, groups: list[list[str]], different: list[tuple[str, str]]
    ) -> Links:
        """Return links, the links of judgements first, then the most similar."""
        links = self._pairs.all_links
        count = int(np.searchsorted(-links.similarity, -threshold, "right"))
        links = Links(links.left[:count], links.right[:count], links.similarity[:count])
        numbers = [(self._number(a), self._number(b)) for a, b in different]
        cut = [a << 32 | b for a, b in numbers if a is not None and b is not None]
        if cut:
            packed = links.left << 32 | links.right
            links = links.take(~np.isin(packed, np.array(cut, np.int64)))
        same = [(group[0], key) for group in groups for key in group[1:]]
        ends = np.array([[self._number(key) for key in pair] for pair in same], np.int64)
        ends = ends.reshape(-1, 2)
        by_judgement = Links(ends[:, 0], ends[:, 1], np.full(len(same), JUDGED_SAME))
        return joined_links([by_judgement, links])

    def _order_members(self) -> None:
        """Sort the members of clusters by cluster, the largest first, and within it by key."""
        ranks = self._ranks
        sizes = np.bincount(self._labels, minlength=len(self._labels))
        members = np.flatnonzero(sizes[self._labels] > 1)
        labels = self._labels[members]
        first = np.full(len(self._labels), len(self._labels))
        np.minimum.at(first, labels, ranks[members])
        order = np.lexsort((ranks[members], first[labels], -sizes[labels]))
        self._members = members[order]
        labels = labels[order]
        self._starts: Int64Array = np.flatnonzero(np.diff(labels, prepend=-1))
        self._ends: Int64Array = np.append(self._starts[1:], len(labels))
        tree = self._links_of_trees
        owner = self._labels[tree.left]
        by_owner = np.argsort(owner, kind="stable")
        self._trees = Links(tree.left[by_owner], tree.right[by_owner], tree.similarity[by_owner])
        self._owners = owner[by_owner]

    def _cluster(self, place: int) -> ShownCluster:
        members = self._members[self._starts[place] : self._ends[place]]
        keys = [self._keys[number] for number in members.tolist()]
        label = self._labels[members[0]]
        bounds = np.searchsorted(self._owners, [label, label + 1])
        left, right, similarity = (column[bounds[0] : bounds[1]] for column in self._trees)
        # The tree has its most similar link first.
        links = tuple(
            (*sorted((self._keys[a], self._keys[b])), None if value == JUDGED_SAME else value)
            for a, b, value in zip(
                left[::-1].tolist(), right[::-1].tolist(), similarity[::-1].tolist(), strict=True
            )
        )
        # Without a kept document, textsim clusters --linkage kept considers the first one first.
        representative = next((key for key in keys if key in self._kept), keys[0])
        return ShownCluster(keys, representative, None, links)
