"""Without a cache of compiled kernels everything works, and one warning says how to get a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import textsim_db
from tests.support.forking import run_script

WARNING = "compiled kernels cannot be cached, so every process compiles them again"

# A limit of 2,000 bytes for each file: the index of the cache fits, and the code does not.
FULL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
LOGGING = "import logging\nlogging.basicConfig(level=logging.INFO)\n"
KERNEL = """
import numpy as np
from textsim_db.text.numba_compiler import kernel

@kernel
def add(values):
    return values.sum() + {number}

print(add(np.arange(3)))
"""

INTERRUPTED = """
import signal
from textsim_db.text import numba_compiler

signal.signal(signal.SIGINT, signal.default_int_handler)
load = numba_compiler._Cache.load_overload

def interrupted(*arguments):
    signal.raise_signal(signal.SIGINT)
    print("goes on")
    return load(*arguments)

numba_compiler._Cache.load_overload = interrupted

@numba_compiler.kernel
def double(number):
    return 2 * number

try:
    double(1)
except KeyboardInterrupt:
    print("interrupted")
print(double(2))
"""

COMPILING = """
from numba.core.compiler_lock import global_compiler_lock
from textsim_db.write.loaded_keys import KeySet

def compiles():
    if global_compiler_lock._lock.acquire(blocking=False):
        global_compiler_lock._lock.release()
        return False
    return True

thread = threading.Thread(target=KeySet().meet, args=[["key"]])
thread.start()
while not compiles():
    assert thread.is_alive()
wait_for([fork(lambda: KeySet().meet(["key"]))])
thread.join()
"""

CLASS = """
from typing import NamedTuple

class {name}(NamedTuple):
    value: int

make = {name}
"""
KERNEL_OF_CLASS = """
import shapes
from textsim_db.text.numba_compiler import kernel

@kernel
def twice(number):
    return 2 * number.value

print(twice(shapes.make(2)))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package where not even the superuser can write a cache."""
    root = Path(textsim_db.__file__).parents[1]
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("textsim_db", "sql", "migrations"):
        shutil.copytree(root / name, tmp_path / name, ignore=ignored)
    for folder, _, _ in os.walk(tmp_path / "textsim_db"):
        Path(folder, "__pycache__").touch()  # with this file, no folder of this name can be created
    return tmp_path


def run_homeless(package: Path, *arguments: str, text: str = "") -> tuple[int, str, str]:
    """Run the command line of the copy without a home folder; return exit status, output and errors."""
    names = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TEXTSIM_DATA_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"HOME": "/dev/null", "PYTHONPATH": str(package)}
    result = subprocess.run(
        [sys.executable, "-m", "textsim_db.cli", *arguments],
        input=text,
        env=environment,
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


@pytest.mark.long  # every command compiles its kernels
def test_commands_work_if_no_cache_can_be_written(package: Path, database_url: str) -> None:
    address = ("--database-url", database_url)
    document = '{"id": "one", "text": "the words of a document"}\n'
    arguments = ("index", "c", "-", "--create", *address)
    status, _, errors = run_homeless(package, *arguments, text=document)
    assert status == 0, errors
    assert errors.count(WARNING) == errors.count("NUMBA_CACHE_DIR") == 1
    status, output, errors = run_homeless(package, "corpus", "list", *address)
    assert (status, "c" in output.split()) == (0, True), errors


def run_kernel(folder: Path, number: int, setup: str = "") -> tuple[str, str]:
    """Run a kernel whose cache is in the folder, and return its output and errors."""
    path = folder / "module.py"
    path.write_text(setup + KERNEL.format(number=number), encoding="utf-8")
    return run_module(path)


def run_module(path: Path) -> tuple[str, str]:
    """Run a module whose kernels are cached beside it, and return its output and errors."""
    result = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(path.parent / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout, result.stderr


@pytest.mark.more
def test_an_interrupt_waits_until_a_kernel_is_compiled_or_loaded(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(INTERRUPTED)
    for _ in range(2):
        assert run_module(path) == ("goes on\ninterrupted\n4\n", "")


@pytest.mark.more
def test_a_first_process_announces_that_it_compiles_and_a_full_disk_ends_none(
    tmp_path: Path,
) -> None:
    _, errors = run_kernel(tmp_path, 1, LOGGING)
    assert errors.count("compiling once for this installation") == errors.count("\n") == 1
    assert run_kernel(tmp_path, 1, LOGGING) == ("4\n", "")
    output, errors = run_kernel(tmp_path, 2, FULL_DISK)
    assert output == "5\n"
    assert errors.count(WARNING) == errors.count("NUMBA_CACHE_DIR") == 1
    assert run_kernel(tmp_path, 2) == ("5\n", "")


@pytest.mark.more
def test_a_class_of_an_older_version_may_be_gone(tmp_path: Path) -> None:
    """The kernel's own file did not change, so Numba reads the index that names the class."""
    path = tmp_path / "module.py"
    path.write_text(KERNEL_OF_CLASS, encoding="utf-8")
    for name in ("Older", "Newer", "Newer"):
        (tmp_path / "shapes.py").write_text(CLASS.format(name=name), encoding="utf-8")
        assert run_module(path) == ("4\n", "")


@pytest.mark.more
def test_a_child_can_compile_after_a_fork_during_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert run_script(COMPILING, "") == (0, "", "")
