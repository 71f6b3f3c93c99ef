"""Plots show all that was measured, and their labels do not overlap."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest

from tests.support.sampling import sample
from textsim_db.results import RecallReport, Statistics
from textsim_db.results.reports import Frequency, Growth
from textsim_db.settings.choose_bands import Bands
from textsim_db.sketch import recall_plots

pytestmark = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is missing")

LEAST_GAPS = {"x": 4, "y": 0}
"""The pixels between two labels; side by side, they need about half a digit."""


def make_report(histogram: list[int]) -> RecallReport:
    pairs = sum(histogram)
    return RecallReport(
        *(0.8, 1400, 0, 60.0, 400, pairs, pairs, 1.0, (0.9, 1.0), 0.99),
        *(histogram, histogram, [1], [], [], []),
    )


def make_statistics(scale: int, word: str = "a") -> Statistics:
    """Return statistics of a corpus whose numbers are about as large as scale."""
    return Statistics(
        recall=0.95,
        documents=scale,
        empty=0,
        words=60 * scale,
        vocabulary=scale,
        growth=[Growth(i * scale, 3 * i * scale, i * scale) for i in range(1, 21)],
        frequent=[Frequency(word * (i + 1), scale * 9 // (i + 1), scale) for i in range(20)],
        languages={},
        lengths={},
        sampled=1000,
        candidates=scale,
        similarities=[scale * i for i in range(100)],
        buckets=[
            (size, 18 * scale // size) for size in (1, 2, 3, 50, 700, 20_000)[: 2 + scale % 7]
        ],
        storage={},
    )


def shown_labels(axis: Any) -> list[Any]:
    """Return the boxes of the labels of an axis that are inside of it."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    labels = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    return [label.get_window_extent() for label in labels if label.get_text()]


@pytest.mark.parametrize("scale", sample([1, 40, 1_400, 17_000, 210_833, 31_415_926], 6))
def test_labels_of_a_corpus_do_not_overlap(scale: int) -> None:
    figure = recall_plots.corpus_figure("a $name$ of a corpus", make_statistics(scale))
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis, side in ((axes.xaxis, "x"), (axes.yaxis, "y")):
            boxes = shown_labels(axis)
            assert len(boxes) >= 1, (axes.get_title(), side)
            boxes.sort(key=lambda box: getattr(box, f"{side}0"))
            for box, following in pairwise(boxes):
                gap = getattr(following, f"{side}0") - getattr(box, f"{side}1")
                assert gap >= LEAST_GAPS[side], (axes.get_title(), side, scale)


def test_the_curve_has_all_pairs_those_of_similarity_1_too() -> None:
    histogram = [i % 5 for i in range(100)] + [424]
    figure = recall_plots.s_curve_figure([Bands(18, 7)], 0.8, make_report(histogram))
    figure.draw_without_rendering()
    curve, pairs = figure.axes
    low, high = curve.get_xlim()
    shown = [b for b in pairs.patches if low <= b.get_x() and b.get_x() + b.get_width() <= high]
    assert sum(bar.get_height() for bar in shown) == sum(histogram)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "pairs of similarity 1: 424" in labels
    assert not figure.legends[0].get_window_extent().overlaps(curve.get_window_extent())
