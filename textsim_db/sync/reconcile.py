"""Drift: finds the documents that differ from their tables, and reconciles them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing

from textsim_db.db.engine import autocommit, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.integrity import check_corpus
from textsim_db.results import ChangeReport, Drift
from textsim_db.sync import pending_log, read_source, statements, tracked_clusters
from textsim_db.sync.apply_changes import resolve_piece, write_piece
from textsim_db.sync.apply_row_changes import RowPiece
from textsim_db.sync.apply_word_ids import waiting_pieces
from textsim_db.sync.pieces import Piece
from textsim_db.sync.read_source import StoredSource
from textsim_db.sync.sweep import document_keys, sweep_table
from textsim_db.text.run_ahead import ahead
from textsim_db.write.detect_changes import ADDED, EXTENDED, REPLACED

_KINDS = {ADDED: "missing", REPLACED: "different", EXTENDED: "different"}


def drift(store: Store) -> Generator[Drift, None, None]:
    """Yield the documents of a corpus that differ from its tables; writes no document."""
    for source in _sources(store, is_gone=True):
        yield from (Drift(key, "surplus") for key in document_keys(store, source))
    for source in _usable(store):
        for piece in sweep_table(store, source):
            yield from _drift_of(piece)


def _usable(store: Store) -> list[StoredSource]:
    """Return the tables of a corpus; raises ConfigurationError if this role cannot index one of them."""
    existing = _sources(store, is_gone=False)
    for source in existing:
        if source.fault is not None:
            raise ConfigurationError(f"table {source.name} cannot be read: {source.fault}")
    return existing


def _sources(store: Store, is_gone: bool) -> list[StoredSource]:
    """Return the attached tables of a corpus that still exist, or the tables that were dropped."""
    stored = read_source.sources(store.engine)
    return [each for each in stored if (each.corpus_id, each.is_gone) == (store.corpus.id, is_gone)]


def _drift_of(piece: RowPiece) -> list[Drift]:
    comparison = piece.compare()
    rows, batch = comparison.changes.rows, comparison.changes.batch
    drifts = [
        Drift(key, _KINDS[outcome])
        for key, outcome in zip(batch.keys, comparison.outcomes.tolist(), strict=True)
        if outcome in _KINDS
    ]
    if not piece.skip_unchanged:  # then the keys are of documents, perhaps without a row
        drifts += [Drift(key, "surplus") for key in piece.keys if key not in rows]
    return drifts


def reconcile(store: Store, progress: Callable[[int], None] | None = None) -> ChangeReport:
    """Make a corpus equal to its tables, with changes that triggers missed, and mend its clusters."""
    report = ChangeReport(removed=read_source.release_dropped(store.engine, store.corpus.id))
    for source in _usable(store):
        report.include(_reconcile_source(store, source, progress))
    report.include(_write_all(waiting_pieces(store), None))
    report.mended = _mend_clusters(store)
    return report


def _mend_clusters(store: Store) -> int:
    """Compute clusters anew if any is wrong, and return the number of documents."""
    documents = 0
    if check_corpus.tracking_faults(store):
        for attempt in Attempts():
            with attempt, transaction(store.engine) as connection:
                statement = store.corpus.statement(statements.MEND_TRACKED)
                (documents,) = connection.execute(statement).fetchone() or (0,)
        tracked_clusters.update(store)
    return documents


def _reconcile_source(
    store: Store, source: StoredSource, progress: Callable[[int], None] | None
) -> ChangeReport:
    read_source.log_unseen_changes(store.engine, source)
    with autocommit(store.engine) as connection:
        comparisons = pending_log.comparisons(connection, source.id)
    report = _write_all(sweep_table(store, source), progress)
    # These entries asked for the comparison that is now done.
    with transaction(store.engine) as connection:
        pending_log.delete(connection, comparisons)
    return report


def _write_all(pieces: Iterator[Piece], progress: Callable[[int], None] | None) -> ChangeReport:
    report = ChangeReport()
    keys = 0
    with closing(ahead(pieces, resolve_piece)) as resolved_pieces:
        for resolved in resolved_pieces:
            for attempt in Attempts():
                again = resolve_piece(resolved.piece) if attempt.failures else resolved
                with attempt:
                    report.include(write_piece(again))
            keys += len(resolved.piece.keys)
            if progress is not None:
                progress(keys)
    return report
