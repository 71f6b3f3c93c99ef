"""Databases whose connections a test counts, and statements that wait until a test lets them go on."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

import psycopg

from tests.support import waiting
from tests.support.connections import Connection, tables_of, value
from tests.support.waiting import PATIENCE_SECONDS
from textsim_db import aio

Result = TypeVar("Result")

NAME = "textsim-db aio"
"""The application name of the connections under test."""
STATES = """
SELECT coalesce(array_agg(state || ' ' || query ORDER BY pid), '{}') FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'textsim-db aio' AND state <> 'idle'
"""
BACKENDS = """
SELECT coalesce(array_agg(pid ORDER BY pid), '{}') FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'textsim-db aio'
"""
WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'textsim-db aio'
    AND wait_event_type = 'Lock'
"""


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a new event loop; assert that the loop reports no error to its end."""
    errors: list[dict[str, Any]] = []

    async def watched() -> Result:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        return await main

    result = asyncio.run(watched())
    gc.collect()
    assert errors == []
    return result


def connect(url: str, threads: int = 4) -> AbstractAsyncContextManager[aio.Database]:
    return aio.connect(url, NAME, threads=threads)


async def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, while other tasks run."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "the condition did not hold"
        await asyncio.sleep(0.005)


def busy(connection: Connection) -> list[str]:
    """Return the statements that run, and those that left a transaction open."""
    states: list[str] = value(connection, STATES)
    return states


def backends(connection: Connection) -> list[int]:
    """Return the process ids of the server's backends."""
    pids: list[int] = value(connection, BACKENDS)
    return pids


def wait_until_disconnected(connection: Connection) -> None:
    """Wait until no backend is left; a backend ends shortly after its client."""
    waiting.wait_for(lambda: backends(connection) == [])


async def blocked(connection: Connection, count: int = 1) -> None:
    """Wait until this number of statements wait for a lock."""
    await wait_for(lambda: value(connection, WAITS) == count)


@contextmanager
def locked(connection: Connection, corpus: str) -> Iterator[None]:
    """Hold a lock for which every statement of a corpus waits, on a connection of its own."""
    documents, bands = tables_of(connection, corpus)
    with psycopg.connect(connection.info.dsn) as holder:
        holder.execute(f"LOCK TABLE {documents}, {bands} IN ACCESS EXCLUSIVE MODE".encode())
        yield
        holder.rollback()
