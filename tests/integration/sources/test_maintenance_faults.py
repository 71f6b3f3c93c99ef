"""Each step of maintenance of one table or corpus is broken, and the other ones are maintained on."""

from __future__ import annotations

import re
import threading
from typing import Any, NamedTuple

import pytest
from psycopg import errors as pg
from psycopg.errors import Diagnostic

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sources import MENDERS, Mender, run_index_pending, run_reconcile, run_worker
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from tests.support.workers import running_worker
from textsim_db.sync import apply_changes, cut_pieces, report_worker, step_faults, upkeep

TEXT = "one two three four five"


class Break(NamedTuple):
    """A step of maintenance of a corpus that is broken, with {id} as the id of the corpus."""

    step: str
    statements: str
    """SQL after which the step fails."""
    mending: str
    """SQL that mends it; empty: nothing but to drop the corpus."""
    fault: str
    """The words of the worker, as a regular expression."""
    is_of_table: bool = False
    """Whether the other table of the corpus can be maintained."""


_RAISE = (
    "CREATE FUNCTION public.{name}() RETURNS trigger LANGUAGE plpgsql AS "
    "$$BEGIN RAISE insufficient_privilege USING MESSAGE = 'an object in the way'; END$$; "
)
BREAKS = [
    Break(
        "release of a dropped table",
        "CREATE TRIGGER way BEFORE DELETE ON textsim.document_{id} "
        "FOR EACH ROW EXECUTE FUNCTION way(); DROP TABLE u{id}",
        "DROP TRIGGER way ON textsim.document_{id}",
        "was dropped and cannot be detached: an object in the way",
        is_of_table=True,
    ),
    Break(
        "claim of words: a table is gone",
        "ALTER TABLE textsim.document_{id} RENAME TO taken_{id}",
        "ALTER TABLE textsim.taken_{id} RENAME TO document_{id}",
        "document_{id}",
    ),
    Break(
        "cut: the function of the row filter is gone",
        "ALTER FUNCTION textsim._filter_{source} RENAME TO taken_{id}",
        "ALTER FUNCTION textsim.taken_{id} RENAME TO _filter_{source}",
        "_filter_",
        is_of_table=True,
    ),
    Break(
        "write: an object in the way",
        "CREATE TRIGGER way BEFORE INSERT OR UPDATE ON textsim.document_{id} "
        "FOR EACH ROW EXECUTE FUNCTION way()",
        "DROP TRIGGER way ON textsim.document_{id}",
        "an object in the way",
    ),
    Break(
        "expiry",
        "CREATE TRIGGER way BEFORE DELETE ON textsim.document_{id} "
        "FOR EACH ROW EXECUTE FUNCTION way(); "
        "UPDATE textsim.document_{id} SET expires_at = now() - interval '1 s' WHERE key = 'e'; "
        "UPDATE t{id} SET late = '2001-01-01' WHERE id = 'e'",
        "DROP TRIGGER way ON textsim.document_{id}",
        "expired documents of corpus c{n} are not removed: an object in the way",
    ),
    Break(
        "clusters: a function is gone",
        "ALTER FUNCTION textsim._update_batch_{id} RENAME TO taken_{id}",
        "ALTER FUNCTION textsim.taken_{id} RENAME TO _update_batch_{id}",
        "clusters of corpus c{n} are not updated: .*_update_batch_",
    ),
    Break(
        "clusters: an object in the way",
        "CREATE TRIGGER way BEFORE INSERT ON textsim.member_{id} "
        "FOR EACH ROW EXECUTE FUNCTION way()",
        "DROP TRIGGER way ON textsim.member_{id}",
        "clusters of corpus c{n} are not updated: an object in the way",
    ),
    Break(
        "comparison: the type of a column is dropped",
        "DROP TYPE kind{id} CASCADE",
        "",
        "does not exist",
    ),
]


Broken = list[tuple[Break, dict[str, object]]]
"""Breaks, each with the names that fill its statements."""


def corpora_of(db: ts.Database, connection: Connection, breaks: list[Break]) -> Broken:
    """Create a corpus with two attached tables for each break."""
    connection.execute(_RAISE.format(name="way").encode())
    filled: Broken = []
    for n, each in enumerate(breaks):
        db.create_corpus(f"c{n}", shingle="word:2", threshold=0.5, keep_for="30 days").track()
        id_ = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [f"c{n}"])
        connection.execute(
            f"CREATE TYPE kind{id_} AS ENUM ('a'); CREATE TABLE t{id_} (id text PRIMARY KEY, "
            f"body text, kind kind{id_} DEFAULT 'a', late date); CREATE TABLE u{id_} (LIKE t{id_} "
            f"INCLUDING ALL);".encode()
        )
        for table, key in (("t", "e"), ("u", "u")):
            connection.execute(
                "SELECT textsim.attach(%s, %s, 'id', 'body', expires_column => 'late', "
                "row_filter => 'kind = ''a''')",
                [f"c{n}", f"{table}{id_}"],
            )
            connection.execute(
                f"INSERT INTO {table}{id_} (id, body) VALUES (%s, %s)".encode(), [key, TEXT + key]
            )
        source = value(
            connection, "SELECT id FROM textsim.source WHERE relation = %s::regclass", [f"t{id_}"]
        )
        filled.append((each, {"id": id_, "n": n, "source": source}))
    run_worker(db, db.corpus("c0"), connection)
    return filled


