"""Linkage "kept": the documents that are compared, and the documents that are kept."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support import reference
from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.kept_linkage import keep_representatives
from textsim_db.cluster.loaded_documents import LoadedDocuments
from textsim_db.compare.match_rule import NOTHING_SEPARATES, Criterion
from textsim_db.compare.packed_pairs import pack
from textsim_db.compare.pair_values import Rows
from textsim_db.measures.by_name import JACCARD
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import Linkage
from textsim_db.sketch.exact_prefix import smallest_values
from textsim_db.sketch.ragged import Buckets, Ragged, offsets_of

Sets = Sequence[set[int]]


def rows_of(sets: Sets) -> Rows:
    sizes = np.array([len(each) for each in sets], np.int64)
    words = np.array([word for each in sets for word in sorted(each)], np.int32)
    return Rows(words, offsets_of(sizes), sizes, 1)


def prefixes_of(sets: Sets, threshold: float, values: dict[int, int]) -> Buckets:
    of_sets = np.array([values[word] for each in sets for word in sorted(each)], np.uint64)
    return smallest_values(of_sets, rows_of(sets).offsets, threshold)


@pytest.mark.parametrize("shared", range(14))
def test_each_linkage_compares_documents_that_share_enough_values(shared: int) -> None:
    # Prefixes of 13 values, of documents that are equal in truth: they match if they are compared.
    rows = rows_of([set(range(1, 51))] * 2)
    own = [np.arange(13), np.append(np.arange(shared), np.arange(100, 113 - shared))]
    buckets = Ragged(np.concatenate(own).astype(np.int32), np.array([0, 13, 26]))
    config = CorpusSettings(recall=1).complete()
    found = {}
    for linkage in Linkage:
        documents = LoadedDocuments(np.arange(2), rows, buckets, None, config)
        join = Join(documents, Criterion(JACCARD, config.threshold, for_merges=True))
        removals = list(linkages.removals(join, linkage, np.sort))
        found[linkage] = sum(len(links.left) for links in removals)
    # 0.8 of 50 and 50 shingles are 45 in both. 37 of each stand after the prefix.
    assert found == dict.fromkeys(Linkage, int(shared + 37 >= 45))


@pytest.mark.parametrize("seed", range(20))
def test_documents_are_kept_as_by_brute_force(seed: int) -> None:
    """Documents of an exact corpus, by a threshold of the corpus or above; values may be equal."""
    print("seed", seed)
    rng = random.Random(seed)
    removed = 0
    for _ in range(20):
        sets = similar_sets(rng)
        bits = rng.choice((5, 64))
        values = {word: rng.getrandbits(bits) for word in range(300)}
        of_corpus = rng.choice((0.07, 0.3, 0.5, 0.55, 0.8, 0.9, 1.0))
        threshold = rng.choice((of_corpus, (of_corpus + 1) / 2))
        count, settled = len(sets), rng.choice((0, rng.randrange(len(sets))))
        may = [i >= settled > 0 and rng.random() < 0.2 for i in range(count)]
        replaced = [rng.randrange(settled) if each else -1 for each in may]
        never_kept = [rng.random() < 0.1 for _ in range(count)]
        apart = {(i, k) for i in range(count) for k in range(i) if rng.random() < 0.05}
        later, earlier = np.array(sorted(apart), np.int64).reshape(-1, 2).T
        kept = keep_representatives(
            rows_of(sets),
            prefixes_of(sets, of_corpus, values),
            settled,
            threshold,
            np.array(replaced),
            NOTHING_SEPARATES._replace(apart=np.sort(pack(later, earlier))),
            np.array(never_kept),
            prefix_threshold=of_corpus,
        )
        expected = kept_by_brute_force(sets, settled, threshold, replaced, never_kept, apart)
        assert list(zip(*map(np.ndarray.tolist, kept), strict=True)) == expected
        removed += sum(kept_by != i for i, (kept_by, _) in enumerate(expected))
    assert removed > 20


def similar_sets(rng: random.Random) -> list[set[int]]:
    """Return sets of 0 to 60 words, many of which are like an earlier set."""
    sets: list[set[int]] = [set()]
    for _ in range(rng.randrange(80)):
        words = rng.sample(range(300), rng.randrange(40))
        if rng.random() < 0.6:
            earlier = sorted(rng.choice(sets))
            words = rng.sample(earlier, len(earlier) * rng.randrange(8, 11) // 10) + words[:3]
        sets.append(set(words))
    return sets


def kept_by_brute_force(
    sets: Sets,
    settled: int,
    threshold: float,
    replaced: list[int],
    never_kept: list[bool],
    apart: set[tuple[int, int]],
) -> list[tuple[int, float]]:
    """Return the document that is kept instead of each document, and the similarity to it."""
    result: list[tuple[int, float]] = []
    standing: list[int] = []
    for i, words in enumerate(sets):
        others = [k for k in standing if k != replaced[i] and (i, k) not in apart]
        similarities = [(reference.jaccard(words, sets[k]), -k) for k in others if i >= settled]
        best, other = max(similarities, default=(0.0, 0))
        is_kept = best < threshold
        result.append((i, 1.0) if is_kept else (-other, best))
        if is_kept and not never_kept[i]:
            standing = [k for k in standing if k != replaced[i]] + [i]
    return result
