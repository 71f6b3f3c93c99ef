"""Tracked clusters equal the clusters that Python computes from all documents."""

from __future__ import annotations

import random
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.tracked import Groups, compare, expected_ids, ids_of
from tests.support.waiting import wait_until
from tests.support.workers import running_worker

STEPS = 40
IS_UP_TO_DATE = b"SELECT WHERE NOT EXISTS (SELECT FROM textsim.pending WHERE kind = 'cluster')"
CORPORA: dict[str, dict[str, Any]] = {
    "bands": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9},
    "exact": {"shingle": "word:2", "threshold": 0.4, "recall": 1.0},
    "chars": {"shingle": "char:2", "threshold": 0.7, "recall": 0.8},
    "scopes": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9, "scoped": True},
}


class RandomWriter:
    """Makes random changes of a corpus, in all the ways in which documents are written."""

    def __init__(self, connection: Connection, corpus: ts.Corpus, rng: random.Random) -> None:
        self._connection = connection
        self._corpus = corpus
        self._rng = rng
        self._texts: list[str] = []
        self._is_scoped = corpus.config.scoped

    def change(self) -> None:
        """Add, replace or remove some documents."""
        rng = self._rng
        keys = [f"k{number}" for number in rng.sample(range(60), rng.choice((1, 1, 1, 2, 5, 15)))]
        way = rng.random()
        if way < 0.3:
            self._corpus.remove(keys)
        elif way < 0.6:
            self._corpus.add_many(self._document(key) for key in keys)
        else:
            for key in keys:
                _, text, *scope = self._document(key)
                self._connection.execute(
                    "SELECT textsim.add(%s, %s, %s, %s)",
                    [self._corpus.name, key, text, *(scope or [None])],
                )
            if way < 0.8:
                self._connection.execute("CALL textsim.index_pending(%s)", [self._corpus.name])

    def _document(self, key: str) -> Any:
        return (
            (key, self._text(), self._rng.choice("xy")) if self._is_scoped else (key, self._text())
        )

    def _text(self) -> str:
        """Return a copy of a text, a text that is similar to one, or another text."""
        rng = self._rng
        words = [f"w{rng.randrange(200)}" for _ in range(rng.choice((0, 1, 6, 8)))]
        if self._texts and rng.random() < 0.8:
            words = rng.choice(self._texts[-30:]).split()
            for _ in range(rng.choice((0, 1, 1, 2))):
                words[rng.randrange(len(words))] = f"w{rng.randrange(200)}"
        if words:
            self._texts.append(" ".join(words))
        return " ".join(words)


@pytest.mark.parametrize("linkage", ["kept", "single"])
@pytest.mark.parametrize("kind", CORPORA)
def test_clusters_follow_random_changes(
    db: ts.Database, connection: Connection, rng: random.Random, kind: str, linkage: str
) -> None:
    corpus = db.create_corpus("c", **CORPORA[kind])
    writer = RandomWriter(connection, corpus, rng)
    for _ in range(3):
        writer.change()
    threshold = corpus.config.threshold + rng.choice((0, 0.1))
    connection.execute("SELECT textsim.track('c', %s, %s)", [linkage, threshold])
    before: Groups = {}
    most = 0
    for _ in range(STEPS):
        for _ in range(rng.choice((1, 1, 3))):
            writer.change()
        connection.execute("CALL textsim.update_clusters('c')")
        after = compare(connection, corpus, linkage, threshold)
        ids = {root: cluster for cluster, (root, _) in after.items()}
        kept_ids = expected_ids(before, after)
        assert {root: ids[root] for root in kept_ids} == kept_ids
        new = {cluster for root, cluster in ids.items() if root not in kept_ids}
        assert before.keys().isdisjoint(new)
        before = after
        most = max(most, len(after))
    assert most > 3


def test_a_copy_finds_what_the_other_copy_has_missed(
    db: ts.Database, connection: Connection
) -> None:
    """The entries of a document are processed late: while it had another text, a match appeared."""
    corpus = db.create_corpus("c", **CORPORA["exact"])
    corpus.track()

    def add(key: str, text: str) -> int:
        corpus.add(key, text)
        query = "SELECT max(id) FROM textsim.pending WHERE kind = 'cluster'"
        (entry,) = connection.execute(query).fetchone() or (0,)
        return int(entry)

    def process(entry: int) -> None:
        connection.execute("SELECT textsim._update_clusters('c', true, %s)", [entry])

    process(add("late", "a b c d e f"))
    add("late", "v w x y z")
    process(add("similar", "a b c d e g"))
    add("late", "a b c d e f")
    process(add("copy", "A B C D E F"))
    corpus.update_clusters()
    assert len(compare(connection, corpus, "kept", 0.4)) == 1


