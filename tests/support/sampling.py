"""A few of many parameters for every run, and the others for long ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sample(values: Iterable[Any], every: int) -> list[Any]:
    """Return parameters of which only one in so many is not marked long."""
    return [
        pytest.param(value, marks=pytest.mark.long if number % every else ())
        for number, value in enumerate(values)
    ]
