"""Checks of hostile documents, stored rows and arrays: similarities, measures and bytes."""

from __future__ import annotations

import random
import struct
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.fuzz.text_checks import SAMPLE, Numbers
from tests.support import reference
from tests.support.document_rows import grams
from textsim_db.cluster import spanning_forest, split_large_buckets
from textsim_db.cluster.kept_linkage import keep_representatives
from textsim_db.compare import brute_force, packed_pairs
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.pair_values import Rows, jaccard_pairs, values_of_pairs
from textsim_db.db import binary_format
from textsim_db.measures import by_name, edits
from textsim_db.measures.alignments import alignment
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import stored_documents
from textsim_db.sketch.ragged import Ragged, of_rows
from textsim_db.text.storable import MAX_KEY_BYTES
from textsim_db.text.utf8 import Tokens
from textsim_db.write import copy_rows
from textsim_db.write.copy_rows import changed_rows


def check_documents(
    rng: random.Random, tokens: Tokens, numbers: npt.NDArray[np.int32], chosen: Numbers
) -> None:
    """Check similarities by words and by characters, and all functions that find pairs by them."""
    spans = [tokens.word_offsets[i : i + 2].tolist() for i in chosen]
    documents = [numbers[start:end] for start, end in spans]
    forms = [tokens.span(*tokens.normal_offsets[i : i + 2].tolist()) for i in chosen]
    points = [np.frombuffer(form.encode("utf-32-le"), "<i4").astype(np.int32) for form in forms]
    for rows, n in ((documents, 1), (documents, 3), (points, 5)):
        sets = [grams(row.tolist(), n) for row in rows]
        check_similarities(rng, _rows(rows, sets, n), sets)
    check_measures(rng, _rows(documents, [set(d.tolist()) for d in documents], 1))
    # Stored rows may be damaged, or written by a hostile role.
    damaged_counts = [rng.choice((-(2**31), -5, 0, 1, 2, 2**31 - 1)) for _ in rows]
    offsets = np.cumsum([0, *map(len, points)])
    damaged = Rows(np.concatenate(points), offsets, np.array(damaged_counts, np.int64), 5)
    for links in split_large_buckets.all_links(damaged, Criterion(JACCARD, 0.5)):
        assert len(links.left) == len(links.right)
    index = brute_force.make_index(damaged)
    brute_force.overlaps(index, damaged, 0.5)
    everyone = np.arange(len(points))
    pairs = jaccard_pairs(damaged, everyone, everyone[::-1].copy())
    assert ((pairs >= 0) & (pairs <= 1)).all()
    buckets = np.array([[rng.randrange(3)] for _ in points], np.int64)
    ragged, settled = _ragged(buckets.astype(np.int32)), rng.randrange(3)
    for threshold in (0.5, 1.0):
        for prefix in (0.0, 1e-9, threshold):
            keep_representatives(damaged, ragged, settled, threshold, prefix_threshold=prefix)
    check_pairs(rng)


