"""Splits documents at random into subsets with wished shares, so that no similar pair is cut. Pure."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.join import Join
from textsim_db.cluster.spanning_forest import Forest, Ids
from textsim_db.errors import ConfigurationError
from textsim_db.results import Split
from textsim_db.results.rows import AnyKey
from textsim_db.settings.check_values import as_float, check_count, is_number

log = logging.getLogger(__name__)

_TOLERANCE = 1e-9
"""Of sums of shares, which are rounded."""
_NOTED_DEVIATION = 0.01
"""From this difference on, a subset's share is noted."""


def check_shares(shares: Mapping[str, float], random_seed: int) -> dict[str, float]:
    """Return the shares of two subsets or more.

    Raises ConfigurationError unless they sum to 1, and the random seed is 0 or more: Random() takes -1
    for 1.
    """
    check_count(random_seed, "random_seed", 0, 2**63 - 1)
    expected = 'expected the shares of two subsets or more, such as {"train": 0.8, "test": 0.2}'
    if not isinstance(shares, Mapping) or len(shares) < 2:
        raise ConfigurationError(f"the shares are {shares!r:.100}; {expected}")
    for name, share in shares.items():
        if not (isinstance(name, str) and name and is_number(share) and 0 < share < 1):
            raise ConfigurationError(
                f"subset {name!r:.100} has the share {share!r:.100}; {expected}"
            )
    checked = {name: as_float(share) for name, share in shares.items()}
    if not math.isclose(total := sum(checked.values()), 1, abs_tol=_TOLERANCE):
        raise ConfigurationError(f"the shares sum to {total:g}; expected 1")
    return checked


def draw_subsets(
    join: Join,
    keys: Sequence[AnyKey],
    strata: Sequence[Hashable],
    shares: Mapping[str, float],
    random_seed: int,
    ids: Ids | None = None,
) -> Split[AnyKey]:
    """Split documents by the connected components of the join's pairs, and log shares that are missed.

    keys: the keys of all documents; the result depends on their order.
    strata: the stratum of each document; each stratum is split in the same shares.
    ids: the numbers of the documents in the join, by default from 0 on.
    Raises ConfigurationError if a subset is empty, or a stratum is a list or another value without a
    hash.
    """
    _check_strata(keys, strata)
    ids = np.arange(len(keys)) if ids is None else ids
    copies, forest = join.host.copies, Forest()
    forest.add(copies.links())
    representatives, places = np.unique(copies.representatives_of(ids), return_inverse=True)
    alone = _draw([[place] for place in range(len(ids))], strata, shares, random_seed)
    # By representative and subset, if each document is drawn by itself: how many copies it has.
    counts = np.zeros((len(representatives), len(shares)), np.int64)
    np.add.at(counts, (places, np.array(alone, np.int64)), 1)
    cut = _between_subsets(counts, counts) // 2
    for links in join.links():
        forest.add(links)
        cut += _between_subsets(*(counts[np.searchsorted(representatives, x)] for x in links[:2]))
    clusters: dict[int, list[int]] = {}
    for place, label in enumerate(forest.labels(ids).tolist()):
        clusters.setdefault(label, []).append(place)
    subset_of = _draw([*clusters.values()], strata, shares, random_seed)
    members: list[list[AnyKey]] = [[] for _ in shares]
    for key, subset in zip(keys, subset_of, strict=True):
        members[subset].append(key)
    subsets = dict(zip(shares, map(tuple, members), strict=True))
    split = Split(subsets, cut, max(map(len, clusters.values()), default=0))
    _check_sizes(split, shares, len(keys))
    return split


def _check_strata(keys: Sequence[Any], strata: Sequence[Hashable]) -> None:
    for key, stratum in zip(keys, strata, strict=True):
        try:
            hash(stratum)
        except TypeError as error:
            raise ConfigurationError(
                f"stratify returns {stratum!r:.100} for the key {key!r:.100}; expected a text, "
                "a number, a tuple of these or None"
            ) from error


def _check_sizes(split: Split[Any], shares: Mapping[str, float], total: int) -> None:
    """Raise ConfigurationError if a subset is empty, and log which shares are not as wished."""
    cause = f"the largest cluster, which stays whole, has {split.largest:,}"
    missed = []
    for name, keys in split.subsets.items():
        if not keys:
            raise ConfigurationError(
                f'subset "{name}" would have none of {total:,} documents; {cause}'
            )
        if abs(len(keys) / total - shares[name]) > max(_NOTED_DEVIATION, 1 / total):
            missed.append(f'"{name}" has {len(keys) / total:.1%} instead of {shares[name]:.1%}')
    if missed:
        log.warning("%s of %s documents: %s", ", ".join(missed), f"{total:,}", cause)


def _between_subsets(left: Int64Array, right: Int64Array) -> int:
    """Return how many pairs of copies of left and right documents are in different subsets."""
    return int((left.sum(1) * right.sum(1) - (left * right).sum(1)).sum())


def _draw(
    clusters: list[list[int]],
    strata: Sequence[Hashable],
    shares: Mapping[str, float],
    random_seed: int,
) -> list[int]:
    """Return the subset of each document: large clusters are drawn first, while there is room."""
    random, subset_of = Random(random_seed), [0] * len(strata)  # noqa: S311
    room = {
        stratum: [share * total for share in shares.values()]
        for stratum, total in Counter(strata).items()
    }
    room_of_all = [share * len(strata) for share in shares.values()]
    for members in sorted(clusters, key=lambda each: (-len(each), random.random())):
        counts = Counter(strata[place] for place in members)
        weights = _weights(counts, room, room_of_all)
        (subset,) = random.choices(range(len(weights)), weights)
        room_of_all[subset] -= len(members)
        for stratum, count in counts.items():
            room[stratum][subset] -= count
        for place in members:
            subset_of[place] = subset
    return subset_of


def _weights(
    counts: Mapping[Hashable, int], room: Mapping[Hashable, list[float]], room_of_all: list[float]
) -> list[float]:
    """Return the weight of each subset for a cluster with some documents of each stratum.

    It is the room that its strata have left. If they have room in none, all strata share their room;
    and if a cluster fits nowhere, it goes where most room is.
    """
    size = sum(counts.values())
    in_strata = [
        sum(room[stratum][subset] for stratum in counts)
        if all(room[stratum][subset] >= n - _TOLERANCE for stratum, n in counts.items())
        else 0.0
        for subset in range(len(room_of_all))
    ]
    weights = in_strata
    if not any(weights):
        weights = [each if each >= size - _TOLERANCE else 0.0 for each in room_of_all]
    if not any(weights):
        most = max(room_of_all)
        weights = [float(each == most) for each in room_of_all]
    return weights
