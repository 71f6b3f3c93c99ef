"""Clusters that obey judgements.

components of all pairs -> components without judged documents: their clusters, as without judgements
                        -> judged components, and groups judged the same: all links, without the pairs
                           judged different -> their clusters
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.linkages import Group, Ranked
from textsim_db.cluster.spanning_forest import Ids, Links, joined_links
from textsim_db.compare.packed_pairs import documents_of, is_among, left_of, pack, right_of
from textsim_db.settings import Linkage
from textsim_db.text.array_types import Int64Array

JUDGED_SAME = 2.0
"""The similarity of a link between documents that were judged the same: it comes before all others."""


class JudgedPairs(NamedTuple):
    """The judged pairs of documents, packed and sorted, with the lower id on the left: (pairs,) each."""

    same: Int64Array
    """Every two documents of a group that was judged the same."""
    different: Int64Array
    """The pairs that were judged different."""

    def documents(self) -> Ids:
        """Return the ids of all documents of judged pairs, sorted."""
        return documents_of(np.concatenate(self))

    def applied(self, links: Iterator[Links]) -> Links:
        """Return verified links without the judged pairs, and a link for each pair judged the same."""
        judged = np.sort(np.concatenate(self))
        kept = [
            part.take(~is_among(pack(*np.sort(np.stack(part[:2]), axis=0)), judged))
            for part in links
        ]
        ones = np.full(len(self.same), JUDGED_SAME)
        return joined_links([*kept, Links(left_of(self.same), right_of(self.same), ones)])

    def apart(self) -> dict[int, set[int]]:
        """Return for each document the documents that are judged different, so not in its cluster.

        Documents of two groups are, if any two documents of these groups are.
        """
        groups: dict[int, set[int]] = {}
        for a, b in _ends(self.same):
            groups.setdefault(a, {a}).add(b)
            groups.setdefault(b, {b}).add(a)
        apart: dict[int, set[int]] = {}
        for a, b in _ends(self.different):
            left, right = groups.get(a, {a}), groups.get(b, {b})
            for documents, others in ((left, right), (right, left)):
                for document in documents:
                    apart.setdefault(document, set()).update(others)
        return apart


def judged_groups(
    join: Join,
    only: Callable[[Ids], Join],
    judged: JudgedPairs,
    linkage: Linkage,
    ranked: Ranked,
    by_key: Ranked,
) -> Iterator[Group]:
    """Yield the clusters as judgements make them, in any order.

    only: returns a join of these documents alone. ranked: decides which document is kept. by_key: sorts
    documents by their keys.
    """
    components, weakest = linkages.components(join)
    is_judged = np.zeros(len(weakest), np.bool_)
    is_judged[components.owners()[is_among(components.values, judged.documents())]] = True
    plain = np.flatnonzero(~is_judged)
    if linkage is Linkage.SINGLE:
        yield from (Group(components.of(i), float(weakest[i])) for i in plain.tolist())
    elif linkage is Linkage.KEPT:
        kept = [components.of(number) for number in plain.tolist()]
        removals = linkages.similar_to_kept(join, kept, ranked)
        yield from linkages.groups_of_removals(joined_links(removals))
    elif len(plain):
        ids = np.sort(components.take(plain).values)
        yield from linkages.groups(only(ids), linkage, ranked)
    ids = components.take(np.flatnonzero(is_judged)).values
    ids = np.union1d(ids, documents_of(judged.same))
    if len(ids):
        order = ranked(ids) if linkage is Linkage.KEPT else by_key(ids)
        yield from _of_judged(only(ids), judged, linkage, order)


def _of_judged(join: Join, judged: JudgedPairs, linkage: Linkage, order: Ids) -> Iterator[Group]:
    """Yield the clusters of these documents; order: the document that comes first at the start."""
    links = judged.applied(join.pairs())
    by_id = np.argsort(order)
    left, right = (by_id[np.searchsorted(order, side, sorter=by_id)] for side in links[:2])
    places = dict(zip(order.tolist(), range(len(order)), strict=True))
    apart = {
        places[document]: {places[other] for other in others if other in places}
        for document, others in judged.apart().items()
        if document in places
    }
    numbered = Links(left, right, links.similarity)
    for ids, weakest, kept in linkages.groups_of_links(numbered, linkage, apart):
        yield Group(order[ids], min(1.0, weakest), None if kept is None else int(order[kept]))


def _ends(pairs: Int64Array) -> Iterator[tuple[int, int]]:
    return zip(left_of(pairs).tolist(), right_of(pairs).tolist(), strict=True)
