"""Attached tables: attaches, detaches and lists them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.engine import Connection, configuration_errors, read_rows, transaction
from textsim_db.errors import ConfigurationError
from textsim_db.results import Source
from textsim_db.settings import Existing
from textsim_db.sync import statements
from textsim_db.sync.table_names import SourceNames, TableName, table_name, table_oid

if TYPE_CHECKING:
    from textsim_db.db.store import Store


log = logging.getLogger(__name__)

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


class AttachRules(NamedTuple):
    """How an attached table is kept indexed."""

    mode: str | None = None
    """queue or inline; None takes the mode that the corpus allows."""
    existing: str = Existing.REFUSE
    """The treatment of rows that match, if the corpus is unique: refuse or keep."""
    row_filter: str | None = None
    """The condition on the rows that have a document; None: every row."""


def attach(store: Store, names: SourceNames, rules: AttachRules) -> int:
    """Attach a table and return the id of the source; raises ConfigurationError.

    Rows that match, and that a unique corpus keeps, are logged as a warning.
    """
    with transaction(store.engine) as connection, _logged_warnings(connection):
        relation = table_oid(connection, names.table)
        columns = names.text, rules.mode, rules.existing, *names.optional
        parameters = [store.corpus.name, relation, *columns, rules.row_filter, names.keys]
        _call(connection, statements.ATTACH, parameters)
        source_id = _find_id(connection, store, relation)
    assert source_id is not None
    return source_id


def detach(store: Store, table: TableName) -> None:
    """Detach a table; a dropped table is named by its oid. Raises ConfigurationError."""
    name = table_name(table)
    with transaction(store.engine) as connection:
        relation = int(name) if name.isascii() and name.isdigit() else table_oid(connection, name)
        _call(connection, statements.DETACH, [store.corpus.name, relation])


def attached(engine: Engine) -> list[Source]:
    """Return the attached tables of all corpora."""
    rows = read_rows(engine, statements.ATTACHED_TABLES)
    return [Source(corpus, table, tuple(keys), *others) for corpus, table, keys, *others in rows]


def id_of(store: Store, table: TableName) -> int:
    """Return the id of an attached table; raises ConfigurationError."""
    with transaction(store.engine) as connection:
        relation = table_oid(connection, table_name(table))
        source_id = _find_id(connection, store, relation)
    if source_id is None:
        raise ConfigurationError(f'{table} is not attached to the corpus "{store.corpus.name}"')
    return source_id


def _find_id(connection: Connection, store: Store, relation: int) -> int | None:
    row = connection.execute(statements.SOURCE_ID, [store.corpus.name, relation]).fetchone()
    return None if row is None else int(row[0])


def count_documents(store: Store, source_id: int) -> int:
    """Return the number of documents of an attached table."""
    statement = store.corpus.statement(statements.DOCUMENTS_OF_SOURCE)
    ((count,),) = read_rows(store.engine, statement, [source_id])
    return int(count)


@contextmanager
def _logged_warnings(connection: Connection) -> Iterator[None]:
    """Log the warnings of the server, and what they list."""

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
    except (psycopg.DataError, UnicodeEncodeError) as error:
        raise ConfigurationError(
            f"the name of a column has a NUL character or a lone surrogate: {error}"
        ) from error
