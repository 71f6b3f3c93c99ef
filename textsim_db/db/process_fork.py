"""Forked processes: a child opens its own connections, and never uses the connections of its parent.

Two processes that share a socket would read each other's results. And when a child closed a
connection, or only ended, it would end the session of its parent.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import psycopg
from sqlalchemy import Engine

_engines: WeakSet[Engine] = WeakSet()
_connections: WeakSet[psycopg.Connection[Any]] = WeakSet()


def renew_after_fork(engine: Engine) -> None:
    """Give the engine a new pool in every child process that is forked from now on.

    The pool is replaced as SQLAlchemy advises, with dispose(close=False).
    """
    _engines.add(engine)


def cut_after_fork(connection: psycopg.Connection[Any]) -> None:
    """Cut the connection in each child process, if the process forks while the connection is open."""
    _connections.add(connection)


def _leave_connections_to_parent() -> None:
    """In a child process, replace every pool, and every socket by a socket without a peer.

    Then a connection in use raises DatabaseUnavailable in the child. And when the parent dies, the
    server notices it, because no child holds the socket open.
    """
    for engine in list(_engines):
        engine.dispose(close=False)
    dead, peer = socket.socketpair()
    peer.close()
    with dead:
        for connection in list(_connections):
            with suppress(psycopg.Error):  # a closed connection has no socket
                os.dup2(dead.fileno(), connection.fileno(), inheritable=False)
    _connections.clear()


os.register_at_fork(after_in_child=_leave_connections_to_parent)
