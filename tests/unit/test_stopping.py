"""The flag that stops a worker can be set by a signal handler during a wait."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

from textsim_db.sync.stop_flag import Stop

# With threading.Event instead of Stop this script hangs within a second.
INTERRUPTED = """
import random, signal, sys
from textsim_db.sync.stop_flag import Stop

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
