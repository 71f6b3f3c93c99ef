"""merge() takes duplicates out of a table, and unmerge() brings them back: nothing is lost."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg
import pytest
from psycopg import errors

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.truth import brute_force

TABLE = """
CREATE TABLE t (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text, label char(5), "a ""name" numeric,
    at timestamptz, during interval, data bytea, doc json, list float4[], half float8,
    size int GENERATED ALWAYS AS (length(body)) STORED, duplicate_of int REFERENCES t)
"""
INSERT = """
INSERT INTO t (body, label, "a ""name", at, during, data, doc, list, half) VALUES (
    %s, 'ab', 1.500, '2026-03-01 12:00:00.123456+02', '-1 day +2 hours', '\\xff00', '{"b":1,  "b":2}',
    ARRAY[1.1, NULL, 'Infinity']::float4[], 0.1)
"""
DELETE = "DELETE FROM t WHERE id = $1::int"
MARK = "UPDATE t SET duplicate_of = $2::int WHERE id = $1::int"


def draw_texts(rng: random.Random, count: int) -> list[str]:
    texts: list[str] = []
    while len(texts) < count:
        words = [f"w{rng.randrange(300)}" for _ in range(12)]
        for _ in range(rng.choice([1, 1, 2, 4])):
            texts.append(" ".join(words))
            words[rng.choice([0, 5, 11])] = f"e{rng.randrange(5)}"
    rng.shuffle(texts)
    return texts[:count]


def make_table(
    connection: Connection, texts: list[str], mode: str = "queue", settings: str = "recall => 1"
) -> None:
    connection.execute(TABLE)
    for text in texts:
        connection.execute(INSERT, [text])
    connection.execute(f"SELECT textsim.create_corpus('c', threshold => 0.6, {settings})".encode())
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', mode => %s)", [mode])
    connection.execute("CALL textsim.index_pending('c')")


def rows(connection: Connection) -> list[Any]:
    return connection.execute("SELECT t::text FROM t ORDER BY id").fetchall()


def merge(connection: Connection, arguments: str = "") -> tuple[int | None, int, dict[str, str]]:
    row = connection.execute(f"CALL textsim.merge('c'{arguments})".encode()).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def unmerge(connection: Connection, arguments: str) -> dict[str, str]:
    query = f"SELECT key, outcome FROM textsim.unmerge('c', {arguments})".encode()
    return dict(connection.execute(query).fetchall())


@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("statement", ["", f", statement => '{MARK}'"])
def test_a_merge_leaves_one_of_each_cluster_and_is_undone(
    connection: Connection, mode: str, statement: str
) -> None:
    texts = draw_texts(random.Random(1), 150)
    make_table(connection, texts, mode)
    before = rows(connection)
    listed = dict(connection.execute("SELECT key, kept FROM textsim.duplicates('c')").fetchall())
    run, merged, left_alone = merge(connection, statement)
    assert (merged, left_alone) == (len(listed), {})
    column = "duplicate_of" if statement else "id"
    gone = {str(number + 1) for number in range(len(texts))} - {
        key for (key,) in connection.execute("SELECT id::text FROM t WHERE duplicate_of IS NULL")
    }
    assert gone == set(listed)
    pairs = brute_force({str(n + 1): text for n, text in enumerate(texts)}, "word:3", 0.6)
    assert all((min(pair), max(pair)) in pairs for pair in listed.items())
    if not statement:
        assert not [pair for pair in pairs if not {*pair} & gone]
        connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection, statement) == (None, 0, {}), column
    kept = next(iter(listed.values()))
    of_cluster = {key for key, each in listed.items() if each == kept}
    assert unmerge(connection, f"kept => '{kept}'") == dict.fromkeys(of_cluster, "restored")
    assert unmerge(connection, f"run => {run}") == dict.fromkeys(gone - of_cluster, "restored")
    assert rows(connection) == before
    connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection, statement)[1] == 0
    assert unmerge(connection, "since => '-infinity'") == {}


def test_what_a_merge_leaves_alone(connection: Connection) -> None:
    text = "one two three four five six seven eight"
    texts = [
        text,
        f"{text} nine",
        f"{text} 9",
        f"{text} 10 11",
        "other words of a text that stays alone here",
    ]
    make_table(connection, texts, settings="recall => 1, guards => '{numbers}'")
    connection.execute("SELECT textsim.judge('c', '1', '2', 'different')")
    assert merge(connection)[1:] == (0, {})
    connection.execute("SELECT textsim.unjudge('c', '1', '2')")
    # The row has changed, and its change waits to be indexed.
    connection.execute("UPDATE t SET body = 'something that is quite another thing' WHERE id = 2")
    assert merge(connection)[1:] == (0, {"2": "it is no duplicate now"})
    connection.execute("UPDATE t SET body = %s WHERE id = 2", [text])
    connection.execute("DELETE FROM t WHERE id = 1")
    assert merge(connection)[1:] == (0, {"2": "the row to keep is gone"})
    connection.execute("CALL textsim.index_pending('c')")
    connection.execute("SELECT textsim.judge('c', '3', '5', 'same')")
    assert merge(connection, ", keep => 'last'")[1:] == (1, {})
    assert unmerge(connection, "kept => '5'") == {"3": "restored"}
    judged = connection.execute("SELECT a, b, verdict FROM textsim.judgements('c')").fetchall()
    assert judged == [("3", "5", "different")]


def test_what_constraints_and_triggers_keep(connection: Connection) -> None:
    make_table(connection, ["one two three four"] * 6)
    connection.execute(
        "CREATE TABLE r (id int REFERENCES t DEFERRABLE INITIALLY DEFERRED);"
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        "  IF OLD.id = 3 THEN RAISE EXCEPTION 'row 3 is published'; END IF;"
        "  IF OLD.id = 4 THEN UPDATE t SET half = 4 WHERE id = 4; RETURN NULL; END IF;"
        "  RETURN OLD; END $$;"
        "CREATE TRIGGER refuse BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION refuse();"
        "INSERT INTO r VALUES (2); UPDATE t SET half = 7 WHERE id = 4"
    )
    # Row 1 is kept, and goes with row 5.
    connection.execute(
        "ALTER TABLE t DROP CONSTRAINT t_duplicate_of_fkey,"
        "ADD FOREIGN KEY (duplicate_of) REFERENCES t ON DELETE CASCADE"
    )
    connection.execute("UPDATE t SET duplicate_of = 5 WHERE id = 1")
    before = rows(connection)
    reasons = merge(connection, f", statement => '{DELETE}'")[2]
    assert reasons.pop("2").startswith('update or delete on table "t" violates foreign key')
    assert reasons == {
        "3": "row 3 is published",
        "4": "the statement changed no row",
        "5": "the row to keep would be gone, too",
    }
    wrong = ", statement => 'DELETE FROM t WHERE id = $2::int'"
    assert merge(connection, wrong)[1] == 0
    assert unmerge(connection, "since => '-infinity'") == {"6": "restored"}
    assert rows(connection) == before


def test_a_marked_row_that_was_edited_is_no_row_to_keep(connection: Connection) -> None:
    make_table(connection, ["one two three four"] * 3)
    assert merge(connection, f", statement => '{MARK}'")[1] == 2
    connection.execute("UPDATE t SET half = 7 WHERE id > 1")
    assert merge(connection, f", keep => 'last', statement => '{MARK}'")[1:] == (
        0,
        {"1": "the row to keep is gone"},
    )
    connection.execute("UPDATE t SET duplicate_of = NULL WHERE id = 3")
    assert merge(connection, f", keep => 'last', statement => '{MARK}'")[1:] == (1, {})


def test_a_row_whose_table_has_changed_stays_in_the_log(connection: Connection) -> None:
    make_table(connection, ["one two three four"] * 2)
    assert merge(connection)[1] == 1
    connection.execute("ALTER TABLE t RENAME label TO title")
    missing = {"2": 'its table has no column "label" now'}
    assert unmerge(connection, "key => '2'") == missing
    connection.execute("ALTER TABLE t RENAME title TO label")
    connection.execute("ALTER TABLE t ALTER label TYPE int USING 1")
    assert unmerge(connection, "key => '2'")["2"].startswith(
        "invalid input syntax for type integer"
    )
    connection.execute("UPDATE textsim.merged_row SET old_row = old_row - 'label'")
    # The setting says whether NULL in the text of an array is a text.
    list_of_row = "SELECT list FROM t WHERE id = 2"
    connection.execute("SET array_nulls = off")
    assert unmerge(connection, "key => '2'") == {"2": "restored"}
    assert connection.execute(list_of_row).fetchone() == ([1.1, None, float("inf")],)
    connection.execute("SELECT textsim.unjudge('c', '1', '2')")
    connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection)[1] == 1
    connection.execute("DROP TABLE t")
    assert unmerge(connection, "key => '2'") == {"2": "its table is gone"}


def test_rows_that_refer_to_a_partition_are_not_lost(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (id int PRIMARY KEY, body text) PARTITION BY LIST (id);"
        "CREATE TABLE t_1 PARTITION OF t FOR VALUES IN (1);"
        "CREATE TABLE t_2 PARTITION OF t FOR VALUES IN (2);"
        "CREATE TABLE r (id int REFERENCES t_2 ON DELETE CASCADE);"
        "INSERT INTO t VALUES (1, 'one two three four'), (2, 'one two three four');"
        "INSERT INTO r VALUES (2)"
    )
    connection.execute("SELECT textsim.create_corpus('c')")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    connection.execute("CALL textsim.index_pending('c')")
    with pytest.raises(errors.DependentObjectsStillExist, match=r"changes rows of public\.r"):
        merge(connection)


def test_a_row_of_another_scope_than_its_kept_row_comes_back(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text, tenant text, copy_of int)")
    connection.execute("INSERT INTO t SELECT n, 'one two three', 'a' FROM generate_series(1, 2) n")
    connection.execute("SELECT textsim.create_corpus('c', scoped => true)")
    connection.execute(
        "SELECT textsim.attach('c', 't', 'id', 'body', scope_column => 'tenant', mode => 'inline')"
    )
    connection.execute("CALL textsim.index_pending('c')")
    mark = "UPDATE t SET copy_of = $2::int WHERE id = $1::int"
    assert merge(connection, f", statement => '{mark}'")[1] == 1
    connection.execute("UPDATE t SET tenant = 'b' WHERE id = 1")
    assert "different scopes" in unmerge(connection, "key => '2'")["2"]
    assert unmerge(connection, "key => '2', mergeable => true") == {"2": "restored"}


def test_only_the_rows_of_a_scope_are_merged(db: ts.Database, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text, tenant text)")
    connection.execute(
        "INSERT INTO t SELECT n, 'one two three', chr(97 + n % 2) FROM generate_series(1, 6) n"
    )
    connection.execute("SELECT textsim.create_corpus('c', scoped => true)")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', scope_column => 'tenant')")
    connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection, ", scope => 'a'")[1:] == (2, {})
    assert db.corpus("c").merge(scope="b").merged == 2
    left = connection.execute("SELECT id, tenant FROM t ORDER BY id").fetchall()
    assert left == [(1, "b"), (2, "a")]


@pytest.mark.more
def test_one_row_of_many_comes_back(connection: Connection) -> None:
    make_table(connection, ["one two three four"] * 102)
    assert merge(connection)[1] == 101
    outcomes = unmerge(connection, "since => '-infinity'")
    assert {*outcomes.values()} == {"restored, but not judged: too many pairs"}
    connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection)[1] == 101
    assert unmerge(connection, "key => '7'") == {"7": "restored"}
    connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection)[1:] == (0, {})
    assert unmerge(connection, "key => '7'") == {}
    assert len(unmerge(connection, "kept => '1'")) == 100
    connection.execute("CALL textsim.index_pending('c')")
    assert merge(connection)[1:] == (0, {})


def test_bad_input(connection: Connection, database_url: str) -> None:
    make_table(connection, ["one two three four"] * 4)
    connection.execute("CREATE TABLE r (id int REFERENCES t ON DELETE CASCADE)")
    for call, error in (
        ("CALL textsim.merge('c')", errors.DependentObjectsStillExist),
        ("CALL textsim.merge('none')", errors.UndefinedObject),
        ("CALL textsim.merge('c', 'r')", errors.InvalidParameterValue),
        (
            "CALL textsim.merge('c', statement => 'UPDATE t SET label = $1')",
            errors.CardinalityViolation,
        ),
        (
            f"CALL textsim.merge('c', keep => 'best', statement => '{DELETE}')",
            errors.InvalidParameterValue,
        ),
        ("SELECT textsim.unmerge('c')", errors.InvalidParameterValue),
    ):
        with pytest.raises(error):
            connection.execute(call.encode())
    merge(connection, f", statement => '{DELETE}'")
    # A key that was given to another row is not overwritten, and named.
    connection.execute("INSERT INTO t (id, body) OVERRIDING SYSTEM VALUE VALUES (2, 'a new one')")
    outcomes = unmerge(connection, "since => '-infinity'")
    assert outcomes == {"2": "its key has another row now", "3": "restored", "4": "restored"}
    connection.execute("CALL textsim.index_pending('c')")
    connection.execute("DELETE FROM t WHERE id = 2")
    connection.execute("CALL textsim.index_pending('c')")
    connection.execute("SELECT textsim.forget('c', '{2}')")
    assert connection.execute("SELECT count(*) FROM textsim.merged_row").fetchone() == (0,)
    marked = merge(connection, f", statement => '{MARK}'")[1]
    assert marked == 0  # they were judged different


def test_rights_and_row_security_are_those_of_the_caller(
    connection: Connection, database_url: str
) -> None:
    text = "one two three four"
    make_table(connection, [text] * 6)
    connection.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    connection.execute("CREATE POLICY p ON t USING (id > 2 OR current_user <> 'm71')")
    connection.execute("CREATE ROLE m71 LOGIN")
    connection.execute("CREATE ROLE n71 LOGIN")
    try:
        for role in ("m71", "n71"):
            connection.execute(f"SELECT textsim.grant_writer('{role}')".encode())
            connection.execute(f"GRANT SELECT ON t TO {role}".encode())
        with psycopg.connect(database_url, autocommit=True) as client:
            client.execute("SET ROLE m71")
            with pytest.raises(errors.InsufficientPrivilege):
                merge(client)
            connection.execute("GRANT UPDATE, DELETE ON t TO m71")
            # It sees neither the row to keep nor the second row.
            assert merge(client)[1] == 0
            connection.execute("DROP POLICY p ON t")
            connection.execute("CREATE POLICY p ON t USING (id <> 2 OR current_user <> 'm71')")
            run, merged, left_alone = merge(client)
            assert (merged, left_alone) == (4, {"2": "its row is gone"})
            client.execute("SET ROLE n71")
            assert client.execute("SELECT count(*) FROM textsim.merged_row").fetchone() == (0,)
            assert unmerge(client, f"run => {run}") == {}
            with pytest.raises(errors.InsufficientPrivilege):
                client.execute(
                    "INSERT INTO textsim.merged_row "
                    "(origin, relation, run, merged_by, key, kept, similarity, old_row) "
                    "VALUES (1, 't', 1, 'm71', '9', '1', 1, '{}')"
                )
            assert unmerge(connection, f"run => {run}") == {}
            client.execute("SET ROLE m71")
            with pytest.raises(errors.InsufficientPrivilege):
                unmerge(client, f"run => {run}")
            connection.execute("GRANT INSERT ON t TO m71")
            assert len(unmerge(client, f"run => {run}")) == 4
    finally:
        for role in ("m71", "n71"):
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


@pytest.mark.more
def test_nothing_is_lost_under_writers_and_kills(
    db: ts.Database, connection: Connection, database_url: str, seed: int
) -> None:
    texts = draw_texts(random.Random(seed), 200)
    numbered = {str(number + 1): text for number, text in enumerate(texts)}
    make_table(connection, texts, mode="inline")
    before = rows(connection)
    ended = threading.Event()
    faults: list[BaseException] = []
    merged: list[int] = []

    def write(number: int) -> None:
        rng = random.Random(seed + number)
        while not ended.is_set():
            try:
                with psycopg.connect(
                    database_url, autocommit=True, application_name="m71"
                ) as client:
                    while not ended.is_set():
                        keep = rng.choice(["first", "last", "longest"])
                        arguments = rng.choice(["", f", statement => '{MARK}'"])
                        step = rng.randrange(4)
                        if step == 0:
                            merged.append(merge(client, f", keep => '{keep}'{arguments}")[1])
                        elif step == 1:
                            since = rng.choice(["now() - interval '1 second'", "'-infinity'"])
                            unmerge(client, f"since => {since}, mergeable => true")
                        else:
                            client.execute(
                                "UPDATE t SET half = half WHERE id = %s", [rng.randint(1, 200)]
                            )
            except psycopg.OperationalError:
                pass  # killed, or a deadlock with another writer
            except BaseException as error:
                faults.append(error)
                ended.set()

    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        for kills in range(200):
            if kills >= 20 and sum(merged) > 50:
                break
            ended.wait(0.7)
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'm71' ORDER BY random() LIMIT 1"
            )
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not faults
    assert sum(merged) > 50
    live = {
        key for (key,) in connection.execute("SELECT id::text FROM t WHERE duplicate_of IS NULL")
    }
    for cluster in ts.clusters(numbered, threshold=0.6):
        assert not live.isdisjoint(cluster.keys)
    outcomes = [*unmerge(connection, "since => '-infinity', mergeable => true").values()]
    while "restored" in outcomes:
        outcomes = [*unmerge(connection, "since => '-infinity', mergeable => true").values()]
    assert outcomes == []
    assert rows(connection) == before
    assert db.corpus("c").check() == []
