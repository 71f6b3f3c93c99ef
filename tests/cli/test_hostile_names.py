"""Names that hold SQL or control characters: corpora, keys, tables, columns, files, addresses."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.sampling import sample

TEXT = "the quick brown fox jumps over the lazy dog near the river bank"
NAMES = [
    *("'; DROP TABLE textsim.corpus; --", 'x"; DROP SCHEMA textsim CASCADE; --', "100%"),
    *("%s %(x)s %% %I %1$s", "{0} {document} {band!r} {{", "$$ $body$ $1 :name ?"),
    *("\\ \\' \\x41 E'\\n'", "line\nbreak\r\ttab", "\u202egnp.txt\u2066"),
    *("\x1b[31mred\x1b[0m \x07", "[red]markup[/red] [link=x]", "-rf", "--help", "select", "user"),
    *("null", "é" * 40, "漢字🙂ﬁ", " ", "textsim.corpus", "a.b.c", "../../etc/passwd", "=1+1"),
]


def lines(result: Any) -> list[str]:
    """Return the messages, after a check that they have no control characters."""
    for character in result.stderr:
        assert character == "\n" or character.isprintable(), result.stderr
    return list(result.stderr.splitlines())


@pytest.mark.parametrize("name", sample((name for name in NAMES if name.strip()), 12))
def test_corpora_keys(textsim: Textsim, database_url: str, name: str, rng: random.Random) -> None:
    documents = [{"id": key, "text": f"{TEXT} {i}"} for i, key in enumerate(NAMES)]
    Path("in.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    textsim("corpus", "create", "--shingle", "word:1", "--threshold", "0.5", "--", name)
    lines(textsim("index", "--", name, "in.jsonl"))
    found = textsim("query", "--format", "jsonl", "--", name, TEXT).stdout
    assert {json.loads(line)["key"] for line in found.splitlines()} == set(NAMES)
    for key in (name, *rng.sample(NAMES, 3)):
        assert textsim("neighbours", "--format", "csv", "--", name, key).stdout
    table = textsim("query", "--", name, TEXT).stdout
    assert all(c == "\n" or c.isprintable() for c in table)
    for command in ("pairs", "clusters", "stats", "status", "pending", "check"):
        lines(textsim(command, "--", name))
    lines(textsim("remove", "--", name, *NAMES))
    assert len(lines(textsim("remove", "--", name, NAMES[0], status=2))) == 2
    lines(textsim("rebuild", "--threshold", "0.6", "--", name))
    assert len(lines(textsim("corpus", "create", "--", name, status=2))) == 1
    with psycopg.connect(database_url, autocommit=True) as connection:
        run = connection.execute
        assert run("SELECT textsim.add(%s, %s, %s)", [name, name, TEXT]).fetchall() == [(True,)]
        for function in ("matches", "candidates"):
            statement = f"SELECT key FROM textsim.{function}(%s, %s)".encode()
            assert run(statement, [name, TEXT]).fetchall() == [(name,)]
        assert run("SELECT * FROM textsim.pairs(%s)", [name]).fetchall() == []
        assert run("SELECT indexed FROM textsim.status(%s)", [name]).fetchall() == [(1,)]
    lines(textsim("corpus", "drop", "--yes", "--", name))
    assert len(lines(textsim("corpus", "list", "--", name, status=2))) == 1
    with ts.connect(database_url) as db:
        assert list(db.corpora()) == []


def test_impossible_names_of_tables(textsim: Textsim, database_url: str) -> None:
    names = ["; DROP TABLE x", 'a"b', '"open', "a.b.c.d", "", " ", "a\nb", "%s", "x(", "é" * 99]
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE x (id integer PRIMARY KEY, text text)")
        connection.execute("INSERT INTO x VALUES (1, 'a text'), (2, 'another')")
    textsim("corpus", "create", "news")
    for name, command in product(names, ("attach", "detach")):
        messages = lines(textsim(command, "--", "news", name, status=2))
        assert any(message.startswith("error: ") for message in messages), (command, name)
        assert "Traceback" not in "".join(messages)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM x").fetchone() == (2,)


@pytest.mark.parametrize("name", sample((n for n in NAMES if "/" not in n and n.strip()), 12))
def test_files(textsim: Textsim, name: str) -> None:
    folder = Path("folder")
    folder.mkdir()
    path = folder / (name[:60] + ".txt")
    path.write_text(TEXT)
    (folder / (name[:60] + ".jsonl")).write_bytes(b"{\n\xff\n")
    lines(textsim("index", "news", "folder", "--create", status=1))
    found = textsim("query", "news", TEXT, "--format", "jsonl").stdout
    assert json.loads(found)["key"] == str(path)
    messages = lines(textsim("index", "news", f"missing/{name}", status=2))
    assert len(messages) == 2
    assert messages[1].startswith("refused: missing/")
    lines(textsim("dedupe", f"missing/{name}.jsonl", "-o", "out.jsonl", status=2))
    out = str(folder / (name[:50] + ".out.jsonl"))
    Path("in.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    lines(textsim("dedupe", "in.jsonl", "-o", out))
    assert Path(out).read_bytes() == Path("in.jsonl").read_bytes()
