"""The page of precision: a verdict on the threshold in use, and the commands that follow."""

from __future__ import annotations

import re
from html import unescape

import pytest

import textsim_db as ts
from tests.review.conftest import Open

PAIRS = 25
TURN = 12
"""Pairs with fewer different words are the same."""


@pytest.fixture
def graded(db: ts.Database) -> ts.Corpus:
    """A corpus of pairs, of which number i has i of 50 words changed."""
    corpus = db.create_corpus("graded", threshold=0.3, recall=1.0, shingle="word:1")
    for i in range(PAIRS):
        words = [f"p{i}w{j}" for j in range(50)]
        corpus.add(f"a{i:02}", " ".join(words))
        corpus.add(f"b{i:02}", " ".join(words[i:] + [f"p{i}x{j}" for j in range(i)]))
    return corpus


def test_without_judgements_nobody_can_say(graded: ts.Corpus, open_review: Open) -> None:
    page = words(open_review(graded).get("/precision").text)
    assert "Nobody can say yet whether the threshold in use, 0.30, is good" in page
    assert "judgements are used" not in page
    assert "textsim" not in page


def test_the_page_begins_with_a_verdict(graded: ts.Corpus, open_review: Open) -> None:
    for i in range(PAIRS):
        graded.judge(f"a{i:02}", f"b{i:02}", "same" if i < TURN else "different")
    graded.judge("a00", "b00", "unsure", replaces="same")
    graded.judge("a00", "b01", "different")
    page = words(open_review(graded).get("/precision").text)
    assert "The threshold 0.63 is better than 0.30, which is in use." in page
    assert "This is not settled yet" in page
    assert (
        "24 of 26 judgements are used here. Left out: 1 unsure, 1 of pairs that were not read."
        in page
    )
    assert "100 % (95 % interval:" in page
    order = ["is better than", "Judge more", "textsim rebuild graded --threshold 0.63"]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert "It replaces the index; searches go on" in page
    assert "It changes nothing" in page


def test_a_good_threshold_is_called_good(graded: ts.Corpus, open_review: Open) -> None:
    for i in range(PAIRS):
        graded.judge(f"a{i:02}", f"b{i:02}", "same" if i < PAIRS - 1 else "different")
    page = words(open_review(graded).get("/precision").text)
    assert "The threshold in use, 0.30, is good: none is clearly better." in page


def words(page: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", "", page)).split())
