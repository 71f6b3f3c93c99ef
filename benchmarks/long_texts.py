"""Long texts in SQL: the processor time of the backend, which grows in proportion to the words.

    python -m benchmarks.long_texts [--words 50000,100000,500000] [--threshold 0.5]

The words have a Zipf distribution. The server is the embedded PostgreSQL, in a temporary folder.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
from pathlib import Path
from typing import Any

import psutil
import psycopg

import textsim_db as ts
from textsim_db.db import embedded_server

KINDS: dict[str, dict[str, Any]] = {
    "bands": {},
    "exact": {"recall": 1.0},
    "exact, unique": {"recall": 1.0, "unique": True},
}
STEPS = {
    "add": "SELECT textsim.add('c', 'a', %(text)s)",
    "matches": "SELECT textsim.matches('c', %(near)s)",
    "update": "SELECT textsim.add('c', 'a', %(near)s)",
    "index_pending": "CALL textsim.index_pending('c')",
    "neighbours": "SELECT textsim.neighbours('c', 'a')",
    "remove": "SELECT textsim.remove('c', 'a')",
}
VOCABULARY = 200_000


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--words", default="50000,100000,500000", help="the lengths of texts")
    parser.add_argument("--threshold", type=float, default=0.5)
    given = parser.parse_args()
    print(f"{'':<16}{'words':>8}" + "".join(f"{step:>15}" for step in STEPS))
    with tempfile.TemporaryDirectory(prefix="ts-") as folder:
        Path(folder).chmod(0o755)
        try:
            measure(embedded_server.start(Path(folder)), given.words, given.threshold)
        finally:
            embedded_server.stop(Path(folder))


def measure(address: str, lengths: str, threshold: float) -> None:
    """Run all steps for each kind of corpus and each length."""
    ts.install(address)
    rng = random.Random(1)
    words = [f"w{i}" for i in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / (i + 10) for i in range(VOCABULARY)))
    with ts.connect(address) as db:
        for kind, settings in KINDS.items():
            db.create_corpus("c", threshold=threshold, **settings)
            for length in map(int, lengths.split(",")):
                text = rng.choices(words, cum_weights=weights, k=length)
                near = [*text[: -length // 50], *rng.choices(words, k=length // 50)]
                seconds = processor_seconds(address, " ".join(text), " ".join(near))
                print(
                    f"{kind:<16}{length:>8}" + "".join(f"{s:>15.2f}" for s in seconds), flush=True
                )
            db.drop_corpus("c")


def processor_seconds(address: str, text: str, near: str) -> list[float]:
    """Return the seconds of the backend for each step."""
    with psycopg.connect(address, autocommit=True) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        seconds = []
        for statement in STEPS.values():
            before = sum(backend.cpu_times()[:2])
            connection.execute(statement.encode(), {"text": text, "near": near})
            seconds.append(sum(backend.cpu_times()[:2]) - before)
    return seconds


if __name__ == "__main__":
    main()
