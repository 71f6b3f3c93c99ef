"""How much memory a process may still take."""

from __future__ import annotations

import os
from contextlib import suppress


def free_memory() -> int:
    """Return the bytes of memory that are free, or that files in the cache give back."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, StopIteration), open("/proc/meminfo") as file:
        free = 1024 * int(next(line for line in file if "MemAvailable" in line).split()[1])
    # A container may have less; without a limit the file says "max".
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        free = min(free, int(file.read()))
    return free
