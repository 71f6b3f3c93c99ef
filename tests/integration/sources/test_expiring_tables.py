"""Rows of attached tables expire with their documents: times of columns, drift, twins, partitions."""

from __future__ import annotations

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.expiry import DAY, OTHER, TEXT, create, expire, expiries, table_of
from tests.support.sampling import sample
from textsim_db.results import Drift
from textsim_db.settings.named_values import ExistingName

MODES = ["queue", "inline"]


def attach(
    connection: Connection, mode: str | None, column: str, type_: str = "timestamptz"
) -> None:
    connection.execute(
        f"CREATE TABLE post (id int PRIMARY KEY, body text, moment {type_})".encode()
    )
    connection.execute(
        f"SELECT textsim.attach('c', 'post', 'id', 'body', %s, {column} => 'moment')".encode(),
        [mode],
    )


def settle(db: ts.Database, connection: Connection, by_sql: bool) -> None:
    """Let the changes of the table be indexed."""
    if by_sql:
        connection.execute("CALL textsim.index_pending('c')")
    else:
        db.worker(expire_after=0).run(until_idle=True)


@pytest.mark.sampled
@pytest.mark.parametrize("by_sql", [False, True], ids=["worker", "index_pending"])
@pytest.mark.parametrize("column", ["time_column", "expires_column"])
@pytest.mark.parametrize("mode", MODES)
def test_the_rows_of_an_attached_table_expire(
    db: ts.Database, connection: Connection, mode: str, column: str, by_sql: bool
) -> None:
    corpus = create(db)
    attach(connection, mode, column)
    age = "now()" if column == "time_column" else "now() + interval '30 days'"
    rows = [("1", TEXT, "0"), ("2", OTHER, "-29 days"), ("3", TEXT + " again", "-31 days")]
    insert = f"INSERT INTO post VALUES (%s::int, %s, {age} + %s::text::interval)".encode()
    for row in rows:
        connection.execute(insert, row)
    connection.execute(b"INSERT INTO post VALUES (4, 'a text that counts for ever', NULL)")

    def assert_indexed(*keys: str) -> None:
        settle(db, connection, by_sql)
        assert [key for key in "123456" if key in corpus] == sorted(keys)
        assert corpus.status().pending == 0
        assert corpus.check() == []
        assert list(corpus.drift()) == []
        corpus.reconcile()
        assert [key for key in "123456" if key in corpus] == sorted(keys)

    assert_indexed("1", "2", "4")
    left = expiries(connection, corpus)
    assert left["4"] is None
    assert round((left["1"] - left["2"]) / DAY) == 29
    # A changed time counts as a change, and so does a time that has passed.
    connection.execute(f"UPDATE post SET moment = {age} WHERE id = 3".encode())
    connection.execute(f"UPDATE post SET moment = {age} - interval '31 days' WHERE id = 1".encode())
    assert_indexed("2", "3", "4")
    # While the document is not removed, its row counts as a row without a text.
    with connection.transaction():
        connection.execute("ALTER TABLE post DISABLE TRIGGER USER")
        connection.execute(
            f"UPDATE post SET moment = {age} - interval '31 days' WHERE id = 2".encode()
        )
        connection.execute("ALTER TABLE post ENABLE TRIGGER USER")
    expire(connection, corpus, "2")
    assert "2" not in corpus
    assert list(corpus.drift()) == []
    assert [problem for problem in corpus.check() if problem.kind != "attached table"] == []
    assert_indexed("3", "4")
    connection.execute("UPDATE post SET moment = NULL WHERE id = 2")
    assert_indexed("2", "3", "4")
    assert value(connection, "SELECT count(*) FROM post") == 4


@pytest.mark.parametrize("mode", sample(MODES, 2))
def test_drift_sees_a_time_that_triggers_missed(
    db: ts.Database, connection: Connection, mode: str
) -> None:
    corpus = create(db)
    attach(connection, mode, "time_column")
    connection.execute("INSERT INTO post VALUES (1, %s, now())", [TEXT])
    settle(db, connection, False)
    before = expiries(connection, corpus)["1"]
    connection.execute("SET session_replication_role = replica")
    connection.execute("UPDATE post SET moment = moment - interval '5 days'")
    assert list(corpus.drift()) == [Drift("1", "different")]
    assert corpus.reconcile().replaced == 1
    assert expiries(connection, corpus)["1"] == before - 5 * DAY
    connection.execute("UPDATE post SET moment = moment - interval '50 days'")
    assert list(corpus.drift()) == [Drift("1", "surplus")]
    assert [problem.kind for problem in corpus.check()] == ["surplus document"]
    assert corpus.reconcile().removed == 1
    connection.execute("UPDATE post SET moment = now()")
    assert list(corpus.drift()) == [Drift("1", "missing")]
    assert corpus.drift().to_arrow().to_pylist() == [{"key": "1", "kind": "missing"}]
    assert [problem.kind for problem in corpus.check()] == ["missing document"]
    assert corpus.reconcile().added == 1
    assert corpus.check() == []


