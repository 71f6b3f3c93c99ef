"""Results show themselves in notebooks, and bars show progress."""

from __future__ import annotations

import copy
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import textsim_db as ts
from tests.support.commands import replace_standard_error
from tests.support.html import Html
from tests.support.review import HOSTILE
from textsim_db.results import Refusal
from textsim_db.results.html import SHOWN_ROWS, ResultList

WORDS = " ".join(f"word{i}" for i in range(30))


def shown(value: Any) -> Html:
    html = value._repr_html_()
    assert not re.search(r"https?:|url\(|@import", html)
    output = Html(html)
    assert output.unclosed == []
    assert {"script", "img", "iframe", "link", "textarea", "title"}.isdisjoint(output.tags)
    names = {name for element in output.elements for name in element.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "href")]
    return output


def test_every_result_shows_itself(corpus: ts.Corpus) -> None:
    corpus.add_many(
        {"a": WORDS, "b": f"{WORDS} today", "c": f"{WORDS} tomorrow", "d": "other words"}
    )
    assert "key" in shown(corpus.query(WORDS)).text
    assert len(shown(corpus.query(WORDS)).rows) == 4
    assert shown(corpus.query("nothing else")).text.strip() == "no rows"
    assert len(shown(corpus.candidates(WORDS)).rows) == 4
    assert len(shown(corpus.neighbours("a")).rows) == 3
    assert "query" in shown(corpus.query_many([WORDS, "x", WORDS])).text
    assert len(shown(corpus.query_many([WORDS, "x", WORDS])).rows) == 7
    assert "no rows for 2 queries" in shown(corpus.query_many(["x", "y"])).text
    assert "weakest member" in shown(corpus.inspect_clusters()).text.replace("_", " ")
    (cluster,) = corpus.clusters(linkage="kept")
    assert "3 documents, the weakest link 0." in shown(cluster).text
    assert "kept" in shown(cluster).text
    statistics = shown(corpus.statistics())
    assert "word1" in statistics.text
    comparison = corpus.explain("b", "c")
    assert "<del>today</del>" in comparison._repr_html_()
    assert "<ins>tomorrow</ins>" in comparison._repr_html_()
    assert "jaccard, of shingles" in shown(comparison).text
    assert "<b><bdi>b</bdi></b>" in comparison._repr_html_()
    assert "<b><bdi>c</bdi></b>" in comparison._repr_html_()
    assert "differ only in numbers" in shown(ts.explain(f"{WORDS} 1", f"{WORDS} 2")).text


def test_differences_of_many_pairs_are_those_of_explain(
    corpus: ts.Corpus, rng: random.Random
) -> None:
    words = [f"w{i}" for i in range(30)]
    corpus.add_many({i: " ".join(rng.sample(words, 20)) for i in range(40)})
    given = [(rng.randrange(40), rng.randrange(40)) for _ in range(1_200)]
    found = list(corpus.differences(given))
    assert [(each.a, each.b) for each in found] == [(str(a), str(b)) for a, b in given]
    for each in found[:20] + found[-20:]:
        explained = corpus.explain(each.a, each.b)
        assert (each.diff, each.distinctions) == (explained.diff, explained.distinctions)
    assert [each[:2] for each in corpus.differences(corpus.pairs(0.1))] == [
        pair[:2] for pair in corpus.pairs(0.1)
    ]
    with pytest.raises(ts.DocumentNotFound, match="no document 'x'"):
        list(corpus.differences([(1, 2), (1, "x")]))
    for wrong in ("ab", (1,), 5):
        with pytest.raises(ts.ConfigurationError, match="expected two keys"):
            list(corpus.differences([wrong]))  # type: ignore[list-item]


def test_a_recall_report_shows_its_curve(db: ts.Database) -> None:
    for recall in (0.9, 1):
        corpus = db.create_corpus(f"c{recall}", threshold=0.7, recall=recall)
        corpus.add_many({"a": WORDS, "b": f"{WORDS} today"})
        report = corpus.measure_recall()
        assert report.curve == [corpus.config.probability(i / 100) for i in range(101)]
        assert report.curve[-1] == 1
        assert "<polyline" in report._repr_html_()
        assert "pairs found" in shown(report).text
        assert len(repr(report)) < 700
        assert f"recall={report.recall}" in repr(report)
        assert "histogram=<101 values>" in repr(report)
    statistics = corpus.statistics()
    assert len(repr(statistics)) < 1000
    assert "similarities=<100 values>" in repr(statistics)
    assert len(repr(ts.explain(WORDS, f"{WORDS} today"))) < 2000


