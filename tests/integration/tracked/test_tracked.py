"""Tracked clusters follow random changes, and keep their ids in a rebuild; damage is mended."""

from __future__ import annotations

import random
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sampling import sample
from tests.support.tracked import CORPORA, Groups, RandomWriter, compare, expected_ids, ids_of
from tests.support.waiting import wait_until
from tests.support.workers import running_worker
from textsim_db.settings.named_values import ModeName
from textsim_db.sync import build_clusters

CHANGES = 15
IS_UP_TO_DATE = b"SELECT WHERE NOT EXISTS (SELECT FROM textsim.pending WHERE kind = 'cluster')"
LOG_ALL = b"SELECT textsim._log_ids(1, array(SELECT id FROM textsim.document_1));"


@pytest.mark.both_servers
@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("kind", CORPORA)
@pytest.mark.parametrize("judges", [False, True])
def test_clusters_follow_random_changes(
    db: ts.Database,
    connection: Connection,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    mode: ModeName,
    judges: bool,
) -> None:
    monkeypatch.setattr(build_clusters, "LEAST_DOCUMENTS", 1)
    corpus = db.create_corpus("c", **CORPORA[kind])
    writer = RandomWriter(connection, corpus, rng, judges)
    for _ in range(3):
        writer.change()
    threshold = corpus.config.threshold + rng.choice((0, 0.1))
    connection.execute("SELECT textsim.track('c', 'kept', %s, %s)", [threshold, mode])
    corpus.update_clusters()
    before: Groups = {}
    most = 0
    for _ in range(CHANGES):
        for _ in range(rng.choice((1, 1, 3))):
            writer.change()
        if rng.random() < 0.1:
            connection.execute(LOG_ALL * 2)
            corpus.update_clusters()
        if mode == "queue":
            connection.execute("CALL textsim.update_clusters('c')")
        after = compare(connection, corpus, threshold)
        ids = {root: cluster for cluster, (root, _) in after.items()}
        # Inline, each transaction is a step, and the clusters between the steps are not known here.
        kept_ids = expected_ids(before, after) if mode == "queue" else {}
        assert {root: ids[root] for root in kept_ids} == kept_ids
        new = {cluster for root, cluster in ids.items() if root not in kept_ids}
        assert before.keys().isdisjoint(new) or mode == "inline"
        before = after
        most = max(most, len(after))
    assert most > 0  # the changes may link nearly all documents, so there may be one cluster only
    assert corpus.check() == []


