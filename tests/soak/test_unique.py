"""Sixteen clients write to a unique corpus at random: brute force finds no twins.

They add, replace and remove documents by SQL and by Python, and insert, update and delete rows of
attached tables, in transactions with savepoints, some of which they roll back. A worker gives word ids
meanwhile. After each round all clients pause, and faults_of() compares the corpus with brute force.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.unique_writers import Client, faults_of, prepare
from tests.support.workers import running_worker

pytestmark = pytest.mark.more

SECONDS = float(os.environ.get("TEXTSIM_TEST_SECONDS", "1"))
CLIENTS = 16


def test_sixteen_clients_at_random_leave_no_twins(
    db: ts.Database, connection: Connection, rng: random.Random, seed: int
) -> None:
    prepare(db, connection)
    clients = [Client(db, f"{seed} {number}") for number in range(CLIENTS)]
    end = time.monotonic() + SECONDS
    with running_worker(db), ThreadPoolExecutor(CLIENTS) as threads:
        while True:
            list(threads.map(Client.run, clients))
            assert faults_of(connection, rng) == [], f"--seed {seed}"
            if time.monotonic() > end:
                break
    for client in clients:
        client.connection.close()
    outcomes = sum((client.outcomes for client in clients), Counter[str]())
    print(outcomes)
    assert [name for name in outcomes if name.startswith("fault: ")] == [], f"--seed {seed}"
    assert outcomes["ended"] > 0
    assert outcomes["UniqueViolation"] > 0
    assert db.corpus("c").check() == []
