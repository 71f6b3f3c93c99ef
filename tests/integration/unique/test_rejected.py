"""A text that was rejected does not come back: every writer keeps it out, and no reader shows it."""

from __future__ import annotations

import inspect
import math
import random
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.expiry import table_of
from tests.support.proxy import Proxy, cut_commit
from tests.support.readers import NO_READERS, draws, functions, python_rows, sql_rows
from tests.support.unique_ways import BATCHES, CALLS
from tests.support.waiting import CLIENT_WAITS_FOR_A_LOCK, wait_until
from textsim_db.results import Outcome, Rejected

TEXT = "win a new phone today just click on the link below and follow our page for more"
NEAR = TEXT + " offers"
OTHER = "an oak table for six people that is two metres long with scratches on one leg"
SETTINGS: dict[str, dict[str, Any]] = {
    "exact": {"recall": 1},
    "bands": {},
    "guarded": {"recall": 1, "guards": ["numbers"]},
    "scoped": {"recall": 1, "scoped": True},
    "char": {"shingle": "char:5"},
}


def scope_of(corpus: ts.Corpus) -> str | None:
    return "s" if corpus.config.scoped else None


@pytest.fixture(params=SETTINGS)
def posts(request: pytest.FixtureRequest, db: ts.Database) -> ts.Corpus:
    """A corpus that has rejected TEXT, whose key was 1."""
    corpus = db.create_corpus("posts", threshold=0.6, is_unique=True, **SETTINGS[request.param])
    corpus.add("1", TEXT, scope_of(corpus))
    assert corpus.reject("1", "spam") == "rejected: 1"
    return corpus


@pytest.mark.parametrize("way", CALLS | BATCHES)
@pytest.mark.both_servers
def test_every_writer_keeps_it_out(posts: ts.Corpus, connection: Connection, way: str) -> None:
    for key, text in [("2", TEXT), ("2", NEAR), ("1", TEXT), ("1", NEAR)]:
        written = (CALLS | BATCHES)[way](posts, connection, key, text, scope_of(posts))
        assert (written.is_stored, written.standing) == (False, ["rejected: 1"])
        assert "spam" in written.message or way in BATCHES
    assert len(posts) == 0
    assert posts.add_unique("1", OTHER, scope_of(posts)).outcome is Outcome.NEW
    if posts.config.guards:
        assert posts.add_unique("2", TEXT + " 7", scope_of(posts)).outcome is Outcome.NEW
    if posts.config.scoped:
        assert posts.add_unique("2", TEXT, "another").outcome is Outcome.NEW
    assert posts.check() == []


def test_rows_of_attached_tables_are_kept_out(db: ts.Database, connection: Connection) -> None:
    posts = db.create_corpus("posts", threshold=0.6, recall=1, is_unique=True)
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, body text)")
    posts.attach("post", "id", "body")
    connection.execute("INSERT INTO post VALUES (1, %s), (2, %s)", [TEXT, OTHER])
    assert posts.reject("1", "spam") == "rejected: 1"
    with pytest.raises(pg.UniqueViolation, match="rejected: 1") as caught:
        connection.execute("INSERT INTO post VALUES (3, %s)", [NEAR])
    assert "It was rejected: spam" in str(caught.value.diag.message_detail)
    with pytest.raises(pg.UniqueViolation, match="rejected: 1"):
        connection.execute("UPDATE post SET body = %s WHERE id = 2", [NEAR])
    assert [refusal.key for refusal in posts.reconcile().refused] == ["1"]
    assert 'matches document "rejected: 1"' in posts.pending()[0].error
    connection.execute("SET session_replication_role = replica")
    connection.execute("INSERT INTO post VALUES (4, %s)", [NEAR])
    connection.execute("RESET session_replication_role")
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
        "SELECT 'change', s.corpus_id, s.id, '{4}' FROM textsim.source s"
    )
    connection.execute("CALL textsim.index_pending('posts')")
    assert [each.key for each in posts.pending() if '"rejected: 1"' in each.error] == ["1", "4"]
    connection.execute("DELETE FROM post WHERE id IN (1, 4)")
    assert posts.rejected() == [Rejected("rejected: 1", "spam", None)]
    assert (len(posts), "2" in posts) == (1, True)
    assert posts.reconcile().refused == []
    assert posts.check() == []


def in_any_order(answer: Any) -> list[str]:
    """Return the rows of a function of SQL, or its error; not every function has an order."""
    return sorted(map(str, answer)) if isinstance(answer, list) else [str(answer)]


OF_HISTORY = {"rejected", "cluster_events"}
"""Readers that show rejected or removed documents."""


