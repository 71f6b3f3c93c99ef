"""Workers that run in a thread while a test goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@contextmanager
def running_worker(db: ts.Database, **options: Any) -> Iterator[ts.Worker]:
    """Run a worker in a thread until the block ends."""
    worker = db.worker(**options)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the worker did not stop"


def wait_for_postponed(connection: Connection) -> None:
    """Wait until no change is postponed: a change that meets another worker is postponed by a second.

    Changes that a worker has leased for a minute are not waited for.
    """
    wait_until(
        connection,
        b"SELECT WHERE NOT EXISTS (SELECT FROM textsim.pending "
        b"WHERE lease_until - clock_timestamp() BETWEEN '0' AND '2 s')",
    )
