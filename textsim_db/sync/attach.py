"""Attaches a table, and indexes its rows with a worker for this table only."""

from __future__ import annotations

from collections.abc import Callable

from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.results import ChangeReport
from textsim_db.sync import sources, statements
from textsim_db.sync.worker import Worker
from textsim_db.sync.worker_settings import WorkerSettings, WorkReport


def attach_and_index(
    store: Store,
    names: tuple[str, str, str],
    rules: sources.Rules,
    progress: Callable[[int], None] | None = None,
) -> ChangeReport:
    """Attach a table and index its rows; names: table, key column, text column. See Corpus.attach.

    If indexing is interrupted, another worker continues it. In a unique corpus the rows are indexed
    when the table is attached; the worker only gives word ids.
    """
    number = sources.attach(store, *names, rules)
    report = None if progress is None else _Progress(progress).report
    worker = Worker(
        store.engine, store.dictionary, WorkerSettings(report=report, only_source=number)
    )
    changes = worker.run(until_idle=True)
    if worker.unusable:
        name, fault = next(iter(worker.unusable.items()))
        raise ConfigurationError(
            f"table {name} is attached, but its rows are not indexed: {fault}; run a worker as a "
            "role that can read all rows, or detach the table"
        )
    if store.corpus.config.unique:
        return ChangeReport(added=_count_documents(store, number))
    return changes


def _count_documents(store: Store, number: int) -> int:
    with autocommit(store.engine) as connection:
        statement = store.corpus.statement(statements.DOCUMENTS_OF_SOURCE)
        row = connection.execute(statement, [number]).fetchone()
    assert row is not None
    return int(row[0])


class _Progress:
    """Calls a callback with the number of rows that a worker has indexed so far."""

    def __init__(self, callback: Callable[[int], None]) -> None:
        self._callback = callback
        self._rows = 0

    def report(self, work: WorkReport) -> None:
        """Add the rows of one transaction."""
        self._rows += work.changes.written + work.changes.unchanged + len(work.changes.refused)
        self._callback(self._rows)
