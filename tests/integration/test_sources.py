"""Tables that stay indexed: whatever happens to the table, the corpus becomes equal to it."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Table, Text, cast, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import MODES, expected, make_table, settle, stored, text_of
from tests.support.waiting import wait_for
from tests.support.workers import leased, working
from textsim_db.db.engine import plain_url, sqlalchemy_url
from textsim_db.sync import source_changes, source_rows
from textsim_db.sync.worker import GIVE_UP_TRIES

pytestmark = pytest.mark.one_server


@pytest.mark.parametrize("mode", MODES)
def test_what_is_there_is_indexed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str
) -> None:
    make_table(connection)
    report = corpus.attach("t", "id", "body", mode)
    assert (report.added, report.unchanged) == (5, 0)
    assert stored(connection) == expected(connection, "t")
    settle(db, corpus)


STATEMENTS: dict[str, list[LiteralString]] = {
    "insert": ["INSERT INTO t VALUES (10, 'one more text that is here')"],
    "insert many": [
        "INSERT INTO t SELECT i, 'text ' || i || ' of many' FROM generate_series(10, 99) i"
    ],
    "insert nothing": ["INSERT INTO t SELECT 10, 'none' WHERE false"],
    "update text": ["UPDATE t SET body = 'a text that was changed' WHERE id = 2"],
    "update all texts": ["UPDATE t SET body = body || ' with something added to it'"],
    "update key": ["UPDATE t SET id = 200 WHERE id = 2"],
    "update both": ["UPDATE t SET id = 200, body = 'another key and text' WHERE id = 2"],
    "update neither": ["UPDATE t SET other = 5"],
    "a chain of keys": ["UPDATE t SET id = -id - 1", "UPDATE t SET id = -id"],
    "delete": ["DELETE FROM t WHERE id = 3"],
    "delete all": ["DELETE FROM t"],
    "truncate": ["TRUNCATE t"],
    "truncate and refill": ["TRUNCATE t", "INSERT INTO t VALUES (1, 'the only one that is left')"],
    "to null": ["UPDATE t SET body = NULL WHERE id = 1"],
    "null and back": [
        "UPDATE t SET body = NULL WHERE id = 1",
        "UPDATE t SET body = 'it is back again' WHERE id = 1",
    ],
    "insert null": ["INSERT INTO t VALUES (10, NULL)"],
    "no words": ["INSERT INTO t VALUES (10, '...')", "UPDATE t SET body = '' WHERE id = 1"],
    "upsert": [
        "INSERT INTO t VALUES (1, 'upserted here'), (11, 'inserted by an upsert') "
        "ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    ],
    "upsert nothing": ["INSERT INTO t VALUES (1, 'not taken') ON CONFLICT DO NOTHING"],
    "merge": [
        "MERGE INTO t USING (VALUES (1, 'merged into it'), (12, 'added by a merge')) v (id, body) "
        "ON t.id = v.id WHEN MATCHED THEN UPDATE SET body = v.body "
        "WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.body)"
    ],
    "writable cte": [
        "WITH gone AS (DELETE FROM t WHERE id = 1 RETURNING *) "
        "INSERT INTO t SELECT 13, body || ' moved' FROM gone"
    ],
    "copy": ["COPY"],
    "delete and insert again": [
        "BEGIN",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (1, 'the same key with another text')",
        "COMMIT",
    ],
    "rollback": [
        "BEGIN",
        "INSERT INTO t VALUES (10, 'never to be seen')",
        "DELETE FROM t",
        "ROLLBACK",
    ],
    "savepoint": [
        "BEGIN",
        "INSERT INTO t VALUES (10, 'this one stays')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (11, 'this one goes')",
        "UPDATE t SET body = 'and this goes as well' WHERE id = 1",
        "ROLLBACK TO a",
        "UPDATE t SET body = 'but this one stays' WHERE id = 2",
        "COMMIT",
    ],
}


def run(connection: Connection, statements: list[LiteralString]) -> None:
    for statement in statements:
        if statement == "COPY":
            with connection.cursor().copy("COPY t (id, body) FROM STDIN") as copy:
                for number in range(20, 40):
                    copy.write_row((number, text_of(number)))
        else:
            connection.execute(statement)


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_statements(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str, name: str
) -> None:
    if name == "merge" and connection.info.server_version < 150000:
        pytest.skip("MERGE came with PostgreSQL 15")
    make_table(connection)
    corpus.attach("t", "id", "body", mode)
    run(connection, STATEMENTS[name])
    if mode == "inline" and name != "a chain of keys":
        # Found at once, in the very transaction, and gone at once.
        assert stored(connection) == expected(connection, "t")
        assert corpus.check() == []
    settle(db, corpus)
    assert stored(connection) == expected(connection, "t")
    rows = connection.execute("SELECT id::text, body FROM t WHERE body ~ '[a-z]'").fetchall()
    for key, body in rows[:20]:
        assert key in [match.key for match in corpus.query(body)], key


def test_an_update_of_other_columns_is_not_logged(
    corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute("UPDATE t SET other = 7, body = body, id = id")
    assert corpus.status().pending == 0


def test_what_a_trigger_of_the_users_changes(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    connection.execute(
        """
        CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.body := NEW.body || ' ' || NEW.other; RETURN NEW; END $$;
        CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION shout()
        """
    )
    corpus.attach("t", "id", "body")
    connection.execute("UPDATE t SET other = 7")
    settle(db, corpus)
    assert stored(connection) == expected(connection, "t")
    assert stored(connection)["1"] == text_of(1) + " 7"


def test_inline_in_the_transaction_itself(corpus: ts.Corpus, connection: Connection) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body", "inline")
    found = "SELECT key FROM textsim.matches('c', 'a text that nobody else can see yet')"
    with connection.transaction() as transaction:
        connection.execute("INSERT INTO t VALUES (50, 'A text that nobody else can see, yet!')")
        assert connection.execute(found).fetchall() == [("50",)]
        assert corpus.query("a text that nobody else can see yet") == []
        raise psycopg.Rollback(transaction)
    assert connection.execute(found).fetchall() == []


KEYS: dict[str, tuple[str, list[object]]] = {
    "smallint": ("smallint", [1, -2, 32767]),
    "integer": ("integer", [1, -2, 2**31 - 1]),
    "bigint": ("bigint", [1, -(2**63), 2**63 - 1]),
    "uuid": ("uuid", [uuid.UUID(int=1), uuid.UUID(int=2**127), uuid.UUID(int=77)]),
    "text": ("text", ["a", "", "Ä ö \"quoted\" 'key', {with} \\ and %s"]),
    "varchar": ("varchar(20)", ["a", "B", "漢字 \U0001f98a"]),
    "domain": ("name_of_it", ["a", "B", "c"]),
    "c": ('text COLLATE "C"', ["a", "B", "é"]),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("mode", MODES)
def test_keys(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str, kind: str
) -> None:
    definition, keys = KEYS[kind]
    connection.execute("CREATE DOMAIN name_of_it AS text NOT NULL")
    connection.execute(
        f"CREATE TABLE t (body varchar(500), id {definition} NOT NULL UNIQUE)".encode()
    )
    connection.execute("INSERT INTO t (id, body) VALUES (%s, %s)", [keys[0], text_of(0)])
    corpus.attach("t", "id", "body", mode)
    for number, key in enumerate(keys[1:], start=1):
        connection.execute("INSERT INTO t (id, body) VALUES (%s, %s)", [key, text_of(number)])
    settle(db, corpus)
    assert set(stored(connection)) == {str(key) for key in keys}
    connection.execute("UPDATE t SET body = 'changed' WHERE id = %s", [keys[2]])
    connection.execute("DELETE FROM t WHERE id = %s", [keys[1]])
    settle(db, corpus)
    assert stored(connection) == {str(keys[0]): text_of(0), str(keys[2]): "changed"}


@pytest.mark.parametrize("mode", MODES)
def test_partitioned_tables(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str
) -> None:
    connection.execute(
        """
        CREATE TABLE t (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
        CREATE TABLE t2a PARTITION OF t2 FOR VALUES FROM (10) TO (15);
        CREATE TABLE t2b PARTITION OF t2 DEFAULT;
        INSERT INTO t SELECT i, 'row number ' || i || ' at first' FROM generate_series(0, 19) i
        """
    )
    corpus.attach("t", "id", "body", mode)
    settle(db, corpus)
    assert len(corpus) == 20
    for statement in (
        "UPDATE t1 SET body = body || ' changed in a partition' WHERE id = 3",
        "INSERT INTO t1 VALUES (4, 'again') ON CONFLICT (id) DO UPDATE SET body = 'upserted'",
        "UPDATE t SET id = 16 + 1000 WHERE false",
        "DELETE FROM t WHERE id = 12; UPDATE t SET id = 12 WHERE id = 5",
        "DELETE FROM t2b WHERE id = 17",
        "TRUNCATE t2a",
        "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30); "
        "INSERT INTO t3 VALUES (22, 'in a partition that came later')",
        "DELETE FROM t; INSERT INTO t VALUES (1, 'the last one')",
        "TRUNCATE t",
    ):
        connection.execute(statement)
        settle(db, corpus)
        assert stored(connection) == expected(connection, "t"), statement


def test_a_partition_alone(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute(
        """
        CREATE TABLE t (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)
        """
    )
    corpus.attach("t1", "id", "body")
    connection.execute("INSERT INTO t VALUES (1, 'through the parent'), (11, 'elsewhere')")
    settle(db, corpus)
    assert stored(connection) == {"1": "through the parent"}
    connection.execute("TRUNCATE t")
    settle(db, corpus)
    assert stored(connection) == {}


AWKWARD = 'Schä"ma'
NAMES = ['a "table"; DROP TABLE x; --', "per%cent %s", "ORDER", "漢" * 20]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_awkward_names(db: ts.Database, connection: Connection, name: str, mode: str) -> None:
    corpus = db.create_corpus(f"{name}'s")
    table = sql.Identifier(AWKWARD, name)
    key, text = f"{name[:15]} key"[:60], 'te"xt %d'
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(AWKWARD)))
    connection.execute(
        sql.SQL("CREATE TABLE {} ({} int PRIMARY KEY, {} text)").format(
            table, sql.Identifier(key), sql.Identifier(text)
        )
    )
    insert = f"INSERT INTO {table.as_string(None).replace('%', '%%')} VALUES (%s, %s)".encode()
    connection.execute(insert, [1, "one before"])
    corpus.attach(table.as_string(None), key, text, mode)
    connection.execute(insert, [2, "two after"])
    settle(db, corpus)
    assert stored(connection) == {"1": "one before", "2": "two after"}
    connection.execute(sql.SQL("TRUNCATE {}").format(table))
    settle(db, corpus)
    corpus.detach(table.as_string(None))
    connection.execute(insert, [3, "three later"])
    assert corpus.status().pending == 0


REFUSED: dict[str, tuple[LiteralString, str]] = {
    "view": ("CREATE VIEW t AS SELECT 1 AS id, 'a' AS body", "it is a view"),
    "materialized view": ("CREATE MATERIALIZED VIEW t AS SELECT 1 AS id, 'a' AS body", "a view"),
    "temporary": ("CREATE TEMP TABLE t (id int PRIMARY KEY, body text)", "temporary"),
    "composite": ("CREATE TABLE t (id int, b int, body text, PRIMARY KEY (id, b))", "not unique"),
    "no key": ("CREATE TABLE t (id int NOT NULL, body text)", "not unique by itself"),
    "partial": (
        "CREATE TABLE t (id int NOT NULL, body text); CREATE UNIQUE INDEX ON t (id) WHERE id > 0",
        "not unique by itself",
    ),
    "nullable": ("CREATE TABLE t (id int UNIQUE, body text)", "may be NULL"),
    "float": ("CREATE TABLE t (id float8 PRIMARY KEY, body text)", "is of type double precision"),
    "bytea": ("CREATE TABLE t (id int PRIMARY KEY, body bytea)", "expected text"),
    "no such column": ("CREATE TABLE t (id int PRIMARY KEY, other text)", '"body" does not exist'),
    "inherited": (
        "CREATE TABLE p (id int PRIMARY KEY, body text); "
        "CREATE TABLE t (PRIMARY KEY (id)) INHERITS (p)",
        "inheritance",
    ),
    "sequence": ("CREATE SEQUENCE t", "not a table"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_tables_that_cannot_be_attached(
    corpus: ts.Corpus, connection: Connection, kind: str
) -> None:
    definition, reason = REFUSED[kind]
    connection.execute(definition)
    if kind == "temporary":
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=reason):
            connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
        return
    with pytest.raises(ts.ConfigurationError, match=f"cannot be attached: .*{reason}"):
        corpus.attach("t", "id", "body")
    assert connection.execute("SELECT count(*) FROM textsim.source").fetchone() == (0,)
    assert connection.execute(
        "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"
    ).fetchone() == (0,)


def test_wrong_calls(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    make_table(connection)
    with pytest.raises(ts.ConfigurationError, match="there is no table 'none'"):
        corpus.attach("none", "id", "body")
    with pytest.raises(ts.ConfigurationError, match="table"):
        corpus.attach('a "b', "id", "body")
    with pytest.raises(ts.ConfigurationError, match='mode is "later"'):
        corpus.attach("t", "id", "body", "later")
    with pytest.raises(ts.ConfigurationError, match="neither a name, nor a SQLAlchemy table"):
        corpus.attach(int, "id", "body")
    with pytest.raises(ts.ConfigurationError, match="is not a column or the name of one"):
        corpus.attach("t", 7, "body")  # type: ignore[arg-type]
    with pytest.raises(ts.ConfigurationError, match="poll is 0; expected seconds above 0"):
        db.worker(poll=0)
    corpus.attach("t", "id", "body")
    with pytest.raises(ts.ConfigurationError, match=r'table public\.t is attached to corpus "c"'):
        corpus.attach("t", "id", "body")
    with pytest.raises(ts.ConfigurationError, match="detach them first"):
        corpus.drop()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="NULL"):
        connection.execute("SELECT textsim.attach('c', NULL, 'id', 'body')")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="name of the corpus is NULL"):
        connection.execute("SELECT textsim.attach(NULL, 't', 'id', 'body')")
    corpus.detach("t")
    with pytest.raises(ts.ConfigurationError, match=r"table public\.t is not attached"):
        corpus.detach("t")
    assert len(corpus) == 5
    corpus.drop()


def test_attach_again_takes_the_documents_over(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.add_many([("0", text_of(0)), ("1", "an old text"), ("by hand", "it stays")])
    report = corpus.attach("t", "id", "body")
    assert (report.added, report.replaced, report.unchanged) == (3, 1, 1)
    corpus.detach("t")
    connection.execute("DELETE FROM t WHERE id = 0")
    report = corpus.attach("t", "id", "body")
    assert (report.unchanged, report.removed) == (4, 1)
    settle(db, corpus)
    assert set(stored(connection)) == {"1", "2", "3", "4", "by hand"}


def test_two_tables_in_one_corpus(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    for name in ("x", "y"):
        connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, body text)".encode())
        corpus.attach(name, "id", "body", "queue" if name == "x" else "inline")
    connection.execute("INSERT INTO x VALUES ('a', 'from x'), ('b', 'from x too')")
    settle(db, corpus)
    connection.execute("INSERT INTO y VALUES ('c', 'from y'), ('b', 'not this one')")
    db.worker().run(until_idle=True)
    assert stored(connection) == {"a": "from x", "b": "from x too", "c": "from y"}
    failure = corpus.failures()[0]
    assert failure[:2] == ("b", "y")
    assert failure.error == "the corpus has this key from the table x"
    connection.execute("DELETE FROM y WHERE id = 'b'")
    settle_y = db.worker().run(until_idle=True)
    assert settle_y.removed == 0
    assert "b" in corpus
    connection.execute("INSERT INTO y VALUES ('b', 'now it may be'); DELETE FROM x WHERE id = 'b'")
    db.worker().run(until_idle=True)
    assert corpus.retry_failures() <= 1
    settle(db, corpus)
    assert stored(connection)["b"] == "now it may be"


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_indexed_is_set_aside(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body", mode)
    connection.execute(
        "INSERT INTO t SELECT repeat('k', i), 'text ' || i FROM generate_series(999, 1002) i"
    )
    db.worker().run(until_idle=True)
    assert len(corpus) == 2
    assert sorted(f.error for f in corpus.failures()) == [
        "the key is 1001 bytes long; at most 1000 are possible",
        "the key is 1002 bytes long; at most 1000 are possible",
    ]
    assert corpus.status().failed == 2
    assert corpus.retry_failures() == 2
    connection.execute("UPDATE t SET id = 'short' WHERE id = repeat('k', 1001)")
    connection.execute("DELETE FROM t WHERE id = repeat('k', 1002)")
    settle(db, corpus)
    assert len(corpus) == 3


def test_bypassed_triggers_are_mended(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection, 20)
    corpus.attach("t", "id", "body")
    corpus.add("by hand", "which is nobody's business")
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("DELETE FROM t WHERE id IN (3, 4)")
        connection.execute("UPDATE t SET body = 'changed behind the back' WHERE id = 5")
        connection.execute("INSERT INTO t VALUES (90, 'came in behind the back')")
    connection.execute(
        "ALTER TABLE t DISABLE TRIGGER ALL; TRUNCATE t; ALTER TABLE t ENABLE TRIGGER ALL"
    )
    connection.execute("INSERT INTO t VALUES (7, 'the only one'), (5, 'this as well')")
    assert corpus.status().pending == 2
    found = {d.key: d.kind for d in corpus.drift()}
    assert found == {str(i): "surplus" for i in range(20) if i not in (5, 7)} | {
        "5": "different",
        "7": "different",
    }
    report = corpus.reconcile()
    assert (report.added, report.replaced, report.removed) == (0, 2, 18)
    assert stored(connection) == {
        "7": "the only one",
        "5": "this as well",
        "by hand": "which is nobody s business",
    }
    settle(db, corpus)


def test_row_security_that_blinds_a_worker(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    role = f"blind_{random.randrange(10**9)}"
    connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    try:
        connection.execute("SELECT textsim.grant_writer(%s::regrole)", [role])
        connection.execute(
            f"GRANT SELECT ON t TO {role}; ALTER TABLE t ENABLE ROW LEVEL SECURITY".encode()
        )
        connection.execute("INSERT INTO t VALUES (77, 'one more')")
        address = plain_url(sqlalchemy_url(db.url).set(username=role, password=None))
        with ts.connect(address) as limited:
            worker = limited.worker()
            assert worker.run(until_idle=True).written == 0
            assert "row security hides rows" in worker.unusable["public.t"]
            with pytest.raises(ts.ConfigurationError, match="row security hides rows"):
                limited.corpus("c").reconcile()
            assert "row security" in caplog.text
            connection.execute(
                f"REVOKE SELECT ON t FROM {role}; ALTER TABLE t DISABLE ROW LEVEL SECURITY".encode()
            )
            worker = limited.worker()
            assert worker.run(until_idle=True).written == 0
            assert worker.unusable == {"public.t": "this role may not read it (GRANT SELECT)"}
            connection.execute(f"GRANT SELECT ON t TO {role}".encode())
            assert limited.worker().run(until_idle=True).added == 1
        assert len(corpus) == 6
    finally:
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_table_that_went_or_changed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    other = db.create_corpus("other")
    connection.execute("CREATE TABLE fine (id int PRIMARY KEY, body text)")
    other.attach("fine", "id", "body")
    connection.execute("INSERT INTO fine VALUES (1, 'goes on')")
    connection.execute("INSERT INTO t VALUES (6, 'in the queue')")
    connection.execute("ALTER TABLE t RENAME TO renamed")
    db.worker().run(until_idle=True)
    assert (len(corpus), len(other)) == (6, 1)
    connection.execute("ALTER TABLE renamed RENAME COLUMN body TO content")
    connection.execute("INSERT INTO fine VALUES (2, 'goes on still')")
    worker = db.worker()
    worker.run(until_idle=True)
    assert worker.unusable == {"public.renamed": 'its column "body" does not exist'}
    connection.execute("DROP TABLE renamed")
    worker = db.worker()
    worker.run(until_idle=True)
    assert worker.unusable == {}
    assert [table.table for table in db.sources()] == ["fine"]
    assert (len(corpus), len(other)) == (0, 2)
    corpus.drop()


def test_a_running_worker(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    make_table(connection, 0)
    reports: list[Any] = []
    with working(db, report=reports.append):
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
        for number in range(10):
            connection.execute("INSERT INTO t VALUES (%s, %s)", [number, text_of(number)])
            wait_for(lambda number=number: corpus.query(text_of(number)))  # type: ignore[misc]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'textsim-db' AND datname = current_database()"
        )
        connection.execute("INSERT INTO t VALUES (100, 'after the connection was lost')")
        wait_for(
            lambda: connection.execute("SELECT FROM textsim.document WHERE key = '100'").rowcount
        )
    settle(db, corpus)
    assert sum(report.changes.added for report in reports) == 11
    assert {(report.corpus, report.table) for report in reports} == {("c", "public.t")}


def test_a_worker_that_listens(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    with working(db, poll=30, listen=True):
        time.sleep(0.5)
        connection.execute("SET textsim.notify = on")
        start = time.monotonic()
        connection.execute("INSERT INTO t VALUES (10, 'it is woken up by this one')")
        wait_for(lambda: "10" in corpus)
        assert time.monotonic() - start < 20
        time.sleep(0.1)
        # The thread is to end now, and not at the end of the poll.
        connection.execute("INSERT INTO t VALUES (11, 'and by this one')")


def test_a_killed_worker(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    program = "import sys, textsim_db as ts; ts.connect(sys.argv[1]).worker(lease=0.5).run()"
    interrupted = 0
    connection.execute(
        "INSERT INTO t SELECT i, 'text number ' || i || ' of ' || md5(i::text) "
        "FROM generate_series(1, 3000) i"
    )
    for number in range(3):
        connection.execute(
            "UPDATE t SET body = body || %s WHERE id %% 10 = %s", [f" {number}", number]
        )
        wait_for(lambda: leased(connection) == 0)  # what the one before had in hand
        worker = subprocess.Popen([sys.executable, "-c", program, db.url])
        try:
            wait_for(lambda: leased(connection) > 0, 60)
            time.sleep(0.02 * number)
        finally:
            worker.kill()
            worker.wait()
        interrupted += leased(connection) > 0
    assert interrupted, "no worker had anything in hand when it was killed"
    time.sleep(0.6)
    settle(db, corpus)
    assert stored(connection) == expected(connection, "t")


def test_a_change_that_ends_each_worker_is_set_aside(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute("INSERT INTO t VALUES (10, 'bad'), (11, 'good')")
    # As if workers had died over it.
    connection.execute("UPDATE textsim.pending SET tries = 4")
    db.worker().run(until_idle=True)
    assert "10" in corpus
    connection.execute("UPDATE t SET body = 'worse' WHERE id = 10")
    connection.execute("UPDATE textsim.pending SET tries = 8, keys = '{10}'")
    db.worker().run(until_idle=True)
    (failure,) = corpus.failures()
    assert failure.key == "10"
    assert "a worker ended 8 times" in failure.error
    assert corpus.retry_failures() == 1
    settle(db, corpus)


def test_searches_find_documents_whose_words_wait(db: ts.Database, connection: Connection) -> None:
    for shingle in ("word:2", "char:5"):
        corpus = db.create_corpus(shingle, shingle=shingle, threshold=0.5)
        texts = {f"k{i}": f"{text_of(i % 7)} nothing{i} but this{i % 2}" for i in range(40)}
        for number, (key, text) in enumerate(texts.items()):
            if number % 2:
                connection.execute("SELECT textsim.add(%s, %s, %s)", [shingle, key, text])
            else:
                corpus.add(key, text)
        reference = db.create_corpus(f"{shingle} in full", shingle=shingle, threshold=0.5)
        reference.add_many(texts.items())
        probes = [*texts.values(), "words that nobody knows at all"]

        def answers(corpus: ts.Corpus, probes: list[str] = probes) -> list[object]:
            return [
                corpus.query_many(probes),
                [corpus.query(probe) for probe in probes],
                [corpus.neighbours(f"k{i}") for i in range(40)],
                sorted(corpus.pairs()),
                list(corpus.clusters()),
                [corpus.candidates(probe) for probe in probes],
                [
                    connection.execute(
                        "SELECT * FROM textsim.matches(%s, %s)", [corpus.name, probe]
                    ).fetchall()
                    for probe in probes[:10]
                ],
            ]

        waiting = answers(corpus)
        assert waiting == answers(reference)
        assert corpus.status().pending == 20
        assert corpus.check() == []
        settle_all = db.worker().run(until_idle=True)
        assert settle_all.completed == 20
        assert answers(corpus) == waiting
        assert corpus.check() == []


def test_check_finds_forgotten_documents(corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute("SELECT textsim.add('c', 'a', 'one two three')")
    assert corpus.check() == []
    connection.execute("DELETE FROM textsim.pending")
    (problem,) = corpus.check()
    assert problem[:2] == ("words", "a")


def test_round_trips(db: ts.Database, connection: Connection) -> None:
    """However a document comes in, the same rows are stored in the end."""
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
        "array(SELECT (b.band, b.bucket)::text FROM textsim.band b WHERE b.corpus_id = d.corpus_id "
        "AND b.document_id = d.id ORDER BY b.band) FROM textsim.document d "
        "JOIN textsim.corpus c ON c.id = d.corpus_id WHERE c.name = %s ORDER BY d.key"
    )
    found = {}
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
        found[way] = connection.execute(rows, [way]).fetchall()
        assert corpus.check() == []
        assert len(found[way]) == len(texts)
    for way, stored_rows in found.items():
        assert stored_rows == found["python"], way


class Base(DeclarativeBase):
    pass


class Article(Base):
    __tablename__ = "articles of"
    __table_args__ = {"schema": "Blog"}  # noqa: RUF012 - as SQLAlchemy declares it
    number: Mapped[int] = mapped_column("id", primary_key=True)
    content: Mapped[str | None] = mapped_column("the body")


@pytest.mark.parametrize("way", ["class", "columns", "table"])
def test_sqlalchemy(db: ts.Database, corpus: ts.Corpus, way: str) -> None:
    with db.engine.begin() as begun:
        begun.exec_driver_sql('CREATE SCHEMA "Blog"')
        Base.metadata.create_all(begun)
    if way == "class":
        corpus.attach(Article, key="number", text="content")
    elif way == "columns":
        corpus.attach(Article, key=Article.number, text=Article.content)
    else:
        table = Article.__table__
        assert isinstance(table, Table)
        corpus.attach(table, key=table.c.id, text="the body")
    with Session(db.engine) as session, session.begin():
        session.add_all(Article(number=i, content=text_of(i % 3)) for i in range(1, 7))
    db.worker().run(until_idle=True)
    matches = func.textsim.matches("c", text_of(1), 0.9).table_valued("key", "similarity")
    query = (
        select(Article, matches.c.similarity)
        .join(matches, matches.c.key == cast(Article.number, Text))
        .where(Article.number > 1)
    )
    with Session(db.engine) as session:
        found = session.execute(query).all()
    assert [(article.number, similarity) for article, similarity in found] == [(4, 1.0)]
    corpus.detach(Article)


def test_a_locked_table_does_not_stop_the_others(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    other = db.create_corpus("other")
    connection.execute("CREATE TABLE fine (id int PRIMARY KEY, body text)")
    other.attach("fine", "id", "body")
    connection.execute("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(100, 200) i")
    with psycopg.connect(db.url) as busy, working(db, lease=3):
        busy.execute("LOCK TABLE t")
        time.sleep(0.3)
        connection.execute("INSERT INTO fine VALUES (1, 'goes on')")
        wait_for(lambda: len(other))
        assert len(corpus) == 5
        busy.rollback()
        wait_for(lambda: len(corpus) == 106)
    settle(db, corpus)


def test_a_table_that_is_locked_for_long(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However often its changes are taken in vain, no worker has ended over them."""
    monkeypatch.setattr(source_rows, "READING_PATIENCE", "10ms")
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(100, 200) i")
    taken = 0
    count = source_changes.pieces

    def counted(*arguments: Any) -> Iterator[source_changes.Piece]:
        nonlocal taken
        taken += 1
        return count(*arguments)

    monkeypatch.setattr(source_changes, "pieces", counted)
    with psycopg.connect(db.url) as busy:
        busy.execute("LOCK TABLE t")
        with working(db, lease=0.05):
            wait_for(lambda: taken > 2 * GIVE_UP_TRIES)
            busy.rollback()
            wait_for(lambda: len(corpus) == 106)
    assert corpus.failures() == []
    settle(db, corpus)


def test_a_locked_partition_does_not_stop_the_others(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute(
        """
        CREATE TABLE t (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE fine (id int PRIMARY KEY, body text)
        """
    )
    corpus.attach("t", "id", "body")
    other = db.create_corpus("other")
    other.attach("fine", "id", "body")
    with psycopg.connect(db.url) as busy, working(db, lease=0.5):
        busy.execute("LOCK TABLE ONLY t1")
        time.sleep(1.2)  # what is known of the tables is read again
        connection.execute("INSERT INTO fine VALUES (1, 'goes on')")
        wait_for(lambda: len(other))
        busy.execute("INSERT INTO t VALUES (1, 'in the partition')")
        busy.commit()
        wait_for(lambda: len(corpus))
    settle(db, corpus)


@pytest.mark.parametrize("state", ["disk_full", "out_of_memory", "read_only_sql_transaction"])
def test_a_server_in_trouble(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, state: str
) -> None:
    """What no document is to blame for is tried again until it is over."""
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute(
        f"""
        CREATE TABLE trouble (); CREATE SEQUENCE met;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF to_regclass('public.trouble') IS NOT NULL THEN
                PERFORM nextval('public.met');
                RAISE EXCEPTION 'no more room' USING ERRCODE = '{state}';
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER fail AFTER INSERT ON textsim.document_1
        FOR EACH STATEMENT EXECUTE FUNCTION fail()
        """.encode()
    )
    connection.execute("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(100, 200) i")
    with working(db):
        wait_for(
            lambda: connection.execute("SELECT FROM met WHERE last_value > 4").rowcount,
        )
        connection.execute("DROP TABLE trouble")
        wait_for(lambda: len(corpus) == 106)
    assert corpus.failures() == []
    settle(db, corpus)


def test_a_worker_ends_where_the_schema_becomes_another(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            db.worker().run()
        except ts.SchemaError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    (version,) = connection.execute("SELECT version_num FROM textsim.alembic_version").fetchall()
    connection.execute("UPDATE textsim.alembic_version SET version_num = '9999_later'")
    thread.join(20)
    assert not thread.is_alive()
    assert "9999_later" in str(failures[0])
    connection.execute("INSERT INTO t VALUES (7, 'for a worker of the right version')")
    with pytest.raises(ts.SchemaError, match="9999_later"):
        db.worker().run(until_idle=True)
    connection.execute("UPDATE textsim.alembic_version SET version_num = %s", version)
    settle(db, corpus)


def test_rows_that_a_transaction_holds_are_done_later(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection, 50)
    corpus.attach("t", "id", "body", "inline")
    with psycopg.connect(db.url) as busy:
        busy.execute("UPDATE t SET body = body || ' changed' WHERE id IN (3, 7)")
        connection.execute("UPDATE t SET body = body || ' more' WHERE id NOT IN (3, 7)")
        db.worker().run(until_idle=True)
        waiting = "SELECT key FROM textsim.document WHERE word_ids IS NULL ORDER BY key"
        busy.commit()
    assert [row[0] for row in connection.execute(waiting)] in ([], ["3", "7"])
    connection.execute("UPDATE textsim.pending SET lease_until = NULL")
    settle(db, corpus)
    assert connection.execute(waiting).fetchall() == []
    assert stored(connection) == expected(connection, "t")
