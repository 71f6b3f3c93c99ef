"""Functions that take several values, given a list, a column, a frame, or one value: none is silent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import textsim_db as ts
from textsim_db import measures
from textsim_db.errors import MeasureError
from textsim_db.results import Pair

TEXTS = ["one two three four", "one two three four five", "quite another text here"]
KEYS = ["a", "b", "none"]
PAIRS = [("a", "b")]
DOCUMENTS = [("a", TEXTS[0]), ("b", TEXTS[1])]

FUNCTIONS: dict[str, tuple[Callable[[ts.Corpus, Any], Any], list[Any]]] = {
    "pairs.texts": (lambda _, values: list(ts.pairs(values, threshold=0.5)), TEXTS),
    "clusters.texts": (lambda _, values: list(ts.clusters(values, threshold=0.5)), TEXTS),
    "pairs.settings": (lambda _, values: ts.pairs(TEXTS, stop_words=values), TEXTS),
    "group_pairs.pairs": (lambda _, values: ts.group_pairs(values), PAIRS),
    "group_pairs.order": (lambda _, values: ts.group_pairs(PAIRS, order=values), KEYS),
    "dedupe_frame.against": (
        lambda corpus, values: ts.dedupe_frame(pl.DataFrame({"x": TEXTS}), "x", against=values)[1],
        [],
    ),
    "query_many.texts": (
        lambda corpus, values: [
            match.key
            for each in corpus.query_many(values, 0.5)
            for match in (each if isinstance(each, list) else [each])
        ],
        TEXTS,
    ),
    "add_many.documents": (lambda corpus, values: corpus.add_many(values).unchanged, DOCUMENTS),
    "identify_languages.texts": (
        lambda _, values: [
            [found.code for found in each] for each in ts.identify_languages(values)
        ],
        TEXTS,
    ),
    "remove.keys": (lambda corpus, values: corpus.remove(values), KEYS),
    "forget.keys": (lambda corpus, values: corpus.forget(values, later=True).documents, KEYS),
    "contamination.records": (
        lambda corpus, values: [each.documents for each in corpus.contamination(values)],
        DOCUMENTS,
    ),
    "differences.pairs": (lambda corpus, values: list(corpus.differences(values)), PAIRS),
    "attach.key_columns": (
        lambda corpus, values: corpus.attach("no_table", key_columns=values, text="t"),
        ["a"],
    ),
    "characteristic_matrix.documents": (
        lambda _, values: measures.characteristic_matrix(values).matrix.toarray().tolist(),
        TEXTS,
    ),
    "signature_matrix.documents": (
        lambda _, values: measures.signature_matrix(values).tolist(),
        TEXTS,
    ),
    "pairwise_matrix.documents": (
        lambda _, values: measures.pairwise_matrix(values, "jaccard").tolist(),
        TEXTS,
    ),
    "document_frequencies.documents": (
        lambda _, values: measures.document_frequencies(values),
        TEXTS,
    ),
    "without_stop_words.stop_words": (
        lambda _, values: measures.without_stop_words("a none of b", values),
        KEYS,
    ),
}
"""By function and argument: a call, and values that have a result."""
OTHERS = {
    *("signature_matrix.functions", "query_many.scope"),
    *("distinct.texts", "split.texts", "distinct.keys", "quotes.texts", "quotes.documents"),
}
"""Arguments whose items are functions, one that may be a single scope, and those of other tests."""


@pytest.fixture
def corpus(corpus_db: ts.Database) -> ts.Corpus:
    corpus = corpus_db.create_corpus("c", shingle="word:1", threshold=0.5, recall=1, passages=4)
    corpus.add_many(DOCUMENTS)
    return corpus


def test_the_table_has_each_argument_of_several_values() -> None:
    functions = [
        function
        for module in (ts, measures)
        for name in module.__all__
        if isinstance(function := getattr(module, name), FunctionType)
    ]
    functions += [method for _, method in inspect.getmembers(ts.Corpus, inspect.isfunction)]
    several = {
        f"{function.__name__}.{parameter.name}"
        for function in functions
        if not function.__name__.startswith("_")
        for parameter in inspect.signature(function).parameters.values()
        if any(
            word in str(parameter.annotation) for word in ("Iterable[", "Sequence[", "Documents")
        )
    }
    assert several <= FUNCTIONS.keys() | OTHERS
    assert len(several) > 15


COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": pd.Series,
    "index": pd.Index,
    "Polars": pl.Series,
    "array": pa.array,
    "chunked": lambda values: pa.chunked_array([values[:1], values[1:]], pa.string()),
    "NumPy": lambda values: np.array(values, dtype=object),
    "NumPy's texts": np.array,
}
LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "values": lambda values: dict(enumerate(values)).values(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_column_is_what_a_list_is(corpus: ts.Corpus, name: str) -> None:
    call, values = FUNCTIONS[name]
    is_texts = bool(values) and isinstance(values[0], str)

    def outcome(given: Any) -> object:
        corpus.add_many(DOCUMENTS)
        try:
            return call(corpus, given)
        except ts.TextsimError as error:
            return type(error), str(error)

    expected = outcome(values)
    for kind, make in (LISTS | (COLUMNS if is_texts else {})).items():
        given = outcome(make(values))
        assert repr(given) == repr(expected), kind


FRAME = pd.DataFrame({"body": TEXTS, "two": KEYS})
TABLE = pa.Table.from_pandas(FRAME)
ONES: dict[str, Callable[[], Any]] = {
    "text": lambda: "abc",
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(b"abc"),
    "memoryview": lambda: memoryview(b"abc"),
    "number": lambda: 5,
    "array without dimensions": lambda: np.array("abc"),
    "scalar of Arrow": lambda: pa.scalar("abc"),
    "pandas": lambda: FRAME,
    "Polars": lambda: pl.DataFrame(FRAME),
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "DuckDB": lambda: duckdb.from_arrow(TABLE),
    "lazy": lambda: pl.DataFrame(FRAME).lazy(),
    "data set": lambda: pyarrow.dataset.dataset(TABLE),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_value_is_refused(corpus: ts.Corpus, name: str) -> None:
    call, _ = FUNCTIONS[name]
    for kind, make in ONES.items():
        with pytest.raises(ts.ConfigurationError) as caught:
            call(corpus, make())
        message = str(caught.value)
        is_named = type(make()).__name__ in message or repr(make())[:9] in message
        assert is_named or "stop words" in message, (kind, message)
    assert len(corpus) == 2


def test_scopes_may_be_a_column(corpus_db: ts.Database) -> None:
    corpus = corpus_db.create_corpus("scoped", scoped=True)
    corpus.add("x", TEXTS[0], "a")
    for kind, make in (LISTS | COLUMNS).items():
        lists = corpus.query_many([TEXTS[0]] * 3, scope=make(KEYS))
        assert [len(each) for each in lists] == [1, 0, 0], kind
    for kind in set(ONES) - {"text", "number"}:
        with pytest.raises(ts.ConfigurationError, match="scope is one scope, or several"):
            corpus.query_many([TEXTS[0]] * 3, scope=ONES[kind]())


def test_texts_without_an_order_are_refused(corpus: ts.Corpus) -> None:
    """A set has no places, by which results name texts."""
    for given in (set(TEXTS), frozenset(TEXTS), dict.fromkeys(TEXTS).keys()):
        for name in FUNCTIONS:
            if name.endswith(".texts") or (name.endswith(".documents") and "add" not in name):
                with pytest.raises(ts.ConfigurationError, match="in an order, such as"):
                    FUNCTIONS[name][0](corpus, given)


NAMES = ["x", "y", "z"]
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas().set_index(pd.Index([7, 7, 7])),
    "Polars": pl.DataFrame,
    "table": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": lambda table: table.to_reader(),
    "DuckDB": duckdb.from_arrow,
}


def test_frames_name_their_texts() -> None:
    """Places name the rows of a frame, or a column; a column of numbers stays one of numbers."""
    every: list[list[Any]] = [NAMES, [30, 20, 10]]
    for names in every:
        table = pa.table({"body": TEXTS, "name": names})
        for kind, make in FRAMES.items():
            for key, (a, b) in ((None, (0, 1)), ("name", sorted(names[:2]))):
                pairs = ts.pairs(make(table), text="body", key=key, threshold=0.5)
                assert pairs == [Pair(a, b, 2 / 3)], kind
                clusters = ts.clusters(make(table), text="body", key=key, threshold=0.5)
                assert [cluster.keys for cluster in clusters] == [(a, b)], kind
                assert type(clusters[0].keys[0]) is type(a)


def test_an_index_names_the_texts_of_a_series(corpus: ts.Corpus) -> None:
    for names in (NAMES, [30, 20, 10], pd.date_range("2026-01-01", periods=3)):
        series = pd.Series(TEXTS, index=names)
        (pair,) = ts.pairs(series, threshold=0.5)
        assert {pair.a, pair.b} == set(series.index[:2])
        (cluster,) = ts.clusters(series, threshold=0.5)
        assert set(cluster.keys) == set(series.index[:2])
        rows = list(corpus.query_many(series, 0.5))
        assert [row.query for row in rows] == [series.index[0]] * 2 + [series.index[1]] * 2
    wrong: list[tuple[pd.Series[str], str]] = [
        (pd.Series(TEXTS, index=["x", "y", "x"]), "the index names texts 0 and 2 alike, 'x'"),
        (pd.Series(TEXTS, index=["x", 2, 3]), "the keys have no order"),
        (pd.Series(TEXTS, index=["x", "y", None]), "the key is null"),
    ]
    for series, message in wrong:
        for function in (ts.pairs, ts.clusters):
            with pytest.raises(ts.TextsimError, match=message):
                function(series)
    with pytest.raises(ts.DocumentError, match="the key is null"):
        corpus.query_many(wrong[2][0])
    with pytest.raises(ts.DocumentError, match="text 'y': the text is null"):
        ts.pairs(pd.Series(["a", None], index=["x", "y"]))


def test_a_fault_of_a_frame_is_named() -> None:
    frame = pl.DataFrame({"body": ["a", None], "n": [1, 1], "f": [1.5, 2.5], "k": [None, 1]})
    faults: list[tuple[dict[str, Any], str]] = [
        ({"text": "body"}, 'column "body", row 1: the text is null'),
        ({"text": "boddy"}, 'did you mean "body"'),
        (
            {"text": "body", "key": "n"},
            "key='n' names texts 0 and 1 alike, 1; expected unique keys",
        ),
        ({"text": "body", "key": "f"}, 'column "f", row 0: the key is of type float; expected str'),
        ({"text": "body", "key": "k"}, 'column "k", row 0: the key is null'),
        ({}, "text= is missing"),
        ({"key": "n"}, "text= is missing"),
    ]
    for arguments, message in faults:
        for given in (frame, frame.to_arrow()):
            for function in (ts.pairs, ts.clusters):
                with pytest.raises(ts.TextsimError, match=message):
                    function(given, **arguments)
    several: list[Any] = [["a"], {"a": "b"}, frame["body"]]
    for texts in several:
        with pytest.raises(ts.ConfigurationError, match="text= and key= name columns of a frame"):
            ts.pairs(texts, text="body")
    with pytest.raises(ts.ConfigurationError, match="the keys have no order"):
        ts.pairs({"a": "b", 1: "c"})  # type: ignore[type-var]


def test_a_test_set_is_what_add_many_takes(corpus: ts.Corpus) -> None:
    expected = list(corpus.contamination(DOCUMENTS))
    assert [record.key for record in expected] == ["a", "b"]
    assert list(corpus.contamination(dict(DOCUMENTS))) == expected
    frame = pl.DataFrame(DOCUMENTS, schema=["id", "body"], orient="row")
    for given in (frame, frame.to_pandas(), frame.to_arrow(), frame.to_dicts()):
        assert list(corpus.contamination(given, key="id", text="body")) == expected
    absent = pl.DataFrame({"id": [None], "body": ["a"]})
    with pytest.raises(ts.DocumentError, match='column "id", row 0: the key is null'):
        list(corpus.contamination(absent, key="id", text="body"))


def test_sequences_of_measures_may_be_columns() -> None:
    words = ["one", "two", "two"]
    for kind, make in COLUMNS.items():
        assert measures.jaccard(make(words), words) == 1.0, kind
        assert measures.levenshtein(make(words), words) == 0, kind
        assert measures.counts(make(words)) == {"one": 1, "two": 2}, kind
        assert list(measures.Vocabulary(make(words))) == ["one", "two"], kind
    for kind in ("pandas", "Polars", "table", "batch", "reader", "DuckDB", "lazy"):
        with pytest.raises(MeasureError, match=r"expected (a sequence|1)"):
            measures.jaccard(ONES[kind](), words)
