"""Turns entries of the log into pieces: cuts keys, and sweeps tables that must be compared."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import psycopg

from textsim_db.db.retries import OUTDATED
from textsim_db.db.store import Store
from textsim_db.errors import TextsimError
from textsim_db.sync.apply_row_changes import RowPiece
from textsim_db.sync.apply_word_ids import WordPiece, words_of
from textsim_db.sync.entries_that_crash_workers import set_aside
from textsim_db.sync.faults import Subject
from textsim_db.sync.leases import Claims, LogEntry
from textsim_db.sync.pieces import Piece
from textsim_db.sync.read_source import StoredSource
from textsim_db.sync.sweep import sweep_table
from textsim_db.sync.worker_sources import WorkerSources

log = logging.getLogger(__name__)


class ClaimAgain(Exception):
    """A table or a corpus has a fault, was altered or rebuilt: its other pieces must not be written."""


@dataclass(slots=True)
class _Sweep:
    """The sweep of a table that entries ask to compare."""

    store: Store
    source: StoredSource
    entries: list[int]
    """The entries that ask for the comparison."""
    pieces: Iterator[RowPiece] | None = None
    """None until the sweep begins; until then further entries may join it."""


class ClaimedPieces:
    """Claims entries and yields their pieces."""

    def __init__(self, claims: Claims, sources: WorkerSources) -> None:
        self._claims = claims
        self._sources = sources
        self._sweeps: list[_Sweep] = []
        self.asked: list[str] = []
        """The names of the tables that the last claim was for."""

    @property
    def is_sweeping(self) -> bool:
        """Whether a sweep is running or planned."""
        return bool(self._sweeps)

    def claim(self, is_last: bool) -> list[LogEntry]:
        """Claim entries of the tables that can be indexed; is_last: end if there is none."""
        self._sources.refresh()
        usable = self._sources.by_id
        self.asked = [source.name for source in usable.values()]
        entries = self._claims.claim(usable, self._sources.wordless, is_last)
        if any(e.source_id and usable[e.source_id].corpus_id != e.corpus_id for e in entries):
            # A corpus was rebuilt, and its tables moved to the new corpus.
            self._sources.expire()
            self._sources.refresh()
            usable = self._sources.by_id
            entries = [e for e in entries if not e.source_id or e.source_id in usable]
        return entries

    def pieces_of(self, entries: list[LogEntry]) -> Iterator[Piece]:
        """Yield the pieces of entries with keys; plan sweeps for entries without keys."""
        groups: dict[tuple[int, int | None], list[LogEntry]] = {}
        for entry in entries:
            if set_aside(self._claims.engine, entry):
                continue
            if entry.keys is None:
                self._plan_sweep(entry)
            else:
                groups.setdefault((entry.corpus_id, entry.source_id), []).append(entry)
        for group in groups.values():
            yield from self._pieces_of_group(group)

    def next_of_sweep(self) -> Iterator[Piece]:
        """Yield one piece of the current sweep; between pieces the worker indexes other changes."""
        sweep = self._sweeps[0]
        self._claims.renew([id_ for each in self._sweeps for id_ in each.entries])
        if sweep.pieces is None:
            names = {"table": sweep.source.name, "corpus": sweep.store.corpus.name}
            log.info("comparing table %s with corpus %s", *names.values(), extra=names)
            sweep.pieces = sweep_table(sweep.store, sweep.source)
        try:
            piece = next(sweep.pieces, None)
        except psycopg.Error as error:
            self._sweeps.remove(sweep)
            self._leave(sweep.source.indexing, sweep.entries, error)
            return
        if piece is None:
            self._sweeps.remove(sweep)
            # It only deletes the entries.
            piece = RowPiece(
                store=sweep.store, source=sweep.source, keys=[], entries=tuple(sweep.entries)
            )
        yield piece

    def _plan_sweep(self, entry: LogEntry) -> None:
        assert entry.source_id is not None
        source = self._sources.by_id.get(entry.source_id)
        if source is None:  # another entry of it has just failed
            self._claims.release([entry.id], uncounted_tries=1)
            return
        for sweep in self._sweeps:
            if sweep.source.id == source.id and sweep.pieces is None:
                sweep.entries.append(entry.id)
                return
        store = self._sources.store(entry.corpus_id)
        if store is not None:
            self._sweeps.append(_Sweep(store, source, [entry.id]))

    def _pieces_of_group(self, entries: list[LogEntry]) -> Iterator[Piece]:
        """Yield the pieces of entries that have one corpus and one source."""
        ids = [entry.id for entry in entries]
        corpus_id, source_id = entries[0].corpus_id, entries[0].source_id
        source = None if source_id is None else self._sources.by_id.get(source_id)
        subject = words_of(corpus_id) if source is None else source.indexing
        try:
            store = self._sources.store(corpus_id)
        except (psycopg.Error, TextsimError) as error:
            self._leave(subject, ids, error)
            return
        if store is None:
            self._claims.delete_orphans(ids)
            self._claims.release(ids)
            self._sources.expire()
            return
        keys = sorted({key for entry in entries for key in entry.keys or ()})
        piece: Piece = WordPiece(store=store, keys=keys)
        if source_id is not None:
            if source is None:  # another entry of it has just failed
                self._claims.release(ids, uncounted_tries=1)
                return
            piece = RowPiece(store=store, keys=keys, source=source)
        tries = max(entry.tries for entry in entries)
        try:
            yield from replace(piece, entries=tuple(ids), tries=tries).cut()
        except psycopg.Error as error:
            self._leave(subject, ids, error)

    def _leave(self, subject: Subject, ids: list[int], error: Exception) -> None:
        """Release the entries of a table or a corpus with a fault; they are claimed after a pause."""
        self._sources.faults.note(subject, error)
        self._claims.release(ids, uncounted_tries=1)
        if isinstance(error, OUTDATED):
            self._sources.expire()
