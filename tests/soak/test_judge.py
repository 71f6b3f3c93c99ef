"""The judge of the soak test passes a steady run, and reports every kind of growth."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.soak.samples import Load, Sample, judge

pytestmark = pytest.mark.long

LOAD = Load(documents=20_000, writes=50, queries=50)


def with_value(sample: Sample, name: str, value: Any) -> Sample:
    return replace(sample, **{name: value})


def run_samples(
    rng: random.Random, change: Callable[[Sample], Sample] = lambda sample: sample
) -> list[Sample]:
    """Return the samples of an hour on a machine that other programs use, too."""
    samples = []
    for minute in range(1, 61):
        sample = Sample(
            seconds=60.0 * minute,
            memory=rng.uniform(214, 218),
            connections=7,
            table_bloat=rng.uniform(1, 1.3),
            index_bloat=rng.uniform(1.3, 1.6),
            pending=rng.randrange(10),
            lag=rng.uniform(0, 0.2),
            writes=rng.uniform(49, 51),
            write_p50=rng.uniform(1, 1.2),
            write_p99=rng.uniform(5, 9),
            queries=rng.uniform(49, 51),
            query_p50=rng.uniform(0.8, 1),
            query_p99=rng.uniform(3, 9),
            plain_write_p50=rng.uniform(0.5, 0.6),
            plain_write_p99=rng.uniform(1, 2),
            plain_query_p50=rng.uniform(0.1, 0.12),
            plain_query_p99=rng.uniform(0.2, 0.4),
        )
        samples.append(change(sample))
    return samples


def test_a_steady_run_passes(rng: random.Random) -> None:
    assert judge(run_samples(rng), LOAD) == []


@pytest.mark.parametrize(
    ("name", "growth", "message"),
    [
        ("memory", 100, r"the worker's memory grows by \d+ MiB an hour"),
        ("connections", 5, "connections grow"),
        ("table_bloat", 1, "table bloat reaches 2"),
        ("index_bloat", 0.7, "index bloat reaches 2"),
        ("lag", 20, "the worker is 1.* s behind"),
        ("write_p50", 10, "p50 of each write grows"),
        ("write_p99", 300, "p99 of each write grows"),
        ("query_p50", 10, "p50 of each query grows"),
        ("query_p99", 300, "p99 of each query grows"),
        ("writes", -20, r"\d+ writes/s were reached, not 50"),
        ("queries", -20, r"\d+ queries/s were reached, not 50"),
    ],
)
def test_growth_is_reported(rng: random.Random, name: str, growth: float, message: str) -> None:
    def grow(sample: Sample) -> Sample:
        value = getattr(sample, name)
        return with_value(sample, name, value + type(value)(growth * sample.seconds / 3600))

    (fault,) = judge(run_samples(rng, grow), LOAD)
    assert re.match(message, fault)
