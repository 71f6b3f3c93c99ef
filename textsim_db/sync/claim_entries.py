"""Entries of the log claimed by one worker: leased, renewed and released.

Other workers claim an entry when its lease is over, so that a worker may die at any moment.
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
"""A claim ends with the entry that brings it to this number of keys."""
GIVE_UP_TRIES = 8
"""An entry that workers claimed this often and never finished, since they died, is set aside."""


class LogEntry(NamedTuple):
    """An entry of the log.

    source_id: None if documents wait for the ids of their words. keys: None if the whole table is to
    be compared. tries: how often it was claimed.
    """

    id: int
    corpus_id: int
    source_id: int | None
    keys: list[str] | None
    tries: int


class Claims:
    """The entries that one worker has in hand; other workers take them when the lease is over."""

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
            # The entries may be ours even if the connection is lost from here on.
            self._ids.update(row[0] for row in rows)
            self.has_claimed = True
        return [LogEntry(*row) for row in sorted(rows)]

    def renew(self, ids: list[int]) -> None:
        """Begin the lease of entries anew."""
        self._execute(statements.RENEW, [self._lease, ids])

    def let_go(self, ids: Iterable[int]) -> None:
        """Forget entries that are finished, or that stay claimed until the lease is over."""
        self._ids.difference_update(ids)

    def let_go_all(self) -> None:
        """Leave everything claimed until the lease is over."""
        self._ids.clear()

    def release_all(self, uncounted_tries: int = 0) -> None:
        """Let any worker claim the entries again at once."""
        if self._ids:
            self._execute(statements.RELEASE, [uncounted_tries, sorted(self._ids)])
            self._ids.clear()

    def abandon(self) -> None:
        """Release all entries while another thread still works; waits for locks a second at most."""
        with transaction(self._engine) as connection:
            wait_at_most(connection, "1s")
            connection.execute(statements.RELEASE, [1, sorted(self._ids.copy())])

    def leave_corpus(self, corpus_id: int, ids: list[int]) -> None:
        """Release entries to other workers, and claim no entry of their corpus again."""
        self._excluded_corpora.add(corpus_id)
        self._execute(statements.RELEASE, [1, ids])
        self.let_go(ids)

    def forgive(self, ids: list[int]) -> None:
        """Do not count this try: it failed for a reason that is not in the entries."""
        self._execute(statements.FORGIVE, [ids])

    def release_moved(self, ids: list[int]) -> None:
        """Delete the entries of a dropped corpus; if it was rebuilt, release them for the new one."""
        with transaction(self._engine) as connection:
            connection.execute(statements.DELETE_ORPHANS, [ids])
            connection.execute(statements.RENEW, [0, ids])

    def split(self, entry: LogEntry) -> None:
        """Give each key of an entry an entry of its own, to find the key that workers die of."""
        self._execute(statements.SPLIT, [entry.id])

    def give_up(self, entry: LogEntry) -> None:
        """Set aside an entry that workers died of."""
        reason = f"a worker ended {GIVE_UP_TRIES} times while it had this in hand"
        self._execute(statements.GIVE_UP, [reason, entry.id])
        fields = {"corpus_id": entry.corpus_id, "keys": entry.keys, "reason": reason}
        log.error("set aside: %s", reason, extra=fields)

    def _execute(self, statement: LiteralString, parameters: list[Any]) -> None:
        with transaction(self._engine) as connection:
            connection.execute(statement, parameters)
