"""An agent notes facts in different words: it keeps each of them, and none twice."""

from __future__ import annotations

import asyncio
import random

import textsim_db as ts
from tests.support.facts import SETTINGS, note_all, notes
from tests.support.mcp import calling, tool_server

NOTES = 100


def test_an_agent_keeps_each_fact_once(db: ts.Database, rng: random.Random) -> None:
    corpus = db.create_corpus("facts", **SETTINGS)
    given = notes(rng, NOTES)

    async def main() -> dict[str, str]:
        async with calling(tool_server(corpus, "anna", write=True)) as call:
            return await note_all(call, given)

    kept = asyncio.run(main())
    assert {key for key in kept if key in corpus} == {*kept}
    assert len(corpus) == len(kept)
    facts = {note.fact for note in given}
    assert len(facts) < NOTES
    assert {*kept.values()} == facts, "a fact is lost"
    assert len(kept) - len(facts) <= NOTES // 50, "near-duplicates are kept"
    assert list(corpus.doubtful("anna")) == []
    assert corpus.check() == []
