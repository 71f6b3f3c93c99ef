"""Attaching tables: what users call them, and the functions of the schema that do it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy
from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine, Table

from textsim_db.db.engine import Connection, autocommit, transaction
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.results import Activity, Failure, Source, Status
from textsim_db.sync import source_rows
from textsim_db.sync.source_rows import StoredSource

if TYPE_CHECKING:
    from sqlalchemy.orm import InstrumentedAttribute

    from textsim_db.sync.worker import WorkReport

    Column = str | sqlalchemy.Column[Any] | InstrumentedAttribute[Any]

log = logging.getLogger(__name__)

# What attach() and detach() refuse; their messages say why.
_REFUSED = (
    pg.DuplicateObject,
    pg.FeatureNotSupported,
    pg.InsufficientPrivilege,
    pg.InvalidParameterValue,
    pg.InvalidName,
    pg.UndefinedObject,
    pg.UndefinedTable,
)

_FIND = """
SELECT coalesce(
    pg_catalog.to_regclass(pg_catalog.quote_ident(%(name)s)), pg_catalog.to_regclass(%(name)s)
)::oid
"""
_ATTACH = """
/* textsim-db: attach a table */ SELECT textsim.attach(%s, %s::oid::regclass, %s, %s, %s)
"""
_NUMBER = """
SELECT s.id FROM textsim.source s JOIN textsim.corpus c ON c.id = s.corpus_id
WHERE c.name = %s AND s.relation = %s::oid::regclass
"""
_DETACH = "/* textsim-db: detach a table */ SELECT textsim.detach(%s, %s::oid::regclass)"
_TABLES = """
SELECT corpus, relation::text, key_column, text_column, mode FROM textsim.sources
ORDER BY corpus, relation::text
"""
_STATUS = """
/* textsim-db: status of a corpus */
SELECT indexed, pending, oldest_pending, failed, is_estimate, problems FROM textsim.status(%s)
"""
_ACTIVITY = """
SELECT (
    SELECT max(greatest(0, extract(epoch FROM pg_catalog.clock_timestamp() - p.created_at)))::float8
    FROM textsim.pending p LEFT JOIN textsim.source s ON s.id = p.source_id
    WHERE coalesce(s.corpus_id, p.corpus_id) = {id} AND p.error IS NULL
), (
    SELECT pg_catalog.pg_stat_get_tuples_inserted(d.oid)
        + pg_catalog.pg_stat_get_tuples_updated(d.oid)
        + pg_catalog.pg_stat_get_tuples_deleted(d.oid)
    FROM (SELECT {document_name}::pg_catalog.regclass::oid) d (oid)
)
"""
_FAILURES = """
SELECT k.key, s.relation::text, p.tries, p.error
FROM textsim.pending p
LEFT JOIN textsim.source s ON s.id = p.source_id
LEFT JOIN LATERAL pg_catalog.unnest(p.keys) k (key) ON true
WHERE coalesce(s.corpus_id, p.corpus_id) = %s AND p.error IS NOT NULL
ORDER BY p.id DESC LIMIT %s
"""
_UNCOMPARED = "SELECT s.relation::text FROM textsim._uncompared(%s) s"
_RETRY = """
UPDATE textsim.pending p SET error = NULL, tries = 0, lease_until = NULL
WHERE p.error IS NOT NULL AND %s = coalesce(
    (SELECT s.corpus_id FROM textsim.source s WHERE s.id = p.source_id), p.corpus_id)
