"""A batch that was written in parts is freed at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
import sqlalchemy

from textsim_db.db.retries import in_parts


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """Turn off the garbage collector, so that a reference cycle stays in memory."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
def test_a_batch_is_freed_when_its_parts_are_done() -> None:
    engine = sqlalchemy.create_engine("postgresql+psycopg://")  # never connects
    batch = np.arange(10)
    reference = weakref.ref(batch)
    assert in_parts(engine, ["key"] * 10, partial(sum_part, batch)) == [45]
    del batch
    assert reference() is None


def sum_part(batch: npt.NDArray[np.int64], part: slice) -> int:
    return int(batch[part].sum())
