"""Exact corpora find every pair at or above the threshold, and those of bands as many as promised."""

from __future__ import annotations

import math
import random
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support import reference
from tests.support.connections import Connection
from tests.support.real_corpora import records
from tests.support.sampling import sample
from tests.support.truth import Pairs, brute_force
from textsim_db.sketch import sketch_texts
from textsim_db.sketch.exact_prefix import smallest_values
from textsim_db.text.shingles import shingles

THRESHOLDS = [0.5, 0.55, 0.7, 0.8, 0.9]
SHINGLES = ["word:3", "word:1", "char:5"]
Texts = dict[str, str]


def generated() -> Texts:
    """Return invented texts, in which most words are rare and a few are in almost every text."""
    texts = dict(documents(1500, words=40, planted=0.4, identical=30, boilerplate=60, seed=11))
    return texts | {f"cut {key}": text[:120] for key, text in list(texts.items())[:100]}


def tiny() -> Texts:
    """Return texts of 0 to 12 words of a small vocabulary; many pairs are exactly at a threshold."""
    rng = random.Random(3)
    words = [f"w{i}" for i in range(14)]
    return {f"{i}": " ".join(rng.sample(words, rng.randrange(13))) for i in range(700)}


def real(name: str) -> Texts:
    return {f"{i} {row['id']}": row["text"] for i, row in enumerate(records(name))}


def standard_library() -> Texts:
    folder = Path(sysconfig.get_path("stdlib"))
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*.py"))
        if not {"site-packages", "test", "tests"} & set(path.parts) and path.stat().st_size < 50_000
    }


REAL = ("arxiv", "arxiv_revisions", "licences", "articles", "scripture", "languages")
CORPORA = {"generated": generated, "tiny": tiny} | {name: partial(real, name) for name in REAL}


@cache
def texts_of(name: str) -> Texts:
    return standard_library() if name == "standard_library" else CORPORA[name]()


def some_texts(name: str, shingle: str, rng: random.Random) -> Texts:
    """Return a few neighbouring texts, and copies of them with 1 to 40 % of their words removed."""
    longest = 400 if shingle == "char:5" else 1500
    rows = [(key, text[:longest]) for key, text in texts_of(name).items()]
    start = rng.randrange(max(1, len(rows) - 100))
    texts = dict(rows[start : start + 100])
    for key, text in list(texts.items())[:60]:
        words = text.split()
        removed = set(rng.sample(range(len(words)), int(len(words) * rng.uniform(0.01, 0.4))))
        texts[f"copy {key}"] = " ".join(w for i, w in enumerate(words) if i not in removed)
    return texts | {"empty": "", "one word": "word", "one word again": "word"}


@pytest.mark.sampled
@pytest.mark.parametrize("name", sample(CORPORA, 3, "more"))
@pytest.mark.parametrize("shingle", SHINGLES)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_search_finds_every_pair(
    db: ts.Database,
    connection: Connection,
    name: str,
    shingle: str,
    threshold: float,
    rng: random.Random,
) -> None:
    texts = some_texts(name, shingle, rng)
    truth = brute_force(texts, shingle, threshold)
    corpus = load(db, texts, shingle, threshold)
    assert len(truth) > 0
    check_lists(corpus, truth)
    check_searches(corpus, texts, truth, rng.sample(sorted(texts), 25))
    check_sql_lists(connection, truth)
    check_sql_searches(connection, texts, truth, rng.sample(sorted(texts), 8))
    check_candidates(corpus, connection, texts, rng.sample(sorted(texts), 8))
    assert corpus.check() == []


