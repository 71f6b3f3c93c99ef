"""Plots and the pictures of the benchmarks show all that was measured, and labels do not overlap."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.harness import FOLDER
from scripts.pictures import WIDTH, pictures
from tests.support.sampling import sample
from textsim_db.results import Frequency, Growth, RecallReport, Statistics
from textsim_db.settings.choose_bands import Bands
from textsim_db.sketch import recall_plots

pytest.importorskip("matplotlib")

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
    return [
        tick.label1.get_window_extent()
        for tick in ticks
        if low <= tick.get_loc() <= high and tick.label1.get_text()
    ]


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
    bars = [
        bar for bar in pairs.patches if low <= bar.get_x() and bar.get_x() + bar.get_width() <= high
    ]
    assert sum(bar.get_height() for bar in bars) == sum(histogram)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "pairs of similarity 1: 424" in labels
    assert not figure.legends[0].get_window_extent().overlaps(curve.get_window_extent())


SVG = "{http://www.w3.org/2000/svg}"
LETTER = {"title": 10.5, "soft": 7.2, "": 8.0}
"""Pixels of a letter in a wide font, by the kind of a text."""


def recorded(name: str) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return contents


def drawn() -> dict[str, ElementTree.Element]:
    made = pictures(recorded("compare"), recorded("scale"))
    return {name: ElementTree.fromstring(svg) for name, svg in made.items()}


def texts(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text")]


def test_each_library_has_a_row_with_its_figures() -> None:
    compare = recorded("compare")
    names = [row[0] for row in compare["tables"]["alternatives"][1:]]
    ours = compare["figures"]["textsim_db"]
    shown = drawn()
    for name in ("benchmark-rate", "benchmark-latency", "benchmark-recall"):
        assert [text for text in texts(shown[name]) if text in names] == names, name
    assert f"{ours['rate']:,.0f}" in texts(shown["benchmark-rate"])
    assert f"{ours['recall']:.3f}, {ours['precision']:.2f}" in texts(shown["benchmark-recall"])


def test_texts_stay_inside_and_do_not_overlap() -> None:
    for name, picture in drawn().items():
        boxes: dict[float, list[tuple[float, float, str]]] = {}
        for text in picture.iter(f"{SVG}text"):
            kind = text.attrib["class"]
            letter = next(pixels for name, pixels in LETTER.items() if name in kind)
            width = letter * len(text.text or "")
            shift = width if "end" in kind else width / 2 if "middle" in kind else 0
            left = float(text.attrib["x"]) - shift
            boxes.setdefault(float(text.attrib["y"]), []).append(
                (left, left + width, str(text.text))
            )
        for line in boxes.values():
            ends = sorted(line)
            assert ends[0][0] >= 0, (name, ends)
            assert ends[-1][1] <= WIDTH, (name, ends)
            assert all(a[1] <= b[0] for a, b in pairwise(ends)), (name, ends)


def test_a_picture_loads_nothing() -> None:
    for name, picture in drawn().items():
        text = ElementTree.tostring(picture, "unicode")
        assert not re.search(r"href|url\(|@import|<script", text), name