def check_pairs(rng: random.Random) -> None:
    """Check pairs of buckets, whose rows a hostile role may have written, against sets."""
    ids = [-(2**31), -3, *range(20), 2**31 - 1]
    rows = [(rng.randrange(9), rng.choice(ids)) for _ in range(rng.choice((0, 5, 200)))]
    numbers = [(place << 32) + 2**31 + i for place, i in sorted(rows)]
    members, _ = packed_pairs.grouped(np.array(numbers, np.int64), len(rows))
    expected = [
        pair
        for place in range(9)
        for pair in combinations(sorted(i for k, i in rows if k == place), 2)
        if pair[0] != pair[1]
    ]
    rounds = rng.randrange(1, 5)
    parts = [packed_pairs.Round(number, rounds) for number in range(rounds)]
    rounds_of = ((packed_pairs.of_round(members, part), part) for part in parts)
    lists = [each for part in rounds_of for each in packed_pairs.lists(*part)]
    pairs = np.concatenate([np.empty(0, np.int64), *(pairs for pairs, _ in lists)])
    counts = [count for _, counts in lists for count in counts.tolist()]
    left, right = packed_pairs.left_of(pairs), packed_pairs.right_of(pairs)
    found_pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    assert sorted(found_pairs) == sorted(set(expected))
    assert counts == [min(255, expected.count(pair)) for pair in found_pairs]
    shared = packed_pairs.BucketsOfDocuments(members).least_shared(pairs)
    assert (shared >= 0).all()
    values = np.array([[rng.randrange(9) for _ in range(3)] for _ in ids], np.int16)
    chosen = np.array([rng.randrange(len(ids)) for _ in ids])
    same = packed_pairs.same_anywhere(values, chosen, chosen[::-1].copy())
    assert same.tolist() == (values[chosen] == values[chosen[::-1]]).any(axis=1).tolist()
    documents = np.array([i for _, i in rows], np.int32)
    every = Ragged(documents, np.array([0, len(rows)], np.int64))
    both = packed_pairs.count_shared(every, every, np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert both.tolist() == [sum(n * n for n in Counter(documents.tolist()).values())]
    stored_documents.compose_forms(documents, np.array([0, len(rows)]), lambda _: {3: "three"})


def _ragged(matrix: npt.NDArray[np.int32]) -> Ragged:
    return of_rows(matrix, np.ones(len(matrix), np.bool_))


def _rows(rows: list[npt.NDArray[np.int32]], sets: list[set[Any]], n: int) -> Rows:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    counts = np.array([len(some) for some in sets], np.int64)
    return Rows(np.concatenate(rows).astype(np.int32), offsets, counts, n)


def check_similarities(rng: random.Random, rows: Rows, sets: list[set[Any]]) -> None:
    count = len(sets)
    left, right = np.triu_indices(count, 1)
    values = jaccard_pairs(rows, left, right)
    for k in rng.sample(range(len(left)), min(4 * SAMPLE, len(left))):
        assert values[k] == reference.jaccard(sets[left[k]], sets[right[k]])
    threshold = rng.choice((0.1, 0.5, 0.8, 1.0))
    every = zip(left.tolist(), right.tolist(), values, strict=True)
    expected = {(a, b): value for a, b, value in every if value >= threshold}
    found_links: dict[tuple[int, int], float] = {}
    for links in split_large_buckets.all_links(rows, Criterion(JACCARD, threshold)):
        for a, b, value in zip(*links, strict=True):
            assert (min(a, b), max(a, b)) not in found_links
            found_links[int(min(a, b)), int(max(a, b))] = value
    assert found_links == expected
    # All links and the joining links give the same components.
    parents = np.arange(count)
    ends = np.array(list(expected) or np.empty((0, 2)), np.int64)
    spanning_forest.join(parents, ends[:, 0].copy(), ends[:, 1].copy())
    joined, criterion = np.arange(count), Criterion(JACCARD, threshold)
    for links in split_large_buckets.joining_links(rows, np.arange(count), criterion):
        spanning_forest.join(joined, links.left, links.right)
    assert np.array_equal(spanning_forest.roots(parents), spanning_forest.roots(joined))
    half = count // 2
    middle = rows.offsets[half]
    few = Rows(rows.tokens[:middle], rows.offsets[: half + 1], rows.shingle_counts[:half], rows.n)
    offsets = rows.offsets[half:] - middle
    many = Rows(rows.tokens[middle:], offsets, rows.shingle_counts[half:], rows.n)
    across = brute_force.overlaps(brute_force.make_index(few), many, threshold)
    assert set(zip(across.few.tolist(), (across.many + half).tolist(), strict=True)) == {
        (a, b) for a, b in expected if a < half <= b
    }
    assert across.histogram.sum() == np.count_nonzero(values[(left < half) & (right >= half)])
    # With all documents in one bucket, each removed document matches a kept one, and no two kept
    # documents match.
    bucket = _ragged(np.zeros((count, 1), np.int32))
    kept_by, similarity = keep_representatives(rows, bucket, 0, threshold)
    for x in range(count):
        y = int(kept_by[x])
        assert kept_by[y] == y
        if x != y:
            assert similarity[x] == expected[min(x, y), max(x, y)]
    remaining = np.flatnonzero(kept_by == np.arange(count)).tolist()
    assert not any(pair in expected for pair in combinations(remaining, 2))


def check_measures(rng: random.Random, rows: Rows) -> None:
    """Check all measures of a sample of pairs against the functions for single pairs."""
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
        left_words, right_words = documents[a], documents[b]
        distance = edits.levenshtein(left_words, right_words, *costs)
        aligned_left, aligned_right = alignment(left_words, right_words, *costs)
        assert [item for item in aligned_left if item is not None] == left_words
        assert [item for item in aligned_right if item is not None] == right_words
        cost = sum(
            costs.insertion if x is None else costs.deletion if y is None else costs.substitution
            for x, y in zip(aligned_left, aligned_right, strict=True)
            if x != y
        )
        assert abs(cost - distance) < 1e-6


def check_arrays(arrays: list[bytes]) -> None:
    """Assert that malformed arrays are never read past their end, and good arrays are read exactly."""
    small_values, offsets = binary_format.load_int2_arrays(arrays)
    assert offsets[-1] == len(small_values)
    for data, (start, end) in zip(arrays, pairwise(offsets.tolist()), strict=True):
        assert end - start == max(0, len(data) - 20) // 6
        expected = [struct.unpack_from(">h", data, 24 + 6 * k)[0] for k in range(end - start)]
        assert small_values[start:end].tolist() == expected
    values, offsets = binary_format.load_int4_arrays(arrays)
    assert offsets[0] == 0
    assert offsets[-1] == len(values)
    for data, (start, end) in zip(arrays, pairwise(offsets.tolist()), strict=True):
        assert end - start == max(0, len(data) - 20) // 8
        expected = [struct.unpack_from(">i", data, 24 + 8 * k)[0] for k in range(end - start)]
        assert values[start:end].tolist() == expected
        if (len(data) - 20) % 8 == 0 or len(data) <= 20:
            assert binary_format.load_int4_array(data).tolist() == expected


def check_band_rows(rng: random.Random) -> None:
    """Check changes of band rows and their COPY format, with numbers that a damaged table may have."""
    edges = (-(2**31), -1, 0, 1, 2**31 - 1)
    ids = [rng.choice((*edges, rng.randrange(-(2**31), 2**31))) for _ in range(12)]
    values = [rng.choice((*edges, rng.randrange(-(2**31), 2**31))) for _ in range(6)]
    rows = [(rng.choice(values), rng.choice(ids)) for _ in range(rng.randrange(40))]
    before, after = ([row for row in rows if rng.random() < 0.8] for _ in range(2))
    removed, added = changed_rows(_packed(before), _packed(after))
    counts, counts_after = Counter(before), Counter(after)
    for value in removed.tolist():
        del counts[_unpacked(value)]
    counts.update(map(_unpacked, added.tolist()))
    assert counts == counts_after
    data = copy_rows.copy_bands(_packed(rows)).tobytes()
    in_order = sorted(rows, key=_pack)
    assert data == b"".join(struct.pack(">hiiii", 2, 4, b, 4, i) for b, i in in_order)


def _pack(row: tuple[int, int]) -> int:
    return row[0] << 32 | row[1] & 0xFFFFFFFF


def _packed(rows: list[tuple[int, int]]) -> Numbers:
    return np.array(sorted(map(_pack, rows)), np.int64)


def _unpacked(value: int) -> tuple[int, int]:
    return value >> 32, reference.signed(value, 32)


def check_rows(
    rng: random.Random, tokens: Tokens, numbers: npt.NDArray[np.int32], chosen: Numbers
) -> None:
    """Check that a simple parser of the COPY format reads the rows that were written."""
    keys = [rng.randbytes(rng.choice((0, 1, 30, MAX_KEY_BYTES))) for _ in chosen]
    ids = np.array([rng.randrange(2**31) for _ in chosen], np.int64)
    counts = np.diff(tokens.word_offsets)
    some_values = np.arange(-2, 2, dtype=rng.choice((np.int16, np.int32)))
    signatures = of_rows(np.repeat(some_values[np.newaxis], tokens.documents, axis=0), counts > 0)
    source = rng.choice((None, 0, 7, 2**31 - 1))
    languages = [rng.choice((b"", b"en", rng.randbytes(35))) for _ in chosen]
    sources = np.full(len(chosen), -1 if source is None else source)
    scopes = rng.choice((None, [rng.choice((b"", b"tenant")) for _ in chosen]))
    expiries = rng.choice((None, [rng.choice((b"", rng.randbytes(8))) for _ in chosen]))
    key_column, language_column, scope_column, expiry_column = (
        copy_rows.column(values, len(chosen)) for values in (keys, languages, scopes, expiries)
    )
    identities = copy_rows.Identities(
        ids=ids,
        keys=key_column,
        source_ids=sources,
        languages=language_column,
        scopes=scope_column,
        is_scoped=scopes is not None,
        expiries=expiry_column,
    )
    fingerprints = rng.choice((None, Ragged(numbers, tokens.word_offsets)))
    values_of = (*signatures, *(fingerprints or ()))
    no_forms = tokens.utf8._replace(offsets=np.empty(0, np.int64))
    contents = copy_rows.Contents(counts, numbers, tokens.word_offsets, no_forms, *values_of)
    guards = np.array([rng.randrange(-(2**63), 2**63) for _ in range(tokens.documents)], np.int64)
    has_guards = rng.random() < 0.5
    if has_guards:
        contents = contents._replace(guards=guards)
    data = copy_rows.copy_documents(identities, contents, chosen).tobytes()
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
            struct.pack(">i", ids[row]),
            keys[row],
            None if source is None else struct.pack(">i", source),
            struct.pack(">i", counts[i]),
            languages[row] or None,
            scopes and scopes[row],
            (expiries and expiries[row]) or None,
            struct.pack(">q", guards[i]) if has_guards else None,
            binary_format.dump_array(words),
            None,  # the normal form, in place of word ids
            binary_format.dump_array(signatures.of(i)),
            fingerprints and binary_format.dump_array(fingerprints.of(i)),
        ]
        assert values == expected
    assert at == len(data)
