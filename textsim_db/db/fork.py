"""Forked processes: a child opens connections of its own and leaves those of its parent alone.

Two processes that share a socket read each other's results. A child that closes a connection, or
only ends, would end the session of its parent.
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
    """Give the engine an empty pool in every child that is forked from now on.

    The pool is replaced as SQLAlchemy advises, with dispose(close=False).
    """
    _engines.add(engine)


def cut_after_fork(connection: psycopg.Connection[Any]) -> None:
    """Cut the connection in every child that is forked while it is open."""
    _connections.add(connection)


def _leave_connections_to_parent() -> None:
    """Replace the pools, and the child's copy of every socket by a socket without a peer.

    A connection that is in use then raises DatabaseUnavailable in the child. And the server notices
    when the parent dies, which it would not while a child holds the socket open.
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