@pytest.mark.long
@pytest.mark.parametrize("name", list(CORPORA))
@pytest.mark.parametrize("shingle", SHINGLES)
def test_whole_corpora_have_no_missing_pair(
    db: ts.Database, connection: Connection, name: str, shingle: str, rng: random.Random
) -> None:
    texts = whole_texts(name, shingle, rng)
    every_pair = brute_force(texts, shingle, THRESHOLDS[0])
    corpus = load(db, texts, shingle, THRESHOLDS[-1])
    for threshold in sorted(THRESHOLDS, reverse=True):
        truth = reaching(every_pair, threshold)
        if threshold != corpus.config.threshold:
            corpus.rebuild(threshold=threshold)
        found = check_lists(corpus, truth)
        check_searches(corpus, texts, truth, rng.sample(sorted(texts), 100))
        in_sql = check_sql_lists(connection, truth)
        check_sql_searches(connection, texts, truth, rng.sample(sorted(texts), 20))
        print(
            f"{name} {shingle} {threshold:g}: {len(texts)} texts, {len(truth)} pairs by brute force, "
            f"{found} found by Python, {in_sql} by SQL"
        )


def whole_texts(name: str, shingle: str, rng: random.Random) -> Texts:
    """Return a whole corpus, or a sample where counting the shared shingles of all would take hours."""
    texts = texts_of(name)
    if name == "arxiv":
        return dict(rng.sample(sorted(texts.items()), 60_000 if shingle == "word:3" else 8000))
    return texts


def load(db: ts.Database, texts: Texts, shingle: str, threshold: float) -> ts.Corpus:
    corpus = db.create_corpus("c", shingle=shingle, threshold=threshold, recall=1)
    assert corpus.config.is_exact
    assert corpus.add_many(texts.items()).added == len(texts)
    return corpus


def reaching(pairs: Pairs, threshold: float) -> Pairs:
    return {pair: similarity for pair, similarity in pairs.items() if similarity >= threshold}


def dictionary(pairs: Iterable[Any]) -> Pairs:
    """Return pairs of a search by their keys; each pair is there once."""
    rows = [tuple(pair) for pair in pairs]
    result = {(a, b): similarity for a, b, similarity in rows}
    assert len(result) == len(rows)
    return result


def neighbours_of(pairs: Pairs) -> dict[str, dict[str, float]]:
    result: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (a, b), similarity in pairs.items():
        result[a][b] = result[b][a] = similarity
    return result


def check_lists(corpus: ts.Corpus, truth: Pairs, has_large_buckets: bool = False) -> int:
    """Check pairs, clusters and duplicates, also at a higher threshold; return the number of pairs."""
    found = dictionary(corpus.pairs())
    assert found == truth
    higher = 1 - 0.6 * (1 - corpus.config.threshold)
    assert dictionary(corpus.pairs(higher)) == reaching(truth, higher)
    graph: Any = networkx.Graph()
    graph.add_weighted_edges_from((a, b, s) for (a, b), s in truth.items())
    clusters = list(corpus.clusters())
    assert len(clusters) == networkx.number_connected_components(graph)
    assert {cluster.keys for cluster in clusters} == {
        tuple(sorted(keys)) for keys in networkx.connected_components(graph)
    }
    for cluster in clusters:
        tree: Any = networkx.maximum_spanning_tree(graph.subgraph(cluster.keys))
        strongest = min(data["weight"] for _, _, data in tree.edges(data=True))
        assert cluster.weakest <= strongest
        # Of a large bucket, only links that join clusters are compared.
        assert cluster.weakest == strongest or has_large_buckets
    check_duplicates(corpus, neighbours_of(truth))
    return len(found)


def check_duplicates(corpus: ts.Corpus, neighbours: dict[str, dict[str, float]]) -> None:
    """A document is removed if it is similar to a kept document whose key comes first."""
    kept: set[str] = set()
    best: dict[str, float] = {}
    for key in sorted(neighbours):
        similarities = [s for other, s in neighbours[key].items() if other in kept]
        if similarities:
            best[key] = max(similarities)
        else:
            kept.add(key)
    duplicates = list(corpus.duplicates())
    assert {d.key: d.similarity for d in duplicates} == best
    assert all(d.kept in kept and neighbours[d.key][d.kept] == d.similarity for d in duplicates)


