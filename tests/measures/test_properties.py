"""Properties of every measure, and of its formula for many pairs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.document_rows import grams, rows_of
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.pair_values import values_of_pairs
from textsim_db.errors import MeasureError
from textsim_db.measures import (
    MEASURES,
    Measure,
    Vocabulary,
    alignment,
    character_shingles,
    cosine_distance,
    cosine_similarity,
    edit_table,
    euclidean,
    idf_weights,
    jaccard,
    levenshtein,
    levenshtein_similarity,
    lr_norm,
    manhattan,
    measure_of,
    pairwise_matrix,
    signature_estimate,
    signature_matrix,
    weighted_jaccard,
    word_ngrams,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "word", "ärger", "漢"]), max_size=15)
INTEGERS = st.lists(st.integers(-3, 3), max_size=15)
CHARACTERS = st.text("ab漢\ud800😀", max_size=15)
ANY = st.one_of(
    st.tuples(WORDS, WORDS, WORDS),
    st.tuples(INTEGERS, INTEGERS, INTEGERS),
    st.tuples(CHARACTERS, CHARACTERS, CHARACTERS),
)
METRICS: dict[str, Callable[[Any, Any], float]] = {
    "jaccard distance": lambda a, b: 1 - jaccard(a, b) if a or b else 0.0,
    "euclidean": euclidean,
    "manhattan": manhattan,
    "L 3": lambda a, b: lr_norm(a, b, 3),
    "L infinity": lambda a, b: lr_norm(a, b, math.inf),
    "levenshtein": levenshtein,
    "levenshtein, substitution 2": lambda a, b: levenshtein(a, b, substitution=2),
}


@given(ANY)
def test_every_measure_is_in_its_range_symmetric_and_exact_for_equal_texts(
    sequences: tuple[Any, Any, Any],
) -> None:
    a, b, _ = sequences
    for measure in MEASURES.values():
        value = measure.function(a, b)
        assert not math.isnan(value)
        assert 0 <= value <= (math.inf if measure.most is None else measure.most)
        if measure.is_symmetric:
            assert value == pytest.approx(measure.function(b, a), abs=1e-12)
        if a:
            identity = measure.function(a, a)
            assert identity == pytest.approx(0.0 if measure.is_distance else 1.0, abs=1e-9)
        elif not b and (measure.name == "cosine_distance" or not measure.is_distance):
            assert value == (90.0 if measure.is_distance else 0.0)
        # The type of a sequence does not change the value.
        assert measure.function(tuple(a), list(b)) == value


@given(ANY)
def test_metrics_satisfy_the_triangle_inequality(sequences: tuple[Any, Any, Any]) -> None:
    a, b, c = sequences
    for name, metric in METRICS.items():
        assert metric(a, c) <= metric(a, b) + metric(b, c) + 1e-9, name
    if a and b and c:
        assert cosine_distance(a, c) <= cosine_distance(a, b) + cosine_distance(b, c) + 1e-5
    assert (levenshtein(a, b) == 0) == (list(a) == list(b))
    assert (jaccard(a, b) == 1) == (bool(a) and set(a) == set(b))


def test_arrays_are_measured_like_lists() -> None:
    a, b = np.array([1, 2, 2], np.int32), np.array([2, 3])
    assert jaccard(a, b) == jaccard([1, 2], [2, 3]) == 1 / 3
    assert levenshtein(a, b) == 2
    assert cosine_similarity(a, [1, 2, 2]) == pytest.approx(1)
    wrapping = {"a": np.uint8(1)}, {"a": np.uint8(2)}
    assert manhattan(*wrapping) == euclidean(*wrapping) == lr_norm(*wrapping, 3) == 1
    large = {"a": np.int8(100)}, {"a": np.int8(1)}
    assert euclidean(*large) == 99
    assert cosine_similarity(*large) == 1
    vocabulary = Vocabulary("ab")
    assert vocabulary.decode(list(vocabulary.encode("ba"))) == ["b", "a"]
    numbers: list[Any] = [[np.int64(7), np.int64(9)], np.array([7, 9]), [7, 9]]
    assert signature_matrix(numbers, functions=[lambda x: x]).tolist() == [[7, 7, 7]]
    assert len(set(map(tuple, signature_matrix(numbers).T.tolist()))) == 1
    assert pairwise_matrix([iter("abc"), iter("abc")], "jaccard").tolist() == [[1, 1], [1, 1]]
    assert levenshtein([""], ["\0"]) == levenshtein(["", "a"], ["\0", "a"]) == 1
    assert levenshtein_similarity("a" * 25, "b" * 25, 0.1, 0.1, 0.1) == 0
    assert signature_matrix([["\ud800"]], 4).shape == (4, 1)
    with pytest.raises(MeasureError, match="an array has 2 dimensions; expected 1"):
        jaccard(np.zeros((2, 2)), b)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jaccard(5, []), "expected a sequence of words, characters or integers, not 5"),  # type: ignore[arg-type]
        (lambda: jaccard([[1]], []), "an item cannot be compared: .*unhashable type"),  # type: ignore[list-item]
        (lambda: euclidean([[1]], []), "an item cannot be compared: .*unhashable type"),  # type: ignore[list-item]
        (lambda: levenshtein([[1]], []), "an item cannot be compared: .*unhashable type"),  # type: ignore[list-item]
        (lambda: euclidean({"a": -1}, {}), "the count of 'a' is -1; expected 0 to 2"),
        (lambda: euclidean({"a": math.nan}, {}), "the count of 'a' is nan; expected 0 to 2"),
        (lambda: euclidean({"a": math.inf}, {}), "the count of 'a' is inf; expected 0 to 2"),
        (lambda: lr_norm("a", "b", 0.5), "r is 0.5; expected 1 or more"),
        (lambda: lr_norm("a", "b", math.nan), "r is nan; expected 1 or more"),
        (lambda: levenshtein("a", "b", -1), "insertion costs -1; expected 0 to 2"),
        (lambda: alignment("a", "b", 1, math.nan), "deletion costs nan; expected 0 to 2"),
        (lambda: levenshtein("a", "b", substitution=math.inf), "substitution costs inf"),
        (lambda: weighted_jaccard("a", "b", {"a": -1.0}), "the weight of 'a' is -1.0"),
        (lambda: idf_weights({"a": 3}, 2), "'a' occurs in 3 documents; expected 1 to 2"),
        (lambda: signature_estimate([1], [1, 2]), "signatures have 1 and 2 values"),
        (lambda: euclidean({"a": None}, {}), "the count of 'a' is None; expected 0 to 2"),
        (lambda: lr_norm("a", "b", 10**400), "r is 10000"),
        (lambda: weighted_jaccard("a", "b", {"a": 1e300}), "the weight of 'a' is 1e.300"),
        (lambda: Vocabulary([[1]]), "an item cannot be compared: .*unhashable"),  # type: ignore[list-item]
        (lambda: signature_matrix([[[1]]]), "an item cannot be compared: .*unhashable"),  # type: ignore[list-item]
        (lambda: character_shingles("abc", 0), "n is 0; expected 1 or more"),
        (lambda: word_ngrams("abc", -1), "n is -1; expected 1 or more"),
        (lambda: measure_of(None), 'there is no measure "None"'),  # type: ignore[arg-type]
        (lambda: edit_table("a" * 3000, "b" * 3000), "3,000 and 3,000 items differ too much"),
        (lambda: alignment("a" * 20000, "b" * 20000, 1, 2), "differ too much to be compared"),
    ],
)
def test_wrong_arguments_are_refused_with_a_message(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(MeasureError, match=message):
        call()


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_a_batch_has_the_values_of_the_function(measure: Measure, rng: random.Random) -> None:
    n = rng.choice((1, 2, 3))
    documents = [[rng.randrange(9) for _ in range(rng.randrange(12))] for _ in range(40)]
    rows = rows_of(documents, n)
    left, right = (side.ravel() for side in np.indices((40, 40)))
    loosest = 1000.0 if measure.is_distance else 1e-9
    values = values_of_pairs(Criterion(measure, loosest), rows, left, right)
    compared = [[*grams(each, n)] if measure.of_shingles else each for each in documents]
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    assert values.tolist() == [measure.function(compared[a], compared[b]) for a, b in pairs]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_no_match_is_below_the_least_jaccard_similarity(
    measure: Measure, rng: random.Random
) -> None:
    jaccard, bounds = MEASURES["jaccard"].function, 0
    for _ in range(500):
        a = "".join(rng.choices("abc", k=rng.randrange(1, 6)))
        b = rng.choice((a, a + "d", "".join(rng.choices("abc", k=3))))
        threshold = measure.function(a, b)
        if not measure.is_distance and not threshold:
            continue
        least = measure.least_jaccard(threshold)
        bounds += least is not None
        assert least is None or jaccard(a, b) >= least - 1e-12
    assert bool(bounds) == (measure.least_jaccard(0.0 if measure.is_distance else 1.0) is not None)
