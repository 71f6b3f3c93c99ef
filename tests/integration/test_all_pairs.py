"""All pairs of a corpus, in rounds, in ranges and with collisions, compared with brute force."""

from __future__ import annotations

from itertools import combinations

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.reference import jaccard
from textsim_db.cluster import split_large_buckets
from textsim_db.db.connections import is_pooled
from textsim_db.db.stored_corpus import load
from textsim_db.read import (
    bucket_collisions,
    bucket_pairs,
    fold_copies,
    pairs,
    read_band_index,
    snapshot,
    statements,
)
from textsim_db.text.array_types import Int64Array
from textsim_db.text.shingles import shingles

THRESHOLD = 0.3
Pairs = list[tuple[str, str, float]]


@pytest.fixture
def texts(seed: int) -> dict[str, str]:
    texts = dict(documents(400, words=40, planted=0.4, seed=seed))
    model, tail = texts["doc-0000000"], texts["doc-0000001"]
    texts |= {f"invoice {i}": f"{model} number {i} of {i % 7}" for i in range(60)}
    texts |= {f"copy {i}": model.upper() for i in range(30)}
    texts |= {f"letter {i}": f"{texts[f'doc-{i:07d}']} {tail}" for i in range(80)}
    return texts | {"empty": "", "short": "two words", "same": "two words"}


@pytest.fixture
def corpus(db: ts.Database, texts: dict[str, str]) -> ts.Corpus:
    corpus = db.create_corpus("c")
    corpus.add_many(texts.items())
    return corpus


def expected_pairs(corpus: ts.Corpus, texts: dict[str, str]) -> Pairs:
    """Compare every two documents, and return the pairs that share a bucket and reach the threshold."""
    buckets = {key: set(corpus.buckets(text).tolist()) for key, text in texts.items()}
    sets = {key: set(shingles(text, "word:3")) for key, text in texts.items()}
    candidates = (
        pair for pair in combinations(sorted(texts), 2) if buckets[pair[0]] & buckets[pair[1]]
    )
    values = ((a, b, jaccard(sets[a], sets[b])) for a, b in candidates)
    return [pair for pair in values if pair[2] >= THRESHOLD]


@pytest.mark.sampled
@pytest.mark.parametrize("large", [10**9, 40, 4])
@pytest.mark.parametrize("most", [10**9, 3_000, 200])
def test_every_pair_is_listed_once(
    corpus: ts.Corpus,
    texts: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    large: int,
    most: int,
) -> None:
    expected = expected_pairs(corpus, texts)
    assert len(expected) > 3_000
    monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", large)
    monkeypatch.setattr(bucket_pairs, "CROWDED_BUCKET", min(large, 16))
    monkeypatch.setattr(bucket_pairs, "MOST_ROWS", most)
    monkeypatch.setattr(bucket_pairs, "FEW_PAIRS", 0)
    monkeypatch.setattr(read_band_index, "RANGE_BYTES", 100_000)
    monkeypatch.setattr(bucket_pairs, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(bucket_collisions, "SIGNATURES_AT_ONCE", 50)
    monkeypatch.setattr(bucket_collisions, "VALUES_AT_ONCE", 4_000)
    monkeypatch.setattr(fold_copies, "HASHES_AT_ONCE", 50)
    monkeypatch.setattr(pairs, "VERIFIED_AT_ONCE", 100)
    assert sorted(corpus.pairs(THRESHOLD)) == expected


def test_pairs_need_only_one_connection(
    corpus: ts.Corpus, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "is_pooled", lambda _: True)
    monkeypatch.setattr(read_band_index, "RANGE_BYTES", 100_000)
    assert sorted(corpus.pairs(THRESHOLD)) == expected_pairs(corpus, texts)


def test_pairs_are_complete_if_a_snapshot_cannot_be_shared(
    corpus: ts.Corpus, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "IMPORT_SNAPSHOT", "SET TRANSACTION SNAPSHOT 'none'")
    assert sorted(corpus.pairs(THRESHOLD)) == expected_pairs(corpus, texts)


def test_two_connections_share_one_snapshot(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add("a", "the first text")
    count = load(db.engine, "c").statement("SELECT count(*) FROM {document}")
    with snapshot.snapshot(db.engine) as first:
        first.execute("SELECT 1")
        corpus.add("b", "the second text")
        with snapshot.with_second(db.engine, first) as connections:
            assert len(connections) == 2 - is_pooled(first)
            counted = list(snapshot.on_each(connections, [count] * 10, run))
    assert counted == [(1,)] * 10


def run(connection: psycopg.Connection[tuple[int]], statement: str) -> tuple[int] | None:
    return connection.execute(statement.encode()).fetchone()


def test_pairs_that_share_a_bucket_by_collision_are_discarded_early(
    corpus: ts.Corpus, db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs are compared by the values of their bands before their words are read."""
    expected = set(corpus.pairs(THRESHOLD))
    pair_counts: list[int] = []
    discard_collisions = pairs.StoredHost._cut

    def count_pairs(host: pairs.StoredHost, packed: Int64Array) -> object:
        pair_counts.append(len(packed))
        return discard_collisions(host, packed)

    monkeypatch.setattr(pairs.StoredHost, "_cut", count_pairs)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO textsim.band_1 SELECT 2000000000 + g.i, d.id "
            "FROM generate_series(0, 1000) g (i), LATERAL ("
            "SELECT id FROM textsim.document_1 WHERE key LIKE 'doc-%%' "
            "ORDER BY hashint8extended(id, g.i) LIMIT 2) d"
        )
    verified = set(corpus.pairs(THRESHOLD))
    monkeypatch.setattr(bucket_pairs, "FEW_PAIRS", 0)
    assert (
        expected <= set(corpus.pairs(THRESHOLD)) <= verified
    )  # some of the added pairs are similar
    all_pairs, without_collisions = pair_counts
    assert all_pairs - without_collisions > 800
