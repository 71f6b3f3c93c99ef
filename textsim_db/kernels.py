"""How the project compiles its kernels: one decorator, so that every kernel is compiled alike.

Compiled code is cached beside the source (or in the user's cache folder where that cannot be
written) and the GIL is released while a kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function over NumPy arrays and integers with Numba."""
    return cast(Function, numba.njit(nogil=True, cache=True)(function))

