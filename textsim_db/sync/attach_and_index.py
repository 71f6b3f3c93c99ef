"""Attaches a table, and indexes its rows with a worker for this table only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import closing

import psycopg

from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, TextsimError
from textsim_db.results import ChangeReport
from textsim_db.sketch.choose_common_shingles import SAMPLE_DOCUMENTS, learns
from textsim_db.sync import read_source, sources
from textsim_db.sync.sources import SourceNames
from textsim_db.sync.worker import Worker
from textsim_db.sync.worker_state import WorkerSettings, WorkReport
from textsim_db.write.learn_from_sample import learn_from_load

log = logging.getLogger(__name__)

_TEXTS_AT_ONCE = 1000


def attach_and_index(
    store: Store,
    names: SourceNames,
    rules: sources.AttachRules,
    progress: Callable[[int], None] | None = None,
) -> ChangeReport:
    """Attach a table and index its rows; see Corpus.attach."""
    source_id = sources.attach(store, names, rules)
    if learns(store.corpus.config) and not store.corpus.config.is_unique:
        _learn(store, source_id)
    report = None if progress is None else _WrittenRows(progress).report
    worker = Worker(
        store.engine, store.dictionaries, WorkerSettings(report=report, only_source=source_id)
    )
    try:
        changes = worker.run(until_idle=True)
    except (KeyboardInterrupt, SystemError) as error:
        error.add_note("the table is attached; to index the other rows: textsim worker --once")
        raise
    if worker.unusable:
        name, fault = next(iter(worker.unusable.items()))
        raise ConfigurationError(
            f"table {name} is attached, but its rows are not indexed: {fault}; run a worker as a "
            "role that can read all rows, or detach the table"
        )
    if store.corpus.config.is_unique:
        added, without_words = sources.count_documents(store, source_id)
        return ChangeReport(added=added, without_words=without_words)
    return changes


def _learn(store: Store, source_id: int) -> None:
    """Let an empty corpus learn from the rows of a source; a corpus that cannot finds the same."""
    try:
        with closing(_rows(store, source_id)) as rows:
            learn_from_load(store, rows)
    except (psycopg.Error, TextsimError) as error:
        log.warning(
            "corpus %s has not learned its common shingles, which a rebuild learns: %s",
            store.corpus.name,
            error,
            extra={"corpus": store.corpus.name},
        )


def _rows(store: Store, source_id: int) -> Generator[tuple[str, str, str | None], None, None]:
    """Yield the keys, texts and scopes of the first rows of a source, in short transactions."""
    (source,) = read_source.sources(store.engine, id_=source_id)
    if source.fault is not None:
        return
    with read_source.reading(store.engine, source) as connection:
        page = read_source.read_page(connection, source, None, SAMPLE_DOCUMENTS)
    for start in range(0, len(page), _TEXTS_AT_ONCE):
        keys = [key for key, _ in page[start : start + _TEXTS_AT_ONCE]]
        with read_source.reading(store.engine, source) as connection:
            rows = read_source.read_rows(connection, source, keys)
        yield from ((key, row.text, row.scope) for key, row in rows.items() if row.fault is None)


class _WrittenRows:
    """Calls a callback with the number of rows that a worker has indexed so far."""

    def __init__(self, callback: Callable[[int], None]) -> None:
        self._callback = callback
        self._rows = 0

    def report(self, work: WorkReport) -> None:
        self._rows += work.changes.written + work.changes.unchanged + len(work.changes.refused)
        self._callback(self._rows)
