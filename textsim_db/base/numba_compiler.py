"""Two decorators that compile all kernels of the project in the same way, and the types of their arrays.

A kernel is compiled at its first call that has more to do than `interpreter` takes.

Compiled code is cached beside the source, or in the user's cache folder if the source's folder is not
writable. NUMBA_CACHE_DIR names another folder. The GIL is released while a kernel runs.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import logging
import os
import pickle
import platform
import re
import signal
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.extending import _Intrinsic

from textsim_db.base.interpreter import interpreter

log = logging.getLogger(__name__)


_NUMBERS = re.compile(r"None|(tuple\[)?((int|float|bool|np\.u?int\d+)(, |\]|$))+")

# An index names the classes of a kernel's arguments. An older version may have had other classes.
_OUTDATED = (AttributeError, EOFError, ImportError, IndexError, pickle.UnpicklingError)

_FunctionCache: Any = FunctionCache  # Numba does not annotate it
_AnyIntrinsic: Any = _Intrinsic
Function = TypeVar("Function", bound=Callable[..., object])

# Without these hooks, a child that is forked while a thread compiles waits for Numba's lock for ever.
os.register_at_fork(
    before=global_compiler_lock.acquire,
    after_in_parent=global_compiler_lock.release,
    after_in_child=global_compiler_lock.release,
)


def kernel(function: Function) -> Function:
    """Compile a function over NumPy arrays, numbers and named tuples of them with Numba.

    A kernel that cannot be cached works too; each process compiles it again. A kernel that Python calls
    returns plain tuples. Making a named tuple runs Python code, and an interrupt (Ctrl-C) during that
    code crashes the process.
    """
    return _compiled(function)


def inlined_kernel(function: Function) -> Function:
    """Compile a step of kernels, and replace each call of it by its code.

    A step only reads and writes arrays that its caller keeps. So it counts no references to them;
    counting would take most of the time of an inner loop. Python runs the source of a step, because
    code that it could call takes a fifth longer to compile. Raises TypeError unless the annotation says
    that the step returns numbers or None: a returned array would be freed while it is in use.
    """
    if not _NUMBERS.fullmatch(str(function.__annotations__.get("return"))):
        raise TypeError(f"an inlined kernel must return numbers or None: {function.__qualname__}")
    step: Any = _compiled(function, forceinline=True, _nrt=False, no_cpython_wrapper=True)
    step._insert = _leave_out  # Python would call code that is not there
    step._compile_for_args = lambda *_: function
    return cast(Function, step)


def _leave_out(*_: object) -> None: ...


def _compiled(function: Function, **options: bool) -> Function:
    njit: Any = numba.njit  # its annotations lack some options
    dispatcher: Any = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher.get_call_template = partial(_call_template, dispatcher.get_call_template)
    dispatcher._compile_for_args = partial(_code_for, dispatcher, dispatcher._compile_for_args)
    try:
        dispatcher._cache = kernel_cache = _Cache(function)
    except RuntimeError:  # Numba tried every folder
        _warn_once("no cache folder is writable")
    else:
        dispatcher.compile = partial(_compile_once, dispatcher.compile, kernel_cache)
    return cast(Function, dispatcher)


def _code_for(dispatcher: Any, compile_: Callable[..., Any], *arguments: Any) -> Any:
    """Return what runs a call whose types are new to this process."""
    if interpreter.takes(arguments):
        types_of_call = tuple(map(dispatcher.typeof_pyval, arguments))
        if not _is_cached(dispatcher._cache, types_of_call, dispatcher.targetctx):
            return partial(interpreter.run, dispatcher.py_func)
    return _uninterrupted(compile_, *arguments)


def _is_cached(kernel_cache: Any, signature: Any, target_context: Any) -> bool:
    return isinstance(kernel_cache, _Cache) and kernel_cache.has(signature, target_context)


def _compile_once(compile_: Callable[[Any], Any], kernel_cache: _Cache, signature: Any) -> Any:
    """Load or compile a kernel; let other processes wait for the result instead of compiling it too."""
    with global_compiler_lock:
        try:
            return compile_(signature)
        finally:
            kernel_cache.unlock()


def _uninterrupted(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and hold SIGINT (Ctrl-C) and SIGTERM back until it returns.

    LLVM calls Python while it loads or compiles a kernel. An error in such a call crashes the process.
    """
    # Python handles signals in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))
    }
    held: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, _: held.append(number))
    try:
        return function(*args)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for first in held[:1]:
            signal.raise_signal(first)


