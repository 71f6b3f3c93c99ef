"""The recipe computes what it always has."""

from __future__ import annotations

import pytest

from tests.support import reference
from tests.support.golden import GOLDEN, Golden, golden_config
from textsim_db.sketch import sketches
from textsim_db.sketch.minhash import coefficients
from textsim_db.text.hashing import hash_texts
from textsim_db.text.shingles import shingles
from textsim_db.text.tokens import normal_form

parametrized = pytest.mark.parametrize(
    "golden", GOLDEN, ids=lambda golden: f"{golden.name} {golden.shingle}"
)


@parametrized
def test_normal_form(golden: Golden) -> None:
    assert normal_form(golden.text) == golden.normal_form
    assert reference.normal_form(golden.text) == golden.normal_form


@parametrized
def test_shingle_values(golden: Golden) -> None:
    hashes = hash_texts(shingles(golden.text, golden.shingle)[:3])
    assert [value & 0x7FFFFFFF for value in hashes] == golden.values


@parametrized
def test_signature(golden: Golden) -> None:
    config = golden_config(golden.shingle)
    assert sketches.signature(golden.text, config).tolist() == golden.signature


@parametrized
def test_buckets(golden: Golden) -> None:
    config = golden_config(golden.shingle)
    assert sketches.buckets(golden.text, config).tolist() == golden.buckets


def test_coefficients() -> None:
    made = coefficients(7, 3)
    assert made.a.tolist() == [1751225710, 1427254291, 963317627]
    assert made.b.tolist() == [2094325707, 297009326, 1265903391]
    assert coefficients(0, 1).a.tolist() == [1 + 0xE220A8397B1DCDAF % (2**31 - 2)]
    assert coefficients(0, 1).b.tolist() == [0x6E789E6AA1B965F4 % (2**31 - 1)]


def test_hashes_of_known_texts() -> None:
    # As hashtextextended(text, 0) of PostgreSQL 14 to 18 gives them.
    assert hash_texts(["", "a", "twelve bytes"]) == [
        -6939563903564495251,
        3591986179850072241,
        -7123776401673968163,
    ]
