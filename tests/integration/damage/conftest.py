"""A database with corpora and attached tables, a copy of which each test damages."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import textsim_db as ts
from tests.support.damage import FOX
from tests.support.servers import Server, database_of


@pytest.fixture(scope="package")
def intact_url(server: Server) -> Iterator[str]:
    """A database with two corpora and two attached tables, which tests clone."""
    with server.clone() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE post (id integer PRIMARY KEY, body text)")
            connection.execute("CREATE TABLE offer (id integer PRIMARY KEY, body text)")
        with ts.connect(url) as db:
            news = db.create_corpus("news", stop_words=["the"], passages=8)
            news.add("a", f"{FOX} zero")
            news.attach("post", "id", "body")
            unique = db.create_corpus("unique", threshold=0.6, recall=1, is_unique=True, passages=4)
            unique.attach("offer", "id", "body")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "INSERT INTO post SELECT i, %s || i * i FROM generate_series(1, 9) i",
                    [f"{FOX} "],
                )
                connection.execute(
                    "INSERT INTO offer SELECT i, 'offer ' || i || ' is ' || md5(i::text) || ' and '"
                    " || md5((-i)::text) FROM generate_series(1, 9) i"
                )
            db.worker().run(until_idle=True)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("INSERT INTO offer VALUES (10, 'a late offer of a blue chair')")
        yield url


@pytest.fixture
def database_url(server: Server, intact_url: str) -> Iterator[str]:
    with server.clone(database_of(intact_url)) as url:
        yield url
