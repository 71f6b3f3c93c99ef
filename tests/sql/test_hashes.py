"""Golden values and random ones against the server's own hash functions and plain SQL."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import psycopg
import pytest

import textsim_db as ts
from tests.support.golden import GOLDEN, Golden, golden_config
from textsim_db.settings import Bands, Shingle
from textsim_db.sketch import sketches
from textsim_db.sketch.fast_similarity import base, signatures
from textsim_db.sketch.sketches import GOLDEN_TEXT
from textsim_db.text.hashing import hash_array, hash_bands, hash_integers, hash_texts
from textsim_db.text.shingles import shingles

# The definition of a signature in plain SQL, in all rounds. The low 16 bits, signed, of each bin.
SIGNATURE = """
WITH x AS (SELECT unnest(%(values)s::bigint[]) AS value),
hashes AS (
    SELECT r, hashint8extended(value, %(base)s + r) AS h FROM x, generate_series(0, %(t)s - 1) r
),
bins AS (
    SELECT ((h & 4294967295) * %(t)s) >> 32 AS bin, min((r::bigint << 32) + (h >> 32)) AS value
    FROM hashes GROUP BY 1
),
filled AS (
    SELECT k, coalesce(
        bins.value, (SELECT min(hashint8extended(x.value, %(base)s + %(t)s + k) >> 32) FROM x)
    ) AS value
    FROM generate_series(0, %(t)s - 1) k LEFT JOIN bins ON bin = k
)
SELECT array_agg(((value + 32768) & 65535) - 32768 ORDER BY k) FROM filled
"""
# The low 32 bits, signed, of the hash of each band.
BUCKETS = """
SELECT array(
    SELECT ((h + 2147483648) & 4294967295) - 2147483648
    FROM generate_series(0, %(bands)s - 1) j
    CROSS JOIN LATERAL hash_array_extended(
        (%(signature)s::smallint[])[j * %(rows)s + 1:(j + 1) * %(rows)s], j) h
    ORDER BY j
)
"""
# The values of shingles of two or more words.
WORD_VALUES = """
SELECT array(
    SELECT hash_array_extended(array(
        SELECT hashtextextended(word, 0)
        FROM unnest(string_to_array(shingle, ' ')) WITH ORDINALITY w (word, place) ORDER BY place
    ), 0)
    FROM unnest(%s::text[]) WITH ORDINALITY s (shingle, number) ORDER BY number
)
"""


def value(connection: psycopg.Connection[Any], query: str, *parameters: object) -> Any:
    return named(connection, query, parameters)


def named(connection: psycopg.Connection[Any], query: str, parameters: Any) -> Any:
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]


def text_hashes(connection: psycopg.Connection[Any], texts: list[str]) -> list[int]:
    query = "SELECT array(SELECT hashtextextended(t, 0) FROM unnest(%s::text[]) t)"
    hashes: list[int] = value(connection, query, texts)
    return hashes


def shingle_values(
    connection: psycopg.Connection[Any], texts: list[str], shingle: Shingle
) -> list[int]:
    """Return the values of shingles as the server's own functions compute them."""
    if shingle.unit == "char" or shingle.n == 1:
        return text_hashes(connection, texts)
    values: list[int] = value(connection, WORD_VALUES, texts)
    return values


def server_signature(
    connection: psycopg.Connection[Any], values: list[int], seed: int, num_hashes: int
) -> list[int]:
    parameters = {"values": values, "base": base(seed), "t": num_hashes}
    made: list[int] = named(connection, SIGNATURE, parameters)
    return made


def server_buckets(
    connection: psycopg.Connection[Any], signature: list[int], banding: Bands
) -> list[int]:
    parameters = {"signature": signature, **banding._asdict()}
    made: list[int] = named(connection, BUCKETS, parameters)
    return made


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden.name} {golden.shingle}")
def test_golden_values(connection: psycopg.Connection[Any], golden: Golden) -> None:
    config = golden_config(golden.shingle)
    parts = shingles(golden.text, golden.shingle)
    values = shingle_values(connection, parts, config.shingle)
    assert values[:3] == golden.values
    if parts:
        signature = server_signature(connection, values, config.seed, config.num_hashes)
        assert signature == golden.signature
        assert server_buckets(connection, signature, config.banding) == golden.buckets


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_signature_of_a_default_corpus(
    db: ts.Database, connection: psycopg.Connection[Any], seed: int
) -> None:
    corpus = db.create_corpus("plain", seed=seed)
    parts = shingles(GOLDEN_TEXT, "word:3")
    values = shingle_values(connection, parts, corpus.config.shingle)
    signature = corpus.signature(GOLDEN_TEXT).tolist()
    buckets = corpus.buckets(GOLDEN_TEXT).tolist()
    assert server_signature(connection, values, seed, 128) == signature
    assert server_buckets(connection, signature, corpus.config.banding) == buckets
    row = connection.execute(
        "SELECT base, golden_signature, golden_buckets FROM textsim.corpus WHERE name = 'plain'"
    ).fetchone()
    assert row == (base(seed), signature, buckets)


