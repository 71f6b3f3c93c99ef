"""Excerpts and folded runs end at the borders of words."""

from __future__ import annotations

import random
import re

from textsim_db.diff.marked_parts import compare_starts, excerpts_side_by_side
from textsim_db.diff.word_diff import Change
from textsim_db.review.reviewed import Text
from textsim_db.review.side_by_side import begin_of, compare_texts, summary


def test_excerpts_end_at_word_borders(rng: random.Random) -> None:
    words = [f"{'w' * rng.randrange(1, 12)}{i}" for i in range(60)]
    changed = [*words[:30], "changed", *words[31:]]
    a, b = (Text(" ".join(each), True) for each in (words, changed))
    parts = summary(a, b).excerpt
    assert [change for change, _ in parts] == [
        Change.SAME,
        Change.REMOVED,
        Change.ADDED,
        Change.SAME,
    ]
    assert parts[0][1].startswith("… ")
    assert parts[3][1].endswith(" …")
    shown = [word for _, part in parts for word in part.split() if word != "…"]
    assert set(shown) <= {*words, "changed"}
    start = words.index(shown[0])
    assert shown == [*words[start:31], "changed", *words[31 : start + len(shown) - 1]]
    *begin, end = begin_of(a).split()
    assert begin == words[: len(begin)]
    assert end == "…"


def test_an_excerpt_says_that_the_texts_go_on() -> None:
    a, b = (
        Text("one old word, and another old word", True),
        Text("one word, and another word", True),
    )
    assert summary(a, b).excerpt[-1] == (Change.SAME, "…")
    assert not any("…" in part for _, part in summary(a, Text(f"new {a.text}", True)).excerpt)


def test_a_word_without_a_border_is_cut() -> None:
    excerpt = summary(Text("x" * 500, True), Text("y" * 500, True)).excerpt
    assert [part for _, part in excerpt] == [f"{'x' * 90} …", f"{'y' * 90} …"]


def test_folded_runs_end_at_word_borders(rng: random.Random) -> None:
    words = [f"{'w' * rng.randrange(1, 12)}{i}" for i in range(400)]
    changed = [*words[:200], *(f"new{i}" for i in range(200)), *words[200:]]
    a, b = (rng.choice(" \n\t").join(each) for each in (words, changed))
    for run in compare_texts(Text(a, True), Text(b, True)).right:
        assert {*run.head.split(), *run.hidden.split(), *run.tail.split()} <= {*changed}
    html = excerpts_side_by_side(compare_starts(a, b).parts, "", "")
    shown = re.sub("<i .*?</i>|<[^>]+>", " ", html).split()
    assert {*shown} <= {*changed}
    assert {words[0], words[199], words[200], "new0"} <= {*shown}


def test_a_long_word_is_cut() -> None:
    runs = compare_texts(Text("x" * 1000, True), Text("x" * 1000, True)).left
    assert [(len(run.head), len(run.hidden), len(run.tail)) for run in runs] == [(200, 600, 200)]
