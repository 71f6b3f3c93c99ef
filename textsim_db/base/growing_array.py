"""Arrays that grow, in memory up to a bound, and then in a file."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from textsim_db.base.memory import in_temporary_folder

Number = TypeVar("Number", bound=np.generic)

_FIRST_BYTES = 1 << 16


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
