"""textsim dedupe on files of every kind and on tables."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import signal
import stat
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
from tests.support.commands import Textsim, process
from tests.support.sampling import sample
from textsim_db.db import stored_corpus
from textsim_db.dedupe import tables
from textsim_db.files import record_files
from textsim_db.files.record_formats import CsvRecords
from textsim_db.text.tokens import shingles
from textsim_db.write.temporary_corpora import PREFIX

pytestmark = pytest.mark.one_server


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


def test_links_stay_links(textsim: Textsim) -> None:
    os.mkdir("folder")
    Path("folder/in.jsonl").write_bytes(as_jsonl(rows()))
    os.link("folder/in.jsonl", "hard.jsonl")
    os.symlink("folder/in.jsonl", "link.jsonl")
    os.symlink("folder/new.jsonl", "dangling.jsonl")
    textsim("dedupe", "link.jsonl", "-o", "dangling.jsonl")
    textsim("dedupe", "link.jsonl", "-o", "link.jsonl")
    assert os.readlink("link.jsonl") == "folder/in.jsonl"
    assert os.readlink("dangling.jsonl") == "folder/new.jsonl"
    assert ids_of("folder/in.jsonl") == ids_of("folder/new.jsonl") == ["a", "b", "d"]
    assert ids_of("hard.jsonl") == list("abcde")  # it is another file by now
    assert sorted(os.listdir("folder")) == ["in.jsonl", "new.jsonl"]
    os.symlink("loop.jsonl", "loop.jsonl")
    result = textsim("dedupe", "link.jsonl", "-o", "loop.jsonl", status=2)
    assert "loop.jsonl: Too many levels of symbolic links" in result.stderr


def test_pipes(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    os.mkfifo("pipe.jsonl")
    os.mkfifo("report.jsonl")
    for arguments in (["-o", "pipe.jsonl"], ["--report", "report.jsonl"]):
        with subprocess.Popen(
            ["timeout", "60", "cat", arguments[1]], stdout=subprocess.PIPE
        ) as reader:
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
    Path("in.parquet").write_bytes(as_parquet(rows()))
    with subprocess.Popen(["timeout", "60", "cp", "pipe.jsonl", "out.parquet"]) as copier:
        textsim("dedupe", "in.parquet", "-o", "pipe.jsonl")
        assert copier.wait() == 0
    assert ids_of("out.parquet") == ["a", "b", "d"]


def test_a_report_takes_the_place_of_nothing(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    os.link("in.jsonl", "hard.jsonl")
    os.symlink("in.jsonl", "link.jsonl")
    os.symlink("new.jsonl", "dangling.jsonl")
    for arguments, what in [
        (["in.jsonl", "-o", "x.jsonl", "--report", "in.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "x.jsonl", "--report", "./link.jsonl"], "INPUT"),
        (["link.jsonl", "-o", "x.jsonl", "--report", "hard.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "x.jsonl", "--report", "x.jsonl"], "OUTPUT"),
        (["in.jsonl", "-o", "new.jsonl", "--report", "dangling.jsonl"], "OUTPUT"),
    ]:
        result = textsim("dedupe", *arguments, status=2)
        message = f"{arguments[-1]} is {what} as well; name another file"
        assert message in " ".join(result.stderr.replace("│", " ").split())
        assert Path("in.jsonl").read_bytes() == as_jsonl(rows())
        assert len(os.listdir()) == 4


@pytest.mark.parametrize("what", ["INPUT", "OUTPUT"])
def test_a_report_takes_the_place_of_no_stream(
    database_url: str, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(as_jsonl(rows()))
    names = ["-", "-o", "x"] if what == "INPUT" else ["none.jsonl", "-o", "-"]
    with file.open("r+b") as opened:
        stream = {"stdin" if what == "INPUT" else "stdout": opened}
        done = process("dedupe", *names, "--report", str(file), url=database_url, **stream)
    _, told = done.communicate()
    assert done.returncode == 2
    assert f"is {what} as well" in " ".join(told.replace("│", " ").split())
    assert file.read_bytes() == as_jsonl(rows())


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
        'keep is "max:score", but record 4 has "n/a" there, which is no number, and record 2 has 9; '
        "expected only numbers or only texts" in result.stderr
    )
    assert os.listdir() == [f"in.{kind}"]


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
        (["in.jsonl", "-o", "no/x"], "no/x: cannot be written: there is no folder"),
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
    copy = record_files._JsonLines._copy

    def changing(self: Any, *arguments: Any) -> None:
        copy(self, *arguments)
        with open("in.jsonl", "ab") as file:
            file.write(b'{"text": "more"}\n')

    monkeypatch.setattr(record_files._JsonLines, "_copy", changing)
    result = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", status=2)
    assert "in.jsonl was changed while it was read" in result.stderr
    assert os.listdir() == ["in.jsonl"]


def test_a_full_disk(textsim: Textsim) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    Path("in.jsonl").write_bytes(as_jsonl(rows()))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        record_files.open_records("in.jsonl", record_files.Columns("text")) as opened,
        pytest.raises(OSError, match="No space"),
    ):
        opened._copy(np.ones(5, bool), full, False)
    # One of the test's own: root could replace the real one.
    try:
        os.mknod("full.jsonl", stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
        Path("full.jsonl").open("wb").close()
    except PermissionError:
        pytest.skip("no device can be made here")
    for arguments in (["-o", "full.jsonl"], ["--report", "full.jsonl"]):
        result = textsim("dedupe", "in.jsonl", *arguments, status=2)
        assert "full.jsonl: No space left on device" in result.stderr
        assert stat.S_ISCHR(os.stat("full.jsonl").st_mode)


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
    assert 'twins cannot be created: relation "twins" already exists' in again.stderr


@pytest.mark.parametrize(
    ("type_", "values", "kept"),
    [
        ("double precision", "'nan', 1, 9, NULL", {"max": 3, "min": 2}),
        ("numeric", "'nan', 1, 9, NULL", {"max": 3, "min": 2}),
        ("real", "NULL, 'nan', 'nan', NULL", {"max": 1, "min": 1}),
        ("date", "'2024-01-01', NULL, 'infinity', '2023-01-01'", {"max": 3, "min": 4}),
        ("text", "'b', NULL, 'c', 'a'", {"max": 3, "min": 4}),
    ],
)
def test_values_of_tables(
    textsim: Textsim, database_url: str, type_: str, values: str, kept: dict[str, int]
) -> None:
    run_sql(database_url, f"CREATE TABLE post (id int PRIMARY KEY, text text, score {type_})")
    for number, value in enumerate(values.split(", "), start=1):
        run_sql(database_url, f"INSERT INTO post VALUES ({number}, '{A}', {value})")
    for rule, number in kept.items():
        textsim("dedupe", "--table", "post", "--into", rule, "--keep", f"{rule}:score")
        assert run_sql(database_url, f"SELECT DISTINCT kept FROM {rule}") == [(number,)]


def test_a_target_that_cannot_be_is_told_first(
    textsim: Textsim, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(database_url, "CREATE TABLE post (id int, text text)")
    run_sql(database_url, "CREATE VIEW there AS SELECT 1")
    monkeypatch.setattr(tables, "documents", None)
    for into, message in [
        ("nowhere.x", 'nowhere.x cannot be created: schema "nowhere" does not exist'),
        ("pg_catalog.x", "pg_catalog.x cannot be created: permission denied"),
        ("there", 'there cannot be created: relation "there" already exists'),
        ("a.b.c.d", "a.b.c.d cannot be created"),
    ]:
        result = textsim("dedupe", "--table", "post", "--into", into, status=2)
        assert message in result.stderr
    with pytest.raises(TypeError):  # it would go on
        textsim("dedupe", "--table", "post", "--into", "x")
    assert run_sql(database_url, "SELECT to_regclass('x')") == [(None,)]


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


@pytest.mark.parametrize("how", sample([signal.SIGINT, signal.SIGKILL], 2))
def test_what_an_interrupted_process_leaves(
    textsim: Textsim, database_url: str, how: signal.Signals
) -> None:
    texts = documents(30_000, words=60, seed=3)
    Path("in.jsonl").write_bytes(as_jsonl([{"id": i, "text": t} for i, t in texts]))
    command = [sys.executable, "-m", "textsim_db.cli", "dedupe", "in.jsonl", "-o", "out.jsonl"]
    environment = {**os.environ, "TEXTSIM_DATABASE_URL": database_url}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    with ts.connect(database_url) as db:
        while not (names := stored_corpus.names(db.engine)):
            assert process.poll() is None
            time.sleep(0.01)
        assert names[0].startswith(PREFIX)
        assert db.corpora() == []
        process.send_signal(how)
        _, messages = process.communicate()
        assert not Path("out.jsonl").exists()
        if how == signal.SIGINT:
            assert process.returncode == 130
            assert messages == b"interrupted\n"
            assert stored_corpus.names(db.engine) == []
            return
        assert stored_corpus.names(db.engine) == names
        for command in (["corpus", "list"], ["status"], ["check"]):
            result = textsim(*command)
            assert PREFIX not in result.stdout + result.stderr
        Path("small.jsonl").write_bytes(as_jsonl(rows()))
        textsim("dedupe", "small.jsonl", "-o", "out.jsonl")
        assert stored_corpus.names(db.engine) == []
