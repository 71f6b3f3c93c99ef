"""Commands that load documents keep the memory that they free."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALLOCATE = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from textsim_db.cli.memory import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()

def fill(_):
    arrays = [np.ones(10_000, np.uint64) for _ in range(300)]
    return len(arrays)

with ThreadPoolExecutor(1) as pool:
    list(pool.map(fill, range(3)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    list(pool.map(fill, range(10)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def fresh_pages(way: str) -> int:
    """Return the pages that a thread gets from the system while it fills the same arrays again."""
    command = [sys.executable, "-c", ALLOCATE, way]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt() is Linux's")
def test_a_thread_gets_its_pages_again() -> None:
    assert fresh_pages("kept") < fresh_pages("returned") / 2
