"""Corpora that SQL creates equal those that Python creates; impossible settings are refused."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection


def test_stop_words_without_null(connection: Connection) -> None:
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="stop_words or one of them is NULL"
    ):
        connection.execute("SELECT textsim.create_corpus('c', stop_words => '{the,NULL}')")


SETTINGS: list[dict[str, Any]] = [
    {},
    {"shingle": "char:5", "threshold": 0.5, "recall": 0.99},
    {"num_hashes": 4096, "threshold": 0.05, "recall": 0.5, "seed": 2**63 - 1},
    {"num_hashes": 2, "threshold": 0.95, "recall": 0.9, "seed": 0},
    {"num_hashes": 200, "bands": 20, "rows": 10, "seed": 2**40 + 77},
    {"recall": 1.0},
    {"threshold": 1.0, "recall": 1.0},
    {"shingle": "word:1", "threshold": 1e-9, "recall": 1.0, "num_hashes": 2},
    {"shingle": "char:5", "threshold": 0.55, "recall": 1.0, "seed": 9},
    {"threshold": 1.0, "bands": 18, "rows": 7},
    {"bands": 64, "rows": 2},
    {"bands": 64, "rows": 2, "threshold": 0.999},
    {"threshold": 0.5, "recall": 0.9999999999999999, "num_hashes": 256},
    {"num_hashes": 4096, "bands": 1, "rows": 20, "threshold": 0.3},
    {"num_hashes": 4096, "bands": 2048, "rows": 2, "threshold": 0.99},
]


def test_a_corpus_created_by_sql_equals_one_created_by_python(
    db: ts.Database, connection: Connection
) -> None:
    columns = (
        "unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe, base, "
        "golden_signature, golden_buckets"
    )
    for settings in SETTINGS:
        db.create_corpus("python", **settings)
        arguments = "".join(f", {name} => %s" for name in settings)
        connection.execute(
            f"SELECT textsim.create_corpus('sql'{arguments})".encode(), [*settings.values()]
        )
        rows = connection.execute(f"SELECT {columns} FROM textsim.corpus".encode()).fetchall()
        assert rows[0] == rows[1], settings
        corpus = db.corpus("sql")
        corpus.add("a", "one two three four")
        assert corpus.check() == [], settings
        connection.execute("SELECT textsim.drop_corpus('sql')")
        assert list(db.corpora()) == ["python"]
        db.drop_corpus("python")


WRONG_NAMES: list[tuple[LiteralString, str]] = [
    ("''", "the name of the corpus is ''"),
    ("NULL", "the name of the corpus is NULL"),
    ("'textsim temporary data'", 'names that begin with "textsim temporary " are reserved'),
    ("'c'", 'corpus "c" exists already'),
]


def test_a_corpus_with_an_impossible_name_is_refused(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c")
    for arguments, message in WRONG_NAMES:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(f"SELECT textsim.create_corpus({arguments})")
        assert message in str(caught.value.diag.message_primary)
    assert list(db.corpora()) == ["c"]


def test_a_column_that_nobody_sets_takes_its_default(
    db: ts.Database, connection: Connection
) -> None:
    connection.execute("ALTER TABLE textsim.corpus ADD later boolean")
    connection.execute("ALTER TABLE textsim.corpus ALTER later SET DEFAULT false")
    connection.execute("SELECT textsim.create_corpus('sql', recall => 1, stop_words => '{the}')")
    db.create_corpus("python", keep_for="1 day")
    rows = connection.execute("SELECT later, bands IS NULL FROM textsim.corpus ORDER BY name DESC")
    assert rows.fetchall() == [(False, True), (False, False)]
