"""Arrays that end at the end of readable memory: a read behind them ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Guarded:
    """Memory whose last page is protected, for kernels that read without bounds checks."""

    def __init__(self, size: int) -> None:
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, size + mmap.PAGESIZE)
        self._all = np.frombuffer(self._map, np.uint8)[:size]
        libc = ctypes.CDLL(None, use_errno=True)
        end = ctypes.c_void_p(self._all.ctypes.data + size)
        if libc.mprotect(end, ctypes.c_size_t(mmap.PAGESIZE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def copy(self, data: Bytes, padding: bytes) -> Bytes:
        """Return a copy of the bytes; behind it only the padding can be read."""
        begin = len(self._all) - len(data) - len(padding)
        target = self._all[begin : begin + len(data)]
        target[:] = data
        self._all[begin + len(data) :] = np.frombuffer(padding, np.uint8)
        return target