@pytest.mark.both_servers
def test_no_reader_shows_it(db: ts.Database, connection: Connection, rng: random.Random) -> None:
    corpus = db.create_corpus(
        "c",
        threshold=0.5,
        recall=rng.choice([0.95, 1]),
        passages=6,
        is_unique=True,
        guards=rng.choice([[], ["numbers"]]),
        keep_for=rng.choice([None, timedelta(days=1)]),
    )
    texts = dict(documents(60, words=25, planted=0.5, seed=rng.randrange(10**6)))
    gone = rng.sample(sorted(texts), 15)
    for key in sorted(texts.keys() - {*gone}):
        corpus.add(key, texts[key], unique_from=math.inf)
    corpus.track(mode="queue")
    calls = []
    for function in functions(connection):
        if function.columns and function.name not in NO_READERS | OF_HISTORY:
            parameters = inspect.signature(function.method).parameters
            values = draws(corpus, texts, rng)
            named = {name: values[name] for name in function.arguments if name in parameters}
            calls.append((function, named))
    assert len(calls) > 10

    def answers() -> dict[str, tuple[Any, list[str]]]:
        corpus.update_clusters()
        return {
            function.name: (
                python_rows(function, corpus, arguments),
                in_any_order(sql_rows(function, connection, arguments)),
            )
            for function, arguments in calls
        }

    before = answers()
    for key in gone:
        if rng.random() < 0.5:
            corpus.add(key, texts[key], unique_from=math.inf)
        else:
            statement = b"SELECT textsim.add('c', %s, %s, unique_from => 'Infinity')"
            connection.execute(statement, [key, texts[key]])
        if rng.random() < 0.5:
            corpus.update_clusters()
        corpus.reject(key, "an example")
    assert answers() == before
    assert len(corpus) == len(texts) - len(gone)
    assert corpus.check() == []
    corpus.rebuild(threshold=0.6)
    assert [each.key for each in corpus.rejected()] == sorted(f"rejected: {key}" for key in gone)
    assert {corpus.add_unique("new", texts[key]).outcome for key in gone} == {Outcome.REJECTED}
    assert corpus.check() == []


def test_a_key_may_be_rejected_twice(posts: ts.Corpus, connection: Connection) -> None:
    posts.add("1", OTHER, scope_of(posts))
    connection.execute("SELECT textsim.reject('posts', '1', 'an offer')")
    assert [each[:2] for each in posts.rejected(scope_of(posts))] == [
        ("rejected 2: 1", "an offer"),
        ("rejected: 1", "spam"),
    ]
    assert posts.add_unique("2", OTHER, scope_of(posts)).reason == "an offer"
    assert posts.remove(["rejected 2: 1"]) == 1
    assert posts.add_unique("2", OTHER, scope_of(posts)).outcome is Outcome.NEW
    assert posts.forget(["1"]).documents == 1
    assert posts.rejected() == []
    assert posts.add_unique("1", TEXT, scope_of(posts)).outcome is Outcome.NEW


def test_a_corpus_that_is_not_unique_keeps_no_rejections(db: ts.Database) -> None:
    posts = db.create_corpus("posts", threshold=0.6, recall=1, is_unique=True)
    posts.add_many({"1": TEXT, "2": OTHER})
    posts.reject("1", "spam")
    posts.rebuild(is_unique=False)
    assert (posts.rejected(), len(posts), posts.check()) == ([], 1, [])
    with pytest.raises(ts.ConfigurationError, match="not unique"):
        posts.reject("2", "an offer")


def test_a_rejection_expires(db: ts.Database, connection: Connection) -> None:
    posts = db.create_corpus("posts", threshold=0.6, is_unique=True, keep_for="1 day")
    posts.add("1", TEXT)
    posts.reject("1", "spam")
    connection.execute(f"UPDATE {table_of(connection, posts)} SET expires_at = now()".encode())
    assert posts.rejected() == []
    assert posts.add_unique("2", NEAR).outcome is Outcome.NEW
    assert posts.expire() == 1
    assert posts.check() == []


def test_a_document_that_does_not_count_cannot_be_rejected(posts: ts.Corpus) -> None:
    for key in ("1", "rejected: 1", "2"):
        with pytest.raises(ts.DocumentNotFound, match=key):
            posts.reject(key, "spam")


def test_a_rejection_is_repeated_after_a_conflict(
    db: ts.Database, connection: Connection, database_url: str
) -> None:
    posts = db.create_corpus("posts", threshold=0.6, recall=1, is_unique=True)
    posts.add("1", TEXT)
    keys: list[str] = []
    thread = threading.Thread(target=lambda: keys.append(posts.reject("1", "spam")))
    with psycopg.connect(database_url) as client:
        client.execute("SET deadlock_timeout = '1min'")  # so that the rejection is cancelled
        statement = f"SELECT FROM {table_of(connection, posts)} WHERE key = '1' FOR UPDATE"
        client.execute(statement.encode())
        thread.start()
        wait_until(connection, CLIENT_WAITS_FOR_A_LOCK)
        statement = "SELECT outcome FROM textsim.add_unique('posts', '2', %s)"
        assert client.execute(statement, [NEAR]).fetchone() == ("twin",)
    thread.join()
    assert keys == ["rejected: 1"]
    assert (posts.rejected(), posts.check()) == ([Rejected("rejected: 1", "spam", None)], [])


@pytest.mark.parametrize("when", ["after", "before"])
def test_a_rejection_is_repeated_after_a_lost_commit(
    posts: ts.Corpus, proxy: Proxy, when: str
) -> None:
    posts.add("1", OTHER, scope_of(posts))
    with ts.connect(proxy.url) as proxied_db:
        corpus = proxied_db.corpus("posts")
        proxy.cut = cut_commit(1, when)
        assert corpus.reject("1", "an offer") == "rejected 2: 1"
    assert proxy.cuts == 1
    assert [each.reason for each in posts.rejected()] == ["an offer", "spam"]


def test_the_commands(textsim: Textsim, db: ts.Database) -> None:
    db.create_corpus("posts", threshold=0.6, recall=1, is_unique=True).add("1", TEXT)
    assert "rejected: 1" in textsim("reject", "posts", "1", "spam").stderr
    assert "spam" in textsim("rejected", "posts").stdout
    textsim("remove", "posts", "rejected: 1")
    assert "spam" not in textsim("rejected", "posts").stdout
