"""Agents note facts in different words, 16 at once: they keep each of them, and hardly any twice."""

from __future__ import annotations

import asyncio
import random
import re
import runpy
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from tests.support.mcp import calling, tool_server
from textsim_db.text.tokens import normal_form

EXAMPLE = Path(__file__).parents[2] / "examples" / "memory"
NAMES = runpy.run_path(str(EXAMPLE / "agent.py"))
Agent = NAMES["Agent"]

CHOICES = {
    "who": "Anna Bert Carl Dora Emil Frida Georg Hanna Igor Jana Karim Lena Mona Nils Olga Paul Rosa",
    "city": "Kiel Bonn Bremen Leipzig Hamburg Dresden Rostock Erfurt",
    "month": "January March April May June August October",
}
SENTENCES = (
    "{who} {moved} to {city} in {month} and {works} in the harbour office",
    "{who} {likes} a window seat near the front on {long} flights to {city}",
    "the train of {who} to the office in {city} {leaves} at {hour}:{minute}",
    "{who} does {perhaps}eat peanuts, hazelnuts or anything {made} of soy",
    "{who} wants the {month} report for {city} as a table of {hour} columns",
    "invoice {number} of {who} was {paid} in {month} from the account in {city}",
)
SYNONYMS = {
    "moved": "relocated",
    "works": "is employed",
    "likes": "prefers",
    "long": "lengthy",
    "leaves": "departs",
    "made": "prepared",
    "paid": "settled",
}
BEFORE = ("", "", "Please note: ", "Today: ", "I hear that ")
AFTER = ("", ".", "!", ", as said", " (confirmed)", ", I think")
FILLERS = set(re.findall(r"\w+", " ".join((*BEFORE, *AFTER)).lower()))
"""Words that change no fact."""
_WORD_OF = {
    other: word for word, synonym in SYNONYMS.items() for other in synonym.split() if other != "is"
}


class Note(NamedTuple):
    fact: str
    """Equal notes of one fact have it in common, whatever their words are."""
    text: str


def notes(rng: random.Random, count: int) -> list[Note]:
    """Return notes in any order, of which about a third repeat an earlier fact."""
    facts: list[dict[str, str]] = []
    written: list[Note] = []
    for _ in range(count):
        if facts and rng.random() < 0.35:
            fact = rng.choice(facts)
        elif facts and rng.random() < 0.5:
            fact = _changed(rng, rng.choice(facts))
        else:
            fact = _new(rng)
        facts.append(fact)
        sentence = fact["sentence"]
        same = {**fact, **{word: word for word in SYNONYMS}}
        used = {each: fact[each] for each in fact if f"{{{each}}}" in sentence}
        name = f"{sentence} {sorted(used.items())}"
        other = {word: rng.choice([word, SYNONYMS[word]]) for word in SYNONYMS}
        text = sentence.format(**{**same, **(other if rng.random() < 0.3 else {})})
        if rng.random() < 0.2:
            text = text.upper()
        written.append(Note(name, f"{rng.choice(BEFORE)}{text}{rng.choice(AFTER)}"))
    return written


def _new(rng: random.Random) -> dict[str, str]:
    return {
        "sentence": rng.choice(SENTENCES),
        **{name: rng.choice(words.split()) for name, words in CHOICES.items()},
        "hour": str(rng.randrange(5, 23)),
        "minute": str(rng.randrange(10, 60)),
        "number": str(rng.randrange(1_000, 10_000)),
        "perhaps": rng.choice(["", "not "]),
    }


def _changed(rng: random.Random, fact: dict[str, str]) -> dict[str, str]:
    """Return a fact that differs from another in one word, number or negation."""
    used = [each for each in fact if f"{{{each}}}" in fact["sentence"]]
    name = rng.choice(used)
    return {**fact, name: _new(rng)[name]}


def mean_the_same(differs: dict[str, str]) -> bool:
    """Say whether two texts that differ in these words say the same, as a model would."""
    sides = []
    for text in (*differs.values(), "", "")[:2]:
        words = {_WORD_OF.get(word, word) for word in re.findall(r"\w+", text.lower())}
        sides.append(words - FILLERS - {"is"})
    return sides[0] == sides[1]


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
