"""The texts that guards keep apart and split, on labelled pairs, and on questions of a cache."""

from __future__ import annotations

from benchmarks.guards import measure_questions, measure_sets
from tests.support.real_corpora import records

LEAST_APART = {
    "SICK_contradiction": 0.90,
    "WDC_cameras_other": 0.95,
    "WDC_computers_other": 0.99,
    "WDC_shoes_other": 0.83,
    "WDC_watches_other": 0.97,
    "negation_removed_de": 0.88,
    "negation_removed_de_no_opposites": 0.99,
    "negation_removed_en": 0.94,
    "negation_removed_en_no_opposites": 0.99,
    "negation_removed_fr": 0.90,
    "negation_removed_fr_no_opposites": 0.97,
    "negation_removed_zh": 0.99,
    "negation_removed_zh_no_opposites": 0.99,
    "sentiment_labelled_sentences_negated": 0.99,
    "wikifactcheck_english_negated": 0.18,
}
MOST_APART = {
    "SICK_entailment": 0.0058,
    "WDC_cameras_match": 0.68,
    "WDC_computers_match": 0.83,
    "WDC_shoes_match": 0.38,
    "WDC_watches_match": 0.62,
}


def test_labelled_pairs_are_kept_apart_as_the_page_says() -> None:
    figures, _ = measure_sets(records("guards/pairs"))
    assert figures.keys() == LEAST_APART.keys() | MOST_APART.keys()
    assert [n for n, least in LEAST_APART.items() if figures[n]["apart"] < least] == []
    assert [n for n, most in MOST_APART.items() if figures[n]["apart"] > most] == []
    assert all(figures[name]["content"] > 0.99 for name in LEAST_APART)


def test_a_cache_with_content_gives_no_wrong_answer() -> None:
    figures, _ = measure_questions()
    assert figures["content"]["same"] >= 14
    assert figures["content"]["different"] == 0
    assert figures["numbers_negations"]["different"] > 20
