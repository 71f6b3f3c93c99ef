"""Attached tables as a worker reads them: by key, and only while they are what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine

from textsim_db.db.engine import Connection, autocommit, transaction, wait_at_most

READING_PATIENCE = "2s"
"""How long reading waits for a table that is being altered, before other tables have their turn."""

# Whatever runs here, runs with the rights of the worker's role: only functions of pg_catalog and
# textsim, by name (as unnest() of several arrays is anyway), and only operators and casts of types
# that are not the users' own.
_SOURCES = """
SELECT s.id, s.corpus_id, s.relation::oid, n.nspname, r.relname, s.key_column, s.text_column,
    s.mode,
    CASE WHEN r.oid IS NOT NULL THEN pg_catalog.format('%%I.%%I', n.nspname, r.relname) END,
    pg_catalog.format_type(textsim._base_type(k.atttypid), NULL),
    textsim._unfit(s.relation), textsim._unfit_column(s.relation, s.key_column, true),
    textsim._unfit_column(s.relation, s.text_column, false),
    r.oid IS NOT NULL AND pg_catalog.row_security_active(r.oid),
    pg_catalog.has_schema_privilege(n.oid, 'USAGE')
        AND pg_catalog.has_table_privilege(r.oid, 'SELECT'),
    -- The tables of a corpus that was rebuilt after this snapshot are gone: no right is missing then.
    coalesce(pg_catalog.has_table_privilege(
        pg_catalog.to_regclass('textsim.document_' || s.corpus_id), 'INSERT'), true),
    EXISTS (
        SELECT FROM pg_catalog.pg_trigger t
        WHERE t.tgrelid = r.oid AND t.tgfoid = pg_catalog.to_regprocedure(
            pg_catalog.format('textsim.%%I()', '_changes_' || s.id))
    ),
    -- Whoever plans a query computes what is constant in these expressions, with their own rights.
    (
        -- pg_partition_tree() would lock each of them, and wait for who is altering one.
        WITH RECURSIVE part (oid) AS (
            SELECT r.oid
            UNION SELECT i.inhrelid FROM part p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid
        )
        SELECT pg_catalog.min(pg_catalog.pg_describe_object(d.classid, d.objid, 0))
        FROM part
        CROSS JOIN LATERAL (
            SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid
            FROM pg_catalog.pg_index i WHERE i.indrelid = part.oid
            UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid
            FROM pg_catalog.pg_constraint c WHERE c.conrelid = part.oid
            UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, x.oid
            FROM pg_catalog.pg_statistic_ext x WHERE x.stxrelid = part.oid
        ) made (class, oid)
        JOIN pg_catalog.pg_depend d ON d.classid = made.class AND d.objid = made.oid
        LEFT JOIN pg_catalog.pg_proc f
            ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND f.oid = d.refobjid
        LEFT JOIN pg_catalog.pg_operator o
            ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = d.refobjid
        LEFT JOIN pg_catalog.pg_type t
            ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND t.oid = d.refobjid
            AND t.typtype = 'd'
        JOIN pg_catalog.pg_roles w ON w.oid = coalesce(f.proowner, o.oprowner, t.typowner)
        WHERE NOT w.rolsuper AND w.rolname <> current_user
    )
FROM textsim.source s
LEFT JOIN pg_catalog.pg_class r ON r.oid = s.relation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
LEFT JOIN pg_catalog.pg_attribute k
    ON k.attrelid = r.oid AND k.attname = s.key_column AND NOT k.attisdropped
WHERE s.active AND (%s::integer IS NULL OR s.id = %s::integer)
ORDER BY s.id
"""
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
class Source:
    """An attached table as the connected role sees it.

    name: that of the table, as SQL takes it. fault: why this role cannot index it, or None.
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


def sources(engine: Engine) -> list[Source]:
    """Return all attached tables."""
    with autocommit(engine) as connection:
        rows = connection.execute(_SOURCES, [None, None]).fetchall()
    return [_source(*row) for row in rows]


@contextmanager
def reading(engine: Engine, source: Source) -> Iterator[Connection]:
    """Lend a connection in a transaction that may read a table."""
    with transaction(engine) as connection:
        hold(connection, source, READING_PATIENCE)
        yield connection


def hold(connection: Connection, source: Source, patience: str) -> None:
    """Lock a table against being altered, and see that it still is what it was.

    From then on it cannot become a view, or its columns be of a type that runs a user's function.
    """
    wait_at_most(connection, patience)
    connection.execute(source.statement(_HOLD), [])
    row = connection.execute(_SOURCES, [source.id, source.id]).fetchone()
    if row is None or _source(*row) != source:
        raise pg.ObjectNotInPrerequisiteState(f"table {source.name} has just been altered")


def read(connection: Connection, source: Source, keys: Sequence[str]) -> dict[str, str]:
    """Return the texts that a table has for some keys; those that are NULL are left out."""
    return dict(connection.execute(source.statement(_READ), [list(keys)]).fetchall())


def sizes(connection: Connection, source: Source, keys: Sequence[str]) -> dict[str, int]:
    """Return the lengths of these texts in bytes, without reading them."""
    return dict(connection.execute(source.statement(_SIZES), [list(keys)]).fetchall())


def page(
    connection: Connection, source: Source, after: str | None, most: int
) -> list[tuple[str, int]]:
    """Return the next keys of a table in their order, with the lengths of their texts."""
    if after is None:
        rows = connection.execute(source.statement(_FIRST_PAGE), [most])
    else:
        rows = connection.execute(source.statement(_NEXT_PAGE), [after, most])
    return rows.fetchall()


def absent(connection: Connection, source: Source, keys: Sequence[str]) -> list[str]:
    """Return those of some keys for which a table has no text."""
    rows = connection.execute(source.statement(_ABSENT), [list(keys)]).fetchall()
    return [key for (key,) in rows]


def _source(
    id_: int,
    corpus_id: int,
    relation: int,
    schema: str | None,
    table: str | None,
    key: str,
    text: str,
    mode: str,
    name: str | None,
    key_type: str | None,
    unfit: str | None,
    unfit_key: str | None,
    unfit_text: str | None,
    blinded: bool,
    readable: bool | None,
    writable: bool | None,
    triggered: bool,
    foreign_code: str | None,
) -> Source:
    fault = None
    if name is None:
        fault = "the table is gone: detach it by its oid"
        name = f"with the oid {relation}"
    elif unfit:
        fault = unfit
    elif unfit_key or unfit_text:
        column = key if unfit_key else text
        fault = f'its column "{column}" {unfit_key or unfit_text}'
    elif blinded:
        fault = (
            "row security hides rows of it from this role, which would take them for deleted; let a "
            "worker run as a role with BYPASSRLS, or as the owner"
        )
    elif not readable:
        fault = "this role may not read it (GRANT SELECT)"
    elif not writable:
        fault = "this role may not write to its corpus (textsim.grant_writer)"
    elif not triggered:
        # It may be another table: that of one that is gone is dumped as its oid, which in another
        # database is the oid of anything.
        fault = (
            "it does not have the triggers that keep it indexed: detach it, and if it is the right "
            "table, attach it again"
        )
    elif foreign_code:
        fault = (
            f"{foreign_code} calls a function of another role, which would run with the rights of "
            "this one; let a worker run as the owner of that function"
        )
    return Source(id_, corpus_id, relation, schema, table, key, text, mode, name, key_type, fault)
