"""The log of changes, textsim.pending, and what status and the metrics tell of it.

Triggers append entries in the user's transaction. A worker leases entries for a time: when it is over,
other workers may claim them, so a worker may die at any moment. The transaction that writes the
documents deletes their entries. A key that fails is postponed, and at last fails: its entry has an
error. An entry that crashes workers is split into its keys.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textsim_db.db.engine import Connection, read_rows, transaction, wait_at_most
from textsim_db.results import Failure, Metric, Refusal, ScopeStatus, Status, WorkerState
from textsim_db.sync import statements
from textsim_db.sync.worker_state import WorkerSettings

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.db.store import Store
    from textsim_db.sync.pieces import Piece


log = logging.getLogger(__name__)


CLAIM_KEYS = 10_000
"""A claim takes entries until they have this number of keys together."""
FULL_WALK_SHARE = 0.1
"""The share of the time that walks from the start of the log may take."""
RELEASE_PATIENCE = "1s"


class LogEntry(NamedTuple):
    id: int
    kind: str
    """change, compare or words."""
    corpus_id: int
    source_id: int | None
    """The attached table; None in entries of the kind words."""
    keys: list[str] | None
    """The keys of rows or documents; None in entries of the kind compare."""
    tries: int


class Claims:
    """The entries that one worker has claimed; other workers take them when the lease is over."""

    def __init__(self, engine: Engine, settings: WorkerSettings) -> None:
        self.engine = engine
        self._lease = float(settings.lease)
        self._every_corpus = settings.only_source is None
        self._ids: set[int] = set()
        self._place = _Place()
        self.has_claimed = False

    def claim(
        self, sources: Iterable[int], excluded: list[int], is_last: bool = False
    ) -> list[LogEntry]:
        """Claim the next entries; is_last: whether to walk the whole log, as the worker may end."""
        sources = list(sources)
        rows = self._claim(sources, excluded, self._place.next_start())
        if not rows and is_last and self._place.last_start:
            rows = self._claim(sources, excluded, 0)
        return [LogEntry(*row) for row in rows]

    def _claim(self, sources: list[int], excluded: list[int], after: int) -> list[tuple[Any, ...]]:
        parameters = {
            "sources": sources,
            "excluded": excluded,
            "every_corpus": self._every_corpus,
            "after": after,
            "most": CLAIM_KEYS,
            "lease": self._lease,
        }
        start = time.monotonic()
        with transaction(self.engine) as connection:
            rows = sorted(connection.execute(statements.CLAIM, parameters, prepare=True).fetchall())
            # Noted before the COMMIT: if the connection is lost now, the entries may still be ours.
            self._ids.update(row[0] for row in rows)
            self.has_claimed = True
        self._place.note(after, rows[-1][0] if rows else None, time.monotonic() - start)
        return rows

    @property
    def is_empty(self) -> bool:
        """Whether every entry that was claimed is finished or released."""
        return not self._ids

    def renew(self, ids: list[int]) -> None:
        self._lease_for(self._lease, ids, 0)

    def forget(self, ids: Iterable[int] | None = None) -> None:
        """Forget entries, by default all: they are finished, or stay claimed until the lease is over."""
        self._ids.difference_update(list(self._ids) if ids is None else ids)

    def release(self, ids: list[int] | None = None, uncounted_tries: int = 0) -> None:
        """Release entries, by default all, so that any worker can claim them; callable by any thread."""
        ids = sorted(self._ids.copy()) if ids is None else ids
        if ids:
            self._lease_for(0, ids, uncounted_tries)
            self.forget(ids)
            self._place = _Place()

    def delete_orphans(self, ids: list[int]) -> None:
        """Delete the entries whose corpus was dropped and not rebuilt."""
        with transaction(self.engine) as connection:
            connection.execute(statements.DELETE_ORPHANS, [ids])

    def _lease_for(self, seconds: float, ids: list[int], uncounted_tries: int) -> None:
        with transaction(self.engine) as connection:
            wait_at_most(connection, RELEASE_PATIENCE)
            connection.execute(statements.LEASE, [ids, seconds, uncounted_tries])


class _Place:
    """The place in the log at which the next walk begins.

    A walk reads what stands before the first ready entry: entries of other workers, entries of tables
    that this worker cannot index, and, while an old transaction is open, all entries that were ever
    deleted. So a walk begins where the last one ended. Since a transaction may commit entries with
    smaller ids later, and leases end, some walks begin at the start: as often as they are short.
    """

    def __init__(self) -> None:
        self.last_start = 0
        self._end = 0
        self._full_walk_at = 0.0

    def next_start(self) -> int:
        return 0 if time.monotonic() >= self._full_walk_at else self._end

    def note(self, start: int, last_id: int | None, seconds: float) -> None:
        """Note where a walk began, its last entry, and how long it took."""
        self.last_start = start
        if last_id is not None:
            self._end = max(self._end, last_id)
        if start == 0:
            self._full_walk_at = time.monotonic() + seconds / FULL_WALK_SHARE


def comparisons(connection: Connection, source_id: int) -> list[int]:
    return [id_ for (id_,) in connection.execute(statements.COMPARISONS, [source_id])]


def delete(connection: Connection, ids: Sequence[int]) -> None:
    if ids:
        connection.execute(statements.DELETE_ENTRIES, [list(ids)])


def delete_done(connection: Connection, piece: Piece) -> None:
    parameters = [piece.corpus.id, piece.source_id, piece.keys, list(piece.entries)]
    connection.execute(statements.DELETE_DONE, parameters)


def fail(connection: Connection, piece: Piece, refused: Iterable[Refusal]) -> None:
    """Log that documents of a piece failed, each with its reason; no worker claims them again."""
    for key, reason in refused:
        parameters = [piece.corpus.id, piece.source_id, [key], piece.tries, reason]
        connection.execute(statements.FAIL, parameters)


def postpone(connection: Connection, piece: Piece, keys: Sequence[str], tries: int = 0) -> None:
    """Log keys of a piece again, to be claimed after 2**tries seconds."""
    kind = "words" if piece.source is None else "change"
    parameters = [kind, piece.corpus.id, piece.source_id, list(keys), tries, 2**tries]
    connection.execute(statements.POSTPONE, parameters)


def failures(store: Store, last: int | None = None, retry: bool = False) -> list[Failure]:
    with transaction(store.engine) as connection:
        rows = connection.execute(store.corpus.statement(statements.FAILURES), [last]).fetchall()
        if retry:
            connection.execute(statements.RETRY_FAILURES, [store.corpus.id])
    return [Failure(*row) for row in reversed(rows)]


SPLIT_TRIES = 3
"""If workers claimed an entry this often and never finished it, it is split into its keys."""
FAIL_TRIES = 8
"""If workers claimed an entry this often and died before they finished it, it fails."""


def set_aside(engine: Engine, entry: LogEntry) -> bool:
    """Split an entry, or let it fail, if workers claimed it too often; return whether they did."""
    is_split = entry.keys is not None and len(entry.keys) > 1 and entry.tries > SPLIT_TRIES
    if entry.tries <= FAIL_TRIES and not is_split:
        return False
    reason = f"a worker ended {FAIL_TRIES} times while it was indexing this entry"
    with transaction(engine) as connection:
        if entry.tries <= FAIL_TRIES:
            connection.execute(statements.SPLIT, [entry.id])
            return True
        connection.execute(statements.FAIL_ENTRY, [reason, entry.id])
    fields = {"corpus_id": entry.corpus_id, "keys": entry.keys, "reason": reason}
    log.error("set aside an entry: %s", reason, extra=fields)
    return True


def status(store: Store) -> Status:
    (row,) = store.read(statements.STATUS, [store.corpus.name])
    return Status(*row)


def scopes(store: Store, scope: str | None) -> list[ScopeStatus]:
    rows = read_rows(store.engine, statements.SCOPES, [store.corpus.name, scope])
    return [ScopeStatus(*row) for row in rows]


def metrics(engine: Engine) -> list[Metric]:
    return [Metric(*row) for row in read_rows(engine, statements.METRICS)]


def workers(engine: Engine) -> list[WorkerState]:
    return [WorkerState(*row) for row in read_rows(engine, statements.WORKERS)]


def warn_leased(engine: Engine) -> list[str]:
    """Log a warning for each table whose changes other workers have claimed; return the names."""
    names = []
    for table, corpus, is_compared in read_rows(engine, statements.LEASED_TABLES):
        does = "compares it with its documents" if is_compared else "indexes its changes"
        extra = {"table": table, "corpus": corpus}
        log.warning(
            "table %s of corpus %s waits: another worker %s", table, corpus, does, extra=extra
        )
        names.append(table)
    return names


def warn_unindexed(store: Store) -> None:
    """Log a warning for each attached table because of which results may be wrong."""
    for table, *texts in read_rows(store.engine, statements.SEARCH_WARNINGS, [store.corpus.id]):
        log.warning("; ".join(texts), extra={"table": table, "corpus": store.corpus.name})
