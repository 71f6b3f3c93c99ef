"""Scoped corpora: documents of different scopes never meet, in Python, in SQL and in attached tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sampling import sample
from tests.support.scopes import (
    THRESHOLD,
    Document,
    random_documents,
    scopes_of_equal_bits,
    true_pairs,
)
from textsim_db.settings.named_values import Linkage, ModeName

TEXT = "the quick brown fox jumps over the lazy dog"


def create(db: ts.Database, name: str = "c", **settings: Any) -> ts.Corpus:
    chosen: dict[str, Any] = {"shingle": "word:2", "threshold": THRESHOLD, "recall": 1}
    chosen["scoped"] = True
    return db.create_corpus(name, **(chosen | settings))


@pytest.fixture(params=[1.0, pytest.param(0.999, marks=pytest.mark.more)], ids=["exact", "bands"])
def recall(request: pytest.FixtureRequest) -> float:
    return float(request.param)


def test_pairs_and_clusters_are_those_of_each_scope(
    db: ts.Database, connection: Connection, recall: float, seed: int
) -> None:
    documents = random_documents(seed, 500)
    corpus = create(db, recall=recall)
    assert corpus.add_many(documents).added == len(documents)
    expected = true_pairs(documents)
    found = {(a, b): similarity for a, b, similarity in corpus.pairs()}
    if recall == 1:
        assert found == expected
    else:
        assert expected.items() >= found.items()
        assert len(found) > 0.95 * len(expected)
    query = "SELECT * FROM textsim.pairs('c', scope => %s)"
    assert {(a, b): similarity for a, b, similarity in connection.execute(query, [None])} == found
    scope_of = {document.key: document.scope for document in documents}
    for scope in set(scope_of.values()):
        own = {pair: s for pair, s in found.items() if scope_of[pair[0]] == scope}
        assert {(a, b): s for a, b, s in corpus.pairs(scope=scope)} == own
        assert {(a, b): s for a, b, s in connection.execute(query, [scope])} == own
    for linkage in Linkage:
        for cluster in corpus.clusters(linkage=linkage):
            assert len({scope_of[key] for key in cluster.keys}) == 1
        for removed, kept, _ in corpus.duplicates(linkage=linkage):
            assert scope_of[removed] == scope_of[kept]
    in_pairs = {key for pair in found for key in pair}
    assert {key for cluster in corpus.clusters() for key in cluster.keys} == in_pairs
    assert corpus.check() == []


def test_searches_find_the_documents_of_one_scope(
    db: ts.Database, connection: Connection, recall: float, seed: int
) -> None:
    documents = random_documents(seed, 300)
    corpus = create(db, recall=recall)
    corpus.add_many(documents)
    scope_of = {document.key: document.scope for document in documents}
    texts, scopes = [d.text for d in documents], [d.scope for d in documents]
    many = corpus.query_many(texts, scope=scopes)
    for document, matches in zip(documents[:60], many, strict=False):
        key, text, scope = document
        assert key in {match.key for match in matches}
        assert {scope_of[match.key] for match in matches} == {scope}
        assert corpus.query(text, scope=scope) == matches
        assert corpus.query_many([text], scope=scope) == [matches]
        others = [match for match in matches if match.key != key]
        assert corpus.neighbours(key) == others
        pairs = [(match.key, match.similarity) for match in matches]
        query = "SELECT key, similarity FROM textsim.matches('c', %s, scope => %s)"
        assert connection.execute(query, [text, scope]).fetchall() == pairs
        query = "SELECT key, similarity FROM textsim.neighbours('c', %s)"
        assert connection.execute(query, [key]).fetchall() == [p for p in pairs if p[0] != key]
        query = "SELECT * FROM textsim.candidates('c', %s, scope => %s)"
        candidates = connection.execute(query, [text, scope]).fetchall()
        assert [tuple(each) for each in corpus.candidates(text, scope=scope)] == candidates


def test_a_scope_is_required_where_there_are_scopes_and_refused_elsewhere(
    db: ts.Database, connection: Connection
) -> None:
    scoped, plain = create(db), create(db, "plain", scoped=False)
    calls: list[Callable[[], object]] = [
        lambda: scoped.add("a", TEXT),
        lambda: scoped.query(TEXT),
        lambda: scoped.query_many([TEXT]),
        lambda: scoped.candidates(TEXT),
        scoped.measure_recall,
    ]
    for call in calls:
        with pytest.raises(ts.ConfigurationError, match='"c" is scoped, and no scope is given'):
            call()
    calls = [
        lambda: plain.add("a", TEXT, scope="x"),
        lambda: plain.query(TEXT, scope="x"),
        lambda: list(plain.pairs(scope="x")),
        lambda: list(plain.clusters(scope="x")),
        lambda: plain.statistics(scope="x"),
    ]
    for call in calls:
        with pytest.raises(
            ts.ConfigurationError, match='"plain" is not scoped; leave the scope out'
        ):
            call()
    for query in ("add('c', 'a', 'b')", "matches('c', 'a')", "candidates('c', 'a')"):
        with pytest.raises(pg.InvalidParameterValue, match="is scoped, and no scope is given"):
            connection.execute(f"SELECT textsim.{query}".encode())
    for query in ("add('plain', 'a', 'b', 's')", "pairs('plain', scope => 's')"):
        with pytest.raises(pg.InvalidParameterValue, match='"plain" is not scoped'):
            connection.execute(f"SELECT textsim.{query}".encode())
    for query in (
        "add('c', 'a', 'b', repeat('s', 201))",
        "matches('c', 'b', scope => repeat('s', 201))",
    ):
        with pytest.raises(pg.InvalidParameterValue, match="the scope is 201 bytes long"):
            connection.execute(f"SELECT textsim.{query}".encode())
    with pytest.raises(ts.ConfigurationError, match="2 scopes and 1 texts"):
        scoped.query_many([TEXT], scope=["a", "b"])


IMPOSSIBLE: list[tuple[Any, str]] = [
    (None, "the scope is missing"),
    ("x" * 201, "201 bytes long; at most 200 are possible"),
    ("a\0", "NUL character"),
    ("\ud800", "lone surrogate"),
    (1.5, "of type float"),
]


def test_documents_without_a_possible_scope_are_refused(db: ts.Database) -> None:
    corpus = create(db)
    for scope, reason in IMPOSSIBLE:
        report = corpus.add_many([("a", TEXT, scope), (reason, TEXT, 7)])
        assert report.added == 1
        assert reason in {match.key for match in corpus.query(TEXT, scope="7")}
        assert [key for key, _ in report.refused] == ["a"]
        assert reason in report.refused[0].reason


@pytest.mark.both_servers
@pytest.mark.parametrize("mode", sample(["queue", "inline"], 2))
def test_a_column_of_an_attached_table_gives_the_scope(
    db: ts.Database, connection: Connection, mode: ModeName, seed: int
) -> None:
    documents = random_documents(seed, 300)
    connection.execute("CREATE TYPE tenant AS (name text, number int)")
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, body text, owner tenant)")
    rows = [(int(key), text, scope) for key, text, scope in documents]
    connection.cursor().executemany("INSERT INTO post VALUES (%s, %s, ROW(%s, 1))", rows)
    corpus = create(db)
    with pytest.raises(ts.ConfigurationError, match="name the column of the scopes"):
        corpus.attach("post", "id", "body")
    with pytest.raises(ts.ConfigurationError, match='column "tenant" does not exist'):
        corpus.attach("post", "id", "body", scope="tenant")
    corpus.attach("post", "id", "body", mode, scope="owner")
    assert {(a, b): s for a, b, s in corpus.pairs()} == true_pairs(documents)
    connection.execute("UPDATE post SET owner = ROW('one', 1) WHERE id < 100")
    db.worker().run(until_idle=True)
    moved = [Document(k, t, "one" if int(k) < 100 else s) for k, t, s in documents]
    assert {(a, b): s for a, b, s in corpus.pairs()} == true_pairs(moved)
    connection.execute("UPDATE post SET owner = NULL WHERE id = 7")
    db.worker().run(until_idle=True)
    assert "7" not in corpus
    assert "scope" in corpus.pending()[0].error
    assert corpus.check() == []
    assert list(corpus.drift()) == []


@pytest.mark.parametrize("by_sql", [False, True], ids=["python", "sql"])
def test_a_unique_corpus_keeps_twins_out_of_each_scope(
    db: ts.Database, connection: Connection, by_sql: bool
) -> None:
    corpus = create(db, is_unique=True)
    one, other = scopes_of_equal_bits()
    for key, scope, is_twin in (
        ("1", one, False),
        ("2", other, False),
        ("3", "third", False),
        ("4", one, True),
        ("5", other, True),
    ):
        if by_sql:
            query = "SELECT key FROM textsim.add_unique('c', %s, %s, %s) WHERE key IS NOT NULL"
            found = [found for (found,) in connection.execute(query, [key, TEXT, scope])]
        else:
            found = [match.key for match in corpus.add_unique(key, TEXT, scope=scope).matches]
        assert found == ([{one: "1", other: "2"}[scope]] if is_twin else [])
    with pytest.raises(ts.DuplicateError):
        corpus.add("6", TEXT, scope=one)
    with pytest.raises(pg.UniqueViolation) as raised:
        connection.execute("SELECT textsim.add('c', '6', %s, %s)", [TEXT, one])
    assert raised.value.diag.message_detail == (
        f"Key (1) has similarity 1 in scope ({one}); the threshold is 0.5."
    )
    report = corpus.add_many([("7", TEXT, "new"), ("8", TEXT, "new"), ("9", TEXT, "newer")])
    assert report.added == 2
    assert [twin.key for twin in report.twins] == ["8"]
    lists = [["a", "b", "c", "d"], [TEXT] * 4, [one, "x", "x", "y"]]
    query = "SELECT key, standing FROM textsim.twins_of('c', %s, %s, %s)"
    assert connection.execute(query, lists).fetchall() == [("a", "1"), ("c", "b")]
    # A document that moves into a scope with a twin is refused there.
    assert corpus.add_unique("3", TEXT, scope=one).matches[0].key == "1"
    assert list(corpus.pairs()) == []
    assert corpus.check() == []


def test_a_transaction_with_many_locks_locks_its_scope_and_not_the_corpus(
    db: ts.Database, connection: Connection, database_url: str
) -> None:
    create(db, is_unique=True)
    with (
        psycopg.connect(database_url, autocommit=True) as other_connection,
        connection.transaction(),
    ):
        for i in range(300):
            text = " ".join(f"x{i}x{j}" for j in range(10))
            connection.execute("SELECT textsim.add('c', %s, %s, 'busy')", [f"b{i}", text])
        other_connection.execute("SET lock_timeout = '300ms'")
        assert value(other_connection, "SELECT textsim.add('c', 'free', %s, 'quiet')", [TEXT])
        with pytest.raises(pg.LockNotAvailable):
            other_connection.execute("SELECT textsim.add('c', 'held', %s, 'busy')", [TEXT])
        # It writes many scopes: from the setting on, it locks the corpus.
        connection.execute("SET LOCAL textsim.max_bucket_locks = 2")
        for i in range(3):
            text = " ".join(f"y{i}y{j}" for j in range(10))
            connection.execute("SELECT textsim.add('c', %s, %s, %s)", [f"s{i}", text, f"s{i}"])
        with pytest.raises(pg.LockNotAvailable):
            other_connection.execute("SELECT textsim.add('c', 'held', %s, 'quiet')", [TEXT + " x"])


def test_a_scope_that_was_null_and_becomes_empty_counts(
    db: ts.Database, connection: Connection
) -> None:
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, body text, owner text)")
    connection.execute("INSERT INTO post VALUES (1, %s, NULL)", [TEXT])
    corpus = create(db)
    corpus.attach("post", "id", "body", "queue", scope="owner")
    assert len(corpus) == 0
    connection.execute("UPDATE post SET owner = ''")
    db.worker().run(until_idle=True)
    assert [match.key for match in corpus.query(TEXT, scope="")] == ["1"]


@pytest.mark.parametrize("is_unique", [False, True])
def test_answers_and_messages_tell_nothing_of_another_scope(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture, is_unique: bool
) -> None:
    key, others, word = "secretkey", "secretscope", "secretword"
    corpus = create(db, is_unique=is_unique, passages=5)
    near = f"{TEXT} {word}"
    corpus.add_many([(key, near, others), (f"{key}2", f"{word} {word} alone", others)])
    corpus.add_many([("b", TEXT, "mine"), ("c", "entirely different words of mine", "mine")])
    corpus.track()
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text, tenant text)")
    corpus.attach("t", "id", "body", scope="tenant")
    connection.execute("INSERT INTO t VALUES ('secretkey3', 'a secretword apart', 'secretscope')")
    db.worker().run(until_idle=True)
    connection.execute(
        "SELECT textsim.add('c', 'secretkey4', 'one more secretword', 'secretscope')"
    )
    said: list[object] = []
    connection.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
    statements = [
        *(
            f"SELECT * FROM textsim.{function}('c', '{TEXT}', scope => 'mine')"
            for function in ("matches", "candidates", "passages")
        ),
        f"SELECT * FROM textsim.nearest('c', '{TEXT}', scope => 'mine')",
        *(
            f"SELECT * FROM textsim.{function}('c', scope => 'mine')"
            for function in ("pairs", "clusters", "duplicates", "forget")
        ),
        *(f"SELECT * FROM textsim.{function}('c', 'b')" for function in ("neighbours", "members")),
        # A key is unique in the corpus, so the document of that key moves.
        *(
            f"SELECT textsim.{function}('c', '{used}', '{text}', scope => 'mine', force => {force})"
            for function in ("add", "add_unique")
            for used in (key, "secretkey3", "new")
            for text in (TEXT, "words that nobody has in any text", "\ue000")
            for force in (True, False)
        ),
        f"SELECT * FROM textsim.twins_of('c', ARRAY['{key}', 'new'], ARRAY['{TEXT}', 'a b c'], "
        "ARRAY['mine', 'mine'])",
        f"SELECT textsim.judge('c', 'b', '{key}', 'same')",
        f"SELECT textsim.unjudge('c', 'b', '{key}')",
        f"SELECT textsim.remove('c', '{key}')",
        f"INSERT INTO t VALUES ('b2', '{TEXT}', 'mine')",
        f"INSERT INTO t VALUES ('{key}', '{TEXT} or not', 'mine')",
        f"UPDATE t SET tenant = 'mine', body = '{TEXT}' WHERE id = 'secretkey3'",
        "SELECT textsim.add('c', 'new', NULL, 'mine')",
        "SELECT textsim.add('c', 'new', 'a', repeat('mine', 99))",
        f"SELECT textsim.add('c', repeat('{key}', 999), 'a', 'mine')",
        f"SELECT textsim.lock_corpus('c', 'mine'), textsim.add('c', '{key}', '{TEXT}', 'mine')",
        "CALL textsim.index_pending('c')",
    ]
    calls: dict[str, Callable[[], object]] = {
        "query": lambda: corpus.query(TEXT, scope="mine"),
        "query_many": lambda: corpus.query_many([TEXT], scope=["mine"]),
        "candidates": lambda: corpus.candidates(TEXT, scope="mine"),
        "pairs": lambda: list(corpus.pairs(scope="mine")),
        "clusters": lambda: list(corpus.clusters(scope="mine")),
        f"add {key}": lambda: corpus.add(key, TEXT, scope="mine"),
        f"add_unique {key}": lambda: corpus.add_unique(key, TEXT, scope="mine"),
        f"add_many {key}": lambda: corpus.add_many([(key, TEXT, "mine"), ("d", TEXT, "mine")]),
        f"judge {key}": lambda: corpus.judge("b", key, "same"),
        "forget": lambda: corpus.forget(scope="mine", later=True),
    }
    answers: dict[str, str] = {}
    for statement in statements:
        said.clear()
        try:
            with connection.transaction(force_rollback=not statement.startswith("CALL")):
                cursor = connection.execute(statement.encode())
                said += cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            diagnostic = error.diag
            said += [str(error), diagnostic.message_hint, diagnostic.context]
        answers[statement] = str(said)
    for name, call in calls.items():
        caplog.clear()
        try:
            answers[name] = str(call())
        except ts.TextsimError as error:
            answers[name] = f"{error} {error.__cause__}"
        answers[name] += caplog.text
    assert [
        (call, answer)
        for call, answer in answers.items()
        for secret in (key, others, word)
        if secret in answer.replace(TEXT, "") and secret not in call
    ] == []