def test_an_iterator_of_results_is_shown_without_losing_rows(corpus: ts.Corpus) -> None:
    corpus.add_many({f"k{i}": f"{WORDS} {i}" for i in range(10)})
    pairs = corpus.pairs()
    assert repr(pairs) == "<Results of Pair>"
    first = next(pairs)
    output = shown(pairs)
    assert len(output.rows) == SHOWN_ROWS + 1
    assert f"the first {SHOWN_ROWS} rows and there are more" in output.text
    assert len([first, *pairs]) == 45
    assert len(shown(corpus.duplicates()).rows) == 10
    assert len(shown(corpus.clusters()).rows) == 2


def test_hostile_keys_and_texts_do_nothing(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5)
    keys = [f"{i}{text}" for i, text in enumerate(HOSTILE)]
    corpus.add_many({key: f"{key} {WORDS}" for key in keys})
    clusters = list(corpus.clusters())
    comparison = ts.explain(" ".join(HOSTILE), "<img src=y> \u202eother")
    values: list[Any] = [
        corpus.query(WORDS),
        corpus.pairs(),
        clusters[0],
        corpus.statistics(),
        comparison,
    ]
    for value in values:
        assert "\u202e" not in value._repr_html_()
        shown(value)
    assert "U+202Egnp.exe" in shown(corpus.query(WORDS)).text


def test_reports_show_what_was_refused(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    report = corpus.add_many([("a", WORDS), *((f"<b>{i}", "\0") for i in range(100))])
    assert len(repr(report)) < 4000
    assert "... and 90 more]" in repr(report)
    assert "<b>0" in shown(report).text
    assert "the first 20 rows of 100" in shown(report).text
    frame = pl.DataFrame({"text": [WORDS, WORDS, "\0", "other words"]})
    _, of_frame = ts.dedupe_frame(frame, text="text")
    assert repr(of_frame).endswith("refused=<1 row>, without_words=0, similar_scopes=[])")


def test_a_list_of_results_is_a_list() -> None:
    rows = ResultList(Refusal(str(i), "<i>") for i in range(1000))
    assert rows == [Refusal(str(i), "<i>") for i in range(1000)]
    assert isinstance(rows, list)
    assert repr(rows).count("Refusal(") == 10
    assert repr(rows).endswith(", ... and 990 more]")
    assert repr(ResultList(rows[:2])) == repr(list(rows)[:2])
    assert isinstance(rows[3:5], ResultList)
    assert rows[3].key == "3"
    for other in (pickle.loads(pickle.dumps(rows)), copy.copy(rows), copy.deepcopy(rows)):
        assert (type(other), other) == (ResultList, rows)
    assert len(shown(rows).rows) == SHOWN_ROWS + 1
    long = shown(ResultList([Refusal("k" * 10_000, "r")]))
    assert len(long.text) < 1000
    assert "… 9,700 characters …" in long.text


TEXTS = {"a": "the city council approved the new budget", "b": "nothing of the kind"}


def index(db: ts.Database) -> None:
    db.create_corpus("indexed").add_many(TEXTS, progress=True)


def compare(db: ts.Database) -> None:
    frame = pl.DataFrame({"text": list(TEXTS.values())})
    ts.dedupe_frame(frame, text="text", progress=True)


def rebuild(db: ts.Database) -> None:
    corpus = db.create_corpus("rebuilt")
    corpus.add_many(TEXTS)
    corpus.rebuild(progress=True, threshold=0.5)


@pytest.mark.parametrize(
    ("work", "expected"),
    [(index, "2 documents"), (compare, "2 rows"), (rebuild, "2 of 2 documents")],
)
def test_a_bar_shows_the_progress(
    db: ts.Database,
    work: Callable[[ts.Database], None],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = replace_standard_error(monkeypatch)
    work(db)
    assert expected in terminal.getvalue()