@pytest.mark.parametrize("type_", sample(["timestamptz", "date", "timestamp"], 2))
def test_times_without_a_zone_are_of_utc(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture, type_: str
) -> None:
    corpus = create(db)
    connection.execute("SET timezone = 'Asia/Tokyo'")
    connection.execute("SET datestyle = 'SQL, DMY'")
    notices: list[str | None] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    attach(connection, "queue", "expires_column", type_)
    create(db, "other").attach("post", "id", "body", expires="moment")
    message = (
        f'column "moment" of table public.post is a {type_} without time zone: its times are of UTC'
    )
    assert notices == caplog.messages == [message] * (type_ == "timestamp")
    connection.execute("INSERT INTO post VALUES (1, %s, '2999-12-31')", [TEXT])
    connection.execute("INSERT INTO post VALUES (2, %s, 'infinity')", [OTHER])
    connection.execute("INSERT INTO post VALUES (3, %s, '-infinity')", [OTHER])
    settle(db, connection, False)
    query = (
        "SELECT key, to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') "
        f"FROM {table_of(connection, corpus)} ORDER BY key"
    )
    expected = "2999-12-30 15:00" if type_ == "timestamptz" else "2999-12-31 00:00"
    assert connection.execute(query.encode()).fetchall() == [("1", expected), ("2", None)]
    settle(db, connection, True)
    assert list(corpus.drift()) == []


def test_a_table_needs_one_column_of_times(db: ts.Database, connection: Connection) -> None:
    corpus, plain = create(db), db.create_corpus("plain")
    connection.execute(
        "CREATE TABLE post (id int PRIMARY KEY, body text, moment timestamptz, name text)"
    )
    with pytest.raises(ts.ConfigurationError, match="name the column of their times"):
        corpus.attach("post", "id", "body")
    with pytest.raises(ts.ConfigurationError, match="are both given"):
        corpus.attach("post", "id", "body", time="moment", expires="moment")
    with pytest.raises(ts.ConfigurationError, match="expected timestamptz, timestamp or date"):
        corpus.attach("post", "id", "body", time="name")
    with pytest.raises(ts.ConfigurationError, match="never expire; leave out"):
        plain.attach("post", "id", "body", time="moment")
    corpus.attach("post", "id", "body", expires="moment")
    (source,) = db.sources()
    assert (source.time, source.expires) == (None, "moment")


@pytest.mark.both_servers
@pytest.mark.parametrize("existing", sample(["refuse", "keep"], 2))
def test_a_unique_table_lets_twins_of_expired_rows_in(
    db: ts.Database, connection: Connection, existing: ExistingName
) -> None:
    corpus = create(db, is_unique=True)
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, body text, moment timestamptz)")
    insert = "INSERT INTO post VALUES (%s, %s, now() - %s::text::interval)"
    connection.execute(insert, [1, TEXT, "31 days"])
    connection.execute(insert, [2, TEXT, "1 day"])
    corpus.attach("post", "id", "body", existing=existing, time="moment")
    assert list(corpus.pairs()) == []
    assert "1" not in corpus
    with pytest.raises(pg.UniqueViolation):
        connection.execute(insert, [3, TEXT, "0"])
    with pytest.raises(pg.UniqueViolation):
        connection.execute("UPDATE post SET moment = now() WHERE id = 1")
    connection.execute("UPDATE post SET moment = moment - interval '30 days' WHERE id = 2")
    connection.execute(insert, [3, TEXT, "0"])
    assert [match.key for match in corpus.query(TEXT)] == ["3"]
    assert corpus.check() == []
    assert corpus.rebuild()
    assert list(corpus.drift()) == []
    connection.execute("UPDATE post SET moment = now() - interval '40 days'")
    connection.execute("UPDATE post SET moment = now() WHERE id = 1")
    assert [match.key for match in corpus.query(TEXT)] == ["1"]
    assert corpus.check() == []


def test_another_table_takes_the_key_of_an_expired_document(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create(db)
    for table in ("first", "second"):
        connection.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, body text, moment timestamptz)".encode()
        )
        corpus.attach(table, "id", "body", "inline", time="moment")
    connection.execute("INSERT INTO first VALUES (1, %s, now())", [TEXT])
    connection.execute("ALTER TABLE first DISABLE TRIGGER USER")
    connection.execute("UPDATE first SET moment = now() - interval '31 days'")
    connection.execute("ALTER TABLE first ENABLE TRIGGER USER")
    expire(connection, corpus, "1")
    connection.execute("INSERT INTO second VALUES (1, %s, now())", [OTHER])
    assert [match.key for match in corpus.query(OTHER)] == ["1"]
    assert corpus.query(TEXT) == []
    settle(db, connection, False)
    assert corpus.pending() == []
    assert corpus.check() == []
