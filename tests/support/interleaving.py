"""Isolation levels and steps that the tests of interleaved transactions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

import textsim_db as ts
from tests.support.clients import Client, Clients, Isolation
from tests.support.connections import Connection
from tests.support.sources import index_all_pending, stored_forms
from textsim_db.results import AddReport

RC, RR = Isolation.READ_COMMITTED, Isolation.REPEATABLE_READ
LEVELS = pytest.mark.parametrize(
    "level",
    [
        pytest.param(RC, id="read committed"),
        pytest.param(RR, id="repeatable read", marks=pytest.mark.long),
    ],
)
ADD = "SELECT textsim.add('c', %s, %s)"
REMOVE = "SELECT textsim.remove('c', %s)"


class Scene(NamedTuple):
    """The corpus "c", and clients that take steps in it."""

    db: ts.Database
    corpus: ts.Corpus
    connection: Connection
    """Looks on, in transactions of single statements."""
    client: Clients
    """Makes a client with a name."""

    def forms(self) -> dict[str, str | None]:
        """Return the normal form of each document, by key."""
        return stored_forms(self.connection)

    def settle(self, corpus: ts.Corpus | None = None) -> None:
        """Index all pending changes; assert that the corpus is complete and sound."""
        index_all_pending(self.db, corpus or self.corpus)


def add_many_step(client: Client, *documents: tuple[str, str]) -> Callable[[], AddReport]:
    """Return a step that calls add_many, with all its transactions and retries."""
    return lambda: client.db.corpus("c").add_many(documents)


def report_counts(report: AddReport) -> tuple[int, int, int]:
    return report.added, report.replaced, report.unchanged
