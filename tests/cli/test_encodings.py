"""Files that are not UTF-8: a faulty byte counts where it is read, and --encoding reads the file."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from pathlib import Path

import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.records import ids_of

TEXTS = [f"the quick brown fox number {i % 5} jumps over a lazy dog by a river" for i in range(10)]
AUTHORS = ["René Dubois", "Zoë Müller", "Anna"]
KEPT = [0, 1, 2, 3, 4]


def rows_of(texts: list[str], authors: list[str]) -> list[dict[str, object]]:
    author = [authors[i % len(authors)] for i in range(len(texts))]
    return [{"id": i, "text": text, "author": author[i]} for i, text in enumerate(texts)]


def written(kind: str, rows: list[dict[str, object]], encoding: str) -> bytes:
    if kind == "jsonl":
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode(encoding)
    file = io.StringIO()
    mark = {"csv": ",", "tsv": "\t"}[kind]
    writer = csv.DictWriter(file, ["id", "text", "author"], delimiter=mark, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode(encoding)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_a_faulty_byte_nobody_reads_is_kept(textsim: Textsim, db: ts.Database, kind: str) -> None:
    rows = rows_of(TEXTS, AUTHORS)
    content = written(kind, rows, "latin-1")
    Path(f"in.{kind}").write_bytes(content)
    told = textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}").stderr
    assert "10 documents: 5 kept, 5 removed" in told
    expected = written(kind, [rows[i] for i in KEPT], "latin-1")
    assert Path(f"out.{kind}").read_bytes() == expected
    textsim("index", "c", f"in.{kind}", "--create")
    assert len(db.corpus("c")) == 10
    other = "csv" if kind == "jsonl" else "jsonl"
    for command in (("-o", f"out.{other}"), ("-o", f"out.{other}", "--drop-faulty")):
        told = textsim("dedupe", f"in.{kind}", *command, status=None).stderr
        if "--drop-faulty" in command:
            assert "10 documents: 3 kept, 7 left out" in told
            assert "left out, because it cannot be compared" in told
        else:
            assert '"author" is not UTF-8: byte 0xe9 at character 4; give the encoding of' in told


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_records_not_in_utf8_are_one_line_with_the_way_out(textsim: Textsim, kind: str) -> None:
    texts = [f"{'caffè ' * (i % 2)}{text}" for i, text in enumerate(TEXTS)]
    Path(f"in.{kind}").write_bytes(written(kind, rows_of(texts, ["Anna"]), "cp1252"))
    told = textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}", status=1).stderr
    (line,) = (line for line in told.splitlines() if line.startswith("kept, because"))
    assert "and 2 more: " in line
    assert '"text" is not UTF-8: byte 0xe8 at character 5; give the encoding of the file' in line
    told = textsim("index", "c", f"in.{kind}", "--create", status=1).stderr
    assert told.count("refused: ") == 1
    assert "--encoding" in told


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "shift_jis"])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_encodings_are_read(textsim: Textsim, db: ts.Database, kind: str, encoding: str) -> None:
    accent = "カ" if encoding == "shift_jis" else "ñ"
    rows = rows_of([f"{text} {accent}" for text in TEXTS], [accent])
    Path(f"in.{kind}").write_bytes(written(kind, rows, encoding))
    textsim("dedupe", f"in.{kind}", "-o", f"out.{kind}", "--encoding", encoding)
    assert Path(f"out.{kind}").read_bytes() == written(kind, [rows[i] for i in KEPT], "utf-8")
    textsim("dedupe", f"in.{kind}", "-o", "out.parquet", "--encoding", encoding)
    assert [*map(str, ids_of("out.parquet"))] == [*map(str, KEPT)]
    textsim("index", "c", f"in.{kind}", "--create", "--encoding", encoding)
    Path("a.txt").write_bytes(f"{TEXTS[0]} {accent}".encode(encoding))
    textsim("index", "c", "a.txt", "--encoding", encoding)
    assert db.corpus("c").query(f"{TEXTS[0]} {accent}")[0].similarity == 1


def test_packed_and_piped_files_have_an_encoding_too(textsim: Textsim) -> None:
    rows = rows_of(TEXTS, AUTHORS)
    Path("in.csv.gz").write_bytes(gzip.compress(written("csv", rows, "latin-1")))
    textsim("dedupe", "in.csv.gz", "-o", "out.csv", "--encoding", "latin-1", "--report", "r.jsonl")
    assert Path("out.csv").read_bytes() == written("csv", [rows[i] for i in KEPT], "utf-8")
    told = textsim("dedupe", "in.csv.gz", "-o", "-", "--encoding", "klingon", status=2).stderr
    assert '"klingon" is no encoding of texts; expected one such as cp1252' in told
    for wrong in ("base64", "rot13"):
        told = textsim("dedupe", "in.csv.gz", "-o", "-", "--encoding", wrong, status=2).stderr
        assert "is no encoding" in told


def test_no_byte_is_lost_or_invented(textsim: Textsim, rng: random.Random) -> None:
    """Lines of random bytes: those that stay are copied, and a fault is said exactly where one is."""
    lines = []
    for i in range(300):
        data = bytes(rng.choice([*range(0x80, 0x100), *b"abc"]) for _ in range(rng.randrange(1, 6)))
        lines.append(b"%d,%s w%d,%s" % (i, data if i % 3 else b"x", i, data))
    content = b"id,text,note\n" + b"\n".join(lines) + b"\n"
    Path("in.csv").write_bytes(content)
    told = textsim("dedupe", "in.csv", "-o", "out.csv", "--shingle", "char:40", status=None).stderr
    out = Path("out.csv").read_bytes()
    assert out == content, told

    def is_faulty(line: bytes) -> bool:
        try:
            line.split(b",")[1].decode()
        except UnicodeDecodeError:
            return True
        return False

    textsim("dedupe", "in.csv", "-o", "out.csv", "--shingle", "char:40", "--drop-faulty", status=1)
    good = [line for line in lines if not is_faulty(line)]
    assert Path("out.csv").read_bytes() == b"id,text,note\n" + b"\n".join(good) + b"\n"
