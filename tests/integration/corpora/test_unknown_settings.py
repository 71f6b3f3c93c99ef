"""A corpus with a setting of a newer version is refused by its name, and other corpora go on."""

from __future__ import annotations

import asyncio
import json

import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.waiting import wait_until
from tests.support.workers import running_worker
from textsim_db.aio import connect
from textsim_db.errors import RecipeError

TEXT = "one two three four five six seven"
NEWER = """
ALTER TABLE textsim.corpus ADD COLUMN min_words integer;
ALTER TABLE textsim.corpus ALTER min_words SET DEFAULT 0;
UPDATE textsim.corpus SET min_words = 0;
ALTER TABLE textsim.corpus ALTER min_words SET NOT NULL;
CREATE OR REPLACE FUNCTION textsim._guard_kinds() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN '{numbers,currencies}'::text[];
DELETE FROM textsim.installed;
INSERT INTO textsim.installed SELECT * FROM textsim._catalog();
"""
SETTINGS = {
    'the setting "min_words"': "min_words = 3",
    'the guard "currencies"': "guards = '{numbers,currencies}'",
}


@pytest.fixture
def newer(db: ts.Database, connection: Connection) -> ts.Database:
    """A schema of a newer version, with two corpora, each with an attached table."""
    for name in ("news", "other"):
        connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, body text)".encode())
        db.create_corpus(name, guards="numbers").attach(name, "id", "body")
    connection.execute(NEWER)
    return db


@pytest.mark.parametrize("named", sample(SETTINGS, 2, "more"))
def test_a_client_refuses_a_setting_that_it_does_not_know(
    newer: ts.Database,
    connection: Connection,
    textsim: Textsim,
    named: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In every call, also of a process that opened the corpus before; nothing is written to it."""
    pytest.importorskip("pyspark")
    from textsim_db.spark import read

    opened = newer.corpus("news")
    newer.corpus("news").rebuild(shingle="word:2")
    connection.execute(f"UPDATE textsim.corpus SET {SETTINGS[named]} WHERE name = 'news'".encode())
    connection.execute(
        "UPDATE textsim.corpus c SET created_with = c.created_with || textsim._settings(c) "
        "WHERE name = 'news'"
    )
    message = (
        f'corpus "news" has {named}, which this version of textsim-db does not know; what to do'
    )
    for opens in (
        lambda: newer.corpus("news"),
        lambda: newer.corpus("news", on_server=True),
        lambda: newer.corpus("news", to_rebuild=True),
        lambda: newer.create_corpus("news", exist_ok=True),
        lambda: opened.rebuild(threshold=0.5),
        lambda: asyncio.run(open_in_coroutine(newer.url)),
        lambda: read(None, newer.url, "news"),  # type: ignore[arg-type]
        lambda: opened.query(TEXT),
        lambda: opened.add("a", TEXT),
    ):
        with pytest.raises(RecipeError, match=message):
            opens()
    for command in ("query news word", "pairs news", "status news", "rebuild news", "mcp news"):
        assert message in textsim(*command.split(), status=2).stderr
    assert message in textsim("corpus", "list").stderr
    (problem,) = map(
        json.loads, textsim("check", "--format", "jsonl", status=1).stdout.splitlines()
    )
    assert problem["subject"] == "news"
    assert named in problem["detail"]
    # A worker logs the fault, and goes on with the other corpus.
    for name in ("news", "other"):
        connection.execute(f"INSERT INTO {name} VALUES ('a', '{TEXT}')".encode())
    shown = "SELECT FROM textsim.status('news') s WHERE strpos(s.problems::text, %s) > 0"
    with running_worker(newer):
        wait_until(connection, shown.encode(), [named.split('"')[1]])
        newer.worker().run(until_idle=True)
    assert message in caplog.text
    assert [match.key for match in newer.corpus("other").query(TEXT)] == ["a"]
    assert len(newer.corpus("other")) == 1
    assert connection.execute("SELECT count(*) FROM textsim.document_3").fetchone() == (0,)
    connection.execute("SELECT textsim.detach('news', 'news')")
    newer.drop_corpus("news")
    assert list(newer.corpora()) == ["other"]


async def open_in_coroutine(url: str) -> None:
    async with connect(url) as db:
        await db.corpus("news")
