"""Reads the documents of a table, and writes a new table with their clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, LiteralString, NamedTuple

import numpy as np
import psycopg
from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine

from textsim_db.cluster.keep_rule import Preference
from textsim_db.db.engine import Connection, read_rows, transaction
from textsim_db.dedupe.by_temporary_corpus import Deduplication, Document, Removal, Rule
from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.read.snapshot import snapshot
from textsim_db.sync.table_names import table_oid

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database

_CHUNK = 2000
_TABLE = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""
_COLUMNS = """
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# The key as for a document of an attached table, NULL if a column is NULL; and how to look up a row.
_KEY = """
SELECT CASE WHEN cardinality(s.key_columns) > 1 THEN textsim._columns_fault(
        s.relation, s.key_columns, %(text)s::name, %(scope)s::name, NULL, '{}') END,
    pg_catalog.format('CASE WHEN pg_catalog.num_nulls(%%s) = 0 THEN %%s END', pg_catalog.concat_ws(', ',
        VARIADIC array(SELECT pg_catalog.format('t.%%I', c) FROM pg_catalog.unnest(s.key_columns) c)),
        textsim._key_of(s, 't')),
    textsim._has_key(s, 't', 'q.key')
FROM (SELECT %(relation)s::oid::regclass, %(keys)s::text[]::name[]) k (relation, columns)
CROSS JOIN LATERAL pg_catalog.jsonb_populate_record(NULL::textsim.source, pg_catalog.jsonb_build_object(
    'relation', k.relation, 'key_columns', k.columns,
    'key_types', textsim._key_types(k.relation, k.columns))) s
"""
_DOCUMENTS: LiteralString = (
    "SELECT {key}, t.{text}::text, {place}, {scope}::text FROM {table} t ORDER BY {key_order}"
)
_TEXTS: LiteralString = """
SELECT q.key, r.text FROM pg_catalog.unnest(%s::text[]) q (key)
CROSS JOIN LATERAL (SELECT t.{text}::text FROM {table} t WHERE {has_key} OFFSET 0) r (text)
"""
# PostgreSQL sorts NaN above all numbers, so NaN counts as NULL here.
_VALUE: LiteralString = "CASE WHEN t.{value}::text <> 'NaN' THEN t.{value} END"
_PLACE: dict[str, LiteralString] = {
    "max": f"pg_catalog.row_number() OVER (ORDER BY {_VALUE} DESC NULLS LAST, {{key_order}})",
    "min": f"pg_catalog.row_number() OVER (ORDER BY {_VALUE} NULLS LAST, {{key_order}})",
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


_COLUMNS_WRITTEN = ("key", "cluster", "kept", "similarity")
_ATTACHED = """
SELECT c.name, c.id, s.id FROM textsim.source s JOIN textsim.corpus c ON c.id = s.corpus_id
WHERE s.active AND s.relation = %s AND s.key_columns = %s::text[]::name[] AND s.text_column = %s
    AND s.scope_column IS NOT DISTINCT FROM %s AND s.row_filter IS NULL AND s.expires_column IS NULL
    AND c.keep_for IS NULL AND NOT c.is_unique
    AND pg_catalog.has_table_privilege(pg_catalog.format('textsim.document_%%s', c.id), 'SELECT')
ORDER BY c.name COLLATE "C"
"""


class Columns(NamedTuple):
    """The columns of a table that are read."""

    keys: list[str]
    text: str
    scope: str | None = None
    """None if rows of all scopes are compared."""


class Table(NamedTuple):
    """A table with texts, after its columns were checked."""

    name: sql.Composable
    columns: Columns
    key: LiteralString
    """The expression for the key of a row t."""
    has_key: LiteralString
    """The condition that a row t has the key q.key."""
    key_type: str
    """The type of the key in SQL; text if it has several columns."""
    preference: Preference
    """Decides which document of a cluster stays."""
    relation: int
    """The oid of the table."""

    def statement(self, text: LiteralString, **parts: sql.Composable) -> sql.Composed:
        """Return SQL with the names filled in."""
        value = sql.Identifier(self.preference.column or self.columns.keys[0])
        keys, text_, scope = self.columns
        names: dict[str, sql.Composable] = {
            "key": sql.SQL(self.key),
            "has_key": sql.SQL(self.has_key),
            "key_order": sql.SQL(", ").join(sql.Identifier("t", key) for key in keys),
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
        for column in filter(None, (*columns.keys, *columns[1:], preference.column)):
            if column not in types:
                others = ", ".join(f'"{other}"' for other in list(types)[:12])
                raise ConfigurationError(
                    f'table {name} has no column "{column}"; it has {others}{suggestion(column, types)}'
                )
        key = connection.execute(_KEY, {"relation": relation, **columns._asdict()}).fetchone()
    assert row is not None
    assert key is not None
    fault, expression, condition = key
    if fault is not None:
        raise ConfigurationError(f"the key of table {name} cannot be used: its {fault}")
    key_type = types[columns.keys[0]] if len(columns.keys) == 1 else "text"
    identifier = sql.Identifier(*row)
    return Table(identifier, columns, expression, condition, key_type, preference, relation)


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
                column = table.columns.keys[0]
                problem = "NULL" if key is None else f'"{key}" twice'
                raise ConfigurationError(
                    f'the column "{column}" has {problem}; keys must be unique and NOT NULL'
                )
            keys.append(key)
            yield Document(text, value, scope)


def texts_by_key(engine: Engine, table: Table, keys: list[str]) -> dict[str, str]:
    """Return the texts of rows by their keys; a row that was removed since has none."""
    rows = read_rows(engine, table.statement(_TEXTS), [keys])
    return {key: text for key, text in rows if text is not None}


def attached_corpus(database: Database, table: Table) -> Corpus | None:
    """Return a corpus that the table is attached to, and that has exactly its rows; or None.

    Raises ConfigurationError if the corpus is behind the table.
    """
    with transaction(database.engine) as connection:
        corpora = connection.execute(_ATTACHED, [table.relation, *table.columns]).fetchall()
        names = [name for name, *ids in corpora if not _has_other_documents(connection, *ids)]
    if not names:
        return None
    corpus = database.corpus(names[0])
    status = corpus.status()
    if status.pending or status.problems:
        reason = status.problems[0] if status.problems else "changes of the table are pending"
        raise ConfigurationError(
            f'the corpus "{corpus.name}" of the table is not up to date: {reason}; run textsim worker, '
            "or give a setting, such as --threshold, to index the table for this command alone"
        )
    return corpus


def _has_other_documents(connection: Connection, corpus_id: int, source_id: int) -> bool:
    """Say whether a corpus has documents that are not from a source."""
    statement = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE source_id IS DISTINCT FROM %s)")
    documents = sql.Identifier("textsim", f"document_{corpus_id}")
    row = connection.execute(statement.format(documents), [source_id]).fetchone()
    return bool(row and row[0])


def deduplicate_attached(
    corpus: Corpus, documents: Iterable[Document], keys: list[str], rule: Rule
) -> Deduplication:
    """Find the documents to remove in the corpus of an attached table; documents: as documents()."""
    lengths, values = [], []
    for text, value, _ in documents:
        lengths.append(len(text or ""))
        values.append(value)
    ranks = rule.preference.ranks(np.array(lengths, np.int64), values).tolist()
    numbers = {key: number for number, key in enumerate(keys)}
    # A row may have been added or removed since the table was read.
    duplicates = corpus.duplicates(
        linkage=rule.linkage, rank=lambda key: ranks[numbers[key]] if key in numbers else len(ranks)
    )
    removals = [
        Removal(numbers[d.key], numbers[d.kept], d.similarity)
        for d in duplicates
        if d.key in numbers and d.kept in numbers
    ]
    refused = [(numbers[f.key], f.error) for f in corpus.failures() if f.key in numbers]
    return Deduplication(len(keys), removals, refused, {})


def check_target(engine: Engine, table: Table, into: str, is_replaced: bool) -> None:
    """Raise ConfigurationError if the table cannot be written; writes nothing."""
    with transaction(engine) as connection:
        _prepare_target(connection, table, into, is_replaced)
        raise psycopg.Rollback


def write_clusters(
    engine: Engine,
    table: Table,
    into: str,
    is_replaced: bool,
    keys: list[str],
    result: Deduplication,
) -> bool:
    """Write a row for each member of each cluster, in one transaction.

    Return whether the rows of an earlier run were replaced. Its table, with its rights and views, stays,
    and until the end other sessions read the earlier rows.
    """
    with transaction(engine) as connection:
        name, exists = _prepare_target(connection, table, into, is_replaced)
        if exists:
            connection.execute(table.statement("DELETE FROM {into}", into=name))
        else:
            for comment in _COMMENTS:
                connection.execute(table.statement(comment, into=name))
        statement = sql.SQL("/* textsim-db: write clusters */ COPY {} FROM STDIN").format(name)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for number, removals in enumerate(result.clusters(), start=1):
                kept = keys[removals[0].kept]
                copy.write_row((kept, number, kept, 1.0))
                for removal in removals:
                    copy.write_row((keys[removal.number], number, kept, removal.similarity))
    return exists


def _prepare_target(
    connection: Connection, table: Table, into: str, is_replaced: bool
) -> tuple[sql.Identifier, bool]:
    """Create the table, or lock the table of an earlier run; return its name and whether it existed."""
    try:
        row = connection.execute("SELECT pg_catalog.parse_ident(%s)", [into]).fetchone()
        assert row is not None
        name = sql.Identifier(*row[0])
        if is_replaced and _is_earlier_result(connection, table, name, into):
            # A second run waits here, and then replaces the rows of the first one.
            connection.execute(
                table.statement("LOCK TABLE {into} IN SHARE ROW EXCLUSIVE MODE", into=name)
            )
            return name, True
        connection.execute(table.statement(_CREATE, into=name))
    except pg.InvalidParameterValue as error:
        raise ConfigurationError(f"{into!r} is not the name of a table: {error}") from error
    except psycopg.ProgrammingError as error:  # the table exists, or the role may not write it
        way_out = (
            "; choose another --into, or --replace its rows"
            if isinstance(error, pg.DuplicateTable)
            else ""
        )
        raise ConfigurationError(
            f"{into} cannot be written: {error.diag.message_primary}{way_out}"
        ) from error
    return name, False


def _is_earlier_result(
    connection: Connection, table: Table, name: sql.Identifier, into: str
) -> bool:
    """Say whether such a table exists; raise ConfigurationError if its columns are not those written."""
    relation = connection.execute(
        "SELECT c.oid FROM pg_catalog.pg_class c "
        "WHERE c.oid = pg_catalog.to_regclass(%s) AND c.relkind = 'r'",
        [name.as_string(connection)],
    ).fetchone()
    if relation is None:
        return False
    types = (table.key_type, "bigint", table.key_type, "double precision")
    expected = list(zip(_COLUMNS_WRITTEN, types, strict=True))
    columns = connection.execute(_COLUMNS, relation).fetchall()
    if columns != expected:
        lists = (", ".join(f"{n} {t}" for n, t in each) for each in (columns, expected))
        raise ConfigurationError(
            "{} is not replaced: it has the columns ({}), and a table of clusters has ({}); choose "
            "another --into".format(into, *lists)
        )
    return True
