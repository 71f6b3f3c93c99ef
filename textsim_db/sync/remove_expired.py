"""Removes the expired documents of all corpora, a few at a time, between the other work of a worker."""

from __future__ import annotations

import time
from contextlib import suppress

from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.engine import transaction
from textsim_db.sync.faults import Faults, step_of_corpus
from textsim_db.write import statements
from textsim_db.write.expire_documents import expire_some

EXPIRY_SECONDS = 1.0
"""The seconds between two looks for expired documents."""


class ExpiredDocuments:
    """The documents whose time is over, in the corpora that this role may write."""

    def __init__(self, engine: Engine, faults: Faults) -> None:
        self._engine = engine
        self._faults = faults
        self._due_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether to look now: the last look was a second ago, or found documents."""
        return time.monotonic() >= self._due_at

    def remove_some(self) -> int:
        """Remove up to a thousand documents of each corpus, and return how many were removed."""
        with transaction(self._engine) as connection:
            corpora = connection.execute(statements.EXPIRING_CORPORA).fetchall()
        removed = 0
        for id_, name in corpora:
            step = step_of_corpus("expired documents", id_, name, "are not removed")
            if self._faults.is_due(step):
                # Another version may have created the corpus.
                with self._faults.attempt(step), suppress(pg.FeatureNotSupported):
                    removed += expire_some(self._engine, name)
        self._due_at = time.monotonic() + (0 if removed else EXPIRY_SECONDS)
        return removed
