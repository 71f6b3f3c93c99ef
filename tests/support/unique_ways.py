"""Every way to write one document to a unique corpus, and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from psycopg.errors import UniqueViolation

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.results import Outcome


class Written(NamedTuple):
    is_stored: bool
    standing: list[str]
    """The keys of the documents that keep the text out, if the writer learns them."""
    message: str


STORED = Written(True, [], "")
Way = Callable[..., Written]
"""A function of a corpus, a connection, a key, a text, a scope, and arguments of a call."""


def _by_statement(statement: str) -> Way:
    """Return a way whose statement returns the keys that keep the text out; {} stands for arguments."""

    def write(
        corpus: ts.Corpus,
        connection: Connection,
        key: str,
        text: str,
        scope: Any = None,
        **named: Any,
    ) -> Written:
        values = {"corpus": corpus.name, "key": key, "text": text, "scope": scope, **named}
        arguments = "".join(f", {name} => %({name})s" for name in named)
        try:
            cursor = connection.execute(statement.format(arguments).encode(), values)
        except UniqueViolation as error:
            detail = str(error.diag.message_detail)
            standing = detail.partition("(")[2].partition(")")[0]
            return Written(False, [standing], f"{error.diag.message_primary} {detail}")
        rows = cursor.fetchall() if cursor.description else []
        return Written(False, [row[0] for row in rows], str(rows)) if rows else STORED

    return write


def _add(corpus: ts.Corpus, _: Connection, *document: Any, **named: Any) -> Written:
    try:
        corpus.add(*document, **named)
    except ts.DuplicateError as error:
        return Written(False, [match.key for match in error.matches], str(error))
    return STORED


def _add_unique(corpus: ts.Corpus, _: Connection, *document: Any, **named: Any) -> Written:
    answer = corpus.add_unique(*document, **named)
    assert answer.is_stored is (answer.outcome not in (Outcome.TWIN, Outcome.REJECTED))
    if answer.is_stored:
        return STORED
    return Written(False, [match.key for match in answer.matches], str(answer.reason))


def _add_many(corpus: ts.Corpus, _: Connection, *document: Any, **named: Any) -> Written:
    report = corpus.add_many([tuple(part for part in document if part is not None)], **named)
    return Written(not report.twins, [twin.standing for twin in report.twins], "")


def _twins_of(corpus: ts.Corpus, connection: Connection, *document: Any) -> Written:
    written = _ask_twins_of(corpus, connection, *document)
    return _add_many(corpus, connection, *document) if written.is_stored else written


def _unseen(finish: Callable[[ts.Corpus, Connection], object]) -> Way:
    """Return a way in which the triggers do not see the row, and something else finds it."""

    def write(corpus: ts.Corpus, connection: Connection, key: str, *rest: Any) -> Written:
        connection.execute("ALTER TABLE t DISABLE TRIGGER ALL")
        _insert(corpus, connection, key, *rest)
        connection.execute("ALTER TABLE t ENABLE TRIGGER ALL")
        finish(corpus, connection)
        return Written(key in corpus, [], "")

    return write


def _index_pending(corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id) VALUES ('compare', 1, 1)"
    )
    connection.execute("CALL textsim.index_pending(%s)", [corpus.name])


_OF_CALL = "%(corpus)s, %(key)s, %(text)s, %(scope)s{}"
_ask_twins_of = _by_statement(
    "SELECT standing FROM textsim.twins_of("
    "%(corpus)s, ARRAY[%(key)s], ARRAY[%(text)s], ARRAY[%(scope)s])"
)
_insert = _by_statement("INSERT INTO t VALUES (%(key)s, %(text)s, %(scope)s)")
CALLS: dict[str, Way] = {
    "add": _add,
    "add_unique": _add_unique,
    "sql add": _by_statement(f"SELECT FROM textsim.add({_OF_CALL}) a WHERE a IS NULL"),
    "sql add_unique": _by_statement(
        f"SELECT key, outcome, reason FROM textsim.add_unique({_OF_CALL}) "
        "WHERE outcome IN ('twin', 'rejected')"
    ),
}
"""These take force and unique_from."""
BATCHES: dict[str, Way] = {"add_many": _add_many, "sql twins_of": _twins_of}
OF_TABLES: dict[str, Way] = {
    "table": _insert,
    "reconcile": _unseen(lambda corpus, _: corpus.reconcile()),
    "index_pending": _unseen(_index_pending),
}
"""Rows of the table t (id, body, scope), which is attached to the corpus."""
