"""A real, as 0.8::real or numpy.float32(0.8), finds the pairs of its decimal number."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from textsim_db.settings.check_values import as_float

TEXTS = [("a", "one two three four"), ("b", "one two three four five")]
KINDS: tuple[Any, ...] = (np.float32, np.float16, np.longdouble, np.float64, float, Decimal)


def test_sql_and_python_round_a_real_to_its_decimal_number(
    shared_connection: Connection, rng: random.Random
) -> None:
    numbers = [
        rng.choice([round(rng.random(), rng.randrange(1, 10)), rng.random()]) for _ in range(300)
    ]
    numbers += [0.8, 1.0, 1e-9, 171 / 512]
    for given in [*numbers, *(float(np.float32(n)) for n in numbers), 5e-324, 1e300, float("inf")]:
        rounded = value(shared_connection, "SELECT textsim._decimal_of(%s::float8)", [given])
        assert rounded == as_float(given), given
        assert rounded == given or float(np.float32(rounded)) == given
    for digits in range(1, 7):
        number = round(rng.uniform(0.1, 1), digits)
        assert as_float(KINDS[0](number)) == as_float(Decimal(str(number))) == number
    assert as_float(171 / 512) == 171 / 512


def test_a_real_finds_the_pairs_of_its_decimal_number(
    db: ts.Database, connection: Connection
) -> None:
    for name, recall in (("exact", 1.0), ("bands", 0.999)):
        corpus = db.create_corpus(name, shingle="word:1", threshold=KINDS[0](0.8), recall=recall)
        assert corpus.config.threshold == 0.8
        connection.execute(
            "SELECT textsim.create_corpus(%s, 'word:1', 0.8::real, %s)", [f"{name} in SQL", recall]
        )
        assert db.corpus(f"{name} in SQL").config.threshold == 0.8
        corpus.add_many(TEXTS)
        for kind in KINDS:
            assert len(list(corpus.pairs(threshold=kind(0.8)))) == 1
            assert corpus.query(TEXTS[0][1], threshold=kind("0.8"), max_results=9)[-1].key == "b"
        for statement, found in (
            ("SELECT a, b FROM textsim.pairs(%s, 0.8::real)", [("a", "b")]),
            (
                "SELECT key FROM textsim.matches(%s, 'one two three four', 0.8::real)",
                [("a",), ("b",)],
            ),
            ("SELECT key FROM textsim.neighbours(%s, 'a', 0.8::real)", [("b",)]),
            ("SELECT key FROM textsim.clusters(%s, 0.8::real) ORDER BY key", [("a",), ("b",)]),
        ):
            assert connection.execute(statement.encode(), [name]).fetchall() == found, statement
        connection.execute("SELECT textsim.track(%s, threshold => 0.8::real)", [name])
    refused: tuple[Any, ...] = (Decimal("NaN"), Decimal("1.1"), Decimal(0), np.float32("nan"))
    for wrong in refused:
        with pytest.raises(ts.ConfigurationError, match="threshold is"):
            db.create_corpus("c", threshold=wrong)
