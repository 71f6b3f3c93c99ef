"""A file beside the compiled kernels that says that all of them are compiled.

It holds what the compiled code depends on: the source, the compiler, the processor, and the extras.
"""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import llvmlite.binding as llvm
import numba

from textsim_db.text.hashing import hash_table

_NAME = "textsim-kernels.compiled"


def is_set() -> bool:
    """Return whether all kernels of this installation are compiled."""
    file = _file()
    try:
        return file is not None and file.read_text("utf-8") == _digest()
    except OSError:
        return False


def set_mark() -> None:
    """Note that all kernels are compiled; do nothing if the folder cannot be written."""
    file = _file()
    if file is not None:
        with suppress(OSError):
            file.write_text(_digest(), "utf-8")


def _file() -> Path | None:
    """Return the file, or None if no folder can hold compiled kernels."""
    folder = cast(Any, hash_table)._cache.cache_path
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
