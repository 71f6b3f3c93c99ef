"""Reads of attached tables: by key, and only if nobody has altered the table since it was described."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import LiteralString

from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine

from textsim_db.db.engine import Connection, autocommit, transaction, wait_at_most

log = logging.getLogger(__name__)

READING_PATIENCE = "2s"
"""How long a worker waits for a table that is being altered, before it turns to other tables."""

_SELECT = """
SELECT s.id, s.corpus_id, s.relation::oid, n.nspname, r.relname, s.key_column, s.text_column, s.mode,
    CASE WHEN r.oid IS NULL THEN pg_catalog.format('with the oid %%s', s.relation::oid)
        ELSE pg_catalog.format('%%I.%%I', n.nspname, r.relname) END,
    pg_catalog.format_type(s.key_type, NULL), textsim._source_fault(s)
"""
_FROM = """
FROM textsim.source s
LEFT JOIN pg_catalog.pg_class r ON r.oid = s.relation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE s.active
"""
_SOURCE = f"{_SELECT} {_FROM} AND s.id = %s"
_SOURCES = f"""
{_SELECT}, s.shape <> textsim._shape(s), ARRAY(SELECT textsim._source_problems(s)) {_FROM}
ORDER BY s.id
"""
_NAMES = """
SELECT s.id, s.relation::text FROM textsim.source s WHERE s.id = ANY (%s::integer[]) AND s.active
"""
_COMPARE_CHANGED = """
/* textsim-db: log what triggers missed */ SELECT textsim._compare_changed(%s)
"""
_RELEASE_DROPPED = """
/* textsim-db: detach dropped tables */
SELECT relation, documents FROM textsim._release_dropped(%s)
"""
# A read runs with the rights of the worker's role. So it calls only functions of pg_catalog and
# textsim, by their qualified names, and uses only operators and casts of types that users cannot define.
_HOLD = "/* textsim-db: hold an attached table */ LOCK TABLE ONLY {relation} IN ACCESS SHARE MODE"
_READ = """
/* textsim-db: read changed rows */
SELECT t.{key}::{type}::text, t.{text}::text FROM {relation} t
WHERE t.{key}::{type} = ANY (%s::text[]::{type}[]) AND t.{text} IS NOT NULL
"""
_SIZES = """
/* textsim-db: sizes of changed rows */
SELECT t.{key}::{type}::text, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE t.{key}::{type} = ANY (%s::text[]::{type}[]) AND t.{text} IS NOT NULL
"""
_FIRST_PAGE = """
/* textsim-db: sweep an attached table */
SELECT t.{key}::{type}::text, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE t.{text} IS NOT NULL ORDER BY t.{key}::{type} LIMIT %s
"""
_NEXT_PAGE = """
/* textsim-db: sweep an attached table */
SELECT t.{key}::{type}::text, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE t.{text} IS NOT NULL AND t.{key}::{type} > %s::text::{type}
ORDER BY t.{key}::{type} LIMIT %s
"""
_ABSENT = """
/* textsim-db: sweep: documents whose rows are gone */
SELECT q.key FROM pg_catalog.unnest(%s::text[]) q (key)
WHERE NOT EXISTS (
    SELECT FROM {relation} t WHERE t.{key}::{type} = q.key::{type} AND t.{text} IS NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class StoredSource:
    """An attached table as the connected role sees it.

    name: the table's name, as SQL takes it. fault: why this role cannot index it, or None. differs:
    whether it may have changed in ways that triggers do not see. problems: what keeps every role
    from keeping it indexed.
    """

    id: int
    corpus_id: int
    relation: int
    schema: str | None
    table: str | None
    key_column: str
    text_column: str
    mode: str
    name: str
    key_type: str | None
    fault: str | None
    differs: bool = field(default=False, compare=False)
    problems: list[str] = field(default_factory=list, compare=False)

    @property
    def is_gone(self) -> bool:
        """Whether the table was dropped."""
        return self.table is None

    def statement(self, text: LiteralString) -> bytes:
        """Return SQL with the names of the table and its columns filled in."""
        names = (str(self.schema), str(self.table), self.key_column, self.text_column)
        schema, table, key, text_ = (name.replace("%", "%%") for name in names)
        return (
            sql.SQL(text)
            .format(
                relation=sql.Identifier(schema, table),
                key=sql.Identifier(key),
                text=sql.Identifier(text_),
                type=sql.SQL(str(self.key_type).replace("%", "%%")),
            )
            .as_bytes(None)
        )


def sources(engine: Engine) -> list[StoredSource]:
    """Return all attached tables."""
    with autocommit(engine) as connection:
        rows = connection.execute(_SOURCES, []).fetchall()
    return [StoredSource(*row) for row in rows]


def source_names(connection: Connection, numbers: Iterable[int | None]) -> dict[int | None, str]:
    """Return the names of tables by the numbers of their sources, without detached tables."""
    return dict(connection.execute(_NAMES, [list(numbers)]).fetchall())


def log_unseen_changes(engine: Engine, source: StoredSource) -> None:
    """Have the log ask for a comparison of what the triggers of a table may have missed."""
    with transaction(engine) as connection:
        connection.execute(_COMPARE_CHANGED, [source.id])


def release_dropped(engine: Engine, corpus_id: int) -> int:
    """Detach the dropped tables of a corpus, and return how many documents were removed."""
    with transaction(engine) as connection:
        rows = connection.execute(_RELEASE_DROPPED, [corpus_id]).fetchall()
    for relation, documents in rows:
        log.warning(
            "table with the oid %s was dropped: it is detached, and its %s documents are removed",
            *(relation, documents),
            extra={"documents": documents},
        )
    return sum(documents for _, documents in rows)


@contextmanager
def reading(engine: Engine, source: StoredSource) -> Iterator[Connection]:
    """Lend a connection in a transaction that may read a table."""
    with transaction(engine) as connection:
        lock_table(connection, source, READING_PATIENCE)
        yield connection


def lock_table(connection: Connection, source: StoredSource, patience: str) -> None:
    """Lock a table against being altered; raise if it was altered since it was described.

    From then on it cannot become a view, and its columns cannot get a type that runs a user's function.
    """
    wait_at_most(connection, patience)
    connection.execute(source.statement(_HOLD), [])
    row = connection.execute(_SOURCE, [source.id]).fetchone()
    if row is None or StoredSource(*row) != source:
        raise pg.ObjectNotInPrerequisiteState(f"table {source.name} has just been altered")


def read_texts(connection: Connection, source: StoredSource, keys: Sequence[str]) -> dict[str, str]:
    """Return the texts that a table has for the keys, without those that are NULL."""
    return dict(connection.execute(source.statement(_READ), [list(keys)]).fetchall())


def read_sizes(connection: Connection, source: StoredSource, keys: Sequence[str]) -> dict[str, int]:
    """Return the lengths of the texts in bytes, without reading the texts."""
    return dict(connection.execute(source.statement(_SIZES), [list(keys)]).fetchall())


def read_page(
    connection: Connection, source: StoredSource, after: str | None, most: int
) -> list[tuple[str, int]]:
    """Return the next keys of a table in their order, with the lengths of their texts."""
    if after is None:
        rows = connection.execute(source.statement(_FIRST_PAGE), [most])
    else:
        rows = connection.execute(source.statement(_NEXT_PAGE), [after, most])
    return rows.fetchall()


def absent_keys(connection: Connection, source: StoredSource, keys: Sequence[str]) -> list[str]:
    """Return the keys for which a table has no text."""
    rows = connection.execute(source.statement(_ABSENT), [list(keys)]).fetchall()
    return [key for (key,) in rows]
