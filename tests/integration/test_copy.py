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
    copy_bands,
)
from textsim_db.db.connections import register

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


def check_all(url: str) -> None:
    """Run every check; the test calls this function in a process with the chosen build of psycopg."""
    with psycopg.connect(url) as connection:
        check_parameters(connection)
        check_bands(connection)
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
