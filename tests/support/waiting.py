"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.support.connections import Connection

CLIENT_WAITS_FOR_A_LOCK = b"""
SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND application_name = 'textsim-db'
"""


def wait_for(what: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def wait_until(connection: Connection, query: bytes, parameters: list[Any] | None = None) -> None:
    """Wait until a query returns a row."""
    end = time.monotonic() + 30
    while not connection.execute(query, parameters or []).fetchall():
        assert time.monotonic() < end
        time.sleep(0.005)
