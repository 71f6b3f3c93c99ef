"""The worker: takes what is pending in batches, any number of them side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import (
    database_errors,
    detach_connection,
    is_pooled,
    is_trouble,
    transaction,
    wait_at_most,
)
from textsim_db.db.schema import check_installed
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, DatabaseError, DatabaseUnavailable, RecipeError
from textsim_db.results import ChangeReport
from textsim_db.settings import LEASE_SECONDS, POLL_SECONDS, check_callable, is_number
from textsim_db.sync import source_changes, source_rows
from textsim_db.sync.source_changes import Piece, Resolved
from textsim_db.sync.source_rows import StoredSource
from textsim_db.sync.stop_flag import SLICE_SECONDS, Stop
from textsim_db.text import languages
from textsim_db.text.streams import ahead
from textsim_db.write.bulk_load import settle

log = logging.getLogger(__name__)

CLAIM_KEYS = 10_000
FLUSH = 2
"""So many times nothing in a row, and whatever was found before has gone through the pipeline."""
SOON_SECONDS = 1.0
"""For so long after the last change a worker polls at the usual rate, however long its poll is."""
REFRESH_SECONDS = 1.0
SPLIT_TRIES = 3
GIVE_UP_TRIES = 8
"""Changes that were taken so often and never finished (each time the worker died) are set aside."""
KEPT_REFUSALS = 1000
"""What run() returns names the last of those set aside: it may have run for months."""
RECONNECT_SECONDS = (0.1, 30.0)
MAX_TRIES = 9
"""So often a worker that is to end when nothing is left looks for a lost database: a minute."""

_CLAIM = """
/* textsim-db: claim pending changes */
WITH ready AS (
    SELECT p.id, coalesce(pg_catalog.cardinality(p.keys), 1) AS size
    FROM textsim.pending p
    WHERE p.error IS NULL AND (p.lease_until IS NULL OR p.lease_until < pg_catalog.now())
        AND p.corpus_id <> ALL (%(foreign)s::integer[])
        AND (p.source_id = ANY (%(sources)s::integer[]) OR p.source_id IS NULL AND %(completes)s
            -- Not of a corpus that this role may not write; those of a dropped one are forgotten.
            AND coalesce(pg_catalog.has_table_privilege(
                pg_catalog.to_regclass('textsim.document_' || p.corpus_id), 'UPDATE'), true))
    ORDER BY p.id
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
), chosen AS (
    SELECT r.id, sum(r.size) OVER (ORDER BY r.id) - r.size AS before FROM ready r
)
UPDATE textsim.pending p
SET lease_until = pg_catalog.now() + pg_catalog.make_interval(secs => %(lease)s), tries = p.tries + 1
FROM chosen c
WHERE p.id = c.id AND c.before < %(most)s
RETURNING p.id,
    -- What was logged while the corpus was rebuilt belongs to where its table is now.
    coalesce((SELECT s.corpus_id FROM textsim.source s WHERE s.id = p.source_id), p.corpus_id),
    p.source_id, p.keys, p.tries
"""
_RENEW = """
UPDATE textsim.pending SET lease_until = pg_catalog.now() + pg_catalog.make_interval(secs => %s)
WHERE id = ANY (%s::bigint[])
"""
_SPARE = """
UPDATE textsim.pending SET tries = greatest(tries - 1, 0) WHERE id = ANY (%s::bigint[])
"""
_RELEASE = """
UPDATE textsim.pending SET lease_until = pg_catalog.now(), tries = greatest(tries - %s, 0)
WHERE id = ANY (%s::bigint[])
"""
_FORGET = """
DELETE FROM textsim.pending p
WHERE p.id = ANY (%s::bigint[])
    AND NOT EXISTS (SELECT FROM textsim.corpus c WHERE c.id = p.corpus_id)
    AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = p.source_id)
