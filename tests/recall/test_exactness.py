"""Exactness and recall on real corpora, compared with brute force over sets in Python.

The seed of the hash functions is fixed, so a corpus has the same pairs in every run.
"""

from __future__ import annotations

import math
import random
import sysconfig
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx
import pytest

import textsim_db as ts
from tests.support.real_corpora import records
from tests.support.reference import jaccard
from tests.support.truth import Pairs, brute_force
from textsim_db.text.shingles import shingles

pytestmark = pytest.mark.more

THRESHOLD = 0.8
Texts = dict[str, str]


def standard_library() -> Texts:
    folder = Path(sysconfig.get_path("stdlib"))
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*.py"))
        if not {"site-packages", "test", "tests"} & set(path.parts) and path.stat().st_size < 50_000
    }


def arxiv_revisions() -> Texts:
    return numbered("arxiv_revisions", 3000)


def licences() -> Texts:
    return {f"{row['source']} {row['id']}": row["text"] for row in records("licences")}


def articles() -> Texts:
    return {row["id"]: row["text"] for row in records("articles")}


def scripture() -> Texts:
    return numbered("scripture", 400)


def numbered(name: str, count: int) -> Texts:
    """Return random texts of a corpus, in which an id may come again."""
    chosen = random.Random(name).sample(records(name), count)
    return {f"{i} {row['id']}": row["text"] for i, row in enumerate(chosen)}


CORPORA: dict[str, Callable[[], Texts]] = {
    load.__name__: load
    for load in (standard_library, arxiv_revisions, licences, articles, scripture)
}


@cache
def texts_of(name: str, shingle: str) -> Texts:
    """Return the texts; for characters without long ones, whose sets would be too large."""
    longest = 10_000 if shingle.startswith("char") else 1_000_000
    return {key: text for key, text in CORPORA[name]().items() if len(text) <= longest}


@cache
def sets_of(name: str, shingle: str) -> dict[str, set[str]]:
    return {key: set(shingles(text, shingle)) for key, text in texts_of(name, shingle).items()}


@pytest.mark.parametrize("shingle", ["word:3", pytest.param("char:5", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n == "licences" else ()) for n in CORPORA]
)
def test_pairs_of_real_texts_are_exact_and_reach_the_recall(
    db: ts.Database, name: str, shingle: str, rng: random.Random
) -> None:
    texts = texts_of(name, shingle)
    corpus = db.create_corpus(name, shingle=shingle, threshold=THRESHOLD, recall=0.95)
    assert corpus.add_many(texts.items()).added == len(texts)
    pairs = list(corpus.pairs())
    reported = {(pair.a, pair.b): pair.similarity for pair in pairs}
    assert len(reported) == len(pairs)
    check_similarities(reported, sets_of(name, shingle))
    check_recall(reported, brute_force(texts, shingle, THRESHOLD), corpus)
    check_clusters(corpus, reported)
    check_lower_threshold(corpus, reported, sets_of(name, shingle))
    check_queries(corpus, reported, texts, rng)


def check_similarities(reported: Pairs, sets: dict[str, set[str]]) -> None:
    for (a, b), similarity in reported.items():
        assert a < b
        assert similarity == jaccard(sets[a], sets[b])
        assert similarity >= THRESHOLD


def check_recall(reported: Pairs, expected: Pairs, corpus: ts.Corpus) -> None:
    assert reported.items() <= expected.items()
    chances = [corpus.config.probability(s) for s in expected.values()]
    mean = sum(chances)
    spread = math.sqrt(sum(p * (1 - p) for p in chances))
    text = (
        f"{len(reported)} of {len(expected)} pairs found, expected {mean:.1f} with a standard "
        f"deviation of {spread:.1f}; recall {len(reported) / max(1, len(expected)):.4f}, "
        f"promised {corpus.config.recall}"
    )
    print(text)
    assert len(expected) > 0, text
    assert len(reported) >= mean - 3 * spread, text
    assert len(reported) >= corpus.config.recall * len(expected), text


def check_clusters(corpus: ts.Corpus, reported: Pairs) -> None:
    graph: Any = networkx.Graph()
    for (a, b), similarity in reported.items():
        graph.add_edge(a, b, weight=similarity)
    expected = {tuple(sorted(keys)) for keys in networkx.connected_components(graph)}
    clusters = list(corpus.clusters())
    assert {cluster.keys for cluster in clusters} == expected
    assert len(clusters) == len(expected)
    assert [len(c.keys) for c in clusters] == sorted((len(c.keys) for c in clusters), reverse=True)
    for cluster in clusters:
        tree: Any = networkx.maximum_spanning_tree(graph.subgraph(cluster.keys))
        assert cluster.weakest == min(data["weight"] for _, _, data in tree.edges(data=True))


def check_lower_threshold(corpus: ts.Corpus, reported: Pairs, sets: dict[str, set[str]]) -> None:
    lower = {(pair.a, pair.b): pair.similarity for pair in corpus.pairs(threshold=0.6)}
    assert {pair: s for pair, s in lower.items() if s >= THRESHOLD} == reported
    for (a, b), similarity in lower.items():
        assert similarity == jaccard(sets[a], sets[b])
        assert similarity >= 0.6


def check_queries(corpus: ts.Corpus, reported: Pairs, texts: Texts, rng: random.Random) -> None:
    neighbours_of: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (a, b), similarity in reported.items():
        neighbours_of[a][b] = neighbours_of[b][a] = similarity
    keys = rng.sample(sorted(neighbours_of), min(30, len(neighbours_of))) + rng.sample(
        sorted(texts), 30
    )
    for key in keys:
        neighbours = corpus.neighbours(key)
        assert {m.key: m.similarity for m in neighbours} == neighbours_of[key]
        assert [m.similarity for m in neighbours] == sorted(
            neighbours_of[key].values(), reverse=True
        )
        own = {key: 1.0} if shingles(texts[key], "word:1") else {}
        assert {m.key: m.similarity for m in corpus.query(texts[key])} == neighbours_of[key] | own
    assert corpus.query_many([texts[key] for key in keys]) == [
        corpus.query(texts[key]) for key in keys
    ]
