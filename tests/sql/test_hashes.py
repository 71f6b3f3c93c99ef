"""The hashes of Python are those of the server."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.connections import Connection, value
from textsim_db.sketch.ragged import Ragged, in_parts
from textsim_db.text.hashing import hash_texts, part_of_scope, parts_of_scopes

pytestmark = pytest.mark.both_servers


def text_hashes(connection: Connection, texts: list[str]) -> list[int]:
    query = "SELECT array(SELECT hashtextextended(t, 0) FROM unnest(%s::text[]) t)"
    return [int(h) for h in value(connection, query, [texts])]


def test_texts_of_every_length_hash_as_on_the_server(
    shared_connection: Connection, rng: random.Random
) -> None:
    texts = [
        "".join(map(chr, rng.choices(range(1, 128), k=length)))
        for length in range(101)
        for _ in range(20)
    ]
    texts += ["".join(map(chr, rng.choices(range(1, 0xD800), k=rng.randrange(60)))) for _ in texts]
    texts += ["x" * 10_000, "漢" * 100_000]
    assert hash_texts(texts) == text_hashes(shared_connection, texts)


def test_parts_are_those_of_the_server(shared_connection: Connection, rng: random.Random) -> None:
    scopes = ["", "\\", "a\\b\\\\", "\\000", "'", "acme", "x" * 200]
    for highest in (128, 0xD800, 0x110000):
        codes = [
            code for code in rng.choices(range(1, highest), k=20_000) if not 0xD800 <= code < 0xE000
        ]
        scopes += ["".join(map(chr, rng.choices(codes, k=rng.randrange(50)))) for _ in range(2_000)]
    parts = parts_of_scopes(scopes)
    query = (
        "SELECT array_agg(textsim._part(s) ORDER BY i) "
        "FROM unnest(%s::text[]) WITH ORDINALITY u (s, i)"
    )
    assert value(shared_connection, query, [scopes]) == parts.tolist()
    assert part_of_scope("acme") == parts[5] == -9067096604380411744
    query = (
        "SELECT textsim._in_part(array_agg(x), textsim._part('acme')) FROM generate_series(-9, 9) x"
    )
    buckets = Ragged(np.arange(-9, 10, dtype=np.int32), np.array([0, 19]))
    assert value(shared_connection, query) == in_parts(buckets, parts[5:6]).values.tolist()
    query = "SELECT textsim._part(NULL), textsim._in_part('{1}', NULL)"
    assert shared_connection.execute(query).fetchone() == (None, [1])
