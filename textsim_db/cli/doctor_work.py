"""Checks of the work by textsim doctor: workers, corpora and their objects, changes that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

from textsim_db.cli.connections import skip_unreadable
from textsim_db.cli.doctor import Finding, fault, note, ok
from textsim_db.cli.status_commands import as_text_note
from textsim_db.errors import DatabaseError, RecipeError, shown
from textsim_db.results.html import count

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.corpus import ManagedCorpus
    from textsim_db.corpus.database import Database
    from textsim_db.results import Problem, Status, WorkerState

LATE_SECONDS = 60.0
"""A change that has waited for longer is reported: workers index changes within seconds."""
SILENT_SECONDS = 30.0
"""A worker reports every 5 seconds, so a longer silence means that it is dead or cannot write."""
STALLED_SECONDS = 60.0
"""A step of a worker takes less, except with the largest texts."""
_SHOWN_PROBLEMS = 20
"""The most findings of one check; a dropped schema would print hundreds."""
_WORKERS: Final[LiteralString] = """
SELECT pg_catalog.pg_is_in_recovery(),
    pg_catalog.current_setting('transaction_read_only') = 'on',
    (SELECT max(extract(epoch FROM pg_catalog.clock_timestamp() - a.backend_start))::float8
        FROM pg_catalog.pg_stat_activity a
        WHERE a.datname = pg_catalog.current_database()
            AND a.application_name LIKE 'textsim-db worker%'),
    EXISTS (SELECT FROM textsim.worker w WHERE w.reported_at > now() - interval '30 s'),
    EXISTS (SELECT FROM textsim.pending p WHERE p.lease_until > now()),
    EXISTS (SELECT FROM textsim.tracked)
