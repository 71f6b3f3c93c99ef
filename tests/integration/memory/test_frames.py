"""Frames in and out: documents, queries, results, and frames without their near-duplicates."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from textsim_db.dedupe.dedupe_frame import RemovedRow
from textsim_db.results import Pair, QueryMatch, Refusal

KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "Polars": lambda table: pl.DataFrame(table),
    "PyArrow": lambda table: table,
    "PyArrow's reader": lambda table: table.to_reader(),
    "DuckDB": lambda table: duckdb.from_arrow(table),
}
"""Makes a frame of each kind from a table."""


@pytest.fixture
def stored(rng: random.Random) -> dict[str, str]:
    return dict(documents(400, words=20, planted=0.5, seed=rng.randrange(10**6)))


@pytest.fixture
def corpus(corpus_db: ts.Database, stored: dict[str, str]) -> ts.Corpus:
    corpus = corpus_db.create_corpus("c", shingle="word:1", threshold=0.5, recall=0.9)
    corpus.add_many(stored)
    return corpus


@pytest.fixture
def queries(rng: random.Random, stored: dict[str, str]) -> pa.Table:
    """Texts of which some have several matches, and two have none."""
    texts = [*rng.sample(list(stored.values()), 100), "", "no such words"]
    places = rng.sample(range(10**6), len(texts))
    return pa.table({"other": [{"a": [1]}] * len(texts), "n": places, "body": texts})


@pytest.mark.parametrize("method", ["pairs", "clusters", "duplicates"])
def test_a_result_is_the_same_as_tuples_and_as_a_frame(corpus: ts.Corpus, method: str) -> None:
    results = getattr(corpus, method)
    rows = list(results())
    assert len(rows) > 20
    expected = [list(row) if method != "clusters" else [list(row[0]), *row[1:]] for row in rows]
    frames = {
        "PyArrow": results().to_arrow().to_pylist(),
        "its constructor": pa.table(results()).to_pylist(),
        "Polars": pl.DataFrame(results()).to_dicts(),
        "DuckDB": duckdb.from_arrow(results()).to_arrow_table().to_pylist(),
    }
    for name, dicts in frames.items():
        assert [list(each) for each in dicts] == [list(rows[0]._fields)] * len(rows), name
        assert [list(each.values()) for each in dicts] == expected, name
    assert len(pd.DataFrame.from_arrow(results())) == len(rows)


def test_a_result_without_rows_has_columns(corpus_db: ts.Database) -> None:
    corpus = corpus_db.create_corpus("empty")
    assert pl.DataFrame(corpus.pairs()).schema == {
        "a": pl.String,
        "b": pl.String,
        "similarity": pl.Float64,
    }
    clusters = pl.DataFrame(corpus.clusters())
    assert clusters.schema["keys"] == pl.List(pl.String)
    assert len(clusters) == 0
    frame = pl.DataFrame(
        {"n": pl.Series([], dtype=pl.Int32), "body": pl.Series([], dtype=pl.String)}
    )
    matches = pl.DataFrame(corpus.query_many(frame, text="body", key="n"))
    assert matches.schema["query"] == pl.Int32
    assert len(matches) == 0


def test_each_frame_of_a_result_has_all_rows(corpus: ts.Corpus) -> None:
    results = corpus.pairs()
    first = next(results)
    table = results.to_arrow()
    assert results.to_arrow() == table
    assert [first, *results] == [Pair(**row) for row in table.to_pylist()]
    assert list(results) == []


def test_a_result_that_is_left_ends_its_transaction(
    corpus: ts.Corpus, corpus_db: ts.Database
) -> None:
    pool: Any = corpus_db.engine.pool
    closed, dropped = corpus.pairs(), corpus.pairs()
    reader = pa.RecordBatchReader.from_stream(corpus.pairs())
    reader.read_next_batch()
    next(closed), next(dropped)
    assert pool.checkedout() == 3
    closed.close()
    assert list(closed) == []
    del dropped, reader
    gc.collect()
    assert pool.checkedout() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_matches_of_a_frame_are_those_of_its_texts(
    corpus: ts.Corpus, queries: pa.Table, kind: str
) -> None:
    texts, keys = queries["body"].to_pylist(), queries["n"].to_pylist()
    lists = corpus.query_many(texts, max_results=3)
    assert sum(map(len, lists)) > len(texts)
    for key, names in ((None, range(len(texts))), ("n", keys)):
        frame = KINDS[kind](queries)
        results = corpus.query_many(frame, max_results=3, text="body", key=key)
        expected = [
            QueryMatch(name, match.key, match.similarity)
            for name, matches in zip(names, lists, strict=True)
            for match in matches
        ]
        assert list(results) == expected
        assert results.to_arrow().to_pylist() == [row._asdict() for row in expected]


def test_the_rows_of_queries_keep_their_names(corpus: ts.Corpus, queries: pa.Table) -> None:
    texts = queries["body"][:2]
    for values, kind in (
        (["x", "y"], pl.String),
        (["x", "y"], pl.Categorical),
        ([3, 2], pl.Int16),
        ([1.5, 2.5], pl.Float64),
    ):
        frame = pl.DataFrame({"id": pl.Series(values, dtype=kind), "body": pl.Series(texts)})
        matches = pl.DataFrame(corpus.query_many(frame, text="body", key="id"))
        assert set(matches["query"]) == set(values)
        assert matches.join(
            frame.cast({"id": matches.schema["query"]}), left_on="query", right_on="id"
        ).height


FAULTS: list[tuple[dict[str, list[Any]], dict[str, str], str]] = [
    (
        {"id": [1, 2], "body": ["a", None]},
        {"text": "body"},
        'column "body", row 1: the text is null',
    ),
    ({"id": [1, 2], "body": ["a", "b\0"]}, {"text": "body"}, 'column "body", row 1: .* NUL'),
    (
        {"id": [1, None], "body": ["a", "b"]},
        {"text": "body", "key": "id"},
        'column "id", row 1: the key is null',
    ),
    (
        {"id": [1, 2], "body": ["a", "b"]},
        {"text": "id"},
        "'id' is a column of int64; expected a col",
    ),
    (
        {"id": [1, 2], "body": ["a", "b"]},
        {"text": "boddy"},
        "text='boddy' names no column; expected one of 'id', 'body'; did you mean \"body\"",
    ),
    ({"id": [1, 2], "body": ["a", "b"]}, {"text": "body", "key": "no"}, "key='no' names no column"),
    ({"id": [1, 2], "body": ["a", "b"]}, {}, "text= is missing"),
    ({"id": [1, 2], "body": ["a", "b"]}, {"key": "id"}, "text= is missing"),
]


def test_a_fault_of_a_frame_of_queries_is_named(corpus: ts.Corpus) -> None:
    query_many: Any = corpus.query_many
    for values, names, message in FAULTS:
        for make in KINDS.values():
            if make is KINDS["pandas"] and None in values["id"]:
                continue  # pandas makes a column of floats of it, which has no null in Arrow
            with pytest.raises((ts.DocumentError, ts.ConfigurationError), match=message):
                query_many(make(pa.table(values)), **names)


def test_names_of_columns_belong_to_frames(corpus: ts.Corpus) -> None:
    query_many: Any = corpus.query_many
    for texts in (["a"], pl.Series(["a"])):
        with pytest.raises(ts.ConfigurationError, match="text= and key="):
            query_many(texts, text="body")
    assert query_many(text for text in ["a", "b"]) == query_many(["a", "b"]) == [[], []]
    with pytest.raises(ts.ConfigurationError, match="max_results is 0; expected 1 or more"):
        query_many(["a"], max_results=0)
    same = list(query_many(pl.DataFrame({"body": ["a"]}), text="body", key="body"))
    assert same == []
    mixed = pd.DataFrame({"id": [1, "a"], "body": ["a", "b"]})
    with pytest.raises(ts.ConfigurationError, match="Conversion failed for column id"):
        query_many(mixed, text="body", key="id")


def test_a_frame_of_a_scoped_corpus_has_a_scope_for_each_row(corpus_db: ts.Database) -> None:
    corpus = corpus_db.create_corpus("s", shingle="word:1", scoped=True)
    frame = pl.DataFrame({"n": [5, 6], "who": ["x", "y"], "body": ["a text", "a text"]})
    assert corpus.add_many(frame, key="n", text="body", scope="who").added == 2
    matches = corpus.query_many(frame, text="body", key="n", scope=frame["who"].to_list())
    assert list(matches) == [QueryMatch(5, "5", 1.0), QueryMatch(6, "6", 1.0)]
    absent = frame.with_columns(who=pl.Series(["x", None]), n=pl.Series([7, 8]))
    report = corpus.add_many(absent, key="n", text="body", scope="who")
    assert [refusal.key for refusal in report.refused] == ["8"]
    assert report.refused[0].reason == 'column "who", row 1: the scope is null'


def test_a_fault_of_a_frame_of_documents_is_named(corpus: ts.Corpus) -> None:
    numbers = pa.table({"id": [1.5, 2.5], "body": ["a", "b"], "n": [1, 2]})
    for name in ("PyArrow", "DuckDB", "PyArrow's reader"):
        with pytest.raises(ts.ConfigurationError, match="text='n' is a column of int64; expected"):
            corpus.add_many(KINDS[name](numbers), key="id", text="n")
    for kind in KINDS.values():
        report = corpus.add_many(kind(numbers), key="id", text="body")
        assert report.refused[1].reason.startswith('column "id", row 1: the key is of type float')


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
    db.drop_corpus(corpus.name)
    return removed


@pytest.mark.parametrize("keep", ["first", "last", "longest", "max:score"])
def test_the_rows_that_stay_are_unchanged(
    corpus_db: ts.Database, frame: pl.DataFrame, keep: str
) -> None:
    removed = removed_by_hand(corpus_db, frame, keep)
    assert len(removed) > 50
    stays = [row not in removed for row in range(len(frame))]
    arguments: dict[str, Any] = {"text": "body", "keep": keep} | SETTINGS
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
    arguments: dict[str, Any] = {"text": "body"} | SETTINGS
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


@pytest.mark.parametrize("linkage", ["kept", "single"])
def test_all_rows_are_annotated(frame: pl.DataFrame, linkage: str) -> None:
    """cluster, size, kept and similarity follow from the report; keep_up_to keeps the least similar."""
    arguments: dict[str, Any] = {"text": "body", "keep": "longest", "linkage": linkage} | SETTINGS
    removed: dict[int, list[tuple[float, int]]] = {}
    for row in ts.dedupe_frame(frame, **arguments)[1].removed:
        removed.setdefault(row.kept, []).append((row.similarity, row.key))
    assert max(map(len, removed.values())) > 2
    for most in (1, 2, 3, 1000):
        rows: list[tuple[Any, ...]] = [(None, 1, True, None, None)] * len(frame)
        for cluster, (kept, members) in enumerate(sorted(removed.items()), start=1):
            rows[kept] = (cluster, len(members) + 1, True, None, str(kept))
            for place, (similarity, number) in enumerate(sorted(members), start=2):
                rows[number] = (cluster, len(members) + 1, place <= most, similarity, str(kept))
        stays = [row[2] for row in rows]
        unique, report = ts.dedupe_frame(frame, keep_up_to=most, **arguments)
        assert unique.equals(frame.filter(stays))
        assert report.kept == sum(stays)
        for given in (frame, frame.to_pandas(), frame.to_arrow()):
            out, report = ts.dedupe_frame(given, keep_up_to=most, annotate=True, **arguments)
            assert report.kept == sum(stays)
            out = pl.DataFrame(out) if not isinstance(out, pd.DataFrame) else pl.from_pandas(out)
            names = ["cluster", "size", "kept", "similarity", "kept_key"]
            assert out.columns == [*frame.columns, *names]
            assert out.select(names).rows() == rows
            assert out.dtypes[-5:] == [pl.Int64, pl.Int64, pl.Boolean, pl.Float64, pl.String]
            assert out["id"].to_list() == frame["id"].to_list()
    alone = pl.DataFrame({"body": ["some text", None]})
    for given in (alone, alone.to_arrow(), alone.to_pandas()):
        out, _ = ts.dedupe_frame(given, "body", annotate=True)
        assert pl.DataFrame(out).rows()[1] == (None, None, 1, True, None, None)
        each, _ = ts.dedupe_frame(given, "body", annotate=True, clusters_of_one=True)
        assert [row[1] for row in pl.DataFrame(each).rows()] == [1, 2]
        with pytest.raises(
            ts.ConfigurationError, match='adds a column "cluster", but the frame has'
        ):
            ts.dedupe_frame(out, "body", annotate=True)


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
        RemovedRow("a", None, "news", "n", 1.0),
        RemovedRow("c", None, "other", "o", 0.8),
        RemovedRow("d", "b", None, None, 1.0),
    ]
    assert [refusal.key for refusal in report.refused] == ["e"]
    annotated, _ = ts.dedupe_frame(frame, "body", against=[news, other], annotate=True)
    assert annotated.select("cluster", "size", "kept", "similarity").rows() == [
        (2, 2, False, 1.0),
        (1, 2, True, None),
        (3, 2, False, 0.8),
        (1, 2, False, 1.0),
        (None, 1, True, None),
    ]
    assert ts.dedupe_frame(frame, "body", "id", against=news)[1].kept == 3
    assert list(corpus_db.corpora()) == ["news", "other"]


def test_rows_that_cannot_be_compared_stay(corpus_db: ts.Database) -> None:
    for frame in (
        pl.DataFrame({"id": ["a", None, "c"], "body": ["a text", None, "a text"]}),
        pd.DataFrame({"id": ["a", None, "c"], "body": ["a text", float("nan"), "a text"]}),
    ):
        unique, report = ts.dedupe_frame(frame, "body", "id")
        assert len(unique) == 2
        assert report.refused == [Refusal("None", 'column "body", row 1: the text is null')]
        assert pl.DataFrame(report.removed)["key"].to_list() == ["c"]
    empty, report = ts.dedupe_frame(frame[:0], "body", "id")
    assert (len(empty), report.rows, report.removed.to_arrow().num_rows) == (0, 0, 0)


WRONG_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"text": "boddy"}, "text='boddy' names no column; .*did you mean \"body\""),
    ({"key": "no"}, "key='no' names no column"),
    ({"scope": "no"}, "scope='no' names no column"),
    ({"keep": "max:no"}, "keep='no' names no column"),
    *(
        ({"keep": keep}, "keep is .*; expected first, last")
        for keep in ("best", 3, None, ["first"])
    ),
    ({"linkage": "none"}, "linkage"),
    ({"keep_up_to": 0}, "keep_up_to is 0; expected 1 or more"),
    ({"keep_up_to": "2"}, "keep_up_to is '2'; expected a whole number"),
    ({"threshold": 2}, "threshold"),
]


def test_wrong_arguments_are_named(corpus_db: ts.Database, frame: pl.DataFrame) -> None:
    for arguments, message in WRONG_ARGUMENTS:
        wrong: dict[str, Any] = {"text": "body"} | arguments
        for each in (frame, frame.to_arrow()):
            with pytest.raises(ts.ConfigurationError, match=message):
                ts.dedupe_frame(each, **wrong)


def test_an_object_that_makes_a_frame_is_refused_with_its_method(
    corpus: ts.Corpus, corpus_db: ts.Database, frame: pl.DataFrame
) -> None:
    class Dataset:
        def to_polars(self) -> pl.DataFrame:
            return frame

    makers: list[tuple[Any, str]] = [(frame.lazy(), "collect"), (Dataset(), "to_polars")]
    makers.append((pyarrow.dataset.dataset(frame.to_arrow()), "to_table"))
    for maker, method in makers:
        calls: list[Any] = [
            lambda maker: ts.dedupe_frame(maker, "body"),
            lambda maker: corpus.query_many(maker, text="body"),
            lambda maker: corpus.add_many(maker, key="id", text="body"),
        ]
        for call in calls:
            with pytest.raises(ts.ConfigurationError, match=rf"pass its \.{method}\(\)"):
                call(maker)


def test_keys_that_come_twice_are_refused(corpus_db: ts.Database) -> None:
    """A join by such a key would remove the kept row too."""
    for ids, value in ([1, 2, 1], "1"), (["x", None, "x"], "x"), ([0.5, 1.5, 0.5], "0.5"):
        frame = pl.DataFrame({"id": ids, "body": ["some text"] * 3})
        for given in (frame, frame.to_arrow(), frame.to_pandas()):
            with pytest.raises(ts.ConfigurationError, match=f"rows 0 and 2 alike, {value}; name"):
                ts.dedupe_frame(given, "body", key="id")
    nulls = pl.DataFrame({"id": [1, None, None], "body": ["some text"] * 3})
    for given in (nulls, nulls.to_arrow(), nulls.to_pandas()):
        assert ts.dedupe_frame(given, "body", key="id")[1].kept == 1


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
        ts.dedupe_frame(frame["body"], "body")
    with pytest.raises(ts.ConfigurationError, match="of type list; expected a data frame"):
        ts.dedupe_frame(frame.to_dicts(), "body")
    for against in ("c", ["c"], [corpus, None]):
        with pytest.raises(ts.ConfigurationError, match="expected a corpus such as"):
            ts.dedupe_frame(frame, "body", against=against)  # type: ignore[arg-type]
