"""The list of common shingles: which values are listed, their classes, and how they are found."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.support import reference
from textsim_db.settings import CorpusSettings
from textsim_db.sketch.common_shingles import NO_COMMON, class_of, common_values
from textsim_db.sketch.exact_prefix import smallest_values
from textsim_db.sketch.learn_classes import learn_common
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import tokens_of

EXACT = CorpusSettings(shingle="word:1", recall=1).complete()


@pytest.mark.parametrize("documents", [0, 99, 100, 3000])
@pytest.mark.parametrize("share", [1, 1 / 4, 1 / 1000])
def test_common_shingles_are_those_of_several_documents(
    documents: int, share: float, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textsim_db.sketch.learn_classes.COMMON_SHARE", share)
    texts = [
        f"all own{i} {rng.choice(['a', 'b'])} w{rng.randrange(2000)}" for i in range(documents)
    ]
    parts = [tokens_of([t.encode() for t in texts[i : i + 700]]) for i in range(0, documents, 700)]
    hashes = [
        value for part in parts for value in find_shingles(part, EXACT.shingle).hashes.tolist()
    ]
    counts = Counter(reference.signed(value, 64) for value in hashes)
    least = max(2, documents * share)
    expected = {v: n.bit_length() - 1 for v, n in counts.items() if n >= least}
    listed = learn_common(parts, EXACT).common or NO_COMMON
    classes = dict(zip(listed.values.tolist(), listed.classes.tolist(), strict=True))
    assert classes == (expected if documents >= 100 else {})
    assert listed.values.tolist() == sorted(classes)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 100, 5000])
@pytest.mark.parametrize("bits", [6, 20, 63])
def test_listed_values_are_found_and_no_others(count: int, bits: int, rng: random.Random) -> None:
    """With few bits, all values have the same leading bits."""
    chosen = {rng.getrandbits(bits) - 2 ** (bits - 1) for _ in range(count)}
    values = sorted(chosen | ({-(2**63), 2**63 - 1} if count > 2 else set()))
    classes = {value: rng.randrange(1, 20) for value in values}
    listed = common_values(np.array(values, np.int64), np.array(list(classes.values()), np.int16))
    asked = [*values, *(max(-(2**63), v - 1) for v in values), *range(-3, 3), -(2**63), 2**63 - 1]
    for value in asked:
        assert class_of(np.int64(value), listed) == classes.get(value, 0)


def test_values_with_equal_leading_bits_are_sorted(rng: random.Random) -> None:
    """Somebody who chooses words by their hashes can make them equal in their leading bits."""
    for size in (10, 1000, 20_000):
        values = [rng.getrandbits(30) - 2**63 for _ in range(size)]
        rows = smallest_values(np.array(values, np.int64).view(np.uint64), np.array([0, size]), 0.8)
        assert rows.values.tolist() == reference.exact_signature(values, 0.8)
