"""Fast similarity sketching against its definition in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from tests.support import reference
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.sketch import sketch_texts
from textsim_db.sketch.fast_similarity import signatures
from textsim_db.sketch.sketch_texts import sketch_tokens
from textsim_db.text.tokens import tokenize

values = st.integers(-(2**63), 2**63 - 1)
seeds = st.integers(0, 2**63 - 1)


def sketch_sets(sets: list[list[int]], seed: int, num_hashes: int) -> list[list[int]]:
    """Return the signatures of sets, computed in one batch."""
    numbers = np.array([value for value_set in sets for value in value_set], np.int64)
    offsets = np.cumsum([0, *map(len, sets)])
    rows = signatures(numbers.view(np.uint64), offsets, seed, num_hashes)
    assert rows.dtype == np.int16
    return rows.tolist()  # type: ignore[no-any-return]


@given(st.lists(st.lists(values, max_size=12), max_size=4), seeds, st.integers(2, 40))
@example([[0]], 0, 2)
@example([[], [1], []], 0, 3)
@example([[-1, 2**63 - 1, -(2**63)]], 2**63 - 1, 16)
def test_signatures_equal_the_definition(sets: list[list[int]], seed: int, num_hashes: int) -> None:
    sketches_of_sets = sketch_sets(sets, seed, num_hashes)
    for value_set, sketch in zip(sets, sketches_of_sets, strict=True):
        if value_set:
            assert sketch == reference.signature(value_set, seed, num_hashes, every_round=True)
        else:
            assert sketch == [0] * num_hashes


@pytest.mark.parametrize("num_hashes", [2, 3, 127, 128, 200, 4096])
@pytest.mark.parametrize("size", [1, 2, 45, 1023, 1024, 1025, 9000])
def test_sets_of_every_size_are_as_defined(num_hashes: int, size: int, rng: random.Random) -> None:
    large = [rng.randrange(-(2**63), 2**63) for _ in range(size)]
    small = [rng.randrange(-(2**63), 2**63) for _ in range(7)]
    seed = rng.randrange(2**63)
    rows = sketch_sets([small, large, small], seed, num_hashes)
    assert rows[1] == reference.signature(large, seed, num_hashes)
    assert rows[0] == rows[2]


@pytest.mark.parametrize("shingle", ["word:1", "word:3", "char:4"])
@pytest.mark.parametrize("recall", [0.5, 1.0])
def test_a_batch_sketched_in_parts_equals_the_whole(
    shingle: str, recall: float, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CorpusSettings(shingle, num_hashes=16, recall=recall).complete()
    words = ["a", "b", "é漢", "word"]
    texts = [" ".join(rng.choices(words, k=rng.choice([0, 1, 5, 60]))) for _ in range(40)]
    tokens = tokenize([text.encode() for text in texts])
    whole = sketch_tokens(tokens, config)
    for size in (1, 7, 100, 1000):
        monkeypatch.setattr(sketch_texts, "_BYTES_AT_ONCE", size)
        in_parts = sketch_tokens(tokens, config)
        assert np.array_equal(in_parts.shingle_counts, whole.shingle_counts)
        for name in ("signatures", "buckets"):
            arrays = zip(getattr(in_parts, name), getattr(whole, name), strict=True)
            assert all(np.array_equal(part, array) for part, array in arrays)
        assert sum(each.documents for each in tokens.slices(size)) == len(texts)
