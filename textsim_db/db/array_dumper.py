"""How connections learn to take binary_format.Array, without the NumPy that it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper

if TYPE_CHECKING:
    from textsim_db.db.binary_format import Array


class _ArrayDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.dump()

    def get_key(self, obj: Array, format: Any) -> Any:  # noqa: A002 - the name psycopg uses
        return (type(obj), obj.oid)

    def upgrade(self, obj: Array, format: Any) -> Dumper:  # noqa: A002
        dumper = type(self)(type(obj))
        dumper.oid = obj.oid
        return dumper


def register(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection to take Array parameters; nothing else about it changes."""
    connection.adapters.register_dumper("textsim_db.db.binary_format.Array", _ArrayDumper)
