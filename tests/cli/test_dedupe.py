"""textsim dedupe on files of every kind and on tables."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.cli.test_cli import Textsim, textsim
from textsim_db import records
from textsim_db.formats import CsvRecords
from textsim_db.temporary import PREFIX
from textsim_db.text import shingles

pytestmark = pytest.mark.one_server

__all__ = ["textsim"]

Rows = list[dict[str, Any]]
A = "the quick brown fox jumps over the lazy dog near the old river bank today"
NEAR_A = "The quick, brown fox jumps over the lazy dog near the old river bank today!"
LONGER_A = A + " again"
B = "something else that no other document says in these very words"


def rows() -> Rows:
    texts = [A, B, NEAR_A, "", LONGER_A]
    return [
        {"id": name, "text": text, "score": score}
        for name, text, score in zip("abcde", texts, [3, 9, 7, 5, None], strict=True)
    ]


def as_jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(rows: Rows) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, ["id", "text", "score"])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_parquet(rows: Rows) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def ids_of(name: str) -> list[Any]:
    data = Path(name).read_bytes()
    if name.endswith(".gz"):
        data = gzip.decompress(data)
    if "csv" in name:
        return [
            record[0] for _, _, record in CsvRecords(io.BytesIO(data)) if isinstance(record, list)
        ]
    if "parquet" in name:
        parquet = pytest.importorskip("pyarrow.parquet")
        return [row["id"] for row in parquet.read_table(io.BytesIO(data)).to_pylist()]
    return [json.loads(line)["id"] for line in data.splitlines()]


KINDS: dict[str, Callable[[Rows], bytes]] = {
    "jsonl": as_jsonl,
    "csv": as_csv,
    "jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows)),
    "csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "parquet": as_parquet,
}


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
def test_one_of_each_cluster_is_left(textsim: Textsim, kind: str, keep: str, left: str) -> None:
    Path(f"in.{kind}").write_bytes(KINDS[kind](rows()))
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
    assert 'stays: line 3: "text" is a number; a string was expected' in result.stderr
    assert "stays: line 4: malformed JSON at character 1" in result.stderr
    header = b'\xef\xbb\xbfid,"text"\r\n'
    records_ = [
        b'1,"some ""words"" over\r\ntwo lines"\r\n',
        b"2,b,c\r\n",
        b'3,"some words over two lines"',
    ]
    Path("in.csv").write_bytes(header + b"".join(records_))
    result = textsim("dedupe", "in.csv", "-o", "out.csv", status=1)
    assert Path("out.csv").read_bytes() == header[3:] + b"".join(records_[:2])
    assert "stays: line 4: 3 columns, where the header has 2" in result.stderr


def test_reports(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    textsim("dedupe", "in.jsonl", "--report", "r.jsonl")
    sets = [set(shingles(row["text"], "word:3")) for row in rows()]
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
    textsim("dedupe", "in.jsonl", "--report", "r.csv", "--key", "score")
    assert Path("r.csv").read_text().splitlines() == [
        "cluster,record,key,kept_record,kept_key,similarity",
        "1,1,3,1,3,1.0",
        "1,3,7,1,3,1.0",
        f"1,5,,1,3,{similarity!r}",
    ]


def test_what_is_removed_is_similar_to_what_is_kept(textsim: Textsim, rng: random.Random) -> None:
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


def test_standard_input_and_output(textsim: Textsim) -> None:
    result = textsim("dedupe", "-", "-o", "-", input=as_jsonl(rows()).decode())
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a", "b", "d"]
    result = textsim("dedupe", "-", "--kind", "csv", "-o", "-", input=as_csv(rows()).decode())
    assert [line[0] for line in result.stdout.splitlines()] == ["i", "a", "b", "d"]


def test_a_file_in_the_place_of_itself(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    os.chmod("in.jsonl", 0o640)
    textsim("dedupe", "in.jsonl", "-o", "in.jsonl")
    assert ids_of("in.jsonl") == ["a", "b", "d"]
    assert os.stat("in.jsonl").st_mode & 0o777 == 0o640
    assert os.listdir() == ["in.jsonl"]


def test_wrong_usage(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    Path("in.txt").write_bytes(b"text")
    Path("short.jsonl.gz").write_bytes(gzip.compress(as_jsonl(rows()))[:-10])
    Path("bad.csv").write_bytes(b'id,text\n1,"never closed\n')
    for arguments, message in [
        ([], "give either a file or --table"),
        (["in.jsonl", "--table", "t"], "give either a file or --table"),
        (["in.jsonl"], "give --output, or --report, or both"),
        (["in.jsonl", "-o", "x", "--into", "t"], "it goes with --table"),
        (["in.jsonl", "--report", "x.txt"], "ends in neither .jsonl nor .csv"),
        (["in.jsonl", "-o", "x", "--keep", "best"], 'keep is "best"; expected first, last'),
        (["in.jsonl", "-o", "x", "--threshold", "2"], "threshold is 2.0; expected above 0"),
        (["--table", "t"], "go into a table: --into"),
        (["in.txt", "-o", "x"], "in.txt: expected a file that ends in .jsonl, .csv"),
        (["none.jsonl", "-o", "x"], "none.jsonl: No such file or directory"),
        ([".", "-o", "x"], "is a folder"),
        (["in.jsonl", "-o", "no/x"], "No such file or directory"),
        (["in.jsonl", "-o", "x", "--text", "body"], "stays: line 1"),
        (["bad.csv", "-o", "x"], "bad.csv: from line 2 on: a quotation mark is opened"),
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
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    copy = records._JsonLines._copy

    def changing(self: Any, *arguments: Any) -> None:
        copy(self, *arguments)
        with open("in.jsonl", "ab") as file:
            file.write(b'{"text": "more"}\n')

    monkeypatch.setattr(records._JsonLines, "_copy", changing)
    result = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", status=2)
    assert "in.jsonl was changed while it was read" in result.stderr
    assert os.listdir() == ["in.jsonl"]


def test_a_full_disk(textsim: Textsim) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        records.open_records("in.jsonl", records.Columns("text")) as opened,
        pytest.raises(OSError, match="No space"),
    ):
        opened._copy(np.ones(5, bool), full, False)


def run_sql(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("keep", ["first", "max:score", "min:score", "longest"])
def test_tables(textsim: Textsim, database_url: str, keep: str) -> None:
    run_sql(database_url, 'CREATE SCHEMA "My Blog"')
    run_sql(
        database_url, 'CREATE TABLE "My Blog".post (id int PRIMARY KEY, body text, score numeric)'
    )
    for number, row in enumerate(rows(), start=8):
        with psycopg.connect(database_url) as connection:
            connection.execute(
                'INSERT INTO "My Blog".post VALUES (%s, %s, %s)',
                [number, row["text"] or None, row["score"]],
            )
    arguments = ["--table", '"My Blog".post', "--text", "body", "--into", "twins", "--keep", keep]
    result = textsim("dedupe", *arguments)
    assert "5 documents: 3 kept, 2 to remove from 1 cluster" in result.stderr
    kept = {"first": 8, "max:score": 10, "min:score": 8, "longest": 12}[keep]
    assert run_sql(database_url, "SELECT key, cluster, kept FROM twins ORDER BY key") == [
        (8, 1, kept),
        (10, 1, kept),
        (12, 1, kept),
    ]
    run_sql(database_url, "SELECT textsim.create_corpus('words')")
    assert run_sql(
        database_url,
        "SELECT bool_and(t.similarity = textsim.jaccard('words', p.body, q.body)) FROM twins t "
        'JOIN "My Blog".post p ON p.id = t.key JOIN "My Blog".post q ON q.id = t.kept',
    ) == [(True,)]
    assert run_sql(database_url, 'SELECT count(*) FROM "My Blog".post') == [(5,)]
    again = textsim("dedupe", *arguments, status=2)
    assert "twins exists already; name another table, or drop it" in again.stderr


def test_tables_that_cannot_be(textsim: Textsim, database_url: str) -> None:
    run_sql(database_url, "CREATE TABLE post (id int, body text)")
    run_sql(database_url, "INSERT INTO post VALUES (1, 'a'), (1, 'b')")
    for arguments, message in [
        (["--table", "nothing", "--into", "x"], "there is no table 'nothing'"),
        (
            ["--table", "post", "--into", "x"],
            'table post has no column "text"; it has "id", "body"',
        ),
        (
            ["--table", "post", "--text", "body", "--into", "a..b"],
            "'a..b' is not the name of a table",
        ),
        (["--table", "post", "--text", "body", "--into", "x"], 'the column "id" has "1" twice'),
    ]:
        result = textsim("dedupe", *arguments, status=2)
        assert message in result.stderr, arguments
    run_sql(database_url, "UPDATE post SET id = NULL WHERE body = 'b'")
    result = textsim("dedupe", "--table", "post", "--text", "body", "--into", "x", status=2)
    assert 'the column "id" has NULL' in result.stderr
    assert run_sql(database_url, "SELECT count(*) FROM textsim.corpus") == [(0,)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_an_interrupted_process_leaves(
    textsim: Textsim, database_url: str, how: signal.Signals
) -> None:
    texts = documents(30_000, words=60, seed=3)
    Path("in.jsonl").write_bytes(as_jsonl([{"id": i, "text": t} for i, t in texts]))
    command = [sys.executable, "-m", "textsim_db.cli", "dedupe", "in.jsonl", "-o", "out.jsonl"]
    environment = {**os.environ, "TEXTSIM_DATABASE_URL": database_url}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    with ts.connect(database_url) as db:
        while not (names := db.corpora()):
            assert process.poll() is None
            time.sleep(0.01)
        assert names[0].startswith(PREFIX)
        process.send_signal(how)
        _, messages = process.communicate()
        assert not Path("out.jsonl").exists()
        if how == signal.SIGINT:
            assert process.returncode == 130
            assert messages == b"interrupted\n"
            assert db.corpora() == []
            return
        assert db.corpora() == names
        Path("small.jsonl").write_bytes(as_jsonl(rows()))
        textsim("dedupe", "small.jsonl", "-o", "out.jsonl")
        assert db.corpora() == []
