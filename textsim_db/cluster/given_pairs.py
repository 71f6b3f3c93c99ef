"""Clusters of pairs that the user gives, such as the pairs of a corpus that pass a condition."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np

from textsim_db.check_values import is_number
from textsim_db.cluster.linkages import groups_of_links
from textsim_db.cluster.spanning_forest import Links
from textsim_db.errors import InputError, shown
from textsim_db.results import Cluster
from textsim_db.settings import check_linkage
from textsim_db.show.result_list import ResultList

Key = TypeVar("Key", str, int)


def group_pairs(
    pairs: Iterable[tuple[Key, Key] | tuple[Key, Key, float]],
    linkage: str = "kept",
    order: Iterable[Key] | None = None,
) -> list[Cluster[Key]]:
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
        ConfigurationError: the linkage is unknown.
        InputError: a pair is not as above, has one key twice, or has a key that is not in order.

    Examples:
        >>> textsim_db.group_pairs([("a", "b", 0.9), ("b", "c", 0.8)])
        [Cluster(keys=('a', 'b'), weakest=0.9, kept='a')]
        >>> textsim_db.group_pairs([(1, 2), (2, 3)], order=[2, 1, 3])
        [Cluster(keys=(1, 2, 3), weakest=1.0, kept=2)]
    """
    how = check_linkage(linkage)
    similarities: dict[tuple[Key, Key], float]
    places: dict[Key, int]
    similarities, places = _read(pairs)
    numbers = _numbered(places, None if order is None else list(order))
    keys = list(numbers)
    left = np.array([numbers[a] for a, _ in similarities], np.int64)
    right = np.array([numbers[b] for _, b in similarities], np.int64)
    links = Links(left, right, np.array([*similarities.values()], np.float64))
    clusters = [group.with_keys(keys.__getitem__) for group in groups_of_links(links, how)]
    return ResultList(sorted(clusters, key=lambda cluster: (-len(cluster.keys), cluster.keys)))


def _read(pairs: Iterable[tuple[Any, ...]]) -> tuple[dict[tuple[Any, Any], float], dict[Any, int]]:
    """Return the similarity of each pair, and for each key the place of its first pair."""
    if hasattr(pairs, "columns"):
        raise InputError(
            f"the pairs are a {type(pairs).__name__}; give its rows, such as frame.iter_rows() of "
            "Polars or frame.itertuples(index=False) of pandas"
        )
    similarities: dict[tuple[Any, Any], float] = {}
    places: dict[Any, int] = {}
    for place, pair in enumerate(pairs, start=1):
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


def _numbered(places: dict[Any, int], order: list[Any] | None) -> dict[Any, int]:
    """Return the number of each key of the pairs, counted from 0 in the given order."""
    if order is None:
        order = sorted(places)
    keys = [key for key in dict.fromkeys(order) if key in places]
    if len(keys) < len(places):
        missing = min(places.keys() - set(keys), key=lambda key: places[key])
        raise InputError(shown(f"pair {places[missing]} has a key not in order: {missing!r:.100}"))
    return {key: number for number, key in enumerate(keys)}
