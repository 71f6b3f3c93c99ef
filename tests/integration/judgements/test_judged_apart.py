"""Documents that were judged different are no twins, whichever way the second one is written."""

from __future__ import annotations

import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sources import index_all_pending
from tests.support.unique_ways import BATCHES, CALLS, OF_TABLES
from textsim_db.compare.match_rule import form_hash
from textsim_db.results import Outcome
from textsim_db.text.tokens import normal_form

STANDING = "one two three four five six seven eight nine ten red"
NEAR = STANDING.replace("red", "blue")

WAYS = CALLS | BATCHES | OF_TABLES


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
        assert not write(corpus, connection, key, text, scope).is_stored, name
        assert key not in corpus, name
        connection.execute("DELETE FROM t")
        corpus.judge(f"s{number}", key, "different")
        assert write(corpus, connection, key, text, scope).is_stored, name
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
        corpus._judge_many([(key, f"s{number}", "different", None, None, None, hashes)])
        changed = text.replace("blue", "green")
        assert not write(corpus, connection, key, changed, scope).is_stored, name
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
