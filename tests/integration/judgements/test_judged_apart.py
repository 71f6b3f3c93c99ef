"""Documents that were judged different are no twins, whichever way the second one is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from psycopg.errors import UniqueViolation

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sources import index_all_pending
from textsim_db.compare.match_rule import form_hash
from textsim_db.results import Outcome
from textsim_db.text.tokens import normal_form

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


@pytest.fixture(params=[(1.0, None), (0.95, "s")], ids=["exact", "bands, scoped"])
def corpus(db: ts.Database, connection: Connection, request: pytest.FixtureRequest) -> ts.Corpus:
    """A unique corpus with an attached table."""
    recall, scope = request.param
    corpus = db.create_corpus(
        "c", shingle="word:2", threshold=0.6, recall=recall, is_unique=True, scoped=bool(scope)
    )
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text, scope text)")
    corpus.attach("t", "id", "body", scope="scope" if scope else None)
    return corpus


def texts_of(number: int) -> tuple[str, str]:
    """Return two similar texts, which match no texts of other numbers."""
    text = NEAR.replace("four", f"w{number}").replace("five", f"v{number}")
    return text, text.replace("blue", "red")


def test_a_pair_judged_different_is_no_twin(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    scope = "s" if corpus.config.scoped else None
    corpus.add("0", STANDING, scope)
    for number, (name, write) in enumerate(WAYS.items()):
        (text, standing), key = texts_of(number), f"k{number}"
        corpus.add(f"s{number}", standing, scope)
        with suppress(UniqueViolation, ts.DuplicateError):
            write(corpus, connection, key, text, scope)
        assert key not in corpus, name
        connection.execute("DELETE FROM t")
        corpus.judge(f"s{number}", key, "different")
        write(corpus, connection, key, text, scope)
        assert key in corpus, name
        connection.execute("ALTER TABLE t DISABLE TRIGGER ALL")
        connection.execute("DELETE FROM t")
        connection.execute("ALTER TABLE t ENABLE TRIGGER ALL")
        # Nobody judged a third document.
        assert corpus.add_unique("third", f"{text} too", scope).outcome is Outcome.TWIN, name
    corpus.rebuild(seed=7)
    index_all_pending(db, corpus)
    assert value(connection, "SELECT count(*) FROM textsim.document_2 WHERE forced") == 0


def test_a_changed_text_is_a_twin_again(corpus: ts.Corpus, connection: Connection) -> None:
    """Each way to write the text of a judged document: as it was judged, and with new words."""
    scope = "s" if corpus.config.scoped else None
    for number, (name, write) in enumerate(WAYS.items()):
        (text, standing), key = texts_of(number), f"k{number}"
        corpus.add(f"s{number}", standing, scope)
        hashes = form_hash(normal_form(text)), form_hash(normal_form(standing))
        corpus.judge_many([(key, f"s{number}", "different", None, None, None, hashes)])
        with suppress(ts.DuplicateError, UniqueViolation):
            write(corpus, connection, key, text.replace("blue", "green"), scope)
        assert key not in corpus, name
        connection.execute("DELETE FROM t")
        write(corpus, connection, key, text.upper(), scope)
        assert key in corpus, name
        # The text of the other side changes.
        with pytest.raises(ts.DuplicateError):
            corpus.add(f"s{number}", text.replace("blue", "white"), scope)
    assert [problem for problem in corpus.check() if problem.kind != "drift"] == []


def test_check_and_rebuild_ask_the_judgements(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.6, recall=1)
    corpus.add_many([("0", STANDING), ("x", NEAR), ("y", f"{NEAR} too")])
    corpus.judge("0", "x", "different")
    corpus.judge("y", "0", "different")
    with pytest.raises(ts.ConfigurationError, match='1 pair of its documents match: "x" and "y"'):
        corpus.rebuild(is_unique=True)
    corpus.judge("y", "x", "different")
    assert corpus.rebuild(is_unique=True)
    assert corpus.check() == []
    corpus.unjudge("y", "x")
    assert [(each.kind, each.subject) for each in corpus.check()] == [("twin", "y")]
