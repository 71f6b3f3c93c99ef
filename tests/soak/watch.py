"""Measurements of one worker and its database."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import psutil

import textsim_db as ts
from tests.soak.samples import Sample
from tests.support.connections import Connection


class Watch:
    """Measures one worker and its database."""

    def __init__(self, connection: Connection, worker: int, corpus: ts.Corpus) -> None:
        self._connection = connection
        self._worker = psutil.Process(worker)
        self._corpus = corpus
        self._start = time.monotonic()
        self._number = self._value("SELECT id FROM textsim.corpus")
        self._fresh = self.measure_fresh_copy()

    def _value(self, statement: str) -> Any:
        row = self._connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]

    def measure_fresh_copy(self) -> tuple[float, float]:
        """Return the bytes of a band row and of its index entry in a fresh copy."""
        name = f"textsim.band_{self._number}"
        for statement in (
            "DROP TABLE IF EXISTS fresh",
            f"CREATE TABLE fresh AS SELECT * FROM {name} ORDER BY bucket",
            "CREATE INDEX fresh_bucket ON fresh (bucket, document_id)",
        ):
            self._connection.execute(statement.encode())
        count = self._value("SELECT count(*) FROM fresh")
        sizes = [
            self._value(f"SELECT pg_relation_size('{relation}')")
            for relation in ("fresh", "fresh_bucket")
        ]
        self._connection.execute("DROP TABLE fresh")
        return sizes[0] / count, sizes[1] / count

    def bloat(self, fresh: tuple[float, float] | None = None) -> tuple[float, float]:
        """Return the sizes of the band rows and of their index, divided by those of a fresh copy."""
        rows = self._value("SELECT count(*) FROM t") * self._corpus.config.bands
        name = f"textsim.band_{self._number}"
        sizes = [
            self._value(f"SELECT pg_relation_size('{relation}')")
            for relation in (name, f"{name}_bucket")
        ]
        per_row = fresh or self._fresh
        return sizes[0] / (rows * per_row[0]), sizes[1] / (rows * per_row[1])

    def sample(self, interval: float, durations: dict[str, list[float]]) -> Sample:
        table, index = self.bloat()
        lag = self._value(
            "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 "
            "FROM textsim.pending"
        )
        return Sample(
            time.monotonic() - self._start,
            self._worker.memory_info().rss / 2**20,
            self._value(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ),
            table,
            index,
            self._value("SELECT count(*) FROM textsim.pending"),
            lag,
            len(durations["write"]) / interval,
            *_percentiles(durations["write"]),
            len(durations["query"]) / interval,
            *_percentiles(durations["query"]),
            *_percentiles(durations["plain_write"]),
            *_percentiles(durations["plain_query"]),
        )


def _percentiles(values: list[float]) -> tuple[float, float]:
    return float(np.percentile(values, 50)), float(np.percentile(values, 99))
