"""Status of attached tables and workers: indexed, waiting and failed rows; figures for Prometheus."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from textsim_db.db.engine import read_rows
from textsim_db.results import Activity, Metric, ScopeStatus, Status, WorkerState
from textsim_db.sync import statements

if TYPE_CHECKING:
    from textsim_db.db.store import Store


log = logging.getLogger(__name__)


def status(store: Store) -> Status:
    """Return how many documents of a corpus are indexed, pending and set aside."""
    (row,) = read_rows(store.engine, statements.STATUS, [store.corpus.name])
    return Status(*row)


def scopes(store: Store) -> list[ScopeStatus]:
    """Return the scopes of a corpus, the largest first."""
    rows = read_rows(store.engine, statements.SCOPES, [store.corpus.name])
    return [ScopeStatus(*row) for row in rows]


def activity(store: Store) -> Activity:
    """Return how far a corpus is behind its tables, and how much was written to it."""
    (row,) = read_rows(store.engine, store.corpus.statement(statements.ACTIVITY))
    return Activity(*row)


def metrics(engine: Engine) -> list[Metric]:
    """Return the figures of the view textsim.metrics, ordered by name."""
    return [Metric(*row) for row in read_rows(engine, statements.METRICS)]


def workers(engine: Engine) -> list[WorkerState]:
    """Return the progress of the workers that have reported within the last minutes."""
    return [WorkerState(*row) for row in read_rows(engine, statements.WORKERS)]


def warn_unindexed(store: Store) -> None:
    """Log a warning for each attached table that has not yet been compared with its documents."""
    for (table,) in read_rows(store.engine, statements.UNCOMPARED_TABLES, [store.corpus.id]):
        log.warning(
            "table %s is not completely indexed in corpus %s: results may be missing; run a worker",
            table,
            store.corpus.name,
            extra={"table": table, "corpus": store.corpus.name},
        )
