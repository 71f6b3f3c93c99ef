"""Documents that count for a time, in a shell."""

from __future__ import annotations

from tests.support.commands import NEWS, Textsim, rows
from tests.support.connections import Connection


def test_a_table_with_times_and_its_removal(textsim: Textsim, connection: Connection) -> None:
    connection.execute("CREATE TABLE post (id text PRIMARY KEY, body text, written timestamptz)")
    connection.execute("INSERT INTO post SELECT 'a', %s, now()", [NEWS["a"]])
    connection.execute("INSERT INTO post SELECT 'c', %s, now() - interval '1 day'", [NEWS["c"]])
    textsim("corpus", "create", "posts", "--keep-for", "2 days")
    textsim("attach", "posts", "post", "--text", "body", "--time", "written")
    query = "query", "posts", NEWS["a"], "--format", "jsonl"
    assert [row["key"] for row in rows(textsim(*query))] == ["a", "c"]
    connection.execute("UPDATE textsim.document_1 SET expires_at = now() WHERE key = 'c'")
    assert [row["key"] for row in rows(textsim(*query))] == ["a"]
    assert textsim("expire", "posts").stderr == "removed 1 document\n"
    assert textsim("expire", "posts").stderr == "removed 0 documents\n"
    textsim("corpus", "create", "plain")
    assert "keeps its documents for ever" in textsim("expire", "plain", status=2).stderr
