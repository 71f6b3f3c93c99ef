"""Turns, medians and tables of the benchmarks."""

from __future__ import annotations

from functools import partial

from benchmarks.beside_checkout import ratio
from benchmarks.harness import (
    Figures,
    identifier,
    in_turns,
    median_and_p99,
    medians,
    shown,
    span,
    table_of,
)


def test_sides_take_turns_and_the_order_is_reversed_from_round_to_round() -> None:
    calls: list[str] = []

    def call(side: str, number: int) -> int:
        calls.append(f"{side}{number}")
        return number

    sides = {side: partial(call, side) for side in "ab"}
    assert in_turns(sides, 3) == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert calls == ["a0", "b0", "b1", "a1", "a2", "b2"]
    calls.clear()
    in_turns(sides, 2, first=1)
    assert calls == ["b0", "a0", "a1", "b1"]


def test_a_figure_is_the_median_of_its_rounds() -> None:
    rounds = [{"ms": 9.0, "recall": None}, {"ms": 1.0, "recall": None}, {"ms": 2.0, "recall": None}]
    assert medians(rounds) == {"ms": 2.0, "recall": None}
    assert median_and_p99(range(1000)) == (499.5, 990)


def test_a_ratio_says_how_many_times_as_fast_or_what_share_is_left() -> None:
    assert ratio("query_ms", this=1.0, other=3.0) == 3.0
    assert ratio("rate", this=3.0, other=1.0) == 3.0
    assert ratio("bytes", this=1.0, other=4.0) == 0.25


def test_a_table_has_a_row_for_each_label_with_a_figure() -> None:
    sides: dict[str, Figures] = {
        "one": {"ms": 1.5, "mb": None},
        "two": {"ms": 1500.0, "rate": 0.25},
    }
    labels = {"rate": "per s", "ms": "time, ms", "mb": "MB"}
    table = table_of(sides, labels, "corner")
    expected = [["corner", "one", "two"], ["per s", "", "0.250"], ["time, ms", "1.50", "1,500"]]
    assert table == expected


def test_figures_are_shown_with_three_digits() -> None:
    values = [0.1234, 1.234, 12.34, 1234.5, 2.0, None]
    assert [shown(value) for value in values] == ["0.123", "1.23", "12.3", "1,234", "2", ""]
    assert span([106.2, 82.4, 90.0]) == "82.4 to 106"
    assert span([2.001, 2.002]) == "2.00"
    assert identifier("one query, cold, median ms") == "one_query_cold_median_ms"
