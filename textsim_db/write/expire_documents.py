"""Removes the expired documents of a corpus in small transactions."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Engine

from textsim_db.db.engine import transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.write import statements


def expire(store: Store, progress: Callable[[int], None] | None = None) -> int:
    """Remove the expired documents of a corpus in small transactions; return how many were removed."""
    total = 0
    while removed := expire_some(store.engine, store.corpus.name):
        total += removed
        if progress is not None:
            progress(total)
    return total


def expire_some(engine: Engine, name: str) -> int:
    """Remove up to a thousand expired documents of a corpus, and return how many were removed."""
    removed = 0
    for attempt in Attempts():
        with attempt, transaction(engine) as connection:
            row = connection.execute(statements.EXPIRE, [name]).fetchone()
            removed = 0 if row is None else int(row[0])
    return removed
