"""Clusters of pairs, compared with brute force and a graph library."""

from __future__ import annotations

import doctest
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import textsim_db as ts
from tests.support.judgements import expected_clusters_of_pairs, random_pairs
from textsim_db.cluster import pair_groups
from textsim_db.cluster.linkages import complete
from textsim_db.cluster.spanning_forest import Links
from textsim_db.errors import InputError
from textsim_db.results import Cluster
from textsim_db.settings.named_values import Linkage


@pytest.mark.sampled
@pytest.mark.parametrize("linkage", Linkage)
@pytest.mark.parametrize("kind", [str, int])
def test_clusters_of_random_pairs_equal_brute_force(
    rng: random.Random, linkage: Linkage, kind: Callable[[int], Any]
) -> None:
    for _ in range(40):
        pairs = [(kind(a), kind(b), s) for a, b, s in random_pairs(rng)]
        rng.shuffle(pairs)
        assert ts.group_pairs(pairs, linkage) == expected_clusters_of_pairs(pairs, linkage)
        order = sorted({key for pair in pairs for key in pair[:2]}, key=lambda _: rng.random())
        expected = expected_clusters_of_pairs(pairs, linkage, order)
        assert ts.group_pairs(pairs, linkage, order) == expected


def test_equal_documents_need_not_be_a_pair() -> None:
    """A condition may have removed the pair of two documents that are equal to a third one."""
    pairs = [("a", "b", 1.0), ("b", "c", 1.0)]
    assert [c.keys for c in ts.group_pairs(pairs, "complete")] == [("a", "b")]
    assert [c.keys for c in ts.group_pairs(pairs, "single")] == [("a", "b", "c")]
    assert ts.group_pairs(pairs, order=list("bca")) == [Cluster(("a", "b", "c"), 1.0, "b")]


def test_the_higher_similarity_of_a_repeated_pair_counts() -> None:
    pairs = [("a", "b", 0.5), ("b", "a", 0.9), ("a", "b", 0.7)]
    for linkage in Linkage:
        (cluster,) = ts.group_pairs(iter(pairs), linkage)
        assert cluster[:2] == (("a", "b"), 0.9)
        assert ts.group_pairs(iter([]), linkage) == []


def test_integers_are_in_the_order_of_their_values() -> None:
    assert ts.group_pairs([(10, 9)])[0].kept == 9
    assert ts.group_pairs([("10", "9")])[0].kept == "10"
    numbers: list[Any] = list(map(tuple, np.array([[3, 2]])))
    assert ts.group_pairs(numbers) == [Cluster((2, 3), 1.0, 2)]


BAD: list[tuple[Any, str]] = [
    (("a", "a"), r"pair 2 is \('a', 'a'\): it has the same key twice"),
    (("a", None), r"pair 2 is \('a', None\): a key is None"),
    (("a", 1), r"pair 2 is \('a', 1\): one key is a text and another, 'x', is not"),
    (("a", 1.5), "a key is of type float; expected str or int"),
    ((True, False), "a key is of type bool"),
    ("ab", r"pair 2 is 'ab': expected \(a, b\) or \(a, b, similarity\)"),
    (("a",), r"pair 2 is \('a',\): expected"),
    (("a", "b", 0.9, 1), "pair 2 is .*: expected"),
    (3, "pair 2 is 3: expected"),
    (("a", "b", float("nan")), "pair 2 is .*: expected a similarity from 0 to 1"),
    (("a", "b", 1999), "expected a similarity from 0 to 1"),
    (("a", "b", None), "expected a similarity from 0 to 1"),
]


def test_a_bad_pair_is_named_with_its_place() -> None:
    for pair, message in BAD:
        with pytest.raises(InputError, match=message):
            ts.group_pairs([("x", "y"), pair])


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="pair 2 has a key not in order: 'c'"):
        ts.group_pairs([("a", "b"), ("b", "c")], order=["b", "a"])
    with pytest.raises(ts.ConfigurationError, match="linkage is 'average'"):
        ts.group_pairs([], "average")  # type: ignore[arg-type]


def test_the_examples_of_the_docstring_run() -> None:
    (example,) = doctest.DocTestFinder().find(pair_groups.group_pairs, globs={"textsim_db": ts})
    assert doctest.DocTestRunner().run(example) == (0, 2)


def _links(pairs: dict[tuple[int, int], float]) -> Links:
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    return Links(left, right, np.array(list(pairs.values()), np.float64))


def test_ties_go_to_the_lowest_numbers() -> None:
    assert [c.tolist() for c, _ in complete(_links({(2, 3): 0.9, (1, 2): 0.9}))] == [[1, 2]]
