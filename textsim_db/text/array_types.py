"""The types of arrays that kernels take."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.text.numba_compiler import inlined_kernel

BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
HashArray = npt.NDArray[np.uint64]
Int16Array = npt.NDArray[np.int16]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt32Array = npt.NDArray[np.uint32]


@inlined_kernel
def longest(offsets: Int64Array) -> int:
    """Return the length of the longest document; offsets: (documents + 1,)."""
    length = 0
    for i in range(len(offsets) - 1):
        length = max(length, offsets[i + 1] - offsets[i])
    return length
