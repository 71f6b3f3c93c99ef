"""How the project compiles its kernels: one decorator, so that every kernel is compiled alike.

Compiled code is cached beside the source (or in the user's cache folder where that cannot be
written) and the GIL is released while a kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function over NumPy arrays and integers with Numba."""
    return cast(Function, numba.njit(nogil=True, cache=True)(function))


def _load64(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        wide = builder.bitcast(pointer, ir.IntType(64).as_pointer())
        return builder.load(wide, align=1)

    return types.uint64(data, at), generate


load64 = cast(Callable[[npt.NDArray[np.uint8], int], np.uint64], intrinsic(_load64))
"""Return the eight bytes of data from at on as one little-endian number, in a kernel.

One machine instruction, where eight indexed loads are forty; data must have the eight bytes, for
nothing checks.
"""
