"""Every public method has its coroutine or async iterator, with the same arguments and docstring."""

from __future__ import annotations

import inspect
from typing import Any, assert_type

import pytest

import textsim_db as ts
from textsim_db import aio
from textsim_db.results import AddReport, Drift, Match, Pair

RENAMED = {"count": "__len__", "contains": "__contains__"}
"""The methods that stand for operators."""
ITERATORS = {"Generator", "Results"}

Method = Any


def public(cls: type) -> dict[str, Method]:
    """Return the public methods and properties of a class, by name."""
    return {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}


def pairs_of(asynchronous: type, synchronous: type, renamed: dict[str, str]) -> list[Any]:
    return [
        (name, made, getattr(synchronous, renamed.get(name, name)))
        for name, made in public(asynchronous).items()
    ]


CLASSES: list[tuple[type, type, dict[str, str]]] = [
    (aio.Database, ts.Database, {}),
    (aio.Corpus, ts.Corpus, RENAMED),
    (aio.Worker, ts.Worker, {}),
]
METHODS = [pair for classes in CLASSES for pair in pairs_of(*classes)]


@pytest.mark.parametrize(("asynchronous", "synchronous", "renamed"), CLASSES)
def test_no_method_is_missing_or_extra(asynchronous: type, synchronous: type, renamed: Any) -> None:
    assert public(asynchronous).keys() == public(synchronous).keys() | renamed.keys()


@pytest.mark.parametrize(("name", "made", "method"), METHODS)
def test_a_method_has_the_arguments_of_its_source(name: str, made: Method, method: Method) -> None:
    """A method that yields has an iterator, and every other method a coroutine."""
    if isinstance(method, property):
        assert isinstance(made, property)
        return
    arguments = inspect.signature(method).parameters
    assert list(inspect.signature(made).parameters.values()) == list(arguments.values())
    assert made.__doc__ is not None
    if (name, method) == ("stop", ts.Worker.stop):
        return
    returned = inspect.signature(method).return_annotation.partition("[")[0]
    assert inspect.iscoroutinefunction(made) == (returned not in ITERATORS)


async def _mypy_checks_these_types(db: aio.Database) -> None:
    """The types that mypy and an editor see; `make check` compares them, and nothing runs this."""
    corpus = await db.create_corpus("c", exist_ok=True, threshold=0.7, scoped=True)
    assert_type(corpus, aio.Corpus)
    assert_type(await db.corpus("c"), aio.Corpus)
    assert_type(await db.worker(poll=1), aio.Worker)
    assert_type(await corpus.query("text", max_results=3), list[Match])
    assert_type(await corpus.query_many(["text"]), list[list[Match]])
    assert_type(await corpus.add("key", "text", force=True), AddReport)
    assert_type(await corpus.rebuild(threshold=0.8), bool)
    assert_type(await corpus.count(), int)
    assert_type(corpus.pairs(0.8), aio.Results[Pair[str]])
    assert_type(corpus.drift(), aio.Results[Drift])
    async for pair in corpus.pairs():
        assert_type(pair, Pair[str])
    await corpus.add("key", text=1)  # type: ignore[arg-type]
    await corpus.add("key", "text", forced=True)  # type: ignore[call-arg]
    await corpus.rebuild(treshold=0.8)  # type: ignore[call-arg]