"""
_SPLIT = """
WITH gone AS (DELETE FROM textsim.pending p WHERE p.id = %s RETURNING p.*)
INSERT INTO textsim.pending (corpus_id, source_id, keys, created_at, tries)
SELECT g.corpus_id, g.source_id, ARRAY[k], g.created_at, g.tries
FROM gone g CROSS JOIN LATERAL (SELECT DISTINCT k FROM pg_catalog.unnest(g.keys) k) keys
"""
_GIVE_UP = """
UPDATE textsim.pending SET error = %s, lease_until = NULL WHERE id = %s
"""


class WorkReport(NamedTuple):
    """One transaction of a worker: in which corpus, for which table (None: words given ids)."""

    corpus: str
    table: str | None
    changes: ChangeReport
    seconds: float


@dataclass(frozen=True, slots=True)
class _Event:
    id: int
    corpus_id: int
    source_id: int | None
    keys: list[str] | None
    tries: int


@dataclass(slots=True)
class _Made:
    piece: Piece
    result: Resolved
    seconds: float


@dataclass(slots=True)
class _Sweep:
    source: StoredSource
    corpus: StoredCorpus
    events: list[int]
    pieces: Iterator[Piece] | None = None


@dataclass(slots=True)
class _Known:
    """What a worker knows of the attached tables, for a second."""

    usable: dict[int, StoredSource] = field(default_factory=dict)
    corpora: dict[int, StoredCorpus | None] = field(default_factory=dict)
    read_at: float = float("-inf")


class _Replaced(Exception):
    """A corpus was rebuilt, or a table altered, while a piece for it was being written."""


class Worker:
    """Indexes what is pending until it is stopped; made by Database.worker().

    Nothing is lost where one is killed: what it had in hand is taken by another, or by itself, when
    the lease is over.
    """

    def __init__(
        self,
        engine: Engine,
        dictionary: Dictionary,
        poll: float = POLL_SECONDS,
        lease: float = LEASE_SECONDS,
        listen: bool = False,
        only: int | None = None,
        report: Callable[[WorkReport], None] | None = None,
    ) -> None:
        """Take times in seconds; only is the number of the one source to work for."""
        check_callable(report, "report")
        for name, value in (("poll", poll), ("lease", lease)):
            if not is_number(value) or not 0 < value <= 86_400:
                raise ConfigurationError(
                    f"{name} is {value!r}; expected seconds above 0, at most 86400"
                )
        self._engine = engine
        self._dictionary = dictionary
        self._poll = float(poll)
        self._lease = float(lease)
        self._listen = listen
        self._only = only
        self._report = report
        self._known = _Known()
        self._complaints: dict[object, str] = {}
        self._problems: dict[int, set[str]] = {}
        self._foreign: set[int] = set()
        self._sweeps: list[_Sweep] = []
        self._added: dict[StoredCorpus, int] = {}
        self._in_hand: set[int] = set()
        self._connected = False
        self._stop = Stop()

    def stop(self) -> None:
        """Have run() end after the batch in hand; may be called from a signal handler."""
        self._stop.set()

    def abandon(self) -> None:
        """Let other workers take the batch in hand, for a process that ends before run() returns."""
        with suppress(psycopg.Error, DatabaseError), transaction(self._engine) as connection:
            wait_at_most(connection, "1s")
            connection.execute(_RELEASE, [1, sorted(self._in_hand.copy())])

    @property
    def unusable(self) -> dict[str, str]:
        """The tables that cannot be indexed by this role, and why."""
        return {str(name): reason for name, reason in self._complaints.items()}

    def run(self, until_idle: bool = False) -> ChangeReport:
        """Work until stop() is called, or nothing is left that could be taken.

        A server that is lost, or in trouble such as with a full disk, is tried again for ever, but
        for the first time; with until_idle for a minute or so. What somebody cancels in the database
        is tried again when the lease is over; with until_idle that is an error. Raises
        DatabaseUnavailable, DatabaseError, and SchemaError where the schema becomes one of another
        version.
        """
        with database_errors():
            try:
                return self._run(until_idle)
            finally:
                self._leave()

    def _run(self, until_idle: bool) -> ChangeReport:
        total = ChangeReport()
        tries = spared = 0
        while not self._stop.is_set():
            try:
                self._release(spared)
                spared = 0
                with closing(self._pipeline(until_idle)) as pipeline:
                    for made in pipeline:
                        tries = 0
                        if made is not None:
                            total.include(self._write(made))
                            del total.refused[:-KEPT_REFUSALS]
                return total
            except _Replaced:
                # Let all that is in the pipeline go, and take it again as things are now: no worker
                # ended over it.
                self._known, self._sweeps = _Known(), []
                spared = 1
                self._stop.wait(POLL_SECONDS)
            except (psycopg.Error, DatabaseError) as error:
                cause = error if isinstance(error, psycopg.Error) else error.__cause__
                trouble = isinstance(error, DatabaseUnavailable) or (
                    isinstance(cause, psycopg.Error) and is_trouble(cause)
                )
                cancelled = isinstance(cause, pg.QueryCanceled) and not until_idle
                if not (self._connected and (trouble or cancelled)) or (
                    until_idle and tries == MAX_TRIES
                ):
                    raise
                delay = min(RECONNECT_SECONDS[0] * 2**tries, RECONNECT_SECONDS[1])
                tries = min(tries + 1, MAX_TRIES)
                log.warning("trying again in %.1f s: %s", delay, cause, extra={"seconds": delay})
                self._known, self._sweeps = _Known(), []
                if cancelled:
                    self._in_hand.clear()
                # A server that says why was not brought down by what is in hand: that is not to
                # count as a worker that ended over it. Memory may be short for what is in hand.
                said = isinstance(cause, psycopg.Error) and cause.sqlstate is not None
                if said and not isinstance(cause, pg.OutOfMemory):
                    spared = 1
                self._stop.wait(delay)
        return total

    def _release(self, spared: int = 0) -> None:
        """Let what was in hand be taken again at once, by whomever; spared: tries not to count."""
        if self._in_hand:
            with transaction(self._engine) as connection:
                connection.execute(_RELEASE, [spared, sorted(self._in_hand)])
            self._in_hand.clear()

    def _leave(self) -> None:
        """Let others go on at once with what is not finished."""
        with suppress(psycopg.Error):
            self._release()
        self._sweeps = []

    def _pipeline(self, until_idle: bool) -> Generator[_Made | None, None, None]:
        """Yield pieces that are read and computed, while the one before is being written."""
        with (
            _Bell(self._engine, self._listen) as bell,
            closing(self._pieces(bell, until_idle)) as found,
            closing(ahead(found, self._resolved)) as resolved,
        ):
            idle = 0
            for made in resolved:
                yield made
                idle = 0 if made is not None else idle + 1
                if idle == FLUSH:
                    self._settle()
            self._settle()

    def _pieces(self, bell: _Bell, until_idle: bool) -> Generator[Piece | None, None, None]:
        """Yield what is to be done, None where there is nothing; ends where the worker does.

        All that was taken is yielded before that.
        """
        idle = 0
        active = float("-inf")
        while not self._stop.is_set():
            if idle >= FLUSH:
                # What comes next comes soon: notifications are not sent for each commit.
                soon = time.monotonic() - active < SOON_SECONDS
                bell.wait(min(self._poll, POLL_SECONDS) if soon else self._poll, self._stop)
            events = self._claim()
            yield from self._pieces_of(events)
            if self._sweeps:
                yield from self._some_of_sweep(self._sweeps[0])
            elif not events:
                if until_idle:
                    return
                idle += 1
                yield None
                continue
            idle, active = 0, time.monotonic()

    def _claim(self) -> list[_Event]:
        known = self._refreshed()
        parameters = {
            "sources": list(known.usable),
            "foreign": list(self._foreign),
            "completes": self._only is None,
            "most": CLAIM_KEYS,
            "lease": self._lease,
        }
        with transaction(self._engine) as connection:
            rows = connection.execute(_CLAIM, parameters, prepare=True).fetchall()
            # They may be ours even where the connection is lost from here on.
            self._in_hand.update(row[0] for row in rows)
            self._connected = True
        events = [_Event(*row) for row in sorted(rows)]
        sources = known.usable
        if any(e.source_id and sources[e.source_id].corpus_id != e.corpus_id for e in events):
            self._known = _Known()  # a corpus was rebuilt, and its tables moved
            usable = self._refreshed().usable
            events = [e for e in events if not e.source_id or e.source_id in usable]
        return events

    def _refreshed(self) -> _Known:
        if time.monotonic() - self._known.read_at < REFRESH_SECONDS:
            return self._known
        known = _Known(read_at=time.monotonic())
        # What another version has made of the schema is not this one's to write to.
        check_installed(self._engine)
        for source in source_rows.sources(self._engine):
            if self._only not in (None, source.id):
                continue
            if source.is_gone:
                self._release_dropped(source)
                continue
            fault = self._fault(source, known)
            self._complain(source.name, fault)
            if fault is None:
                known.usable[source.id] = source
                self._look_for_changes(source)
        self._known = known
        return known

    def _fault(self, source: StoredSource, known: _Known) -> str | None:
        """Return why a table cannot be indexed."""
        if source.fault is None:
            try:
                self._corpus(source.corpus_id, known)
            except RecipeError as error:
                return str(error)
        return source.fault

    def _release_dropped(self, source: StoredSource) -> None:
        try:
            source_rows.release_dropped(self._engine, source.corpus_id)
        except pg.InsufficientPrivilege as error:
            self._complain(source.name, f"{source.fault}: {error.diag.message_primary}")

    def _look_for_changes(self, source: StoredSource) -> None:
        """Have a table compared if triggers may have missed something, and log why they would."""
        if source.differs:
            log.info("table %s changed as triggers do not see", source.name)
            try:
                source_rows.compare_changed(self._engine, source)
            except psycopg.Error as error:
                if is_trouble(error):
                    raise
                self._complain(source.name, " ".join(str(error).split()))
            return
        for problem in set(source.problems) - self._problems.get(source.id, set()):
            log.warning("table %s: %s", source.name, problem, extra={"table": source.name})
        self._problems[source.id] = set(source.problems)

    def _complain(self, name: str, fault: str | None) -> None:
        if fault is None:
            self._complaints.pop(name, None)
        elif self._complaints.get(name) != fault:
            self._complaints[name] = fault
            log.error("table %s is not indexed: %s", name, fault, extra={"table": name})

    def _corpus(self, number: int, known: _Known | None = None) -> StoredCorpus | None:
        known = known or self._known
        if number not in known.corpora:
            corpus = stored_corpus.load_number(self._engine, number)
            if corpus is not None and corpus.config.language is not None:
                try:
                    languages.check_installed()
                except ConfigurationError as error:
                    raise RecipeError(f'corpus "{corpus.name}": {error}') from error
            known.corpora[number] = corpus
        return known.corpora[number]

    def _pieces_of(self, events: list[_Event]) -> Iterator[Piece]:
        groups: dict[tuple[int, int | None], list[_Event]] = {}
        for event in events:
            if event.tries > GIVE_UP_TRIES:
                self._give_up(event)
            elif event.tries > SPLIT_TRIES and event.keys is not None and len(event.keys) > 1:
                with transaction(self._engine) as connection:
                    connection.execute(_SPLIT, [event.id])
            elif event.keys is None:
                self._plan_sweep(event)
            else:
                groups.setdefault((event.corpus_id, event.source_id), []).append(event)
        for (corpus_id, source_id), some in groups.items():
            ids = [event.id for event in some]
            try:
                corpus = self._corpus(corpus_id)
            except RecipeError as error:
                # Another worker may be able to: it is not to be taken here again.
                self._complain(f"of corpus {corpus_id}", str(error))
                self._foreign.add(corpus_id)
                with transaction(self._engine) as connection:
                    connection.execute(_RELEASE, [1, ids])
                self._in_hand.difference_update(ids)
                continue
            if corpus is None:
                # Dropped, or rebuilt: then they are to be taken for the one in its place.
                with transaction(self._engine) as connection:
                    connection.execute(_FORGET, [ids])
                    connection.execute(_RENEW, [0, ids])
                self._known.read_at = float("-inf")
                continue
            source = None if source_id is None else self._known.usable[source_id]
            keys = [key for event in some for key in event.keys or ()]
            tries = max(event.tries for event in some)
            try:
                yield from source_changes.pieces(self._store(corpus), source, keys, ids, tries)
            except psycopg.Error as error:
                self._unusable(corpus, source, ids, error)

    def _unusable(
        self,
        corpus: StoredCorpus,
        source: StoredSource | None,
        events: list[int],
        error: psycopg.Error,
    ) -> None:
        """Take note of a table that cannot be read; its changes come again after the lease."""
        if is_trouble(error):
            raise error
        if isinstance(error, source_changes.STALE) and not self._is_current(corpus):
            raise _Replaced from error
        if isinstance(error, source_changes.IN_THE_WAY):
            # It is only locked: that is not to count as a worker that ended over it.
            with transaction(self._engine) as connection:
                connection.execute(_SPARE, [events])
        name = f"of corpus {corpus.name}" if source is None else source.name
        self._complain(name, " ".join(str(error).split()))
        self._in_hand.difference_update(events)

    def _store(self, corpus: StoredCorpus) -> Store:
        return Store(self._engine, self._dictionary, corpus)

    def _is_current(self, corpus: StoredCorpus) -> bool:
        """Say whether a corpus still has the number that this worker knows, or a rebuild replaced it."""
        stored = stored_corpus.load_number(self._engine, corpus.id)
        return stored is not None and stored.name == corpus.name

    def _give_up(self, event: _Event) -> None:
        reason = f"a worker ended {GIVE_UP_TRIES} times while it had this in hand"
        with transaction(self._engine) as connection:
            connection.execute(_GIVE_UP, [reason, event.id])
        fields = {"corpus_id": event.corpus_id, "keys": event.keys, "reason": reason}
        log.error("set aside: %s", reason, extra=fields)

    def _plan_sweep(self, event: _Event) -> None:
        assert event.source_id is not None
        source = self._known.usable[event.source_id]
        for sweep in self._sweeps:
            if sweep.source.id == source.id and sweep.pieces is None:
                sweep.events.append(event.id)
                return
        corpus = self._corpus(event.corpus_id)
        if corpus is not None:
            self._sweeps.append(_Sweep(source, corpus, [event.id]))

    def _some_of_sweep(self, sweep: _Sweep) -> Iterator[Piece]:
        """Yield one piece of the sweep under way, so that other changes come in between."""
        with transaction(self._engine) as connection:
            events = [event for sweep in self._sweeps for event in sweep.events]
            connection.execute(_RENEW, [self._lease, events])
        if sweep.pieces is None:
            names = {"table": sweep.source.name, "corpus": sweep.corpus.name}
            log.info("comparing table %s with corpus %s", *names.values(), extra=names)
            sweep.pieces = source_changes.sweep(self._store(sweep.corpus), sweep.source)
        try:
            piece = next(sweep.pieces, None)
        except psycopg.Error as error:
            self._sweeps.remove(sweep)
            self._unusable(sweep.corpus, sweep.source, sweep.events, error)
            return
        if piece is None:
            self._sweeps.remove(sweep)
            piece = Piece(self._store(sweep.corpus), sweep.source, [], tuple(sweep.events))
        yield piece

    def _resolved(self, piece: Piece | None) -> _Made | None:
        if piece is None:
            return None
        start = time.monotonic()
        return _Made(piece, source_changes.resolve(piece), start)

    def _write(self, made: _Made) -> ChangeReport:
        piece = made.piece
        try:
            report = source_changes.write(piece, made.result)
        except source_changes.STALE as error:
            raise _Replaced from error
        self._in_hand.difference_update(piece.events)
        self._added[piece.corpus] = self._added.get(piece.corpus, 0) + report.added
        for key, reason in report.refused:
            log.warning(
                'corpus %s: set aside "%s": %s',
                *(piece.corpus.name, key[:100], reason),
                extra={"corpus": piece.corpus.name, "key": key, "reason": reason},
            )
        if self._report is not None and piece.keys:
            table = None if piece.source is None else piece.source.name
            seconds = time.monotonic() - made.seconds
            self._report(WorkReport(piece.corpus.name, table, report, seconds))
        return report

    def _settle(self) -> None:
        for corpus, added in self._added.items():
            settle(self._store(corpus), added)
        self._added = {}


class _Bell:
    """What an idle worker waits for: the time between polls, or a notification before that."""

    def __init__(self, engine: Engine, listen: bool) -> None:
        self._engine = engine
        self._connection: psycopg.Connection[object] | None = None
        self._listen = listen

    def __enter__(self) -> _Bell:
        if self._listen and is_pooled(self._engine):
            log.warning("notifications do not come through a pooler such as pgbouncer: polling")
        elif self._listen:
            self._connection = detach_connection(self._engine)
            self._connection.execute("LISTEN textsim")
        return self

    def __exit__(self, *error: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def wait(self, seconds: float, stop: Stop) -> None:
        """Wait for so long, or until something happens."""
        if self._connection is None:
            stop.wait(seconds)
            return
        end = time.monotonic() + seconds
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            # In slices, so that stop() is noticed.
            seconds = min(left, SLICE_SECONDS)
            if any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1)):
                return
