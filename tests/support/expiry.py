"""Corpora whose documents expire, and documents that have expired."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.scopes import THRESHOLD

TEXT = "the quick brown fox jumps over the lazy dog"
OTHER = "rain is expected in the north while the south stays dry"
DAY = timedelta(days=1)


def create(db: ts.Database, name: str = "c", **settings: Any) -> ts.Corpus:
    chosen: dict[str, Any] = {"shingle": "word:2", "threshold": THRESHOLD, "recall": 1}
    return db.create_corpus(name, **(chosen | {"keep_for": "30 days"} | settings))


def table_of(connection: Connection, corpus: ts.Corpus) -> str:
    corpus_id = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [corpus.name])
    return f"textsim.document_{corpus_id}"


def expire(connection: Connection, corpus: ts.Corpus, *keys: str) -> None:
    """Let documents expire: their time is set back, because the server's clock cannot be moved."""
    connection.execute(
        f"UPDATE {table_of(connection, corpus)} SET expires_at = now() - interval '1 second' "
        "WHERE key = ANY (%s)".encode(),
        [list(keys)],
    )


def expiries(connection: Connection, corpus: ts.Corpus) -> dict[str, Any]:
    query = f"SELECT key, expires_at FROM {table_of(connection, corpus)}"
    return dict(connection.execute(query.encode()).fetchall())
