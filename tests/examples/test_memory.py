"""The example of memories: 16 clients bring the same things, and each tenant keeps each thing once."""

from __future__ import annotations

import asyncio
import json
import random
import runpy
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, tables_of, value

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "memory"
PAGE = ROOT / "docs" / "how-to" / "remember-each-thing-once.md"
CLIENTS = 16
TENANTS = ("anna", "bert")
THINGS = [
    "Prefers a window seat near the front on long flights",
    "Moved from Leipzig to a flat in Hamburg last summer",
    "Cannot eat peanuts, hazelnuts or anything made of soy",
    "Wants the monthly report as a table, never as a chart",
    "Works on Mondays and Thursdays from the office in Kiel",
]
ENDINGS = ("", "!", ".", " please", ", as said")


class Request(NamedTuple):
    """A text that a tenant brings."""

    tenant: str
    body: str


def racing_requests(rng: random.Random) -> list[Request]:
    """Return requests in which all clients bring twins for a tenant at nearly the same moment."""
    slots = [(tenant, thing) for tenant in TENANTS for thing in THINGS]
    rng.shuffle(slots)
    return [
        Request(tenant, thing + rng.choice(ENDINGS))
        for tenant, thing in slots
        for _ in range(CLIENTS)
    ]


@pytest.fixture
def memories(connection: Connection) -> Connection:
    """A connection to a database with the schema of the example."""
    connection.execute((EXAMPLE / "schema.sql").read_bytes())
    return connection


