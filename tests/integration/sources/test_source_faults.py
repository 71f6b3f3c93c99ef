"""Faults of attached tables are set aside, reported and mended."""

from __future__ import annotations

import threading

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.sources import MODES, index_all_pending, make_table, stored_forms
from tests.support.steps import MADE_UP, NEWER
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from tests.support.workers import running_worker
from textsim_db.errors import SchemaError
from textsim_db.settings.named_values import ModeName


def test_a_change_that_crashes_every_worker_is_set_aside(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute("INSERT INTO t VALUES (10, 'bad'), (11, 'good')")
    # The counter of tries looks as if workers had died over the change.
    connection.execute("UPDATE textsim.pending SET tries = 4")
    db.worker().run(until_idle=True)
    assert "10" in corpus
    connection.execute("UPDATE t SET body = 'worse' WHERE id = 10")
    connection.execute("UPDATE textsim.pending SET tries = 8, keys = '{10}'")
    db.worker().run(until_idle=True)
    (failure,) = corpus.pending()
    assert failure.key == "10"
    assert "a worker ended 8 times" in failure.error
    assert len(corpus.pending(retry=True)) == 1
    index_all_pending(db, corpus)


@pytest.mark.parametrize(
    "state", sample(["disk_full", "out_of_memory", "read_only_sql_transaction"], 3)
)
def test_changes_are_retried_until_a_fault_of_the_server_is_over(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, state: str
) -> None:
    """The error concerns no document, so it does not count against the change."""
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
    with running_worker(db):
        wait_for(lambda: connection.execute("SELECT FROM met WHERE last_value > 4").rowcount)
        connection.execute("DROP TABLE trouble")
        wait_for(lambda: len(corpus) == 106)
    assert corpus.pending() == []
    index_all_pending(db, corpus)


def test_a_worker_ends_when_the_schema_changes_its_version(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            db.worker().run()
        except SchemaError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    connection.execute("INSERT INTO t VALUES (6, 'a row that the worker indexes')")
    wait_for(lambda: "6" in corpus)
    (version,) = connection.execute("SELECT version_num FROM textsim.alembic_version").fetchall()
    connection.execute(NEWER.encode())
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert MADE_UP in str(failures[0])
    connection.execute("INSERT INTO t VALUES (7, 'for a worker of the right version')")
    with pytest.raises(SchemaError, match=MADE_UP):
        db.worker().run(until_idle=True)
    connection.execute("UPDATE textsim.alembic_version SET version_num = %s", version)
    index_all_pending(db, corpus)


LATER_FAULTS = {
    "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) DEFERRABLE": "is deferrable",
    "ALTER TABLE t DROP CONSTRAINT t_pkey": "is not unique by itself",
    "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD UNIQUE (id), ALTER id DROP NOT NULL": "may be NULL",
    "CREATE TABLE child () INHERITS (t)": "takes part in inheritance",
    "CREATE TABLE whole (LIKE t) PARTITION BY HASH (id);"
    "ALTER TABLE whole ATTACH PARTITION t FOR VALUES WITH (MODULUS 1, REMAINDER 0)": (
        "it is a partition, and the corpus is unique"
    ),
}
"""Statements after which attach would refuse a table, and the reason that it would give."""


@pytest.mark.parametrize("statement", LATER_FAULTS)
def test_what_attach_refuses_is_a_fault_of_an_attached_table_too(
    db: ts.Database, connection: Connection, statement: str
) -> None:
    reason = LATER_FAULTS[statement]
    corpus = db.create_corpus("c", recall=1, is_unique=True)
    make_table(connection)
    connection.execute("UPDATE t SET body = id || ' ' || repeat(md5(id::text) || ' ', 9)")
    corpus.attach("t", "id", "body")
    assert corpus.status().problems == []
    connection.execute(statement.encode())
    assert any(reason in problem for problem in corpus.status().problems)
    worker = db.worker()
    worker.run(until_idle=True)
    assert reason in worker.unusable["public.t"]
    with pytest.raises(ts.ConfigurationError, match=f"table public.t .*{reason}"):
        corpus.reconcile()
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    connection.execute("CALL textsim.index_pending('c')")
    assert any(reason in notice for notice in notices)


@pytest.mark.parametrize("mode", MODES)
def test_triggers_of_a_restored_table_do_nothing_to_the_table_that_has_their_function(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    """pg_dump -t other: in the database that restores it, the functions belong to another table."""
    make_table(connection)
    corpus.attach("t", "id", "body", mode)
    index_all_pending(db, corpus)
    before = stored_forms(connection)
    connection.execute("CREATE TABLE other (LIKE t INCLUDING ALL)")
    for (trigger,) in connection.execute(
        "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 't'::regclass"
    ).fetchall():
        connection.execute(trigger.replace("public.t ", "other ").encode())
    warnings: list[str] = []
    connection.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
    for statement in (
        "INSERT INTO other VALUES (1, 'another text'), (99, 'a new text')",
        "UPDATE other SET body = 'a third text'",
        "DELETE FROM other",
        "TRUNCATE other",
    ):
        connection.execute(statement.encode())
        assert "other" in warnings[-1]
        assert "does nothing" in warnings[-1]
        assert corpus.status().pending == 0
    assert stored_forms(connection) == before
    problems = corpus.check()
    assert all("table other, which is not attached, has its trigger" in p.detail for p in problems)
    assert len(problems) >= 4
    connection.execute("DROP TABLE other")
    assert connection.execute("DELETE FROM t WHERE id = 1").rowcount == 1
    index_all_pending(db, corpus)
    assert len(corpus) == len(before) - 1
