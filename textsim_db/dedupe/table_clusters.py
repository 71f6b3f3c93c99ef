"""Reads the documents of a table, and writes a new table with their clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString, NamedTuple

import psycopg
from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine

from textsim_db.cluster.keep_rule import Preference
from textsim_db.db.engine import Connection, transaction
from textsim_db.dedupe.by_temporary_corpus import Deduplication, Document, Rule
from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.read.snapshot import snapshot
from textsim_db.sync.table_names import table_oid

_CHUNK = 2000
_TABLE = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""
_COLUMNS = """
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_DOCUMENTS = (
    "SELECT t.{key}::text, t.{text}::text, {place}, {scope}::text FROM {table} t ORDER BY t.{key}"
)
# PostgreSQL sorts NaN above all numbers, so NaN counts as NULL here.
_VALUE: LiteralString = "CASE WHEN t.{value}::text <> 'NaN' THEN t.{value} END"
_PLACE: dict[str, LiteralString] = {
    "max": f"pg_catalog.row_number() OVER (ORDER BY {_VALUE} DESC NULLS LAST, t.{{key}})",
    "min": f"pg_catalog.row_number() OVER (ORDER BY {_VALUE} NULLS LAST, t.{{key}})",
}
_CREATE = """
CREATE TABLE {into} (
    key {type} PRIMARY KEY,
    cluster bigint NOT NULL,
    kept {type} NOT NULL,
    similarity double precision NOT NULL
)
"""
_COMMENTS = (
    "COMMENT ON COLUMN {into}.cluster IS 'number of the cluster'",
    "COMMENT ON COLUMN {into}.kept IS 'key of the member that is kept'",
    "COMMENT ON COLUMN {into}.similarity IS 'Jaccard similarity to the member that is kept'",
)


class Columns(NamedTuple):
    """The columns of a table that are read."""

    key: str
    text: str
    scope: str | None = None
    """None if rows of all scopes are compared."""


class Table(NamedTuple):
    """A table with texts, after its columns were checked."""

    name: sql.Composable
    columns: Columns
    key_type: str
    """The type of the key in SQL."""
    preference: Preference
    """Decides which document of a cluster stays."""

    def statement(self, text: LiteralString, **parts: sql.Composable) -> sql.Composed:
        """Return SQL with the names filled in."""
        value = sql.Identifier(self.preference.column or self.columns.key)
        key, text_, scope = self.columns
        names: dict[str, sql.Composable] = {
            "key": sql.Identifier(key),
            "text": sql.Identifier(text_),
            "scope": sql.SQL("NULL") if scope is None else sql.Identifier("t", scope),
        }
        return sql.SQL(text).format(
            table=self.name, type=sql.SQL(self.key_type), value=value, **names, **parts
        )


def find_table(engine: Engine, name: str, columns: Columns, preference: Preference) -> Table:
    """Look up a table and its columns; raises ConfigurationError."""
    with transaction(engine) as connection:
        relation = table_oid(connection, name)
        row = connection.execute(_TABLE, [relation]).fetchone()
        types = dict(connection.execute(_COLUMNS, [relation]).fetchall())
    assert row is not None
    for column in filter(None, (*columns, preference.column)):
        if column not in types:
            others = ", ".join(f'"{other}"' for other in list(types)[:12])
            raise ConfigurationError(
                f'table {name} has no column "{column}"; it has {others}{suggestion(column, types)}'
            )
    return Table(sql.Identifier(*row), columns, types[columns.key], preference)


def by_place(rule: Rule) -> Rule:
    """Return the rule for documents(): it prefers the lowest place in the server's order."""
    if rule.preference.column is None:
        return rule
    return rule._replace(preference=Preference("min", "place"))


def documents(engine: Engine, table: Table, keys: list[str]) -> Iterator[Document]:
    """Yield the document of each row in order of the keys, and append each key to keys.

    All rows come from one snapshot. Raises ConfigurationError if a key is NULL or not unique.
    """
    place = _PLACE.get(table.preference.rule, "NULL::bigint")
    statement = table.statement(_DOCUMENTS, place=table.statement(place))
    with snapshot(engine) as connection, connection.cursor("textsim-db: dedupe") as cursor:
        cursor.itersize = _CHUNK
        for key, text, value, scope in cursor.execute(statement):
            if key is None or (keys and keys[-1] == key):
                problem = "NULL" if key is None else f'"{key}" twice'
                raise ConfigurationError(
                    f'the column "{table.columns.key}" has {problem}; keys must be unique and NOT NULL'
                )
            keys.append(key)
            yield Document(text, value, scope)


def check_target(engine: Engine, table: Table, into: str) -> None:
    """Raise ConfigurationError if the table cannot be created; creates it and rolls back."""
    with transaction(engine) as connection:
        _create(connection, table, into)
        raise psycopg.Rollback


def write_clusters(
    engine: Engine, table: Table, into: str, keys: list[str], result: Deduplication
) -> None:
    """Create a table with a row for each member of each cluster, in one transaction."""
    with transaction(engine) as connection:
        name = _create(connection, table, into)
        for comment in _COMMENTS:
            connection.execute(table.statement(comment, into=name))
        statement = sql.SQL("/* textsim-db: write clusters */ COPY {} FROM STDIN").format(name)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for number, removals in enumerate(result.clusters(), start=1):
                kept = keys[removals[0].kept]
                copy.write_row((kept, number, kept, 1.0))
                for removal in removals:
                    copy.write_row((keys[removal.number], number, kept, removal.similarity))


def _create(connection: Connection, table: Table, into: str) -> sql.Identifier:
    try:
        row = connection.execute("SELECT pg_catalog.parse_ident(%s)", [into]).fetchone()
        assert row is not None
        name = sql.Identifier(*row[0])
        connection.execute(table.statement(_CREATE, into=name))
    except pg.InvalidParameterValue as error:
        raise ConfigurationError(f"{into!r} is not the name of a table: {error}") from error
    except psycopg.ProgrammingError as error:  # the table exists, or the role may not create it
        way_out = "; choose another --into" if isinstance(error, pg.DuplicateTable) else ""
        raise ConfigurationError(
            f"{into} cannot be created: {error.diag.message_primary}{way_out}"
        ) from error
    return name
