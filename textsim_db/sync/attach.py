"""Attach a table and index what it holds, with a worker for this table alone."""

from __future__ import annotations

from collections.abc import Callable

from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.results import ChangeReport
from textsim_db.sync import sources
from textsim_db.sync.worker import Worker
from textsim_db.sync.worker_settings import WorkerSettings, WorkReport


def attach_and_index(
    store: Store,
    names: tuple[str, str, str],
    mode: str,
    progress: Callable[[int], None] | None = None,
) -> ChangeReport:
    """Attach a table, by its name and those of the columns; see Corpus.attach.

    If indexing is interrupted, another worker goes on with it.
    """
    number = sources.attach(store, *names, mode)
    report = None if progress is None else _Progress(progress).report
    worker = Worker(
        store.engine, store.dictionary, WorkerSettings(report=report, only_source=number)
    )
    changes = worker.run(until_idle=True)
    if worker.unusable:
        name, fault = next(iter(worker.unusable.items()))
        raise ConfigurationError(
            f"table {name} is attached, but what it holds is not indexed: {fault}; let a "
            "worker index it that can, or detach it"
        )
    return changes


class _Progress:
    """Counts the rows that a worker has finished, for a callback."""

    def __init__(self, callback: Callable[[int], None]) -> None:
        self._callback = callback
        self._rows = 0

    def report(self, work: WorkReport) -> None:
        """Add the rows of a transaction."""
        self._rows += work.changes.written + work.changes.unchanged + len(work.changes.refused)
        self._callback(self._rows)
