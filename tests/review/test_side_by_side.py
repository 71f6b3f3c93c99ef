"""The excerpts of lists."""

from __future__ import annotations

import random

from textsim_db.diff.word_diff import Change
from textsim_db.review.reviewed import Text
from textsim_db.review.side_by_side import begin_of, summary


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
