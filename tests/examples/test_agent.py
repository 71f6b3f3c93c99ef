"""Agents note facts in different words, 16 at once: they keep each of them, and hardly any twice."""

from __future__ import annotations

import asyncio
import random
import runpy
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from tests.support.facts import Note, mean_the_same, notes
from tests.support.mcp import calling, tool_server
from textsim_db.text.tokens import normal_form

EXAMPLE = Path(__file__).parents[2] / "examples" / "memory"
NAMES = runpy.run_path(str(EXAMPLE / "agent.py"))
Agent = NAMES["Agent"]


def _says_the_same(match: dict[str, Any]) -> bool:
    return mean_the_same(match.get("differs", {}))


def _keys(connection: Connection) -> list[str]:
    documents, _ = tables_of(connection, "facts")
    return [key for (key,) in connection.execute(f"SELECT key FROM {documents}".encode())]


async def _note_all(corpus: ts.Corpus, given: list[Note], agents: int) -> None:
    async with AsyncExitStack() as stack:
        server = tool_server(corpus, "anna", write=True)
        clients = [(await stack.enter_async_context(calling(server))).client for _ in range(agents)]
        queue: Iterator[Note] = iter(given)

        async def work(agent: Any) -> None:
            for note in queue:
                await agent.note(note.text)

        team = [Agent(client, _says_the_same) for client in clients]
        ends = await asyncio.gather(*map(work, team), return_exceptions=True)
        errors = [error for error in ends if error is not None]
        if not errors:
            await team[0].settle()
    # Not inside of the clients: they group an error sixteen times, and pytest shows ten groups.
    for error in errors:
        raise error


@pytest.mark.more
@pytest.mark.parametrize(
    ("count", "agents"),
    [(100, 1), (160, 16), pytest.param(1_000, 1, marks=pytest.mark.long)],
)
def test_agents_keep_each_fact_once(
    db: ts.Database, connection: Connection, rng: random.Random, count: int, agents: int
) -> None:
    connection.execute((EXAMPLE / "facts.sql").read_bytes())
    corpus = db.corpus("facts")
    given = notes(rng, count)
    asyncio.run(_note_all(corpus, given, agents))

    fact_of = {normal_form(note.text): note.fact for note in given}
    kept = {key: fact_of[corpus.normal_form(key)] for key in _keys(connection)}
    facts = {note.fact for note in given}
    assert len(facts) < count
    assert {*kept.values()} == facts, "a fact is lost"
    assert not [pair for pair in corpus.pairs() if kept[pair.a] == kept[pair.b]], "a twin is kept"
    # Some notes of one fact have too few words in common.
    assert len(kept) - len(facts) <= max(3, count // 100), "near-duplicates are kept"
    assert list(corpus.doubtful("anna")) == []
    assert corpus.check() == []


def test_an_agent_says_which_fact_is_not_kept(db: ts.Database, connection: Connection) -> None:
    connection.execute((EXAMPLE / "facts.sql").read_bytes())

    async def main() -> None:
        async with calling(tool_server(db.corpus("facts"), "anna", write=True)) as call:
            agent = Agent(call.client, lambda match: False)
            await agent.note("Orders > 50 need a signature")
            with pytest.raises(NAMES["Refused"], match="write it as a word"):
                await agent.note("Orders < 50 need a signature")

    asyncio.run(main())
