"""Links of large buckets against a comparison of every pair."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from tests.support.reference import jaccard
from textsim_db.cluster.split_large_buckets import SAME, all_links, groups_of, joining_links
from textsim_db.compare.document_rows import Rows

Documents = list[list[int]]


def grams(document: list[int], n: int) -> set[tuple[int, ...]]:
    width = min(n, len(document))
    return {tuple(document[i : i + width]) for i in range(len(document) - width + 1)}


def rows_of(documents: Documents, n: int) -> Rows:
    return Rows(
        np.array([token for document in documents for token in document], np.int32),
        np.cumsum([0, *map(len, documents)], dtype=np.int64),
        np.array([len(grams(document, n)) for document in documents], np.int64),
        n,
    )


def expected_links(documents: Documents, n: int, threshold: float) -> dict[tuple[int, int], float]:
    sets = [grams(document, n) for document in documents]
    every = {(a, b): jaccard(sets[a], sets[b]) for b in range(len(documents)) for a in range(b)}
    return {pair: value for pair, value in every.items() if value >= threshold}


def template_documents(rng: random.Random, count: int) -> Documents:
    """Return variants of a few template_documents, and documents that share only boilerplate."""
    boilerplate = [rng.randrange(50) for _ in range(30)]
    models = [[rng.randrange(1000) for _ in range(40)] for _ in range(3)]
    documents = []
    for _ in range(count):
        if rng.random() < 0.5:
            document = list(rng.choice(models))
            for _ in range(rng.randrange(8)):
                document[rng.randrange(len(document))] = rng.randrange(1000)
        else:
            document = boilerplate + [rng.randrange(10**6) for _ in range(rng.randrange(20))]
        documents.append(document[: rng.choice([3, 20, 100, 100])])
    return documents


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
def test_links_of_large_buckets_equal_all_similar_pairs(
    rng: random.Random, n: int, threshold: float
) -> None:
    documents = template_documents(rng, 300)
    expected = expected_links(documents, n, threshold)
    rows = rows_of(documents, n)
    similarities: dict[tuple[int, int], float] = {}
    for links in all_links(rows, threshold):
        for a, b, value in zip(*(column.tolist() for column in links), strict=True):
            pair = (min(a, b), max(a, b))
            assert pair not in similarities
            similarities[pair] = value
    assert similarities == expected

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(documents)))
    groups = np.array([rng.randrange(280) for _ in documents])
    by_group: dict[int, int] = {}
    for i, group in enumerate(groups.tolist()):
        graph.add_edge(i, by_group.setdefault(group, i))
    joined = graph.copy()
    graph.add_edges_from(expected)
    for links in joining_links(rows, groups, threshold):
        for a, b, value in zip(*(column.tolist() for column in links), strict=True):
            assert expected[min(a, b), max(a, b)] == value
            joined.add_edge(a, b)
    assert {frozenset(keys) for keys in nx.connected_components(joined)} == {
        frozenset(keys) for keys in nx.connected_components(graph)
    }


def test_no_document_and_one_document_have_no_links() -> None:
    for documents in ([], [[1, 2]]):
        rows = rows_of(documents, 2)
        assert [len(links.left) for links in all_links(rows, 0.5)] == []
        groups = np.arange(len(documents))
        assert sum(len(links.left) for links in joining_links(rows, groups, 0.5)) == 0


def test_buckets_of_mostly_the_same_documents_are_one_group(rng: random.Random) -> None:
    of_templates = [np.arange(start, start + 300) for start in (0, 1000, 2000)]
    buckets = [
        np.sort(rng.sample(documents.tolist(), 280)) for documents in of_templates for _ in range(8)
    ]
    groups = groups_of(buckets)
    assert sorted(number for group in groups for number in group) == list(range(24))
    assert len(groups) < 12
    for group in groups:
        first = set(buckets[group[0]].tolist())
        for number in group:
            assert len(first & set(buckets[number].tolist())) > SAME * len(buckets[number])
    assert groups_of([]) == []
