"""The example of words and meaning: each finds its part, and guards hold for both, in one statement."""

from __future__ import annotations

import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, value

EXAMPLE = Path(__file__).parents[2] / "examples" / "meaning"
PAGE = EXAMPLE.parents[1] / "docs" / "how-to" / "words-and-meaning.md"
CLIENTS = 16
pytestmark = pytest.mark.more


@pytest.fixture
def facts(
    connection: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The names of the example, on the database of this test."""
    if not value(connection, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("the server has no extension vector")
    pytest.importorskip("wordllama")
    connection.execute((EXAMPLE / "schema.sql").read_bytes())
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    return runpy.run_path(str(EXAMPLE / "meaning.py"))


def test_the_page_shows_the_figures_of_the_example(
    facts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    facts["main"](["0.99"])
    strict = capsys.readouterr().out
    facts["main"]([])
    printed = capsys.readouterr().out
    assert strict != printed
    assert printed in PAGE.read_text("utf-8")
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in printed.splitlines()[1:]}
    assert float(rows["words", "yes"][0]) == 1
    assert rows["meaning", "yes"][1] > rows["words", "yes"][1]
    assert all(
        rows[found, "yes"][0] > rows[found, "no"][0] for found in ("words", "meaning", "both")
    )


def test_sixteen_clients_find_the_facts_of_all_others(
    facts: dict[str, Any], connection: Connection, database_url: str, db: ts.Database
) -> None:
    pairs = [
        (f"{who} cannot eat nuts", f"{who} is allergic to peanuts")
        for who in ["Anna", "Bert", "Carl", "Dora", "Emil", "Frida", "Georg", "Hanna"]
    ]

    def note(body: str) -> int:
        with psycopg.connect(database_url) as own:
            return int(facts["add"](own, [body])[0])

    with ThreadPoolExecutor(CLIENTS) as pool:
        ids = list(pool.map(note, [body for pair in pairs for body in pair]))
    assert value(connection, "SELECT count(*) FROM fact") == len(ids)
    for one, other in zip(ids[::2], ids[1::2], strict=True):
        rows = connection.execute("SELECT id FROM similar_facts(%s, 0.3)", [one]).fetchall()
        assert (other,) in rows
    assert db.corpus("fact").check() == []
