"""The example of a web application: 16 clients post similar listings, one of each stands."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

import textsim_db as ts
from tests.support.connections import Connection

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "listings"
DOCS = ROOT / "docs" / "how-to"
CLIENTS = 16
KINDS = 6
WORDS = (
    "city bike with seven gears and a basket hardly used to be picked up in the old town on any "
    "evening of this week please bring a lock and a friend"
)


def body(kind: int, client: int) -> str:
    """Return a listing; those of one kind differ in their last word only."""
    return " ".join([f"{word}{kind}" for word in WORDS.split()] + [f"client{client}"])


@pytest.fixture
def listings(connection: Connection) -> Connection:
    """A connection to a database with the schema of the example."""
    connection.execute((EXAMPLE / "schema.sql").read_bytes())
    return connection


@pytest.fixture
def app(listings: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application of the example, on the database of this test."""
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    names = runpy.run_path(str(EXAMPLE / "app.py"))
    yield names["app"]
    names["db"].close()


async def post_all(app: Any) -> list[tuple[int, int, dict[str, Any]]]:
    """Post every listing of every kind, and return kind, status and answer of each."""
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://listings") as http:

        async def post(kind: int, client: int) -> tuple[int, int, dict[str, Any]]:
            listing = {"title": f"Bike {kind}", "body": body(kind, client)}
            response = await http.post("/listings", json=listing)
            return kind, response.status_code, response.json()

        answers = []
        for kind in range(KINDS):
            answers += await asyncio.gather(*(post(kind, client) for client in range(CLIENTS)))
        return answers


def test_of_similar_listings_one_is_created_and_the_others_get_409_with_its_id(
    app: Any, listings: Connection, db: ts.Database
) -> None:
    created: dict[int, list[int]] = defaultdict(list)
    standing: dict[int, set[int]] = defaultdict(set)
    statuses: Counter[int] = Counter()
    for kind, status, answer in asyncio.run(post_all(app)):
        statuses[status] += 1
        if status == 201:
            created[kind].append(answer["id"])
        else:
            standing[kind].add(answer["standing"])
            assert answer["similarity"] >= 0.7
    assert statuses == {201: KINDS, 409: KINDS * (CLIENTS - 1)}
    assert all(standing[kind] == set(created[kind]) for kind in range(KINDS))
    assert listings.execute("SELECT count(*) FROM listing").fetchall() == [(KINDS,)]
    assert db.corpus("listings").check() == []


def test_the_page_shows_the_example() -> None:
    page = (DOCS / "refuse-duplicates-in-a-web-application.md").read_text("utf-8")
    for name in ("schema.sql", "app.py"):
        assert (EXAMPLE / name).read_text("utf-8").rstrip() in page, f"the page differs from {name}"


def insert_through_asyncpg(connection: Connection, text: str) -> IntegrityError:
    """Insert a listing on an engine of asyncpg, and return the error."""
    asyncpg = pytest.importorskip("asyncpg")
    info = connection.info

    async def insert() -> None:
        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=lambda: asyncpg.connect(
                host=info.host,
                port=info.port,
                user=info.user,
                password=info.password or None,
                database=info.dbname,
            ),
        )
        try:
            async with engine.begin() as async_connection:
                statement = sa.text("INSERT INTO listing (title, body) VALUES ('Bike', :body)")
                await async_connection.execute(statement, {"body": text})
        finally:
            await engine.dispose()

    with pytest.raises(IntegrityError) as raised:
        asyncio.run(insert())
    return raised.value


def test_the_handler_understands_the_errors_of_asyncpg(app: Any, listings: Connection) -> None:
    ((key,),) = listings.execute(
        "INSERT INTO listing (title, body) VALUES ('Bike', %s) RETURNING id", [body(0, 0)]
    ).fetchall()
    error = insert_through_asyncpg(listings, body(0, 1))
    answer = app.exception_handlers[IntegrityError](None, error)
    assert (answer.status_code, json.loads(answer.body)["standing"]) == (409, key)


def test_the_handler_passes_other_errors_on(app: Any, listings: Connection) -> None:
    listings.execute("CREATE UNIQUE INDEX one_body ON listing (md5(body))")
    listings.execute("INSERT INTO listing (title, body) VALUES ('Bike', '!')")
    error = insert_through_asyncpg(listings, "!")
    with pytest.raises(IntegrityError) as raised:
        app.exception_handlers[IntegrityError](None, error)
    assert raised.value is error