def _call_template(find: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Find the compiled code for a call by a kernel.

    Numba would compile it for each constant and each width of a signed number. All arithmetic of
    signed numbers has 64 bits, so the result is the same.
    """
    return find(tuple(map(_widened, args)), {name: _widened(kws[name]) for name in kws})


def _widened(argument: Any) -> Any:
    unliteral: Callable[[Any], Any] = types.unliteral
    kind: Any = unliteral(argument)
    return types.int64 if getattr(kind, "signed", False) else kind


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Numba's cache of one kernel, which one process at a time fills.

    It warns if a file cannot be read or written. A process that finds no code locks one byte of a file
    in the folder, and looks again. No kernel calls a kernel that calls it, so two processes never wait
    for each other. If two kernels have the same byte, the system reports a deadlock instead.
    """

    _lock: int | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code, or None if it is not cached or cannot be read."""
        cached = self._load(sig, target_context)
        if cached is None and self._is_locked():
            cached = self._load(sig, target_context)
        if cached is None:
            _announce()
        return cached

    def has(self, sig: Any, target_context: Any) -> bool:
        """Return whether there is compiled code."""
        try:
            index = self._cache_file._load_index()
        except (OSError, *_OUTDATED):
            return False
        return self._index_key(sig, target_context.codegen()) in index

    def unlock(self) -> None:
        if self._lock is not None:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, self._byte)
            self._lock = None

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError as error:
            _warn_once(str(error))
        except _OUTDATED:
            self._delete_index()
        return None

    def _is_locked(self) -> bool:
        """Wait for the lock of this kernel; return whether there is one in this folder."""
        with suppress(OSError):
            lock = _lock_file(self.cache_path)
            fcntl.lockf(lock, fcntl.LOCK_EX, 1, self._byte)
            self._lock = lock
        return self._lock is not None

    @property
    def _byte(self) -> int:
        return zlib.crc32(self._impl.filename_base.encode()) >> 1

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            # The index is written first. It may now name a file with the code of older source.
            self._delete_index()
            _warn_once(str(error))
        _after_each()

    def _delete_index(self) -> None:
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


@cache
def _lock_file(folder: str) -> int:
    """Open the file of locks in a folder. Closing it would release all locks of this process."""
    return os.open(
        Path(folder, "textsim-kernels.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666
    )


_has_warned = _is_announced = False


def _do_nothing() -> None:
    pass


_after_each: Callable[[], None] = _do_nothing


@contextmanager
def watch_compiler(after_each: Callable[[], None]) -> Iterator[None]:
    """Call a function after each kernel that this process compiles meanwhile, and announce none.

    Meanwhile Python runs no kernel, so that each kernel in use is compiled.
    """
    global _after_each, _is_announced
    was_announced, seconds = _is_announced, interpreter.seconds
    _after_each, _is_announced, interpreter.seconds = after_each, True, 0.0
    try:
        yield
    finally:
        _after_each, _is_announced, interpreter.seconds = _do_nothing, was_announced, seconds


def _announce() -> None:
    """Log once that kernels are compiled, so that nobody waits half a minute without a word.

    The line is a warning, because Python prints those of a program that configures no logging.
    """
    global _is_announced
    if not (_is_announced or _has_warned):
        log.warning("compiling once for this installation; textsim warm compiles all kernels")
    _is_announced = True


def _warn_once(reason: str) -> None:
    global _has_warned
    if not _has_warned:
        log.warning(
            "compiled kernels cannot be cached, so every process compiles them again: %s; set "
            "NUMBA_CACHE_DIR to a writable folder",
            reason,
        )
    _has_warned = True


_INT32 = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


class _Instruction(_AnyIntrinsic):  # type: ignore[misc]
    """An instruction of the processor in kernels, and a function that does the same in Python."""

    def __call__(self, *arguments: Any) -> Any:
        return _IN_PYTHON[self._name](*arguments)


def _instruction(generate: Callable[..., Any]) -> Any:
    instruction = _Instruction(generate.__name__, generate)
    instruction._register()
    return instruction


def _pointer64(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), ir.IntType(64).as_pointer())


def _load64(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer64(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=1)

    return types.uint64(data, at), generate


def _store64(typing_context: Any, data: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer64(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(data, at, types.uint64), generate


def _trailing_zeros(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _prefetch(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), _BYTES)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        to_read, keep, data_cache = (_INT32(number) for number in (0, 3, 1))
        builder.call(function, [pointer, to_read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(data, at), generate


def _memory64(data: Any, at: Any) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(data.ctypes.data + int(at))


def _write64(data: Any, at: Any, value: Any) -> None:
    _memory64(data, at).value = int(value)


def _count_trailing_zeros(value: Any) -> int:
    number = int(value)
    return (number & -number).bit_length() - 1 if number else 64


_IN_PYTHON: dict[str, Callable[..., Any]] = {
    _load64.__name__: lambda data, at: np.uint64(_memory64(data, at).value),
    _store64.__name__: _write64,
    _trailing_zeros.__name__: _count_trailing_zeros,
    _prefetch.__name__: lambda data, at: None,
}

load64 = cast(Callable[[npt.NDArray[np.uint8], int], np.uint64], _instruction(_load64))
"""Return the eight bytes of data from at on as one little-endian number, in a kernel.

It compiles to one machine instruction; eight indexed loads compile to forty. data must have these
eight bytes, because there is no bounds check.
"""
store64 = cast(Callable[[npt.NDArray[np.uint8], int, np.uint64], None], _instruction(_store64))
"""Write a number as eight little-endian bytes of data from at on; data must have these bytes."""
trailing_zeros = cast(Callable[[np.uint64], int], _instruction(_trailing_zeros))
"""Return the number of zero bits below the lowest set bit, in a kernel; 64 for the number 0."""
prefetch = cast(Callable[[npt.NDArray[Any], int], None], _instruction(_prefetch))
"""Bring the element of a one-dimensional array at a place into the processor's nearest cache.

The kernel goes on meanwhile, so several elements are fetched from memory at once.
"""


BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
HashArray = npt.NDArray[np.uint64]
Int16Array = npt.NDArray[np.int16]
Uint16Array = npt.NDArray[np.uint16]
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


_NAME = "textsim-kernels.compiled"


def are_compiled() -> bool:
    file = mark_file()
    try:
        return file is not None and file.read_text("utf-8") == _digest()
    except OSError:
        return False


def note_compiled() -> None:
    """Note that all kernels are compiled; do nothing if the folder cannot be written."""
    file = mark_file()
    if file is not None:
        with suppress(OSError):
            file.write_text(_digest(), "utf-8")


def mark_file() -> Path | None:
    """Return the file, or None if no folder can hold compiled kernels."""
    folder = cast(Any, longest)._cache.cache_path
    return None if folder is None else Path(folder, _NAME)


def _digest() -> str:
    package = Path(__file__).parents[1]
    sources = ((path, path.stat()) for path in sorted(package.rglob("*.py")))
    facts = (
        *((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in sources),
        *(platform.python_version(), numba.__version__),
        *(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()),
        *(find_spec(name) is not None for name in ("py3langid", "stopwordsiso")),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()
