"""The functions of exact corpora decide in SQL as in Python."""

from __future__ import annotations

import random
from collections import Counter
from math import nextafter
from typing import Any, LiteralString

import numpy as np
import pytest

from tests.support import reference
from tests.support.connections import Connection
from textsim_db.sketch.exact_prefix import count_rows, share_enough

THRESHOLDS = [1e-9, 0.07, 1 / 3, 0.5, 0.55, 0.58, 0.8, nextafter(0.8, 1), 0.95, 1.0]


def column(connection: Connection, query: LiteralString, *parameters: Any) -> list[Any]:
    return [row[0] for row in connection.execute(query, parameters).fetchall()]


def random_quotients(rng: random.Random, count: int) -> list[float]:
    sizes = [rng.randrange(1, 3000) for _ in range(count)]
    quotients = [rng.randrange(1, size + 1) / size for size in sizes]
    return [*THRESHOLDS, *quotients, *(nextafter(q, rng.random()) for q in quotients)]


def test_the_number_of_rows_is_that_of_python(
    shared_connection: Connection, rng: random.Random
) -> None:
    query: LiteralString = (
        "SELECT textsim._count_rows(n, %s) FROM unnest(%s::integer[]) WITH ORDINALITY u (n, place) "
        "ORDER BY place"
    )
    for threshold in random_quotients(rng, 50):
        sizes = [*range(30), *(rng.randrange(3000) for _ in range(60)), 10_000_000]
        rows = column(shared_connection, query, threshold, sizes)
        assert rows == count_rows(np.array(sizes), threshold).tolist(), threshold


def test_candidates_are_those_of_python(shared_connection: Connection, rng: random.Random) -> None:
    query: LiteralString = (
        "SELECT textsim._is_candidate(shared, a, b, %s) "
        "FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) "
        "WITH ORDINALITY u (shared, a, b, place) "
        "ORDER BY place"
    )
    for threshold in random_quotients(rng, 30):
        pairs = [
            (rng.randrange(1, 12), rng.randrange(1, 50), rng.randrange(1, 50)) for _ in range(500)
        ]
        columns = [list(values) for values in zip(*pairs, strict=True)]
        candidates = column(shared_connection, query, threshold, *columns)
        shared, a_sizes, b_sizes = (np.array(values) for values in columns)
        expected = share_enough(shared, a_sizes, b_sizes, threshold).tolist()
        assert candidates == expected, threshold


def test_the_needed_rows_are_those_of_the_definition(shared_connection: Connection) -> None:
    query: LiteralString = (
        "SELECT textsim._needed_rows(a, b, %s) FROM generate_series(1, 25) a, generate_series(1, 25) b "
        "ORDER BY a, b"
    )
    for threshold in THRESHOLDS:
        assert column(shared_connection, query, threshold) == [
            min(3, reference.needed_overlap(a, b, threshold))
            for a in range(1, 26)
            for b in range(1, 26)
        ]


def test_a_planner_that_knows_the_sizes_meets_no_division_by_zero(connection: Connection) -> None:
    connection.execute("SET plan_cache_mode = force_custom_plan")
    assert column(connection, "SELECT textsim._count_rows(0, 0.8)") == [0]
    assert column(connection, "SELECT textsim._is_candidate(3, 0, 0, 0.8)") != [True]
    connection.execute("SELECT textsim.create_corpus('c', recall => 1)")
    connection.execute(
        "SELECT textsim.add('c', 'empty', ''), textsim.add('c', 'a', 'one two three')"
    )
    assert connection.execute("SELECT * FROM textsim.candidates('c', '')").fetchall() == []
    assert connection.execute("SELECT key FROM textsim.matches('c', '')").fetchall() == []
    assert connection.execute("SELECT key FROM textsim.neighbours('c', 'empty')").fetchall() == []


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [2, 4, 63])
def test_a_value_counts_once_for_each_distinct_shingle(
    shared_connection: Connection, rng: random.Random, n: int, bits: int
) -> None:
    for _ in range(20):
        words = rng.choices(["a", "ab", "é", "漢", "1"], k=rng.randrange(1, 30))
        shingles = [tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))]
        value_of = {shingle: rng.getrandbits(bits) for shingle in shingles}
        values = [value_of[shingle] for shingle in shingles]
        (distinct,) = column(
            shared_connection,
            "SELECT textsim._distinct_values(%s, %s::bigint[], 'word', %s)",
            *(" ".join(words), values, n),
        )
        assert Counter(distinct) == Counter(value_of.values())
        (count,) = column(
            shared_connection,
            "SELECT textsim._count_shingles(%s, %s::bigint[], 'word', %s)",
            *(" ".join(words), values, n),
        )
        assert count == len(value_of)
