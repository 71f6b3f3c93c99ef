"""Settings choose bands and rows, and plan() lists them with their probabilities."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import textsim_db as ts
from textsim_db import ConfigurationError
from textsim_db.settings.choose_bands import Bands, choose_bands
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch.exact_prefix import shares_enough, smallest_values
from textsim_db.sketch.plan_options import Distribution, options


def test_the_defaults_give_18_bands_of_7_rows() -> None:
    assert choose_bands(0.8, 0.95, 128) == Bands(18, 7)
    assert (CorpusSettings().complete().bands, CorpusSettings().complete().rows) == (18, 7)
    assert CorpusSettings().complete().shingle == Shingle("word", 3)
    assert CorpusSettings().complete().probability(0.8) == pytest.approx(0.98554, abs=0.00001)


@given(st.floats(0.01, 1.0), st.floats(0.01, 0.9999), st.integers(2, 300))
def test_the_most_rows_reach_the_recall(threshold: float, recall: float, num_hashes: int) -> None:
    def probability(rows: int) -> float:
        return 1 - math.pow(1 - math.pow(threshold, rows), num_hashes // rows)

    enough = [rows for rows in range(2, num_hashes + 1) if probability(rows) >= recall]
    if enough:
        rows = max(enough)
        assert choose_bands(threshold, recall, num_hashes) == (num_hashes // rows, rows)
    else:
        with pytest.raises(ConfigurationError, match="the best is"):
            choose_bands(threshold, recall, num_hashes)


def test_explicit_bands_and_rows_decide_the_recall() -> None:
    config = CorpusSettings(num_hashes=100, bands=20, rows=5, recall=0.1).complete()
    assert config.banding == Bands(20, 5)
    assert config.recall == Bands(20, 5).probability(0.8)
    assert CorpusSettings(num_hashes=4096, bands=2048, rows=2).complete().num_hashes == 4096


def test_a_band_has_at_least_two_rows() -> None:
    # A single row would reach the recall: 1 - (1 - 0.1)^128 is above 0.99999.
    with pytest.raises(ConfigurationError, match="with 2 rows a band: use recall 1, which makes"):
        CorpusSettings(threshold=0.1).complete()


@pytest.mark.parametrize("threshold", [0.01, 0.8, 1])
@pytest.mark.parametrize("num_hashes", [2, 128])
def test_recall_1_without_bands_makes_an_exact_corpus(threshold: float, num_hashes: int) -> None:
    settings = CorpusSettings(threshold=threshold, recall=1, num_hashes=num_hashes)
    config = settings.complete()
    assert config.is_exact
    assert (config.bands, config.rows, config.banding) == (None, None, None)
    assert config.recall == 1
    assert config.probability(threshold) == config.probability(1) == 1
    assert config.probability(0.999 * threshold) == 0
    assert config.changed(seed=5).is_exact
    assert config.changed(threshold=0.9).is_exact
    changed = config.changed(recall=0.9, threshold=0.8, num_hashes=128)
    assert changed.banding == choose_bands(0.8, 0.9, 128)
    assert CorpusSettings().complete().changed(recall=1).is_exact


def test_explicit_bands_make_no_exact_corpus() -> None:
    assert CorpusSettings(recall=1, bands=18, rows=7).complete().recall < 1
    # The formula in floating point rounds to 1 for these bands.
    assert CorpusSettings(bands=64, rows=2).complete().recall < 1
    assert CorpusSettings(threshold=0.9, bands=64, rows=2).complete().recall < 1
    assert CorpusSettings(threshold=1, bands=64, rows=2).complete().recall == 1


@pytest.mark.parametrize(
    ("text", "shingle"), [("word:1", ("word", 1)), ("char:1000", ("char", 1000))]
)
def test_a_shingle_setting_is_parsed_and_printed(text: str, shingle: tuple[str, int]) -> None:
    assert Shingle.parse(text) == shingle
    assert str(Shingle.parse(text)) == text


def test_bands_at_threshold_1_stay_bands_in_a_rebuild() -> None:
    config = CorpusSettings(threshold=1.0, bands=18, rows=7).complete()
    assert config.recall == 1
    assert not config.changed(threshold=0.8).is_exact
    assert CorpusSettings(recall=1.0).complete().changed(threshold=0.7).is_exact
    assert not CorpusSettings(recall=1.0).complete().changed(recall=0.95).is_exact


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("num_hashes", [60, 128, 256])
def test_a_corpus_gets_the_chosen_option(threshold: float, recall: float, num_hashes: int) -> None:
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


@pytest.mark.parametrize(("shingles", "similarity"), [(20, 0.6), (198, 0.4), (500, 0.1)])
def test_exact_candidates_by_chance(rng: random.Random, shingles: int, similarity: float) -> None:
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
