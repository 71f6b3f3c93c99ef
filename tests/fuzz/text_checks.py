"""Checks of hostile texts: tokens, words, languages and sketches."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support import reference
from tests.support.parity import STOP_WORDS
from textsim_db.read.corpus_statistics import WordCounts, words_at
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.settings.named_values import Shingle
from textsim_db.text import hashing, stop_words, utf8
from textsim_db.text.languages import identify
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import leave_out, tokenize, tokens_of
from textsim_db.text.utf8 import Tokens
from textsim_db.text.word_cache import WordCache
from textsim_db.write.load_batches import KeySet

SAMPLE = 8
"""Number of inputs of a batch that slow references compute again."""
LONG = 3000
"""Maximum number of characters for the slow references."""

Numbers = npt.NDArray[np.int64]


def check_languages(data: list[bytes], tokens: Tokens, sample: list[int]) -> None:
    """Check that the language of a text does not depend on the other texts of its batch."""
    identified = identify(tokens)
    assert [identified[i] for i in sample] == identify(tokenize([data[i] for i in sample]))


def check_tokens(tokens: Tokens, count: int) -> None:
    """Check that words are in order, with one space between two words of a document and nothing else."""
    assert tokens.documents == count
    ends = (len(tokens.normal), len(tokens.starts))
    for offsets, size in zip((tokens.normal_offsets, tokens.word_offsets), ends, strict=True):
        assert offsets[0] == 0
        assert offsets[-1] == size
        assert (np.diff(offsets) >= 0).all()
    assert (tokens.starts < tokens.ends).all()
    owners = np.repeat(np.arange(count), np.diff(tokens.word_offsets))
    if len(owners):
        gaps = tokens.starts[1:] - tokens.ends[:-1]
        assert np.array_equal(gaps, (owners[1:] == owners[:-1]).astype(gaps.dtype))
        assert (tokens.normal[tokens.ends[:-1][gaps == 1]] == ord(" ")).all()
        assert tokens.starts[0] == 0
        assert tokens.ends[-1] == len(tokens.normal)
    spaces = np.count_nonzero(tokens.normal == ord(" "))
    assert spaces == np.count_nonzero(owners[1:] == owners[:-1])
    tokens.normal.tobytes().decode()
    spans = pairwise(tokens.normal_offsets.tolist())
    again = tokens_of([tokens.normal[start:end].tobytes() for start, end in spans])
    for name in ("normal", "normal_offsets", "starts", "ends", "word_offsets"):
        assert np.array_equal(getattr(again, name), getattr(tokens, name)), name


def check_reference(text: str, data: bytes, tokens: Tokens, i: int) -> None:
    start, end = tokens.normal_offsets[i : i + 2].tolist()
    expected = reference.words(text)
    assert tokens.span(start, end) == " ".join(expected), f"{text!r}"
    assert tokens.words(np.arange(*tokens.word_offsets[i : i + 2])) == expected, f"{text!r}"
    assert tokenize([data]).normal.tobytes() == tokens.normal[start:end].tobytes(), f"{text!r}"


def check_words(
    tokens: Tokens, hashes: Numbers, numbers: npt.NDArray[np.int32], texts: list[str]
) -> None:
    """Check the word cache, the removal of stop words, and word counts."""
    _, firsts = np.unique(numbers, return_index=True)
    cached = firsts[::2]
    cache = WordCache()
    for part in np.array_split(cached, 3):
        starts, ends = tokens.starts[part], tokens.ends[part]
        words = tokens._replace(starts=starts, ends=ends, hashes=hashes[part])
        cache.add(words, numbers[part] + 1)
    expected = np.where(np.isin(numbers, numbers[cached]), numbers + 1, 0)
    assert np.array_equal(cache.find(tokens._replace(hashes=hashes)), expected)
    without_stop_words = leave_out(tokens, stop_words.are_stop_words(tokens, STOP_WORDS))
    check_tokens(without_stop_words, tokens.documents)
    kept = [word for word in tokens.words(np.arange(len(hashes))) if word not in STOP_WORDS]
    assert without_stop_words.words(np.arange(len(without_stop_words.starts))) == kept
    word_counts = WordCounts()
    half = len(texts) // 2
    for first, last in ((0, half), (half, len(texts))):
        begin, end = tokens.word_offsets[[first, last]]
        offsets = tokens.word_offsets[first : last + 1] - begin
        # Odd words get negative ids, like words that are not in the dictionary.
        word_counts.add(np.where(numbers % 2, -numbers, numbers + 1)[begin:end], offsets)
    counted_words = words_at(np.arange(len(word_counts.occurrences))).tolist()
    occurrences = dict(zip(counted_words, word_counts.occurrences, strict=True))
    counted = Counter((-n if n % 2 else n + 1) for n in numbers.tolist())
    assert counted == {n: c for n, c in occurrences.items() if c}
    assert word_counts.distinct == len(firsts)


def check_sketch(tokens: Tokens, i: int, signature: npt.NDArray[Any], config: CorpusConfig) -> None:
    start, end = tokens.normal_offsets[i : i + 2].tolist()
    if end - start > LONG:
        return
    unit, n = config.shingle
    values = reference.values_of_form(tokens.span(start, end), unit, n)
    if config.is_exact:
        expected = reference.exact_signature(values, config.threshold)
    else:
        expected = reference.signature(values, config.seed, config.num_hashes) if values else []
    assert signature.tolist() == expected


def check_spans(rng: random.Random, data: bytes) -> None:
    """Check kernels that take any bytes, not only UTF-8: hashes, distinct spans, removed words."""
    # Arrays of tokens can be written; of others Numba would compile each kernel again.
    bytes_ = np.frombuffer(bytearray(data + bytes(hashing.PADDING)), np.uint8)[: len(data)]
    cuts = np.unique([0, len(data), *(rng.randrange(len(data) + 1) for _ in range(200))])
    starts, ends = cuts[:-1].astype(np.int32), cuts[1:].astype(np.int32)
    offsets = np.array([0, len(starts) // 3, len(starts)], np.int64)
    all_hashes = hashing.hash_spans(bytes_, starts, ends)
    documents = Tokens(bytes_, offsets, starts, ends, offsets, all_hashes)
    distinct_spans = find_shingles(documents, Shingle("word", 1))
    pieces = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    firsts = [list(dict.fromkeys(pieces[a:b])) for a, b in pairwise(offsets.tolist())]
    assert np.diff(distinct_spans.offsets).tolist() == [len(part) for part in firsts]
    spans = zip(distinct_spans.starts, distinct_spans.ends, strict=True)
    kept = [data[start:end] for start, end in spans]
    assert kept == [piece for part in firsts for piece in part]
    value_of = dict(zip(pieces, all_hashes.tolist(), strict=True))
    assert distinct_spans.hashes.astype(np.int64).tolist() == [value_of[piece] for piece in kept]
    removed = {piece for piece in pieces if rng.random() < 0.3}
    everything = np.arange(len(starts))
    is_removed = stop_words.find_words(documents, everything, utf8.word_table(sorted(removed)))
    assert is_removed.tolist() == [piece in removed for piece in pieces]
    without_removed = leave_out(documents, is_removed)
    parts = (pieces[a:b] for a, b in pairwise(offsets.tolist()))
    remaining = [b" ".join(p for p in part if p not in removed) for part in parts]
    assert without_removed.normal.tobytes() == b"".join(remaining)
    key_set = KeySet()
    keys = sorted({piece.hex() for piece in pieces})
    assert not key_set.meet(keys).any()
    assert key_set.meet(keys).all()
