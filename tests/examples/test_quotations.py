"""The example of quotations: 16 clients answer at once, with quotations that are true or not."""

from __future__ import annotations

import asyncio
import json
import random
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.mcp import calling, tool_server

EXAMPLE = Path(__file__).parents[2] / "examples" / "quotations"
CLIENTS = 16
USERS = ("anna", "bert")
BODY = (
    "The fee for flat {number} was 50 % of the rent, and rose by 3.5 points in {year}. The tenant did "
    "not agree to the new terms; on page {number}, she asks for a meeting with all owners of the house."
)
FALSIFIED = {
    "was 50 % of the rent": "was 50 of the rent",
    "rose by 3.5 points": "rose by 3-5 points",
    "did not agree": "did agree",
    "agree to the new terms": "object to the new terms",
}
"""Words of a letter, and others that a quotation must not have instead."""


class Request(NamedTuple):
    user: str
    quotations: list[dict[str, Any]]
    is_true: bool


@pytest.fixture
def names(
    connection: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The names of the application, on the database of this test with the schema of the example."""
    connection.execute((EXAMPLE / "schema.sql").read_bytes())
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    names = runpy.run_path(str(EXAMPLE / "answers.py"))
    yield names
    names["engine"].dispose()
    names["db"].close()


def add_letters(connection: Connection) -> dict[int, tuple[str, str]]:
    """Add 20 letters, and return the owner and the text of each."""
    rows = [(USERS[n % 2], BODY.format(number=100 + n, year=2000 + n)) for n in range(20)]
    for row in rows:
        connection.execute("INSERT INTO letter (owner, body) VALUES (%s, %s)", row)
    return {n: row[1:] for n, *row in connection.execute("SELECT id, id, owner, body FROM letter")}


def requests_of(
    rng: random.Random, letters: dict[int, tuple[str, str]], count: int
) -> list[Request]:
    """Return answers with quotations; in half of the answers, one is falsified or from elsewhere."""
    requests = []
    for _ in range(count):
        user, is_true = rng.choice(USERS), rng.random() < 0.5
        own = [number for number, (owner, _) in letters.items() if owner == user]
        quotations = []
        for _ in range(rng.randrange(1, 4)):
            letter = rng.choice(own)
            words = letters[letter][1].split(" ")
            # The place of a quotation begins and ends with a word, and 50 without its sign is refused.
            start = rng.choice([n for n in range(len(words) - 8) if words[n] != "%"])
            ends = [n for n in range(start + 7, len(words) + 1) if "%" not in words[n - 1 : n + 1]]
            end = rng.choice(ends)
            quotations.append({"letter": letter, "body": " ".join(words[start:end])})
        if not is_true:
            changed: Any = rng.choice(quotations)
            true, false = rng.choice([*FALSIFIED.items()])
            body = letters[changed["letter"]][1]
            before, _, after = body.partition(true)
            changed["body"] = before[-20:] + false + after
            if rng.random() < 0.2:  # true words, of which letter
                changed |= {"letter": rng.choice([*set(letters) - set(own), 999]), "body": body}
        requests.append(Request(user, quotations, is_true))
    return requests


async def post_all(
    names: dict[str, Any], requests: list[Request]
) -> list[tuple[Request, int, Any]]:
    queue, answers = iter(requests), []
    transport = httpx2.ASGITransport(app=names["app"])
    async with httpx2.AsyncClient(transport=transport, base_url="http://answers") as http:

        async def serve() -> None:
            for request in queue:
                content = json.dumps({"body": "see there", "quotations": request.quotations})
                headers = {"X-User": request.user, "Content-Type": "application/json"}
                response = await http.post("/answers", content=content, headers=headers)
                answers.append((request, response.status_code, response.json()))

        await asyncio.gather(*(serve() for _ in range(CLIENTS)))
        for request, status, answer in answers:
            if status == 201:
                path = f"/answers/{answer}/quotations"
                placed = await http.get(path, headers={"X-User": request.user})
                assert len(placed.json()) == len(request.quotations)
    return answers


def test_an_answer_is_stored_only_with_quotations_that_stand_in_the_users_letters(
    names: dict[str, Any], connection: Connection, seed: int
) -> None:
    letters = add_letters(connection)
    requests = requests_of(random.Random(seed), letters, 64)
    answers = asyncio.run(post_all(names, requests))
    for request, status, answer in answers:
        assert status == (201 if request.is_true else 422), (request, answer)
    stored = connection.execute(
        "SELECT a.owner, l.owner, p.body, substr(l.body, p.start + 1, p.end - p.start) "
        "FROM placed_quotation p JOIN answer a ON a.id = p.answer JOIN letter l ON l.id = p.letter"
    ).fetchall()
    assert stored
    for owner, of_letter, body, placed in stored:
        assert owner == of_letter
        assert body.strip(",;.") == placed
    assert connection.execute("SELECT count(*) FROM answer").fetchone() == (
        sum(request.is_true for request in requests),
    )


def test_a_letter_that_changes_meanwhile(names: dict[str, Any], connection: Connection) -> None:
    """The trigger waits for the change, and then compares with the new text."""
    letters = add_letters(connection)
    number, (user, body) = next(iter(letters.items()))
    request = Request(user, [{"letter": number, "body": body}], False)

    async def race() -> list[tuple[Request, int, Any]]:
        posting = asyncio.create_task(post_all(names, [request]))
        query = "SELECT FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
        while not posting.done() and not connection.execute(query).fetchall():
            await asyncio.sleep(0.01)
        connection.execute("COMMIT")
        return await posting

    connection.execute("BEGIN")
    connection.execute(
        "UPDATE letter SET body = replace(body, 'did not', 'did') WHERE id = %s", (number,)
    )
    ((_, status, answer),) = asyncio.run(race())
    assert status == 422
    assert "word for word" in answer["detail"]


@pytest.mark.more
def test_agents_quote_only_what_the_database_stores(
    names: dict[str, Any], connection: Connection, db: ts.Database, seed: int
) -> None:
    letters = add_letters(connection)
    requests = requests_of(random.Random(seed), letters, 48)
    checked = runpy.run_path(str(EXAMPLE / "quoting_agent.py"))["checked"]
    servers = {user: tool_server(db.corpus("letters"), user) for user in USERS}

    async def check(request: Request) -> Request:
        async with calling(servers[request.user]) as caller:
            kept = await checked(caller.client, request.quotations)
        return Request(request.user, kept, True)

    async def check_all() -> list[Request]:
        queue, checked_requests = iter(requests), []

        async def work() -> None:
            for request in queue:
                checked_requests.append(await check(request))

        await asyncio.gather(*(work() for _ in range(CLIENTS)))
        return checked_requests

    kept = [request for request in asyncio.run(check_all()) if request.quotations]
    quoted, brought = (sum(len(each.quotations) for each in some) for some in (kept, requests))
    assert quoted == brought - sum(not request.is_true for request in requests)
    assert {status for _, status, _ in asyncio.run(post_all(names, kept))} == {201}
    with pytest.raises(pg.CheckViolation):
        connection.execute("UPDATE quotation SET body = body || ' and more words'")
