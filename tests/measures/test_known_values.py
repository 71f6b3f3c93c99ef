"""Values of the measures that books and articles state, and classic MinHash."""

from __future__ import annotations

import math
import random
from itertools import islice

import numpy as np
import pytest

from textsim_db.errors import ConfigurationError, MeasureError
from textsim_db.measures import (
    MEASURES,
    Arrow,
    Vocabulary,
    alignment,
    bag_of_words,
    character_shingles,
    characteristic_matrix,
    containment,
    cosine_distance,
    counts,
    dice,
    document_frequencies,
    edit_table,
    frequencies,
    idf_weights,
    jaccard,
    jaccard_of_counts,
    levenshtein,
    levenshtein_similarity,
    lsh_buckets,
    lsh_candidates,
    lsh_candidates_of,
    measure_of,
    overlap,
    pairwise_matrix,
    signature_estimate,
    signature_matrix,
    weighted_jaccard,
    without_stop_words,
    word_counts,
    word_ngrams,
    words,
)
from textsim_db.measures.matrices import FAMILIES, PRIME, coefficients, signatures
from textsim_db.settings.choose_bands import Bands
from textsim_db.sketch.fast_similarity import splitmix64
from textsim_db.text.hashing import hash_texts


def test_levenshtein_equals_published_values() -> None:
    # Jurafsky and Martin, "Speech and Language Processing", chapter 2.
    assert levenshtein("INTENTION", "EXECUTION", substitution=2) == 8
    assert levenshtein("EXECUTION", "INTENTION", substitution=2) == 8
    assert levenshtein("INTENTION", "EXECUTION") == 5
    assert levenshtein("agtcc", "cgctca") == 3
    assert levenshtein("kitten", "sitting") == 3
    assert levenshtein(["the", "cat"], ["the", "black", "cat"], insertion=5) == 5
    assert levenshtein("abc", "", deletion=2) == 6
    assert levenshtein("", "abc", insertion=0.5) == 1.5
    assert levenshtein("ab", "ba", substitution=0.75) == 1.5
    assert levenshtein([-1], [-2]) == 1  # Python gives both the same hash
    assert levenshtein([2**61 - 1], [0]) == 1
    assert levenshtein(["a"], [97]) == 1
    assert levenshtein(["ab", "c"], ["a", "bc"]) == 2
    assert levenshtein_similarity("kitten", "sitting") == 1 - 3 / 7
    assert levenshtein_similarity("abc", "xyz") == 0
    assert levenshtein_similarity("abc", "xyz", substitution=3) == 0


def test_an_alignment_equals_the_published_one() -> None:
    rows = alignment("EXECUTION", "INTENTION", substitution=2)
    assert ["".join(str(item or "*") for item in row) for row in rows] == [
        "*EXECUTION",
        "INTE*NTION",
    ]
    assert alignment("", "") == ([], [])
    assert alignment("ab", "") == (["a", "b"], [None, None])
    assert alignment(["a", "b"], ["b"]) == (["a", "b"], [None, "b"])


