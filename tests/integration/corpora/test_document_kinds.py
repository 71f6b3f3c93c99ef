"""add_many takes pairs, mappings, records and tables; keys may be integers or UUIDs."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tracemalloc
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import textsim_db as ts
from textsim_db.files.arrow_frames import ROWS
from textsim_db.files.several_texts import stream_documents

TEXTS = {"a": "one two three four", "b": "one two three four five", "c": "quite another text"}
UUIDS = [uuid.UUID(int=i) for i in range(3)]


@pytest.fixture
def corpus(corpus_db: ts.Database) -> ts.Corpus:
    return corpus_db.create_corpus("c", shingle="word:1")


def columns(keys: Any = tuple(TEXTS)) -> dict[str, Any]:
    return {"other": [1.5, 2.5, None], "id": list(keys), "body": list(TEXTS.values())}


def records(keys: Any = tuple(TEXTS)) -> list[dict[str, Any]]:
    return [{"id": key, "body": text} for key, text in zip(keys, TEXTS.values(), strict=True)]


def pandas_frame(values: dict[str, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(values)


def pandas_frame_with_an_index(values: dict[str, Any]) -> Any:
    return pandas_frame(values).set_index(np.array([2.0, 1.0, 0.0]))


def polars_frame(values: dict[str, Any]) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({n: list(map(str, v)) if n == "id" else v for n, v in values.items()})


def arrow(values: dict[str, Any]) -> pa.Table:
    keys = values["id"]
    return pa.table(
        values | {"id": list(map(str, keys)) if isinstance(keys[0], uuid.UUID) else keys}
    )


def split_table(values: dict[str, Any]) -> pa.Table:
    table = arrow(values)
    return pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1)])


class Capsules:
    """A table with the PyCapsule interface alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


TABLES: list[Callable[[dict[str, Any]], Any]] = [
    pandas_frame,
    pandas_frame_with_an_index,
    polars_frame,
    arrow,
    split_table,
    lambda values: split_table(values).to_reader(),
    lambda values: arrow(values).to_batches()[0],
    lambda values: Capsules(arrow(values)),
    lambda values: records(values["id"]),
    lambda values: iter(records(values["id"])),
    lambda values: csv.DictReader(
        io.StringIO(
            "id,body\n" + "".join(f"{r['id']},{r['body']}\n" for r in records(values["id"]))
        )
    ),
]


@pytest.mark.parametrize("keys", [list("abc"), [3, 20, 100], UUIDS], ids=["str", "int", "uuid"])
def test_tables_and_records_are_added(corpus: ts.Corpus, keys: list[Any]) -> None:
    for number, table in enumerate(TABLES):
        report = corpus.add_many(table(columns(keys)), key="id", text="body")
        assert (report.added + report.unchanged, report.refused) == (3, []), number
        assert all(key in corpus for key in keys)
        assert [m.key for m in corpus.query(TEXTS["a"])] == [str(key) for key in keys[:2]], number
        corpus.remove(keys)


def test_mappings_and_pairs_of_other_types_are_added(corpus: ts.Corpus) -> None:
    for kind in (dict, OrderedDict, MappingProxyType):
        corpus.remove(TEXTS)
        assert corpus.add_many(kind(TEXTS)).added == 3
        assert [m.key for m in corpus.query(TEXTS["a"])] == ["a", "b"]
    pairs: list[Any] = [
        ["a", "t"],
        np.array(["a", "t"]),
        np.array(["a", "t"], object),
        iter(["a", "t"]),
    ]
    for pair in pairs:
        assert corpus.add_many([pair]).stored == 1
        assert [m.key for m in corpus.query("t")] == ["a"]


@pytest.mark.parametrize(
    ("key", "stored"),
    [
        (7, "7"),
        (-(2**70), str(-(2**70))),
        (np.int64(-5), "-5"),
        (np.uint8(200), "200"),
        (np.str_("ä"), "ä"),
        (UUIDS[2], "00000000-0000-0000-0000-000000000002"),
    ],
)
def test_integers_and_uuids_are_stored_as_text(corpus: ts.Corpus, key: Any, stored: str) -> None:
    corpus.add_many({"a": TEXTS["a"]})
    assert corpus.add(key, TEXTS["b"]).added == 1
    assert corpus.add_many([(key, TEXTS["b"]), (stored, TEXTS["b"])]).repeated_keys == 1
    assert key in corpus
    assert stored in corpus
    assert [m.key for m in corpus.neighbours(key)] == ["a"]
    assert corpus.explain(key, "a").words == (5, 4)
    assert [m.key for m in corpus.query(TEXTS["a"])] == ["a", stored]
    without_text: Any = [(key, None), ("z", "z")]
    assert [r.key for r in corpus.add_many(without_text).refused] == [stored]
    assert corpus.remove([key]) == 1
    assert key not in corpus


