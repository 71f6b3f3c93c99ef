"""Clients that run one step at a time, in an order that the test decides.

The idea is that of PostgreSQL's isolation tester. A step ends, or the server reports that the step waits
for another session; then the step ends after a step of that session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.waiting import PATIENCE_SECONDS
from textsim_db.db import connections as array_dumper
from textsim_db.db.addresses import plain_url, sqlalchemy_url

Isolation = psycopg.IsolationLevel

_WAITS = """
SELECT FROM pg_stat_activity
WHERE datname = current_database() AND application_name = %s
    AND cardinality(pg_blocking_pids(pid)) > 0
"""


class Client:
    """One session, whose steps run one after another in a thread."""

    def __init__(self, url: str, name: str, isolation: Isolation, options: str = "") -> None:
        query = {"application_name": name, "options": options}
        named = sqlalchemy_url(url).update_query_dict(query)
        self._name = name
        self.connection: Connection = psycopg.connect(plain_url(named))
        """In a transaction from the first statement on."""
        self.connection.isolation_level = isolation
        array_dumper.register(self.connection)
        self._monitor: Connection = psycopg.connect(url, autocommit=True)
        self._thread = ThreadPoolExecutor(1)
        self._step: Future[Any] | None = None
        self.db = ts.connect(plain_url(named))
        """The same database through the package, on other connections."""

    def close(self) -> None:
        # Closing the connection first lets the sessions go on that wait for this client.
        self.connection.close()
        self._thread.shutdown()
        self.db.close()
        self._monitor.close()

    def begin(self, step: Callable[[], Any]) -> bool:
        """Begin a step; return True if it ended, False if it waits for another session."""
        assert self._step is None
        self._step = self._thread.submit(step)
        return not self.is_waiting()

    def end(self) -> Any:
        """Wait for the step that was begun; return its result or raise its error."""
        assert self._step is not None
        step, self._step = self._step, None
        return step.result(PATIENCE_SECONDS)

    def is_waiting(self) -> bool:
        """Return whether the step that was begun waits for another session."""
        if self._step is None:
            return False
        end = time.monotonic() + PATIENCE_SECONDS
        while not self._step.done():
            if self._monitor.execute(_WAITS, [self._name]).fetchall():
                return True
            assert time.monotonic() < end, "neither done nor waiting"
            time.sleep(0.001)
        return False

    def has_begun(self) -> bool:
        """Return whether a step was begun, and `end` was not called."""
        return self._step is not None

    def does(self, step: Callable[[], Any]) -> Any:
        """Run a step that must end."""
        assert self.begin(step), "the step waits for another session"
        return self.end()

    def waits(self, step: Callable[[], Any]) -> None:
        """Run a step that must wait."""
        assert not self.begin(step), "the step ended; it should wait"

    def sql(self, statement: str, *parameters: object) -> Callable[[], Any]:
        """Return a step that runs a statement of SQL and returns its rows."""

        def run() -> Any:
            cursor = self.connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else None

        return run

    def commit(self) -> None:
        self.does(self.connection.commit)

    def rollback(self) -> None:
        self.does(self.connection.rollback)


Clients = Callable[..., Client]


@contextmanager
def open_clients(url: str) -> Iterator[Clients]:
    """Yield a function that makes clients, and close all clients at the end."""
    opened: list[Client] = []

    def make(
        name: str, isolation: Isolation = Isolation.READ_COMMITTED, options: str = ""
    ) -> Client:
        opened.append(Client(url, name, isolation, options))
        return opened[-1]

    try:
        yield make
    finally:
        for client in opened:
            client.connection.close()
        for client in opened:
            client.close()
