"""Kernels that Python runs return what compiled kernels and SQL return."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page import ROOT
from tests.support.uncompiled import results
from textsim_db.base.interpreter import SECONDS_VARIABLE

KERNEL = """
import numpy as np
from textsim_db.base.interpreter import interpreter
from textsim_db.base.numba_compiler import kernel

@kernel
def add(values):
    return values.sum()

def compiled():
    return len(add.signatures)

add(np.arange(interpreter.elements))
assert compiled() == 0
add(np.arange(interpreter.elements + 1))
assert compiled() == 1
add(np.arange(9, dtype=np.int32))
assert compiled() == 1
interpreter.seconds = 0.0
add(np.arange(9, dtype=np.int16))
assert compiled() == 2
"""
FIRST_PROGRAM = """
import sys
import textsim_db as ts
print(ts.pairs(sys.argv[1:]))
"""


def run(folder: Path, *arguments: str, seconds: str = "2") -> str:
    """Run Python without compiled kernels; return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), SECONDS_VARIABLE: seconds},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_first_program_compiles_nothing(tmp_path: Path) -> None:
    texts = ("one two three four", "One, two, three, four!", "\ufb01ve other words of no text")
    assert run(tmp_path, "-c", FIRST_PROGRAM, *texts) == "[Pair(a=0, b=1, similarity=1.0)]\n"
    assert not list(tmp_path.rglob("*.nbc"))


def test_much_to_do_and_much_that_was_done_compile_a_kernel(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(KERNEL)
    run(tmp_path / "cache", str(program))


@pytest.mark.more
def test_python_returns_what_compiled_kernels_return(tmp_path: Path, seed: int) -> None:
    expected = "\n".join(results(seed))
    assert run(tmp_path, "-m", "tests.support.uncompiled", str(seed)) == f"{expected}\n"


@pytest.mark.more
def test_python_runs_all_kernels_of_corpora_and_returns_what_sql_returns(
    tmp_path: Path, seed: int, database_url: str
) -> None:
    run(tmp_path, "-m", "tests.support.uncompiled", str(seed), database_url)
