"""Corpora of all kinds in a shell: scopes, boilerplate, expiry, tracked clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import NEWS, Textsim
from tests.support.connections import Connection
from textsim_db.cli import operations


def test_unknown(news: Textsim) -> None:
    for command in (["corpus", "list"], ["pairs"], ["clusters"], ["check"], ["corpus", "drop"]):
        result = news(*command, "newz", status=2)
        assert result.stderr == 'error: corpus "newz" does not exist; did you mean "news"?\n'


def test_stop_words(textsim: Textsim, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("The\nof\n\nDon't\n")
    result = textsim("corpus", "create", "news", "--stop-words", str(words))
    assert "stop words       don of t the" in result.stdout
    textsim("corpus", "create", "news", "--stop-words", str(words), "--exist-ok")
    wrong = textsim("corpus", "create", "news", "--stop-words", "en", "--exist-ok", status=2)
    assert "stop words is 4 words (don, of, t, the) there, not" in wrong.stderr
    assert "stop words       none" in textsim("corpus", "create", "plain").stdout
    wrong = textsim("corpus", "create", "other", "--stop-words", "xx", status=2)
    assert 'there are no stop words for "xx"' in wrong.stderr
    wrong = textsim("corpus", "create", "other", "--stop-words", "no/such/file", status=2)
    assert "no/such/file" in wrong.stderr
    file = tmp_path / "news.jsonl"
    file.write_text('{"id": 1, "text": "the bridge of"}\n{"id": 2, "text": "of the bridge"}\n')
    result = textsim("dedupe", str(file), "-o", "-", "--stop-words", "en", "--shingle", "word:1")
    assert result.stdout.splitlines() == ['{"id": 1, "text": "the bridge of"}']


SCOPES = {"a": "anna", "b": "bert", "c": "bert", "d": "7"}


@pytest.fixture
def scoped(textsim: Textsim) -> Textsim:
    users = SCOPES | {"d": 7}
    records = [{"id": key, "text": text, "user": users[key]} for key, text in NEWS.items()]
    lines = "\n".join(map(json.dumps, [*records, {"id": "e", "text": "no user", "user": None}]))
    Path("notes.jsonl").write_text(lines)
    result = textsim("index", "notes", "notes.jsonl", "--scope", "user", "--create", status=1)
    assert "4 added" in result.stderr
    assert '"user" is null' in result.stderr
    return textsim


def test_a_misspelt_scope_is_named_after_an_empty_result(
    scoped: Textsim, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoped("corpus", "create", "letters", "--scoped", "--passages", "6", "--recall", "1")
    scoped("index", "letters", "notes.jsonl", "--scope", "user", status=1)
    text = NEWS["a"]
    commands = [("pairs", "notes"), ("clusters", "notes"), ("clusters", "notes", "--inspect")]
    commands += [("query", "notes", text), ("passages", "letters", text)]
    commands += [("contamination", "news.jsonl", "--against", "letters")]
    commands += [("stats", "notes"), ("plan", "notes")]
    Path("news.jsonl").write_text(json.dumps({"id": "q", "text": text}))
    unknown = 'no document has the scope "Berta"; did you mean "bert"?\n'
    for command in commands:
        assert unknown in scoped(*command, "--scope", "Berta").stderr
        assert "no document has the scope" not in scoped(*command, "--scope", "bert").stderr
    absent = ("quotations", "news.jsonl", "--against", "letters", "--scope", "Berta")
    assert unknown in scoped(*absent, status=1).stderr
    assert "no document has" not in scoped("pairs", "notes", "--scope", "anna").stderr
    monkeypatch.setattr(operations, "_MOST_READ_FOR_SCOPES", 3)
    far = scoped("query", "notes", text, "--scope", "Berta").stderr
    assert far.endswith("to list the scopes: textsim status notes --scopes\n")


def test_a_scope_is_refused_without_scopes(textsim: Textsim) -> None:
    Path("plain.jsonl").write_text(json.dumps({"id": "a", "text": NEWS["a"], "user": "anna"}))
    textsim("index", "plain", "plain.jsonl", "--create")
    for command in (("query", "plain", "text"), ("pairs", "plain")):
        result = textsim(*command, "--scope", "anna", status=2)
        assert 'corpus "plain" is not scoped; leave the scope out' in result.stderr
    result = textsim("index", "plain", "plain.jsonl", "--scope", "user", status=2)
    assert 'corpus "plain" is not scoped; leave the scope out' in result.stderr
    textsim("corpus", "create", "scoped", "--scoped")
    result = textsim("index", "scoped", "plain.jsonl", status=2)
    assert "the option --scope names the column" in result.stderr
    result = textsim("index", "new", "plain.jsonl", "--create", "--scoped", status=2)
    assert "of the scopes with --scope" in " ".join(result.stderr.split())
    assert "new" not in textsim("corpus", "list").stdout
    assert textsim("status", "scoped", "--scopes").stderr == "no document is stored\n"


def test_a_corpus_is_tracked_and_untracked(textsim: Textsim, connection: Connection) -> None:
    textsim("corpus", "create", "news")
    for key in ("a", "b"):
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS["a"]])
    refused = textsim("track", "news", "--linkage", "single", status=2).stderr
    assert "linkage is 'single'; tracked clusters have linkage kept only" in refused
    assert textsim("track", "news").stderr == "compared 2 documents\n"
    query = "SELECT key FROM textsim.members('news') ORDER BY key"
    assert connection.execute(query).fetchall() == [("a",), ("b",)]
    assert textsim("track", "news", status=2).stderr == (
        'error: corpus "news" is tracked already. To track it otherwise, untrack it first: that removes '
        "the clusters.\n"
    )
    assert "give --yes" in textsim("untrack", "news", status=2).stderr
    textsim("untrack", "news", "--yes")
    assert "is not tracked" in textsim("untrack", "news", "--yes", status=2).stderr


def test_status_shows_how_far_clusters_are_behind(textsim: Textsim, connection: Connection) -> None:
    textsim("corpus", "create", "news")
    textsim("track", "news", "--threshold", "0.9")
    for key in ("a", "b", "a"):
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS[key] + NEWS["d"]])
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS[key]])
    result = textsim("status")
    assert "tracked   linkage   threshold   outdated   outdated_since" in result.stdout
    assert "news      kept         0.9000          2   0." in result.stdout
    connection.execute("UPDATE textsim.pending SET created_at = now() - interval '1 hour'")
    messages = textsim("status").stderr
    assert "no worker is connected, and changes wait" in messages
    assert "2 documents stored as text" in messages
    [state] = json.loads(textsim("status", "--format", "jsonl").stdout)["corpora"]
    assert (state["linkage"], state["tracked_threshold"], state["outdated"]) == ("kept", 0.9, 2)
    assert state["cluster_lag"] >= 3600
    connection.execute("CALL textsim.index_pending('news')")
    query = "SELECT outdated, outdated_since FROM textsim.status('news')"
    assert connection.execute(query).fetchall() == [(0, None)]
    query = "SELECT key FROM textsim.members('news') ORDER BY key"
    assert connection.execute(query).fetchall() == [("a",), ("b",)]


TABLES = ["word", "document", "band", "passage", "cluster_event", "crowded", "member", "match"]
TABLES.append("node")


def test_a_corpus_without_a_table_hides_no_other(textsim: Textsim, connection: Connection) -> None:
    for i, table in enumerate(TABLES, 1):
        name = f"lacks {table}"
        connection.execute("SELECT textsim.create_corpus(%s, passages => 8)", [name])
        connection.execute("SELECT textsim.track(%s)", [name])
        connection.execute(f"DROP TABLE textsim.{table}_{i} CASCADE".encode())
    connection.execute("SELECT textsim.create_corpus('whole')")
    shown = textsim("status", status=1)
    assert "whole" in shown.stdout
    damaged = [line for line in shown.stderr.splitlines() if "is damaged" in line]
    assert all("textsim check says how" in line for line in damaged)
    assert any('"lacks document"' in line for line in damaged)
    assert "whole" in textsim("corpus", "list", status=1).stdout
    assert "no document was set aside" in textsim("pending", status=1).stderr
    assert 'corpus="whole"' in textsim("status", "--prometheus").stdout
    assert len({line.split()[0] for line in textsim("check", status=1).stdout.splitlines()}) > 1
