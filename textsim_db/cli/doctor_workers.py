"""Checks of the running workers by textsim doctor: their progress, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, LiteralString

from textsim_db.cli.findings import Finding, fault, note, ok
from textsim_db.errors import shown

if TYPE_CHECKING:
    from textsim_db.database import Database
    from textsim_db.results import WorkerState

SILENT_SECONDS = 30.0
"""A worker reports every 5 seconds, so a longer silence means that it is dead or cannot write."""
STALLED_SECONDS = 60.0
"""A step of a worker takes less, except with the largest texts."""
_STATE: Final[LiteralString] = """
SELECT pg_catalog.pg_is_in_recovery(),
    pg_catalog.current_setting('transaction_read_only') = 'on',
    (SELECT max(extract(epoch FROM pg_catalog.clock_timestamp() - a.backend_start))::float8
        FROM pg_catalog.pg_stat_activity a
        WHERE a.datname = pg_catalog.current_database()
            AND a.application_name LIKE 'textsim-db worker%')
"""
_FULL = ("no space left on device", "disk full", "quota exceeded")


def find_progress(db: Database) -> Iterator[Finding]:
    """Yield what each worker does, and why none can write."""
    from textsim_db.db.engine import autocommit, database_errors

    with database_errors(), autocommit(db.engine) as connection:
        row = connection.execute(_STATE).fetchone()
    is_standby, is_read_only, connected_seconds = row or (False, False, None)
    if is_read_only and not is_standby:
        yield fault(
            "the database is read-only: workers wait until it can be written",
            "ALTER DATABASE ... SET default_transaction_read_only = off, or the same for the server "
            "or the role",
        )
    workers = db.workers()
    for worker in workers:
        yield _finding(worker, is_connected=is_standby or connected_seconds is not None)
    if not workers and not is_read_only and (connected_seconds or 0) > SILENT_SECONDS:
        yield fault(
            f"a worker has been connected for {connected_seconds:,.0f} s and has not reported its "
            "progress: it cannot write",
            "read its log; check that the server's disk has space",
        )


def _finding(worker: WorkerState, is_connected: bool) -> Finding:
    name = f"worker {shown(worker.host)}:{worker.process}"
    if worker.reported > SILENT_SECONDS and not is_connected:
        return note(
            f"{name} ended {worker.reported:,.0f} s ago without saying so; its changes are taken over"
        )
    if worker.reported > SILENT_SECONDS:
        return fault(
            f"{name} has not reported for {worker.reported:,.0f} s: it is dead, or cannot write",
            "read its log; check that the server's disk has space",
        )
    if worker.is_failing:
        return fault(
            f"{name} tries again: {shown(worker.error or '')}", _remedy_of(worker.error or "")
        )
    if worker.step_seconds > STALLED_SECONDS and worker.is_busy:
        return fault(
            f"{name} makes no progress: it {shown(worker.step)} for {worker.step_seconds:,.0f} s",
            "SELECT pid, wait_event_type, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE "
            "application_name LIKE 'textsim-db worker%' shows what it waits for",
        )
    return ok(f"{name} {shown(worker.step)}{_last(worker)}")


def _last(worker: WorkerState) -> str:
    claim = "" if worker.claimed is None else f"; last claim {worker.claimed:,.1f} s ago"
    write = "" if worker.wrote is None else f"; last write {worker.wrote:,.1f} s ago"
    return claim + write


def _remedy_of(error: str) -> str:
    if any(words in error.lower() for words in _FULL):
        return "free some space on the server's disk; the worker goes on by itself"
    if "read-only" in error:
        return "let the database be written; the worker goes on by itself"
    return "mend the cause; the worker goes on by itself"
