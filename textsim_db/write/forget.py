"""Forgets documents: removes what has their keys, and builds the corpus anew without their words."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, LiteralString

from psycopg import errors as pg

from textsim_db.db.engine import autocommit, configuration_errors, read_rows, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.errors import CorpusBusy, CorpusChanged
from textsim_db.results import ForgetReport
from textsim_db.write import statements

REBUILD_SECONDS = 0.1
"""The pause before another look whether a rebuild of another session has ended."""
KEPT_TABLES: Final[tuple[LiteralString, ...]] = ("textsim.judgement", "textsim.pending")
"""The tables of keys that outlive a rebuild. VACUUM alone leaves removed rows in their pages."""
PATIENCE_SECONDS = 3.0
"""How long writing such a table anew waits for transactions that may read the removed rows."""


def forget(
    store: Store, keys: list[str] | None, scope: str | None, all_expired: bool, all_removed: bool
) -> ForgetReport:
    """Remove documents and what has their keys; raises ConfigurationError if a row of one stands."""
    parameters = {
        "corpus": store.corpus.name,
        "keys": keys,
        "scope": scope,
        "all_expired": all_expired,
        "all_removed": all_removed,
    }
    report = ForgetReport()
    with configuration_errors(pg.ObjectInUse, pg.InvalidParameterValue):
        for attempt in Attempts():
            with attempt, transaction(store.engine) as connection:
                row = connection.execute(statements.FORGET, parameters).fetchone()
                assert row is not None
                report = ForgetReport(*row)
    return report


def erase(store: Store, rebuild: Callable[[], object]) -> None:
    """Rebuild a corpus until no present request waits; a rebuild of another session counts, too."""
    waiting = read_rows(store.engine, statements.WAITING_REQUESTS, [store.corpus.id])
    while read_rows(store.engine, statements.ARE_WAITING, waiting[0]) == [(True,)]:
        try:
            rebuild()
        except (CorpusBusy, CorpusChanged):
            time.sleep(REBUILD_SECONDS)


def has_words(store: Store) -> bool:
    """Return whether words of forgotten documents are left, because others read a replaced corpus."""
    parameters = {"origin": store.corpus.origin}
    return read_rows(store.engine, statements.HAS_REPLACED, parameters) == [(True,)]


def write_anew(store: Store) -> list[str]:
    """Write the tables of keys anew; return the statements that would have to wait too long."""
    return [f"VACUUM (FULL) {table}" for table in KEPT_TABLES if not _is_written(store, table)]


def _is_written(store: Store, table: LiteralString) -> bool:
    """Write a table anew; return whether it has no removed row that a transaction may read."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with autocommit(store.engine) as connection, suppress(pg.LockNotAvailable):
            connection.execute("SET lock_timeout = '1s'")  # writers wait behind it
            try:
                connection.execute(f"VACUUM (FULL) {table}".encode())
            finally:
                connection.execute("RESET lock_timeout")
            rows = connection.execute(statements.HAS_REMOVED_ROWS.format(table).encode(), [table])
            if rows.fetchall() == [(False,)]:
                return True
        time.sleep(REBUILD_SECONDS)
    return False
