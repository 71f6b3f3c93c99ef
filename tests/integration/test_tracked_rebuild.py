"""A rebuilt corpus stays tracked, and its clusters keep their ids."""

from __future__ import annotations

import random
from typing import Any

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.tracked import Groups, compare, expected_ids, ids_of

Keys = dict[int, tuple[str | None, frozenset[str]]]
"""By the id of a cluster: its representative and its members, as keys."""


def members_by_key(corpus: ts.Corpus) -> Keys:
    """Return what members() lists; the view must list the same."""
    found: dict[int, tuple[str | None, set[str]]] = {}
    for key, cluster, representative, *_ in corpus.members():
        found.setdefault(cluster, (representative, set()))[1].add(key)
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
    (number,) = connection.execute("SELECT id FROM textsim.corpus").fetchone() or (0,)
    query = f"SELECT count(*) FROM textsim.cluster_event_{number}"
    (count,) = connection.execute(query.encode()).fetchone() or (0,)
    return int(count)


@pytest.mark.parametrize("linkage", sample(["kept", "single"], 2, "more"))
def test_clusters_keep_their_ids(
    db: ts.Database, connection: Connection, rng: random.Random, linkage: str
) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=0.95, is_unique=False)
    corpus.track(linkage)
    connection.execute("SELECT textsim.create_members_view('c', 'public.m')")
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
                linkage,
                threshold,
            )
            between = members_by_key(corpus)
            assert between == before, (settings, pending)
            assert corpus.check() == [], settings
            view = connection.execute("SELECT key, cluster FROM m").fetchall()
            assert sorted(view) == sorted((m.key, m.cluster) for m in corpus.members())
            corpus.update_clusters()
            after = compare(connection, corpus, linkage, threshold)
            ids = ids_of(connection, corpus)
            if pending or not settings:
                translated = with_new_ids(updated, ids)
                if not pending:
                    assert after == translated
                kept = expected_ids(translated, after)
                found = {root: cluster for cluster, (root, _) in after.items()}
                assert {root: found[root] for root in kept} == kept
            assert corpus.check() == [], settings


@pytest.mark.more
def test_clusters_of_more_documents_than_a_batch_keep_their_ids(
    db: ts.Database, connection: Connection
) -> None:
    """Members that were added far apart are in different batches unless a cluster is logged whole."""
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=1.0)
    corpus.add_many(
        (f"{copy}/{number}", f"a{number} b{number} c{number} d{number} e{number} x{copy}")
        for copy in range(4)
        for number in range(900)
    )
    corpus.track()
    corpus.update_clusters()
    before = members_by_key(corpus)
    assert len(before) == 900
    events = count_events(connection)
    corpus.rebuild()
    assert corpus.update_clusters() == 3600
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
        compare(connection, corpus, "kept", thresholds[-1] or 0)
    assert thresholds == [0.7, 0.7, 0.8, 0.5]
