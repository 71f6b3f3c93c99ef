"""The integrity of attached tables: each row has its document, and each document its row.

Compares keys, in the server. Changes that wait in the log are no contradiction. `reconcile --check` also
compares the texts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from shlex import quote
from typing import Any, LiteralString

import psycopg
from psycopg import errors as pg, sql

from textsim_db.db.engine import Connection, is_trouble
from textsim_db.db.statements import ALIVE
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.integrity import statements
from textsim_db.results import Problem

log = logging.getLogger(__name__)


def source_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    """Yield the documents of unknown tables, rows without a document and documents without a row."""
    for id_, count, key in connection.execute(corpus.statement(statements.UNKNOWN_SOURCES)):
        detail = f"{count} documents name it, such as {key!r}, but textsim.source does not have it"
        remedy = (
            f"UPDATE textsim.document_{corpus.id} SET source_id = NULL WHERE source_id = {id_}; then "
            "attach the table again if it still exists: textsim attach"
        )
        yield Problem("unknown table", f"source {id_}", detail, remedy)
    for source in connection.execute(corpus.statement(statements.COMPARABLE_SOURCES)).fetchall():
        id_, table, *names, fault = source
        if fault is not None:
            log.warning("table %s was not compared with its documents: %s", table, fault)
            continue
        try:
            with connection.transaction():
                problems = list(_differences(connection, corpus, id_, table, names))
        except psycopg.Error as error:
            if is_trouble(error) or isinstance(error, pg.QueryCanceled):
                raise
            detail = f"it cannot be compared with its documents: {error.diag.message_primary}"
            problems = [Problem("attached table", table, detail, _reconcile(corpus))]
        yield from problems


def _reconcile(corpus: StoredCorpus) -> str:
    return f"once that is mended: textsim reconcile {quote(corpus.name)}"


def _differences(
    connection: Connection, corpus: StoredCorpus, id_: int, table: str, names: list[Any]
) -> Iterator[Problem]:
    """Yield the rows of a table without a document, and the documents without a row."""
    for key in _keys(connection, corpus, statements.DOCUMENTS_WITHOUT_ROW, id_, names):
        # Not reconcile, which cannot look up a key that is not of the key column's type.
        remove = sql.SQL(statements.REMOVE_DOCUMENT).format(
            source=sql.Literal(id_), key=sql.Literal(key), id=sql.Literal(corpus.id)
        )
        detail = f"table {table} has no row of this key"
        yield Problem("surplus document", key, detail, remove.as_string(None))
    for key in _keys(connection, corpus, statements.ROWS_WITHOUT_DOCUMENT, id_, names):
        yield Problem(
            "missing document",
            key,
            f"table {table} has a row of this key",
            f"textsim reconcile {quote(corpus.name)}",
        )


def _keys(
    connection: Connection,
    corpus: StoredCorpus,
    statement: LiteralString,
    source_id: int,
    names: list[Any],
) -> Iterator[str]:
    schema, table, key, has_document = names
    filled = sql.SQL(statement).format(
        id=sql.Literal(corpus.id),
        document=sql.Identifier("textsim", f"document_{corpus.id}"),
        relation=sql.Identifier(schema, table),
        key=sql.SQL(key),
        has_document=sql.SQL(has_document),
        alive=sql.SQL("" if corpus.config.keep_for is None else ALIVE),
        source=sql.Literal(source_id),
    )
    for (key,) in connection.execute(filled):
        yield key
