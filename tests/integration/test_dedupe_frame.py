"""dedupe_frame() returns a frame of the kind that went in, without its near-duplicates, and a report."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import textsim_db as ts
from benchmarks.generate import documents

SETTINGS: dict[str, Any] = {"shingle": "word:1", "threshold": 0.5, "recall": 0.99}


@pytest.fixture
def frame(rng: random.Random) -> pl.DataFrame:
    """A frame with near-duplicates, whose other columns have nulls and lists."""
    rows = list(documents(300, words=20, planted=0.4, seed=rng.randrange(10**6)))
    return pl.DataFrame(
        {
            "score": [rng.choice([None, 1.5, 2.5, 3.5]) for _ in rows],
            "id": rng.sample(range(10**6), len(rows)),
            "body": [text for _, text in rows],
            "tags": [rng.choice([None, [], ["x", None]]) for _ in rows],
            "who": [rng.choice("xy") for _ in rows],
        }
    )


def removed_by_hand(db: ts.Database, frame: pl.DataFrame, keep: str) -> dict[int, int]:
    """Return the kept row of each row to remove, found by a corpus of the frame."""
    size = len(frame)
    scores = [-1.0 if score is None else score for score in frame["score"]]
    ranks: dict[str, Callable[[int], Any]] = {
        "first": lambda row: row,
        "last": lambda row: -row,
        "longest": lambda row: (-len(frame["body"][row]), row),
        "max:score": lambda row: (-scores[row], row),
    }
    corpus = db.create_corpus("by hand", **SETTINGS)
    corpus.add_many((row, frame["body"][row]) for row in range(size))
    rows = corpus.duplicates(rank=lambda key: ranks[keep](int(key)))
    removed = {int(each.key): int(each.kept) for each in rows}
    corpus.drop()
    return removed


@pytest.mark.parametrize("keep", ["first", "last", "longest", "max:score"])
def test_the_rows_that_stay_are_unchanged(
    corpus_db: ts.Database, frame: pl.DataFrame, keep: str
) -> None:
    removed = removed_by_hand(corpus_db, frame, keep)
    assert len(removed) > 50
    stays = [row not in removed for row in range(len(frame))]
    arguments: dict[str, Any] = {"text": "body", "keep": keep, "database": corpus_db} | SETTINGS
    unique, report = ts.dedupe_frame(frame, **arguments)
    assert unique.equals(frame.filter(stays))
    assert (report.rows, report.kept) == (len(frame), sum(stays))
    rows = list(report.removed)
    assert {row.key: row.kept for row in rows} == removed
    assert [row.key for row in rows] == sorted(removed)
    assert {(row.corpus, row.document) for row in rows} == {(None, None)}
    assert min(row.similarity for row in rows) >= 0.5
    ids = frame["id"]
    _, named = ts.dedupe_frame(frame, key="id", **arguments)
    table = pl.DataFrame(named.removed)
    assert table["key"].to_list() == [ids[row.key] for row in rows]
    assert table["kept"].to_list() == [ids[row.kept] for row in rows]
    assert table.schema["key"] == pl.Int64


def test_a_frame_comes_out_as_its_kind(corpus_db: ts.Database, frame: pl.DataFrame) -> None:
    arguments: dict[str, Any] = {"text": "body", "database": corpus_db} | SETTINGS
    expected, _ = ts.dedupe_frame(frame, **arguments)
    places = pl.Series(range(len(frame)))
    pandas = frame.to_pandas().set_index(places.to_numpy() * 10)
    unique, report = ts.dedupe_frame(pandas, key="id", **arguments)
    assert isinstance(unique, pd.DataFrame)
    assert unique["id"].to_list() == expected["id"].to_list()
    pd.testing.assert_frame_equal(unique, pandas.loc[unique.index])
    assert set(pl.DataFrame(report.removed)["key"]) == set(frame["id"]) - set(expected["id"])
    table = frame.to_arrow()
    for given in (
        table,
        table.to_reader(),
        pa.concat_tables([table[:7], table[7:]]),
        duckdb.from_arrow(table),
        pa.table(frame),
    ):
        unique, report = ts.dedupe_frame(given, key="id", **arguments)
        assert isinstance(unique, pa.Table)
        assert unique.to_pylist() == expected.to_dicts()
        assert report.kept == len(expected)


def test_rows_of_two_scopes_do_not_match(corpus_db: ts.Database) -> None:
    frame = pl.DataFrame({"who": ["x", "y", "x", None], "body": ["one two three four"] * 4})
    unique, report = ts.dedupe_frame(frame, text="body", scope="who", database=corpus_db)
    assert unique["who"].to_list() == ["x", "y", None]
    assert list(report.removed) == [ts.RemovedRow(2, 0, None, None, 1.0)]
    assert report.refused == [ts.Refusal("3", 'column "who", row 3: the scope is null')]


def test_rows_that_match_a_corpus_are_removed(corpus_db: ts.Database) -> None:
    news = corpus_db.create_corpus("news", **SETTINGS)
    other = corpus_db.create_corpus("other", **SETTINGS)
    news.add("n", "one two three four")
    other.add("o", "five six seven eight")
    frame = pl.DataFrame(
        {
            "id": ["a", "b", "c", "d", "e"],
            "body": [
                "one two three four",
                "quite another text here",
                "five six seven eight nine",
                "quite another text here!",
                "\0",
            ],
        }
    )
    unique, report = ts.dedupe_frame(frame, "body", "id", against=[news, other])
    assert unique["id"].to_list() == ["b", "e"]
    assert list(report.removed) == [
        ts.RemovedRow("a", None, "news", "n", 1.0),
        ts.RemovedRow("c", None, "other", "o", 0.8),
        ts.RemovedRow("d", "b", None, None, 1.0),
    ]
    assert [refusal.key for refusal in report.refused] == ["e"]
    assert ts.dedupe_frame(frame, "body", "id", against=news)[1].kept == 3
    assert corpus_db.corpora() == ["news", "other"]


def test_rows_that_cannot_be_compared_stay(corpus_db: ts.Database) -> None:
    for frame in (
        pl.DataFrame({"id": ["a", None, "c"], "body": ["a text", None, "a text"]}),
        pd.DataFrame({"id": ["a", None, "c"], "body": ["a text", float("nan"), "a text"]}),
    ):
        unique, report = ts.dedupe_frame(frame, "body", "id", database=corpus_db)
        assert len(unique) == 2
        assert report.refused == [ts.Refusal("None", 'column "body", row 1: the text is null')]
        assert pl.DataFrame(report.removed)["key"].to_list() == ["c"]
    empty, report = ts.dedupe_frame(frame[:0], "body", "id", database=corpus_db)
    assert (len(empty), report.rows, report.removed.to_arrow().num_rows) == (0, 0, 0)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"text": "boddy"}, "text='boddy' names no column; .*did you mean \"body\""),
    ({"key": "no"}, "key='no' names no column"),
    ({"scope": "no"}, "scope='no' names no column"),
    ({"keep": "max:no"}, "keep='no' names no column"),
    ({"keep": "best"}, "expected first, last"),
    ({"linkage": "none"}, "linkage"),
    ({"threshold": 2}, "threshold"),
]


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_wrong_arguments_are_named(
    corpus_db: ts.Database, frame: pl.DataFrame, number: int
) -> None:
    arguments, message = FAULTS[number]
    wrong: dict[str, Any] = {"text": "body", "database": corpus_db} | arguments
    with pytest.raises(ts.ConfigurationError, match=message):
        ts.dedupe_frame(frame, **wrong)
    with pytest.raises(ts.ConfigurationError, match=message):
        ts.dedupe_frame(frame.to_arrow(), **wrong)


def test_a_corpus_has_its_settings(corpus_db: ts.Database, frame: pl.DataFrame) -> None:
    corpus = corpus_db.create_corpus("c")
    with pytest.raises(ts.ConfigurationError, match="leave out threshold"):
        ts.dedupe_frame(frame, "body", against=corpus, threshold=0.5)
    with pytest.raises(ts.ConfigurationError, match="scope"):
        ts.dedupe_frame(frame, "body", against=corpus, scope="who")
    with pytest.raises(TypeError, match='did you mean "threshold"'):
        ts.dedupe_frame(frame, "body", treshold=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="is_unique"):
        ts.dedupe_frame(frame, "body", is_unique=True)
    with pytest.raises(ts.ConfigurationError, match="expected a table with columns"):
        ts.dedupe_frame(frame["body"], "body", database=corpus_db)
