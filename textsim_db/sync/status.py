"""Status of attached tables and workers: indexed, waiting and failed rows; figures for Prometheus."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from textsim_db.db.engine import autocommit
from textsim_db.results import Activity, Metric, ScopeStatus, Status, WorkerState
from textsim_db.sync import statements

if TYPE_CHECKING:
    from textsim_db.db.store import Store


log = logging.getLogger(__name__)


def status(store: Store) -> Status:
    """Return how many documents of a corpus are indexed, pending and set aside."""
    with autocommit(store.engine) as connection:
        row = connection.execute(statements.STATUS, [store.corpus.name]).fetchone()
    assert row is not None
    return Status(*row)


def scopes(store: Store) -> list[ScopeStatus]:
    """Return the scopes of a corpus, the largest first."""
    with autocommit(store.engine) as connection:
        rows = connection.execute(statements.SCOPES, [store.corpus.name]).fetchall()
    return [ScopeStatus(*row) for row in rows]


def activity(store: Store) -> Activity:
    """Return how far a corpus is behind its tables, and how much was written to it."""
    with autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(statements.ACTIVITY)).fetchone()
    assert row is not None
    return Activity(*row)


def metrics(engine: Engine) -> list[Metric]:
    """Return the figures of the view textsim.metrics, ordered by name."""
    with autocommit(engine) as connection:
        return [Metric(*row) for row in connection.execute(statements.METRICS)]


def workers(engine: Engine) -> list[WorkerState]:
    """Return the progress of the workers that have reported within the last minutes."""
    with autocommit(engine) as connection:
        rows = connection.execute(statements.WORKERS).fetchall()
    return [WorkerState(*row) for row in rows]


def warn_unindexed(store: Store) -> None:
    """Log a warning for each attached table that has not yet been compared with its documents."""
    with autocommit(store.engine) as connection:
        for (table,) in connection.execute(statements.UNCOMPARED_TABLES, [store.corpus.id]):
            log.warning(
                "table %s is not completely indexed in corpus %s: results may be missing; run a worker",
                *(table, store.corpus.name),
                extra={"table": table, "corpus": store.corpus.name},
            )
