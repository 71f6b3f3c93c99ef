"""Hostile inputs: a batch of the kernels as they are, and a short run with bounds checking."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.checks import Checks

ROOT = Path(__file__).parents[2]


def run_fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.more
def test_a_batch_passes_all_checks(seed: int) -> None:
    assert Checks().batch(seed, 0, 100) > 100


@pytest.mark.long  # it compiles every kernel with bounds checking
def test_hostile_inputs_pass_all_checks(seed: int) -> None:
    result = run_fuzz("--inputs", "500", "--seed", str(seed))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no crash, no index out of range, no disagreement" in result.stdout


@pytest.mark.more
def test_a_read_behind_the_padding_ends_the_process() -> None:
    """So the fuzz test detects reads of the hash kernels, which are not checked."""
    program = (
        "import numpy as np; from tests.fuzz.memory import Guarded; "
        "from textsim_db.text.hashing import hash_spans; "
        "data = Guarded(4096).copy(np.zeros(20, np.uint8), bytes({})); "
        "print(hash_spans(data, np.array([0], np.int32), np.array([20], np.int32)))"
    )
    for padding, expected in ((16, 0), (3, -11)):
        command = [sys.executable, "-c", program.format(padding)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == expected, result.stderr
