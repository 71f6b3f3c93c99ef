"""Sixteen clients write to a unique corpus at random: brute force finds no twins."""

from __future__ import annotations

import pytest

import textsim_db as ts
from tests.soak.unique import soak

pytestmark = pytest.mark.more

ROUNDS = 1


def test_sixteen_clients_at_random_leave_no_twins(db: ts.Database, seed: int) -> None:
    outcomes, faults = soak(db.url, 16, seed, range(ROUNDS))
    print(outcomes)
    assert faults == [], f"--seed {seed}"
    assert outcomes["ended"] > 0
    assert outcomes["UniqueViolation"] > 0
