"""What must be true of a batch of hostile inputs, whatever is in them.

Every input goes through the kernels; a sample of each batch is computed again the slow way. Imported
only where NUMBA_BOUNDSCHECK is set, so that an index out of range is an IndexError.
"""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tests import reference
from tests.fuzz import generate
from tests.fuzz.memory import Guarded
from textsim_db.cluster import large_buckets, spanning_forest
from textsim_db.cluster.keep_representatives import keep_representatives
from textsim_db.compare import brute_force
from textsim_db.compare.jaccard import jaccard_pairs, shares_earlier_band
from textsim_db.compare.rows import Rows
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.db import binary_format, binary_rows
from textsim_db.db.word_cache import WordCache
from textsim_db.measures import by_name, edits
from textsim_db.measures.alignment import alignment
from textsim_db.read.word_counts import WordCounts, words_at
from textsim_db.settings import CorpusConfig, Shingle, make_config
from textsim_db.sketch import minhash
from textsim_db.sketch.band_buckets import buckets, ragged
from textsim_db.sketch.sketches import sketch_tokens
from textsim_db.text import hashing, shingles, stop_words
from textsim_db.text.compiler import kernel
from textsim_db.text.languages import identify
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import Tokens, leave_out, tokenize, tokens_of
from textsim_db.text.utf8 import to_bytes
from textsim_db.write import prepared_batch
from textsim_db.write.key_set import KeySet

CONFIGS = (
    make_config("word:1", threshold=0.5, num_hashes=32),
    make_config("word:3", threshold=0.8, num_hashes=128),
    make_config("char:5", threshold=0.7, num_hashes=64),
)
STOP_WORDS = stop_words.stop_words(["the", "a", "of", "é", "漢", "ı", "1", "ⱥ", "x" * 40])
SPREAD = 0x1E3779B97F4A7C15
DOCUMENTS = 96
"""So many of a batch are compared with each other."""
SAMPLE = 8
"""So many are computed again the slow way."""
LANGUAGES = 20
"""In one of so many batches languages are identified: that is as slow as all the rest."""
LONG = 3000
"""Characters that the slow way takes at most."""

Numbers = npt.NDArray[np.int64]


@kernel
def _beyond(values: Numbers, at: int) -> Any:
    return values[at]


def assert_bounds_are_checked() -> None:
    """See that a kernel which reads out of range is found out."""
    assert os.environ.get("NUMBA_BOUNDSCHECK") == "1"
    for at in (3, -4, 10**6):
        try:
            _beyond(np.zeros(3, np.int64), at)
        except IndexError:
            continue
        raise AssertionError(f"index {at} of 3 was not refused: bounds are not checked")


