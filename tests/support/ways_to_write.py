"""The ways in which a document is written to a unique corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection

STANDING = "one two three four five six seven eight nine ten red"
NEAR = STANDING.replace("red", "blue")

Write = Callable[[ts.Corpus, Connection, str, str, str | None], object]


def _of_table(finish: Callable[[ts.Corpus, Connection], object] | None) -> Write:
    """Return a writer of a row; with finish, the triggers do not see the row."""

    def write(corpus: ts.Corpus, connection: Connection, key: str, text: str, scope: Any) -> None:
        if finish is not None:
            connection.execute("ALTER TABLE t DISABLE TRIGGER ALL")
        connection.execute("INSERT INTO t VALUES (%s, %s, %s)", [key, text, scope])
        if finish is not None:
            connection.execute("ALTER TABLE t ENABLE TRIGGER ALL")
            finish(corpus, connection)

    return write


def _twins_of(corpus: ts.Corpus, connection: Connection, key: str, text: str, scope: Any) -> None:
    scopes = None if scope is None else [scope]
    query = "SELECT key FROM textsim.twins_of('c', %s, %s, %s)"
    if connection.execute(query, [[key], [text], scopes]).fetchall() == []:
        corpus.add_many([(key, text) if scope is None else (key, text, scope)])


def _index_pending(_: ts.Corpus, connection: Connection) -> None:
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id) VALUES ('compare', 1, 1)"
    )
    connection.execute("CALL textsim.index_pending('c')")


WAYS: dict[str, Write] = {
    "add": lambda _, c, *a: c.execute("SELECT textsim.add('c', %s, %s, %s)", a),
    "add_unique": lambda _, c, *a: c.execute(
        "SELECT * FROM textsim.add_unique('c', %s, %s, %s)", a
    ),
    "python add": lambda c, _, *a: c.add(*a),
    "python add_unique": lambda c, _, *a: c.add_unique(*a),
    "add_many": lambda c, _, *a: c.add_many([tuple(x for x in a if x is not None)]),
    "twins_of": _twins_of,
    "table": _of_table(None),
    "reconcile": _of_table(lambda corpus, _: corpus.reconcile()),
    "index_pending": _of_table(_index_pending),
}
