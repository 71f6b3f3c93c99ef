"""textsim dedupe: the records that are kept, for each format and each rule."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generate import documents
from tests.support.commands import Textsim
from tests.support.records import KINDS, A, Rows, as_csv, as_jsonl, as_parquet, ids_of, records
from textsim_db.files.record_reader import LineReader
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
def test_one_document_of_each_cluster_stays(
    textsim: Textsim, kind: str, keep: str, left: str
) -> None:
    Path(f"in.{kind}").write_bytes(KINDS[kind](records()))
    result = textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}", "--keep", keep)
    assert ids_of(f"out.{kind}") == list(left)
    assert "5 documents: 3 kept, 2 removed from 1 cluster" in result.stderr
    assert (
        textsim("corpus", "list", "--format", "csv").stdout
        == "corpus,documents,shingle,threshold\n"
    )


def test_records_are_copied_byte_for_byte(textsim: Textsim) -> None:
    lines = [
        b'{"text":  "one \\u00e9 two three",  "n": 1.50, "id": 1}\r\n',
        b"\n",
        b'{"text": 5}\n',
        b"not json\n",
        '{"text": "óther words ällogether here", "id": [1]}'.encode(),
    ]
    Path("in.jsonl").write_bytes(b"".join(lines))
    result = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", status=1)
    assert Path("out.jsonl").read_bytes() == b"".join(lines[:1] + lines[2:])
    assert 'compared: line 3: "text" is a number; expected a string' in result.stderr
    assert "compared: line 4: malformed JSON at character 1" in result.stderr
    header = b'\xef\xbb\xbfid,"text"\r\n'
    records_ = [
        b'1,"some ""words"" over\r\ntwo lines"\r\n',
        b"2,b,c\r\n",
        b'3,"some words over two lines"',
    ]
    Path("in.csv").write_bytes(header + b"".join(records_))
    result = textsim("dedupe", "in.csv", "-o", "out.csv", status=1)
    assert Path("out.csv").read_bytes() == header[3:] + b"".join(records_[:2])
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


def test_removed_documents_are_similar_to_kept_documents(
    textsim: Textsim, rng: random.Random
) -> None:
    texts = [text for _, text in documents(3000, words=50, planted=0.3, seed=rng.randrange(10**6))]
    Path("in.jsonl").write_bytes(as_jsonl([{"id": i, "text": t} for i, t in enumerate(texts)]))
    textsim("dedupe", "in.jsonl", "-o", "out.jsonl", "--report", "r.jsonl", "--threshold", "0.6")
    sets = [frozenset(shingles(text, "word:3")) for text in texts]
    gone = set()
    for line in Path("r.jsonl").read_text().splitlines():
        cluster = json.loads(line)
        kept = cluster["kept"]["record"] - 1
        for removed in cluster["removed"]:
            number = removed["record"] - 1
            both = sets[kept], sets[number]
            assert kept < number
            assert removed["similarity"] == len(both[0] & both[1]) / len(both[0] | both[1]) >= 0.6
            gone.add(number)
    assert len(gone) > 200
    assert ids_of("out.jsonl") == [i for i in range(len(texts)) if i not in gone]
    again = textsim("dedupe", "out.jsonl", "-o", "-", "--threshold", "0.6")
    assert again.stdout_bytes == Path("out.jsonl").read_bytes()


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
    some: Rows = [{"id": i, "text": A, "score": v} for i, v in zip("abcd", values, strict=True)]
    Path("in.jsonl").write_bytes(as_jsonl(some))
    Path("in.csv").write_bytes(as_csv(some))
    for kind in ("jsonl", "csv"):
        if kind == "jsonl" or not any(value is True for value in values):
            textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}", "--keep", f"{rule}:score")
            assert ids_of(f"out.{kind}") == [kept]


def test_nan_in_parquet(textsim: Textsim) -> None:
    scores = [1.0, float("nan"), 9.0, None]
    some: Rows = [{"id": i, "text": A, "score": s} for i, s in zip("abcd", scores, strict=True)]
    Path("in.parquet").write_bytes(as_parquet(some))
    for rule, kept in (("max", "c"), ("min", "a")):
        textsim("dedupe", "in.parquet", "-o", "out.parquet", "--keep", f"{rule}:score")
        assert ids_of("out.parquet") == [kept]


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_numbers_among_texts(textsim: Textsim, kind: str) -> None:
    values = ["", "9", "10", "n/a"]
    some: Rows = [{"id": i, "text": A, "score": v} for i, v in zip("abcd", values, strict=True)]
    Path(f"in.{kind}").write_bytes(KINDS[kind](some))
    result = textsim("dedupe", f"in.{kind}", "-o", "x", "--keep", "max:score", status=2)
    assert (
        'keep is "max:score", but the column mixes numbers and texts: record 4 has "n/a", and record 2 '
        "has 9; use only numbers or only texts" in result.stderr
    )
    assert os.listdir() == [f"in.{kind}"]


def test_wrong_usage(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    Path("in.txt").write_bytes(b"text")
    Path("short.jsonl.gz").write_bytes(gzip.compress(as_jsonl(records()))[:-10])
    Path("bad.csv").write_bytes(b'id,text\n1,"never closed\n')
    for arguments, message in [
        ([], "give either a file or --table"),
        (["in.jsonl", "--table", "t"], "give either a file or --table"),
        (["in.jsonl"], "give --output, or --report, or both"),
        (["in.jsonl", "-o", "x", "--into", "t"], "it needs --table"),
        (["in.jsonl", "--report", "x.txt"], "x.txt does not end in .jsonl"),
        (["in.jsonl", "-o", "x", "--keep", "best"], 'keep is "best"; expected first, last'),
        (["in.jsonl", "-o", "x", "--threshold", "2"], "threshold is 2.0; expected above 0"),
        (["--table", "t"], "it needs --into"),
        (["in.txt", "-o", "x"], "in.txt: expected a name that ends in .jsonl, .csv"),
        (["none.jsonl", "-o", "x"], "none.jsonl: No such file or directory"),
        ([".", "-o", "x"], "is a folder"),
        (["in.jsonl", "-o", "no/x"], "no/x: cannot be written: there is no folder"),
        (["in.jsonl", "-o", "x", "--text", "body"], "compared: line 1"),
        (["bad.csv", "-o", "x"], "bad.csv: from line 2 on: a quotation mark is not closed"),
        (["bad.csv", "-o", "x", "--keep", "max:size"], 'bad.csv: there is no column "size"'),
        (["short.jsonl.gz", "-o", "x"], "short.jsonl.gz: the gzip file ends too early"),
    ]:
        result = textsim("dedupe", *arguments, status=1 if "body" in arguments else 2)
        assert message in " ".join(result.stderr.replace("│", " ").split()), arguments
        if "body" not in arguments:
            assert not Path("x").exists()
        Path("x").unlink(missing_ok=True)
    assert sorted(os.listdir()) == ["bad.csv", "in.jsonl", "in.txt", "short.jsonl.gz"]


def test_a_file_that_changes_while_it_is_read(
    textsim: Textsim, monkeypatch: pytest.MonkeyPatch
) -> None:
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
