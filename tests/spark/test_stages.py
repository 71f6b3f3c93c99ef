"""The stages in this process, without Spark: what tasks send and find, and results of real corpora."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from tests.support.reference import jaccard
from tests.support.sampling import sample
from tests.support.spark import near_duplicates
from tests.support.spark_stages import find, results, rows_of
from textsim_db.cluster import linkages, split_large_buckets
from textsim_db.cluster.join import Join
from textsim_db.cluster.kept_linkage import keep_representatives
from textsim_db.compare import packed_pairs
from textsim_db.compare.match_rule import Criterion
from textsim_db.errors import ConfigurationError, InputError
from textsim_db.measures.by_name import JACCARD
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.sketch.sketch_texts import buckets
from textsim_db.spark import packed_rows, stage_2_edges, stage_3_results
from textsim_db.spark.packed_rows import (
    load,
    pack_entries,
    sorted_entries,
    unpack_entries,
)
from textsim_db.spark.stage_2_edges import Edges, spanning_edges
from textsim_db.spark.stage_3_results import ResultTask
from textsim_db.text.shingles import shingles


@pytest.mark.parametrize(
    ("shingle", "recall"),
    sample([("char:5", 0.95), ("word:3", 0.95), ("word:1", 1), ("char:5", 1)], 2),
)
def test_pairs_are_all_similar_pairs_that_share_a_bucket(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, shingle: str, recall: float
) -> None:
    monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", rng.choice((2, 5, 256)))
    monkeypatch.setattr(split_large_buckets, "MOST_MET", rng.choice((0, 1000)))
    monkeypatch.setattr(stage_2_edges, "PARTITION_DOCUMENTS", 20)
    monkeypatch.setattr(packed_pairs, "PAIRS_AT_ONCE", rng.choice((3, 50, 10_000)))
    threshold = rng.choice((0.5, 0.6, 0.75))
    settings = CorpusSettings(shingle, threshold, recall, num_hashes=64)
    config = settings.complete()
    documents = near_duplicates(rng, 120, 30)
    candidates = find(documents, config, rng.choice((1, 3, 16)))
    rows = results(stage_3_results.pairs, documents, candidates, config)
    found = {(a, b): similarity for a, b, similarity in rows}
    expected = {}
    of = {key: set(buckets(text, config).tolist()) for key, text in documents}
    sets = {key: set(shingles(text, shingle)) for key, text in documents}
    for a, b in combinations(sorted(sets), 2):
        similarity = jaccard(sets[a], sets[b])
        if similarity >= threshold and of[a] & of[b]:
            expected[a, b] = similarity
    assert found == expected
    assert len(found) > 5


def test_entries_are_packed_without_loss() -> None:
    random_numbers = np.random.default_rng(1)
    for count in (0, 1, 1000):
        keys = random_numbers.integers(0, 2**48, count, np.uint64)
        entries = sorted_entries(keys, random_numbers.integers(-(2**63), 2**63, count))
        unpacked = unpack_entries(pack_entries(entries))
        assert np.array_equal(unpacked.buckets, entries.buckets)
        assert np.array_equal(unpacked.numbers, entries.numbers)


def test_a_component_stays_in_one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_2_edges, "PARTITION_DOCUMENTS", 10)
    left = np.arange(0, 200, 2)
    edges = Edges(np.append(left, np.zeros(30, np.int64)), np.append(left + 1, np.arange(200, 230)))
    found = stage_2_edges.find_components(edges, np.array([999]))
    partition_of = dict(zip(found.numbers.tolist(), found.partitions.tolist(), strict=True))
    assert len(partition_of) == 231
    assert all(partition_of[a] == partition_of[b] for a, b in zip(*map(list, edges), strict=True))
    assert found.sizes.sum() == 231
    assert found.sizes.max() <= 32 + 10
    assert len(found.sizes) > 10


def test_too_many_edges_are_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_2_edges, "MOST_EDGES", 2)
    edges = Edges(np.arange(3), np.arange(1, 4))
    with pytest.raises(ConfigurationError, match=r"3 edges .*at most 2 .*use a higher threshold"):
        stage_2_edges.find_components(edges, np.empty(0, np.int64))


def test_too_much_text_in_one_task_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "LOADED_BYTES", 10)
    config = CorpusSettings().complete()
    load([b"seven b", b"seven b"], config)
    with pytest.raises(InputError, match=r"2 candidates with 14 bytes .*at most 10 .*use a higher"):
        load([b"seven b", b"seven c"], config)


def test_edges_that_close_a_circle_are_left_out() -> None:
    edges = spanning_edges(Edges(np.array([5, 5, 7, 1]), np.array([7, 9, 9, 2])))
    assert sorted(zip(*map(list, edges), strict=True)) == [(1, 2), (5, 7), (5, 9)]


def test_the_best_rank_is_kept_as_without_folding_copies(rng: random.Random) -> None:
    config = CorpusSettings("word:1", 0.6).complete()
    for _ in range(20):
        documents = near_duplicates(rng, 60, 25)
        documents += [(f"copy{i}", rng.choice(documents)[1]) for i in range(30)]
        texts = [text.encode() for _, text in sorted(documents)]
        join = Join(load(texts, config), Criterion(JACCARD, config.threshold))
        order = np.array(rng.sample(range(len(texts)), len(texts)))
        kept = linkages._keep(join, order, 0)
        rows, buckets = join.host.rows(order), join.host.buckets(order)
        plain = keep_representatives(rows, buckets, 0, config.threshold)
        assert np.array_equal(kept.kept_by, plain.kept_by)
        assert np.array_equal(kept.similarity, plain.similarity)


def test_a_frame_that_changes_between_readings_is_an_error() -> None:
    rows = rows_of([("a", "one two three"), ("b", "one two three")])
    columns = [*rows.columns, pa.array([0, 0], pa.int32()), pa.array([0, 0])]
    names = ["key", "text", "scope", "number", "partition", "rank"]
    batch = pa.RecordBatch.from_arrays(columns, names)
    task = ResultTask(CorpusSettings().complete(), np.array([3]))
    with pytest.raises(InputError, match="has 2 of 3 documents of the first reading; cache"):
        list(stage_3_results.pairs(iter([batch]), task))