def break_all(connection: Connection, broken: Broken) -> None:
    """Break each step, and change the broken table and the other one of its corpus."""
    for each, names in broken:
        connection.execute(each.statements.format(**names).encode())
        for table in ("t", "u"):
            connection.execute(
                "DO $$ BEGIN IF to_regclass('{table}{id}') IS NOT NULL THEN INSERT INTO {table}{id} "
                "(id, body) VALUES ('n{table}', '{text} six'), ('m{table}', '{text} seven'); "
                "END IF; END $$".format(table=table, text=TEXT, **names).encode()
            )


def mend_all(connection: Connection, broken: Broken) -> None:
    for each, names in broken:
        connection.execute(each.mending.format(**names).encode())


def problems(connection: Connection, corpus: str) -> list[str]:
    query = "SELECT array(SELECT textsim._corpus_problems(c)) FROM textsim.corpus c WHERE name = %s"
    found: list[str] = value(connection, query, [corpus])
    return found


@pytest.mark.more  # some twenty readings of all tables
def test_a_worker_goes_on_beside_broken_steps(
    db: ts.Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = corpora_of(db, connection, BREAKS)
    monkeypatch.setattr(report_worker, "REPORT_SECONDS", 0.2)
    # A worker tries each broken step once, so that no step waits for those that are tried again.
    monkeypatch.setattr(step_faults, "PAUSE_SECONDS", (60.0, 60.0))
    fine = db.create_corpus("fine")
    connection.execute("CREATE TABLE fine (id int PRIMARY KEY, body text)")
    fine.attach("fine", "id", "body")
    with running_worker(db, expire_after=0) as worker:
        break_all(connection, broken)
        for each, names in broken:
            fault = re.compile(each.fault.format(**names))

            def is_told(fault: re.Pattern[str] = fault, n: object = names["n"]) -> bool:
                return any(map(fault.search, problems(connection, f"c{n}")))

            wait_for(is_told, 300)
        connection.execute("INSERT INTO fine VALUES (1, 'one two three four')")
        wait_for(lambda: len(fine) == 1)
        told = {m.labels["corpus"]: m.value for m in db.metrics() if m.name.endswith("_problems")}
        assert told.pop("fine") == 0
        assert min(told.values()) > 0
    assert len(worker.unusable) >= len(BREAKS)
    mend_all(connection, broken)
    connection.execute("UPDATE textsim.pending SET lease_until = NULL")
    worker = db.worker()
    worker.run(until_idle=True)
    assert all("does not exist" in fault for fault in worker.unusable.values())
    for each, names in broken:
        corpus = db.corpus(f"c{names['n']}")
        if each.mending:
            assert {"nt", "mt"} <= {member.key for member in corpus.members()}, each.step
            assert corpus.check() == [], each.step
            assert corpus.pending() == [], each.step
            assert corpus.status().problems == [], each.step


BUGS: list[tuple[object, str]] = [
    (apply_changes, "resolve_rows"),
    (apply_changes, "_resolve_words"),
    (cut_pieces, "sweep_table"),
    (cut_pieces.WorkerSources, "_follow"),
    (upkeep, "expire_some"),
    (upkeep, "update_some"),
]
"""The functions of single steps; the first or second argument says of which corpus."""


def is_of_broken(*arguments: object) -> bool:
    stores = [getattr(argument, "store", argument) for argument in arguments[:2]]
    names = [getattr(getattr(store, "corpus", None), "name", store) for store in stores]
    return "broken" in names or "broken_table" in str(getattr(arguments[-1], "name", ""))


@pytest.mark.more
@pytest.mark.parametrize("bug", BUGS, ids=[name for _, name in BUGS])
def test_a_worker_goes_on_beside_a_bug(
    db: ts.Database,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    bug: tuple[object, str],
) -> None:
    module, name = bug
    step = getattr(module, name)

    def fails(*arguments: Any, **named: Any) -> Any:
        if is_of_broken(*arguments):
            raise ZeroDivisionError("a step")
        return step(*arguments, **named)

    monkeypatch.setattr(apply_changes, "PIECE_TRIES", 1)
    monkeypatch.setattr(module, name, fails)
    for corpus_name in ("broken", "other"):
        table = f"{corpus_name}_table"
        corpus = db.create_corpus(corpus_name, keep_for="1 day")
        corpus.track()
        connection.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, body text, late date)".encode()
        )
        connection.execute(
            "SELECT textsim.attach(%s, %s, 'id', 'body', expires_column => 'late')",
            [corpus_name, table],
        )
        connection.execute(
            f"TRUNCATE {table}; INSERT INTO {table} VALUES (1, '{TEXT}'), (2, '{TEXT}')".encode()
        )
        connection.execute("SELECT textsim.add(%s, 'added', 'six seven eight')", [corpus_name])
    worker = db.worker()
    worker.run(until_idle=True)
    failures = [failure.error for failure in db.corpus("broken").pending()]
    told = [*worker.unusable.values(), *failures]
    assert told, name
    assert all("a bug of textsim-db, ZeroDivisionError: a step" in each for each in told)
    assert [member.key for member in db.corpus("other").members()] == ["1", "2"]
    assert db.corpus("other").check() == []


