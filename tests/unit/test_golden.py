"""The recipe computes the golden values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import reference
from tests.support.golden import (
    EXACT_DIGESTS,
    EXACT_THRESHOLD,
    GOLDEN,
    TEXTS,
    Golden,
    digest,
    exact_golden_config,
    golden_config,
)
from textsim_db.sketch import sketch_texts
from textsim_db.sketch.fast_similarity import base
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import normal_form, tokenize


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden.name} {golden.shingle}")
def test_the_golden_values(golden: Golden) -> None:
    text, config = golden.text, golden_config(golden.shingle)
    assert normal_form(text) == reference.normal_form(text) == golden.normal_form
    shingles = find_shingles(tokenize([text.encode()]), config.shingle)
    values = shingles.hashes.astype(np.int64).tolist()
    assert values == reference.shingle_values(text, *config.shingle)
    signature = sketch_texts.signature(text, config).tolist()
    buckets = sketch_texts.buckets(text, config).tolist()
    assert digest(values, signature, buckets) == golden.digest


@pytest.mark.parametrize(("name", "shingle"), EXACT_DIGESTS)
def test_the_signature_of_an_exact_corpus_is_the_golden_value(name: str, shingle: str) -> None:
    text, config = TEXTS[name][0], exact_golden_config(shingle)
    signature = sketch_texts.signature(text, config).tolist()
    assert sketch_texts.buckets(text, config).tolist() == signature
    values = reference.shingle_values(text, *config.shingle)
    assert reference.exact_signature(values, EXACT_THRESHOLD) == signature
    assert digest(signature) == EXACT_DIGESTS[name, shingle]


def test_the_base_is_a_number_of_splitmix64() -> None:
    # The first numbers of splitmix64 with the states 0 and 7, without the highest two bits.
    assert base(0) == 0xE220A8397B1DCDAF & (2**62 - 1)
    assert base(7) == 0x23CBE1E459320DD7
    assert all(base(seed) == reference.base(seed) for seed in (0, 1, 2**63 - 1))