def test_a_worker_updates_clusters_and_says_what_it_cannot_process(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    corpus.track()
    writer = RandomWriter(connection, corpus, rng)
    with running_worker(db, poll=0.01):
        for _ in range(30):
            writer.change()
        wait_until(connection, IS_UP_TO_DATE)
    compare(connection, corpus, 0.5)
    corpus.remove(["k1", "k2"])
    corpus.add_many([("k1", "one two three"), ("k2", "one two three"), ("k3", "one two three")])
    refused = ids_of(connection, corpus)["k2"]
    connection.execute(f"ALTER TABLE textsim.node_1 ADD CHECK (document_id <> {refused})")
    worker = db.worker()
    worker.run(until_idle=True)
    assert "violates check constraint" in worker.unusable["clusters of corpus c"]
    connection.execute("ALTER TABLE textsim.node_1 DROP CONSTRAINT node_1_document_id_check")
    assert corpus.update_clusters() > 1
    compare(connection, corpus, 0.5)


MOVE_TO_NODE = """
UPDATE textsim.node_1 n SET node = o.node FROM textsim.node_1 o
WHERE n.document_id = {} AND o.document_id = {}
"""
DAMAGES = {
    "node": "DELETE FROM textsim.node_1 WHERE document_id = 4",
    "node  ": "INSERT INTO textsim.node_1 VALUES (99, 3, gen_random_uuid())",
    "node   ": "DELETE FROM textsim.node_1 WHERE document_id = 2",
    "node    ": MOVE_TO_NODE.format(3, 4),
    "node     ": MOVE_TO_NODE.format(4, 2),
    "node      ": "DELETE FROM textsim.node_1",
    "match": "UPDATE textsim.match_1 SET similarity = 0.7",
    "match ": "DELETE FROM textsim.match_1",
    "match  ": "INSERT INTO textsim.match_1 SELECT min(node), max(node), 0.7 FROM textsim.node_1",
    "match   ": "INSERT INTO textsim.match_1 VALUES (1, 3, 0.7), (3, 77, 0.7)",
    "cluster": "UPDATE textsim.cluster_1 SET size = size + 1",
    "cluster ": "DELETE FROM textsim.member_1 WHERE document_id = 3",
    "cluster  ": "UPDATE textsim.member_1 SET cluster = 1000000000 WHERE document_id = 3",
    "cluster   ": "DELETE FROM textsim.cluster_1 WHERE size = 3",
    "cluster    ": "UPDATE textsim.cluster_1 SET representative = 2",
    "cluster     ": "INSERT INTO textsim.member_1 SELECT 4, id FROM textsim.cluster_1 WHERE size = 3",
    "cluster      ": "DELETE FROM textsim.member_1",
    "cluster       ": "UPDATE textsim.member_1 SET cluster = (SELECT min(id) FROM textsim.cluster_1)",
    "cluster        ": "INSERT INTO textsim.cluster_1 VALUES (3, 4, 2)",
    "alias": "DELETE FROM textsim.cluster_alias_1",
    "alias ": "UPDATE textsim.cluster_alias_1 SET new = (SELECT old FROM textsim.cluster_alias_1)",
    "alias  ": "INSERT INTO textsim.cluster_alias_1 SELECT id, 99 FROM textsim.cluster_1",
    "sequence": "SELECT setval('textsim.node_1_id_seq', 1)",
    "sequence ": "SELECT setval('textsim.cluster_id_seq', 1)",
}
OBJECTS = {
    "trigger": "DROP TRIGGER track_delete ON textsim.document_1",
    "trigger ": "ALTER TABLE textsim.document_1 DISABLE TRIGGER track_update",
    "index": "DROP INDEX textsim.match_1_b",
    "table": "DROP TABLE textsim.cluster_alias_1",
}


@pytest.mark.parametrize("part", sample(range(5), 5, "more"))
def test_check_finds_damage_and_reconcile_mends_it(
    db: ts.Database, connection: Connection, part: int
) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    texts = ["a b c d e", "a b c d f", "A B C D E", "x y z", "", "k l m n o", "k l m n p"]
    documents = [(str(number), text) for number, text in enumerate(texts)]
    corpus.add_many(documents)
    corpus.track()
    assert corpus.check() == []
    corpus.update_clusters()
    corpus.add("7", "a b c d g")
    assert corpus.check() == []
    corpus.remove(["0", "7"])
    assert corpus.check() == []
    corpus.add_many([("0", texts[0]), ("1", "a b c d f h")])
    assert corpus.check() == []
    for damages, mends in ((DAMAGES, True), (OBJECTS, False)):
        for kind, damage in list(damages.items())[part::5]:
            corpus.untrack()
            corpus.remove([key for key, _ in [*documents, ("8", "")]])
            connection.execute("ALTER SEQUENCE textsim.document_1_id_seq RESTART")
            corpus.add_many(documents)
            corpus.track()
            corpus.update_clusters()
            # Two clusters become one, and part again.
            corpus.add_many([("5", "a b c d e m n"), ("8", "k l m n a b c d")])
            corpus.update_clusters()
            corpus.remove(["8"])
            corpus.add("5", texts[5])
            corpus.update_clusters()
            before = compare(connection, corpus, 0.5)
            connection.execute(damage)
            problems = corpus.check()
            assert {problem.kind for problem in problems} >= {kind.strip()}, (kind, problems)
            if not mends:
                continue
            remedies = {problem.remedy for problem in problems}
            if kind.strip() == "sequence":
                for remedy in remedies:
                    connection.execute(remedy.encode())
            else:
                assert remedies == {"textsim reconcile c"}, (kind, problems)
                assert corpus.reconcile().mended >= len(documents), kind
            assert corpus.check() == [], kind
            after = compare(connection, corpus, 0.5, events=False)
            assert sorted(after.values(), key=str) == sorted(before.values(), key=str), kind
            if kind.count(" ") < 7 or kind.strip() != "cluster":
                assert after == before, kind


def test_what_a_tracked_corpus_refuses(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    for call in (
        *(corpus.untrack, corpus.update_clusters),
        *(lambda: list(corpus.members()), lambda: list(corpus.members("k1"))),
    ):
        with pytest.raises(ts.ConfigurationError, match='corpus "c" is not tracked'):
            call()
    with pytest.raises(ts.ConfigurationError, match=r"threshold is 0\.4; .* matches from 0\.5 on"):
        corpus.track(threshold=0.4)
    for linkage in ("single", "complete"):
        with pytest.raises(
            ts.ConfigurationError, match=r"kept only, and clusters\(\) computes others"
        ):
            corpus.track(linkage)
    corpus.track()
    with pytest.raises(ts.ConfigurationError, match="is tracked already"):
        corpus.track()
    with pytest.raises(pg.ObjectInUse, match="cannot be truncated"):
        connection.execute("TRUNCATE textsim.document_1")
    corpus.add_many([("a", "one two three"), ("b", "one two three")])
    corpus.update_clusters()
    (first,) = {member.cluster for member in corpus.members()}
    corpus.untrack()
    corpus.track()
    corpus.add("c", "one two three")
    assert corpus.update_clusters() == 3
    assert [(member.key, member.cluster > first) for member in corpus.members()] == [
        ("a", True),
        ("b", True),
        ("c", True),
    ]
    assert corpus.check() == []
    db.drop_corpus(corpus.name)
    query = "SELECT relname FROM pg_class WHERE relname ~ '_1(_|$)' AND relkind IN ('r', 'S')"
    assert connection.execute(query).fetchall() == []
    assert connection.execute("SELECT kind FROM textsim.pending").fetchall() == []


def test_an_idle_corpus_drops_old_events(db: ts.Database, connection: Connection) -> None:
    for name, by_sql in (("c", False), ("d", True)):
        corpus = db.create_corpus(name, **CORPORA["bands"])
        corpus.track(keep_events="14 days")
        corpus.add_many([("a", "a b c d e"), ("b", "a b c d f")])
        corpus.update_clusters()
        corpus.remove(["a"])
        corpus.update_clusters()
        corpus_id = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [name])
        for table in (f"cluster_event_{corpus_id}", f"removed_{corpus_id}"):
            query = f"UPDATE textsim.{table} SET at = now() - interval '15 days' RETURNING 1"
            assert connection.execute(query.encode()).fetchall()
        if by_sql:
            connection.execute("CALL textsim.update_clusters()")
        else:
            db.worker().run(until_idle=True)
        assert list(corpus.cluster_events()) == []
        query = f"SELECT FROM textsim.removed_{corpus_id}"
        assert connection.execute(query.encode()).fetchall() == []


def test_events_are_read_from_the_last_one_on(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", **CORPORA["bands"])
    with pytest.raises(ts.ConfigurationError, match="is not tracked"):
        list(corpus.cluster_events())
    with pytest.raises(ts.ConfigurationError, match="keep_events is '0 days'"):
        corpus.track(keep_events="0 days")
    corpus.track(keep_events="14 days")
    corpus.add_many([("a", "a b c d e"), ("b", "a b c d f"), ("c", "x y z")])
    corpus.update_clusters()
    events = list(corpus.cluster_events())
    assert [(e.what, e.key) for e in events] == [
        ("created", None),
        ("joined", "a"),
        ("joined", "b"),
    ]
    cluster = events[0].cluster
    corpus.remove(["b", "c"])
    connection.execute("CALL textsim.update_clusters('c')")
    last = events[-1].id
    new = [(e.what, e.cluster, e.key) for e in corpus.cluster_events(after=last)]
    assert new == [("left", cluster, "a"), ("left", cluster, "b"), ("ended", cluster, None)]
    corpus.rebuild()
    again = [(e.id, e.what, e.key) for e in corpus.cluster_events(after=last)]
    assert [(what, key) for _, what, key in again] == [
        ("left", "a"),
        ("left", "b"),
        ("ended", None),
    ]
    assert corpus.check() == []


Keys = dict[int, tuple[str | None, frozenset[str]]]
"""By the id of a cluster: its representative and its members, as keys."""


def members_by_key(corpus: ts.Corpus) -> Keys:
    """Return what members() lists; the view must list the same."""
    found: dict[int, tuple[str | None, set[str]]] = {}
    members = list(corpus.members())
    for key, cluster, representative, *_ in members:
        found.setdefault(cluster, (representative, set()))[1].add(key)
    if members:
        of_cluster = [member for member in members if member.cluster == members[-1].cluster]
        assert list(corpus.members(members[-1].key)) == of_cluster
    return {cluster: (root, frozenset(keys)) for cluster, (root, keys) in found.items()}


def with_new_ids(groups: Keys, ids: dict[str, int]) -> Groups:
    """Return clusters with the ids of the rebuilt corpus; ids: by key. Removed documents have none."""
    return {
        cluster: (
            ids.get(root or "", -1),
            frozenset(ids.get(key, -1 - number) for number, key in enumerate(sorted(keys))),
        )
        for cluster, (root, keys) in groups.items()
    }


def count_events(connection: Connection) -> int:
    """Count the events of the only corpus."""
    (corpus_id,) = connection.execute("SELECT id FROM textsim.corpus").fetchone() or (0,)
    query = f"SELECT count(*) FROM textsim.cluster_event_{corpus_id}"
    (count,) = connection.execute(query.encode()).fetchone() or (0,)
    return int(count)


@pytest.mark.more
def test_clusters_keep_their_ids(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=0.95, is_unique=False)
    corpus.track()
    texts: dict[str, str] = {}

    def change(count: int) -> None:
        for _ in range(count):
            words = [f"w{rng.randrange(90)}" for _ in range(7)]
            if texts and rng.random() < 0.7:
                words = rng.choice(list(texts.values())).split()
                words[rng.randrange(len(words))] = f"w{rng.randrange(90)}"
            texts[f"k{rng.randrange(120)}"] = " ".join(words)
        corpus.add_many(list(texts.items()))
        for key in rng.sample(sorted(texts), count // 8):
            corpus.remove([key])
            del texts[key]

    change(150)
    corpus.update_clusters()
    threshold = 0.5
    changes: list[dict[str, Any]] = [
        {},
        {"recall": 0.99},
        {"threshold": 0.6},
        {"threshold": 0.7, "recall": 1.0},
        {"threshold": 0.5},
        {"shingle": "word:2", "threshold": 0.3},
    ]
    for settings in changes:
        for pending in (False, True):
            updated = members_by_key(corpus)
            if pending:
                change(30)
            before = members_by_key(corpus)
            corpus.rebuild(**(settings if not pending else {}))
            threshold = corpus.config.threshold
            assert (corpus.status().linkage, corpus.status().tracked_threshold) == (
                "kept",
                threshold,
            )
            between = members_by_key(corpus)
            assert between == before, (settings, pending)
            assert corpus.check() == [], settings
            rows = connection.execute("SELECT key, cluster FROM textsim.members('c')").fetchall()
            assert sorted(rows) == sorted((m.key, m.cluster) for m in corpus.members())
            corpus.update_clusters()
            after = compare(connection, corpus, threshold)
            ids = ids_of(connection, corpus)
            if pending or not settings:
                translated = with_new_ids(updated, ids)
                if not pending:
                    assert after == translated
                kept = expected_ids(translated, after)
                found = {root: cluster for cluster, (root, _) in after.items()}
                assert {root: found[root] for root in kept} == kept
            assert corpus.check() == [], settings


def test_clusters_of_more_documents_than_a_batch_keep_their_ids(
    db: ts.Database, connection: Connection
) -> None:
    """Members that were added far apart are in different batches unless a cluster is logged whole."""
    for function, large, small in (
        ("_logged_documents", ":= 5000", ":= 10"),
        ("_log_whole_clusters", "/ 1000", "/ 10"),
    ):
        body = value(connection, "SELECT pg_get_functiondef(%s::regproc)", [f"textsim.{function}"])
        assert large in body
        connection.execute(body.replace(large, small).encode())
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=1.0)
    corpus.add_many(
        (f"{copy}/{number}", f"a{number} b{number} c{number} d{number} e{number} x{copy}")
        for copy in range(4)
        for number in range(30)
    )
    corpus.track()
    corpus.update_clusters()
    before = members_by_key(corpus)
    assert len(before) == 30
    events = count_events(connection)
    corpus.rebuild()
    assert corpus.update_clusters() == 120
    assert members_by_key(corpus) == before
    assert count_events(connection) == events


def test_a_higher_threshold_stays_until_the_corpus_has_a_higher_threshold(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=0.95)
    corpus.add_many([("a", "a b c d e f g"), ("b", "a b c d e f h"), ("c", "a b c d x y z")])
    corpus.track(threshold=0.7)
    corpus.update_clusters()
    thresholds = []
    for threshold in (0.6, 0.4, 0.8, 0.5):
        corpus.rebuild(threshold=threshold)
        thresholds.append(corpus.status().tracked_threshold)
        corpus.update_clusters()
        compare(connection, corpus, thresholds[-1] or 0)
    assert thresholds == [0.7, 0.7, 0.8, 0.5]


def test_an_expired_document_is_no_member_and_in_no_match(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", keep_for="1 day", threshold=0.5)
    corpus.add_many({key: f"one two three four five six seven {key}" for key in "abc"})
    connection.execute("SELECT textsim.track('c')")
    corpus.update_clusters()
    assert {(each.key, each.representative) for each in corpus.members()} == {
        ("a", "a"),
        ("b", "a"),
        ("c", "a"),
    }
    connection.execute("UPDATE textsim.document_1 SET expires_at = now() WHERE key = 'a'")
    expected = [("b", None, None), ("c", None, None)]
    for members in (corpus.members(), corpus.members("b")):
        assert (
            sorted((each.key, each.representative, each.similarity) for each in members) == expected
        )
    assert [*corpus.members("a")] == []
    for query, rows in {
        "SELECT a, b FROM textsim._match_pairs('c')": [("b", "c")],
        "SELECT representative FROM textsim.members('c', 'b') WHERE key = 'b'": [(None,)],
        "SELECT * FROM textsim.members('c', 'a')": [],
    }.items():
        assert connection.execute(query.encode()).fetchall() == rows, query
