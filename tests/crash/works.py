"""The work of the processes that are killed; each records its transactions in a journal.

A process writes a line before a transaction begins, and another line after its commit returned. If
the second line is missing or truncated, the transaction is in doubt: it may be committed as a whole
or not at all.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors as pg

import textsim_db as ts
from tests.support.unique_writers import Client
from textsim_db.base import run_ahead
from textsim_db.db.engine import is_lost
from textsim_db.results import AddReport

WORDS = [f"w{i}" for i in range(200)]
LOADED = 6000
"""Number of documents that each loading client loads."""
LOAD_BATCH = 1000
KEYS = 400
"""Number of keys that each client changes."""
SIMILAR = 8
"""Number of keys whose texts match if their versions are both even or both odd."""
LEASE_SECONDS = 0.5

Changes = dict[str, int | None]
"""The version of the text that a transaction gives each key; None: it deletes the key."""


@dataclass(frozen=True)
class Job:
    """The work of a process until it is killed or the file `stop` exists."""

    work: str
    url: str
    journal: Path
    stop: Path
    seed: str
    number: int
    """Tells clients of one kind apart."""
    first: int
    """The lowest unused version."""

    @property
    def stopped(self) -> bool:
        return self.stop.exists()


class Journal:
    """Writes lines of JSON, each in one system call, so that a kill loses no line that was noted."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, **entry: Any) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a journal, without a truncated last line."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def text_of(key: str, version: int) -> str:
    """Return a text in normal form of a key and a version. It matches texts of some other keys."""
    number = int(re.sub(r"\D", "", key))
    rng = random.Random(f"{number // SIMILAR} {version % 2}")
    return " ".join([f"k{key}", f"v{version}", *rng.choices(WORDS, k=20)])


def run(job: Job) -> None:
    """Run a work until it is stopped or loses its connection."""
    logging.disable()
    journal = Journal(job.journal)
    try:
        globals()[job.work](job, journal)
        journal.note(ended="stopped")
    except ts.DatabaseUnavailable:
        journal.note(ended="lost")
    except psycopg.Error as error:
        journal.note(ended="lost" if is_lost(error) else f"failed: {error!r}")
    except BaseException as error:
        journal.note(ended=f"failed: {error!r}")


def load(job: Job, journal: Journal) -> None:
    """Load the same keys repeatedly, in new versions."""
    run_ahead.BATCH_DOCUMENTS = LOAD_BATCH
    with ts.connect(job.url) as db:
        corpus = db.corpus("loaded")
        for version in count(job.first):
            journal.note(begin=version)

            def acknowledge(report: AddReport, version: int = version) -> None:
                journal.note(done=version, given=report.received)

            corpus.add_many(load_of(job.number, version), acknowledge)
            if job.stopped:
                return


def load_of(number: int, version: int) -> Iterator[tuple[str, str]]:
    """Yield the documents of one load."""
    for key in load_keys(number):
        yield key, text_of(key, version)


def load_keys(number: int) -> list[str]:
    return [f"c{number}d{i}" for i in range(LOADED)]


def _write_table(job: Job, journal: Journal, table: str) -> None:
    """Change rows of an attached table."""
    conflict = "ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    upsert = f"INSERT INTO {table} VALUES (%s, %s) {conflict}".encode()
    delete = f"DELETE FROM {table} WHERE id = %s".encode()
    with psycopg.connect(job.url) as connection:
        for changes in _transactions(job, journal):
            for key, version in changes.items():
                if version is None:
                    connection.execute(delete, [int(key)])
                else:
                    connection.execute(upsert, [int(key), text_of(key, version)])
            connection.commit()


write_queue = partial(_write_table, table="queued_rows")
write_inline = partial(_write_table, table="inline_rows")
write_rebuilt = partial(_write_table, table="rebuilt_rows")


def _add(job: Job, journal: Journal, corpus: str) -> None:
    """Add and remove documents by SQL; the corpus may be rebuilt meanwhile."""
    with psycopg.connect(job.url) as connection:
        for number, changes in enumerate(_transactions(job, journal, "s")):
            try:
                for key, version in changes.items():
                    if version is None:
                        connection.execute("SELECT textsim.remove(%s, %s)", [corpus, key])
                    else:
                        text = text_of(key, version)
                        connection.execute("SELECT textsim.add(%s, %s, %s)", [corpus, key, text])
                connection.commit()
            except (pg.ObjectNotInPrerequisiteState, pg.UndefinedTable):
                # The corpus was rebuilt meanwhile, so the transaction was refused.
                connection.rollback()
                journal.note(undone=number)


add_inline = partial(_add, corpus="inline")
add_rebuilt = partial(_add, corpus="rebuilt")


def write_unique(job: Job, journal: Journal) -> None:
    """Write similar documents and rows to a unique corpus at random."""
    with ts.connect(job.url) as db:
        client = Client(db, job.seed)
        for number in count():
            if job.stopped:
                return
            journal.note(begin=number)
            client.run_one()
            journal.note(done=number)


def _transactions(job: Job, journal: Journal, prefix: str = "") -> Iterator[Changes]:
    """Yield the changes of each transaction: mostly few keys, sometimes many."""
    rng = random.Random(job.seed)
    for number in count():
        if job.stopped:
            return
        size = rng.randrange(1, 6) if rng.random() < 0.9 else 100
        changes: Changes = {
            # Each client has its own keys, in order, so clients never wait for each other.
            f"{prefix}{2 * i + job.number}": None if rng.random() < 0.2 else job.first + number
            for i in sorted(rng.sample(range(KEYS), size))
        }
        journal.note(begin=number, changes=changes)
        yield changes
        # The commit has returned. A refused transaction has a line "undone" before this line.
        journal.note(done=number)


def rebuild(job: Job, journal: Journal) -> None:
    """Rebuild a corpus repeatedly."""
    with ts.connect(job.url) as db:
        corpus = db.corpus("rebuilt")
        for number in count(job.first):
            journal.note(begin=number)
            corpus.rebuild(seed=number)
            journal.note(done=number)
            if job.stopped:
                return


def work(job: Job, journal: Journal) -> None:
    """Index pending changes."""
    with ts.connect(job.url) as db:
        worker = db.worker(lease=LEASE_SECONDS)

        def watch() -> None:
            while not job.stopped:
                time.sleep(0.05)
            worker.stop()

        threading.Thread(target=watch, daemon=True).start()
        worker.run()
