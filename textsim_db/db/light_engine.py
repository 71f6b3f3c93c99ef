"""The pool of a command: what our statements need of an Engine, without the import of SQLAlchemy.

That import takes as long as all the rest of a command that reads a few rows.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import psycopg

from textsim_db.db import connections, engine as engines

if TYPE_CHECKING:
    from sqlalchemy import Engine

_NAME = r"[A-Za-z0-9_.~%-]"
_PORT = r"([0-9]{1,4}|[1-5][0-9]{4})"
_PLAIN = re.compile(
    rf"(postgresql|postgres|postgresql\+psycopg)(?P<rest>://({_NAME}+(:{_NAME}*)?@)?"
    rf"([A-Za-z0-9]+([.-][A-Za-z0-9]+)*(:{_PORT})?)?/{_NAME}*"
    rf"(\?((host=(/|%2F)({_NAME}|/)*|port={_PORT}|(?!host|port)[a-z_]+={_NAME}+)(&(?=.)|$))+)?)"
)
"""An address that libpq and SQLAlchemy read alike: one host, and no other special characters."""


class LightEngine:
    """Lends connections as an Engine does; any other attribute is that of an engine made for it."""

    def __init__(self, address: str, application_name: str, plain: str) -> None:
        self._address, self._application_name, self._plain = address, application_name, plain
        self._idle: list[_Lent] = []

    @cached_property
    def _full(self) -> Engine:
        return engines.open_engine(self._address, self._application_name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._full, name)

    def raw_connection(self) -> _Lent:
        """Return the connection that was used last, or a new one; raises the driver's errors."""
        try:
            return self._idle.pop()
        except IndexError:
            arguments: Any = engines.connect_arguments(self._application_name, self._plain)
            return _Lent(self, psycopg.connect(self._plain, **arguments))

    def dispose(self, close: bool = True) -> None:
        """Forget the idle connections, and close them, except in a forked process."""
        idle, self._idle = self._idle, []
        if close:
            for lent in idle:
                lent.driver_connection.close()
        if "_full" in vars(self):
            self._full.dispose(close)


class _Lent:
    """A connection that is lent: the part of SQLAlchemy's PoolProxiedConnection that we use."""

    def __init__(self, engine: LightEngine, connection: connections.Connection) -> None:
        self._engine = engine
        self.driver_connection = connection
        self.info: dict[str, Any] = {}
        self.is_valid = True

    def close(self) -> None:
        """Return the connection to the pool."""
        connection = self.driver_connection
        if self.is_valid and not connection.closed:
            if not connections.is_idle(connection):
                connection.rollback()
            self._engine._idle.append(self)

    def invalidate(self) -> None:
        """Close the connection, which does not return to the pool."""
        self.detach()
        self.driver_connection.close()

    def detach(self) -> None:
        """Take the connection out of the pool."""
        self.is_valid = False


def open_engine(address: str, application_name: str) -> Engine:
    """Return a light engine for an address, or an engine if SQLAlchemy has to read the address."""
    plain = _PLAIN.fullmatch(address)
    if plain is None or "%00" in address:
        return engines.open_engine(address, application_name)
    light = LightEngine(address, application_name, f"postgresql{plain['rest']}")
    return cast("Engine", light)
