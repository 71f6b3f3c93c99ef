"""The measurements of the soak test, and the limits at which a run fails."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, fields

import numpy as np

WARM_UP = 0.25
"""Share of the run before memory and latency are judged; caches and statistics fill during it."""
MAX_MEMORY_SLOPE = 32.0
"""MiB an hour by which the worker may grow after the warm-up."""
MEMORY_NOISE = 8.0
"""MiB by which the worker may grow in all, at any slope: the allocator's pages come and go."""
MAX_BLOAT = 2.0
MAX_SLOWER = {"p50": (1.3, 0.5), "p99": (1.5, 10.0)}
"""Factor and additional milliseconds by which the last third may be slower than the first.

The factor is multiplied by the factor by which statements on an unattached table have become slower:
other programs may use the machine.
"""
MAX_LAG_SECONDS = 5.0
MIN_RATE = 0.9
"""Share of the requested writes and queries that the clients must reach."""


@dataclass(frozen=True)
class Load:
    """Rows of the table, and writes and queries per second."""

    documents: int
    writes: float
    queries: float


@dataclass(frozen=True)
class Sample:
    """The measurements of one interval: sizes as ratios to a fresh copy, times in milliseconds."""

    seconds: float
    memory: float
    connections: int
    table_bloat: float
    index_bloat: float
    pending: int
    lag: float
    writes: float
    write_p50: float
    write_p99: float
    queries: float
    query_p50: float
    query_p99: float
    plain_write_p50: float
    plain_write_p99: float
    plain_query_p50: float
    plain_query_p99: float


HEADS = {
    "seconds": "seconds",
    "memory": "worker MiB",
    "connections": "connections",
    "table_bloat": "bands x",
    "index_bloat": "index x",
    "pending": "pending",
    "lag": "lag s",
    "writes": "writes/s",
    "write_p50": "p50 ms",
    "write_p99": "p99 ms",
    "queries": "queries/s",
    "query_p50": "p50 ms",
    "query_p99": "p99 ms",
    "plain_write_p50": "plain write p50",
    "plain_write_p99": "p99 ms",
    "plain_query_p50": "plain read p50",
    "plain_query_p99": "p99 ms",
}


def judge(samples: list[Sample], load: Load) -> list[str]:
    """Return the faults that the samples of a run show."""
    end = samples[-1].seconds
    steady = [sample for sample in samples if sample.seconds > WARM_UP * end]
    third = max(1, len(steady) // 3)
    first, last = steady[:third], steady[-third:]

    def middle(part: list[Sample], name: str) -> float:
        return float(statistics.median(getattr(sample, name) for sample in part))

    faults = []
    hours = [sample.seconds / 3600 for sample in steady]
    slope = float(np.polyfit(hours, [sample.memory for sample in steady], 1)[0])
    growth = slope * (hours[-1] - hours[0])
    if slope > MAX_MEMORY_SLOPE and growth > MEMORY_NOISE:
        faults.append(f"the worker's memory grows by {slope:.0f} MiB an hour")
    if max(s.connections for s in last) > max(s.connections for s in first):
        faults.append("connections grow")
    for name in ("table_bloat", "index_bloat"):
        worst = max(getattr(sample, name) for sample in samples)
        if worst >= MAX_BLOAT:
            faults.append(f"{name.replace('_', ' ')} reaches {worst:.2f}")
    if middle(last, "lag") > MAX_LAG_SECONDS:
        faults.append(f"the worker is {middle(last, 'lag'):.1f} s behind")
    for kind in ("write", "query"):
        for part, (factor, slack) in MAX_SLOWER.items():
            before, after = middle(first, f"{kind}_{part}"), middle(last, f"{kind}_{part}")
            plain = f"plain_{kind}_{part}"
            noise = max(1.0, middle(last, plain) / middle(first, plain))
            if after > factor * noise * before + slack:
                faults.append(f"{part} of each {kind} grows from {before:.2f} to {after:.2f} ms")
    for name, requested in (("writes", load.writes), ("queries", load.queries)):
        rate = middle(steady, name)
        if rate < MIN_RATE * requested:
            faults.append(f"{rate:.0f} {name}/s were reached, not {requested:.0f}")
    return faults


def line(sample: Sample) -> str:
    """Return a sample as a line of the table."""
    values = [getattr(sample, part.name) for part in fields(Sample)]
    return "  ".join(
        f"{value:>{len(head)}.{0 if isinstance(value, int) or value >= 100 else 2}f}"
        for value, head in zip(values, HEADS.values(), strict=True)
    )
