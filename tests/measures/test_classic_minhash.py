"""Classic signatures estimate the Jaccard similarity as precisely as the theory states."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from textsim_db.measures.classic_minhash import PRIME, coefficients, signatures

SEEDS = 300
NUM_HASHES = 64


def plain_signature(values: list[int], seed: int, num_hashes: int) -> list[int]:
    drawn = coefficients(seed, num_hashes)
    return [
        min((a * (x & 0x7FFFFFFF) + b) % PRIME for x in values)
        for a, b in zip(drawn.a.tolist(), drawn.b.tolist(), strict=True)
    ]


def test_coefficients_are_in_their_ranges() -> None:
    for seed in (0, 1, 12345, 2**63 - 1):
        drawn = coefficients(seed, 4096)
        assert drawn.a.min() >= 1
        assert drawn.a.max() <= PRIME - 1
        assert drawn.b.min() >= 0
        assert drawn.b.max() <= PRIME - 1
        assert len(set(drawn.a.tolist())) > 4090
    assert coefficients(5, 10).a.tolist() == coefficients(5, 20).a[:10].tolist()


def test_signatures_equal_plain_arithmetic(rng: random.Random) -> None:
    sets = [[rng.getrandbits(64) for _ in range(rng.choice([1, 2, 50]))] for _ in range(50)]
    # Limits of the arithmetic: 0, p - 1, p, p + 1 and all bits set.
    sets += [[0], [PRIME - 1], [PRIME], [PRIME + 1], [2**64 - 1], [2**63], [0, PRIME]]
    hashes = np.array([x for values in sets for x in values], np.uint64)
    offsets = np.concatenate(([0], np.cumsum([len(values) for values in sets]))).astype(np.int64)
    computed = signatures(hashes, offsets, *coefficients(3, 40))
    assert computed.dtype == np.int32
    assert computed.tolist() == [plain_signature(values, 3, 40) for values in sets]


@pytest.mark.parametrize("similarity", [0.1, 0.5, 0.8, 0.95])
def test_estimates_over_many_seeds_are_unbiased_and_as_precise_as_expected(
    similarity: float, rng: random.Random
) -> None:
    shared = round(400 * similarity)
    unshared = (400 - shared) // 2
    values = rng.sample(range(2**31 - 1), shared + 2 * unshared)
    exact = shared / (shared + 2 * unshared)
    hashes = np.array(
        values[: shared + unshared] + values[:shared] + values[shared + unshared :], np.uint64
    )
    offsets = np.array([0, shared + unshared, 2 * (shared + unshared)], np.int64)
    sampled = []
    for seed in range(SEEDS):
        left, right = signatures(hashes, offsets, *coefficients(seed, NUM_HASHES))
        sampled.append(float(np.mean(left == right)))
    error = math.sqrt(exact * (1 - exact) / NUM_HASHES)
    mean = sum(sampled) / SEEDS
    assert abs(mean - exact) <= 4 * error / math.sqrt(SEEDS), f"mean {mean}, exact {exact}"
    outside = sum(abs(estimate - exact) > 3 * error for estimate in sampled)
    assert outside <= 0.03 * SEEDS, f"{outside} of {SEEDS} further off than 3 standard errors"
    spread = math.sqrt(sum((estimate - mean) ** 2 for estimate in sampled) / SEEDS)
    assert 0.75 * error <= spread <= 1.25 * error, f"spread {spread}, expected {error}"
