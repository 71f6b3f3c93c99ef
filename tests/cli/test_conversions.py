"""Files of records in every format, written as every other format, and read back; no database."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.records import as_jsonl
from textsim_db.cli.messages import explain
from textsim_db.errors import InputError
from textsim_db.files import records as record_writer
from textsim_db.files.file_kinds import Kind
from textsim_db.files.record_files import RecordColumns, RecordFile
from textsim_db.files.several_files import RecordFiles

pyarrow = pytest.importorskip("pyarrow")
import pyarrow.parquet as parquet  # noqa: E402

TEXTS = [
    *("plain", "", 'a "quoted" word', '"', "commas, tabs\t and; semicolons", "two\nlines"),
    *(
        *("carriage\rreturn\r\n", " spaces around ", "naïve 日本語 🙂 e\u0301"),
        "\ufeffbyte order mark",
    ),
    *("NUL \0 and \x1b[31m", "null", "007", "1e5", "=1+1", "\\N", "# comment"),
]
ROWS: list[dict[str, Any]] = [
    {"id": f"k{i}", 'te,xt "1"\n': text, "size": i, "share": i / 3, "is": i % 2 == 0, "none": None}
    for i, text in enumerate(TEXTS)
]
TEXT = list(ROWS[0])[1]
MARKS = {"csv": ",", "tsv": "\t"}
ENDINGS = ["jsonl", "csv", "tsv", "parquet"]
PACKED = [("", ""), (".gz", ""), ("", ".gz"), (".gz", ".gz")]
PAIRS = [
    # Every format as every format; compression is apart from the format, so each way once suffices.
    (f"{source}{PACKED[i % 4][0]}", f"{target}{PACKED[(i + i // 4) % 4][1]}")
    for i, (source, target) in enumerate(product(ENDINGS, ENDINGS))
]


def write_rows(name: str, rows: list[dict[str, Any]]) -> None:
    """Write records with code of the formats' own, not ours."""
    ending = name.removesuffix(".gz").rpartition(".")[2]
    if ending == "parquet":
        file = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(rows), file)
        data = file.getvalue()
    elif ending == "jsonl":
        data = as_jsonl(rows)
    else:
        text = io.StringIO()
        writer = csv.writer(text, delimiter=MARKS[ending], lineterminator="\n")
        writer.writerows([list(rows[0]), *(list(as_texts(row).values()) for row in rows)])
        data = text.getvalue().encode()
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def read_rows(name: str) -> list[dict[str, Any]]:
    """Read records with code of the formats' own, not ours."""
    data = Path(name).read_bytes()
    assert data.startswith(b"\x1f\x8b") == name.endswith(".gz")
    data = gzip.decompress(data) if name.endswith(".gz") else data
    ending = name.removesuffix(".gz").rpartition(".")[2]
    if ending == "parquet":
        rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(data)).to_pylist()
        return rows
    if ending == "jsonl":
        return [json.loads(line) for line in data.decode().split("\n")[:-1]]
    text = io.StringIO(data.decode(), newline="")
    return list(csv.DictReader(text, delimiter=MARKS[ending], strict=True))


