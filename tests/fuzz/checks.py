"""Checks that every batch of hostile inputs must pass.

Every input goes through the kernels; slow references check a sample of each batch. If NUMBA_BOUNDSCHECK
is set before this module is imported, an index out of range raises IndexError.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np

from tests.fuzz import generate
from tests.fuzz.document_checks import check_arrays, check_band_rows, check_documents, check_rows
from tests.fuzz.memory import Guarded
from tests.fuzz.text_checks import (
    LONG,
    SAMPLE,
    Numbers,
    check_languages,
    check_reference,
    check_sketch,
    check_spans,
    check_tokens,
    check_words,
)
from textsim_db.base.numba_compiler import kernel
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch.sketch_texts import buckets_of, sketch_tokens
from textsim_db.text import hashing, shingles
from textsim_db.text.nfkc import tables
from textsim_db.text.shingles import find_shingles
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import split_texts, tokenize
from textsim_db.text.utf8 import Tokens, Utf8

CONFIGS = (
    CorpusSettings("word:1", threshold=0.5, num_hashes=32).complete(),
    CorpusSettings("word:3", threshold=0.8, num_hashes=128).complete(),
    CorpusSettings("char:5", threshold=0.7, num_hashes=64).complete(),
    CorpusSettings("word:2", threshold=0.55, recall=1).complete(),
)
DOCUMENTS = 96
"""Number of documents of a batch that are compared with each other."""
LANGUAGES_EVERY = 20
"""Languages are identified in each batch whose number this divides, because that is slow."""


@kernel
def _value_at(values: Numbers, at: int) -> Any:
    return values[at]


def assert_bounds_are_checked() -> None:
    """Assert that a kernel that reads out of range raises IndexError."""
    assert os.environ.get("NUMBA_BOUNDSCHECK") == "1"
    for at in (3, -4, 10**6):
        try:
            _value_at(np.zeros(3, np.int64), at)
        except IndexError:
            continue
        raise AssertionError(f"index {at} of 3 was not refused: bounds are not checked")


class Checks:
    """Runs all checks; a process makes one object, whose texts and memory the batches share."""

    def __init__(self) -> None:
        self._real = generate.real_texts()
        self._guarded = Guarded(2**23)

    def batch(self, seed: int, number: int, count: int) -> int:
        """Check one batch and return its number of inputs; raises AssertionError or IndexError."""
        rng = random.Random(f"{seed} {number} checks")
        texts = generate.batch(seed, number, count, self._real)
        data = [to_bytes(text) for text in texts]
        tokens = tokenize(data)
        check_tokens(tokens, len(texts))
        sample = rng.sample(range(count), min(SAMPLE, count))
        for i in sample:
            if len(texts[i]) <= LONG:
                check_reference(texts[i], data[i], tokens, i)
        self.check_reads(tokens)
        hashes = hashing.hash_spans(tokens.normal, tokens.starts, tokens.ends)
        numbers = np.unique(hashes, return_inverse=True)[1].astype(np.int32)
        check_words(tokens, hashes, numbers, texts)
        for config in CONFIGS:
            sketches = sketch_tokens(tokens, config)
            expected = buckets_of(sketches.signatures, config)
            assert np.array_equal(sketches.buckets.values, expected.values)
            for i in sample:
                check_sketch(tokens, i, sketches.signatures.of(i), config)
        chosen = np.sort(rng.sample(range(count), min(DOCUMENTS, count)))
        check_documents(rng, tokens, numbers, chosen)
        arrays = generate.arrays(rng, count // 2)
        check_arrays(arrays)
        check_spans(rng, b"".join(arrays))
        check_rows(rng, tokens, numbers, chosen)
        for _ in range(DOCUMENTS):
            check_band_rows(rng)
        if number % LANGUAGES_EVERY == 0:
            check_languages(data, tokens, sample)
        return count + len(arrays)

    def check_reads(self, tokens: Tokens) -> None:
        """Assert that reads in steps of eight bytes end in the padding, whose bytes change nothing."""
        if len(tokens.normal) + hashing.PADDING > 2**23:
            return
        copy = self._guarded.copy(tokens.normal, b"\xff" * hashing.PADDING)
        hashes = hashing.hash_spans(tokens.normal, tokens.starts, tokens.ends)
        assert np.array_equal(hashing.hash_spans(copy, tokens.starts, tokens.ends), hashes)
        texts = Utf8(tokens.normal, tokens.normal_offsets)
        split = Tokens(*split_texts(texts, tables()))
        split_copy = Tokens(*split_texts(texts._replace(data=copy), tables()))
        for name in Tokens._fields:
            assert np.array_equal(getattr(split, name), getattr(split_copy, name)), name
        for shingle in (Shingle("word", 2), Shingle("char", 5)):
            distinct_shingles = find_shingles(tokens, shingle)
            distinct_of_copy = find_shingles(tokens._replace(normal=copy), shingle)
            for name in shingles.Shingles._fields:
                both = (getattr(each, name) for each in (distinct_of_copy, distinct_shingles))
                assert np.array_equal(*both), name
