"""One side of `against.py`: a process that measures the checkout in its PYTHONPATH.

Each line of its input has the name of a step and the number of a block; it answers with the figures as
JSON. It imports nothing from benchmarks, because the other checkout has its own benchmarks.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg

import textsim_db as ts

Figures = dict[str, float]
Connection = psycopg.Connection[Any]

WARM_TEXTS = ["some words to compile the kernels", "other words to compile the kernels"]
STORED_BYTES = """
SELECT sum(pg_total_relation_size(r.oid))
FROM textsim.corpus c
JOIN pg_class r ON r.relname IN ('document_' || c.id, 'band_' || c.id)
    AND r.relnamespace = 'textsim'::regnamespace
WHERE c.name = %s
"""


def main() -> None:
    """Answer each step on the input."""
    folder, answers = Path(sys.argv[1]), sys.stdout
    sys.stdout = sys.stderr
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        side = Side(db, connection, folder)
        for line in sys.stdin:
            step, side.block = line.split()[0], int(line.split()[1])
            figures = side.steps[step]()
            connection.execute("CHECKPOINT")  # a checkpoint later would disturb the other side
            answers.write(json.dumps(figures) + "\n")
            answers.flush()


class Side:
    """A corpus of the documents in a folder, and the steps that measure it."""

    def __init__(self, db: ts.Database, connection: Connection, folder: Path) -> None:
        self.db, self.connection, self.folder = db, connection, folder
        texts = json.loads((folder / "texts.json").read_text())
        self.indexed: list[str] = texts["indexed"]
        self.unlike: list[str] = texts["unlike"]
        self.blocks = int(texts["blocks"])
        self.block = 0
        self.corpus: ts.Corpus
        self.steps: dict[str, Callable[[], Figures]] = {
            "load": self.load,
            "query": self.query,
            "batches": self.batches,
            "pairs": self.pairs,
            "clusters": self.clusters,
            "sql_match": lambda: {"sql_match_ms": self.matches(self.indexed, True)},
            "sql_none": lambda: {"sql_none_ms": self.matches(self.unlike, False)},
            "add": self.add,
            "insert": self.insert,
            "drop": self.drop,
        }

    def load(self) -> Figures:
        """Load the documents into a new corpus."""
        self.warm_up()
        if "against" in self.db.corpora():
            self.db.drop_corpus("against")
        self.corpus = self.db.create_corpus("against")
        server, own = Server(self.connection), own_seconds()
        before, start = server.seconds(), time.perf_counter()
        report = self.corpus.add_many(read_documents(self.folder / "documents.tsv"))
        seconds = time.perf_counter() - start
        client, of_server = own_seconds() - own, server.seconds() - before
        assert report.added == len(self.corpus)
        return {
            "rate": report.added / seconds,
            "processor_us": (client + of_server) * 1e6 / report.added,
            "client_us": client * 1e6 / report.added,
            "server_us": of_server * 1e6 / report.added,
            "peak_mb": peak_mb(),
            "bytes": stored_bytes(self.connection, "against") / report.added,
        }

    def warm_up(self) -> None:
        """Compile or load the kernels of the steps."""
        if "against-warm-up" in self.db.corpora():
            self.db.drop_corpus("against-warm-up")
        warm = self.db.create_corpus("against-warm-up")
        warm.add_many([(f"{number}", text) for number, text in enumerate(WARM_TEXTS * 2)])
        warm.query_many(WARM_TEXTS)
        warm.query(WARM_TEXTS[0])
        assert list(warm.pairs())
        assert list(warm.clusters())
        warm.drop()

    def query(self) -> Figures:
        """Query indexed texts one at a time."""
        for text in self.indexed[:5]:
            self.corpus.query(text)
        times = sorted(milliseconds(self.corpus.query, text) for text in self.part(self.indexed))
        return {"query_ms": statistics.median(times), "p99_ms": times[int(len(times) * 0.99)]}

    def batches(self) -> Figures:
        """Query indexed texts in batches."""
        times = [milliseconds(self.corpus.query_many, self.indexed) for _ in range(3)]
        return {"batch_rate": 1000 * len(self.indexed) / statistics.median(times)}

    def pairs(self) -> Figures:
        """List all pairs."""
        start = time.perf_counter()
        count = sum(1 for _ in self.corpus.pairs())
        return {"pairs_s": time.perf_counter() - start, "pairs": count}

    def clusters(self) -> Figures:
        """List all clusters."""
        start = time.perf_counter()
        count = sum(1 for _ in self.corpus.clusters())
        return {"clusters_s": time.perf_counter() - start, "clusters": count}

    def part(self, texts: list[str]) -> list[str]:
        """Return the texts of the block."""
        return texts[self.block :: self.blocks]

    def matches(self, texts: list[str], has_match: bool) -> float:
        """Return the median milliseconds of textsim.matches()."""
        statement = "SELECT * FROM textsim.matches('against', %s)"
        results = []

        def run(text: str) -> None:
            results.append(bool(self.connection.execute(statement, [text]).fetchall()))

        for text in texts[:6]:  # psycopg prepares a statement at its fifth execution
            run(text)
        times = [milliseconds(run, text) for text in self.part(texts)]
        assert set(results) == {has_match}
        return statistics.median(times)

    def add(self) -> Figures:
        """Add documents one at a time; their words are in the dictionary, and no document is similar."""
        texts = shuffled(self.part(self.unlike), "add")[:50]
        times = [
            milliseconds(self.corpus.add, f"new {self.block}-{number}", text)
            for number, text in enumerate(texts)
        ]
        return {"add_ms": statistics.median(times)}

    def insert(self) -> Figures:
        """Insert the same rows into a plain table and an attached table, in turns.

        Commits do not wait for the disk, because that time varies from 0.2 to 2 ms within a minute.
        """
        if "against-inline" in self.db.corpora():
            self.db.drop_corpus("against-inline")
        for table in ("plain", "inline"):
            self.connection.execute(f"DROP TABLE IF EXISTS against_{table}".encode())
            self.connection.execute(
                f"CREATE TABLE against_{table} (id integer PRIMARY KEY, body text)".encode()
            )
        corpus = self.db.create_corpus("against-inline")
        corpus.attach("against_inline", "id", "body", "inline")
        times: dict[str, list[float]] = {"plain": [], "inline": []}
        self.connection.execute("SET synchronous_commit = off")
        for number, text in enumerate(shuffled(self.part(self.unlike), "insert")):
            for table, measured in times.items():
                measured.append(self.insert_row(table, number, text))
        self.connection.execute("RESET synchronous_commit")
        corpus.detach("against_inline")
        corpus.drop()
        plain, inline = (statistics.median(measured[5:]) for measured in times.values())
        return {"plain_ms": plain, "inline_ms": inline, "over_plain_ms": inline - plain}

    def insert_row(self, table: str, number: int, text: str) -> float:
        """Insert a row in its own transaction and return the milliseconds."""
        statement = f"INSERT INTO against_{table} VALUES (%s, %s)".encode()
        return milliseconds(
            lambda: self.connection.execute(statement, [number, text], prepare=True)
        )

    def drop(self) -> Figures:
        """Drop the corpus."""
        self.corpus.drop()
        return {}


def stored_bytes(connection: Connection, corpus: str) -> int:
    """Return the bytes of the tables and indexes of a corpus."""
    row = connection.execute(STORED_BYTES, [corpus]).fetchone()
    assert row is not None
    return int(row[0])


class Server:
    """The processes of the server of a connection."""

    def __init__(self, connection: Connection) -> None:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        pid = Path(row[0], "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0]
        self.postmaster = psutil.Process(int(pid))

    def seconds(self) -> float:
        """Return the processor time of all processes of the server, including ended processes."""
        total = 0.0
        for process in (self.postmaster, *self.postmaster.children()):
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:  # ended: the postmaster's time will include it
                continue
        return total


def read_documents(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of each line of a file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            key, _, text = line.rstrip("\n").partition("\t")
            yield key, text


def shuffled(texts: list[str], seed: str) -> list[str]:
    """Return the texts with their words in a random order."""
    generator = random.Random(seed)
    return [" ".join(generator.sample(words, len(words))) for words in map(str.split, texts)]


def milliseconds(function: Callable[..., object], *arguments: object) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function(*arguments)
    return (time.perf_counter() - start) * 1000


def peak_mb() -> float:
    """Return the peak resident memory of this process in MB; ru_maxrss may include the parent's."""
    with Path("/proc/self/status").open() as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def own_seconds() -> float:
    """Return the processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
