"""Pairs and clusters with many equal documents; clusters are compared with a graph library."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.sampling import sample
from textsim_db.cluster import split_large_buckets
from textsim_db.cluster.spanning_forest import Forest, Ids, Links
from textsim_db.read import bucket_pairs, document_cache
from textsim_db.read.document_cache import DocumentCache
from textsim_db.read.stored_documents import StoredDocuments
from textsim_db.text.shingles import shingles


def test_pairs_and_clusters_contain_exact_copies(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    texts = dict(documents(600, words=60, planted=0.4, seed=5))
    model = texts["doc-0000000"]
    texts |= {f"copy {i}": model.upper() for i in range(40)}
    texts |= {f"near copy {i}": f"{model} and tail {i % 2}" for i in range(6)}
    corpus.add_many(texts.items())
    sets = {key: frozenset(shingles(text, "word:3")) for key, text in texts.items()}
    pairs = list(corpus.pairs(0.5))
    assert len({pair[:2] for pair in pairs}) == len(pairs) > 1000
    for a, b, similarity in pairs:
        assert a < b
        assert similarity == len(sets[a] & sets[b]) / len(sets[a] | sets[b]) >= 0.5
    graph: nx.Graph[str] = nx.Graph()
    graph.add_weighted_edges_from(pairs)
    clusters = list(corpus.clusters(0.5))
    assert {cluster.keys for cluster in clusters} == {
        tuple(sorted(keys)) for keys in nx.connected_components(graph)
    }
    assert [len(cluster.keys) for cluster in clusters] == sorted(
        (len(cluster.keys) for cluster in clusters), reverse=True
    )
    for cluster in clusters:
        tree = nx.maximum_spanning_tree(graph.subgraph(cluster.keys))
        assert cluster.weakest == min(tree.edges[edge]["weight"] for edge in tree.edges)


def test_thousands_of_copies_make_one_cluster(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many((f"{i:05d}", "the same few words in each of them") for i in range(12_000))
    (cluster,) = corpus.clusters()
    assert len(cluster.keys) == 12_000
    assert cluster.weakest == 1.0
    first = corpus.pairs()
    assert next(first) == ("00000", "00001", 1.0)
    first.close()


@pytest.mark.long
def test_long_documents_are_read_a_few_at_a_time(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = db.create_corpus("c")
    texts = dict(documents(200, words=2000, planted=0.5, seed=6))
    texts |= {f"{key} more": f"{text} and more" for key, text in texts.items()}
    corpus.add_many(texts.items())
    db.create_corpus("waiting")
    with db.engine.begin() as connection:
        for key in sorted(texts)[:20]:  # their words have no ids yet
            statement = "SELECT textsim.add('waiting', %s, %s)"
            connection.exec_driver_sql(statement, (key, texts[key]))

    def results() -> list[list[Any]]:
        return [
            sorted(corpus.pairs(0.4)),
            list(corpus.clusters(0.4)),
            *(sorted(corpus.duplicates(0.4, linkage)) for linkage in ("kept", "single")),
            sorted(db.corpus("waiting").pairs(0.4)),
        ]

    expected = results()
    reads: list[tuple[int, int]] = []
    documents_of = DocumentCache.documents

    def record_read(cache: DocumentCache, ids: Ids) -> StoredDocuments:
        documents = documents_of(cache, ids)
        reads.append((len(ids), cache._bytes))
        return documents

    monkeypatch.setattr(document_cache, "CACHE_BYTES", 250_000)
    monkeypatch.setattr(DocumentCache, "documents", record_read)
    assert len(list(corpus.pairs(0.4))) == len(expected[0])
    assert len(list(db.corpus("waiting").pairs(0.4))) == len(expected[4]) > 0
    assert len(reads) > 20
    assert max(size for count, size in reads if count > 2) <= 500_000
    assert results() == expected


@pytest.mark.parametrize("shingle", sample(["word:2", "char:5"], 2))
@pytest.mark.parametrize(("recall", "most_met"), sample([(1, 0), (0.95, 0), (1, 10**9)], 3))
def test_large_buckets_give_the_same_pairs_and_clusters(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch, shingle: str, recall: float, most_met: int
) -> None:
    corpus = db.create_corpus("c", shingle=shingle, recall=recall)
    texts = dict(documents(500, words=40, planted=0.3, seed=6))
    model = texts["doc-0000000"]
    texts |= {f"invoice {i}": f"{model} number {i} of {i % 7}" for i in range(150)}
    texts |= {f"copy {i}": model.upper() for i in range(40)}
    tail = texts["doc-0000001"]
    texts |= {f"letter {i}": f"{text} {tail} {tail}" for i, text in enumerate(texts.values())}
    corpus.add_many(texts.items())
    results = {}
    monkeypatch.setattr(split_large_buckets, "MOST_MET", most_met)
    monkeypatch.setattr(split_large_buckets, "FIRST_PAIRS", 50)
    for large in (4, 10**9):
        monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", large)
        monkeypatch.setattr(bucket_pairs, "CROWDED_BUCKET", min(large, 16))
        clusters = list(corpus.clusters())
        results[large] = (
            sorted(corpus.pairs()),
            [cluster.keys for cluster in clusters],
            [cluster.weakest for cluster in clusters],
        )
    (pairs, keys, weakest), (all_pairs, all_keys, all_weakest) = results.values()
    assert len(pairs) == len(set(pairs)) > 10_000
    assert pairs == all_pairs
    assert keys == all_keys
    assert all(a <= b for a, b in zip(weakest, all_weakest, strict=True))


def test_links_added_in_parts_give_the_same_components(rng: random.Random) -> None:
    edges = [
        (a, b, round(rng.random(), 2))
        for a, b in (rng.sample(range(400), 2) for _ in range(rng.randrange(1, 600)))
    ]
    forest = Forest()
    for start in range(0, len(edges), 37):
        left, right, weight = zip(*edges[start : start + 37], strict=True)
        forest.add(Links(np.array(left), np.array(right), np.array(weight)))
        if rng.random() < 0.5:
            forest.components()
    members, labels, weakest = forest.components()
    graph: nx.Graph[int] = nx.Graph()
    for a, b, weight_ in sorted(edges, key=lambda edge: edge[2]):
        graph.add_edge(a, b, weight=weight_)
    components = {frozenset(keys) for keys in nx.connected_components(graph)}
    groups = {label: frozenset(members[labels == label].tolist()) for label in set(labels.tolist())}
    assert set(groups.values()) == components
    for label, group in groups.items():
        tree = nx.maximum_spanning_tree(graph.subgraph(group))
        assert weakest[label] == min(tree.edges[edge]["weight"] for edge in tree.edges)


def test_an_empty_corpus_has_no_pairs(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many([("a", ""), ("b", ""), ("c", "alone")])
    assert list(corpus.pairs()) == []
    assert list(corpus.clusters()) == []
