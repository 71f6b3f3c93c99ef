"""Binary COPY and parameters keep extreme integers, with both builds of psycopg.

For an integer that does not fit, the C build wraps around and the Python build raises an error. The
stored values must not depend on the build.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import textsim_db as ts
from textsim_db.db.binary_format import Array
from textsim_db.db.binary_rows import (
    COPY_HEADER,
    COPY_TRAILER,
    Contents,
    Identities,
    copy_bands,
    copy_documents,
)
from textsim_db.db.connections import register
from textsim_db.sketch.ragged import Ragged, of_rows

ROOT = Path(__file__).parents[2]
INT4 = [0, 1, -1, 2**31 - 1, -(2**31), 255, -256, 65536]
INT8 = [*INT4, 2**63 - 1, -(2**63), 2**32, -(2**32) - 1, 2**31, -(2**31) - 1]
INT2 = [0, 1, -1, 2**15 - 1, -(2**15)]


def query(connection: psycopg.Connection[Any], statement: str, *values: object) -> list[Any]:
    return connection.execute(statement.encode(), values).fetchall()


def copy_in(connection: psycopg.Connection[Any], statement: str, rows: Any) -> None:
    with connection.cursor().copy(statement.encode()) as copy:
        copy.write(COPY_HEADER)
        copy.write(bytes(rows))
        copy.write(COPY_TRAILER)


def check_parameters(connection: psycopg.Connection[Any]) -> None:
    register(connection)
    for values, dtype, type_ in (
        (INT2, np.int16, "smallint"),
        (INT4, np.int32, "integer"),
        (INT8, np.int64, "bigint"),
    ):
        for numbers in (values, []):
            statement = f"SELECT %s, pg_typeof(%s)::text, cardinality(%s::{type_}[])"
            [row] = query(connection, statement, *[Array(np.array(numbers, dtype))] * 3)
            assert row == (numbers, f"{type_}[]", len(numbers))


def check_bands(connection: psycopg.Connection[Any]) -> None:
    buckets, ids = INT4, [1, 2, 3, 255, 256, 65536, 2**24, 2**31 - 1]
    connection.execute("CREATE TEMP TABLE b (LIKE textsim.band)")
    statement = "COPY b (bucket, document_id) FROM STDIN (FORMAT binary)"
    rows = (np.array(buckets, np.int64) << 32) | np.array(ids, np.int64)
    copy_in(connection, statement, copy_bands(rows))
    copy_in(connection, statement, copy_bands(rows[:0]))
    rows_read = query(connection, "SELECT bucket, document_id FROM b")
    assert rows_read == list(zip(buckets, ids, strict=True))


def dump_moment(microseconds: int | None) -> bytes:
    return b"" if microseconds is None else microseconds.to_bytes(8, "big", signed=True)


def check_documents(connection: psycopg.Connection[Any], source_id: int | None) -> None:
    keys = ["", "plain", "ü漢\U0001f98a" * 10, "k" * 1000]
    words = [INT4, [], [5], list(range(1000))]
    matrix = np.array([INT2, INT2[::-1], INT2, [7] * len(INT2)], np.int16)
    counts = np.array([2**31 - 1, 0, 1, 998], np.int64)
    signatures = of_rows(matrix, counts > 0)
    ids = [2**31 - 1, 0, 1, 65535]
    chosen = [3, 0, 1]
    connection.execute(
        "CREATE TEMP TABLE d (LIKE textsim.document INCLUDING DEFAULTS) ON COMMIT DROP"
    )
    columns = "id, key, source_id, shingle_count, language, scope, expires_at, word_ids, signature"
    columns += ", fingerprints"
    scopes = ["a", "", "ü", "s" * 200] if source_id is None else [None] * 4
    fingerprints = Ragged(
        np.array([5, -1, 2**31 - 1, -(2**31)], np.int32), np.array([0, 0, 1, 1, 4])
    )
    # Microseconds since the start of 2000.
    moments = [8 * 10**14, None, -1, 2**63 - 1] if source_id is None else [None] * 4
    languages = ["de", None, "und", "yue"] if source_id is None else [None] * 4
    data = copy_documents(
        Identities(
            np.array([ids[i] for i in chosen], np.int64),
            [keys[i].encode() for i in chosen],
            np.full(len(chosen), -1 if source_id is None else source_id),
            None if source_id else [(languages[i] or "").encode() for i in chosen],
            [str(scopes[i]).encode() for i in chosen] if source_id is None else None,
            None if source_id else [dump_moment(moments[i]) for i in chosen],
        ),
        Contents(
            counts,
            np.array([word for words_of_document in words for word in words_of_document], np.int32),
            np.cumsum([0, *map(len, words)], dtype=np.int64),
            signatures.values,
            signatures.offsets,
            *(() if source_id else fingerprints),
        ),
        np.array(chosen, np.int64),
    )
    copy_in(connection, f"COPY d ({columns}) FROM STDIN (FORMAT binary)", data)
    columns = columns.replace("expires_at", "timestamptz_send(expires_at)")
    assert query(connection, f"SELECT {columns} FROM d") == [
        (
            ids[i],
            keys[i],
            source_id,
            counts.tolist()[i],
            languages[i],
            scopes[i],
            dump_moment(moments[i]) or None,
            words[i],
            signatures.of(i).tolist(),
            None if source_id else fingerprints.of(i).tolist(),
        )
        for i in chosen
    ]


def check_all(url: str) -> None:
    """Run every check; the test calls this function in a process with the chosen build of psycopg."""
    with psycopg.connect(url) as connection:
        check_parameters(connection)
        check_bands(connection)
        for source_id in (None, 0, 2**31 - 1):
            check_documents(connection, source_id)
            connection.rollback()
    with ts.connect(url) as db:
        corpus = db.create_corpus("news", shingle="word:2")
        texts = [(f"k{i}", f"some words of document {i % 50}") for i in range(300)]
        assert corpus.add_many(texts).added == 300
        assert corpus.add_many(texts).unchanged == 300
        assert corpus.add_many((key, f"{text} more") for key, text in texts).replaced == 300
        assert corpus.remove(["k0", "k1"]) == 2
        assert len(corpus.query("some words of document 7 more")) == 6
        assert len(corpus.neighbours("k7")) == 5
        assert corpus.query_many(["", "some words"], 0.1)[0] == []
        assert len(list(corpus.pairs())) > 0
        assert corpus.check() == []


def test_values_survive_a_round_trip(database_url: str) -> None:
    check_all(database_url)


@pytest.mark.long
def test_values_survive_a_round_trip_with_the_build_of_psycopg_in_python(database_url: str) -> None:
    program = (
        "import sys, psycopg; from tests.integration.test_copy import check_all; "
        "assert psycopg.pq.__impl__ == 'python'; check_all(sys.argv[1])"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, database_url],
        cwd=ROOT,
        env={**os.environ, "PSYCOPG_IMPL": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "no pq wrapper available" in result.stderr:
        pytest.skip("psycopg (python) cannot be loaded: libpq is not installed")
    assert result.returncode == 0, result.stderr
