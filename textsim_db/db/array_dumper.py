"""Lets connections accept the arrays of binary_format, without importing NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper

if TYPE_CHECKING:
    from textsim_db.db.binary_format import Array, Moment, TextArray


class _ArrayDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Array | TextArray | Moment) -> bytes:
        return obj.dump()

    def get_key(self, obj: Array | TextArray | Moment, format: Any) -> Any:  # noqa: A002 - the name psycopg uses
        return (type(obj), obj.oid)

    def upgrade(self, obj: Array | TextArray | Moment, format: Any) -> Dumper:  # noqa: A002
        dumper = type(self)(type(obj))
        dumper.oid = obj.oid
        return dumper


def register(connection: psycopg.Connection[Any]) -> None:
    """Let a connection accept Array, TextArray and Moment as parameters; change nothing else."""
    for name in ("Array", "TextArray", "Moment"):
        connection.adapters.register_dumper(f"textsim_db.db.binary_format.{name}", _ArrayDumper)
