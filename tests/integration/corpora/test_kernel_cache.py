"""Kernels: what works without a cache of compiled ones, and what textsim warm compiles."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.commands import NEWS, process
from tests.support.forking import run_script

WARNING = "compiled kernels cannot be cached, so every process compiles them again"

# A limit of 2,000 bytes for each file: the index of the cache fits, and the code does not.
FULL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
LOGGING = "import logging\nlogging.basicConfig(level=logging.INFO)\n"
KERNEL = """
import numpy as np
from textsim_db.base.numba_compiler import kernel

@kernel
def add(values):
    return values.sum() + {number}

print(add(np.arange(3)))
"""

ANNOUNCED = "compiling once for this installation; textsim warm compiles all kernels"
STEPS = """
import numpy as np
from textsim_db.base.numba_compiler import kernel

@kernel
def one(values):
    return values.sum() + 1

@kernel
def two(values):
    return values.sum() + 2

for add in (one, two):
    print(add(np.arange(3)))
"""
COUNTED = """
from textsim_db.base import numba_compiler
from textsim_db.write.load_batches import KeySet

compiled = []
print("ready", flush=True)
input()
with numba_compiler.watch_compiler(lambda: compiled.append(1)):
    KeySet().meet(["key"])
print(len(compiled))
"""

INTERRUPTED = """
import signal
from textsim_db.base import numba_compiler

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
from textsim_db.write.load_batches import KeySet

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
from textsim_db.base.numba_compiler import kernel

@kernel
def twice(number):
    return 2 * number.value

print(twice(shapes.make(2)))
"""


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
        assert run_module(path)[0] == "goes on\ninterrupted\n4\n"


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
    output, errors = run_kernel(tmp_path, 2)
    assert output == "5\n"
    assert errors.count(WARNING) == 0


@pytest.mark.more
def test_python_says_once_that_it_compiles(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(STEPS)
    assert run_module(path) == ("4\n5\n", f"{ANNOUNCED}\n")


@pytest.mark.more
def test_processes_that_start_at_once_compile_each_kernel_once(cache: Path) -> None:
    with ExitStack() as stack:
        command = [sys.executable, "-c", COUNTED]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        several: list[Any] = [
            stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(3)
        ]
        for one in several:
            assert one.stdout.readline() == "ready\n"
        for one in several:
            one.stdin.write("go\n")
            one.stdin.flush()
        counts = [int(one.communicate()[0]) for one in several]
    assert sum(counts) == len(kernels(cache)) > 1, counts


@pytest.mark.more
def test_a_kernel_works_if_no_cache_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cache", "__pycache__"):  # with this file, no folder of this name can be created
        (tmp_path / name).touch()
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    output, errors = run_kernel(tmp_path, 1)
    assert output == "4\n"
    assert errors.count(WARNING) == errors.count("NUMBA_CACHE_DIR") == 1


@pytest.mark.more
def test_a_class_of_an_older_version_may_be_gone(tmp_path: Path) -> None:
    """The kernel's own file did not change, so Numba reads the index that names the class."""
    path = tmp_path / "module.py"
    path.write_text(KERNEL_OF_CLASS, encoding="utf-8")
    for name, told in (("Older", f"{ANNOUNCED}\n"), ("Renamed", f"{ANNOUNCED}\n"), ("Renamed", "")):
        # Of another length, because Python sees a change by the size of a file, or by its second.
        (tmp_path / "shapes.py").write_text(CLASS.format(name=name), encoding="utf-8")
        assert run_module(path) == ("4\n", told)


@pytest.mark.more
def test_a_child_can_compile_after_a_fork_during_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert run_script(COMPILING, "") == (0, "", f"{ANNOUNCED}\n")


