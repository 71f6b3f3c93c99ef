"""The example of a cache: 16 clients ask at once, and nobody gets the answer to another question."""

from __future__ import annotations

import random
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, value

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cache"
PAGE = ROOT / "docs" / "how-to" / "a-cache-that-refuses.md"
PAIRS = [
    line.split("\t")
    for line in (ROOT / "benchmarks" / "questions.tsv").read_text("utf-8").splitlines()
]


@pytest.mark.more
def test_no_client_gets_the_answer_to_another_question(
    db: ts.Database, connection: Connection, database_url: str, rng: random.Random
) -> None:
    connection.execute((EXAMPLE / "schema.sql").read_bytes())
    ask = runpy.run_path(str(EXAMPLE / "cache.py"))["ask"]
    asked = [question for _, *pair in PAIRS for question in pair] * 2

    def client(question: str) -> tuple[str, str]:
        with psycopg.connect(database_url, autocommit=True) as own:
            # The model of the test answers with the question.
            return question, ask(own, question, lambda each: each)

    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(client, rng.sample(asked, len(asked))))
    apart = {(a, b) for kind, a, b in PAIRS if kind == "different"}
    assert answers.isdisjoint(apart | {(b, a) for a, b in apart})
    # Each question that was kept has words of its own, and each was answered from the cache at last.
    kept = value(connection, "SELECT count(*) FROM answer")
    assert kept < len(set(asked)) - 14
    for question, _ in answers:
        row = connection.execute("SELECT count(*) FROM cached(%s)", [question]).fetchone()
        assert row == (1,)
    assert db.corpus("questions").check() == []


def test_the_page_shows_the_files_of_the_example() -> None:
    page = PAGE.read_text("utf-8")
    assert (EXAMPLE / "schema.sql").read_text("utf-8").rstrip() in page
    assert (EXAMPLE / "cache.py").read_text("utf-8").split("\n", 2)[2].strip() in page
