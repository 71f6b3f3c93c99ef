"""Everything works on a user's engine, and in sessions with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg import errors as pg
from psycopg.rows import dict_row, namedtuple_row
from sqlalchemy import Engine

import textsim_db as ts
from tests.support.connections import engine_of, tables_of
from tests.support.sampling import sample
from textsim_db.db.connections import lend

TEXTS = {"clé1": "un texte avec des mots", "€ 漢": "un texte avec des mots, et le même"}


def use_corpus(address: str | Engine) -> None:
    with ts.connect(address) as db:
        corpus = db.create_corpus("c", shingle="word:1")
        assert corpus.add_many(TEXTS.items()).added == 2
        assert corpus.add("clé1", "autre").replaced == 1
        assert corpus.add("clé1", TEXTS["clé1"]).replaced == 1
        assert [m.key for m in corpus.query(TEXTS["clé1"], 0.5)] == list(TEXTS)
        assert [m.key for m in corpus.neighbours("€ 漢", 0.5)] == ["clé1"]
        assert [pair[:2] for pair in corpus.pairs(0.5)] == [("clé1", "€ 漢")]
        assert [c.keys for c in corpus.clusters(0.5)] == [tuple(TEXTS)]
        assert "clé1" in corpus
        assert corpus.explain(*TEXTS).words == (5, 8)
        assert corpus.rebuild(threshold=0.7)
        with db.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE t (id text PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body")
        with db.engine.begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO t VALUES ('dé', 'un mot'), ('x', repeat('a', 9))"
            )
        assert db.worker().run(until_idle=True).added == 2
        corpus.reconcile()
        assert corpus.statistics().documents == len(corpus) == 4
        assert corpus.status().indexed == 4
        assert corpus.pending() == []
        assert corpus.remove(["clé1"]) == 1
        assert corpus.check() == []
        keys = sorted(["dé", "x", "€ 漢"])
    with psycopg.connect(db.url, client_encoding="UTF8") as connection:
        documents, _ = tables_of(connection, corpus.name)
        rows = connection.execute(f'SELECT key FROM {documents} ORDER BY key COLLATE "C"'.encode())
        assert [key for (key,) in rows] == keys


@contextmanager
def database_setting(address: str, setting: str) -> Iterator[None]:
    """Set a parameter for all later sessions of a database."""
    with psycopg.connect(address, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET {setting}'.encode())
        yield


@pytest.mark.parametrize(
    ("way", "encoding"), sample([("database", "EUC_JP"), ("arguments", "LATIN1")], 2)
)
def test_an_engine_with_another_client_encoding_works_and_keeps_it(
    database_url: str, encoding: str, way: str
) -> None:
    options: dict[str, Any] = {"pool_size": 2}
    if way == "arguments":
        options["connect_args"] = {"client_encoding": encoding}
    with (
        database_setting(
            database_url, f"client_encoding = {encoding if way == 'database' else 'UTF8'}"
        ),
        engine_of(database_url, **options) as engine,
    ):
        use_corpus(engine)
        with engine.connect() as connection:  # the engine's owner still sees the encoding
            shown = connection.exec_driver_sql("SHOW client_encoding").scalar_one()
            assert shown == encoding
            assert connection.exec_driver_sql("SELECT 'é'").scalar_one() == "é"


def backends_of(db: ts.Database, count: int) -> list[int]:
    """Return the server processes of connections that are lent at the same time."""
    with ExitStack() as stack:
        connections = [stack.enter_context(lend(db.engine)) for _ in range(count)]
        return [connection.info.backend_pid for connection in connections]


def test_the_connections_of_many_threads_are_kept(db: ts.Database) -> None:
    before = backends_of(db, 16)
    assert sorted(backends_of(db, 16)) == sorted(before)


def test_a_single_thread_uses_one_connection(db: ts.Database) -> None:
    backends_of(db, 3)
    assert len({backends_of(db, 1)[0] for _ in range(5)}) == 1


def test_a_cursor_whose_close_fails_is_closed(database_url: str) -> None:
    """A call that is cancelled within CLOSE must not leave an open cursor, of which psycopg warns."""
    with engine_of(database_url) as engine, lend(engine) as connection:
        connection.execute("BEGIN")
        cursor = connection.cursor("c").execute("SELECT 1")
        connection.execute("CLOSE c")
        with pytest.raises(pg.InvalidCursorName):
            cursor.close()
        assert cursor.closed


@pytest.mark.parametrize(
    "settings",
    [
        {"row_factory": dict_row, "prepare_threshold": 1},
        {"cursor_factory": psycopg.RawCursor, "server_cursor_factory": psycopg.RawServerCursor},
        {"cursor_factory": psycopg.ClientCursor},
    ],
)
def test_settings_of_a_listener_stay(database_url: str, settings: dict[str, Any]) -> None:
    with engine_of(database_url, pool_size=3) as engine:
        with engine.connect():  # SQLAlchemy's first connection reads the version of the server
            pass
        engine.dispose()
        connections: list[Any] = []

        @sqlalchemy.event.listens_for(engine, "connect")
        def prepare(connection: Any, record: Any) -> None:
            for name, value in settings.items():
                setattr(connection, name, value)
            connections.append(connection)

        with ts.connect(engine) as db:
            corpus = db.create_corpus("c", shingle="word:1")
            assert corpus.add_many(TEXTS.items()).added == 2
            assert [pair[:2] for pair in corpus.pairs(0.5)] == [("clé1", "€ 漢")]
            assert corpus.rebuild(threshold=0.7)
            assert corpus.check() == []
        assert connections
        for name, value in settings.items():
            assert all(getattr(connection, name) == value for connection in connections), name
        assert not any(connection.autocommit for connection in connections)


def test_a_listener_may_leave_a_transaction_open(database_url: str) -> None:
    with engine_of(database_url) as engine:

        @sqlalchemy.event.listens_for(engine, "checkout")
        def prepare(connection: Any, record: Any, proxy: Any) -> None:
            connection.execute("SET application_name = 'set by a listener'")

        use_corpus(engine)


@pytest.mark.parametrize(
    "pool", [sqlalchemy.StaticPool, sqlalchemy.AssertionPool, sqlalchemy.pool.SingletonThreadPool]
)
def test_pools_with_a_single_connection_are_refused(database_url: str, pool: Any) -> None:
    with engine_of(database_url, poolclass=pool) as engine:
        for function in (ts.connect, ts.install):
            with pytest.raises(ts.ConfigurationError, match=f"{pool.__name__}.*QueuePool or Null"):
                function(engine)


def test_an_exhausted_pool_is_reported(database_url: str) -> None:
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.1}
    with engine_of(database_url, **options) as engine:
        db = ts.connect(engine)
        with engine.connect(), pytest.raises(ts.DatabaseUnavailable, match="raise its pool_size"):
            db.corpora()


def test_connections_return_to_the_pool_unchanged(database_url: str) -> None:
    # A call that would use a second connection waits for the pool, and then does without.
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.1}
    with engine_of(database_url, **options) as engine, ts.connect(engine) as db:
        corpus = db.create_corpus("news")
        corpus.add_many(TEXTS.items())
        corpus.query(TEXTS["clé1"])
        list(corpus.pairs())
        corpus.check()
        with engine.connect() as connection:
            connection.exec_driver_sql("CREATE TABLE public.mine (x integer)")
            connection.rollback()
            table = connection.exec_driver_sql("SELECT to_regclass('public.mine')").scalar_one()
            assert table is None
            level = connection.exec_driver_sql("SHOW transaction_isolation").scalar_one()
            assert level == "read committed"
            read_only = connection.exec_driver_sql("SHOW transaction_read_only").scalar_one()
            assert read_only == "off"


OPTIONS: list[dict[str, Any]] = [
    {"isolation_level": "AUTOCOMMIT"},
    {"isolation_level": "SERIALIZABLE", "connect_args": {"prepare_threshold": None}},
    {"poolclass": sqlalchemy.NullPool},
    {
        "connect_args": {
            "row_factory": namedtuple_row,
            "prepare_threshold": 0,
            "options": "-c default_transaction_isolation=serializable -c search_path=nowhere,public",
        }
    },
    {
        "connect_args": {
            "autocommit": True,
            "cursor_factory": psycopg.ClientCursor,
            "options": "-c DateStyle=German -c IntervalStyle=sql_standard -c bytea_output=escape",
        }
    },
]


@pytest.mark.parametrize("options", sample(OPTIONS, 2, "more"), ids=lambda each: ", ".join(each))
def test_engines_with_other_options_work(database_url: str, options: dict[str, Any]) -> None:
    with engine_of(database_url, **options) as engine:
        use_corpus(engine)
        with engine.connect() as connection:  # connections return to the pool unchanged
            driver = connection.connection.driver_connection
            assert driver is not None
            is_autocommit = options.get("isolation_level") == "AUTOCOMMIT"
            assert driver.autocommit == (is_autocommit or "cursor_factory" in str(options))
