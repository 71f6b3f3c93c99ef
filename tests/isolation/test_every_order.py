"""Two and three transactions in every order of their steps: the end is that of a serial order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Client, Isolation, open_clients
from tests.support.sources import stored_forms
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.store import Store
from textsim_db.write import bulk_load, write_batch
from textsim_db.write.prepared_batch import prepare

pytestmark = pytest.mark.one_server

RC, RR = Isolation.READ_COMMITTED, Isolation.REPEATABLE_READ
# What another transaction may make of one: the client is expected to repeat it.
CONFLICTS = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.UniqueViolation,
)


class Write(NamedTuple):
    """A document added, or removed where the text is None."""

    key: str
    text: str | None


Contents = dict[str, str]
Transaction = list[Write]

START = {"k": "as it was", "z": "not touched"}
SCENARIOS: dict[str, tuple[Contents, list[Transaction]]] = {
    "two add the same key": ({}, [[Write("k", "one new")], [Write("k", "two new")]]),
    "two add the same text": ({}, [[Write("k", "same new")], [Write("k", "same new")]]),
    "two replace the same key": (START, [[Write("k", "one more")], [Write("k", "two more")]]),
    "replace and leave": (START, [[Write("k", "one more")], [Write("k", "as it was")]]),
    "add and remove": ({}, [[Write("k", "one new")], [Write("k", None)]]),
    "replace and remove": (START, [[Write("k", "one more")], [Write("k", None)]]),
    "two remove": (START, [[Write("k", None)], [Write("k", None)]]),
    "two keys in the same order": (
        {},
        [[Write("a", "one a"), Write("b", "one b")], [Write("a", "two a"), Write("b", "two b")]],
    ),
    "two keys in turn": (
        {"a": "old a", "b": "old b"},
        [[Write("a", "one a"), Write("b", "one b")], [Write("b", "two b"), Write("a", "two a")]],
    ),
    "three replace, add and remove": (
        START,
        [[Write("k", "one more")], [Write("k", None)], [Write("k", "three more")]],
    ),
    "three add": ({}, [[Write("k", "one")], [Write("k", "two")], [Write("k", "three")]]),
}
KINDS: dict[str, list[tuple[str, Isolation]]] = {
    "sql": [("sql", RC)] * 3,
    "sql repeatable read": [("sql", RR)] * 3,
    "python": [("python", RC)] * 3,
    "sql and python": [("sql", RC), ("python", RC), ("sql", RR)],
}


class Writer:
    """A client that writes documents in one transaction, by SQL or as add_many does."""

    def __init__(self, client: Client, kind: str, transaction: Transaction) -> None:
        self.client = client
        self._kind = kind
        self.transaction = transaction
        self.left: list[Write | None] = [*transaction, None]
        self.committed = False

    def next(self) -> None:
        """Begin the next step; None is the commit."""
        write = self.left.pop(0)
        if write is None:
            self.client.begin(self.client.connection.commit)
        else:
            self.client.begin(lambda: self._write(write))
        self.collect()

    def collect(self) -> None:
        """Take note of how a step ended, if it has."""
        if not self.client.has_begun() or self.client.is_waiting():
            return
        try:
            self.client.end()
        except CONFLICTS:
            self.left.clear()
            self.client.rollback()
        else:
            self.committed = not self.left

    def _write(self, write: Write) -> Any:
        connection = self.client.connection
        if self._kind == "sql":
            if write.text is None:
                return connection.execute("SELECT textsim.remove('c', %s)", [write.key])
            return connection.execute("SELECT textsim.add('c', %s, %s)", [write.key, write.text])
        engine = self.client.db.engine
        corpus = stored_corpus.load(engine, "c")
        cursor = connection.cursor(binary=True)
        if write.text is None:
            return write_batch.remove(cursor, corpus, [write.key])
        batch = prepare([(write.key, write.text)], corpus.config)
        batch = bulk_load.with_word_ids(batch, Store(engine, Dictionary(engine), corpus))
        return write_batch.write(cursor, corpus, batch)


def orders(steps: list[int]) -> Iterator[list[int]]:
    """Yield every order in which so many steps of each can be taken."""
    if not any(steps):
        yield []
    for i, left in enumerate(steps):
        if left:
            for rest in orders([n - (j == i) for j, n in enumerate(steps)]):
                yield [i, *rest]


def serial(start: Contents, transactions: list[Transaction]) -> list[Contents]:
    """Return what the contents are after the transactions in each of their orders."""
    ends = []
    for order in permutations(transactions):
        contents = dict(start)
        for write in (write for transaction in order for write in transaction):
            if write.text is None:
                contents.pop(write.key, None)
            else:
                contents[write.key] = write.text
        ends.append(contents)
    return ends


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if " and " in kind else pytest.mark.long) for kind in KINDS],
)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long if n.startswith("three") else ()) for n in SCENARIOS],
)
def test_every_order(db: ts.Database, kind: str, name: str) -> None:
    start, transactions = SCENARIOS[name]
    corpus = db.create_corpus("c", "word:1", num_hashes=16)
    waited = conflicts = 0
    options = "-c deadlock_timeout=10ms"
    with open_clients(db.url) as make, psycopg.connect(db.url, autocommit=True) as look:
        clients_of_kind = [
            make(f"{number} {how}", isolation, options)
            for number, (how, isolation) in enumerate(KINDS[kind][: len(transactions)])
        ]
        for order in orders([len(transaction) + 1 for transaction in transactions]):
            corpus.remove(stored_forms(look))
            corpus.add_many(start.items())
            writers = [
                Writer(client, how, transaction)
                for client, (how, _), transaction in zip(
                    clients_of_kind, KINDS[kind], transactions, strict=False
                )
            ]
            waiting = list(order)
            while waiting:
                # Who waits is passed over until the others have come so far that it need not.
                free = [i for i in waiting if not writers[i].client.is_waiting()]
                if not free:
                    time.sleep(0.001)  # until the server finds the deadlock
                    continue
                number = free[0]
                waiting.remove(number)
                for writer in writers:
                    writer.collect()
                if writers[number].left:
                    writers[number].next()
                    waited += writers[number].client.has_begun()
            for writer in writers:
                writer.collect()
            committed = [writer.transaction for writer in writers if writer.committed]
            conflicts += len(writers) - len(committed)
            assert committed, order
            assert stored_forms(look) in serial(start, committed), order
            assert corpus.check() == [], order
            db.worker().run(until_idle=True)
            assert stored_forms(look) in serial(start, committed), order
            assert corpus.check() == [], order
    print(f"{waited} steps waited, {conflicts} transactions were given up")
    # Who removes a document sees none that is only being added, and who leaves one as it is need
    # not wait for who is changing it: that one comes after.
    assert waited or name in ("add and remove", "replace and leave")
