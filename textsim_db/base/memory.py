"""The memory of a process, and the temporary files for what has no room in it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)

_FIRST_BYTES = 1 << 16
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


class MemoryBound:
    """The bytes that arrays may take in memory together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0


class GrowingArray(Generic[Number]):
    """An array that grows at its end. Its file has no name, so it vanishes with the process."""

    def __init__(self, kind: type[Number], bound: MemoryBound) -> None:
        self._kind = np.dtype(kind)
        self._bound = bound
        self._file: Any = None
        self._buffer: npt.NDArray[Number] = np.empty(0, self._kind)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> npt.NDArray[Number]:
        """The array as it is; it must not be used after the next growth."""
        return self._buffer[: self._size]

    def extend(self, values: npt.NDArray[Any]) -> None:
        self.resize(self._size + len(values))
        self._buffer[self._size - len(values) : self._size] = values

    def resize(self, size: int) -> None:
        """Make the array longer, by values that are written later, or shorter."""
        if size > len(self._buffer):
            self._make_room(size)
        self._size = size

    def _make_room(self, size: int) -> None:
        """Move to an array that is half as large again."""
        length = max(size, len(self._buffer) * 3 // 2, _FIRST_BYTES // self._kind.itemsize)
        more = (length - len(self._buffer)) * self._kind.itemsize
        if self._file is None and self._bound.used + more <= self._bound.most:
            # A mapping of its own goes back to the system when the array has moved.
            size = length * self._kind.itemsize
            mapped = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            buffer = np.frombuffer(mapped, self._kind)
            buffer[: self._size] = self.values
            self._bound.used += more
        else:
            buffer = self._in_file(length)
        self._buffer = buffer

    def _in_file(self, length: int) -> npt.NDArray[Number]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="textsim-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            with in_temporary_folder():
                self._file.write(self.values.view(np.uint8).data)
                self._file.flush()
            self._bound.used -= self._buffer.nbytes
        size = length * self._kind.itemsize
        with in_temporary_folder():
            self._file.truncate(size)
            if hasattr(os, "posix_fallocate"):  # macOS has none
                # A full disk is an error here. Later it would be a signal that ends the process.
                os.posix_fallocate(self._file.fileno(), 0, size)
        mapped = mmap.mmap(self._file.fileno(), size)
        return np.frombuffer(mapped, self._kind)
