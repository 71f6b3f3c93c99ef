"""Wait for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.connections import Connection

PATIENCE_SECONDS = 60.0
"""Seconds after which a test gives up; a busy machine may be slow."""
LOCKS = """(
    SELECT pg_locks.* FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE datname = current_database()
) AS locks"""
"""The locks of the test's own database: other tests use the same server, and equal OIDs."""
CLIENT_WAITS_FOR_A_LOCK = b"""
SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND application_name = 'textsim-db'
"""


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds; asking takes a fifth of the time, and leaves others a processor."""
    start = time.monotonic()
    end = start + seconds
    while not condition():
        now = time.monotonic()
        assert now < end, f"the condition did not hold within {seconds:.0f} s"
        time.sleep(min(1.0, max(0.005, 4 * (now - start))))
        start = time.monotonic()


def wait_until(connection: Connection, query: bytes, parameters: Sequence[Any] = ()) -> None:
    """Wait until a query returns a row."""
    wait_for(lambda: connection.execute(query, parameters).fetchall())
