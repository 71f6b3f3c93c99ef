"""textsim dedupe: the records that are kept, for each format and each rule, and where they go."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.generate import documents
from tests.support.commands import Textsim, process
from tests.support.records import KINDS, A, B, Rows, as_csv, as_jsonl, as_parquet, ids_of, records
from tests.support.sampling import sample
from textsim_db.files.record_files import RecordColumns, RecordFile
from textsim_db.files.records import KeptRecords, LineReader
from textsim_db.text.shingles import shingles


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("keep", "left"),
    [
        ("first", "abd"),
        ("last", "bde"),
        ("longest", "bde"),
        ("shortest", "abd"),
        ("max:score", "bcd"),
        ("min:score", "abd"),
    ],
)
def test_one_document_of_a_cluster_stays(textsim: Textsim, kind: str, keep: str, left: str) -> None:
    Path(f"in.{kind}").write_bytes(KINDS[kind](records()))
    result = textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}", "--keep", keep)
    assert ids_of(f"out.{kind}") == list(left)
    assert "5 documents: 3 kept, 2 removed from 1 cluster" in result.stderr
    assert textsim("corpus", "list", "--json").stdout == ""


def test_records_are_copied_byte_for_byte(textsim: Textsim) -> None:
    lines = [
        *(b'{"text":  "one \\u00e9 two three",  "n": 1.50, "id": 1}\r\n', b"\n", b'{"text": 5}\n'),
        *(b"not json\n", '{"text": "óther words ällogether here", "id": [1]}'.encode()),
    ]
    Path("in.jsonl").write_bytes(b"".join(lines))
    result = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", status=1)
    assert Path("out.jsonl").read_bytes() == b"".join(lines[:1] + lines[2:])
    assert 'compared: line 3: "text" is a number; expected a string' in result.stderr
    assert "compared: line 4: malformed JSON at character 1" in result.stderr
    header = b'\xef\xbb\xbfid,"text"\r\n'
    first = b'1,"some ""words"" over\r\ntwo lines"\r\n'
    records_ = [first, b"2,b,c\r\n", b'3,"some words over two lines"']
    Path("in.csv").write_bytes(header + b"".join(records_))
    result = textsim("dedupe", "in.csv", "-o", "out.csv", status=1)
    assert Path("out.csv").read_bytes() == header + b"".join(records_[:2])
    assert "compared: line 4: the record has 3 columns, but the header has 2" in result.stderr


def test_reports(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    textsim("dedupe", "in.jsonl", "--report", "r.jsonl")
    sets = [set(shingles(row["text"], "word:3")) for row in records()]
    similarity = len(sets[0] & sets[4]) / len(sets[0] | sets[4])
    assert [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()] == [
        {
            "kept": {"record": 1, "key": "a"},
            "removed": [
                {"record": 3, "key": "c", "similarity": 1.0},
                {"record": 5, "key": "e", "similarity": similarity},
            ],
        }
    ]
    textsim("dedupe", "in.jsonl", "--report", "r.jsonl", "--key", "score")
    assert json.loads(Path("r.jsonl").read_text()) == {
        "kept": {"record": 1, "key": "3"},
        "removed": [
            {"record": 3, "key": "7", "similarity": 1.0},
            {"record": 5, "similarity": similarity},
        ],
    }


NAN: list[tuple[str, list[Any], str]] = [
    ("max", [float("nan"), 1, 9, None], "c"),
    ("min", [float("nan"), 9, 1, None], "c"),
    ("max", [float("nan"), None, float("nan"), None], "a"),
    ("max", [None, "9", "10", "nan"], "c"),
    ("max", [None, "b", "a", ""], "b"),
    ("max", [9007199254740992, 9007199254740993, 1.5, 0], "b"),
    ("max", ["9007199254740992", "9007199254740993", "1.5", "inf"], "d"),
    ("max", ["9007199254740992", "9007199254740993", "1.5", ""], "b"),
    ("min", [2.5, True, 2, 1], "b"),
]


@pytest.mark.parametrize(("rule", "values", "kept"), NAN, ids=str)
def test_values_of_a_column(textsim: Textsim, rule: str, values: list[Any], kept: str) -> None:
    rows: Rows = [{"id": i, "text": A, "score": v} for i, v in zip("abcd", values, strict=True)]
    Path("in.jsonl").write_bytes(as_jsonl(rows))
    Path("in.csv").write_bytes(as_csv(rows))
    for kind in ("jsonl", "csv"):
        if kind == "jsonl" or not any(value is True for value in values):
            textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}", "--keep", f"{rule}:score")
            assert ids_of(f"out.{kind}") == [kept]


def test_values_that_look_like_numbers_are_compared_as_texts(textsim: Textsim) -> None:
    for first, second, is_told in (
        ("9,5", "10,5", True),
        ("31.01.2026", "01.02.2026", True),
        ("2026-01-31", "2026-02-01", False),
        ("b", "a", False),
    ):
        rows: Rows = [{"id": 1, "text": A, "score": first}, {"id": 2, "text": A, "score": second}]
        Path("in.csv").write_bytes(as_csv(rows))
        told = textsim("dedupe", "in.csv", "-o", "out.csv", "--keep", "max:score").stderr
        assert (f'"score" are compared as texts, such as "{first}"' in told) == is_told


@pytest.mark.parametrize("rule", ["max", "min"])
def test_a_record_without_a_number_stays_only_alone(textsim: Textsim, rule: str) -> None:
    """C writes -nan for the value of 0/0 on most processors."""
    values = ["-nan", "+NaN", " nan ", "", "7"]
    rows: Rows = [{"id": i, "text": A, "score": v} for i, v in zip("abcde", values, strict=True)]
    Path("in.csv").write_bytes(as_csv(rows))
    textsim("dedupe", "in.csv", "-o", "out.csv", "--keep", f"{rule}:score")
    assert ids_of("out.csv") == ["e"]


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_numbers_among_texts(textsim: Textsim, kind: str) -> None:
    values = ["", "9", "10", "n/a"]
    rows: Rows = [{"id": i, "text": A, "score": v} for i, v in zip("abcd", values, strict=True)]
    Path(f"in.{kind}").write_bytes(KINDS[kind](rows))
    result = textsim("dedupe", f"in.{kind}", "-o", "x", "--keep", "max:score", status=2)
    assert (
        'keep is "max:score", but the column mixes numbers and texts: record 4 has "n/a", and record 2 '
        "has 9; use only numbers or only texts" in result.stderr
    )
    assert os.listdir() == [f"in.{kind}"]


def test_what_was_removed_is_said(textsim: Textsim) -> None:
    """Tenths, the least similar, the largest cluster, and what may have been merged by mistake."""
    base = [f"word{i}" for i in range(20)]
    texts = [" ".join([*base, str(number), "ends"]) for number in range(10)]  # siblings
    texts.append(" ".join([*base, "0", "ends!"]))
    other = ["stone" + "a" * i for i in range(30)]
    texts += [" ".join(other), " ".join(["title", *other[1:]])]
    texts.append(" ".join([*other, "x" * 50]))
    Path("in.jsonl").write_bytes(as_jsonl([{"id": i, "text": t} for i, t in enumerate(texts)]))
    told = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", "--key", "id").stderr.splitlines()
    assert told[0].startswith("14 documents: 2 kept, 12 removed from 2 clusters")
    assert told[1:] == [
        "similarity of the removed documents: 9 from 0.8, 2 from 0.9, 1 at 1",
        "the least similar:",
        *(f'  0.8182  "{i}" has "{i}" for "0" (kept: "0")' for i in (1, 2, 3)),
        "of 12 compared word by word, only numbers differ in 9, one word, such as a name, differs "
        "in 2",
        "what keeps such documents apart: --guard numbers,content or --scope COLUMN; --report "
        "removed.html shows them side by side",
    ]
    told = textsim("dedupe", "in.jsonl", "-o", "o.jsonl", "--guard", "numbers").stderr.splitlines()
    told = [
        line for line in told if not line.startswith("compil")
    ]  # the first kernels with a guard
    assert told[1:6] == [
        "similarity of the removed documents: 2 from 0.9, 1 at 1",
        "the least similar:",
        '  0.9310  record 13 has "title" for "stone" (kept: record 12)',
        f'  0.9655  record 14 adds "{"x" * 37}..." (kept: record 12)',
        "  1.0000  record 11 has the same words (kept: record 1)",
    ]
    assert told[-1].startswith("what keeps such documents apart: --guard numbers,content or --")


def test_what_differs_at_similarity_1_is_said(textsim: Textsim) -> None:
    """Equal shingles may have another order, and equal words other symbols."""
    one = "Press the red button and press the green lamp and press the bell rope and press the"
    other = "Press the bell rope and press the green lamp and press the red button and press the"
    braces = "{count} messages were moved to {folder}."
    percent = "%count% messages were moved to %folder%."

    def told(*texts: str) -> list[str]:
        rows: Rows = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
        Path("in.jsonl").write_bytes(as_jsonl(rows))
        return textsim("dedupe", "in.jsonl", "-o", "o.jsonl", "--key", "id").stderr.splitlines()[1:]

    apart = "what keeps such documents apart: --judgements FILE or --scope COLUMN; --report "
    lines = told(one, other, *[one] * 400)
    assert lines[:2] == ["similarity of the removed documents: 401 at 1", "some that differ:"]
    assert lines[2].startswith('  1.0000  "1" has "bell rope" for "red button"; ')
    assert lines[3].startswith("of 1 compared word by word, only the order of words differs in 1")
    assert lines[4].startswith(apart)
    # Other documents that differ by a comma hide no symbol.
    commas = [f"The folder, is number {i} of them." for i in range(20)]
    lines = told(braces, percent, *commas, *[each.replace(",", "") for each in commas])
    parts = 'has "%count%" for "{count}"; has "%folder%." for "{folder}."'
    assert lines[1:3] == ["some that differ:", f'  1.0000  "1" {parts} (kept: "0")']
    assert lines[3] == "of 21 compared word by word, only symbols differ in 1"
    assert lines[4].startswith(apart)
    assert told(one, one, one.upper(), one.replace(" ", ", ")) == []
    lines = told(one, f"{one} red button and press the", one)
    assert '  1.0000  "1" adds ' in lines[2]


def test_numerals_that_differ_are_offered_as_guard_words(textsim: Textsim) -> None:
    title = "On the vibration of long suspension bridges under wind load. Part"
    rows: Rows = [{"id": i, "text": f"{title} {i}"} for i in ("I", "II", "III")]
    Path("in.jsonl").write_bytes(as_jsonl(rows))
    arguments = ["dedupe", "in.jsonl", "-o", "o.jsonl", "--shingle", "word:1"]
    lines = textsim(*arguments).stderr.splitlines()
    assert lines[-2] == "of 2 compared word by word, only numerals differ in 2"
    ways = "--guard words --guard-words i,ii,iii"
    assert f": {ways} or --scope COLUMN; " in lines[-1]
    assert textsim(*arguments, *ways.split()).stderr.startswith("3 documents: 3 kept, 0 removed")


def test_wrong_usage(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    Path("in.txt").write_bytes(b"text")
    Path("in.txt.gz").write_bytes(b"text")
    Path("short.jsonl.gz").write_bytes(gzip.compress(as_jsonl(records()))[:-10])
    Path("bad.csv").write_bytes(b'id,text\n1,"never closed\n')
    for arguments, message in [
        ([], "missing argument 'INPUT'"),
        (["in.jsonl", "--report", "x.txt"], "x.txt does not end in .jsonl"),
        (["in.jsonl", "-o", "x", "--keep", "best"], 'keep is "best"; expected first, last'),
        (["in.jsonl", "--report", "x.html", "--annotate"], "--annotate: it needs --output"),
        (["in.jsonl", "-o", "x", "--keep-up-to", "0"], "keep_up_to is 0; expected 1 to"),
        (["in.jsonl", "-o", "x", "--threshold", "2"], "threshold is 2.0; expected above 0"),
        (["in.txt", "-o", "x"], "in.txt: expected a name that ends in .jsonl, .csv"),
        (["in.txt.gz", "-o", "x"], "in.txt.gz: no gzip file, or damaged"),
        (["none.jsonl", "-o", "x"], "none.jsonl: No such file or directory"),
        ([".", "-o", "x"], "in.txt: the name says no format of records; choose the files of the"),
        ([".", "-o", "x", "--glob", "*.no"], '.: no file in this folder matches "*.no"'),
        ([".", "-o", "in.jsonl", "--glob", "*.jsonl"], "in.jsonl is also INPUT"),
        (["in.jsonl", "-o", "no/x"], "no/x: cannot be written: there is no folder"),
        (["bad.csv", "-o", "x", "--separator", "ab"], '"ab" is no separator; expected one'),
        (["bad.csv", "-o", "x"], "bad.csv: from line 2 on: a quotation mark is not closed"),
        (["bad.csv", "-o", "x", "--keep", "max:size"], 'bad.csv: there is no column "size"'),
        (["short.jsonl.gz", "-o", "x"], "short.jsonl.gz: the gzip file ends too early"),
    ]:
        result = textsim("dedupe", *arguments, status=2)
        assert message in " ".join(result.stderr.split()), arguments
        assert not Path("x").exists()
    assert sorted(os.listdir()) == ["bad.csv", "in.jsonl", "in.txt", "in.txt.gz", "short.jsonl.gz"]


def test_records_go_to_standard_output_and_messages_to_standard_error(textsim: Textsim) -> None:
    Path("in.csv").write_bytes(as_csv(records()))
    textsim("dedupe", "in.csv", "-o", "out.csv")
    kept = Path("out.csv").read_bytes()
    for options in ((), ("-o", "-"), ("-o", "-", "--report", "r.jsonl")):
        result = textsim("dedupe", "in.csv", *options)
        assert result.stdout_bytes == kept, options
        assert result.stderr.startswith("5 documents: 3 kept, 2 removed from 1 cluster")
    assert textsim("dedupe", "in.csv", "--report", "r.jsonl").stdout_bytes == b""
    told = textsim("dedupe", "in.csv", "--annotate").stdout.splitlines()
    assert len(told) == 6
    assert told[0].endswith(",cluster,size,kept,similarity,kept_key")


def test_memory_past_the_limit_is_said(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    told = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", "--memory", "0").stderr
    (taken,) = re.findall(r"the process took up to (\d+\.\d\d) GB of memory: --memory is the", told)
    assert float(taken) > 0.05
    for options in ((), ("--memory", "1000")):
        assert "GB of memory" not in textsim("dedupe", "in.jsonl", "-o", "o.jsonl", *options).stderr


def test_a_file_that_changes_meanwhile(textsim: Textsim, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    copy = LineReader.copy

    def changing(self: Any, *arguments: Any) -> None:
        copy(self, *arguments)
        with open("in.jsonl", "ab") as file:
            file.write(b'{"text": "more"}\n')

    monkeypatch.setattr(LineReader, "copy", changing)
    result = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", status=2)
    assert "in.jsonl changed while it was read" in result.stderr
    assert os.listdir() == ["in.jsonl"]


def test_an_earlier_output_is_replaced(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    Path("out.jsonl").write_text("earlier")
    os.chmod("out.jsonl", 0o640)
    textsim("dedupe", "in.jsonl", "-o", "out.jsonl")
    assert ids_of("out.jsonl") == ["a", "b", "d"]
    assert os.stat("out.jsonl").st_mode & 0o777 == 0o640
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl"]


@pytest.mark.parametrize("kind", sample(KINDS, 3))
def test_several_files(textsim: Textsim, kind: str) -> None:
    """The output is that of one file with all records; reports name the files."""
    rows = records()
    parts = {"a": rows[:2], "b": rows[2:3], "c": rows[3:]}
    for name, part in {"all": rows, **parts}.items():
        Path(f"{name}.{kind}").write_bytes(KINDS[kind](part))
    names = [f"{name}.{kind}" for name in parts]
    textsim("dedupe", f"all.{kind}", "-o", f"one.{kind}", "--report", "r1.jsonl")
    textsim("dedupe", *names, "-o", f"out.{kind}", "--report", "r.jsonl")
    assert ids_of(f"out.{kind}") == ids_of(f"one.{kind}") == ["a", "b", "d"]
    (expected,), (cluster,) = (
        [json.loads(line) for line in Path(name).read_text().splitlines()]
        for name in ("r1.jsonl", "r.jsonl")
    )
    files = [cluster["kept"].pop("file"), *(each.pop("file") for each in cluster["removed"])]
    assert files == names
    assert cluster == expected
    os.mkdir("folder")
    for name in names:
        os.link(name, f"folder/{name}")
    Path("folder/other.txt").write_text("other")
    textsim("dedupe", "folder", "--glob", f"*.{kind}", "-o", f"out2.{kind}", "--report", "r2.jsonl")
    assert Path(f"out2.{kind}").read_bytes() == Path(f"out.{kind}").read_bytes()
    report = Path("r.jsonl").read_text()
    assert Path("r2.jsonl").read_text() == report.replace('"file": "', '"file": "folder/')
    textsim("dedupe", *names, "--report", "r.html")
    assert f"b.{kind}" in Path("r.html").read_text()
    twice = textsim("dedupe", names[0], f"./{names[0]}", "-o", f"x.{kind}", status=2)
    assert "is named twice" in twice.stderr


def annotated(name: str) -> list[dict[str, Any]]:
    """Return the records of a file, with the values of CSV as JSON has them."""
    data = Path(name).read_bytes()
    if name.endswith("parquet"):
        parquet = pytest.importorskip("pyarrow.parquet")
        rows: list[dict[str, Any]] = parquet.read_table(name).to_pylist()
        return rows
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    if "csv" not in name:
        return [json.loads(line) for line in text.splitlines()]
    new = ("cluster", "size", "kept", "similarity")
    return [
        row
        | {column: json.loads(row[column] or "null") for column in new}
        | {"kept_key": row["kept_key"] or None}
        for row in csv.DictReader(io.StringIO(text))
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_annotated_records(textsim: Textsim, source: str, target: str, most: int) -> None:
    sets = [set(shingles(row["text"], "word:3")) for row in records()]
    least = len(sets[0] & sets[4]) / len(sets[0] | sets[4])
    Path(f"in.{source}").write_bytes(KINDS[source](records()))
    options = ("--keep-up-to", str(most))
    told = textsim("dedupe", f"in.{source}", "-o", f"out.{target}", "--annotate", *options).stderr
    rows = annotated(f"out.{target}")
    assert list(rows[0]) == [
        *("id", "text", "score", "cluster", "size", "kept", "similarity", "kept_key")
    ]
    assert [(r["id"], r["cluster"], r["size"], r["kept"], r["similarity"]) for r in rows] == [
        ("a", 1, 3, True, None),
        ("b", None, 1, True, None),
        ("c", 1, 3, most > 2, 1.0),
        ("d", None, 1, True, None),
        ("e", 1, 3, most > 1, least),
    ]
    assert [row["kept_key"] for row in rows] == ["a", None, "a", None, "a"]
    assert [row["text"] for row in rows] in (
        [row["text"] for row in records()],
        [row["text"] or None for row in records()],
    )
    assert f"5 documents: {2 + most} kept, {3 - most} removed" in told
    assert 'the output has the removed records, too; their field "kept" is false' in told
    textsim("dedupe", f"in.{source}", "-o", f"kept.{source}", *options)
    assert ids_of(f"kept.{source}") == [row["id"] for row in rows if row["kept"]]
    textsim("dedupe", f"in.{source}", "--report", "r.jsonl", "--key", "id", *options)
    removed = [c["removed"] for c in map(json.loads, Path("r.jsonl").read_text().splitlines())]
    assert [r["key"] for each in removed for r in each] == ["c", "e"][: 3 - most]


def test_annotated_records_are_otherwise_unchanged(textsim: Textsim) -> None:
    first, key = ', "cluster": 1, "size": 2, "kept": true, "similarity": null', ', "kept_key": "1"}'
    alone = first.replace("1,", "null,", 1).replace("2", "1") + ', "kept_key": null}'
    other = first.replace("true", "false").replace("null", "1.0") + key
    first += key
    lines = [
        f'{{"text":  "{A} \\u00e9",  "n": 1.50',
        '{"n": NaN ',
        "not json",
        f'{{"text": "{A} é" ',
    ]
    Path("in.jsonl").write_text(f"{lines[0]}}}\r\n{lines[1]}}}\n\n{lines[2]}\n{{ }} \n{lines[3]}}}")
    textsim("dedupe", "in.jsonl", "-o", "out.jsonl", "--annotate", status=1)
    assert Path("out.jsonl").read_bytes().decode() == (
        f"{lines[0]}{first}\r\n{lines[1].rstrip()}{alone}\n{lines[2]}\n{{{alone[2:]} \n"
        f"{lines[3].rstrip()}{other}"
    )
    content = f'\ufeffsep=;\r\n"id";text\r\n1;"{A}\r\n"\r\n2;b;c\r\n3;{A}'
    Path("in.csv").write_bytes(content.encode())
    textsim("dedupe", "in.csv", "-o", "out.csv", "--annotate", status=1)
    assert Path("out.csv").read_bytes().decode() == (
        f'\ufeffsep=;\r\n"id";text;cluster;size;kept;similarity;kept_key\r\n1;"{A}\r\n";1;2;true;;1\r\n'
        f"2;b;c\r\n3;{A};1;2;false;1.0;1"
    )
    textsim("dedupe", "in.csv", "-o", "out.csv", "--annotate", "--clusters-of-one", status=1)
    assert "\r\n2;b;c\r\n" in Path("out.csv").read_bytes().decode()
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    day = pyarrow.array([1, 2], pyarrow.date32())
    for name, text in (("a", A), ("b", B)):
        table = pyarrow.table({"text": pyarrow.array([text, A]).dictionary_encode(), "day": day})
        parquet.write_table(table.replace_schema_metadata({"of": "us"}), f"{name}.parquet")
    textsim("dedupe", "a.parquet", "b.parquet", "-o", "out.parquet", "--annotate")
    schema = parquet.read_schema("out.parquet")
    assert [str(kind) for kind in schema.types[1:]] == [
        "date32[day]",
        "int64",
        "int64",
        "bool",
        "double",
        "string",
    ]
    assert schema.types[0] == table.schema.types[0]
    assert schema.metadata[b"of"] == b"us"
    assert [row["kept"] for row in annotated("out.parquet")] == [True, False, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_annotations_are_not_overwritten(textsim: Textsim, kind: str) -> None:
    Path(f"in.{kind}").write_bytes(KINDS[kind]([row | {"size": 1} for row in records()]))
    for output in ("x.jsonl", "x.csv"):
        told = textsim("dedupe", f"in.{kind}", "-o", output, "--annotate", status=2).stderr
        assert '"size" already, and --annotate adds one; rename it first' in told
    assert os.listdir() == [f"in.{kind}"]


def test_files_of_other_columns_and_formats_are_converted(textsim: Textsim) -> None:
    Path("a.csv").write_text(f"id,text\n1,{A}")
    Path("b.csv").write_text(f"id,more,text\n2,x,{A}\n3,y,another text\n,,\n")
    Path("c.jsonl").write_text('{"id": 4, "text": "a third text"}\n\n{"id": 5}')
    command = ("dedupe", "a.csv", "b.csv", "c.jsonl")
    result = textsim(*command, "-o", "out.csv", status=1)
    assert "kept, because it cannot be compared: c.jsonl, line 3: there is no" in result.stderr
    expected = ["id,text,more", f"1,{A},", "3,another text,y", '"","",""', "4,a third text,", "5,,"]
    assert Path("out.csv").read_text().splitlines() == expected
    Path("d.csv").write_text("id,text\n5,the last text")
    textsim("dedupe", "d.csv", "a.csv", "-o", "out.csv", "--keep", "last")
    assert Path("out.csv").read_text() == f"id,text\n5,the last text\n1,{A}"
    Path("wrong.csv").write_text("id,body\n5,the last text")
    for name, message in [
        ("missing.csv", "missing.csv: No such file or directory"),
        ("wrong.csv", 'wrong.csv: there is no column "text"'),
    ]:
        assert message in textsim("dedupe", "a.csv", name, "-o", "x", status=2).stderr
    assert not Path("x").exists()


def test_links_stay_links(textsim: Textsim) -> None:
    os.mkdir("folder")
    Path("folder/in.jsonl").write_bytes(as_jsonl(records()))
    os.link("folder/in.jsonl", "hard.jsonl")
    os.symlink("folder/in.jsonl", "link.jsonl")
    os.symlink("folder/new.jsonl", "dangling.jsonl")
    textsim("dedupe", "link.jsonl", "-o", "dangling.jsonl")
    Path("earlier.jsonl").write_bytes(as_jsonl(records()))
    textsim("dedupe", "earlier.jsonl", "-o", "link.jsonl")
    assert os.readlink("link.jsonl") == "folder/in.jsonl"
    assert os.readlink("dangling.jsonl") == "folder/new.jsonl"
    assert ids_of("folder/in.jsonl") == ids_of("folder/new.jsonl") == ["a", "b", "d"]
    assert ids_of("hard.jsonl") == list("abcde")  # it is another file by now
    assert sorted(os.listdir("folder")) == ["in.jsonl", "new.jsonl"]
    os.symlink("loop.jsonl", "loop.jsonl")
    result = textsim("dedupe", "link.jsonl", "-o", "loop.jsonl", status=2)
    assert "loop.jsonl: Too many levels of symbolic links" in result.stderr


def test_pipes(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    os.mkfifo("pipe.jsonl")
    os.mkfifo("report.jsonl")
    for arguments in (["-o", "pipe.jsonl"], ["--report", "report.jsonl"]):
        command = ["timeout", "60", "cat", arguments[1]]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
            textsim("dedupe", "in.jsonl", *arguments)
            read, _ = reader.communicate()
        lines = [json.loads(line) for line in read.splitlines()]
        if arguments[0] == "-o":
            assert [line["id"] for line in lines] == ["a", "b", "d"]
        else:
            assert [line["kept"]["key"] for line in lines] == ["a"]
        assert stat.S_ISFIFO(os.stat(arguments[1]).st_mode)
    with subprocess.Popen(["timeout", "60", "cp", "in.jsonl", "pipe.jsonl"]) as writer:
        textsim("dedupe", "pipe.jsonl", "-o", "out.jsonl")
        assert writer.wait() == 0
    assert ids_of("out.jsonl") == ["a", "b", "d"]
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl", "pipe.jsonl", "report.jsonl"]
    Path("in.parquet").write_bytes(as_parquet(records()))
    os.mkfifo("pipe.parquet")
    with subprocess.Popen(["timeout", "60", "cp", "pipe.parquet", "out.parquet"]) as copier:
        textsim("dedupe", "in.parquet", "-o", "pipe.parquet")
        assert copier.wait() == 0
    assert ids_of("out.parquet") == ["a", "b", "d"]


def test_no_output_overwrites_another_file_of_the_command(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    os.link("in.jsonl", "hard.jsonl")
    os.symlink("in.jsonl", "link.jsonl")
    os.symlink("new.jsonl", "dangling.jsonl")
    for arguments, what in [
        (["in.jsonl", "-o", "x.jsonl", "--report", "in.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "x.jsonl", "--report", "./link.jsonl"], "INPUT"),
        (["link.jsonl", "-o", "x.jsonl", "--report", "hard.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "x.jsonl", "--report", "x.jsonl"], "OUTPUT"),
        (["in.jsonl", "-o", "new.jsonl", "--report", "dangling.jsonl"], "OUTPUT"),
        (["x.jsonl", "--judgements", "in.jsonl", "-o", "hard.jsonl"], "--judgements"),
        (["in.jsonl", "-o", "in.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "link.jsonl"], "INPUT"),
    ]:
        result = textsim("dedupe", *arguments, status=2)
        message = f"{arguments[-1]} is also {what}; name another file"
        assert message in " ".join(result.stderr.split())
        assert Path("in.jsonl").read_bytes() == as_jsonl(records())
        assert len(os.listdir()) == 4


@pytest.mark.more
@pytest.mark.parametrize("what", ["INPUT", "OUTPUT"])
def test_a_report_overwrites_no_std_stream(database_url: str, tmp_path: Path, what: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(as_jsonl(records()))
    names = ["-", "-o", "x"] if what == "INPUT" else ["none.jsonl", "-o", "-"]
    with file.open("r+b") as opened:
        stream: dict[str, Any] = {"stdin" if what == "INPUT" else "stdout": opened}
        done = process("dedupe", *names, "--report", str(file), url=database_url, **stream)
    _, told = done.communicate()
    assert done.returncode == 2
    assert f"is also {what}" in " ".join(told.split())
    assert file.read_bytes() == as_jsonl(records())


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_no_record_has_is_refused(textsim: Textsim, kind: str) -> None:
    Path(f"in.{kind}").write_bytes(KINDS[kind](records()))
    Path("out").write_text("an earlier result")
    command = ("dedupe", f"in.{kind}", "-o", "out", "--report", "r.jsonl")
    for arguments, name, option in [
        (["--text", "txet"], "txet", "--text"),
        (["--key", "idd"], "idd", "--key"),
        (["--keep", "max:size"], "size", "--keep"),
        (["--scope", "tenant"], "tenant", "--scope"),
    ]:
        told = textsim(*command, *arguments, status=2).stderr
        assert f'"{name}"; found "id", "text", "score": name another with {option}' in told
    assert 'did you mean "text"?' in textsim(*command, "--text", "txet", status=2).stderr
    assert sorted(os.listdir()) == [f"in.{kind}", "out"]
    assert Path("out").read_text() == "an earlier result"
    textsim(*command)  # no key is named, so the file needs none


def test_a_file_without_any_text_is_refused(textsim: Textsim) -> None:
    Path("in.jsonl").write_text('{"text": 5}\nnot JSON\n{"text": "a\\u0000"}\n')
    told = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", status=2).stderr
    assert 'no record can be compared, so nothing was written: line 1: "text" is a number' in told
    assert os.listdir() == ["in.jsonl"]
    Path("in.jsonl").write_text('{"text": 5}\n{"text": "one", "n": 1}\n')
    textsim("dedupe", "in.jsonl", "-o", "out.jsonl", "--keep", "max:n", status=1)
    assert Path("out.jsonl").read_bytes() == Path("in.jsonl").read_bytes()


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv"])
def test_faulty_records_are_left_out_if_told_to(textsim: Textsim, output: str) -> None:
    faulty = [b"not JSON", b'{"id": "n", "text": 5}', b'{"id": "u", "text": "a\\u0000b"}']
    lines = as_jsonl(records()).splitlines()
    Path("in.jsonl").write_bytes(b"\n".join([*lines[:2], *faulty, *lines[2:]]))
    command = ("dedupe", "in.jsonl", "-o", output, "--drop-faulty")
    told = textsim(*command, status=1).stderr
    assert ids_of(output) == ["a", "b", "d"]
    assert "8 documents: 3 kept, 3 left out, 2 removed from 1 cluster; " in told
    assert "left out, because it cannot be compared: line 3: malformed JSON" in told
    assert told.count("left out, because") == 3
    textsim(*command, "--report", "r.html", status=1)
    assert "Left out, because they cannot be compared" in Path("r.html").read_text()


def test_a_full_disk(textsim: Textsim) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        RecordFile("in.jsonl", RecordColumns("text")) as opened,
        opened.reader() as reader,
        pytest.raises(OSError, match="No space"),
    ):
        reader.copy(KeptRecords(reader, np.ones(5, bool), {}, {}), full, iter(()))
    # A device of the test's own: root could replace /dev/full itself.
    try:
        os.mknod("full.jsonl", stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
        Path("full.jsonl").open("wb").close()
    except PermissionError:
        pytest.skip("no device can be made here")
    for arguments in (["-o", "full.jsonl"], ["--report", "full.jsonl"]):
        result = textsim("dedupe", "in.jsonl", *arguments, status=2)
        assert "full.jsonl: No space left on device" in result.stderr
        assert stat.S_ISCHR(os.stat("full.jsonl").st_mode)


def test_a_report_writes_odd_keys_as_the_input_has_them(textsim: Textsim) -> None:
    keys = ["true", '{"a": ["é", 1]}', "[null]", "4.5", r'"\ud801"', "null"]
    Path("in.jsonl").write_text("".join(f'{{"id": {key}, "text": "{A}"}}\n' for key in keys))
    textsim("dedupe", "in.jsonl", "--report", "r.jsonl")
    report = json.loads(Path("r.jsonl").read_text())
    found = [report["kept"]["key"], *(r.get("key", "null") for r in report["removed"])]
    assert found == [*keys[:4], "\ud801", "null"]


@pytest.mark.more
@pytest.mark.parametrize("how", sample([signal.SIGINT, signal.SIGKILL], 2))
def test_an_interrupted_process_leaves_no_output(tmp_path: Path, how: signal.Signals) -> None:
    """Records are read from a pipe, compared in memory and in files, and written to a pipe."""
    texts = documents(3_000, words=60, seed=3)
    content = as_jsonl([{"id": i, "text": t} for i, t in texts])
    command = [sys.executable, "-m", "textsim_db.cli", "dedupe", "-", "--memory", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for phase, output in (("reading", "out.jsonl"), ("writing", "-")):
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = [*command, "-o", output, "--report", "report.jsonl"]
        process = subprocess.Popen(words, env=environment, cwd=tmp_path, **pipes)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(content)
        process.stdin.flush()
        if phase == "writing":
            process.stdin.close()
            process.stdin = None
            assert process.stdout.read(10) == content[:10]
        process.send_signal(how)
        _, messages = process.communicate()
        # A shell shows 130 for both. Python ends by the signal if it comes in the cleanup.
        ends = (130, -signal.SIGINT) if how == signal.SIGINT else (-signal.SIGKILL,)
        assert process.returncode in ends, messages
        assert os.listdir(tmp_path) == []
        if how == signal.SIGINT:
            assert messages.endswith(b"interrupted\n")
