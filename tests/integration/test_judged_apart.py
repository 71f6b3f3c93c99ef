"""Documents that were judged different are no twins, whichever way the second one is written."""

from __future__ import annotations

import pytest
from psycopg.errors import UniqueViolation

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sources import index_all_pending
from tests.support.ways_to_write import NEAR, STANDING, WAYS
from textsim_db.results import Outcome


@pytest.mark.parametrize(("recall", "scoped"), [(1.0, False), (0.95, True)])
def test_a_pair_judged_different_is_no_twin(
    db: ts.Database, connection: Connection, recall: float, scoped: bool
) -> None:
    corpus = db.create_corpus(
        "c", shingle="word:2", threshold=0.6, recall=recall, is_unique=True, scoped=scoped
    )
    scope = "s" if scoped else None
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text, scope text)")
    corpus.attach("t", "id", "body", scope="scope" if scoped else None)
    corpus.add("0", STANDING, scope)
    for number, (name, write) in enumerate(WAYS.items()):
        # Words of its own keep the pairs of the ways apart.
        text, key = NEAR.replace("four", f"w{number}").replace("five", f"v{number}"), f"k{number}"
        corpus.add(f"s{number}", text.replace("blue", "red"), scope)
        is_refused = False
        try:
            write(corpus, connection, key, text, scope)
        except (UniqueViolation, ts.DuplicateError):
            is_refused = True
        assert key not in corpus, name
        connection.execute("DELETE FROM t")
        corpus.judge(f"s{number}", key, "different")
        write(corpus, connection, key, text, scope)
        assert key in corpus, (name, is_refused)
        connection.execute("ALTER TABLE t DISABLE TRIGGER ALL")
        connection.execute("DELETE FROM t")
        connection.execute("ALTER TABLE t ENABLE TRIGGER ALL")
        # Nobody judged a third document.
        assert corpus.add_unique("third", f"{text} too", scope).outcome is Outcome.TWIN, name
    corpus.rebuild(seed=7)
    index_all_pending(db, corpus)
    assert value(connection, "SELECT count(*) FROM textsim.document_2 WHERE forced") == 0


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
