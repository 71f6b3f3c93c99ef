"""Attaches, detaches, lists and merges tables, named as str, SQLAlchemy objects or mapped classes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple, TypeAlias

import psycopg
from psycopg import errors as pg, sql

from textsim_db.db.engine import (
    Connection,
    autocommit,
    configuration_errors,
    read_rows,
    transaction,
)
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.results import MergeReport, Source, Unmerged
from textsim_db.settings.named_values import Existing
from textsim_db.sync import statements

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy import Engine, Table
    from sqlalchemy.orm import InstrumentedAttribute

log = logging.getLogger(__name__)


TableName: TypeAlias = "str | Table | type[Any]"
ColumnName: TypeAlias = "str | sqlalchemy.Column[Any] | InstrumentedAttribute[Any]"


class SourceNames(NamedTuple):
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
    """Return the names of a table and of its columns; optional: of scopes, times and expiries."""
    if not keys or text is None:
        raise ConfigurationError("the key column or the text column is missing")
    if isinstance(keys, str):
        raise ConfigurationError(f"key_columns is {keys!r}; expected a list of columns")
    columns: Any = None
    if not isinstance(table, str):
        from sqlalchemy import inspect

        columns = getattr(inspect(table, raiseerr=False), "columns", None)
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
    from sqlalchemy import Table, inspect

    if not isinstance(table, Table):
        mapper = inspect(table, raiseerr=False)
        table = getattr(mapper, "local_table", None)  # type: ignore[assignment]
    if not isinstance(table, Table):
        raise ConfigurationError(
            "the table is neither a name, nor a SQLAlchemy table, nor a mapped class"
        )
    names = [table.name] if table.schema is None else [table.schema, table.name]
    return sql.Identifier(*names).as_string(None)


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


# Errors with which textsim.attach() and textsim.detach() refuse a table. Their messages give the reason.
_REFUSED = (
    pg.DuplicateObject,
    pg.FeatureNotSupported,
    pg.InsufficientPrivilege,
    pg.InvalidParameterValue,
    pg.InvalidName,
    pg.UndefinedObject,
    pg.UndefinedTable,
)


_MERGE_REFUSED = (
    *_REFUSED,
    pg.CardinalityViolation,
    pg.DatetimeFieldOverflow,
    pg.DependentObjectsStillExist,
    pg.InvalidDatetimeFormat,
    pg.ProgramLimitExceeded,
    pg.SyntaxError,
    pg.UndefinedColumn,
)


class AttachRules(NamedTuple):
    mode: str | None = None
    """queue or inline; None takes the mode that the corpus allows."""
    existing: str = Existing.REFUSE
    """The treatment of rows that match, if the corpus is unique: refuse or keep."""
    row_filter: str | None = None
    """The condition on the rows that have a document; None: every row."""
    replace: bool = False
    """Whether a table that is attached is attached anew."""


def attach(store: Store, names: SourceNames, rules: AttachRules) -> int:
    """Attach a table and return the id of the source; raises ConfigurationError."""
    with transaction(store.engine) as connection, _logged_warnings(connection):
        relation = table_oid(connection, names.table)
        columns = names.text, rules.mode, rules.existing, *names.optional
        parameters = [store.corpus.name, relation, *columns, rules.row_filter]
        _call(connection, statements.ATTACH, [*parameters, names.keys, rules.replace])
        source_id = _find_id(connection, store, relation)
    assert source_id is not None
    return source_id


def detach(store: Store, table: TableName) -> None:
    """Detach a table; a dropped table is named by its oid. Raises ConfigurationError."""
    name = table_name(table)
    with transaction(store.engine) as connection:
        relation = int(name) if name.isascii() and name.isdigit() else table_oid(connection, name)
        _call(connection, statements.DETACH, [store.corpus.name, relation])


def merge(store: Store, table: TableName | None, *parameters: Any) -> MergeReport:
    """Merge the duplicates of a table, a hundred rows in a transaction; raises ConfigurationError."""
    ((run, merged, left_alone),) = _call_merge(store, statements.MERGE, table, *parameters)
    return MergeReport(run, merged, left_alone)


def texts_to_merge(
    store: Store, table: TableName | None, *parameters: Any
) -> list[tuple[int, int, str]]:
    """Return the rows that merge() would take, and three texts with the rows that each would take."""
    return _call_merge(store, statements.TEXTS_TO_MERGE, table, *parameters)


def _call_merge(
    store: Store, statement: LiteralString, table: TableName | None, *parameters: Any
) -> list[Any]:
    relation = None
    if table is not None:
        with transaction(store.engine) as connection:
            relation = table_oid(connection, table_name(table))
    with autocommit(store.engine) as connection, configuration_errors(*_MERGE_REFUSED):
        return connection.execute(statement, [store.corpus.name, relation, *parameters]).fetchall()


def unmerge(store: Store, *parameters: Any) -> list[Unmerged]:
    """Bring merged rows back, in one transaction; raises ConfigurationError."""
    with transaction(store.engine) as connection, configuration_errors(*_MERGE_REFUSED):
        rows = connection.execute(statements.UNMERGE, [store.corpus.name, *parameters]).fetchall()
    return [Unmerged(*row) for row in rows]


def attached(engine: Engine) -> list[Source]:
    rows = read_rows(engine, statements.ATTACHED_TABLES)
    return [Source(corpus, table, tuple(keys), *others) for corpus, table, keys, *others in rows]


def id_of(store: Store, table: TableName) -> int:
    with transaction(store.engine) as connection:
        relation = table_oid(connection, table_name(table))
        source_id = _find_id(connection, store, relation)
    if source_id is None:
        raise ConfigurationError(f'{table} is not attached to the corpus "{store.corpus.name}"')
    return source_id


def _find_id(connection: Connection, store: Store, relation: int) -> int | None:
    row = connection.execute(statements.SOURCE_ID, [store.corpus.name, relation]).fetchone()
    return None if row is None else int(row[0])


def count_documents(store: Store, source_id: int) -> tuple[int, int]:
    ((count, without_words),) = store.read(statements.DOCUMENTS_OF_SOURCE, [source_id])
    return count, without_words


@contextmanager
def _logged_warnings(connection: Connection) -> Iterator[None]:

    def warn(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            listed = f": {diagnostic.message_detail}" if diagnostic.message_detail else ""
            log.warning("%s%s", diagnostic.message_primary, listed)

    connection.add_notice_handler(warn)
    try:
        yield
    finally:
        connection.remove_notice_handler(warn)


def _call(connection: Connection, statement: str, parameters: list[Any]) -> None:
    try:
        with configuration_errors(*_REFUSED):
            connection.execute(statement.encode(), parameters)
    except pg.UniqueViolation as error:  # rows of the table match
        lines = str(error).partition("\nCONTEXT:")[0].splitlines()
        sentences = " ".join(f"{line.rstrip('.')}." for line in lines)
        raise ConfigurationError(" ".join(sentences.split())) from error
