"""Pairs of documents that share buckets, and links of large buckets."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from tests.support import reference
from tests.support.document_rows import rows_of
from textsim_db.cluster.split_large_buckets import SAME, all_links, groups_of, joining_links
from textsim_db.compare import packed_pairs
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import (
    ONLY_ROUND,
    BucketsOfDocuments,
    Members,
    grouped,
    joined_members,
    left_of,
    pack,
    right_of,
)
from textsim_db.measures.by_name import JACCARD
from textsim_db.sketch.ragged import offsets_of


def test_no_document_and_one_document_have_no_links() -> None:
    criterion = Criterion(JACCARD, 0.5)
    for documents in ([], [[1, 2]]):
        rows = rows_of(documents, 2)
        assert [len(links.left) for links in all_links(rows, criterion)] == []
        groups = np.arange(len(documents))
        assert sum(len(links.left) for links in joining_links(rows, groups, criterion)) == 0


def test_buckets_of_mostly_the_same_documents_are_one_group(rng: random.Random) -> None:
    of_templates = [np.arange(start, start + 300) for start in (0, 1000, 2000)]
    repeated = [documents.tolist() for documents in of_templates for _ in range(8)]
    buckets = [np.sort(rng.sample(documents, 280)) for documents in repeated]
    groups = groups_of(buckets)
    assert sorted(number for group in groups for number in group) == list(range(24))
    assert len(groups) < 12
    for group in groups:
        first = set(buckets[group[0]].tolist())
        for number in group:
            assert len(first & set(buckets[number].tolist())) > SAME * len(buckets[number])
    assert groups_of([]) == []


Pair = tuple[int, int]


def random_buckets(rng: random.Random, count: int, ids: int = 60) -> list[list[int]]:
    """Return sorted buckets; a document may be in a bucket several times."""
    return [sorted(rng.choices(range(1, ids), k=rng.randrange(9))) for _ in range(count)]


def members(buckets: list[list[int]]) -> Members:
    ids = np.array([i for bucket in buckets for i in bucket], np.int32)
    return Members(ids, offsets_of(np.array([len(bucket) for bucket in buckets], np.int64)))


def without_singles(buckets: list[list[int]]) -> list[list[int]]:
    return [ids for ids in buckets if len(set(ids)) > 1]


def to_lists(of_buckets: Members) -> list[list[int]]:
    return [part.tolist() for part in np.split(of_buckets.ids, of_buckets.offsets[1:-1])]


def to_list(pairs: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Pair]:
    return list(zip(left_of(pairs).tolist(), right_of(pairs).tolist(), strict=True))


def every_pair(buckets: list[list[int]]) -> Counter[Pair]:
    """Return the pairs of rows of two documents, as a join counts them."""
    return Counter((a, b) for ids in buckets for a, b in combinations(ids, 2) if a != b)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_pairs_of_an_exact_corpus_are_its_candidates(rng: random.Random, threshold: float) -> None:
    buckets = random_buckets(rng, 200, ids=30)
    sizes = {i: rng.randrange(1, 9) for i in range(1, 29)}
    arrays = (np.array(list(each), np.int32) for each in (sizes, sizes.values()))
    known = packed_pairs.Sizes(*arrays)
    lists = packed_pairs.lists(members(without_singles(buckets)), ONLY_ROUND, known, threshold)
    assert [pair for pairs, _ in lists for pair in to_list(pairs)] == sorted(
        (a, b)
        for (a, b), shared in every_pair(buckets).items()
        if a in sizes
        and b in sizes
        and reference.is_candidate(shared, sizes[a], sizes[b], threshold)
    )


def test_empty_buckets_give_no_pairs() -> None:
    assert [to_lists(part) for part in grouped(np.empty(0, np.int64), 4)] == [[[]], [[]]]
    nothing = joined_members([])
    assert nothing.sizes.tolist() == []
    assert list(packed_pairs.lists(nothing)) == []
    pair = pack(np.array([1]), np.array([2]))
    assert BucketsOfDocuments(nothing).least_shared(pair).tolist() == [-1]


def test_a_pair_counts_for_the_first_bucket_that_it_shares(rng: random.Random) -> None:
    buckets = random_buckets(rng, 40)
    by_document = BucketsOfDocuments(members(buckets))
    pairs = [(rng.randrange(70), rng.randrange(70)) for _ in range(2000)]
    left, right = np.array(pairs, np.int64).T
    shared = by_document.least_shared(pack(left, right)).tolist()
    for (a, b), number in zip(pairs, shared, strict=True):
        both = [i for i, ids in enumerate(buckets) if a in ids and b in ids]
        assert number == min(both, default=-1)


def test_more_than_255_shared_rows_count_as_255() -> None:
    of_buckets = members([[1, 2]] * 1000 + [[1, 3]])
    ((pairs, counts),) = packed_pairs.lists(of_buckets)
    assert to_list(pairs) == [(1, 2), (1, 3)]
    assert counts.tolist() == [255, 1]
