"""The pictures of the benchmarks show every library and every size that was recorded."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from benchmarks.harness import FOLDER
from scripts.pictures import LEFT, RIGHT, WIDTH, pictures

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


def test_the_longest_bar_is_the_highest_rate() -> None:
    compare = recorded("compare")
    rates = [
        figures["rate"]
        for figures in compare["figures"].values()
        if isinstance(figures, dict) and "rate" in figures
    ]
    bars = [float(bar.attrib["width"]) for bar in drawn()["benchmark-rate"].iter(f"{SVG}rect")][1:]
    assert max(bars) == RIGHT - LEFT
    assert sorted(range(len(bars)), key=bars.__getitem__) == sorted(
        range(len(rates)), key=rates.__getitem__
    )


def test_a_library_that_was_not_measured_has_no_row() -> None:
    compare = recorded("compare")
    names = [row[0] for row in compare["tables"]["alternatives"][1:]]
    compare["figures"]["rensa"] = {"missing": "not measured: no such module"}
    compare["tables"]["alternatives"] = [[name] for name in ["", *names] if name != "rensa"]
    for name, svg in pictures(compare, recorded("scale")).items():
        assert "rensa" not in svg, name


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