def check_searches(corpus: ts.Corpus, texts: Texts, truth: Pairs, keys: list[str]) -> None:
    neighbours = neighbours_of(truth)
    expected = [neighbours[key] | ({key: 1.0} if has_words(texts[key]) else {}) for key in keys]
    many = corpus.query_many([texts[key] for key in keys])
    assert [{m.key: m.similarity for m in matches} for matches in many] == expected
    higher = 1 - 0.6 * (1 - corpus.config.threshold)
    for key, matches in zip(keys, many, strict=True):
        assert corpus.query(texts[key]) == matches
        assert corpus.query(texts[key], higher) == [m for m in matches if m.similarity >= higher]
        own = corpus.neighbours(key)
        assert {m.key: m.similarity for m in own} == neighbours[key]
        assert corpus.neighbours(key, higher) == [m for m in own if m.similarity >= higher]
        assert [m.similarity for m in own] == sorted(neighbours[key].values(), reverse=True)


def has_words(text: str) -> bool:
    return bool(shingles(text, "word:1"))


def check_sql_lists(connection: Connection, truth: Pairs) -> int:
    """Check the pairs in SQL, and return their number."""
    pairs = dictionary(connection.execute("SELECT * FROM textsim.pairs('c')").fetchall())
    assert pairs == truth
    return len(pairs)


def check_sql_searches(connection: Connection, texts: Texts, truth: Pairs, keys: list[str]) -> None:
    neighbours = neighbours_of(truth)
    for key in keys:
        expected = neighbours[key]
        rows = connection.execute(
            "SELECT key, similarity FROM textsim.neighbours('c', %s, NULL, NULL)", [key]
        ).fetchall()
        assert dict(rows) == expected
        rows = connection.execute(
            "SELECT key, similarity FROM textsim.matches('c', %s, NULL, NULL)", [texts[key]]
        ).fetchall()
        assert dict(rows) == expected | ({key: 1.0} if has_words(texts[key]) else {})


def check_candidates(
    corpus: ts.Corpus, connection: Connection, texts: Texts, keys: list[str]
) -> None:
    """Check that candidates are the documents that share enough rows, no more and no less."""
    buckets = {
        key: Counter(sketch_texts.buckets(text, corpus.config).tolist())
        for key, text in texts.items()
    }
    sizes = {key: len(shingles(text, str(corpus.config.shingle))) for key, text in texts.items()}

    def candidate_pair(a: str, b: str) -> int:
        """Return the rows that two documents share, 0 if they are too few."""
        shared = sum(n * buckets[b][bucket] for bucket, n in buckets[a].items())
        pair = sizes[a], sizes[b], corpus.config.threshold
        is_possible = reference.needed_overlap(*pair) <= min(sizes[a], sizes[b])
        return shared if is_possible and shared >= reference.needed_rows(*pair) else 0

    for key in keys:
        shared = {
            other: candidate_pair(key, other) for other in texts if sizes[key] and sizes[other]
        }
        of_key = {other: n for other, n in shared.items() if n}
        candidates = corpus.candidates(texts[key])
        assert dict(candidates) == of_key
        rows = connection.execute(
            "SELECT * FROM textsim.candidates('c', %s)", [texts[key]]
        ).fetchall()
        assert rows == [tuple(candidate) for candidate in candidates]


MASK = """
CREATE OR REPLACE FUNCTION textsim._shingle_values(form text, unit text, n integer) RETURNS bigint[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN array(
    SELECT x & {mask} FROM unnest(textsim._unmasked(form, unit, n)) WITH ORDINALITY u (x, place)
    ORDER BY place)
"""


