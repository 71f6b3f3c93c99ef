"""Complete and kept linkage, compared with all pairs, and the removals that follow from chains."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from textsim_db.cluster import linkages
from textsim_db.read import list_pairs

THRESHOLD = 0.5


@pytest.fixture
def corpus(corpus_db: ts.Database, rng: random.Random) -> ts.Corpus:
    """A corpus with chains of small changes, copies, near-duplicates, and documents without words."""
    corpus = corpus_db.create_corpus("c", shingle="word:1", threshold=THRESHOLD, recall=0.9)
    texts = dict(documents(300, words=40, planted=0.4, seed=rng.randrange(10**6)))
    words = texts["doc-0000000"].split()
    for chain in range(5):
        for step in range(30):
            words[rng.randrange(len(words))] = f"new{chain}x{step}"
            texts[f"chain {chain} {step}"] = " ".join(words)
    texts |= {f"copy {i}": texts["chain 0 3"].upper() for i in range(8)}
    texts |= {"empty": "", "void": "?!"}
    corpus.add_many(texts.items())
    return corpus


def similarities(corpus: ts.Corpus) -> dict[tuple[str, str], float]:
    return {pair[:2]: pair.similarity for pair in corpus.pairs()}


def ordered(a: str, b: str) -> tuple[str, str]:
    return min(a, b), max(a, b)


@pytest.mark.parametrize(
    ("rank", "chunk"), [(lambda key: (-len(key), key[::-1]), 5), (None, 10_000)]
)
def test_each_removed_document_matches_its_most_similar_kept_document(
    corpus: ts.Corpus,
    rank: Callable[[str], Any] | None,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linkages, "MOST_RANKED", chunk)
    monkeypatch.setattr(list_pairs, "DOCUMENTS_OF_A_PART", chunk)
    pairs = similarities(corpus)
    graph: nx.Graph[str] = nx.Graph(list(pairs))
    expected: dict[str, tuple[str, float]] = {}
    kept: list[str] = []
    for key in sorted(graph, key=lambda key: (rank(key) if rank else "", key)):
        kept_matches = [
            (pairs[ordered(key, other)], other) for other in kept if other in graph[key]
        ]
        if kept_matches:
            best = max(similarity for similarity, _ in kept_matches)
            expected[key] = next((other, s) for s, other in kept_matches if s == best)
        else:
            kept.append(key)
    removed = list(corpus.duplicates(rank=rank))
    assert {d.key: (d.kept, d.similarity) for d in removed} == expected
    assert len(removed) == len(expected) > 100
    clusters = list(corpus.clusters(linkage="kept", rank=rank))
    assert {(key, c.kept) for c in clusters for key in c.keys if key != c.kept} == {
        (d.key, d.kept) for d in removed
    }
    for cluster in clusters:
        assert cluster.weakest == min(
            pairs[ordered(cluster.kept or "", key)] for key in cluster.keys if key != cluster.kept
        )


def test_an_empty_corpus_has_no_clusters_and_duplicates(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    for linkage in ("single", "complete", "kept"):
        assert list(corpus.clusters(linkage=linkage)) == []
        assert list(corpus.duplicates(linkage=linkage)) == []
    with pytest.raises(ts.ConfigurationError, match="linkage is 'average'; expected one of single"):
        corpus.clusters(linkage="average")
