"""PostgreSQL's hash functions as kernels, against plain arithmetic."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import reference
from tests.support.hashes import hash_array, hash_integers
from textsim_db.text.hashing import hash_bands, hash_texts

integers = st.integers(-(2**63), 2**63 - 1)
small_integers = st.integers(-(2**15), 2**15 - 1)


@given(st.lists(integers, min_size=1), st.one_of(st.just(0), integers))
def test_hashes_of_integers_equal_the_reference(values: list[int], seed: int) -> None:
    hashes = hash_integers(np.array(values, np.int64), seed).tolist()
    assert hashes == [reference.integer_hash(value, seed) for value in values]
    assert hash_array(values, seed) == reference.array_hash(values, seed)


def test_an_empty_array_hashes_to_1() -> None:
    assert hash_array([], 7) == reference.array_hash([], 7) == 1


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_hashes_of_texts_equal_the_reference(text: str) -> None:
    assert hash_texts([text, "x", text]) == [
        reference.text_hash(text),
        reference.text_hash("x"),
        reference.text_hash(text),
    ]


@pytest.mark.parametrize("length", range(40))
def test_texts_of_every_length_equal_the_reference(length: int, rng: random.Random) -> None:
    texts = ["".join(map(chr, rng.choices(range(1, 128), k=length))) for _ in range(20)]
    assert hash_texts(texts) == [reference.text_hash(text) for text in texts]


@given(
    st.lists(small_integers, min_size=12, max_size=12), st.sampled_from([(6, 2), (4, 3), (1, 12)])
)
def test_buckets_of_bands_equal_the_reference(values: list[int], banding: tuple[int, int]) -> None:
    bands, rows = banding
    expected = [reference.buckets(values, bands, rows)]
    computed = hash_bands(np.array([values], np.int16), bands, rows)
    assert computed.dtype == np.int32
    assert computed.tolist() == expected
    assert hash_bands(np.array([values], np.int32), bands, rows).tolist() == expected
