"""Scoped corpora in a shell: index, query, pairs, clusters, stats, plan and attach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import NEWS, Textsim, rows
from tests.support.connections import Connection

SCOPES = {"a": "anna", "b": "bert", "c": "bert", "d": "7"}


@pytest.fixture
def scoped(textsim: Textsim) -> Textsim:
    records = [
        {"id": key, "text": text, "user": SCOPES[key] if key != "d" else 7}
        for key, text in NEWS.items()
    ]
    lines = "\n".join(map(json.dumps, [*records, {"id": "e", "text": "no user", "user": None}]))
    Path("notes.jsonl").write_text(lines)
    result = textsim("index", "notes", "notes.jsonl", "--scope", "user", "--create", status=1)
    assert "4 added" in result.stderr
    assert '"user" is null' in result.stderr
    return textsim


def test_searches_are_of_one_scope(scoped: Textsim) -> None:
    for scope, keys in (("anna", ["a"]), ("bert", ["b", "c"]), ("7", [])):
        result = scoped("query", "notes", NEWS["a"], "--scope", scope, "--format", "jsonl")
        assert [row["key"] for row in rows(result)] == keys
    result = scoped("query", "notes", NEWS["a"], status=2)
    assert 'corpus "notes" is scoped, and no scope is given' in result.stderr
    assert [
        row["key"] for row in rows(scoped("neighbours", "notes", "b", "--format", "jsonl"))
    ] == ["c"]


def test_status_lists_the_scopes(scoped: Textsim) -> None:
    listed = rows(scoped("status", "notes", "--scopes", "--format", "jsonl"))
    assert [(row["scope"], row["indexed"]) for row in listed] == [
        ("bert", 2),
        ("7", 1),
        ("anna", 1),
    ]
    assert "--scopes: name the corpus" in " ".join(
        scoped("status", "--scopes", status=2).stderr.replace("'", "").split()
    )
    watching = scoped("status", "notes", "--scopes", "--watch", "1", status=2)
    assert "--scopes, which lists once" in watching.stderr


def test_pairs_and_clusters_are_of_each_scope_or_of_one(scoped: Textsim) -> None:
    for scope, count in (((), 1), (("--scope", "bert"), 1), (("--scope", "anna"), 0)):
        for command in ("pairs", "clusters"):
            assert len(rows(scoped(command, "notes", *scope, "--format", "jsonl"))) == count
    result = json.loads(scoped("stats", "notes", "--scope", "bert", "--format", "jsonl").stdout)
    assert result["documents"] == 2
    assert "1 of 1 pair" in scoped("plan", "notes", "--scope", "bert").stdout


def test_a_scope_is_refused_without_scopes(textsim: Textsim) -> None:
    Path("plain.jsonl").write_text(json.dumps({"id": "a", "text": NEWS["a"], "user": "anna"}))
    textsim("index", "plain", "plain.jsonl", "--create")
    for command in (("query", "plain", "text"), ("pairs", "plain")):
        result = textsim(*command, "--scope", "anna", status=2)
        assert 'corpus "plain" is not scoped; leave the scope out' in result.stderr
    result = textsim("index", "plain", "plain.jsonl", "--scope", "user", status=2)
    assert "the document has a scope, and the corpus is not scoped" in result.stderr


def test_attach_creates_a_scoped_corpus(textsim: Textsim, connection: Connection) -> None:
    connection.execute("CREATE TABLE note (id text PRIMARY KEY, body text, owner int)")
    connection.execute("INSERT INTO note VALUES ('1', %(a)s, 1), ('2', %(b)s, 2)", NEWS)
    options = "--text", "body", "--scope", "owner", "--create"
    assert "2 added" in textsim("attach", "notes", "note", *options).stderr
    result = textsim("query", "notes", NEWS["a"], "--scope", "2", "--format", "jsonl")
    assert [row["key"] for row in rows(result)] == ["2"]
    assert "owner" in connection.execute("SELECT scope_column FROM textsim.sources").fetchall()[0]


def test_dedupe_compares_records_of_one_scope(textsim: Textsim, connection: Connection) -> None:
    records: list[dict[str, str | None]] = [
        {"id": key, "text": text, "user": SCOPES[key]} for key, text in NEWS.items()
    ]
    records.append({"id": "e", "text": NEWS["a"], "user": None})
    Path("in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    result = textsim("dedupe", "in.jsonl", "--scope", "user", "-o", "out.jsonl", status=1)
    assert "record 5" in result.stderr or "line 5" in result.stderr
    kept = [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()]
    assert kept == ["a", "b", "d", "e"]
    connection.execute("CREATE TABLE note (id text PRIMARY KEY, body text, owner text)")
    rows_of_table = [(record["id"], record["text"], record["user"]) for record in records]
    connection.cursor().executemany("INSERT INTO note VALUES (%s, %s, %s)", rows_of_table)
    options = "--text", "body", "--scope", "owner", "--into", "cluster"
    result = textsim("dedupe", "--table", "note", *options, status=1)
    assert 'the row with key "e": the scope is missing' in result.stderr
    found = connection.execute("SELECT key, kept FROM cluster ORDER BY key").fetchall()
    assert found == [("b", "b"), ("c", "b")]
