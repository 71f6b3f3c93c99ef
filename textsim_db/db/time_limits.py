"""How long a connection waits: for a silent host, and for a lock."""

from __future__ import annotations

import os
from collections.abc import Container

from textsim_db.db import statements
from textsim_db.db.connections import ENCODING, Connection

# Times after which a silent host counts as lost, in seconds; tcp_user_timeout is in milliseconds. The
# defaults are minutes or hours.
_SILENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "tcp_user_timeout": "60000",
}


def connect_arguments(application_name: str, given: Container[str]) -> dict[str, str]:
    """Return the arguments of each connection, without those that the address gives."""
    arguments = {"fallback_application_name": application_name} | _SILENCE
    if "PGCONNECT_TIMEOUT" in os.environ:
        del arguments["connect_timeout"]
    arguments = {name: value for name, value in arguments.items() if name not in given}
    # This overrides the address, PGCLIENTENCODING and ALTER ROLE SET.
    return arguments | {"client_encoding": ENCODING.decode()}


def wait_at_most(connection: Connection, patience: str) -> tuple[str, float | None]:
    """Shorten how long a transaction waits for a lock; return the old limit, as text and seconds."""
    row = connection.execute(statements.WAIT_AT_MOST, {"most": patience}).fetchone()
    assert row is not None
    return row[0], row[1] or None