WRONG_DOCUMENTS: list[tuple[Any, dict[str, Any], str]] = [
    (["ab", "cd"], {}, "type list with items of type str; expected pairs"),
    (iter(["ab", "cd"]), {}, "items of type str; expected pairs"),
    ([b"ab"], {}, "items of type bytes"),
    (None, {}, "type NoneType; expected pairs"),
    (records(), {}, r"items of type dict; .*with key= and text="),
    (arrow(columns()), {}, "type Table; .*with key= and text="),
    (arrow(columns())["body"], {}, "type ChunkedArray;"),
    (arrow(columns())["body"], {"key": "id", "text": "body"}, "type ChunkedArray;"),
    (TEXTS, {"key": "id", "text": "body"}, "type dict; expected pairs"),
    (TEXTS.items(), {"key": "id", "text": "body"}, "items of type tuple"),
    (arrow(columns()), {"key": "id"}, "give both key= and text="),
    (arrow(columns()), {"text": "id"}, "give both key= and text="),
    (
        arrow(columns()),
        {"key": "id", "text": "nö"},
        "text='nö' names no column; .*'other', 'id', 'body'",
    ),
    (records(), {"key": "ID", "text": "body"}, "key='ID' names no column; .*'id', 'body'"),
    (
        arrow(columns()).rename_columns(["id", "id", "body"]),
        {"key": "id", "text": "body"},
        "2 columns",
    ),
]


def test_other_types_of_documents_are_refused_by_name(corpus: ts.Corpus) -> None:
    add_many: Any = corpus.add_many
    for documents, names, message in WRONG_DOCUMENTS:
        with pytest.raises(ts.ConfigurationError, match=message):
            add_many(documents, **names)
    assert len(corpus) == 0


def test_rows_without_key_or_text_are_refused(corpus: ts.Corpus) -> None:
    table = pa.table({"id": [1, None, 3], "body": ["some text", "other text", None]})
    report = corpus.add_many(table, key="id", text="body")
    assert report.added == 1
    assert [(r.key, r.reason) for r in report.refused] == [
        ("None", "column \"id\", row 1: the key is null; the text begins with 'other text'"),
        ("3", 'column "body", row 2: the text is null; leave it out, or give an empty text'),
    ]
    records: list[dict[str, Any]] = [{"id": 5, "body": "text"}, {"id": 6}, {"body": "text"}]
    assert len(corpus.add_many(records, key="id", text="body").refused) == 2
    assert corpus.add_many([], key="id", text="body").received == 0


def test_the_nulls_of_pandas_are_nulls(corpus: ts.Corpus) -> None:
    pandas = pytest.importorskip("pandas")
    nulls = [None, float("nan"), pandas.NA, pandas.NaT]
    for null in nulls:
        frame = pandas.DataFrame(
            {"id": ["a", "b"], "body": pandas.Series(["t", null], dtype=object)}
        )
        report = corpus.add_many(frame, key="id", text="body")
        assert [(r.key, r.reason[:38]) for r in report.refused] == [
            ("b", 'column "body", row 1: the text is null')
        ]
        refused = corpus.add_many([(null, "a text")]).refused
        assert [r.reason for r in refused] == ["the key is null; the text begins with 'a text'"]
        with pytest.raises(ts.DocumentError, match="text 2: the text is null"):
            corpus.query_many(["t", null])


def test_a_table_is_read_batch_by_batch() -> None:
    batches_read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal batches_read
        for i in range(1000):
            batches_read += 1
            yield pa.record_batch({"id": [str(i)], "body": ["text"]})

    schema = pa.schema({"id": pa.string(), "body": pa.string()})
    stream = stream_documents(pa.RecordBatchReader.from_batches(schema, batches()), "id", "body")
    assert [next(stream) for _ in range(3)] == [(str(i), "text") for i in range(3)]
    assert batches_read <= 4


@pytest.mark.parametrize("number", range(4))
def test_a_table_is_converted_in_slices(number: int) -> None:
    rows = 100 * ROWS
    values = {"id": range(rows), "body": ["a text of some length, " * 20] * rows}
    table = TABLES[number](values) if number != 1 else arrow(values)
    tracemalloc.start()
    try:
        count = sum(1 for _ in stream_documents(table, "id", "body"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == rows
    assert peak < 4_000_000


def test_only_arrow_needs_pyarrow() -> None:
    program = """
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
from textsim_db.files.several_texts import stream_documents
from textsim_db.errors import ConfigurationError

class Capsules:
    def __arrow_c_stream__(self, requested_schema=None):
        raise NotImplementedError

print(list(stream_documents([{"id": 1, "body": "text"}], "id", "body")))
try:
    stream_documents(Capsules(), "id", "body")
except ConfigurationError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    assert result.stdout == (
        "[(1, 'text')]\nCapsules needs PyArrow, which is not installed: "
        "pip install -e '.[parquet]' in a checkout of textsim-db\n"
    )
