"""Writers, updates of clusters and rebuilds at once: which session waits, and the result."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Client, Clients
from tests.support.connections import Connection
from tests.support.interleaving import ADD, REMOVE, RR
from tests.support.tracked import compare
from textsim_db.settings.named_values import ModeName

ONE, TWO = "one two three four five six", "one two three four five"
LOCK = "SELECT textsim._lock_clusters(1)"
UPDATE = "SELECT textsim._update_clusters('c')"
# The server looks for deadlocks at once.
AT_ONCE = "-c deadlock_timeout=10ms"


def clusters_of(corpus: ts.Corpus) -> list[str]:
    return [member.key for member in corpus.members()]


def test_inline_writers_commit_one_after_another_and_see_each_other(
    corpus: ts.Corpus, make_client: Clients, connection: Connection
) -> None:
    corpus.track(mode="inline")
    gate, a, b = make_client("gate"), make_client("a"), make_client("b")
    a.does(a.sql(ADD, "a", ONE))
    b.does(b.sql(ADD, "b", TWO))
    gate.does(gate.sql(LOCK))
    a.waits(a.connection.commit)
    b.waits(b.connection.commit)
    assert clusters_of(corpus) == []
    gate.commit()
    a.end()
    b.end()
    assert clusters_of(corpus) == ["a", "b"]
    compare(connection, corpus, 0.7)


def test_an_inline_writer_with_an_old_snapshot_is_refused(
    corpus: ts.Corpus, make_client: Clients
) -> None:
    corpus.track(mode="inline")
    a = make_client("a", RR)
    a.does(a.sql(ADD, "a", ONE))
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="repeatable read"):
        a.commit()
    assert len(corpus) == 0


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_document_changes_while_its_clusters_are_updated(
    corpus: ts.Corpus, make_client: Clients, connection: Connection, ends: str
) -> None:
    """The writer does not wait. The update may be lost, and its entries with it are there again."""
    corpus.track()
    a, b = make_client("a"), make_client("b")
    corpus.add_many([("a", ONE), ("b", TWO), ("c", TWO)])
    assert a.does(a.sql(UPDATE)) == [(3,)]
    b.does(b.sql(ADD, "b", "another text by now, with other words"))
    b.does(b.sql(REMOVE, "c"))
    b.commit()
    getattr(a, ends)()
    corpus.update_clusters()
    assert clusters_of(corpus) == []
    compare(connection, corpus, 0.7)
    assert corpus.check() == []


def test_one_session_updates_and_another_waits_or_leaves(
    corpus: ts.Corpus, make_client: Clients
) -> None:
    corpus.track()
    a, b, c = make_client("a"), make_client("b"), make_client("c")
    corpus.add_many([("a", ONE), ("b", TWO)])
    a.does(a.sql(UPDATE))
    b.waits(b.sql(UPDATE))
    # A worker has other work, so it does not wait.
    assert c.does(c.sql("SELECT textsim._update_clusters('c', false)")) == [(0,)]
    a.rollback()
    assert b.end() == [(2,)]
    b.commit()
    assert clusters_of(corpus) == ["a", "b"]


def test_an_update_that_waited_for_a_rebuild_updates_the_new_corpus(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients
) -> None:
    """The gate locks the row of the corpus, so the rebuild waits just before it takes the name."""
    corpus.track()
    corpus.add_many([("a", ONE), ("b", TWO)])
    gate, a, b = make_client("gate"), make_client("a"), make_client("b")
    gate.does(gate.sql("SELECT FROM textsim.corpus WHERE name = 'c' FOR KEY SHARE"))
    a.waits(lambda: a.db.corpus("c").rebuild(seed=3))
    b.waits(b.sql(UPDATE))
    gate.commit()
    assert b.end() == [(2,)]
    b.commit()
    a.end()
    assert clusters_of(db.corpus("c")) == ["a", "b"]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(lambda b: b.db.corpus("c").rebuild(seed=3), id="rebuild"),
        pytest.param(lambda b: b.db.drop_corpus("c"), id="drop"),
        pytest.param(lambda b: b.db.corpus("c").untrack(), id="untrack"),
    ],
)
def test_nothing_that_locks_a_corpus_ends_an_inline_writer(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, step: Callable[[Client], object]
) -> None:
    """A writer locks documents first, and clusters when it commits; so does whoever locks both."""
    corpus.track(mode="inline")
    a, b = make_client("a", options=AT_ONCE), make_client("b")
    a.does(a.sql(ADD, "a", ONE))
    b.begin(lambda: step(b))
    a.begin(a.connection.commit)
    a.end()
    b.end()
    assert all(db.corpus(name).check() == [] for name in db.corpora())


@pytest.mark.more
@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("hidden", [1, 2])
def test_a_pair_is_judged_while_its_documents_are_being_added(
    corpus: ts.Corpus, make_client: Clients, connection: Connection, mode: ModeName, hidden: int
) -> None:
    """A judgement and its documents are committed in any order. hidden: how many documents wait."""
    corpus.track(mode=mode)
    writers = [make_client(f"writer {number}") for number in range(hidden)]
    judge = make_client("judge")
    for key, text in [("a", ONE), ("b", TWO)][: 2 - hidden]:
        corpus.add(key, text)
    for writer, key, text in zip(writers, "ba", (TWO, ONE), strict=False):
        writer.does(writer.sql(ADD, key, text))
    judge.does(judge.sql("SELECT textsim.judge('c', 'a', 'b', 'different')"))
    for writer in writers:
        writer.commit()
    if mode == "queue":
        connection.execute("CALL textsim.update_clusters('c')")
    judge.commit()
    if mode == "queue":
        connection.execute("CALL textsim.update_clusters('c')")
    assert clusters_of(corpus) == []
    compare(connection, corpus, 0.7)
    assert corpus.check() == []


@pytest.mark.more
@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize(
    "statement", ["judge('c', 'a', 'b', 'different')", "unjudge('c', 'a', 'b')"]
)
def test_a_pair_is_judged_while_a_rebuilt_corpus_replaces_its_corpus(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    mode: ModeName,
    statement: str,
) -> None:
    corpus.add_many({"a": ONE, "b": TWO})
    if statement.startswith("unjudge"):
        corpus.judge("a", "b", "different")
    corpus.track(mode=mode)
    gate, rebuilding, judge = make_client("gate"), make_client("rebuild"), make_client("judge")
    # The corpus has its new name, and its tracking waits.
    gate.does(gate.sql("SELECT FROM textsim.tracked FOR UPDATE"))
    rebuilding.waits(lambda: rebuilding.db.corpus("c").rebuild(seed=3))
    judge.begin(judge.sql(f"SELECT textsim.{statement}"))
    gate.commit()
    judge.end()
    corpus = db.corpus("c")
    corpus.update_clusters()
    judge.begin(judge.connection.commit)
    judge.end()
    rebuilding.end()
    corpus.update_clusters()
    assert clusters_of(corpus) == (["a", "b"] if statement.startswith("unjudge") else [])
    compare(connection, corpus, 0.7)
    assert corpus.check() == []


def test_a_rebuilt_corpus_waits_for_the_clusters_of_a_judgement(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection
) -> None:
    corpus.add_many({"a": ONE, "b": TWO})
    corpus.track(mode="inline")
    rebuilding, judge = make_client("rebuild"), make_client("judge", options=AT_ONCE)
    judge.does(judge.sql("SELECT textsim.judge('c', 'a', 'b', 'different')"))
    rebuilding.waits(lambda: rebuilding.db.corpus("c").rebuild(seed=3))
    judge.begin(judge.connection.commit)
    judge.end()
    rebuilding.end()
    compare(connection, db.corpus("c"), 0.7)
