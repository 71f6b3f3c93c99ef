"""Documents whose words wait for ids are stored and searched like all others."""

from __future__ import annotations

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from tests.support.sources import text_of


def test_check_reports_documents_without_ids_and_log_entry(
    corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute(
        "SELECT textsim.add('c', k, 'one two three') FROM unnest('{a,\"\"}'::text[]) k"
    )
    assert corpus.check() == []
    connection.execute("DELETE FROM textsim.pending")
    problems = corpus.check()
    assert {problem[:2] for problem in problems} == {("words", "a"), ("words", "")}
    assert corpus.reconcile().completed == 2
    assert corpus.check() == []


def test_documents_of_every_origin_are_stored_as_the_same_rows(
    db: ts.Database, connection: Connection
) -> None:
    """Documents come from Python, from SQL, or from a table in either mode."""
    texts = {
        "1": text_of(1),
        "2": "Быстрая ЛИСА, 素早い狐が跳ぶ, สุนัข ½ ﬁne e\u0301",
        "3": "short",
        "4": "",
        "5": "!?",
        "6": " ".join(f"w{i}" for i in range(2000)),
    }
    rows = (
        "SELECT d.key, d.word_ids, d.signature, d.shingle_count, d.normal_form, "
        "array(SELECT b.bucket FROM {1} b WHERE b.document_id = d.id ORDER BY b.bucket) "
        "FROM {0} d ORDER BY d.key"
    )
    rows_by_way = {}
    for way in ("python", "add", "add over another", "queue", "inline", "inline over another"):
        corpus = db.create_corpus(way)
        table = way.replace(" ", "_")
        if way == "python":
            corpus.add_many(texts.items())
        elif way.startswith("add"):
            for key, text in texts.items():
                if way != "add":
                    corpus.add(key, f"{text} and what was there before it")
                connection.execute("SELECT textsim.add(%s, %s, %s)", [way, key, text])
        else:
            connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
            corpus.attach(table, "id", "body", way.partition(" ")[0])
            for key, text in texts.items():
                insert = f"INSERT INTO {table} VALUES (%s, %s)".encode()
                connection.execute(insert, [key, text + " more" * (way[-1] == "r")])
            connection.execute(
                f"UPDATE {table} SET body = t.body FROM unnest(%s::text[], %s::text[]) t (id, body) "
                f"WHERE t.id = {table}.id".encode(),
                [list(texts), list(texts.values())],
            )
        db.worker().run(until_idle=True)
        rows_by_way[way] = connection.execute(
            rows.format(*tables_of(connection, way)).encode()
        ).fetchall()
        assert corpus.check() == []
        assert len(rows_by_way[way]) == len(texts)
    for way, stored_rows in rows_by_way.items():
        assert stored_rows == rows_by_way["python"], way
