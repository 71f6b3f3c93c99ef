"""Makes a corpus equal to its tables: attaches a table with its rows, finds drift, and reconciles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import closing

from textsim_db.base.run_ahead import ahead
from textsim_db.db.engine import autocommit, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.read import check_corpus
from textsim_db.results import ChangeReport, Drift
from textsim_db.sync import pending_log, read_source, sources, statements, upkeep
from textsim_db.sync.apply_changes import apply_piece, compare_rows, resolve_piece, waiting_pieces
from textsim_db.sync.cut_pieces import document_keys, sweep_table
from textsim_db.sync.pieces import Piece
from textsim_db.sync.read_source import StoredSource
from textsim_db.sync.sources import SourceNames
from textsim_db.sync.step_faults import StepFaults
from textsim_db.sync.worker import Worker
from textsim_db.sync.worker_state import WorkerSettings, WorkReport
from textsim_db.write.prepare_batches import ADDED, EXTENDED, REPLACED

log = logging.getLogger(__name__)


def attach_and_index(
    store: Store,
    names: SourceNames,
    rules: sources.AttachRules,
    progress: Callable[[int], None] | None = None,
) -> ChangeReport:
    """Attach a table and index its rows with a worker for this table only; see Corpus.attach."""
    source_id = sources.attach(store, names, rules)
    report = None if progress is None else _WrittenRows(progress).report
    worker = Worker(
        store.engine, store.known_words, WorkerSettings(report=report, only_source=source_id)
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


class _WrittenRows:
    """Calls a callback with the number of rows that a worker has indexed so far."""

    def __init__(self, callback: Callable[[int], None]) -> None:
        self._callback = callback
        self._rows = 0

    def report(self, work: WorkReport) -> None:
        self._rows += work.changes.written + work.changes.unchanged + len(work.changes.refused)
        self._callback(self._rows)


_KINDS = {ADDED: "missing", REPLACED: "different", EXTENDED: "different"}


def drift(store: Store) -> Generator[list[Drift], None, None]:
    """Yield lists of documents that differ from their tables; unusable tables are errors at the end."""
    faults = StepFaults(store.engine, quiet_tries=1)
    for source in read_source.sources(store.engine, store.corpus.id):
        with faults.attempt(source.following):
            if source.is_gone:
                yield [Drift(key, "surplus") for key in document_keys(store, source)]
                continue
            _check_usable(source)
            for piece in sweep_table(store, source):
                yield _drift_of(piece, source)
    faults.raise_any()


def _check_usable(source: StoredSource) -> None:
    if source.fault is not None:
        raise ConfigurationError(source.fault)


def _drift_of(piece: Piece, source: StoredSource) -> list[Drift]:
    rows, batch, outcomes, _ = compare_rows(piece, source)
    drifts = [
        Drift(key, _KINDS[outcome])
        for key, outcome in zip(batch.keys, outcomes.tolist(), strict=True)
        if outcome in _KINDS
    ]
    if not piece.skip_unchanged:  # then the keys are of documents, perhaps without a row
        drifts += [Drift(key, "surplus") for key in piece.keys if key not in rows]
    return drifts


def reconcile(store: Store, progress: Callable[[int], None] | None = None) -> ChangeReport:
    """Make a corpus equal to its tables, with changes that triggers missed, and mend its clusters.

    Raises ConfigurationError at the end if a table cannot be indexed. A note of each error says what
    was done before it.
    """
    report = ChangeReport()
    try:
        _reconcile(store, report, progress)
    except BaseException as error:
        if report != ChangeReport():
            error.add_note(f"done before the error, and it stays: {report.summary}")
        raise
    return report


def _reconcile(store: Store, report: ChangeReport, progress: Callable[[int], None] | None) -> None:
    faults = StepFaults(store.engine, quiet_tries=1)
    for source in read_source.sources(store.engine, store.corpus.id):
        with faults.attempt(source.following if source.is_gone else source.indexing):
            if source.is_gone:
                report.removed += read_source.release_dropped(store.engine, source)
                continue
            _check_usable(source)
            _reconcile_source(store, source, report, progress)
    _apply_all(waiting_pieces(store), report)
    report.mended = _mend_clusters(store)
    faults.raise_any()


def _mend_clusters(store: Store) -> int:
    """Compute clusters anew if any is wrong, and return the number of documents."""
    documents = 0
    if check_corpus.tracking_faults(store):
        for attempt in Attempts():
            with attempt, transaction(store.engine) as connection:
                statement = store.corpus.statement(statements.MEND_TRACKED)
                (documents,) = connection.execute(statement).fetchone() or (0,)
        upkeep.update(store)
    return documents


def _reconcile_source(
    store: Store,
    source: StoredSource,
    report: ChangeReport,
    progress: Callable[[int], None] | None,
) -> None:
    read_source.log_unseen_changes(store.engine, source)
    with autocommit(store.engine) as connection:
        comparisons = pending_log.comparisons(connection, source.id)
    _apply_all(sweep_table(store, source), report, progress)
    # These entries asked for the comparison that is now done.
    with transaction(store.engine) as connection:
        pending_log.delete(connection, comparisons)


def _apply_all(
    pieces: Iterator[Piece],
    report: ChangeReport,
    progress: Callable[[int], None] | None = None,
) -> None:
    keys = 0
    with closing(ahead(pieces, resolve_piece)) as resolved_pieces:
        for resolved in resolved_pieces:
            for attempt in Attempts():
                again = resolve_piece(resolved.piece) if attempt.failures else resolved
                with attempt:
                    report.include(apply_piece(again))
            keys += len(resolved.piece.keys)
            if progress is not None:
                progress(keys)