def test_an_edit_table_has_distances_and_arrows() -> None:
    table = edit_table("agtcc", "cgctca")
    assert table.distances[5, 6] == 3
    assert table.distances[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert table.distances[0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert Arrow(int(table.arrows[1, 1])) == Arrow.DIAGONAL
    assert Arrow(int(table.arrows[1, 2])) == Arrow.DIAGONAL | Arrow.LEFT
    assert str(edit_table("a", "b")).splitlines() == ["   #  b", "#  0 ←1", "a ↑1 ↖1"]


def test_other_measures_of_sets_equal_published_values() -> None:
    assert containment("ab", "abcd") == 1
    assert containment("abcd", "ab") == 0.5
    assert overlap("abcd", "abx") == 2 / 3
    assert dice("abcd", "abx") == 4 / 7
    assert cosine_distance("a" * 10**6 + "b", "a" * 10**6) == pytest.approx(math.degrees(1e-6))
    # Mining of Massive Datasets, example 3.2, for bags.
    assert jaccard_of_counts("aaab", "aabbc") == 3 / 6
    frequency = document_frequencies(["ab", "bc", "b"])
    weights = idf_weights(frequency, 3)
    assert weights == {"a": math.log(3), "b": 0, "c": math.log(3)}
    assert weighted_jaccard("ab", "bc", weights) == 0
    assert weighted_jaccard("ab", "ax", weights) == pytest.approx(math.log(3) / (math.log(3) + 1))
    assert weighted_jaccard("ab", "bc", {}) == jaccard("ab", "bc")


def test_examples_of_mining_of_massive_datasets_are_reproduced() -> None:
    # Example 3.3: the 2-shingles of abcdabd.
    assert set(character_shingles("abcdabd", 2)) == {"ab", "bc", "cd", "da", "bd"}
    # Figure 3.2 and example 3.6.
    documents = ["ad", "c", "bde", "acd"]
    matrix = characteristic_matrix(documents)
    order = [matrix.items.index(item) for item in "abcde"]
    assert matrix.matrix.toarray()[order].astype(int).tolist() == [
        [1, 0, 0, 1],
        [0, 0, 1, 0],
        [0, 1, 0, 1],
        [1, 0, 1, 1],
        [0, 0, 1, 0],
    ]
    # Figure 3.4 and example 3.8: the hash functions x + 1 and 3x + 1 modulo 5.
    rows = [["abcde".index(item) for item in document] for document in documents]
    signature_columns = signature_matrix(
        rows, functions=[lambda x: (x + 1) % 5, lambda x: (3 * x + 1) % 5]
    )
    assert signature_columns.tolist() == [[1, 3, 0, 1], [0, 2, 0, 0]]
    assert signature_estimate(signature_columns[:, 0], signature_columns[:, 3]).similarity == 1
    error = signature_estimate([1, 2, 3, 4], [1, 2, 3, 5]).standard_error
    assert error == pytest.approx(math.sqrt(3 / 4 * 1 / 4 / 4))
    assert jaccard(rows[0], rows[3]) == 2 / 3
    # Section 3.4.1, of these columns: one band of two rows, and two bands of one row.
    assert lsh_buckets(signature_columns, rows=2).tolist() == [[1, 2, 0, 1]]
    assert lsh_candidates(signature_columns, rows=2).tolist() == [[0, 3]]
    assert lsh_candidates(signature_columns, rows=1).tolist() == [[0, 2], [0, 3], [2, 3]]
    assert lsh_candidates_of(signature_columns, rows=1, column=1).tolist() == []
    assert lsh_candidates_of(signature_columns, rows=1, column=2).tolist() == [0, 3]
    # Figure 3.8: the S-curve of 20 bands of 5 rows.
    banding = Bands(20, 5)
    for similarity, probability in {0.2: 0.006, 0.3: 0.047, 0.4: 0.186, 0.5: 0.470}.items():
        assert banding.probability(similarity) == pytest.approx(probability, abs=0.0005)
    for similarity, probability in {0.6: 0.802, 0.7: 0.975, 0.8: 0.9996}.items():
        assert banding.probability(similarity) == pytest.approx(probability, abs=0.0005)


def test_a_text_becomes_words_counts_and_shingles() -> None:
    text = "The cat, the CAT and the dog"
    assert bag_of_words(text) == {"the", "cat", "and", "dog"}
    assert word_counts(text) == {"the": 3, "cat": 2, "and": 1, "dog": 1}
    assert without_stop_words(text, ["The", "AND"]) == ["cat", "cat", "dog"]
    assert word_ngrams("a b c", 2) == [("a", "b"), ("b", "c")]
    assert word_ngrams("a b", 3) == [("a", "b")]
    assert word_ngrams("", 3) == []
    assert character_shingles("?", 3) == []
    assert character_shingles("ab", 5) == ["ab"]
    assert counts([1, 2, 1]) == {1: 2, 2: 1}
    vectors = frequencies("aab", "bc")
    assert (vectors.items, vectors.a.tolist(), vectors.b.tolist()) == (
        ["a", "b", "c"],
        [2, 1, 0],
        [0, 1, 1],
    )


def test_a_vocabulary_numbers_words_in_order_of_appearance() -> None:
    vocabulary = Vocabulary(words("a rose is a rose"))
    assert len(vocabulary) == 3
    assert vocabulary.encode(["rose", "is", "red"]).tolist() == [1, 2, 3]
    assert vocabulary.decode(np.array([0, 3])) == ["a", "red"]
    assert list(vocabulary) == ["a", "rose", "is", "red"]
    assert "red" in vocabulary
    with pytest.raises(MeasureError, match="no word has the id 4; expected 0 to 3"):
        vocabulary.decode([4])


def test_a_pairwise_matrix_has_the_measure_of_every_pair() -> None:
    matrix = pairwise_matrix(["abc", "abd", ""], "cosine_similarity")
    assert matrix.tolist() == [
        [pytest.approx(1), pytest.approx(2 / 3), 0],
        [pytest.approx(2 / 3), pytest.approx(1), 0],
        [0, 0, 0],
    ]
    assert pairwise_matrix([], "jaccard").shape == (0, 0)
    assert pairwise_matrix(["ab", "b"], containment).tolist() == [[1, 0.5], [1, 1]]
    with pytest.raises(MeasureError, match='did you mean "euclidean"'):
        pairwise_matrix([], "euklidean")
    assert measure_of("cosine_similarity") is MEASURES["cosine_similarity"]


def test_signatures_of_strings_use_the_hashes_of_texts() -> None:
    (column,) = signature_matrix([["a", "b"]], 64, 9).T
    a, b = (row.tolist() for row in coefficients(9, 64))
    values = [x & PRIME for x in hash_texts(["a", "b"])]
    smallest = [min((a[i] * x + b[i]) % PRIME for x in values) for i in range(64)]
    assert column.tolist() == smallest
    assert signature_matrix([[], ["a", 1]], 4).shape == (4, 2)
    assert signature_matrix([[]], 4).tolist() == [[2**31 - 1]] * 4
    assert signature_matrix([[]], 4, functions="multiply_shift").tolist() == [[2**32]] * 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_share_of_candidates_follows_the_curve(family: str) -> None:
    """Mining of Massive Datasets, figure 3.8: 20 bands of 5 rows, by each family of hash functions."""
    pairs = 1_000
    for shared, probability in {4: 0.006, 8: 0.186, 10: 0.470, 12: 0.802, 14: 0.975}.items():
        sets = [
            [*range(100 * n, 100 * n + shared), *range(start, start + (20 - shared) // 2)]
            for n in range(pairs)
            for start in (100 * n + 30, 100 * n + 60)
        ]
        similarity = jaccard(sets[0], sets[1])
        assert similarity == shared / 20
        columns = signature_matrix(sets, 100, seed=7, functions=family)
        equal = (columns[:, ::2] == columns[:, 1::2]).mean()
        # 100,000 values are compared, so this is four standard errors and more.
        assert equal == pytest.approx(similarity, abs=0.0065)
        found = lsh_candidates(columns, rows=5)
        twins = found[(found[:, 0] % 2 == 0) & (found[:, 1] == found[:, 0] + 1)]
        error = math.sqrt(probability * (1 - probability) / pairs)
        assert len(twins) / pairs == pytest.approx(probability, abs=4 * error + 0.0005)
        assert len(found) - len(twins) <= 2  # sets that share nothing


def test_candidates_are_the_columns_that_share_a_band(rng: random.Random) -> None:
    """Random matrices, against the definition."""
    for _ in range(60):
        rows, bands, documents = rng.choice([1, 2, 5]), rng.randrange(1, 5), rng.randrange(20)
        matrix = np.array(
            [[rng.randrange(3) - 1 for _ in range(documents)] for _ in range(rows * bands)]
        )
        columns = [tuple(column) for column in matrix.T.tolist()]
        parts = [range(first, first + rows) for first in range(0, rows * bands, rows)]
        expected = [
            [i, k]
            for i, one in enumerate(columns)
            for k, other in enumerate(columns)
            if i < k and any(all(one[r] == other[r] for r in part) for part in parts)
        ]
        assert lsh_candidates(matrix, rows).tolist() == expected
        for column in range(documents):
            others = sorted(sum(pair) - column for pair in expected if column in pair)
            assert lsh_candidates_of(matrix, rows, column).tolist() == others
    assert lsh_candidates(np.empty((4, 0), np.int64), 2).shape == (0, 2)
    for wrong, rows, message in (
        ([[1], [2], [3]], 2, "3 hashes cannot be cut into bands of 2 rows"),
        ([1, 2], 1, r"shape \(2,\); expected integers"),
        ([[0.5]], 1, "array of float64"),
    ):
        with pytest.raises(MeasureError, match=message):
            lsh_buckets(wrong, rows)
    with pytest.raises(ConfigurationError, match="rows is 3; expected 1 to 2"):
        lsh_buckets([[1], [2]], 3)
    with pytest.raises(ConfigurationError, match="column is 1; expected 0 to 0"):
        lsh_candidates_of([[1], [2]], 1, 1)
    with pytest.raises(MeasureError, match='no family "mod_prim"; did you mean "mod_prime"'):
        signature_matrix([["a"]], functions="mod_prim")


def plain_signature(values: list[int], seed: int, num_hashes: int, family: str) -> list[int]:
    if family == "multiply_shift":
        draws = list(islice(splitmix64(seed), 2 * num_hashes))
        return [
            min((a * (x % 2**32) + b) % 2**64 // 2**32 for x in values)
            for a, b in zip(draws[::2], draws[1::2], strict=True)
        ]
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


@pytest.mark.parametrize("family", FAMILIES)
def test_signatures_equal_plain_arithmetic(rng: random.Random, family: str) -> None:
    sets = [[rng.getrandbits(64) for _ in range(rng.choice([1, 2, 50]))] for _ in range(50)]
    # Limits of the arithmetic: 0, p - 1, p, p + 1 and all bits set.
    sets += [[0], [PRIME - 1], [PRIME], [PRIME + 1], [2**64 - 1], [2**63], [0, PRIME]]
    hashes = np.array([x for values in sets for x in values], np.uint64)
    offsets = np.concatenate(([0], np.cumsum([len(values) for values in sets]))).astype(np.int64)
    computed = signatures(hashes, offsets, FAMILIES[family], 40, 3)
    assert computed.dtype == np.int64
    assert computed.T.tolist() == [plain_signature(values, 3, 40, family) for values in sets]