@pytest.fixture
def names(
    memories: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The names of the application of the example, on the database of this test."""
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    names = runpy.run_path(str(EXAMPLE / "main.py"))
    yield names
    names["db"].close()


class Client:
    """A client of the application, over HTTP without a network."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def post(self, tenant: str, body: str, **more: Any) -> tuple[int, dict[str, Any]]:
        headers = {"X-Tenant": tenant, "Content-Type": "application/json"}
        content = json.dumps({"body": body, **more})
        response = await self._http.post("/memories", content=content, headers=headers)
        return response.status_code, response.json()

    async def find(self, tenant: str, like: str) -> list[int]:
        response = await self._http.get(
            "/memories", params={"like": like}, headers={"X-Tenant": tenant}
        )
        assert response.status_code == 200
        return [memory["id"] for memory in response.json()]

    async def delete(self, tenant: str, memory_id: int) -> int:
        response = await self._http.delete(f"/memories/{memory_id}", headers={"X-Tenant": tenant})
        return response.status_code


@asynccontextmanager
async def client_of(names: dict[str, Any]) -> AsyncIterator[Client]:
    """Lend a client, and close the connections of the application in the end."""
    transport = httpx2.ASGITransport(app=names["app"])
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://memories") as http:
            yield Client(http)
    finally:
        await names["engine"].dispose()


async def post_all(
    names: dict[str, Any], requests: Sequence[Request]
) -> list[tuple[Request, int, dict[str, Any]]]:
    """Let 16 clients post all requests in order; return each with its status and its answer."""
    queue = iter(requests)
    answers = []

    async def serve(client: Client) -> None:
        for request in queue:
            answers.append((request, *await client.post(*request)))

    async with client_of(names) as client:
        await asyncio.gather(*(serve(client) for _ in range(CLIENTS)))
    return answers


def assert_each_thing_is_kept_once(
    memories: Connection, db: ts.Database, requests: Sequence[Request]
) -> None:
    """Fail unless each tenant has each of its things once, counted as often as it came."""
    rows = memories.execute("SELECT tenant, body, seen FROM memory").fetchall()
    counted: Counter[tuple[str, str]] = Counter()
    for tenant, body, seen in rows:
        (thing,) = (thing for thing in THINGS if body.startswith(thing))
        counted[tenant, thing] += seen
    assert len(rows) == len(counted)
    brought = Counter(
        (tenant, thing) for tenant, body in requests for thing in THINGS if body.startswith(thing)
    )
    assert counted == brought
    assert db.corpus("memory").check() == []


@pytest.mark.more
def test_each_tenant_keeps_each_thing_once_and_counts_every_request(
    names: dict[str, Any], memories: Connection, db: ts.Database, seed: int
) -> None:
    requests = racing_requests(random.Random(seed))
    answers = asyncio.run(post_all(names, requests))
    statuses = Counter(status for _, status, _ in answers)
    slots = len(TENANTS) * len(THINGS)
    assert statuses == {201: slots, 200: len(requests) - slots}
    assert_each_thing_is_kept_once(memories, db, requests)
    # Each request got a memory of its own tenant, and each count once.
    owners = dict(memories.execute("SELECT id, tenant FROM memory").fetchall())
    assert all(owners[answer["id"]] == request.tenant for request, _, answer in answers)
    assert len({(answer["id"], answer["seen"]) for _, _, answer in answers}) == len(requests)


def let_pass(connection: Connection, days: int) -> None:
    """Set all times back, because the server's clock cannot be moved."""
    documents, _ = tables_of(connection, "memory")
    back = f"make_interval(days => {days})"
    connection.execute(f"UPDATE {documents} SET expires_at = expires_at - {back}".encode())
    connection.execute(f"UPDATE memory SET last_seen = last_seen - {back}".encode())


def test_an_expired_memory_may_be_kept_again_and_a_seen_memory_lives_longer(
    names: dict[str, Any], memories: Connection, db: ts.Database
) -> None:
    seen_again, forgotten = THINGS[:2]

    async def live() -> None:
        async with client_of(names) as client:
            for thing in (seen_again, forgotten):
                assert (await client.post("anna", thing))[0] == 201
            let_pass(memories, 20)
            assert (await client.post("anna", seen_again))[0] == 200
            let_pass(memories, 20)
            assert await client.find("anna", seen_again) == [1]
            assert await client.find("anna", forgotten) == []
            assert (await client.post("anna", seen_again))[1]["seen"] == 3
            status, memory = await client.post("anna", forgotten)
            assert (status, memory["seen"]) == (201, 1)

    asyncio.run(live())
    assert value(memories, "SELECT count(*) FROM memory") == 3
    assert db.corpus("memory").check() == []


def test_a_forced_memory_stands_beside_the_memory_that_it_matches(
    names: dict[str, Any], db: ts.Database, memories: Connection
) -> None:
    early, late = (f"Works from the office in Kiel on {day}" for day in ("Tuesday", "Thursday"))

    async def force() -> None:
        async with client_of(names) as client:
            answers = [
                await client.post("anna", early),
                await client.post("anna", late),
                await client.post("anna", late, force=True),
                await client.post("anna", late),
                await client.post("anna", early),
            ]
            first, second = answers[0][1]["id"], answers[2][1]["id"]
            assert [(status, m["id"], m["seen"]) for status, m in answers] == [
                (201, first, 1),
                (200, first, 2),
                (201, second, 1),
                (200, second, 2),
                (200, first, 3),
            ]
            assert await client.find("anna", late) == [second, first]
            let_pass(memories, 20)
            assert (await client.post("anna", early))[1]["seen"] == 4
            let_pass(memories, 20)
            assert await client.find("anna", late) == [first]
            assert (await client.post("anna", late))[1]["id"] == first

    asyncio.run(force())
    assert db.corpus("memory").check() == []


def test_a_number_or_a_negation_makes_another_memory(memories: Connection) -> None:
    for text in ("The train to the office leaves at 8:15", "Wants the report as a chart"):
        for other in (text, text.replace("8:15", "9:45").replace("Wants", "Never wants")):
            assert value(memories, "SELECT seen FROM remember('anna', %s)", [other]) == 1


def test_a_tenant_finds_and_deletes_its_own_memories_only(names: dict[str, Any]) -> None:
    async def ask() -> None:
        async with client_of(names) as client:
            _, memory = await client.post("anna", THINGS[0])
            assert await client.find("bert", THINGS[0]) == []
            assert await client.delete("bert", memory["id"]) == 404
            assert await client.find("anna", THINGS[0] + "!") == [memory["id"]]
            assert await client.delete("anna", memory["id"]) == 204
            assert await client.find("anna", THINGS[0]) == []
            assert (await client.post("anna", THINGS[0]))[0] == 201

    asyncio.run(ask())


def test_a_value_that_cannot_be_stored_is_refused(names: dict[str, Any]) -> None:
    async def ask() -> None:
        async with client_of(names) as client:
            for tenant, body in [("anna", "a\0b"), ("anna", "a\ud800b"), ("a" * 300, "a")]:
                assert (await client.post(tenant, body))[0] == 422
            assert await client.delete("anna", 10**20) == 422
            assert (await client.post("anna", THINGS[0]))[0] == 201

    asyncio.run(ask())


def test_another_error_of_a_unique_constraint_is_raised(memories: Connection) -> None:
    memories.execute("CREATE UNIQUE INDEX one_body ON memory (md5(body))")
    memories.execute("SELECT remember('anna', '!')")
    with pytest.raises(psycopg.errors.UniqueViolation, match="one_body"):
        memories.execute("SELECT remember('bert', '!')")


def test_a_document_without_its_row_is_named(memories: Connection) -> None:
    memories.execute("SELECT remember('anna', %s)", [THINGS[0]])
    memories.execute("DELETE FROM memory")
    with pytest.raises(psycopg.errors.RaiseException, match=r"document 1 .* has no row"):
        memories.execute("SELECT remember('anna', %s)", [THINGS[0]])


def test_the_page_shows_the_schema_of_the_example() -> None:
    assert (EXAMPLE / "schema.sql").read_text("utf-8").rstrip() in PAGE.read_text("utf-8")
