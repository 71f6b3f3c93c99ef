"""Threads that run a stage ahead in order, and the flag and the pauses of a worker."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from textsim_db.base.run_ahead import ahead
from textsim_db.sync.worker_state import Stop, WorkerSettings

SECONDS = 60
"""A thread that waits this long for another one fails the test."""


def test_two_threads_work_at_once_and_results_keep_their_order() -> None:
    begun = [threading.Event() for _ in range(7)]

    def work(number: int) -> int:
        begun[number].set()
        if number % 2 == 0 and number + 1 < len(begun):
            assert begun[number + 1].wait(SECONDS)  # so an even item ends after the next one began
        return number

    assert list(ahead(range(7), work, 2, 2)) == list(range(7))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_items_are_read_no_further_ahead_than_allowed(most: int) -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            read.append(number)
            yield number

    with closing(ahead(items(), str, most, 2)) as results:
        for number, result in enumerate(results):
            assert result == str(number)
            assert len(read) == min(number + most + 1, 10)


def test_results_before_an_error_of_the_items_come_first() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise LookupError("no sixth item")

    results = ahead(items(), str, 3, 2)
    assert [next(results) for _ in range(5)] == list("01234")
    with pytest.raises(LookupError, match="no sixth item"):
        next(results)


# With threading.Event instead of Stop this script hangs within a second.
INTERRUPTED = """
import random, signal, sys
from textsim_db.sync.worker_state import Stop

chance = random.Random(int(sys.argv[1]))
for _ in range(5000):
    stop = Stop()
    signal.signal(signal.SIGALRM, lambda *_: stop.set())
    signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 3e-4))
    while not stop.is_set():
        stop.wait(1e-5)
"""


def test_a_signal_handler_can_set_the_flag_during_a_wait() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    subprocess.run([sys.executable, "-c", INTERRUPTED, str(seed)], check=True, timeout=60)


def test_the_flag_wakes_all_waiting_threads() -> None:
    stop = Stop()
    assert not stop.is_set()
    stop.wait(0.001)
    assert not stop.is_set()
    threads = [threading.Thread(target=stop.wait, args=[60]) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join(50)
        assert not thread.is_alive()
    stop.wait(60)


def test_the_pauses_of_a_worker_grow_up_to_poll() -> None:
    pauses = [WorkerSettings(poll=0.2).pause(idle) for idle in (0, 0.2, 1, 1.5, 60, math.inf)]
    assert pauses == [0.025, 0.025, 0.1, 0.15, 0.2, 0.2]
    assert WorkerSettings(poll=0.01).pause(0) == 0.01
