"""What must be true of hostile texts: tokens, words, languages and sketches."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tests.support import reference
from tests.support.parity import STOP_WORDS
from textsim_db.db.word_cache import WordCache
from textsim_db.read.word_counts import Tally, words_at
from textsim_db.settings import CorpusConfig
from textsim_db.sketch import minhash
from textsim_db.text import hashing, stop_words, text_kernels
from textsim_db.text.languages import identify
from textsim_db.text.tokens import Tokens, tokenize, tokens_of
from textsim_db.write.key_set import SeenKeys

SPREAD = np.uint64(0x9E3779B97F4A7C15)
SAMPLE = 8
"""So many are computed again the slow way."""
LONG = 3000
"""Characters that the slow way takes at most."""

Numbers = npt.NDArray[np.int64]


def check_languages(data: list[bytes], tokens: Tokens, sample: list[int]) -> None:
    """The language of a text does not depend on those beside it."""
    found = identify(tokens)
    assert [found[i] for i in sample] == identify(tokenize([data[i] for i in sample]))


def check_tokens(tokens: Tokens, count: int) -> None:
    """Words in order, one space between two of a document, nothing else between them."""
    assert len(tokens) == count
    for offsets, size in (
        (tokens.normal_offsets, len(tokens.normal)),
        (tokens.word_offsets, len(tokens.starts)),
    ):
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
    assert np.count_nonzero(tokens.normal == ord(" ")) == np.count_nonzero(
        owners[1:] == owners[:-1]
    )
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
    """The cache gives back what it took, and stop words are left out and nothing else is."""
    _, firsts = np.unique(numbers, return_index=True)
    known = firsts[::2]
    cache = WordCache()
    words = [word.encode() for word in tokens.words(known)]
    for some in np.array_split(np.arange(len(known)), 3):
        cache.add(hashes[known[some]], numbers[known[some]] + 1, [words[i] for i in some])
    expected = np.where(np.isin(numbers, numbers[known]), numbers + 1, 0)
    assert np.array_equal(cache.find(tokens, hashes), expected)
    left = stop_words.without(tokens, STOP_WORDS)
    check_tokens(left, len(tokens))
    kept = [word for word in tokens.words(np.arange(len(hashes))) if word not in STOP_WORDS]
    assert left.words(np.arange(len(left.starts))) == kept
    tally = Tally()
    half = len(texts) // 2
    for first, last in ((0, half), (half, len(texts))):
        begin, end = tokens.word_offsets[[first, last]]
        offsets = tokens.word_offsets[first : last + 1] - begin
        # Odd ones below 0, as words are that are not in the dictionary.
        tally.add(np.where(numbers % 2, -numbers, numbers + 1)[begin:end], offsets)
    found = dict(zip(words_at(np.arange(len(tally.counts))).tolist(), tally.counts, strict=True))
    counted = Counter((-n if n % 2 else n + 1) for n in numbers.tolist())
    assert counted == {n: c for n, c in found.items() if c}
    assert tally.distinct == len(firsts)


def check_sketch(
    tokens: Tokens, i: int, signature: npt.NDArray[np.int32], config: CorpusConfig
) -> None:
    start, end = tokens.normal_offsets[i : i + 2].tolist()
    if end - start > LONG:
        return
    n, form = config.shingle.n, tokens.span(start, end)
    parts = form.split() if config.shingle.unit == "word" else list(form)
    glue = " " if config.shingle.unit == "word" else ""
    count = max(1, len(parts) - n + 1) if parts else 0
    expected = {glue.join(parts[k : k + n]) for k in range(count)}
    values = np.array(hashing.hash_texts(sorted(expected)), np.int64) & minhash.PRIME
    a, b = minhash.coefficients(config.seed, config.num_hashes)
    least = ((a[:, np.newaxis] * values + b[:, np.newaxis]) % minhash.PRIME).min(
        axis=1, initial=minhash.PRIME
    )
    assert np.array_equal(signature, least), form


def check_spans(rng: random.Random, data: bytes) -> None:
    """Kernels that take any bytes, not only UTF-8: hashes, distinct spans, words left out."""
    bytes_ = np.frombuffer(data + bytes(hashing.PADDING), np.uint8)[: len(data)]
    cuts = np.unique([0, len(data), *(rng.randrange(len(data) + 1) for _ in range(200))])
    starts, ends = cuts[:-1].astype(np.int32), cuts[1:].astype(np.int32)
    offsets = np.array([0, len(starts) // 3, len(starts)], np.int64)
    hashes, chosen, distinct = text_kernels.distinct_shingles(bytes_, starts, ends, offsets, SPREAD)
    all_hashes = hashing.hash_spans(bytes_, starts, ends)
    assert np.array_equal(all_hashes[chosen].astype(np.uint64), hashes)
    pieces = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    assert [len(set(pieces[a:b])) for a, b in pairwise(offsets.tolist())] == np.diff(
        distinct
    ).tolist()
    wanted = sorted(
        (int(h), piece) for h, piece in zip(all_hashes, pieces, strict=True) if rng.random() < 0.3
    )
    wanted_offsets = np.cumsum([0, *(len(piece) for _, piece in wanted)])
    found = text_kernels.find_words(
        bytes_,
        starts,
        ends,
        all_hashes,
        np.frombuffer(b"".join(piece for _, piece in wanted), np.uint8),
        wanted_offsets,
        np.array([h for h, _ in wanted], np.int64),
    )
    there = {piece for _, piece in wanted}
    assert found.tolist() == [piece in there for piece in pieces]
    left = text_kernels.leave_out(bytes_, starts, ends, offsets, found)
    kept = [
        b" ".join(p for p in pieces[a:b] if p not in there) for a, b in pairwise(offsets.tolist())
    ]
    assert left[0].tobytes() == b"".join(kept)
    seen = SeenKeys()
    keys = sorted({piece.hex() for piece in pieces})
    assert not seen.meet(keys).any()
    assert seen.meet(keys).all()
