"""A batch that was written in parts is freed at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
import sqlalchemy
from psycopg import errors as pg

from textsim_db.db.retries import Attempts


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
    sums = write_parts(engine, batch)
    assert sums == [10, 35]
    del batch
    assert reference() is None


def write_parts(engine: sqlalchemy.Engine, batch: npt.NDArray[np.int64]) -> list[int]:
    """Return the sums of both halves, because the whole batch takes too long."""
    sums = []
    for attempt in Attempts(engine, len(batch)):
        part = batch[attempt.part]
        with attempt:
            if len(part) > 5:
                raise pg.LockNotAvailable("the batch takes too long")
            attempt.results.append(int(part.sum()))
            sums.append(max(attempt.results))
    return sums