"""
_FULL_DISK = ("no space left on device", "disk full", "quota exceeded")


class Workers(NamedTuple):
    """The state of all workers, as the server sees it."""

    is_standby: bool
    """A standby learns of the workers of its primary from their reports, and changes wait for them."""
    is_read_only: bool
    connected: float | None
    """The seconds since the first of them connected, None if none is connected."""
    have_reported: bool
    """Whether a worker has reported within the last half minute."""
    have_lease: bool
    """Whether a worker has leased changes."""
    have_clusters: bool
    """Whether a corpus is tracked, so that workers update its clusters."""

    @property
    def exist(self) -> bool:
        """Whether a worker runs."""
        return self.connected is not None or self.have_reported or self.have_lease

    @property
    def remedy(self) -> str:
        """The command that starts a worker, and where."""
        return "on the primary: textsim worker" if self.is_standby else "textsim worker"


def read_workers(db: Database) -> Workers:
    """Return the state of all workers."""
    from textsim_db.db.engine import database_errors, read_rows

    with database_errors():
        (row,) = read_rows(db.engine, _WORKERS)
    return Workers(*row)


def find_workers(db: Database, workers: Workers) -> Iterator[Finding]:
    """Yield whether a worker runs, what each worker does, and why none can write."""
    if workers.exist:
        is_connected = workers.connected is not None or workers.have_reported
        yield ok("a worker is connected" if is_connected else "a worker has leased changes")
    elif any(source.mode == "queue" for source in db.sources()):
        yield note(
            "no worker is connected: changes of attached tables wait",
            f"{workers.remedy}, or from time to time: CALL textsim.index_pending('CORPUS')",
        )
    elif workers.have_clusters:
        yield note(
            "no worker is connected: tracked clusters are not updated",
            f"{workers.remedy}, or from time to time: CALL textsim.update_clusters()",
        )
    else:
        yield ok("no worker is connected, and no table needs a worker")
    yield from _progress_findings(db.workers(), workers)


def find_installation(engine: Engine) -> Iterator[Finding]:
    """Yield the objects of the schema that are missing or changed."""
    from textsim_db.read import check_catalog

    problems = check_catalog.check_installation(engine)
    yield from _problem_findings(problems)
    if not problems:
        yield ok("all functions, tables and indexes of the schema are as they were installed")


def _object_findings(engine: Engine, corpus: str) -> Iterator[Finding]:
    """Yield the settings, tables, indexes and functions of a corpus that are missing or changed."""
    from textsim_db.db import stored_corpus
    from textsim_db.read import check_catalog

    stored = stored_corpus.load_unchecked(engine, corpus)
    yield from _problem_findings(
        check_catalog.check_objects(engine, stored), f'corpus "{corpus}": '
    )


def _problem_findings(problems: list[Problem], begin: str = "") -> Iterator[Finding]:
    """Yield a fault for each problem, up to a number."""
    for problem in problems[:_SHOWN_PROBLEMS]:
        fact = f"{begin}{problem.kind} {problem.subject}: {problem.detail}"
        yield fault(shown(fact), problem.remedy)
    if len(problems) > _SHOWN_PROBLEMS:
        more = len(problems) - _SHOWN_PROBLEMS
        yield fault(f"{begin}{more} more faults of this kind", "textsim check lists them")


def find_behind(db: Database, workers: Workers) -> Iterator[Finding]:
    """Yield the state of each corpus and what keeps its attached tables from being indexed."""
    names = db.corpora()
    if not names:
        yield note("there is no corpus", "textsim corpus create NAME")
    tables = [source.corpus for source in db.sources()]
    for name in names:
        with skip_unreadable(db, name):
            problems = list(_object_findings(db.engine, name))
            yield from problems
            try:
                yield from _corpus_findings(db.manage(name), tables.count(name), workers)
            except RecipeError as error:
                if not problems:
                    remedy = f"textsim corpus drop {shown(name)}, then create and index it again"
                    yield fault(shown(str(error)), remedy)
            except DatabaseError:
                if not problems:  # a missing table has been named
                    raise


def _corpus_findings(corpus: ManagedCorpus, tables: int, workers: Workers) -> Iterator[Finding]:
    """Yield a fault if changes wait and no worker runs, because nothing would index them."""
    name = shown(corpus.name)
    status, activity = corpus.status(), corpus.activity()
    lag = activity.lag
    about = "about " if status.is_estimate else ""
    indexed = f"{'about ' if status.indexed_is_estimate else ''}{count(status.indexed, 'document')}"
    fact = f'corpus "{name}": {indexed}, {count(tables, "table")} attached'
    if status.pending:
        age = f", the oldest change {lag:,.0f} s old" if lag is not None else ""
        fact += f", {about}{status.pending:,} pending{age}"
    if status.as_text:
        fact += f", {about}{status.as_text:,} stored as text"
    if status.pending and not workers.exist:
        yield fault(
            f"{fact}, and no worker is connected",
            f"{workers.remedy}, or: CALL textsim.index_pending('{name}')",
        )
    elif status.problems and lag is not None and lag > LATE_SECONDS:
        yield fault(fact, "the findings below say what is not indexed, and why")
    elif lag is not None and lag > LATE_SECONDS:
        yield fault(fact, f"if the workers above make progress, start more: {workers.remedy}")
    else:
        yield ok(fact)
    if status.linkage is not None:
        yield _cluster_finding(name, status, activity.cluster_lag, workers)
    if status.as_text and not workers.exist:
        yield note(as_text_note(corpus.name, status))
    for each in status.notes:
        yield note(f'corpus "{name}": {shown(each)}')
    for problem in status.problems:
        yield fault(
            f'corpus "{name}": {shown(problem)}', f"once that is mended: textsim reconcile {name}"
        )
    if status.failed:
        yield fault(
            f'corpus "{name}": {count(status.failed, "document")} set aside with an error',
            f"textsim pending {name} shows why; textsim pending {name} --retry tries again",
        )


def _cluster_finding(name: str, status: Status, lag: float | None, workers: Workers) -> Finding:
    """Return how a corpus is tracked; a fault if nothing updates its clusters."""
    fact = (
        f'corpus "{name}" is tracked with linkage {status.linkage} and threshold '
        f"{status.tracked_threshold:g}"
    )
    if lag is None:
        return ok(f"{fact}; its clusters are up to date")
    fact += (
        f"; {count(status.outdated, 'document')} changed since its clusters were updated, the first "
        f"{lag:,.0f} s ago"
    )
    if not workers.exist:
        remedy = f"{workers.remedy}, or: CALL textsim.update_clusters('{name}')"
        return fault(f"{fact}, and no worker is connected", remedy)
    if lag > LATE_SECONDS:
        remedy = "the findings above say whether a worker makes progress; only one updates a corpus"
        return fault(fact, remedy)
    return ok(fact)


def _progress_findings(states: list[WorkerState], workers: Workers) -> Iterator[Finding]:
    """Yield what each worker does, and why none can write."""
    if workers.is_read_only and not workers.is_standby:
        yield fault(
            "the database is read-only: workers wait until it can be written",
            "ALTER DATABASE ... SET default_transaction_read_only = off, or the same for the server "
            "or the role",
        )
    for state in states:
        yield _worker_finding(state, workers.is_standby or workers.connected is not None)
    connected = workers.connected or 0
    if not states and not workers.is_read_only and connected > SILENT_SECONDS:
        yield fault(
            f"a worker has been connected for {connected:,.0f} s and has not reported its "
            "progress: it cannot write",
            "read its log; check that the server's disk has space",
        )


def _worker_finding(worker: WorkerState, is_connected: bool) -> Finding:
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
    if any(words in error.lower() for words in _FULL_DISK):
        return "free some space on the server's disk; the worker goes on by itself"
    if "read-only" in error:
        return "let the database be written; the worker goes on by itself"
    return "mend the cause; the worker goes on by itself"
