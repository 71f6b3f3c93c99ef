"""Checks of the work by textsim doctor: workers, corpora, changes of attached tables that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

from textsim_db.cli.connections import skip_unreadable
from textsim_db.cli.doctor_catalog import find_objects
from textsim_db.cli.findings import Finding, fault, note, ok
from textsim_db.cli.messages import count
from textsim_db.cli.status import as_text_note
from textsim_db.errors import DatabaseError, RecipeError, shown

if TYPE_CHECKING:
    from textsim_db.corpus import ManagedCorpus
    from textsim_db.database import Database

LATE_SECONDS = 60.0
"""A change that has waited for longer is reported: workers index changes within seconds."""
_WORKERS: Final[LiteralString] = """
SELECT (
    SELECT count(DISTINCT coalesce(a.client_addr::text, '') || a.application_name)
    FROM pg_catalog.pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name LIKE 'textsim-db worker%'
) + (SELECT count(*) FROM textsim.worker w WHERE w.reported_at > now() - interval '30 s'),
EXISTS (SELECT FROM textsim.pending p WHERE p.lease_until > now()), pg_catalog.pg_is_in_recovery()
"""


class Workers(NamedTuple):
    """Whether a worker is connected, and whether one has leased changes within the last minute.

    A standby learns of the workers of its primary from their reports, and changes wait for them.
    """

    are_connected: bool
    have_lease: bool
    is_standby: bool

    @property
    def exist(self) -> bool:
        """Whether a worker runs."""
        return self.are_connected or self.have_lease

    @property
    def remedy(self) -> str:
        """The command that starts a worker, and where."""
        return "on the primary: textsim worker" if self.is_standby else "textsim worker"


def read_workers(db: Database) -> Workers:
    """Return whether workers are connected or have leased changes."""
    from textsim_db.db.engine import autocommit, database_errors

    with database_errors(), autocommit(db.engine) as connection:
        row = connection.execute(_WORKERS).fetchone()
    return Workers(*map(bool, row or (0, False, False)))


def find_workers(db: Database, workers: Workers) -> Iterator[Finding]:
    """Yield whether a worker runs."""
    if workers.exist:
        connected = workers.are_connected
        yield ok("a worker is connected" if connected else "a worker has leased changes")
    elif any(source.mode == "queue" for source in db.sources()):
        yield note(
            "no worker is connected: changes of attached tables wait",
            f"{workers.remedy}, or from time to time: CALL textsim.index_pending('CORPUS')",
        )
    else:
        yield ok("no worker is connected, and no table needs a worker")


def find_behind(db: Database, workers: Workers) -> Iterator[Finding]:
    """Yield the state of each corpus and what keeps its attached tables from being indexed."""
    names = db.corpora()
    if not names:
        yield note("there is no corpus", "textsim corpus create NAME")
    tables = [source.corpus for source in db.sources()]
    for name in names:
        with skip_unreadable(db, name):
            problems = list(find_objects(db.engine, name))
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
    status, lag = corpus.status(), corpus.activity().lag
    about = "about " if status.is_estimate else ""
    fact = (
        f'corpus "{name}": {count(status.indexed, "document")}, {count(tables, "table")} attached'
    )
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
    elif lag is not None and lag > LATE_SECONDS:
        yield fault(fact, f"if the workers above make progress, start more: {workers.remedy}")
    else:
        yield ok(fact)
    if status.as_text and not workers.exist:
        yield note(as_text_note(corpus.name, status))
    for problem in status.problems:
        yield fault(
            f'corpus "{name}": {shown(problem)}', f"once that is mended: textsim reconcile {name}"
        )
    if status.failed:
        yield fault(
            f'corpus "{name}": {count(status.failed, "document")} set aside with an error',
            f"textsim pending {name} shows why; textsim pending {name} --retry tries again",
        )
