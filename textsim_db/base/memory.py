"""The memory of a process, and the folder of temporary files for what has no room in it."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

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


def free_memory() -> int:
    """Return the bytes of memory that are free, or that files in the cache give back."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, StopIteration), open("/proc/meminfo") as file:
        free = 1024 * int(next(line for line in file if "MemAvailable" in line).split()[1])
    # A container may have less; without a limit the file says "max".
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        free = min(free, int(file.read()))
    return free


@contextmanager
def in_temporary_folder() -> Iterator[None]:
    """Name the folder in the errors of temporary files, which have no name, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = tempfile.gettempdir()
            error.add_note("it has temporary files; TMPDIR names another folder")
        raise