@pytest.mark.more
@pytest.mark.sampled
@pytest.mark.parametrize("bits", [2, 5])
@pytest.mark.parametrize("shingle", ["word:1", "word:2"])
def test_values_that_collide_lose_no_pair(
    db: ts.Database,
    connection: Connection,
    shingle: str,
    bits: int,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a space of a few bits, documents have a bucket several times, and share it by chance."""
    mask = 2**bits - 1

    def masked(values: np.ndarray[Any, Any], *arguments: Any) -> Any:
        return smallest_values(values & np.uint64(mask), *arguments)

    monkeypatch.setattr(sketch_texts, "smallest_values", masked)
    connection.execute("ALTER FUNCTION textsim._shingle_values RENAME TO _unmasked")
    connection.execute(MASK.replace("{mask}", str(mask)).encode())
    texts = dict(list(tiny().items())[:120])
    for threshold in rng.sample([0.07, 0.2, 1 / 3, 0.5, 0.55, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0], 3):
        truth = brute_force(texts, shingle, threshold)
        corpus = db.create_corpus("c", shingle=shingle, threshold=threshold, recall=1)
        corpus.add_many(list(texts.items())[::2])
        for key, text in list(texts.items())[1::2]:
            connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
        check_lists(corpus, truth, has_large_buckets=True)
        check_searches(corpus, texts, truth, rng.sample(sorted(texts), 20))
        check_sql_lists(connection, truth)
        check_sql_searches(connection, texts, truth, rng.sample(sorted(texts), 10))
        check_candidates(corpus, connection, texts, rng.sample(sorted(texts), 10))
        db.drop_corpus("c")


WHOLE = ("standard_library", "licences", "articles")
BANDED = dict.fromkeys(WHOLE, 10**6) | {"arxiv_revisions": 3000, "scripture": 400}
"""How many texts of each corpus are in corpora of bands."""


@pytest.mark.more
@pytest.mark.parametrize("shingle", ["word:3", pytest.param("char:5", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n == "licences" else ()) for n in BANDED]
)
def test_pairs_of_bands_are_exact_and_reach_the_recall(
    db: ts.Database, name: str, shingle: str, rng: random.Random
) -> None:
    """The texts and the seed of the hash functions are fixed, so a corpus has the same pairs again."""
    longest = 10_000 if shingle.startswith("char") else 1_000_000
    texts = {key: text for key, text in texts_of(name).items() if len(text) <= longest}
    count = min(BANDED[name], len(texts))
    texts = dict(random.Random(name).sample(sorted(texts.items()), count))
    corpus = db.create_corpus(name, shingle=shingle, threshold=0.8, recall=0.95)
    assert corpus.add_many(texts.items()).added == len(texts)
    lower = brute_force(texts, shingle, 0.6)
    reported = dictionary(corpus.pairs())
    check_recall(reported, reaching(lower, 0.8), corpus)
    found = dictionary(corpus.pairs(threshold=0.6))
    assert found.items() <= lower.items()
    assert reaching(found, 0.8) == reported
    check_lists(corpus, reported)
    in_pairs = sorted({key for pair in reported for key in pair})
    keys = rng.sample(in_pairs, min(30, len(in_pairs))) + rng.sample(sorted(texts), 30)
    check_searches(corpus, texts, reported, keys)


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


@pytest.mark.parametrize("threshold", sample([1e-300, 0.001, 1.0, 0.05], 2))
def test_thresholds_that_no_bands_reach_are_possible(
    db: ts.Database, connection: Connection, threshold: float, rng: random.Random
) -> None:
    texts = dict(rng.sample(sorted(tiny().items()), 60))
    truth = brute_force(texts, "word:1", threshold)
    corpus = load(db, texts, "word:1", threshold)
    check_lists(corpus, truth)
    check_searches(corpus, texts, truth, rng.sample(sorted(texts), 20))
    check_sql_lists(connection, truth)
    check_sql_searches(connection, texts, truth, rng.sample(sorted(texts), 10))


def test_brute_force_counts_what_sets_share(rng: random.Random) -> None:
    texts = {"empty": "", "again": ""} | dict(rng.sample(sorted(tiny().items()), 50))
    sets = {key: set(text.split()) for key, text in texts.items()}
    assert brute_force(texts, "word:1", 0.3) == {
        (a, b): reference.jaccard(sets[a], sets[b])
        for a, b in combinations(sorted(texts), 2)
        if reference.jaccard(sets[a], sets[b]) >= 0.3
    }