def as_texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a record as CSV holds it."""

    special = {"None": "", "True": "true", "False": "false"}
    return {name: special.get(str(value), str(value)) for name, value in row.items()}


def convert(name: str, output: str, kept: Any = None, text: str = TEXT, **options: Any) -> None:
    with RecordFiles([name], RecordColumns(text)) as records_:
        records_.convert_for(output, **options)
        count = len(list(records_))
        records_.write(np.ones(count, np.bool_) if kept is None else kept, output)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_pair_of_formats(source: str, target: str) -> None:
    write_rows(f"in.{source}", ROWS)
    kept = np.arange(len(ROWS)) % 5 != 3
    convert(f"in.{source}", f"out.{target}", kept)
    expected = [row for row, stays in zip(ROWS, kept, strict=True) if stays]
    formats = {name.removesuffix(".gz") for name in (source, target)}
    if formats & {"csv", "tsv"}:
        expected = [as_texts(row) for row in expected]
    assert read_rows(f"out.{target}") == expected
    # Our own readers agree.
    with RecordFile(f"out.{target}", RecordColumns(TEXT)) as copied:
        assert [record.text for record in copied] == [row[TEXT] for row in expected]


def test_parquet_that_stays_parquet_keeps_its_schema() -> None:
    schema = pyarrow.schema(
        [
            ("text", pyarrow.large_string()),
            ("map", pyarrow.map_(pyarrow.string(), pyarrow.int8())),
            ("at", pyarrow.timestamp("ns", tz="UTC")),
            pyarrow.field("data", pyarrow.binary(), metadata={"a": "b"}),
        ],
        metadata={"made by": "a test"},
    )
    rows = [{"text": "a", "map": [("x", 1)], "at": 1, "data": b"\xff"}, {"text": None}]
    table = pyarrow.Table.from_pylist(rows, schema)
    parquet.write_table(table, "in.parquet")
    convert("in.parquet", "out.pq.gz", text="text")
    copied = parquet.read_table(io.BytesIO(gzip.decompress(Path("out.pq.gz").read_bytes())))
    assert copied.equals(table)
    assert copied.schema.metadata[b"made by"] == b"a test"


def test_members_that_records_lack_are_null_in_their_column() -> None:
    rows: list[dict[str, Any]] = [{"text": "a"}, {"text": "b", "n": 1}]
    rows += [{"n": 2.5, "tags": ["x", None]}, {"o": {"a": [1]}, "text": "c", "nothing": None}]
    Path("in.jsonl").write_bytes(as_jsonl([*rows, {"o": {"b": "x"}, "tags": []}]))
    convert("in.jsonl", "out.parquet", text="text")
    empty = {"text": None, "n": None, "tags": None, "o": None, "nothing": None}
    assert read_rows("out.parquet") == [
        empty | {"text": "a"},
        empty | {"text": "b", "n": 1.0},
        empty | {"n": 2.5, "tags": ["x", None]},
        empty | {"o": {"a": [1], "b": None}, "text": "c"},
        empty | {"o": {"a": None, "b": "x"}, "tags": []},
    ]
    types = {field.name: str(field.type) for field in parquet.read_schema("out.parquet")}
    assert types["n"] == "double"
    assert types["nothing"] == "string"
    Path("flat.jsonl").write_bytes(as_jsonl(rows[:2]))
    convert("flat.jsonl", "out.csv", text="text")
    assert Path("out.csv").read_text() == "text,n\na,\nb,1\n"


def test_null_and_the_empty_text_differ_in_csv() -> None:
    Path("in.jsonl").write_bytes(as_jsonl([{"text": ""}, {"text": None}, {"text": "a"}]))
    convert("in.jsonl", "one.csv", text="text")
    assert Path("one.csv").read_text() == 'text\n""\n""\na\n'  # a blank line would be no record
    Path("in.jsonl").write_bytes(as_jsonl([{"text": "", "n": 1}, {"text": None, "n": 2}]))
    convert("in.jsonl", "two.csv", text="text")
    assert Path("two.csv").read_text() == 'text,n\n"",1\n,2\n'


def test_values_that_json_lacks_become_texts() -> None:
    import datetime as dt
    from decimal import Decimal

    table = pyarrow.table(
        {
            "text": ["a", "b"],
            "day": [dt.date(2024, 5, 1), None],
            "at": pyarrow.array([1, None], pyarrow.timestamp("ns")),
            "price": [Decimal("1.10"), None],
            "kind": pyarrow.array(["x", "y"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, "in.parquet")
    expected = {"text": "a", "day": "2024-05-01", "at": "1970-01-01 00:00:00.000000001"}
    expected |= {"price": "1.10", "kind": "x"}
    for ending in ("jsonl", "csv"):
        convert("in.parquet", f"out.{ending}", text="text")
        assert read_rows(f"out.{ending}")[0] == expected


IMPOSSIBLE: list[tuple[list[dict[str, Any]], str, str]] = [
    ([{"text": "a"}, {"text": "b", "tags": [1]}], "csv", '2 cannot be written as CSV: "tags" is'),
    ([{"text": "a", "o": {}}], "tsv", '1 cannot be written as TSV: "o" is an object'),
    ([{"text": "\ud800"}], "csv", '"text" has a lone surrogate U+D800 at character 1'),
    ([{"text": "\ud800"}], "parquet", '"text" has a lone surrogate U+D800 at character 1'),
    ([{"text": "a", "\ud800": 1}], "csv", r'"\ud800" has a lone surrogate'),
    ([{"text": "a", "n": 2**63}], "parquet", '"n" is 9223372036854775808, a number of more than'),
    (
        [{"n": 2**60 + 1}, {"n": 0.5}],
        "parquet",
        'line 2 cannot be written as Parquet: "n" is a number',
    ),
    (
        [{"n": 1}, {"n": "1"}],
        "parquet",
        'line 2 cannot be written as Parquet: "n" is a string, and a',
    ),
    ([{"text": "a", "n": [1, "a"]}], "parquet", '"n" is a string, and a whole number'),
    ([{"text": "a", "o": {}}], "parquet", '"o" has an empty object'),
    ([], "parquet", "there is no record, so the columns to write are unknown"),
    ([], "csv", "there is no record, so the columns to write are unknown"),
]


@pytest.mark.parametrize(("rows", "ending", "message"), IMPOSSIBLE)
def test_records_no_format_can_hold(rows: list[dict[str, Any]], ending: str, message: str) -> None:
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError) as raised:
        convert("in.jsonl", f"out.{ending}", text="text")
    assert str(raised.value).startswith("in.jsonl: ")
    assert message in str(raised.value)
    assert explain(raised.value) == str(raised.value)  # the cause in the reader would add nothing
    assert not Path(f"out.{ending}").exists()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([float("nan")], 'row 1 cannot be written as JSON lines: "c" is NaN; change the record'),
        ([b"\xff"], '"c" is of type bytes'),
        ([{"at": 0}], None),
    ],
)
def test_rows_that_json_cannot_hold(column: list[Any], message: str | None) -> None:
    parquet.write_table(pyarrow.table({"text": ["a"], "c": column}), "in.parquet")
    if message is None:
        convert("in.parquet", "out.jsonl", text="text")
        assert read_rows("out.jsonl") == [{"text": "a", "c": {"at": 0}}]
        return
    with pytest.raises(InputError, match=message):
        convert("in.parquet", "out.jsonl", text="text")


def test_malformed_records_cannot_be_converted() -> None:
    Path("in.csv").write_text("id,text\n1,a\n2\n")
    with pytest.raises(InputError, match=r"in\.csv: line 3 cannot be written as JSON lines: the"):
        convert("in.csv", "out.jsonl", text="text")
    Path("in.csv").write_text("text,a,a\nt,1,2\n")
    with pytest.raises(InputError, match=r'in\.csv: 2 columns are named "a"; rename all but one'):
        convert("in.csv", "out.jsonl", text="text")
    convert("in.csv", "out.csv", text="text")
    assert Path("out.csv").read_bytes() == Path("in.csv").read_bytes()


def test_names_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "MAX_COLUMNS", 10)
    rows = [{"text": "a", f"n{i}": i} for i in range(20)]
    Path("in.jsonl").write_bytes(as_jsonl(rows))
    with pytest.raises(InputError, match=r"line 10 cannot .* the records have more than 10 col"):
        convert("in.jsonl", "out.csv", text="text")


def test_only_a_header() -> None:
    for ending in ("csv", "tsv"):
        Path(f"in.{ending}").write_text(f"id{MARKS[ending]}text\n")
        for target in ("csv", "tsv", "parquet", "jsonl"):
            convert(f"in.{ending}", f"out.{target}", text="text")
            assert read_rows(f"out.{target}") == []
        assert parquet.read_schema("out.parquet").names == ["id", "text"]


def test_the_name_of_the_output_decides() -> None:
    Path("in.csv").write_text("text\na\n")
    Path("link").symlink_to("target.parquet")
    for output, options, first in [
        ("plain", {}, b"text\n"),
        ("plain.gz", {}, b"\x1f\x8b"),
        ("link", {}, b"PAR1"),
        (".parquet", {}, b"PAR1"),
        ("x.PARQUET", {}, b"PAR1"),
        ("out.dat", {"kind": Kind.JSONL}, b'{"text"'),
        ("out.jsonl", {"kind": Kind.JSONL}, b'{"text"'),
        ("out.json", {}, b'{"text"'),
    ]:
        convert("in.csv", output, text="text", **options)
        assert Path(output).read_bytes().startswith(first), output
    for output, options, message in [
        ("out.xlsx", {}, 'out.xlsx: the ending ".xlsx" names no format of records; expected .jso'),
        ("out.jsonl.zst", {}, 'the ending ".zst" names no format of records'),
        ("out.txt", {}, 'the ending ".txt" names no format'),
        ("out.parquet", {"kind": Kind.CSV}, 'the ending ".parquet" contradicts --output-kind csv'),
        ("out", {"kind": Kind.TEXT}, "out: records cannot be written as text"),
    ]:
        with pytest.raises(InputError) as raised:
            convert("in.csv", output, text="text", **options)
        assert message in str(raised.value)
        assert not Path(output).exists()


def test_damaged_parquet_is_an_error_with_the_file(tmp_path: Path, rng: random.Random) -> None:
    path = tmp_path / "damaged.parquet"
    texts = [f"text {i % 7}" for i in range(50)]
    parquet.write_table(pyarrow.table({"id": range(50), "text": texts}), path, store_schema=False)
    data = path.read_bytes()
    damaged = [data[:size] for size in (0, 3, 4, 12, len(data) // 2, len(data) - 1)]
    for _ in range(100):
        at = rng.randrange(len(data))
        damaged.append(data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + 1 :])
    # Each place where the file has the name of a column, changed to bytes that are not UTF-8.
    for place in range(len(data) - 3):
        if data[place : place + 4] == b"text":
            damaged.append(data[:place] + b"te\xd2t" + data[place + 4 :])
    refused = 0
    for some in damaged:
        path.write_bytes(some)
        try:
            with RecordFiles([str(path)], RecordColumns("text")) as records:
                found = list(records)
                records.write(np.ones(len(found), np.bool_), str(tmp_path / "out.parquet"))
        except InputError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
    assert refused > 10
