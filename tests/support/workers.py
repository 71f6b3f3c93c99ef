"""Workers that run in a thread beside the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@contextmanager
def working(db: ts.Database, **options: Any) -> Iterator[None]:
    """Have a worker run in a thread."""
    worker = db.worker(**options)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the worker did not stop"


def leased(connection: Connection) -> int:
    """Return how many rows of the log a worker has in hand."""
    query = "SELECT count(*) FROM textsim.pending WHERE lease_until > clock_timestamp()"
    (count,) = connection.execute(query).fetchall()[0]
    return int(count)


def wait_for_postponed(connection: Connection) -> None:
    """Wait until nothing is postponed: a change in the way of another worker waits for a second.

    What a worker has in hand stays leased for a minute, and is not waited for.
    """
    wait_until(
        connection,
        b"SELECT WHERE NOT EXISTS (SELECT FROM textsim.pending "
        b"WHERE lease_until - clock_timestamp() BETWEEN '0' AND '2 s')",
    )
