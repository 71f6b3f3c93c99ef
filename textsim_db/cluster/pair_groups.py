"""Clusters of pairs that the user gives, and clusters that obey judgements.

components of all pairs -> components without judged documents: their clusters, as without judgements
                        -> judged components, and groups judged the same: all links, without the pairs
                           judged different -> their clusters
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.linkages import Group, Ranked, groups_of_links
from textsim_db.cluster.spanning_forest import Ids, Links, joined_links
from textsim_db.compare.packed_pairs import documents_of, is_among, left_of, pack, right_of
from textsim_db.errors import InputError
from textsim_db.results import Cluster
from textsim_db.results.html import ResultList
from textsim_db.results.rows import AnyKey
from textsim_db.results.shown_values import shown
from textsim_db.settings.check_values import is_number, several_items
from textsim_db.settings.named_values import Linkage, LinkageName, check_linkage


def group_pairs(
    pairs: Iterable[tuple[AnyKey, AnyKey] | tuple[AnyKey, AnyKey, float]],
    linkage: LinkageName = "kept",
    order: Iterable[AnyKey] | None = None,
) -> list[Cluster[AnyKey]]:
    """Return the clusters of any pairs, the largest first; each has two keys or more.

    The pairs alone decide: no text is compared. So pairs of a corpus can pass a condition of your own
    first. Of the same pair given twice, in either order, the higher similarity counts.

    Args:
        pairs: (a, b) or (a, b, similarity), with keys that are all texts or all integers. The
            similarity is from 0 to 1, by default 1.
        linkage: how pairs make clusters, as in Corpus.clusters().
        order: the keys, the key to keep first; other keys may be among them. It decides which
            documents linkage `"kept"` keeps, and which of equally similar pairs linkage `"complete"`
            uses first. By default keys are in sorted order, integers by value; the order of the
            pairs never counts.

    Raises:
        ConfigurationError: the linkage is unknown, or `pairs` or `order` is one value or a frame.
        InputError: a pair is not as above, has one key twice, or has a key that is not in order.

    Examples:
        >>> textsim_db.group_pairs([("a", "b", 0.9), ("b", "c", 0.8)])
        [Cluster(keys=('a', 'b'), weakest=0.9, kept='a')]
        >>> textsim_db.group_pairs([(1, 2), (2, 3)], order=[2, 1, 3])
        [Cluster(keys=(1, 2, 3), weakest=1.0, kept=2)]
    """
    how = check_linkage(linkage)
    similarities: dict[tuple[AnyKey, AnyKey], float]
    places: dict[AnyKey, int]
    similarities, places = _read(pairs)
    numbers = _numbered(places, order)
    keys = list(numbers)
    left = np.array([numbers[a] for a, _ in similarities], np.int64)
    right = np.array([numbers[b] for _, b in similarities], np.int64)
    links = Links(left, right, np.array([*similarities.values()], np.float64))
    clusters = [group.with_keys(keys.__getitem__) for group in groups_of_links(links, how)]
    return ResultList(sorted(clusters, key=lambda cluster: (-len(cluster.keys), cluster.keys)))


def _read(pairs: Iterable[tuple[Any, ...]]) -> tuple[dict[tuple[Any, Any], float], dict[Any, int]]:
    """Return the similarity of each pair, and for each key the place of its first pair."""
    expected = (
        "group_pairs() takes several pairs, such as [(a, b)], frame.iter_rows() of Polars or "
        "frame.itertuples(index=False) of pandas"
    )
    similarities: dict[tuple[Any, Any], float] = {}
    places: dict[Any, int] = {}
    for place, pair in enumerate(several_items(pairs, expected), start=1):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) not in (2, 3):
            _refuse(place, pair, "expected (a, b) or (a, b, similarity)")
        a, b, similarity = (*pair, 1.0)[:3]
        for key in (a, b):
            if key is None:
                _refuse(place, pair, "a key is None")
            if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
                _refuse(place, pair, f"a key is of type {type(key).__name__}; expected str or int")
            first = next(iter(places), key)
            if isinstance(key, str) != isinstance(first, str):
                _refuse(place, pair, f"one key is a text and another, {first!r:.100}, is not")
            places.setdefault(key, place)
        if a == b:
            _refuse(place, pair, "it has the same key twice")
        value = float(similarity) if is_number(similarity) else math.nan
        if not 0 <= value <= 1:
            _refuse(place, pair, "expected a similarity from 0 to 1")
        ends = (a, b) if a < b else (b, a)
        similarities[ends] = max(value, similarities.get(ends, 0.0))
    return similarities, places


def _refuse(place: int, pair: object, problem: str) -> NoReturn:
    raise InputError(shown(f"pair {place} is {pair!r:.200}: {problem}"))


def _numbered(places: dict[Any, int], order: Iterable[Any] | None) -> dict[Any, int]:
    expected = "order takes the keys of several documents, such as [a, b]"
    ordered = sorted(places) if order is None else several_items(order, expected)
    keys = [key for key in dict.fromkeys(ordered) if key in places]
    if len(keys) < len(places):
        missing = min(places.keys() - set(keys), key=lambda key: places[key])
        raise InputError(shown(f"pair {places[missing]} has a key not in order: {missing!r:.100}"))
    return {key: number for number, key in enumerate(keys)}


JUDGED_SAME = 2.0
"""The similarity of a link between documents that were judged the same: it comes before all others."""


class JudgedPairs(NamedTuple):
    """The judged pairs of documents, packed and sorted, with the lower id on the left: (pairs,) each."""

    same: Int64Array
    """Every two documents of a group that was judged the same."""
    different: Int64Array

    @classmethod
    def of(cls, same: npt.ArrayLike, different: npt.ArrayLike) -> JudgedPairs:
        """Pack pairs of ids, which are in any order."""
        ends = (np.array(pairs, np.int64).reshape(-1, 2) for pairs in (same, different))
        return cls(*(np.sort(pack(*np.sort(each, axis=1).T)) for each in ends))

    def documents(self) -> Ids:
        return documents_of(np.concatenate(self))

    def applied(self, links: Iterator[Links]) -> Links:
        """Return verified links without the judged pairs, and a link for each pair judged the same."""
        judged = np.sort(np.concatenate(self))
        kept = [
            each.take(~is_among(pack(*np.sort(np.stack(each[:2]), axis=0)), judged))
            for each in links
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


def groups_judged_same(
    same: Iterable[tuple[AnyKey, AnyKey]], different: Iterable[tuple[AnyKey, AnyKey]]
) -> list[list[AnyKey]]:
    """Return what chains of pairs judged the same connect, without groups with a contradiction."""
    group_of: dict[AnyKey, list[AnyKey]] = {}
    for a, b in same:
        one, other = group_of.setdefault(a, [a]), group_of.setdefault(b, [b])
        if one is not other:
            one += other
            group_of |= dict.fromkeys(other, one)
    contradicted = {
        id(group_of[a]) for a, b in different if a in group_of and group_of[a] is group_of.get(b)
    }
    by_id = {id(group): group for group in group_of.values()}
    return [group for number, group in by_id.items() if number not in contradicted]


def judged_groups(
    join: Join,
    only: Callable[[Ids], Join],
    judged: JudgedPairs,
    linkage: Linkage,
    ranked: Ranked,
    by_key: Ranked,
) -> Iterator[Group]:
    """Yield the clusters as judgements make them; only: returns a join of these documents alone."""
    components, weakest = linkages.components(join)
    is_judged = np.zeros(len(weakest), np.bool_)
    is_judged[components.owners()[is_among(components.values, judged.documents())]] = True
    plain = np.flatnonzero(~is_judged)
    if linkage is Linkage.SINGLE:
        yield from (Group(components.of(i), float(weakest[i])) for i in plain.tolist())
    elif linkage is Linkage.KEPT:
        removals = linkages.similar_to_kept(join, components.take(plain).arrays(), ranked)
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
