"""Removes, rejects and forgets documents by key, and removes expired ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, LiteralString

from psycopg import errors as pg

from textsim_db.base.run_ahead import BATCH_DOCUMENTS, cut
from textsim_db.db.connections import Connection, Cursor
from textsim_db.db.engine import autocommit, configuration_errors, read_rows, transaction
from textsim_db.db.retries import Attempts, WriterAttempts
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import CorpusBusy, CorpusChanged, DocumentNotFound
from textsim_db.results import ForgetReport, Rejected
from textsim_db.text.storable import possible_keys
from textsim_db.write import statements

if TYPE_CHECKING:
    from sqlalchemy import Engine


LOOK_AGAIN_SECONDS = 0.1
"""The pause before another look whether a rebuild of another session has ended."""
KEPT_TABLES: Final[tuple[LiteralString, ...]] = (
    "textsim.judgement",
    "textsim.merged_row",
    "textsim.pending",
)
"""The tables of keys that outlive a rebuild. VACUUM alone leaves removed rows in their pages."""
PATIENCE_SECONDS = 3.0
"""How long writing such a table anew waits for transactions that may read the removed rows."""


def remove(store: Store, keys: Iterable[object]) -> int:
    """Remove documents by key and return how many were removed; unknown keys are skipped."""
    pieces = cut(possible_keys(keys), BATCH_DOCUMENTS, len)
    return sum(_remove_or_retry(store, sorted(set(piece))) for piece in pieces)


def remove_within(cursor: Cursor, corpus: StoredCorpus, keys: list[str]) -> int:
    row = cursor.execute(corpus.statement(statements.REMOVE_DOCUMENTS), [keys]).fetchone()
    return 0 if row is None else int(row[0])


def _remove_or_retry(store: Store, keys: list[str]) -> int:
    """Remove documents, in halves if that takes too long; return how many were removed."""
    removed = 0
    for attempt in WriterAttempts(store.engine, store.corpus.id, keys):
        with attempt:
            with transaction(store.engine) as connection:
                attempt.queue(connection)
                chosen = keys[attempt.slice]
                attempt.results.append(remove_within(connection.cursor(), store.corpus, chosen))
            removed += max(attempt.results)
    return removed


def expire(store: Store, progress: Callable[[int], None] | None = None) -> int:
    """Remove the expired documents of a corpus in small transactions; return how many were removed."""
    total = 0
    while removed := expire_some(store.engine, store.corpus.name):
        total += removed
        if progress is not None:
            progress(total)
    return total


def expire_some(engine: Engine, name: str, after: float = 0.0, has_jumped: bool = False) -> int:
    """Remove up to a thousand expired documents of a corpus, and return how many were removed.

    after: the seconds since an earlier look, by whose time the documents had expired; 0: no matter
    since when. has_jumped: whether the clock of the server has jumped, so that no look before counts.
    """
    removed = 0
    for attempt in Attempts():
        with attempt, transaction(engine) as connection:
            row = connection.execute(statements.EXPIRE, [name, after, has_jumped]).fetchone()
            removed = 0 if row is None else int(row[0])
    return removed


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
                attempt.results.append(row)
                # If an earlier attempt was committed, this one found nothing more.
                report = ForgetReport(*map(max, zip(*attempt.results, strict=True)))
    return report


def reject(store: Store, key: str, reason: str) -> str:
    """Reject the text of a document, and return the key that it has from then on."""
    new_key: str | None = None
    # Of a unique corpus, this error says that it was rebuilt meanwhile.
    refusals = () if store.corpus.config.is_unique else (pg.ObjectNotInPrerequisiteState,)
    try:
        with configuration_errors(*refusals):
            for attempt in Attempts():
                with attempt, transaction(store.engine) as connection:
                    if new_key is None or not _is_rejected(connection, store, new_key):
                        values = [store.corpus.name, key, reason]
                        row = connection.execute(statements.REJECT, values).fetchone()
                        assert row is not None
                        new_key = str(row[0])
    except pg.NoDataFound as error:
        raise DocumentNotFound(error.diag.message_primary or str(error)) from error
    assert new_key is not None
    return new_key


def _is_rejected(connection: Connection, store: Store, new_key: str) -> bool:
    """Return whether an earlier attempt, which lost its connection, was committed."""
    row = connection.execute(statements.REJECTION, [store.corpus.name, new_key]).fetchone()
    return row is not None and row[0] is not None


def rejected(store: Store, scope: str | None) -> list[Rejected]:
    rows = read_rows(store.engine, statements.REJECTED, [store.corpus.name, scope])
    return [Rejected(*row) for row in rows]


def erase(store: Store, rebuild: Callable[[], object]) -> None:
    """Rebuild a corpus until no present request waits; a rebuild of another session counts, too."""
    waiting = read_rows(store.engine, statements.WAITING_REQUESTS, [store.corpus.id])
    while read_rows(store.engine, statements.ARE_WAITING, waiting[0]) == [(True,)]:
        try:
            rebuild()
        except (CorpusBusy, CorpusChanged):
            time.sleep(LOOK_AGAIN_SECONDS)


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
        time.sleep(LOOK_AGAIN_SECONDS)
    return False
