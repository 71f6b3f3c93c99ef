"""Golden values and random ones against the server's own hash functions and plain SQL."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import psycopg
import pytest

import textsim_db as ts
from tests.support.golden import GOLDEN, Golden, golden_config
from textsim_db.sketch import sketches
from textsim_db.sketch.sketches import GOLDEN_TEXT
from textsim_db.text.hashing import hash_bands, hash_texts
from textsim_db.text.shingles import shingles

PRIME = 2**31 - 1
SIGNATURE = """
SELECT array_agg(h.value ORDER BY h.number)
FROM (
    SELECT f.number, min((f.a * x.value + f.b) %% 2147483647)
    FROM textsim.corpus c
    CROSS JOIN unnest(c.a, c.b) WITH ORDINALITY f (a, b, number)
    CROSS JOIN (
        SELECT hashtextextended(shingle, 0) & 2147483647 FROM unnest(%s::text[]) s (shingle)
    ) x (value)
    WHERE c.name = %s
    GROUP BY f.number
) h (number, value)
"""
BUCKETS = """
SELECT array_agg(hash_array_extended(s.signature[j * c.rows + 1:(j + 1) * c.rows], j) ORDER BY j)
FROM textsim.corpus c
CROSS JOIN (SELECT %s::integer[]) s (signature)
CROSS JOIN generate_series(0, c.bands - 1) j
WHERE c.name = %s
"""


def value(connection: psycopg.Connection[Any], query: str, *parameters: object) -> Any:
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]


def text_hashes(connection: psycopg.Connection[Any], texts: list[str]) -> list[int]:
    query = "SELECT array(SELECT hashtextextended(t, 0) FROM unnest(%s::text[]) t)"
    hashes: list[int] = value(connection, query, texts)
    return hashes


def test_golden_values(db: ts.Database, connection: psycopg.Connection[Any]) -> None:
    for shingle in ("word:2", "char:4"):
        c = golden_config(shingle)
        db.create_corpus(
            shingle, shingle, num_hashes=c.num_hashes, bands=c.bands, rows=c.rows, seed=c.seed
        )
    for golden in GOLDEN:
        check_golden(connection, golden)


def check_golden(connection: psycopg.Connection[Any], golden: Golden) -> None:
    parts = shingles(golden.text, golden.shingle)
    hashes = text_hashes(connection, parts[:3])
    assert [h & PRIME for h in hashes] == golden.values
    if parts:
        assert value(connection, SIGNATURE, parts, golden.shingle) == golden.signature
        assert value(connection, BUCKETS, golden.signature, golden.shingle) == golden.buckets


@pytest.mark.parametrize("seed_of_corpus", [0, 1, 2**63 - 1])
def test_signature_of_a_default_corpus(
    db: ts.Database, connection: psycopg.Connection[Any], seed_of_corpus: int
) -> None:
    corpus = db.create_corpus("plain", seed=seed_of_corpus)
    signature = corpus.signature(GOLDEN_TEXT).tolist()
    assert value(connection, SIGNATURE, shingles(GOLDEN_TEXT, "word:3"), "plain") == signature
    assert value(connection, BUCKETS, signature, "plain") == corpus.buckets(GOLDEN_TEXT).tolist()
    golden = "SELECT golden_signature FROM textsim.corpus WHERE name = %s"
    assert value(connection, golden, "plain") == signature


def test_texts_of_every_length(connection: psycopg.Connection[Any], rng: random.Random) -> None:
    texts = [
        "".join(map(chr, rng.choices(range(1, 128), k=length)))
        for length in range(101)
        for _ in range(20)
    ]
    texts += ["".join(map(chr, rng.choices(range(1, 0xD800), k=rng.randrange(60)))) for _ in texts]
    texts += ["x" * 10_000, "漢" * 100_000]
    assert hash_texts(texts) == text_hashes(connection, texts)


@pytest.mark.parametrize("rows", [1, 2, 7, 31])
def test_arrays(connection: psycopg.Connection[Any], rng: random.Random, rows: int) -> None:
    bands = 12
    signatures = np.array(
        [[rng.randrange(PRIME + 1) for _ in range(bands * rows)] for _ in range(200)]
        + [[0] * bands * rows, [PRIME] * bands * rows],
        np.int32,
    )
    expected = connection.execute(
        """
        SELECT array(
            SELECT hash_array_extended(array(
                SELECT v::integer FROM jsonb_array_elements_text(s) WITH ORDINALITY e (v, place)
                WHERE place > j * %(rows)s AND place <= (j + 1) * %(rows)s ORDER BY place
            ), j)
            FROM generate_series(0, %(bands)s - 1) j ORDER BY j
        )
        FROM unnest(%(signatures)s::jsonb[]) WITH ORDINALITY a (s, number) ORDER BY number
        """,
        {"rows": rows, "bands": bands, "signatures": [str(s.tolist()) for s in signatures]},
    ).fetchall()
    assert hash_bands(signatures, bands, rows).tolist() == [row[0] for row in expected]


def test_a_corpus_stores_what_its_recipe_says(
    db: ts.Database, connection: psycopg.Connection[Any], rng: random.Random
) -> None:
    corpus = db.create_corpus("stored", "char:3", num_hashes=32)
    texts = {f"k{i}": " ".join(rng.choices(["ab", "Çd", "漢字", "e"], k=i)) for i in range(20)}
    corpus.add_many(texts.items())
    rows = connection.execute(
        """
        SELECT d.key, d.signature, array(
            SELECT b.bucket FROM textsim.band_1 b WHERE b.document_id = d.id ORDER BY b.band
        )
        FROM textsim.document_1 d
        """
    ).fetchall()
    assert len(rows) == len(texts)
    for key, signature, buckets in rows:
        assert signature == sketches.signature(texts[key], corpus.config).tolist()
        assert buckets == sketches.buckets(texts[key], corpus.config).tolist()
        if signature:
            assert value(connection, BUCKETS, signature, "stored") == buckets