"""


def names(table: str | Table | type[Any], key: Column, text: Column) -> tuple[str, str, str]:
    """Return the names of a table and two of its columns; raises ConfigurationError."""
    if isinstance(table, str):
        return table, _column(None, key), _column(None, text)
    if isinstance(table, Table):
        columns: Any = table.columns
    else:
        columns = getattr(sqlalchemy.inspect(table, raiseerr=False), "columns", None)
    return _table(table), _column(columns, key), _column(columns, text)


def attach(store: Store, table: str, key: str, text: str, mode: str) -> int:
    """Attach a table and return the number of the source; raises ConfigurationError."""
    with transaction(store.engine) as connection:
        relation = find(connection, table)
        _call(connection, _ATTACH, [store.corpus.name, relation, key, text, mode])
        row = connection.execute(_NUMBER, [store.corpus.name, relation]).fetchone()
    assert row is not None
    return int(row[0])


def detach(store: Store, table: str | Table | type[Any]) -> None:
    """Detach a table, given also by the oid of one that is gone; raises ConfigurationError."""
    name = table if isinstance(table, str) else _table(table)
    with transaction(store.engine) as connection:
        relation = int(name) if name.isascii() and name.isdigit() else find(connection, name)
        _call(connection, _DETACH, [store.corpus.name, relation])


def attached(engine: Engine) -> list[Source]:
    """Return the attached tables of all corpora."""
    with autocommit(engine) as connection:
        return [Source(*row) for row in connection.execute(_TABLES).fetchall()]


def usable(store: Store) -> list[StoredSource]:
    """Return the attached tables of a corpus that were not dropped.

    Raises ConfigurationError if this role cannot index one of them.
    """
    existing = [source for source in _of(store) if not source.is_gone]
    for source in existing:
        if source.fault is not None:
            raise ConfigurationError(f"table {source.name} cannot be read: {source.fault}")
    return existing


def dropped(store: Store) -> list[StoredSource]:
    """Return the attached tables of a corpus that were dropped."""
    return [source for source in _of(store) if source.is_gone]


def _of(store: Store) -> list[StoredSource]:
    return [
        source
        for source in source_rows.sources(store.engine)
        if source.corpus_id == store.corpus.id
    ]


def status(store: Store) -> Status:
    """Return how far a corpus is with its attached tables."""
    with autocommit(store.engine) as connection:
        row = connection.execute(_STATUS, [store.corpus.name]).fetchone()
    assert row is not None
    return Status(*row)


def activity(store: Store) -> Activity:
    """Return how a corpus is kept up with."""
    with autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(_ACTIVITY)).fetchone()
    assert row is not None
    return Activity(*row)


def failures(store: Store, last: int | None = None) -> list[Failure]:
    """Return what was set aside, or the last of it."""
    with autocommit(store.engine) as connection:
        rows = connection.execute(_FAILURES, [store.corpus.id, last]).fetchall()
    return [Failure(*row) for row in reversed(rows)]


def retry(store: Store) -> int:
    """Have what was set aside tried again."""
    with transaction(store.engine) as connection:
        return connection.execute(_RETRY, [store.corpus.id]).rowcount


def warn_unindexed(store: Store) -> None:
    """Log the attached tables that are still to be compared with their documents."""
    with autocommit(store.engine) as connection:
        for (table,) in connection.execute(_UNCOMPARED, [store.corpus.id]):
            log.warning(
                "table %s is not wholly indexed in corpus %s: what it holds may be missing",
                *(table, store.corpus.name),
                extra={"table": table, "corpus": store.corpus.name},
            )


def counted(progress: Callable[[int], None]) -> Callable[[WorkReport], None]:
    """Return what tells a progress callback how many rows a worker is done with."""
    done = 0

    def report(work: WorkReport) -> None:
        nonlocal done
        done += work.changes.written + work.changes.unchanged + len(work.changes.refused)
        progress(done)

    return report


def _call(connection: Connection, statement: str, parameters: list[Any]) -> None:
    try:
        connection.execute(statement.encode(), parameters)
    except _REFUSED as error:
        message = error.diag.message_primary or str(error)
        raise ConfigurationError(message) from error
    except (psycopg.DataError, UnicodeEncodeError) as error:
        raise ConfigurationError(
            f"the name of a column has a NUL character or a lone surrogate: {error}"
        ) from error


def find(connection: Connection, name: str) -> int:
    """Return the oid of a table by its name as SQL takes it; raises ConfigurationError."""
    try:
        row = connection.execute(_FIND, {"name": name}).fetchone()
    except (pg.InvalidName, pg.SyntaxError, psycopg.DataError, UnicodeEncodeError) as error:
        raise ConfigurationError(f"{name!r} is not the name of a table") from error
    if row is None or row[0] is None:
        raise ConfigurationError(
            f'there is no table {name!r}; name it as SQL does, such as articles or blog."Articles"'
        )
    return int(row[0])


def _table(table: Any) -> str:
    if not isinstance(table, Table):
        mapper = sqlalchemy.inspect(table, raiseerr=False)
        table = getattr(mapper, "local_table", None)
    if not isinstance(table, Table):
        raise ConfigurationError(
            "the table is neither a name, nor a SQLAlchemy table, nor a mapped class"
        )
    parts = [table.name] if table.schema is None else [table.schema, table.name]
    return sql.Identifier(*parts).as_string(None)


def _column(columns: Any, column: Column) -> str:
    if not isinstance(column, str):
        name = getattr(column, "name", None)
        if not isinstance(name, str):
            raise ConfigurationError(f"{column!r} is not a column or the name of one")
        return name
    # The name of an attribute may be another than that of its column.
    if columns is not None and column in columns:
        return str(columns[column].name)
    return column