@pytest.mark.parametrize("num_hashes", [2, 3, 64, 127, 128, 512])
@pytest.mark.parametrize("size", [1, 2, 10, 45, 200, 1025])
def test_signatures(
    connection: psycopg.Connection[Any], rng: random.Random, num_hashes: int, size: int
) -> None:
    values = [rng.randrange(-(2**63), 2**63) for _ in range(size)]
    values += values[: size // 10]  # two shingles may have one value
    seed = rng.randrange(2**63)
    numbers = np.array(values, np.int64).view(np.uint64)
    made = signatures(numbers, np.array([0, len(values)]), seed, num_hashes)[0].tolist()
    assert made == server_signature(connection, values, seed, num_hashes)


def test_texts_of_every_length(connection: psycopg.Connection[Any], rng: random.Random) -> None:
    texts = [
        "".join(map(chr, rng.choices(range(1, 128), k=length)))
        for length in range(101)
        for _ in range(20)
    ]
    texts += ["".join(map(chr, rng.choices(range(1, 0xD800), k=rng.randrange(60)))) for _ in texts]
    texts += ["x" * 10_000, "漢" * 100_000]
    assert hash_texts(texts) == text_hashes(connection, texts)


def test_integers(connection: psycopg.Connection[Any], rng: random.Random) -> None:
    edges = [0, 1, -1, 2**31, -(2**31), 2**32, -(2**32), 2**63 - 1, -(2**63)]
    values = edges + [rng.randrange(-(2**63), 2**63) for _ in range(1000)]
    for seed in [0, 1, -1, 2**62 - 1, -(2**63), rng.randrange(2**62)]:
        query = "SELECT array(SELECT hashint8extended(v, %s) FROM unnest(%s::bigint[]) v)"
        expected = value(connection, query, seed, values)
        assert hash_integers(np.array(values), seed).tolist() == expected
        for size in (0, 1, 3, 100):
            query = "SELECT hash_array_extended(%s::bigint[], %s)"
            expected = value(connection, query, values[:size], seed)
            assert hash_array(values[:size], seed) == expected


@pytest.mark.parametrize("rows", [1, 2, 7, 31])
def test_arrays(connection: psycopg.Connection[Any], rng: random.Random, rows: int) -> None:
    banding = Bands(12, rows)
    count = banding.bands * rows
    matrix = [[rng.randrange(-(2**15), 2**15) for _ in range(count)] for _ in range(100)]
    matrix += [[0] * count, [-1] * count, [2**15 - 1] * count, [-(2**15)] * count]
    made = hash_bands(np.array(matrix, np.int16), *banding).tolist()
    assert made == [server_buckets(connection, signature, banding) for signature in matrix]
    for signature in matrix[:10]:
        hashed = value(connection, "SELECT hash_array_extended(%s::smallint[], 5)", signature)
        assert hashed == hash_array(signature, 5)


def test_a_corpus_stores_what_its_recipe_says(
    db: ts.Database, connection: psycopg.Connection[Any], rng: random.Random
) -> None:
    corpus = db.create_corpus("stored", "char:3", num_hashes=32)
    texts = {f"k{i}": " ".join(rng.choices(["ab", "Çd", "漢字", "e"], k=i)) for i in range(20)}
    corpus.add_many(texts.items())
    rows = connection.execute(
        """
        SELECT d.key, d.signature, array(
            SELECT b.bucket FROM textsim.band_1 b WHERE b.document_id = d.id ORDER BY b.bucket
        )
        FROM textsim.document_1 d
        """
    ).fetchall()
    assert len(rows) == len(texts)
    for key, signature, buckets in rows:
        assert signature == sketches.signature(texts[key], corpus.config).tolist()
        assert buckets == sorted(sketches.buckets(texts[key], corpus.config).tolist())
        if signature:
            made = server_buckets(connection, signature, corpus.config.banding)
            assert sorted(made) == buckets
