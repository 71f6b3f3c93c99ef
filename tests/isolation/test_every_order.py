"""Transactions run in every order of their steps; the result equals that of some serial order."""

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
from textsim_db.db.store import KnownWords, Store
from textsim_db.write import load_batches, write_batch
from textsim_db.write.prepare_batches import prepare
from textsim_db.write.remove_documents import remove_within

RC, RR = Isolation.READ_COMMITTED, Isolation.REPEATABLE_READ
# Errors that another transaction may cause: the client must repeat the transaction.
CONFLICTS = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.UniqueViolation,
)


class Write(NamedTuple):
    """A document to add, or to remove if the text is None."""

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
        self.remaining_steps: list[Write | None] = [*transaction, None]
        self.committed = False

    def begin_next(self) -> None:
        """Begin the next step; the step None commits."""
        write = self.remaining_steps.pop(0)
        if write is None:
            self.client.begin(self.client.connection.commit)
        else:
            self.client.begin(lambda: self._write(write))
        self.collect()

    def collect(self) -> None:
        """If the step has ended, note its result."""
        if not self.client.has_begun() or self.client.is_waiting():
            return
        try:
            self.client.end()
        except CONFLICTS:
            self.remaining_steps.clear()
            self.client.rollback()
        else:
            self.committed = not self.remaining_steps

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
            return remove_within(cursor, corpus, [write.key])
        batch = prepare([(write.key, write.text)], corpus.config)
        store = Store(engine, KnownWords(engine), corpus)
        return write_batch.write(cursor, store, load_batches.with_word_ids(batch, store))


def orders(steps: list[int]) -> Iterator[list[int]]:
    """Yield every order of the steps; steps: the number of steps of each transaction."""
    if not any(steps):
        yield []
    for i, remaining in enumerate(steps):
        if remaining:
            for later_steps in orders([n - (j == i) for j, n in enumerate(steps)]):
                yield [i, *later_steps]


def serial_results(start: Contents, transactions: list[Transaction]) -> list[Contents]:
    """Return the contents after the transactions, for each order of the transactions."""
    results = []
    for order in permutations(transactions):
        contents = dict(start)
        for write in (write for transaction in order for write in transaction):
            if write.text is None:
                contents.pop(write.key, None)
            else:
                contents[write.key] = write.text
        results.append(contents)
    return results


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if " and " in kind else pytest.mark.long) for kind in KINDS],
)
@pytest.mark.parametrize(
    "name",
    [
        *list(SCENARIOS)[:7],
        *(pytest.param(name, marks=pytest.mark.more) for name in list(SCENARIOS)[7:9]),
        *(pytest.param(name, marks=pytest.mark.long) for name in list(SCENARIOS)[9:]),
    ],
)
def test_every_order_of_steps_ends_like_a_serial_order(
    db: ts.Database, kind: str, name: str
) -> None:
    start, transactions = SCENARIOS[name]
    corpus = db.create_corpus("c", shingle="word:1", num_hashes=16)
    waited = conflicts = 0
    options = "-c deadlock_timeout=10ms"
    with open_clients(db.url) as make_client, psycopg.connect(db.url, autocommit=True) as observer:
        clients_of_kind = [
            make_client(f"{number} {how}", isolation, options)
            for number, (how, isolation) in enumerate(KINDS[kind][: len(transactions)])
        ]
        for order in orders([len(transaction) + 1 for transaction in transactions]):
            corpus.remove(stored_forms(observer))
            corpus.add_many(start.items())
            writers = [
                Writer(client, how, transaction)
                for client, (how, _), transaction in zip(
                    clients_of_kind, KINDS[kind], transactions, strict=False
                )
            ]
            pending_steps = list(order)
            while pending_steps:
                # A waiting client is skipped until steps of the other clients let it go on.
                free = [i for i in pending_steps if not writers[i].client.is_waiting()]
                if not free:
                    time.sleep(0.001)  # until the server finds the deadlock
                    continue
                number = free[0]
                pending_steps.remove(number)
                for writer in writers:
                    writer.collect()
                if writers[number].remaining_steps:
                    writers[number].begin_next()
                    waited += writers[number].client.has_begun()
            for writer in writers:
                writer.collect()
            committed = [writer.transaction for writer in writers if writer.committed]
            conflicts += len(writers) - len(committed)
            assert committed, order
            assert stored_forms(observer) in serial_results(start, committed), order
            assert corpus.check() == [], order
            db.worker().run(until_idle=True)
            assert stored_forms(observer) in serial_results(start, committed), order
            assert corpus.check() == [], order
    print(f"{waited} steps waited, {conflicts} transactions were given up")
    # A removal does not see a document that is not committed yet. A write of an unchanged text need not
    # wait for the writer that changes the document: that writer comes second in the serial order.
    assert waited or name in ("add and remove", "replace and leave")
