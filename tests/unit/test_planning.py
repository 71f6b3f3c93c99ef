"""plan() lists bands and rows with their probabilities, and marks the chosen option."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import textsim_db as ts
from textsim_db.choose_bands import Bands, choose_bands
from textsim_db.sketch.cost_of_bands import Distribution, is_optimistic, options, wilson
from textsim_db.sketch.exact_prefix import shares_enough, smallest_values
from textsim_db.sketch.fast_similarity import signatures


def test_bands_near_the_threshold_find_less_than_half_of_the_pairs() -> None:
    by_banding = {(option.bands, option.rows): option for option in ts.plan(num_hashes=128)}
    assert by_banding[9, 14].recall < 0.4
    assert Bands(9, 13).probability(0.8) == pytest.approx(0.40, abs=0.005)
    assert by_banding[8, 16].recall == pytest.approx(0.20, abs=0.005)


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("num_hashes", [60, 128, 256])
def test_the_chosen_option_is_the_one_that_a_corpus_gets(
    threshold: float, recall: float, num_hashes: int
) -> None:
    exact, *all_options = ts.plan(threshold, recall, num_hashes)
    assert exact.banding is None
    assert not exact.chosen
    assert [option.rows for option in all_options] == list(range(2, num_hashes + 1))
    (chosen,) = [option for option in all_options if option.chosen]
    assert (chosen.bands, chosen.rows) == choose_bands(threshold, recall, num_hashes)
    assert chosen.recall >= recall
    for before, after in pairwise(all_options):
        assert before.recall >= after.recall
        assert before.storage >= after.storage
        assert before.candidates >= after.candidates


def test_candidates_follow_from_the_distribution_of_similarities() -> None:
    distribution = Distribution([0.1, 0.5, 1.0], [1000, 10, 2], 10**6)
    for option in options(0.8, 0.95, 128, 100, distribution)[1:]:
        expected = 1000 * option.probability(0.1) + 10 * option.probability(0.5) + 2
        expected += option.band_rows**2 * 10**6 / 2**32
        assert option.candidates == pytest.approx(expected)


@pytest.mark.parametrize("shingles", [20, 198, 1000])
@pytest.mark.parametrize("similarity", [0.1, 0.2, 0.4, 0.6])
def test_candidates_of_an_exact_corpus_are_those_of_random_sets(
    rng: random.Random, shingles: int, similarity: float
) -> None:
    common = round(2 * similarity / (1 + similarity) * shingles)
    bounds = np.array([0, shingles])
    found = 0
    for _ in range(200):
        values = np.array([rng.getrandbits(64) for _ in range(2 * shingles - common)], np.uint64)
        sets = (values[:shingles], values[shingles - common :])
        one, other = (set(smallest_values(v, bounds, 0.8).values.tolist()) for v in sets)
        found += shares_enough(len(one & other), shingles, shingles, 0.8)
    expected = Distribution([similarity], [200], 200).exact_candidates(0.8, shingles)
    assert found == pytest.approx(expected, abs=60)


def test_a_large_corpus_has_candidates_by_hash_collision() -> None:
    (chosen,) = (o for o in ts.plan(documents=100_000_000, background=0) if o.chosen)
    assert (chosen.bands, chosen.rows) == (18, 7)
    assert chosen.candidates == pytest.approx(7.5, abs=0.1)


@pytest.mark.parametrize("size", [20, 100])
def test_fewer_pairs_than_the_formula_are_found_only_where_it_is_optimistic(size: int) -> None:
    """The shares of random pairs that become candidates differ from the formula as documented."""
    pairs, hashes, rng = 20_000, 128, np.random.default_rng(size)
    optimistic = set()
    for similarity in (0.5, 0.6, 0.7, 0.8, 0.9):
        shared = round(2 * size * similarity / (1 + similarity))
        values = rng.integers(0, 2**64, (pairs, 2 * size), np.uint64, endpoint=False)
        values[:, size : size + shared] = values[:, :shared]
        made = signatures(values.ravel(), np.arange(0, values.size + 1, size), 1, hashes)
        equal = made[0::2] == made[1::2]
        for bands in (Bands(18, 7), Bands(10, 12), Bands(42, 3)):
            promised = bands.probability(shared / (2 * size - shared))
            by_band = equal[:, : bands.bands * bands.rows].reshape(pairs, *bands)
            found = by_band.all(axis=2).any(axis=1).mean()
            noise = 4 * (promised * (1 - promised) / pairs) ** 0.5
            optimistic |= {is_optimistic(promised)}
            if is_optimistic(promised) or promised > 0.6:
                most = 0.013 if is_optimistic(promised) else 0
                assert found >= promised - most - noise, f"{bands}, {promised}: {found}"
    assert optimistic == {False, True}


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(0.95, 100)  # equals R's prop.test(95, 100, correct = FALSE)
    assert (round(low, 4), round(high, 4)) == (0.8882, 0.9785)
    assert wilson(1, 100)[1] == 1.0
