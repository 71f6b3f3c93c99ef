"""Claims entries of the log for the tables that a worker can index, and cuts them into pieces.

The tables are read again every second. An entry without keys asks for a sweep: the keys of all rows of a
table, and of the documents that have no row any more. A sweep reads pages in short transactions.
Triggers log the changes that are made meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from textsim_db.base.run_ahead import BATCH_DOCUMENTS
from textsim_db.db import stored_corpus
from textsim_db.db.engine import Connection, read_rows, transaction
from textsim_db.db.retries import OUTDATED, Attempts
from textsim_db.db.schema import check_installed
from textsim_db.db.statements import CORPUS_IDS
from textsim_db.db.store import KnownWords, Store
from textsim_db.errors import ConfigurationError, RecipeError, TextsimError
from textsim_db.settings.corpus_settings import learns_common
from textsim_db.sketch.learned_shingles import SAMPLE_DOCUMENTS
from textsim_db.sync import read_source, statements
from textsim_db.sync.pending_log import Claims, LogEntry, set_aside
from textsim_db.sync.pieces import Piece, cut_keys, next_page, words_of
from textsim_db.sync.read_source import StoredSource
from textsim_db.sync.step_faults import StepFaults, Subject
from textsim_db.text import languages
from textsim_db.write.learn_from_sample import learn_from_load

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)


REFRESH_SECONDS = 1.0


class WorkerSources:
    """The usable tables by the id of their source, and their corpora; at most a second old."""

    def __init__(
        self,
        engine: Engine,
        known_words: KnownWords,
        only_source: int | None,
        faults: StepFaults,
    ) -> None:
        self._engine = engine
        self._known_words = known_words
        self._only_source = only_source
        self._stores: dict[int, Store | None] = {}
        self._problems: dict[int, set[str]] = {}
        """The changes that the triggers of each table may miss, as they were last logged."""
        self._due_at = float("-inf")
        self._usable: list[StoredSource] = []
        self._corpora: list[int] = []
        self.faults = faults

    @property
    def by_id(self) -> dict[int, StoredSource]:
        """The tables to index at present, without those whose last error was a moment ago."""
        return {each.id: each for each in self._usable if self.faults.is_due(each.indexing)}

    @property
    def wordless(self) -> list[int]:
        """The corpora for whose words the last error was a moment ago."""
        return [id_ for id_ in self._corpora if not self.faults.is_due(words_of(id_))]

    def expire(self) -> None:
        """Make the next refresh() read everything again."""
        self._due_at = float("-inf")

    def refresh(self) -> None:
        """Read the tables again once a second, and log comparisons if triggers missed changes.

        Some milliseconds a table; many tables are read less often, in a fifth of the time at most.
        """
        start = time.monotonic()
        if start < self._due_at:
            return
        # If another version of textsim-db has changed the schema, this version must not write to it.
        check_installed(self._engine)
        self._stores = {}
        self._usable = []
        sources = read_source.sources(self._engine, id_=self._only_source)
        self._corpora = [id_ for (id_,) in read_rows(self._engine, CORPUS_IDS)]
        self.faults.keep(self._corpora)
        for source in sources:
            if not self.faults.is_due(source.following):
                continue
            with self.faults.attempt(source.following):
                self._follow(source)
        end = time.monotonic()
        self._due_at = end + max(REFRESH_SECONDS, 4 * (end - start))

    def _follow(self, source: StoredSource) -> None:
        """Use a table, if this role may, and log what its triggers missed; detach a dropped table."""
        if source.is_gone:
            read_source.release_dropped(self._engine, source)
        elif self._is_usable(source):
            self._usable.append(source)
            if source.differs:
                log.info(
                    "table %s changed in a way that triggers do not see; comparing it", source.name
                )
                read_source.log_unseen_changes(self._engine, source)
                return
            for problem in set(source.problems) - self._problems.get(source.id, set()):
                log.warning("table %s: %s", source.name, problem, extra={"table": source.name})
            self._problems[source.id] = set(source.problems)

    def store(self, corpus_id: int) -> Store | None:
        if corpus_id not in self._stores:
            corpus = stored_corpus.load_by_id(self._engine, corpus_id)
            if corpus is not None and corpus.config.language is not None:
                try:
                    languages.check_installed()
                except ConfigurationError as error:
                    raise RecipeError(f'corpus "{corpus.name}": {error}') from error
            self._stores[corpus_id] = (
                None if corpus is None else Store(self._engine, self._known_words, corpus)
            )
        return self._stores[corpus_id]

    def _is_usable(self, source: StoredSource) -> bool:
        fault = source.fault
        if fault is None:
            try:
                self.store(source.corpus_id)
            except RecipeError as error:
                fault = str(error)
        self.faults.refuse(source.indexing, source.id, fault)
        return fault is None


class ClaimAgain(Exception):
    """A table or a corpus has a fault, was altered or rebuilt: its other pieces must not be written."""


@dataclass(slots=True)
class _Sweep:
    store: Store
    source: StoredSource
    entries: list[int]
    """The entries that ask for the comparison."""
    pieces: Iterator[Piece] | None = None
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
        try:
            if sweep.pieces is None:
                if _learn(sweep.store, sweep.source):
                    self._sweeps.remove(sweep)
                    self._claims.release(sweep.entries, uncounted_tries=1)
                    self._sources.expire()
                    return
                names = {"table": sweep.source.name, "corpus": sweep.store.corpus.name}
                log.info("comparing table %s with corpus %s", *names.values(), extra=names)
                sweep.pieces = sweep_table(sweep.store, sweep.source)
            piece = next(sweep.pieces, None)
        except Exception as error:
            self._sweeps.remove(sweep)
            self._leave(sweep.source.indexing, sweep.entries, error)
            return
        if piece is None:
            self._sweeps.remove(sweep)
            # It only deletes the entries.
            piece = Piece(sweep.store, [], sweep.source, tuple(sweep.entries))
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
        except Exception as error:
            self._leave(subject, ids, error)
            return
        if store is None:
            self._claims.delete_orphans(ids)
            self._claims.release(ids)
            self._sources.expire()
            return
        keys = sorted({key for entry in entries for key in entry.keys or ()})
        if source_id is not None and source is None:  # another entry of it has just failed
            self._claims.release(ids, uncounted_tries=1)
            return
        tries = max(entry.tries for entry in entries)
        try:
            yield from Piece(store, keys, source, tuple(ids), tries).cut()
        except Exception as error:
            self._leave(subject, ids, error)

    def _leave(self, subject: Subject, ids: list[int], error: Exception) -> None:
        """Release the entries of a table or a corpus with a fault; they are claimed after a pause."""
        self._sources.faults.note(subject, error)
        self._claims.release(ids, uncounted_tries=1)
        if isinstance(error, OUTDATED):
            self._sources.expire()


def sweep_table(store: Store, source: StoredSource) -> Iterator[Piece]:
    """Yield pieces of all keys of a table, and then of the documents that have no row any more."""
    after: str | None = None
    while sizes := _row_page(store, source, after):
        for keys in cut_keys(list(sizes), sizes, source):
            yield Piece(store, keys, source, skip_unchanged=True)
        after = list(sizes)[-1]
    after = None
    while True:
        keys, absent = _document_page(store, source, after)
        if not keys:
            return
        if absent:
            yield Piece(store, absent, source)
        after = keys[-1]


def _learn(store: Store, source: StoredSource) -> bool:
    """Let an empty corpus learn its common shingles from a table; return whether another took its place.

    A corpus that cannot learn finds the same.
    """
    if not learns_common(store.corpus.config) or store.corpus.config.is_unique:
        return False
    try:
        with closing(read_source.first_rows(store.engine, source, SAMPLE_DOCUMENTS)) as rows:
            return learn_from_load(store, rows)[0] is not None
    except (psycopg.Error, TextsimError) as error:
        log.warning(
            "corpus %s has not learned its common shingles, which a rebuild learns: %s",
            store.corpus.name,
            error,
            extra={"corpus": store.corpus.name},
        )
        return False


def document_keys(store: Store, source: StoredSource) -> Iterator[str]:
    after: str | None = None
    while True:
        with transaction(store.engine) as connection:
            keys = _own_keys(connection, store, source, after)
        if not keys:
            return
        yield from keys
        after = keys[-1]


def _row_page(store: Store, source: StoredSource, after: str | None) -> dict[str, int]:
    for attempt in Attempts():
        with attempt, read_source.reading(store.engine, source) as connection:
            page = read_source.read_page(connection, source, after, BATCH_DOCUMENTS)
    return dict(page)


def _document_page(
    store: Store, source: StoredSource, after: str | None
) -> tuple[list[str], list[str]]:
    """Return the keys of the next documents of a source, and the keys that its table lacks."""
    for attempt in Attempts():
        with attempt, read_source.reading(store.engine, source) as connection:
            keys = _own_keys(connection, store, source, after)
            absent = read_source.absent_keys(connection, source, keys)
    return keys, absent


def _own_keys(
    connection: Connection, store: Store, source: StoredSource, after: str | None
) -> list[str]:
    statement = store.corpus.statement(statements.DOCUMENT_KEYS)
    parameters = {"source": source.id, **next_page(after)}
    return [key for (key,) in connection.execute(statement, parameters)]
