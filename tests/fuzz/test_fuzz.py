"""Hostile inputs, with bounds checking on: a short run of python -m tests.fuzz."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_hostile_inputs(seed: int) -> None:
    done = run("--inputs", "5000", "--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no crash, no index out of range, no disagreement" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("checked", [False, True])
def test_the_bounds_are_checked(checked: bool) -> None:
    """With the variable the runs see an index out of range, and without it they refuse to run."""
    program = "from tests.fuzz.checks import *; assert_bounds_are_checked()"
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    if checked:
        folder = str(ROOT / "tests" / "fuzz" / "__pycache__" / "checked")
        environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": folder}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is checked, done.stderr


@pytest.mark.long
def test_memory_that_may_not_be_read_ends_the_process() -> None:
    """What the hashes read without a check would be found out."""
    program = (
        "import numpy as np; from tests.fuzz.memory import Guarded; "
        "from textsim_db.text.hashing import hash_spans; "
        "data = Guarded(4096).copy(np.zeros(20, np.uint8), bytes({})); "
        "print(hash_spans(data, np.array([0], np.int32), np.array([20], np.int32)))"
    )
    for padding, expected in ((16, 0), (3, -11)):
        done = subprocess.run(
            [sys.executable, "-c", program.format(padding)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expected, done.stderr
