"""Kernels as plain Python, while they are not compiled and a call has little to do.

Numba compiles the kernels for four texts in fifteen seconds of processor time, and Python runs them in a
tenth of a second. The source is the same, and so are the results: kernels wrap unsigned numbers as NumPy
does, and no signed number of theirs leaves 64 bits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

import numpy as np

Kind = TypeVar("Kind", bound=type)

_fixed: set[type] = set()


def fixed_arrays(kind: Kind) -> Kind:
    """Mark a class of arrays that are as large for one text as for a million."""
    _fixed.add(kind)
    return kind


SECONDS_VARIABLE = "TEXTSIM_UNCOMPILED_SECONDS"


class Interpreter:
    """Decides which calls of kernels Python runs, and runs them."""

    elements = 1 << 13
    """The elements of the arrays of a call. The steps of some kernels grow with the square of it."""

    def __init__(self) -> None:
        self.seconds = float(os.environ.get(SECONDS_VARIABLE, 2))
        """The processor time that is left for Python. A process that needs more compiles its kernels."""
        self._threads: set[int] = set()
        """The threads in which Python runs a kernel; it runs the kernels that this kernel calls, too."""

    def takes(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether Python runs a call of a kernel that is not compiled."""
        return get_ident() in self._threads or (
            self.seconds > 0 and _count_elements(arguments) <= self.elements
        )

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the compiled kernel would return to Python."""
        thread = get_ident()
        if thread in self._threads:
            return function(*arguments)
        self._threads.add(thread)
        start = time.thread_time()
        try:
            with np.errstate(over="ignore"):
                return _converted(function(*_converted(arguments, _as_in_kernels)), _as_in_python)
        finally:
            self._threads.remove(thread)
            self.seconds -= time.thread_time() - start


interpreter = Interpreter()


def _count_elements(value: Any) -> int:
    if isinstance(value, tuple):
        return 0 if type(value) in _fixed else sum(map(_count_elements, value))
    return int(value.size) if isinstance(value, np.ndarray) else 0


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a value with its numbers converted, and those in its tuples."""
    if isinstance(value, tuple):
        values = (_converted(each, convert) for each in value)
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return convert(value)


def _as_in_kernels(value: Any) -> Any:
    """Return an integer with 64 bits, which wraps; Numba too takes a signed one if the value fits."""
    if type(value) is not int:
        return value
    return np.int64(value) if value < 1 << 63 else np.uint64(value)


def _as_in_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
