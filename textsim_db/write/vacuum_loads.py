"""Vacuums during and after a large load, minutes before the server's autovacuum would.

Until VACUUM marks the new pages as visible to all, a look-up reads a page of the table for each band
row. The first change of a page after a checkpoint writes the whole page to the server's log, if the
pages have checksums. So VACUUM follows the batches of a bulk load: soon after a batch its pages still
count as changed. Without that, the log of a load of 1,000,000 documents with passages takes 10 GB
instead of 4.

Without statistics the planner guesses: for a list of candidate pairs it compares all documents
with each other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Final, LiteralString

from textsim_db.db.engine import autocommit, database_errors
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.write import statements

log = logging.getLogger(__name__)

LARGE_LOAD = 10_000
"""VACUUM follows a load of at least this many documents, if VACUUM_SHARE is reached too."""
VACUUM_SHARE = 0.2
"""The share of the corpus that a load must have for a VACUUM."""
ANALYZE_DOCUMENTS = 100
"""ANALYZE follows a load of at least this many documents into a corpus without statistics."""
DOCUMENTS_BETWEEN = 20_000
"""The documents that a bulk load stores from the beginning of one VACUUM to the next, or more."""

TABLES: Final[tuple[LiteralString, ...]] = ("{document}", "{band}", "{passage}")
"""The tables of a load."""


def _statements(
    corpus: StoredCorpus, statement: LiteralString, tables: Sequence[LiteralString] = TABLES
) -> list[str]:
    """Return a statement for each of the tables that a corpus has."""
    own = [each for each in tables if each != "{passage}" or corpus.config.passages is not None]
    return [corpus.statement(statement + each) for each in own]


class VacuumDuringLoad:
    """Vacuums the tables of a corpus in another thread while a bulk load fills them.

    At the end of the context no VACUUM runs. Otherwise the statement that builds the index would wait
    for VACUUM, and fail if the role has a short lock_timeout.
    """

    def __init__(self, store: Store, executor: Executor) -> None:
        self._store = store
        self._executor = executor
        self._vacuumed = 0
        """The documents that were stored when the last VACUUM began."""
        self._last: Future[None] | None = None
        self._is_over = False

    def __enter__(self) -> VacuumDuringLoad:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over = True
        if self._last is not None:
            wait([self._last])

    def after(self, documents: int) -> None:
        """Begin a VACUUM if one is due at this number of documents, and the last one has ended."""
        is_busy = self._last is not None and not self._last.done()
        if documents >= self._vacuumed + DOCUMENTS_BETWEEN and not is_busy:
            self._vacuumed = documents
            self._last = self._executor.submit(copy_context().run, self._vacuum)

    def _vacuum(self) -> None:
        """Mark the new pages of the tables; without success, a later VACUUM does it."""
        with (
            suppress(DatabaseError),
            database_errors(),
            autocommit(self._store.engine) as connection,
        ):
            for statement in _statements(self._store.corpus, statements.VACUUM_DURING_LOAD):
                if not self._is_over:
                    connection.execute(statement)


def settle(
    store: Store,
    added: int,
    tables: Sequence[LiteralString] = TABLES,
) -> None:
    """Vacuum or analyze the tables of a corpus, if the load was large; autovacuum repeats what fails."""
    if added < ANALYZE_DOCUMENTS:
        return
    corpus = store.corpus
    with suppress(DatabaseError), database_errors(), autocommit(store.engine) as connection:
        row = connection.execute(corpus.statement(statements.ESTIMATED_DOCUMENTS)).fetchone()
        estimated = -1 if row is None else row[0]
        if added < LARGE_LOAD:
            if estimated < 0 and tables[-1] == TABLES[-1]:
                for statement in _statements(corpus, statements.ANALYZE_AFTER_LOAD):
                    connection.execute(statement)
        elif estimated < added / VACUUM_SHARE:
            log.info("vacuuming corpus %s after a load", corpus.name, extra={"corpus": corpus.name})
            for statement in _statements(corpus, statements.VACUUM_AFTER_LOAD, tables):
                connection.execute(statement)