@pytest.mark.parametrize("mend", [run_reconcile, run_index_pending], ids=["reconcile", "sql"])
def test_the_other_tables_of_a_corpus_are_maintained(
    db: ts.Database, connection: Connection, mend: Mender
) -> None:
    broken = corpora_of(db, connection, [each for each in BREAKS if each.is_of_table])
    break_all(connection, broken)
    for each, names in broken:
        connection.execute("UPDATE textsim.corpus SET name = 'c' WHERE id = %s", [names["id"]])
        notices: list[str] = []

        def tell(notice: Diagnostic, told: list[str] = notices) -> None:
            told.append(notice.message_primary or "")

        connection.add_notice_handler(tell)
        corpus = db.corpus("c")
        other = "nt" if "release" in each.step else "nu"
        if mend is run_reconcile:
            with pytest.raises(ts.ConfigurationError) as error:
                mend(db, corpus, connection)
            notices.append(str(error.value))
        else:
            mend(db, corpus, connection)
        assert other in corpus, each.step
        assert {p.kind for p in corpus.check()} <= {"attached table", "missing document"}, each.step
        said = " ".join(notices)
        assert re.search(each.fault.format(**names).rpartition(": ")[2], said), (each.step, said)
        connection.execute(
            "UPDATE textsim.corpus SET name = %s WHERE id = %s", [f"c{names['n']}", names["id"]]
        )


def test_clusters_of_the_other_corpora_are_updated(db: ts.Database, connection: Connection) -> None:
    for name in ("broken", "other"):
        corpus = db.create_corpus(name, shingle="word:1", threshold=0.5)
        corpus.track()
        corpus.add_many([("a", TEXT), ("b", TEXT)])
    id_ = value(connection, "SELECT id FROM textsim.corpus WHERE name = 'broken'")
    connection.execute(f"ALTER TABLE textsim.member_{id_} RENAME TO taken".encode())
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="corpus broken are not updated: "):
        connection.execute("CALL textsim.update_clusters()")
    assert [member.key for member in db.corpus("other").members()] == ["a", "b"]
    with pytest.raises(pg.UndefinedTable):
        connection.execute("CALL textsim.update_clusters('broken')")


def test_a_detached_partition_does_not_keep_a_dropped_table(
    db: ts.Database, connection: Connection
) -> None:
    """The trigger on TRUNCATE stays on a table that was a partition."""
    for step, mend in enumerate(MENDERS):
        corpus = db.create_corpus("c", shingle="word:2")
        connection.execute(
            "CREATE TABLE m (id int, p int, body text, PRIMARY KEY (id, p)) PARTITION BY LIST (p);"
            "CREATE TABLE m1 PARTITION OF m FOR VALUES IN (1);"
            "CREATE TABLE m2 PARTITION OF m FOR VALUES IN (2)"
        )
        corpus.attach("m", key_columns=["id", "p"], text="body")
        connection.execute("INSERT INTO m VALUES (1, 1, 'one two three'), (2, 2, 'four five six')")
        run_worker(db, corpus, connection)
        assert len(corpus) == 2
        connection.execute("ALTER TABLE m DETACH PARTITION m1; DROP TABLE m")
        mend(db, corpus, connection)
        assert (step, len(corpus)) == (step, 0)
        assert db.sources() == []
        connection.execute("TRUNCATE m1; DROP TABLE m1")
        db.drop_corpus(corpus.name)


def broken_clusters(db: ts.Database, connection: Connection, table: str = "cluster_event") -> None:
    """Create a tracked corpus whose clusters cannot be updated, and another with a changed table."""
    broken, fine = (
        db.create_corpus(name, shingle="word:2", threshold=0.5) for name in ("broken", "fine")
    )
    broken.track(keep_events="1 day")
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, body text)")
    fine.attach("post", "id", "body")
    broken.add_many({"a": TEXT, "b": TEXT})
    id_ = value(connection, "SELECT id FROM textsim.corpus WHERE name = 'broken'")
    connection.execute(f"DROP TABLE textsim.{table}_{id_} CASCADE".encode())
    connection.execute("INSERT INTO post VALUES (1, 'one two three')")


def test_a_worker_ends_although_a_step_is_not_tried_again(
    db: ts.Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_faults, "SETTLING_SECONDS", 0.2)
    broken_clusters(db, connection)
    id_ = int(str(value(connection, "SELECT id FROM textsim.corpus WHERE name = 'fine'")))
    worker = db.worker()
    subject = step_faults.step_of_corpus("a step", id_, "fine", "is not done")
    worker._faults.note(subject, pg.UndefinedTable("a table is gone"))
    thread = threading.Thread(target=worker.run, kwargs={"until_idle": True}, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert worker.unusable["a step of corpus fine"] == "a table is gone"
