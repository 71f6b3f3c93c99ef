"""A server that accepts advisory locks and does nothing is named, and gets no unique corpus."""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection


@pytest.fixture
def without_locks(connection: Connection) -> Connection:
    """A database in which locking does nothing, as on some servers that speak PostgreSQL's protocol."""
    connection.execute(
        "ALTER FUNCTION pg_catalog.pg_advisory_xact_lock(int, int) RENAME TO real_lock"
    )
    connection.execute(
        "CREATE FUNCTION pg_catalog.pg_advisory_xact_lock(int, int) RETURNS void "
        "LANGUAGE sql AS 'SELECT'"
    )
    return connection


def test_doctor_proves_that_locks_exclude(textsim: Textsim) -> None:
    assert "advisory locks of one session exclude other sessions" in textsim("doctor").stdout


def test_doctor_names_a_server_without_locks(textsim: Textsim, without_locks: Connection) -> None:
    shown = textsim("doctor", status=1).stdout
    assert "two sessions can hold the same advisory lock" in shown


def test_a_unique_corpus_is_refused(db: ts.Database, without_locks: Connection) -> None:
    corpus = db.create_corpus("plain")
    message = "does not keep advisory locks"
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=message):
        without_locks.execute("SELECT textsim.create_corpus('c', is_unique => true)")
    with pytest.raises(ts.TextsimError, match=message):
        db.create_corpus("c", is_unique=True)
    with pytest.raises(ts.TextsimError, match=message):
        corpus.rebuild(is_unique=True)
    assert db.corpora() == ["plain"]
