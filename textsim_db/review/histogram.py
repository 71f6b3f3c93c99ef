"""The histogram of similarities as shapes in a unit square, whose y axis points downwards.

The right edge is similarity 1, where the handle below ends, too. The bar of similarity 1 is to the right
of the square.
"""

from __future__ import annotations

from typing import NamedTuple

from textsim_db.review.pair_arrays import HUNDREDTHS

_MOST_COUNTS = 4
"""The counts that are marked at the axis."""
_TOP = 0.2
"""The share of the height above the highest bar, for the names of marks."""


class HistogramBar(NamedTuple):
    """The pairs of a hundredth of similarity."""

    step: int
    left: float
    top: float
    height: float


class Mark(NamedTuple):
    """A mark at an axis, and its name."""

    place: float
    name: str


class Histogram(NamedTuple):
    """The pairs of each hundredth of similarity up to 1."""

    first: int
    """The lowest hundredth."""
    bars: list[HistogramBar]
    width: float
    """The width of a hundredth."""
    counts: list[Mark]
    """Round numbers of pairs at the y axis."""
    tenths: list[Mark]
    """The tenths of similarity at the x axis."""
    thresholds: list[Mark]


def histogram_of(counts: list[tuple[int, int]], thresholds: dict[str, float]) -> Histogram:
    """Return the histogram; counts: each hundredth with its pairs; thresholds: by their names."""
    first = counts[0][0]
    width = 1 / (HUNDREDTHS - first)
    most = max(number for _, number in counts)
    bars = [
        HistogramBar(step, (step - first) * width, *_vertical(number, most))
        for step, number in counts
    ]
    return Histogram(
        first,
        bars,
        width,
        [Mark(_vertical(number, most)[0], f"{number:,}") for number in _round_numbers(most)],
        [
            Mark((step - first) * width, f"{step / HUNDREDTHS:.1f}")
            for step in range(first, HUNDREDTHS + 1)
            if step % 10 == 0
        ],
        [Mark((HUNDREDTHS * at - first) * width, name) for name, at in thresholds.items()],
    )


def _vertical(number: int, most: int) -> tuple[float, float]:
    """Return the top and the height of a bar; a bar of few pairs is visible."""
    height = (1 - _TOP) * number / (most or 1)
    height = max(height, 0.015 if number else 0.0)
    return 1 - height, height


def _round_numbers(most: int) -> list[int]:
    """Return 0 and a few round numbers up to the highest."""
    step = 1
    while most / step > _MOST_COUNTS:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return list(range(0, most + 1, step))
