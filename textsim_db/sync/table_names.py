"""Resolves tables and columns that users name as str, SQLAlchemy objects, or mapped classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import psycopg
import sqlalchemy
from psycopg import errors as pg, sql
from sqlalchemy import Table

from textsim_db.db.engine import Connection
from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.sync import statements

if TYPE_CHECKING:
    from sqlalchemy.orm import InstrumentedAttribute

TableName: TypeAlias = str | Table | type[Any]
ColumnName: TypeAlias = "str | sqlalchemy.Column[Any] | InstrumentedAttribute[Any]"


class SourceNames(NamedTuple):
    """The names of a table and of its columns."""

    table: str
    keys: list[str]
    text: str
    optional: tuple[str | None, ...] = (None, None, None)
    """The columns of scopes, of times and of expiries; None if the corpus needs no such column."""


def names_of(
    table: TableName,
    keys: Sequence[ColumnName],
    text: ColumnName | None,
    *optional: ColumnName | None,
) -> SourceNames:
    """Return the names of a table and of its columns; raises ConfigurationError.

    optional: the columns of scopes, of times and of expiries.
    """
    if not keys or text is None:
        raise ConfigurationError("the key column or the text column is missing")
    if isinstance(keys, str):
        raise ConfigurationError(f"key_columns is {keys!r}; expected a list of columns")
    columns: Any = None
    if isinstance(table, Table):
        columns = table.columns
    elif not isinstance(table, str):
        columns = getattr(sqlalchemy.inspect(table, raiseerr=False), "columns", None)
    return SourceNames(
        table_name(table),
        [_column_name(columns, key) for key in keys],
        _column_name(columns, text),
        tuple(None if each is None else _column_name(columns, each) for each in optional),
    )


def table_oid(connection: Connection, name: str) -> int:
    """Return the oid of a table by its name in SQL; raises ConfigurationError."""
    try:
        row = connection.execute(statements.FIND_TABLE, {"name": name}).fetchone()
    except (pg.InvalidName, pg.SyntaxError, psycopg.DataError, UnicodeEncodeError) as error:
        raise ConfigurationError(f"{name!r} is not the name of a table") from error
    if row is None or row[0] is None:
        tables = [table for (table,) in connection.execute(statements.TABLE_NAMES).fetchall()]
        raise ConfigurationError(
            f'there is no table {name!r}; name it as SQL does, such as articles or blog."Articles"'
            + suggestion(name, tables)
        )
    return int(row[0])


def table_name(table: TableName) -> str:
    """Return the name of a table in SQL, quoted if needed; raises ConfigurationError."""
    if isinstance(table, str):
        return table
    if not isinstance(table, Table):
        mapper = sqlalchemy.inspect(table, raiseerr=False)
        table = getattr(mapper, "local_table", None)  # type: ignore[assignment]
    if not isinstance(table, Table):
        raise ConfigurationError(
            "the table is neither a name, nor a SQLAlchemy table, nor a mapped class"
        )
    parts = [table.name] if table.schema is None else [table.schema, table.name]
    return sql.Identifier(*parts).as_string(None)


def _column_name(columns: Any, column: ColumnName) -> str:
    if not isinstance(column, str):
        name = getattr(column, "name", None)
        if not isinstance(name, str):
            raise ConfigurationError(f"{column!r} is not a column, and not the name of a column")
        return name
    # An attribute of a mapped class may have another name than its column.
    if columns is not None and column in columns:
        return str(columns[column].name)
    return column
