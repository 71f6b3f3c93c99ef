"""Isolation levels and steps that the tests of interleaved transactions share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import textsim_db as ts
from tests.support.clients import Client, Isolation

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


def add_many_step(client: Client, *documents: tuple[str, str]) -> Callable[[], ts.AddReport]:
    """Return a step that calls add_many, with all its transactions and retries."""
    return lambda: client.db.corpus("c").add_many(documents)


def report_counts(report: ts.AddReport) -> tuple[int, int, int]:
    return report.added, report.replaced, report.unchanged