class Checks:
    """All checks, with what they share; one in a process."""

    def __init__(self) -> None:
        self._real = generate.real_texts()
        self._guarded = Guarded(2**23)

    def batch(self, seed: int, number: int, count: int) -> int:
        """Check one batch and return how many inputs it had; raises AssertionError and IndexError."""
        rng = random.Random(f"{seed} {number} checks")
        texts = generate.batch(seed, number, count, self._real)
        data = [to_bytes(text) for text in texts]
        tokens = tokenize(data)
        _check_tokens(tokens, len(texts))
        sample = rng.sample(range(count), min(SAMPLE, count))
        for i in sample:
            if len(texts[i]) <= LONG:
                _check_reference(texts[i], data[i], tokens, i)
        self._check_reads(tokens)
        hashes = hashing.hash_spans(tokens.normal, tokens.starts, tokens.ends)
        numbers = np.unique(hashes, return_inverse=True)[1].astype(np.int32)
        _check_words(tokens, hashes, numbers, texts)
        for config in CONFIGS:
            made = sketch_tokens(tokens, config)
            assert np.array_equal(made.buckets, buckets(made.signatures, config.banding))
            for i in sample:
                _check_sketch(tokens, i, made.signatures[i], config)
        chosen = np.sort(rng.sample(range(count), min(DOCUMENTS, count)))
        _check_documents(rng, tokens, numbers, chosen)
        given = generate.arrays(rng, count // 2)
        _check_arrays(given)
        _check_spans(rng, b"".join(given))
        _check_rows(rng, tokens, numbers, chosen)
        if number % LANGUAGES == 0:
            _check_languages(data, tokens, sample)
        return count + len(given)

    def _check_reads(self, tokens: Tokens) -> None:
        """The hashes read eight bytes at a time, unchecked: no further, and it does not matter what."""
        if len(tokens.normal) + hashing.PADDING > 2**23:
            return
        copy = self._guarded.copy(tokens.normal, b"\xff" * hashing.PADDING)
        given = hashing.hash_spans(tokens.normal, tokens.starts, tokens.ends)
        assert np.array_equal(hashing.hash_spans(copy, tokens.starts, tokens.ends), given)
        for shingle in (Shingle("word", 2), Shingle("char", 5)):
            found = find_shingles(tokens, shingle)
            again = find_shingles(tokens._replace(normal=copy), shingle)
            for name in shingles.Shingles._fields:
                assert np.array_equal(getattr(again, name), getattr(found, name)), name


def _check_languages(data: list[bytes], tokens: Tokens, sample: list[int]) -> None:
    """The language of a text does not depend on those beside it."""
    found = identify(tokens)
    assert [found[i] for i in sample] == identify(tokenize([data[i] for i in sample]))


def _check_tokens(tokens: Tokens, count: int) -> None:
    """Words in order, one space between two of a document, nothing else between them."""
    assert tokens.documents == count
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


def _check_reference(text: str, data: bytes, tokens: Tokens, i: int) -> None:
    start, end = tokens.normal_offsets[i : i + 2].tolist()
    expected = reference.words(text)
    assert tokens.span(start, end) == " ".join(expected), f"{text!r}"
    assert tokens.words(np.arange(*tokens.word_offsets[i : i + 2])) == expected, f"{text!r}"
    assert tokenize([data]).normal.tobytes() == tokens.normal[start:end].tobytes(), f"{text!r}"


def _check_words(
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
    _check_tokens(left, tokens.documents)
    kept = [word for word in tokens.words(np.arange(len(hashes))) if word not in STOP_WORDS]
    assert left.words(np.arange(len(left.starts))) == kept
    word_counts = WordCounts()
    half = len(texts) // 2
    for first, last in ((0, half), (half, len(texts))):
        begin, end = tokens.word_offsets[[first, last]]
        offsets = tokens.word_offsets[first : last + 1] - begin
        # Odd ones below 0, as words are that are not in the dictionary.
        word_counts.add(np.where(numbers % 2, -numbers, numbers + 1)[begin:end], offsets)
    counted_words = words_at(np.arange(len(word_counts.occurrences))).tolist()
    found = dict(zip(counted_words, word_counts.occurrences, strict=True))
    counted = Counter((-n if n % 2 else n + 1) for n in numbers.tolist())
    assert counted == {n: c for n, c in found.items() if c}
    assert word_counts.distinct == len(firsts)


def _check_sketch(
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


def _check_documents(
    rng: random.Random, tokens: Tokens, numbers: npt.NDArray[np.int32], chosen: Numbers
) -> None:
    """Similarities, by words and by characters, and everything that finds pairs by them."""
    spans = [tokens.word_offsets[i : i + 2].tolist() for i in chosen]
    documents = [numbers[start:end] for start, end in spans]
    forms = [tokens.span(*tokens.normal_offsets[i : i + 2].tolist()) for i in chosen]
    points = [np.frombuffer(form.encode("utf-32-le"), "<i4").astype(np.int32) for form in forms]
    for rows, n in ((documents, 1), (documents, 3), (points, 5)):
        sets = [_ngrams(row.tolist(), n) for row in rows]
        _check_similarities(rng, _rows(rows, sets, n), sets)
    _check_measures(rng, _rows(documents, [set(d.tolist()) for d in documents], 1))
    # What is stored may be damaged, or have been written by somebody who may write.
    wrong = [rng.choice((-(2**31), -5, 0, 1, 2, 2**31 - 1)) for _ in rows]
    offsets = np.cumsum([0, *map(len, points)])
    damaged = Rows(np.concatenate(points), offsets, np.array(wrong, np.int64), 5)
    for links in large_buckets.all_links(damaged, 0.5):
        assert len(links.left) == len(links.right)
    index = brute_force.make_index(damaged)
    brute_force.overlaps(index, damaged, 0.5)
    everyone = np.arange(len(points))
    pairs = jaccard_pairs(damaged, everyone, everyone[::-1].copy())
    assert ((pairs >= 0) & (pairs <= 1)).all()
    places = np.array([[rng.randrange(3)] for _ in points], np.int64)
    keep_representatives(damaged, ragged(places), rng.randrange(3), 0.5)
    signatures = np.array([[rng.randrange(2) for _ in range(8)] for _ in points], np.int32)
    bands = np.array([rng.randrange(5) for _ in points], np.int16)
    shares_earlier_band(signatures, everyone, everyone[::-1], bands, 2)


def _rows(rows: list[npt.NDArray[np.int32]], sets: list[set[Any]], n: int) -> Rows:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    counts = np.array([len(some) for some in sets], np.int64)
    return Rows(np.concatenate(rows).astype(np.int32), offsets, counts, n)


def _ngrams(row: list[int], n: int) -> set[Any]:
    width = min(n, len(row))
    return {tuple(row[k : k + width]) for k in range(len(row) - width + 1)} if width else set()


def _check_similarities(rng: random.Random, rows: Rows, sets: list[set[Any]]) -> None:
    count = len(sets)
    left, right = np.triu_indices(count, 1)
    values = jaccard_pairs(rows, left, right)
    for k in rng.sample(range(len(left)), min(4 * SAMPLE, len(left))):
        assert values[k] == reference.jaccard(sets[left[k]], sets[right[k]])
    threshold = rng.choice((0.1, 0.5, 0.8, 1.0))
    expected = {
        (int(a), int(b)): value
        for a, b, value in zip(left, right, values, strict=True)
        if value >= threshold
    }
    found: dict[tuple[int, int], float] = {}
    for links in large_buckets.all_links(rows, threshold):
        for a, b, value in zip(*links, strict=True):
            assert (min(a, b), max(a, b)) not in found
            found[int(min(a, b)), int(max(a, b))] = value
    assert found == expected
    # The same components, whether all links are known or those that join something.
    parents = np.arange(count)
    ends = np.array(list(expected) or np.empty((0, 2)), np.int64)
    spanning_forest.join(parents, ends[:, 0].copy(), ends[:, 1].copy())
    joined = np.arange(count)
    for links in large_buckets.joining_links(rows, np.arange(count), threshold):
        spanning_forest.join(joined, links.left, links.right)
    assert np.array_equal(spanning_forest.roots(parents), spanning_forest.roots(joined))
    half = count // 2
    middle = rows.offsets[half]
    few = Rows(rows.tokens[:middle], rows.offsets[: half + 1], rows.shingle_counts[:half], rows.n)
    many = Rows(
        rows.tokens[middle:], rows.offsets[half:] - middle, rows.shingle_counts[half:], rows.n
    )
    across = brute_force.overlaps(brute_force.make_index(few), many, threshold)
    assert set(zip(across.few.tolist(), (across.many + half).tolist(), strict=True)) == {
        (a, b) for a, b in expected if a < half <= b
    }
    assert across.histogram.sum() == np.count_nonzero(values[(left < half) & (right >= half)])
    # All in one bucket: everything that is removed is like what is kept, all that is kept is not.
    bucket = ragged(np.zeros((count, 1), np.int64))
    kept_by, similarity = keep_representatives(rows, bucket, 0, threshold)
    for x in range(count):
        y = int(kept_by[x])
        assert kept_by[y] == y
        if x != y:
            assert similarity[x] == expected[min(x, y), max(x, y)]
    remaining = np.flatnonzero(kept_by == np.arange(count)).tolist()
    assert not any(pair in expected for pair in combinations(remaining, 2))


def _check_measures(rng: random.Random, rows: Rows) -> None:
    """All measures of a sample of pairs, against those of single pairs."""
    documents = [rows.tokens[a:b].tolist() for a, b in pairwise(rows.offsets.tolist())]
    short = [i for i, row in enumerate(documents) if len(row) <= 200] or [0]
    left = np.sort(np.array(rng.choices(short, k=SAMPLE), np.int64))
    right = np.array(rng.choices(short, k=SAMPLE), np.int64)
    for measure in by_name.MEASURES.values():
        criterion = Criterion(measure, 0.0 if not measure.is_distance else 1e9)
        values = values_of_pairs(criterion, rows, left, right)
        for a, b, value in zip(left.tolist(), right.tolist(), values.tolist(), strict=True):
            expected = measure.function(documents[a], documents[b])
            assert abs(value - expected) < 1e-6, (measure.name, documents[a], documents[b])
    costs = edits.Costs(*rng.choices((0.5, 1.0, 1.5, 2.0), k=3))
    for a, b in zip(left.tolist()[:2], right.tolist()[:2], strict=True):
        one, other = documents[a], documents[b]
        distance = edits.levenshtein(one, other, *costs)
        ones, others = alignment(one, other, *costs)
        assert [item for item in ones if item is not None] == one
        assert [item for item in others if item is not None] == other
        paid = sum(
            costs.insertion if x is None else costs.deletion if y is None else costs.substitution
            for x, y in zip(ones, others, strict=True)
            if x != y
        )
        assert abs(paid - distance) < 1e-6


def _check_arrays(given: list[bytes]) -> None:
    """Malformed arrays are read somehow, and never further than they go; good ones exactly."""
    values, offsets = binary_rows.load_int4_arrays(given)
    assert offsets[0] == 0
    assert offsets[-1] == len(values)
    for data, (start, end) in zip(given, pairwise(offsets.tolist()), strict=True):
        assert end - start == max(0, len(data) - 20) // 8
        expected = [struct.unpack_from(">i", data, 24 + 8 * k)[0] for k in range(end - start)]
        assert values[start:end].tolist() == expected
        if (len(data) - 20) % 8 == 0 or len(data) <= 20:
            assert binary_format.load_int4_array(data).tolist() == expected


def _check_spans(rng: random.Random, data: bytes) -> None:
    """Kernels that take any bytes, not only UTF-8: hashes, distinct spans, words left out."""
    bytes_ = np.frombuffer(data + bytes(hashing.PADDING), np.uint8)[: len(data)]
    cuts = np.unique([0, len(data), *(rng.randrange(len(data) + 1) for _ in range(200))])
    starts, ends = cuts[:-1].astype(np.int32), cuts[1:].astype(np.int32)
    offsets = np.array([0, len(starts) // 3, len(starts)], np.int64)
    found = shingles.distinct_spans(
        bytes_, shingles.Spans(starts.copy(), ends.copy(), offsets), SPREAD
    )
    all_hashes = hashing.hash_spans(bytes_, starts, ends)
    pieces = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    firsts = [list(dict.fromkeys(pieces[a:b])) for a, b in pairwise(offsets.tolist())]
    assert np.diff(found.offsets).tolist() == [len(part) for part in firsts]
    kept = [data[start:end] for start, end in zip(found.starts, found.ends, strict=True)]
    assert kept == [piece for part in firsts for piece in part]
    value_of = dict(zip(pieces, all_hashes.tolist(), strict=True))
    assert found.hashes.astype(np.int64).tolist() == [value_of[piece] for piece in kept]
    wanted = {piece for piece in pieces if rng.random() < 0.3}
    documents = Tokens(bytes_, offsets, starts, ends, offsets)
    everything = np.arange(len(starts))
    is_wanted = stop_words.find_words(documents, everything, stop_words.word_table(sorted(wanted)))
    assert is_wanted.tolist() == [piece in wanted for piece in pieces]
    left = leave_out(documents, is_wanted)
    remaining = [
        b" ".join(p for p in pieces[a:b] if p not in wanted) for a, b in pairwise(offsets.tolist())
    ]
    assert left.normal.tobytes() == b"".join(remaining)
    seen = KeySet()
    keys = sorted({piece.hex() for piece in pieces})
    assert not seen.meet(keys).any()
    assert seen.meet(keys).all()


def _check_rows(
    rng: random.Random, tokens: Tokens, numbers: npt.NDArray[np.int32], chosen: Numbers
) -> None:
    """What is written for COPY is what any other reader of the format finds in it."""
    keys = [rng.randbytes(rng.choice((0, 1, 30, prepared_batch.MAX_KEY_BYTES))) for _ in chosen]
    ids = np.array([rng.randrange(2**63) for _ in chosen], np.int64)
    counts = np.diff(tokens.word_offsets)
    signatures = np.repeat(np.arange(4, dtype=np.int32)[np.newaxis], tokens.documents, axis=0)
    source = rng.choice((None, 0, 7, 2**31 - 1))
    languages = [rng.choice((b"", b"en", rng.randbytes(35))) for _ in chosen]
    identities = binary_rows.Identities(ids, keys, languages)
    contents = binary_rows.Contents(counts, numbers, tokens.word_offsets, signatures)
    data = binary_rows.copy_documents(3, identities, contents, chosen, source).tobytes()
    at = 0
    for row, i in enumerate(chosen.tolist()):
        (fields,) = struct.unpack_from(">h", data, at)
        at += 2
        values: list[bytes | None] = []
        for _ in range(fields):
            (length,) = struct.unpack_from(">i", data, at)
            at += 4
            values.append(None if length < 0 else data[at : at + length])
            at += max(length, 0)
        words = numbers[tokens.word_offsets[i] : tokens.word_offsets[i + 1]]
        expected = [
            struct.pack(">i", 3),
            struct.pack(">i", counts[i]),
            struct.pack(">q", ids[row]),
            None if source is None else struct.pack(">i", source),
            keys[row],
            languages[row] or None,
            binary_format.dump_array(words),
            binary_format.dump_array(signatures[i][: 4 if counts[i] else 0]),
        ]
        assert values == expected
    assert at == len(data)
