"""The worker: indexes the changes that the log lists. Any number of workers run side by side.

    claim      lease entries of the log                                 pending_log
    cut        cut keys into pieces, and sweep tables to compare        cut_pieces
    resolve    read the rows and compute, in a thread, a piece ahead    apply_changes
    apply      one transaction, which also deletes the entries          apply_changes
    expire     remove documents that expired an hour ago                upkeep
    track      update the clusters of tracked corpora, in a thread      upkeep
    settle     vacuum the tables that grew, when the log is empty       write.vacuum_loads

Each change goes through the stages in this order, each stage once; updates of clusters do not hold up
the next piece. When the server fails or a corpus is rebuilt, the worker releases its entries and starts
again with a claim. An error while a piece is written drops all claimed pieces, because a later piece of
the same entries would delete them.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from itertools import repeat
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors as pg

from textsim_db.base.run_ahead import ahead
from textsim_db.db.cancellation import LentConnections
from textsim_db.db.engine import database_errors, is_lost, is_timeout, is_trouble, read_rows
from textsim_db.db.retries import MAX_TRIES, OUTDATED, Attempts, pause_seconds
from textsim_db.db.store import KnownWords, Store
from textsim_db.errors import DatabaseError, DatabaseUnavailable
from textsim_db.results import ChangeReport
from textsim_db.sync import worker_state
from textsim_db.sync.apply_changes import Resolved, apply_piece, resolve_piece
from textsim_db.sync.cut_pieces import ClaimAgain, ClaimedPieces, WorkerSources
from textsim_db.sync.pending_log import Claims, warn_leased
from textsim_db.sync.pieces import Piece
from textsim_db.sync.report_worker import Watch
from textsim_db.sync.step_faults import StepFaults
from textsim_db.sync.upkeep import ExpiredDocuments, OutdatedClusters, ReplacedCorpora
from textsim_db.sync.worker_state import (
    SOON_SECONDS,
    Progress,
    Stop,
    WorkerSettings,
    WorkReport,
)
from textsim_db.write.vacuum_loads import settle

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)

DRAINED_POLLS = 2
"""After this many empty polls in a row, every change that was claimed before them is written."""
KEPT_REFUSALS = 1000
"""The report of run() keeps only the last refused documents, because run() may take months."""
RECONNECT_SECONDS = (0.1, 30.0)
"""The first and the longest pause before another attempt to reach the server."""


class Worker:
    """Indexes the changes of attached tables; Database.worker() returns it.

    If a worker is killed, no change is lost: another worker takes its entries when their lease is
    over.
    """

    def __init__(
        self, engine: Engine, known_words: KnownWords, settings: WorkerSettings | None = None
    ) -> None:
        self._engine = engine
        self._known_words = known_words
        self._settings = settings or WorkerSettings()
        self._claims = Claims(engine, self._settings)
        self._faults = StepFaults(engine)
        self._added: Counter[Store] = Counter()
        # The caller of attach() waits for the rows of one table only.
        self._is_for_all = self._settings.only_source is None
        self._expired = ExpiredDocuments(engine, self._faults, self._settings.expire_after)
        self._outdated = OutdatedClusters(engine, known_words, self._faults)
        self._replaced = ReplacedCorpora(engine, self._faults)
        self._sources = WorkerSources(engine, known_words, self._settings.only_source, self._faults)
        self.left_to_others: list[str] = []
        """The tables whose changes other workers had claimed when run(until_idle=True) ended."""
        self._stop = Stop()
        self._connections = LentConnections()
        self._progress = Progress()
        self._watch = Watch(engine, self._connections, self._progress, self._faults, self._stop)

    def stop(self) -> None:
        """Let run() end after the current batch; may be called from a signal handler.

        If the batch takes more than 5 seconds, its statements are cancelled, and another worker does it
        again.
        """
        self._stop.set()

    def cancel(self) -> None:
        """Cancel the statements and release the batch, if the process must end before run() returns."""
        with suppress(psycopg.Error, DatabaseError):
            self._connections.cancel()
            self._claims.release(uncounted_tries=1)

    @property
    def unusable(self) -> dict[str, str]:
        """The tables and steps that the worker leaves, each with the reason."""
        return self._faults.by_name()

    def why_stuck(self) -> str | None:
        """Return why the worker should be started again; None if it makes progress.

        A worker that waits for its server is not stuck.
        """
        return worker_state.why_stuck(self._progress.report(), self._settings.poll)

    def why_not_ready(self) -> str | None:
        """Return why the worker indexes no changes at present; None if it does."""
        return worker_state.why_not_ready(self._progress.report(), self._settings.poll)

    def run(self, until_idle: bool = False) -> ChangeReport:
        """Index changes until stop() is called, and return a report of all of them.

        After its first claim, the worker survives a lost server and a server in trouble, for example
        with a full disk: it tries again until the server is back. If something is wrong with one table
        or one corpus, it goes on with the others, and tries that again later; see unusable. If somebody
        cancels one of its statements, it leaves the batch, which is tried again when the lease is over.

        Args:
            until_idle: end when no change is left to claim. Then the worker tries to reach a lost server
                for about a minute and a half only, and a cancelled statement raises an error.

        Raises:
            DatabaseUnavailable: there is no connection to the database.
            DatabaseError: a statement failed, and trying again would not help.
            SchemaError: another version of textsim-db has changed the schema.
        """
        with database_errors(), self._connections.of_worker(), self._watch.watching():
            try:
                return self._run(until_idle)
            except pg.ReadOnlySqlTransaction as error:
                if not read_rows(self._engine, "SELECT WHERE pg_catalog.pg_is_in_recovery()"):
                    raise
                raise DatabaseError(
                    "the server is a standby in recovery, which no worker can write; run the worker "
                    "on the primary, or promote this server"
                ) from error
            finally:
                with suppress(psycopg.Error):
                    # If the worker was stopped, the entries are not why the batch did not end.
                    self._claims.release(uncounted_tries=int(self._stop.is_set()))

    def _run(self, until_idle: bool) -> ChangeReport:
        total = ChangeReport()
        self._sources.expire()
        recovery = _Recovery(self._engine, self._claims, self._progress, self._stop, until_idle)
        for attempt in recovery:
            if self._stop.is_set():
                break
            with attempt:
                recovery.release_claims()
                self._work(total, until_idle, recovery)
        return total

    def _work(self, total: ChangeReport, until_idle: bool, recovery: _Recovery) -> None:
        """Resolve and apply pieces; while one piece is applied, the next one is resolved."""
        with (
            closing(self._pieces(until_idle)) as pieces,
            closing(ahead(pieces, self._resolve)) as resolved_pieces,
        ):
            self._apply_all(resolved_pieces, total, recovery)
            self._settle()
            if until_idle:
                self._finish(total)

    def _finish(self, total: ChangeReport) -> None:
        """Remove expired documents and update clusters until nothing is left that can be done."""
        while not self._stop.is_set():
            removed = self._expire(is_last=True)
            total.removed += removed
            if removed or self._update_clusters(is_last=True):
                continue
            if not self._faults.is_settling:
                break
            self._stop.wait(SOON_SECONDS)
        self._drop_replaced(is_last=True)
        self._faults.report_unsettled()
        if self._may_keep_up():
            self.left_to_others = warn_leased(self._engine)

    def _apply_all(
        self, pieces: Iterable[Resolved | None], total: ChangeReport, recovery: _Recovery
    ) -> None:
        """Apply pieces; while one is applied, clusters are updated in a thread."""
        empty_polls = 0
        with closing(ahead(repeat(None), lambda _: self._update_clusters())) as updates:
            for resolved, _ in zip(pieces, updates, strict=False):
                recovery.failures = 0
                self._drop_replaced()
                total.removed += self._expire()
                if resolved is not None:
                    empty_polls = 0
                    total.include(self._apply(resolved))
                    del total.refused[:-KEPT_REFUSALS]
                    continue
                empty_polls += 1
                if empty_polls == DRAINED_POLLS:
                    self._settle()

    def _pieces(self, until_idle: bool) -> Generator[Piece | None, None, None]:
        """Yield pieces, and None after each empty poll, so that ahead() passes on the pieces before it.

        Everything that was claimed is yielded before the worker stops.
        """
        claimed = ClaimedPieces(self._claims, self._sources)
        empty_polls = 0
        last_change = float("-inf")
        while not self._stop.is_set():
            if empty_polls >= DRAINED_POLLS:
                self._stop.wait(self._settings.pause(time.monotonic() - last_change))
            with self._progress.step("claims changes"):
                entries = claimed.claim(is_last=until_idle)
            self._progress.claimed_at = time.monotonic()
            yield from claimed.pieces_of(entries)
            if claimed.is_sweeping:
                yield from claimed.next_of_sweep()
            elif not entries:
                if self._claims.is_empty:
                    self._faults.clear_due(claimed.asked)
                if until_idle and not self._faults.is_settling:
                    return
                empty_polls += 1
                yield None
                continue
            empty_polls, last_change = 0, time.monotonic()

    def _apply(self, resolved: Resolved) -> ChangeReport:
        piece, name = resolved.piece, resolved.piece.corpus.name
        try:
            with self._progress.step("writes documents"):
                report = apply_piece(resolved)
        except Exception as error:
            self._faults.note(piece.subject, error)
            if isinstance(error, OUTDATED):
                self._sources.expire()
            raise ClaimAgain from error
        self._faults.clear(piece.subject)
        self._progress.wrote(report)
        self._claims.forget(piece.entries)
        self._added[piece.store] += report.added
        for key, reason in report.refused:
            fields = {"corpus": name, "key": key, "reason": reason}
            log.warning('corpus %s: set aside "%s": %s', name, key[:100], reason, extra=fields)
        if self._settings.report is not None and piece.keys:
            seconds = time.monotonic() - resolved.started_at
            table = None if piece.source is None else piece.source.name
            self._settings.report(WorkReport(name, table, report, seconds))
        return report

    def _resolve(self, piece: Piece | None) -> Resolved | None:
        if piece is None:
            return None
        with self._progress.step("reads changed rows"):
            return resolve_piece(piece)

    def _may_keep_up(self) -> bool:
        return self._is_for_all and not self._stop.is_set()

    def _drop_replaced(self, is_last: bool = False) -> None:
        if self._may_keep_up():
            with self._progress.step("drops replaced tables"):
                self._replaced.drop(is_last)

    def _expire(self, is_last: bool = False) -> int:
        if not (self._may_keep_up() and (is_last or self._expired.is_due)):
            return 0
        with self._progress.step("removes expired documents"):
            removed = self._expired.remove_some()
        self._progress.expired += removed
        return removed

    def _update_clusters(self, is_last: bool = False) -> int:
        if not (self._may_keep_up() and (is_last or self._outdated.is_due)):
            return 0
        with self._progress.step("updates clusters"):
            updated = self._outdated.update_some()
        self._progress.clustered += updated
        return updated

    def _settle(self) -> None:
        for store, added in self._added.items():
            settle(store, added)
        self._added.clear()


def _cause(error: Exception) -> BaseException | None:
    return error if isinstance(error, psycopg.Error) else error.__cause__


class _Recovery(Attempts):
    """Decides how a worker goes on after an error."""

    def __init__(
        self, engine: Engine, claims: Claims, progress: Progress, stop: Stop, until_idle: bool
    ) -> None:
        super().__init__()
        self.tries = MAX_TRIES if until_idle else math.inf
        self._server = engine
        self._claims = claims
        self._progress = progress
        self._stop = stop
        self._until_idle = until_idle
        self._uncounted_tries = 0
        """1 if the claimed entries did not cause the last error, so this try does not count for them."""

    def release_claims(self) -> None:
        self._claims.release(uncounted_tries=self._uncounted_tries)
        self._uncounted_tries = 0

    def repeats(self, error: Exception) -> bool:
        """Return whether to go on: other tables and corpora have no fault, or the server may recover."""
        if isinstance(error, ClaimAgain):
            self._uncounted_tries = 1
            return True
        if not isinstance(error, psycopg.Error | DatabaseError):
            return False
        cause = _cause(error)
        is_cancelled = isinstance(cause, pg.QueryCanceled)
        if is_cancelled and self._stop.is_set():
            return True
        is_passing = isinstance(error, DatabaseUnavailable) or (
            isinstance(cause, psycopg.Error) and is_trouble(cause)
        )
        if isinstance(cause, pg.QueryCanceled) and self._until_idle:
            is_cancelled = is_timeout(self._server, cause)
        if not (is_passing or is_cancelled) or self._is_first(cause):
            return False
        if is_cancelled:
            self._claims.forget()
        # A server that reports an error was not crashed by the entries, so this try does not count
        # against them. Out of memory is the exception: the entries may need more than there is.
        is_reported = isinstance(cause, psycopg.Error) and cause.sqlstate is not None
        if is_reported and not isinstance(cause, pg.OutOfMemory):
            self._uncounted_tries = 1
        return True

    def pause(self, error: Exception) -> None:
        """Wait until the worker is stopped, longer after each failure; faults have their own pauses."""
        if isinstance(error, ClaimAgain):
            self._stop.wait(SOON_SECONDS)
            self.failures = -1
        if isinstance(error, ClaimAgain) or self._stop.is_set():
            return
        seconds = pause_seconds(self.failures, RECONNECT_SECONDS, 0.5)
        reason = str(_cause(error) or error).partition("\n")[0]
        log.warning("trying again in %.1f s: %s", seconds, reason, extra={"seconds": seconds})
        self._progress.failed(reason)
        with self._progress.step("waits to try again"):
            self._stop.wait(seconds)

    def _is_first(self, cause: BaseException | None) -> bool:
        """Return whether nothing was claimed yet, so that the address or the rights may be wrong.

        A server that can be reached, but is read-only or full, is waited for.
        """
        if self._claims.has_claimed:
            return False
        is_trouble_only = (
            isinstance(cause, psycopg.Error) and is_trouble(cause) and not is_lost(cause)
        )
        return self._until_idle or not is_trouble_only
