"""Coroutines and async iterators return what the synchronous methods return, and leave nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import suppress

import pytest

import textsim_db as ts
from tests.support import aio as support
from tests.support.connections import Connection
from textsim_db import aio
from textsim_db.aio import threads as streams
from textsim_db.aio.threads import Threads

TEXTS = [(f"k{i}", f"one two three four five six seven eight nine {i % 40}") for i in range(120)]


@pytest.fixture
def filled(corpus: ts.Corpus, database_url: str) -> ts.Corpus:
    corpus.add_many(TEXTS)
    return corpus


async def test_coroutines_and_iterators_return_what_the_methods_return(
    filled: ts.Corpus, database_url: str
) -> None:
    async with support.connect(database_url) as db:
        assert list(await db.corpora()) == ["c"]
        corpus = await db.corpus("c")
        assert (corpus.name, corpus.config) == (filled.name, filled.config)
        assert await corpus.count() == len(filled) == 120
        assert [await corpus.contains(key) for key in ("k3", "none")] == [True, False]
        assert await corpus.query(TEXTS[0][1]) == filled.query(TEXTS[0][1])
        assert [pair async for pair in corpus.pairs()] == list(filled.pairs())
        assert [each async for each in corpus.clusters()] == list(filled.clusters())
        assert (await corpus.pairs().to_arrow()).equals(filled.pairs().to_arrow())
        assert [drift async for drift in corpus.drift()] == []
        managed = await db.corpus("c", on_server=True)
        assert (await managed.status()).indexed == 120


async def test_errors_are_those_of_the_methods(database_url: str, filled: ts.Corpus) -> None:
    async with support.connect(database_url) as db:
        with pytest.raises(ts.CorpusNotFound):
            await db.corpus("none")
        corpus = await db.corpus("c")
        with pytest.raises(ts.ConfigurationError, match="threshold is 2"):
            await corpus.query("a", threshold=2)
        with pytest.raises(ts.ConfigurationError, match="threshold is 2"):
            await anext(corpus.pairs(threshold=2))
        with pytest.raises(ts.ConfigurationError, match="not tracked"):
            await anext(corpus.members())
    with pytest.raises(ts.DatabaseUnavailable, match="the database was closed"):
        await corpus.count()
    with pytest.raises(ts.DatabaseUnavailable, match="the database was closed"):
        await anext(corpus.pairs())
    await db.close()


async def test_connect_refuses_what_it_cannot_open(database_url: str) -> None:
    with pytest.raises(ts.ConfigurationError, match="threads is 0; expected 1 to 1000"):
        async with aio.connect(database_url, threads=0):
            pass
    with pytest.raises(ts.DatabaseUnavailable):
        async with aio.connect("postgresql://nobody@127.0.0.1:1/none"):
            pass


@pytest.mark.parametrize("way", ["break", "aclose", "async with", "error"])
async def test_an_iterator_that_is_left_early_gives_its_connection_back(
    filled: ts.Corpus,
    database_url: str,
    connection: Connection,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "MOST_ITEMS", 2)

    async def leave(corpus: aio.Corpus) -> None:
        if way == "break":
            async for _ in corpus.pairs():
                break
        elif way == "aclose":
            pairs = corpus.pairs()
            await anext(pairs)
            assert support.busy(connection) != []
            await pairs.aclose()
            assert support.busy(connection) == []
        elif way == "async with":
            async with corpus.pairs() as pairs:
                await anext(pairs)
            assert support.busy(connection) == []
        else:
            with suppress(ZeroDivisionError):
                async for _ in corpus.pairs():
                    raise ZeroDivisionError

    async with support.connect(database_url) as db:
        await leave(await db.corpus("c"))
        await support.wait_for(lambda: support.busy(connection) == [])
    support.wait_until_disconnected(connection)


async def test_a_database_that_is_closed_ends_its_iterators(
    filled: ts.Corpus, database_url: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_ITEMS", 1)

    async with support.connect(database_url) as db:
        pairs = (await db.corpus("c")).pairs()
        await anext(pairs)
    support.wait_until_disconnected(connection)
    with pytest.raises(ts.DatabaseUnavailable, match="the database was closed"):
        await anext(pairs)


async def test_a_database_that_is_closed_waits_for_its_calls(
    filled: ts.Corpus, database_url: str, connection: Connection
) -> None:
    async with support.connect(database_url) as db:
        corpus = await db.corpus("c")
        with support.locked(connection, "c"):
            call = asyncio.create_task(corpus.query(TEXTS[0][1]))
            await support.blocked(connection)
            closing = asyncio.create_task(db.close())
            await asyncio.sleep(0)
            assert not closing.done()
        await closing
        assert call.done()
        assert await call == filled.query(TEXTS[0][1])


async def test_an_iterator_reads_no_more_than_a_step_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_ITEMS", 3)
    produced: list[int] = []

    def numbers() -> Generator[int, None, None]:
        for number in range(10):
            produced.append(number)
            yield number

    threads = Threads(1)
    stream = streams.Stream(threads, numbers)
    assert produced == []
    read = []
    async for number in stream:
        read.append(number)
        await asyncio.sleep(0)
        assert len(produced) <= len(read) + 2
    assert read == list(range(10))
    await threads.close(lambda: None)


async def test_items_come_before_the_error_that_ends_them() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ts.DatabaseError("lost")

    threads = Threads(1)
    stream = streams.Stream(threads, numbers)
    assert [await anext(stream), await anext(stream)] == [1, 2]
    with pytest.raises(ts.DatabaseError, match="lost"):
        await anext(stream)
    await threads.close(lambda: None)
