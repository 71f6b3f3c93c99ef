"""The view textsim.metrics: its names, its values, and who may read which rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from tests.support.roles import as_role, new_role
from tests.support.servers import Server, database_of
from textsim_db.sync import statements

TEXT = "the quick brown fox jumps over the lazy dog near the river bank"


def values(connection: Connection, **labels: str) -> dict[str, float]:
    """Return the values of the metrics that have all of these labels."""
    query = "SELECT name, value FROM textsim.metrics WHERE labels @> %s"
    return dict(connection.execute(query, [Jsonb(labels)]))


def test_each_metric_is_described_and_named_by_the_convention(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c", is_unique=True, unique_from=0.9).track()
    connection.execute(statements.REPORT_WORKER.encode(), report())
    described = dict(
        connection.execute("SELECT name, help FROM textsim._metric_descriptions()").fetchall()
    )
    metrics = db.metrics()
    assert {metric.name for metric in metrics} == described.keys()
    for name, help_text in described.items():
        assert re.fullmatch(r"textsim(_[a-z]+)+", name), name
        assert help_text.endswith("."), name
    # A counter never falls, and no time lies in the future.
    assert all(metric.value >= 0 for metric in metrics)
    keys = [(metric.name, tuple(sorted(metric.labels.items()))) for metric in metrics]
    assert len(keys) == len(set(keys))


def report(**fields: Any) -> dict[str, Any]:
    ages = {"claimed": 1.0, "wrote": 2.0, "step_began": 3.0, "failed": 4.0}
    counts = {"written": 5, "set_aside": 6, "expired": 7, "clustered": 8, "retries": 9}
    worker: dict[str, Any] = {"id": "00000000-0000-0000-0000-000000000001", "host": "h"}
    worker |= {"process": 1, "faults": Jsonb([])}
    return {**worker, **ages, **counts, "step": "writes documents", "error": "e", **fields}


def test_figures_of_all_corpora_hold_few_locks(db: ts.Database, connection: Connection) -> None:
    """The table of locks has room for some thousands, and every session needs some."""
    statements = ["SELECT count(*) FROM textsim.metrics"]
    statements += ["SELECT s.* FROM textsim.corpus c CROSS JOIN LATERAL textsim.status(c.name) s"]
    db.create_corpus("c", keep_for="1 day", is_unique=True, unique_from=0.9).track()
    for statement in statements:
        with connection.transaction():
            connection.execute(statement.encode())
            held = connection.execute(
                "SELECT r.relname FROM pg_locks l JOIN pg_class r ON r.oid = l.relation "
                "WHERE l.pid = pg_backend_pid() AND r.relname ~ '_[0-9]+(_|$)'"
            ).fetchall()
            assert held == [], statement


def test_waiting_and_failed_documents(db: ts.Database, connection: Connection) -> None:
    db.create_corpus("c")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    connection.execute("INSERT INTO t VALUES (0, %s)", [TEXT])
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    assert values(connection, corpus="c")["textsim_pending_tables"] == 1
    db.worker().run(until_idle=True)
    with connection.transaction():
        connection.execute("INSERT INTO t SELECT i, %s FROM generate_series(1, 3) i", [TEXT])
        connection.execute("UPDATE t SET body = body || '!' WHERE id = 1")
    change = values(connection, kind="change")
    assert change["textsim_pending_documents"] == 3  # one of them has two entries
    assert change["textsim_pending_age_seconds"] > 0
    connection.execute("SELECT textsim._claim(ARRAY[1], true, '{}', 0, 100, -5)")
    assert values(connection, kind="change")["textsim_lease_overdue_seconds"] >= 5
    connection.execute(
        "UPDATE textsim.pending SET kind = 'failed', error = 'e' WHERE id IN "
        "(SELECT min(id) FROM textsim.pending)"
    )
    assert values(connection, corpus="c")["textsim_failed_documents"] >= 1
    assert values(connection, corpus="c")["textsim_documents"] == 1


def test_workers_count_what_they_do(db: ts.Database, connection: Connection) -> None:
    connection.execute(statements.REPORT_WORKER.encode(), report())
    # A killed worker of another container leaves a row with the same process id.
    other = report(id="00000000-0000-0000-0000-000000000002", written=50)
    connection.execute(statements.REPORT_WORKER.encode(), other)
    connection.execute(
        "UPDATE textsim.worker SET reported_at = reported_at - interval '40 s' WHERE written = 50"
    )
    # A killed worker does nothing any more.
    killed = report(id="00000000-0000-0000-0000-000000000003", process=2)
    connection.execute(statements.REPORT_WORKER.encode(), killed)
    connection.execute(
        "UPDATE textsim.worker SET reported_at = reported_at - interval '40 s', "
        "step_began_at = step_began_at - interval '40 s' WHERE process = 2"
    )
    assert 3 <= values(connection, worker="h:2")["textsim_worker_busy_seconds"] < 40
    worker = values(connection, worker="h:1")
    assert worker["textsim_worker_written_documents_total"] == 5
    assert worker["textsim_worker_failures_total"] == 6
    assert worker["textsim_worker_expired_documents_total"] == 7
    assert worker["textsim_worker_clustered_documents_total"] == 8
    assert worker["textsim_worker_retries_total"] == 9
    assert worker["textsim_worker_busy_seconds"] >= 3
    for later, earlier in (("report", "claim"), ("claim", "write"), ("write", "error")):
        name = "textsim_worker_last_{}_timestamp_seconds"
        assert worker[name.format(later)] > worker[name.format(earlier)]
    assert values(connection)["textsim_workers_running"] == 1


def test_locks_of_a_unique_corpus(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", is_unique=True)
    db.create_corpus("other", is_unique=True)
    with psycopg.connect(db.url) as writer:
        writer.execute("SELECT textsim.add('c', 'a', %s)", [TEXT])
        held = values(connection, corpus="c", state="held")["textsim_unique_locks"]
        assert held == len(corpus.candidates(TEXT)) + (corpus.config.bands or 0) + 1
        assert values(connection, corpus="other", state="held")["textsim_unique_locks"] == 0
        writer.rollback()
    assert values(connection, corpus="c", state="held")["textsim_unique_locks"] == 0


def test_a_reader_sees_the_corpora_that_it_may_read(
    server: Server, db: ts.Database, connection: Connection
) -> None:
    for name in ("a", "b"):
        db.create_corpus(name, is_unique=True).add("x", TEXT)
    names = b"SELECT DISTINCT labels ->> 'corpus' FROM textsim.metrics WHERE labels ? 'corpus'"
    with new_role(server, f"{database_of(db.url)}_reader") as role:
        connection.execute("SELECT textsim.grant_reader(%s::regrole, 'a')", [f'"{role}"'])
        try:
            with psycopg.connect(as_role(db.url, role)) as reader:
                reader.execute("SET TRANSACTION READ ONLY")
                assert reader.execute(names).fetchall() == [("a",)]
                assert values(reader, corpus="a")["textsim_refused_twins_total"] == 0
        finally:
            connection.execute(f'DROP OWNED BY "{role}"'.encode())


def test_every_refused_twin_is_counted(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", threshold=0.6, recall=1, is_unique=True)
    corpus.add("a", TEXT)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', mode => 'inline')")

    def refuse_add(name: str) -> None:
        with pytest.raises(ts.DuplicateError):
            corpus.add(name, TEXT + " now")

    def refuse_sql(statement: str) -> None:
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(statement.encode(), {"text": TEXT + " now"})

    attempts: dict[str, tuple[Callable[[], object], int]] = {
        "add": (lambda: refuse_add("b"), 1),
        "add_unique": (lambda: corpus.add_unique("b", TEXT), 1),
        "add_many": (lambda: corpus.add_many({"a": TEXT, "b": TEXT, "c": TEXT, "d": "new"}), 2),
        "add in SQL": (lambda: refuse_sql("SELECT textsim.add('c', 'b', %(text)s)"), 1),
        "add_unique in SQL": (
            lambda: connection.execute("SELECT textsim.add_unique('c', 'b', %s)", [TEXT]),
            1,
        ),
        "a row": (lambda: refuse_sql("INSERT INTO t VALUES ('r', %(text)s)"), 1),
        "a forced one": (lambda: corpus.add("f", TEXT + " now", force=True), 0),
        "the same text": (lambda: corpus.add("a", TEXT), 0),
    }
    refused = 0
    for name, (attempt, twins) in attempts.items():
        attempt()
        refused += twins
        assert values(connection, corpus="c")["textsim_refused_twins_total"] == refused, name


def test_doubtful_pairs_and_their_age(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus(
        "c", shingle="word:1", threshold=0.5, recall=1, is_unique=True, unique_from=0.95
    )
    corpus.track()

    def doubtful() -> tuple[float, float]:
        corpus.update_clusters()
        figures = values(connection, corpus="c")
        assert figures["textsim_doubtful_pairs"] == len(list(corpus.doubtful()))
        return figures["textsim_doubtful_pairs"], figures["textsim_clustered_share"]

    assert doubtful() == (0, 0)
    assert values(connection, corpus="c")["textsim_doubtful_age_seconds"] == 0
    for key in ("a", "b", "c"):
        corpus.add(key, f"{TEXT} {key}")
    corpus.add("d", "nothing like it")
    assert doubtful() == (3, 0.75)
    connection.execute("UPDATE textsim.match_1 SET since = since - interval '1 hour' WHERE a = 1")
    assert 3600 <= values(connection, corpus="c")["textsim_doubtful_age_seconds"] < 4000
    corpus.judge("a", "b", "unsure")
    assert doubtful() == (2, 0.75)
    corpus.judge("a", "c", "same")
    # The judgement counts before the clusters are updated.
    assert values(connection, corpus="c")["textsim_doubtful_pairs"] == 1
    assert doubtful() == (1, 0.75)
    corpus.judge("b", "c", "different")
    assert doubtful() == (0, 0.5)
    assert values(connection, corpus="c")["textsim_doubtful_age_seconds"] == 0


def test_a_damaged_corpus_has_the_other_figures(db: ts.Database, connection: Connection) -> None:
    for name in ("a", "b"):
        corpus = db.create_corpus(name, is_unique=True, unique_from=0.9)
        corpus.track()
        corpus.add("x", TEXT)
        corpus.update_clusters()
    whole = values(connection, corpus="b")
    statements = ["DROP TABLE textsim.match_1", "DROP TABLE textsim.member_1"]
    for statement in [*statements, "DROP SEQUENCE textsim.twin_1_seq"]:
        connection.execute(statement.encode())
        assert values(connection, corpus="b").keys() == whole.keys(), statement
        assert values(connection, corpus="a")["textsim_documents"] == 1, statement
    assert corpus.add_unique("y", TEXT)
    assert db.corpus("a").add_unique("y", TEXT)


@pytest.mark.more
@pytest.mark.parametrize("statistics", ["", "ANALYZE textsim.pending"])
def test_the_figures_of_a_huge_log_are_read_from_a_few_entries(
    db: ts.Database, connection: Connection, statistics: str
) -> None:
    entries = 100_000
    for name in ("big", "small"):
        connection.execute("SELECT textsim.create_corpus(%s)", [name])
    ids = "SELECT id FROM textsim.corpus WHERE name IN ('big', 'small') ORDER BY name"
    (big,), (small,) = connection.execute(ids).fetchall()
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, keys) "
        "SELECT 'words', CASE WHEN i %% 10000 = 0 THEN %s ELSE %s END, ARRAY[i::text] "
        "FROM generate_series(1, %s) i",
        [small, big, entries],
    )
    connection.execute(statistics.encode())
    read = (
        "SELECT pg_stat_get_xact_tuples_returned('textsim.pending'::regclass), "
        "(SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index "
        "WHERE indrelid = 'textsim.pending'::regclass)"
    )
    with connection.transaction():
        waiting = values(connection, kind="words", corpus="big")["textsim_pending_documents"]
        in_order, by_index = connection.execute(read.encode()).fetchall()[0]
    assert abs(waiting / entries - 1) < 0.05, f"{waiting} of {entries}"
    assert values(connection, kind="words", corpus="small")["textsim_pending_documents"] == 10
    assert in_order == 0
    assert by_index < 30_000, f"{by_index} index entries read"


@pytest.mark.more
def test_updated_documents_do_not_count_twice(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", keep_for="1 day")
    corpus.add_many(documents(20_000, words=20, seed=1))
    connection.execute("ALTER TABLE textsim.document_1 SET (autovacuum_enabled = off)")
    connection.execute("ANALYZE textsim.document_1")

    def counted() -> float:
        return values(connection, corpus="c")["textsim_documents"]

    assert abs(counted() / 20_000 - 1) < 0.05, counted()
    connection.execute("UPDATE textsim.document_1 SET key = key || 'b'")
    assert abs(counted() / 20_000 - 1) < 0.15, counted()
    assert counted() == counted()
    # Expired documents do not count.
    connection.execute("UPDATE textsim.document_1 SET expires_at = now() WHERE id % 4 = 0")
    assert abs(counted() / 15_000 - 1) < 0.15, counted()
