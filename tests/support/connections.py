"""Connections of tests to their databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
import sqlalchemy
from sqlalchemy import Engine

from textsim_db.db.addresses import sqlalchemy_url

Connection = psycopg.Connection[Any]


@contextmanager
def engine_of(address: str, **options: Any) -> Iterator[Engine]:
    """An engine of a user; its connections are closed at the end."""
    engine = sqlalchemy.create_engine(sqlalchemy_url(address), **options)
    try:
        yield engine
    finally:
        engine.dispose()


def with_option(url: str, option: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options={quote('-c ' + option)}"


def execute(url: str, statement: str, *parameters: object) -> list[Any]:
    """Run a statement on a connection of its own, and return its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def value(connection: Connection, query: LiteralString, parameters: Any = None) -> Any:
    """Return the single value that a query returns."""
    (row,) = connection.execute(query, parameters).fetchall()
    return row[0]


def tables_of(connection: Connection, corpus: str) -> tuple[str, str]:
    """Return the names of a corpus's tables of documents and of band rows."""
    corpus_id = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [corpus])
    return f"textsim.document_{corpus_id}", f"textsim.band_{corpus_id}"


def count_deadlocks(connection: Connection) -> int:
    """Return the number of deadlocks in this database."""
    connection.execute("SELECT pg_stat_clear_snapshot()")
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    return int(value(connection, query))
