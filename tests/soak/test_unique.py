"""Sixteen clients write to a unique corpus at random: brute force finds no twins.

They add, force, judge, replace, expire, forget and remove documents by SQL and by Python, and insert,
update and delete rows of attached tables, in transactions with savepoints, some of which they roll back.
A worker gives word ids, and the corpus is rebuilt meanwhile. After each round all clients pause, and
faults_of() compares the corpus with brute force. In the end no forgotten word is left.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import stored_forms
from tests.support.unique_writers import NUMBER, SETTINGS, Client, faults_of, prepare
from tests.support.workers import running_worker
from textsim_db.errors import CorpusBusy

SECONDS = float(os.environ.get("TEXTSIM_TEST_SECONDS", "1"))
CLIENTS = 16


@pytest.mark.more
@pytest.mark.parametrize("settings", SETTINGS)
def test_sixteen_clients_at_random_leave_no_twins(
    db: ts.Database, connection: Connection, rng: random.Random, seed: int, settings: str
) -> None:
    prepare(db, connection, settings)
    clients = [Client(db, f"{seed} {number}") for number in range(CLIENTS)]
    end = time.monotonic() + SECONDS
    with running_worker(db), ThreadPoolExecutor(CLIENTS + 1) as threads:
        while True:
            rebuild = threads.submit(rebuild_meanwhile, db, rng.randrange(1000))
            list(threads.map(Client.run, clients))
            rebuild.result()
            assert faults_of(db, connection, rng) == [], f"--seed {seed}"
            if time.monotonic() > end:
                break
    for client in clients:
        client.connection.close()
    outcomes = sum((client.outcomes for client in clients), Counter[str]())
    print(outcomes)
    assert [name for name in outcomes if name.startswith("fault: ")] == [], f"--seed {seed}"
    assert outcomes["ended"] > 0
    assert outcomes["UniqueViolation"] > 0
    db.corpus("c").forget(all_removed=True)
    ((number,),) = connection.execute(NUMBER.encode()).fetchall()
    words = connection.execute(f"SELECT word FROM textsim.word_{number}".encode()).fetchall()
    left = {word for form in stored_forms(connection).values() for word in str(form).split()}
    assert {word for (word,) in words} == left
    assert db.corpus("c").check() == []


def rebuild_meanwhile(db: ts.Database, seed: int) -> None:
    with suppress(CorpusBusy):
        db.corpus("c").rebuild(seed=seed)
