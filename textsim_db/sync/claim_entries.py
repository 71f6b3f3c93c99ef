"""Claims entries of the log for one worker: leases, renews and releases them.

When the lease of an entry is over, other workers may claim it. So a worker may die at any moment.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, LiteralString, NamedTuple

from sqlalchemy import Engine

from textsim_db.db.engine import transaction, wait_at_most
from textsim_db.sync import statements
from textsim_db.sync.worker_settings import WorkerSettings

log = logging.getLogger(__name__)

CLAIM_KEYS = 10_000
"""A claim takes entries until they have this number of keys together."""
GIVE_UP_TRIES = 8
"""If workers claimed an entry this often and died before they finished it, it is set aside."""


class LogEntry(NamedTuple):
    """An entry of the log.

    source_id: None if documents wait for the ids of their words. keys: None if the whole table must be
    compared. tries: how often the entry was claimed.
    """

    id: int
    corpus_id: int
    source_id: int | None
    keys: list[str] | None
    tries: int


class Claims:
    """The entries that one worker has claimed; other workers take them when the lease is over."""

    def __init__(self, engine: Engine, settings: WorkerSettings) -> None:
        self._engine = engine
        self._lease = float(settings.lease)
        self._with_waiting_documents = settings.only_source is None
        self._ids: set[int] = set()
        self._excluded_corpora: set[int] = set()
        self.has_claimed = False

    def claim(self, sources: Iterable[int]) -> list[LogEntry]:
        """Claim the next entries of sources, and of documents that wait for word ids."""
        parameters = {
            "sources": list(sources),
            "excluded": list(self._excluded_corpora),
            "waiting": self._with_waiting_documents,
            "most": CLAIM_KEYS,
            "lease": self._lease,
        }
        with transaction(self._engine) as connection:
            rows = connection.execute(statements.CLAIM, parameters, prepare=True).fetchall()
            # Noted before the COMMIT: if the connection is lost now, the entries may still be ours.
            self._ids.update(row[0] for row in rows)
            self.has_claimed = True
        return [LogEntry(*row) for row in sorted(rows)]

    def renew(self, ids: list[int]) -> None:
        """Extend the lease of entries."""
        self._execute(statements.RENEW, [self._lease, ids])

    def let_go(self, ids: Iterable[int]) -> None:
        """Forget entries that are finished, or that must stay claimed until the lease is over."""
        self._ids.difference_update(ids)

    def let_go_all(self) -> None:
        """Forget all entries, which stay claimed until the lease is over."""
        self._ids.clear()

    def release_all(self, uncounted_tries: int = 0) -> None:
        """Release all entries, so that any worker can claim them at once."""
        if self._ids:
            self._execute(statements.RELEASE, [uncounted_tries, sorted(self._ids)])
            self._ids.clear()

    def abandon(self) -> None:
        """Release all entries, even while another thread works; waits for locks at most a second."""
        with transaction(self._engine) as connection:
            wait_at_most(connection, "1s")
            connection.execute(statements.RELEASE, [1, sorted(self._ids.copy())])

    def leave_corpus(self, corpus_id: int, ids: list[int]) -> None:
        """Release entries to other workers, and never claim an entry of their corpus again."""
        self._excluded_corpora.add(corpus_id)
        self._execute(statements.RELEASE, [1, ids])
        self.let_go(ids)

    def forgive(self, ids: list[int]) -> None:
        """Do not count this try, because the entries did not cause the failure."""
        self._execute(statements.FORGIVE, [ids])

    def release_moved(self, ids: list[int]) -> None:
        """Delete the entries if the corpus was dropped; if it was rebuilt, release them."""
        with transaction(self._engine) as connection:
            connection.execute(statements.DELETE_ORPHANS, [ids])
            connection.execute(statements.RENEW, [0, ids])

    def split(self, entry: LogEntry) -> None:
        """Replace an entry by one entry for each key, to find the key that crashes workers."""
        self._execute(statements.SPLIT, [entry.id])

    def give_up(self, entry: LogEntry) -> None:
        """Set aside an entry that crashed too many workers."""
        reason = f"a worker ended {GIVE_UP_TRIES} times while it was indexing this entry"
        self._execute(statements.GIVE_UP, [reason, entry.id])
        fields = {"corpus_id": entry.corpus_id, "keys": entry.keys, "reason": reason}
        log.error("set aside an entry: %s", reason, extra=fields)

    def _execute(self, statement: LiteralString, parameters: list[Any]) -> None:
        with transaction(self._engine) as connection:
            connection.execute(statement, parameters)