def test_a_worker_updates_clusters_and_sets_aside_what_it_cannot_process(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    corpus.track("single")
    writer = RandomWriter(connection, corpus, rng)
    with running_worker(db, poll=0.01):
        for _ in range(30):
            writer.change()
        wait_until(connection, IS_UP_TO_DATE)
    compare(connection, corpus, "single", 0.5)
    corpus.remove(["k1", "k2"])
    corpus.add_many([("k1", "one two three"), ("k2", "one two three"), ("k3", "one two three")])
    refused = ids_of(connection, corpus)["k2"]
    connection.execute(f"ALTER TABLE textsim.node_1 ADD CHECK (document_id <> {refused})")
    db.worker().run(until_idle=True)
    [failure] = corpus.failures()
    assert "violates check constraint" in failure.error
    member = corpus.cluster_of("k1")
    assert member is not None
    assert {m.key for m in corpus.members() if m.cluster == member.cluster} >= {"k1", "k3"}
    assert corpus.cluster_of("k2") is None
    connection.execute("ALTER TABLE textsim.node_1 DROP CONSTRAINT node_1_document_id_check")
    assert corpus.retry_failures() == 1
    assert corpus.update_clusters() == 1
    compare(connection, corpus, "single", 0.5)


DAMAGES = {
    "node": "UPDATE textsim.node_1 SET set_hash = gen_random_uuid() WHERE document_id = 1",
    "node ": "DELETE FROM textsim.node_1 WHERE document_id = 4",
    "node  ": "INSERT INTO textsim.node_1 VALUES (99, 99, gen_random_uuid())",
    "match": "UPDATE textsim.match_1 SET similarity = 0.7",
    "match ": "DELETE FROM textsim.match_1",
    "match  ": "INSERT INTO textsim.match_1 SELECT min(node), max(node), 0.7 FROM textsim.node_1",
    "cluster": "UPDATE textsim.cluster_1 SET size = size + 1",
    "cluster ": "DELETE FROM textsim.member_1 WHERE document_id = 3",
    "cluster  ": "UPDATE textsim.member_1 SET cluster = 99 WHERE document_id = 3",
    "trigger": "DROP TRIGGER track_delete ON textsim.document_1",
    "trigger ": "ALTER TABLE textsim.document_1 DISABLE TRIGGER track_update",
    "index": "DROP INDEX textsim.match_1_b",
    "table": "DROP TABLE textsim.cluster_alias_1",
}


def test_check_finds_damage(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    texts = ["a b c d e", "a b c d f", "A B C D E", "x y z", ""]
    corpus.add_many((str(number), text) for number, text in enumerate(texts))
    corpus.track()
    assert corpus.check() == []
    corpus.update_clusters()
    corpus.add("5", "a b c d g")
    assert corpus.check() == []
    corpus.remove(["0", "5"])
    assert corpus.check() == []
    corpus.add_many([("0", texts[0]), ("1", "a b c d f h")])
    assert corpus.check() == []
    for kind, damage in DAMAGES.items():
        corpus.untrack()
        corpus.remove([str(number) for number in range(6)])
        connection.execute("ALTER SEQUENCE textsim.document_1_id_seq RESTART")
        corpus.add_many((str(number), text) for number, text in enumerate(texts))
        corpus.track()
        corpus.update_clusters()
        connection.execute(damage)
        problems = corpus.check()
        assert {problem.kind for problem in problems} >= {kind.strip()}, (kind, problems)


def test_what_a_tracked_corpus_refuses(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    for call in (corpus.untrack, corpus.update_clusters, lambda: list(corpus.members())):
        with pytest.raises(ts.ConfigurationError, match='corpus "c" is not tracked'):
            call()
    with pytest.raises(ts.ConfigurationError, match=r"threshold is 0\.4; .* matches from 0\.5 on"):
        corpus.track(threshold=0.4)
    with pytest.raises(ts.ConfigurationError, match="complete cannot be tracked"):
        corpus.track("complete")
    corpus.track()
    with pytest.raises(ts.ConfigurationError, match="is tracked already"):
        corpus.track()
    for settings in ({}, {"threshold": 0.6}, {"recall": 1.0}):
        with pytest.raises(ts.ConfigurationError, match="untrack it, rebuild it"):
            corpus.rebuild(**settings)  # type: ignore[arg-type]
    with pytest.raises(pg.ObjectInUse, match="cannot be truncated"):
        connection.execute("TRUNCATE textsim.document_1")
    corpus.add("a", "one two three")
    corpus.untrack()
    corpus.track()
    corpus.add("b", "one two three")
    assert corpus.update_clusters() == 2
    assert [member.key for member in corpus.members()] == ["a", "b"]
    assert corpus.check() == []
    corpus.drop()
    query = "SELECT relname FROM pg_class WHERE relname ~ '_1(_|$)' AND relkind IN ('r', 'S')"
    assert connection.execute(query).fetchall() == []
    assert connection.execute("SELECT kind FROM textsim.pending").fetchall() == []
