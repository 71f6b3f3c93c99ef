"""Lets a command that loads documents keep the memory that it frees."""

from __future__ import annotations

import ctypes
import sys

# The options of mallopt(3), and their values.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_OPTIONS = {_M_ARENA_MAX: 1, _M_MMAP_THRESHOLD: 2**30, _M_TRIM_THRESHOLD: 2**31 - 1}


def keep_freed_memory() -> bool:
    """Keep freed memory for the next batch, whatever its thread; return whether the system can do that.

    The C library of Linux gives each thread memory of its own, and returns it to the system after each
    batch. The next batch then gets fresh pages, which the system clears first. That takes a fifth of the
    client's time. The setting holds for the whole process, so only commands change it.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return mallopt is not None and all(mallopt(*option) == 1 for option in _OPTIONS.items())