COMMANDS = (
    ("index", "news", "news.jsonl", "--create"),
    ("index", "chars", "news.jsonl", "--create", "--shingle", "char:5"),
    ("index", "exact", "news.jsonl", "--create", "--recall", "1"),
    ("index", "unique", "news.jsonl", "--create", "--unique"),
    ("index", "letters", "news.jsonl", "--create", "--passages", "5", "--guard", "numbers"),
    ("passages", "letters", NEWS["a"]),
    ("regions", "letters", NEWS["a"]),
    ("quote", "letters", NEWS["a"]),
    ("query", "news", NEWS["a"]),
    ("query", "exact", NEWS["a"], "--measure", "levenshtein", "--threshold", "9"),
    ("query", "chars", NEWS["a"], "--measure", "containment", "--threshold", "0.9"),
    ("neighbours", "unique", "a"),
    ("pairs", "news"),
    ("pairs", "exact"),
    ("clusters", "chars", "--linkage", "complete"),
    ("dedupe", "news.jsonl", "-o", "rest.jsonl"),
    ("dedupe", "news.jsonl", "-o", "rest.jsonl", "--recall", "1", "--linkage", "single"),
    ("compare", NEWS["a"], NEWS["d"]),
    ("plan", "news"),
    ("plan", "exact"),
    ("stats", "chars"),
    ("attach", "news", "article", "--key", "id"),
    ("attach", "exact", "article", "--key", "id"),
    ("worker", "--once"),
    ("reconcile", "news"),
    ("rebuild", "exact", "--threshold", "0.7"),
    ("rebuild", "chars", "--shingle", "char:7"),
    ("check",),
    ("doctor",),
    ("db", "install", "--no-warm"),
)
METHODS = """
with ts.connect(url) as db:
    for recall in (0.95, 1):
        corpus = db.create_corpus(f"of methods {recall}", recall=recall, is_unique=True)
        corpus.add_unique("a", "one two three four")
        corpus.add("b", "some other words, ﬁve of them")
        corpus.query_many(["one two three four", "none"])
        list(corpus.pairs()), list(corpus.duplicates())
        db.drop_corpus(corpus.name)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for compiled kernels."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def run(url: str, *command: str) -> str:
    """Run a command in a process of its own, and return its messages."""
    started = process(*command, url=url)
    _, errors = started.communicate()
    assert started.returncode in (0, 1), (command, errors)
    return errors


def kernels(cache: Path) -> set[str]:
    """Return the compiled kernels by file, as module.function-line and the number of its variant."""
    return {
        f"{path.parent.name.rpartition('_')[0]}/{re.sub('[.]py3[^.]*', '', path.name)}"
        for path in cache.rglob("*.nbc")
    }


@contextmanager
def nothing_compiled(cache: Path, work: str) -> Iterator[None]:
    before = kernels(cache)
    yield
    missing = sorted(kernels(cache) - before)
    assert not missing, f"{work} compiled {missing}"


@pytest.mark.long
def test_nothing_is_compiled_after_warm(cache: Path, database_url: str) -> None:
    Path("news.jsonl").write_text(
        "\n".join(json.dumps({"id": key, "text": text}) for key, text in NEWS.items())
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id text PRIMARY KEY, text text)")
        connection.execute("INSERT INTO article VALUES ('x', 'one two three four')")
        assert run(database_url, "warm").startswith("compiling all kernels, once for this")
        assert kernels(cache)
        assert connection.execute("SELECT count(*) FROM textsim.corpus").fetchone() == (0,)
        assert run(database_url, "warm") == "all kernels are compiled\n"
        with nothing_compiled(cache, "the methods"):
            assert run_script(METHODS, database_url) == (0, "", "")
        for command in COMMANDS:
            with nothing_compiled(cache, " ".join(command)):
                run(database_url, *command)
        with nothing_compiled(cache, "a worker, after SQL wrote documents"):
            connection.execute("SELECT textsim.add('news', 'by SQL', 'more words than before')")
            connection.execute("SELECT textsim.add('exact', 'by SQL', 'more words than before')")
            run(database_url, "query", "exact", "more words than before")
            run(database_url, "worker", "--once")
