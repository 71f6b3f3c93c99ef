"""Workers that run in a thread beside the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection


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
        thread.join()


def leased(connection: Connection) -> int:
    """Return how many rows of the log a worker has in hand."""
    query = "SELECT count(*) FROM textsim.pending WHERE lease_until > clock_timestamp()"
    (count,) = connection.execute(query).fetchall()[0]
    return int(count)
