"""Live through a week of bulk changes and faults; after each, the index must catch up in time.

    python -m tests.soak.week

The test attaches a partitioned table on an embedded server. Two workers index it, and start again when
they end, as a service manager does. A client changes rows all the time.

The command prints for each event how many changes waited when the event was over, and after how many
seconds the lag stayed under a second. It exits with 1 and the reasons if that took longer, or if the
table and its documents differ. The full disk needs the right to mount a file system.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg

import textsim_db as ts
from tests.soak.steady_load import Texts, finish
from tests.support.connections import Connection
from tests.support.embedded import arguments_of, start_worker
from textsim_db.db import embedded_server

DAYS = 7
WORKERS = 2
WRITES_A_SECOND = 50.0
STEADY_SECONDS = 2.0
"""The lag must stay under a second for this long."""
PATIENCE_SECONDS = 600.0
FAULT_SECONDS = 20.0
LAG = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - created_at)), 0)::float8
FROM textsim.pending WHERE error IS NULL
"""
WAITING = "SELECT coalesce(sum(cardinality(keys)), 0) FROM textsim.pending WHERE error IS NULL"


class Event(NamedTuple):
    """Something that happens during the week."""

    name: str
    happen: Callable[[Week], None]
    limit: float
    """Seconds after the end of the event until the lag must stay under a second."""


@dataclass
class Week:
    """The server, its clients and workers."""

    folder: Path
    url: str
    rows: int
    texts: Texts
    is_small_disk: bool
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    is_kept: threading.Event = field(default_factory=threading.Event)
    """Whether workers that have ended start again."""
    failed_writes: int = 0

    def execute(self, statement: str) -> None:
        with connect(self.url) as connection:
            connection.execute(statement.encode())

    def lag(self) -> float:
        """Return the age of the oldest change that waits; infinite while the server is away."""
        try:
            with connect(self.url) as connection:
                return float(connection.execute(LAG).fetchall()[0][0])
        except psycopg.OperationalError:
            return float("inf")

    def waiting(self) -> int:
        with connect(self.url) as connection:
            return int(connection.execute(WAITING).fetchall()[0][0])

    def keep_workers(self) -> None:
        """Start a worker again when it has ended."""
        while not self.stop.wait(0.5):
            for number, worker in enumerate(self.workers):
                if self.is_kept.is_set() and worker.poll() is not None:
                    self.workers[number] = start_worker(self.url)

    def end_workers(self) -> None:
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
            worker.wait(60)

    def write_steadily(self, seed: int) -> None:
        """Update single rows at a steady rate, whatever happens to the server."""
        rng, texts = random.Random(seed), Texts(seed)
        while not self.stop.is_set():
            with suppress(psycopg.Error), connect(self.url) as connection:
                connection.execute("SET lock_timeout = '2s'")
                while not self.stop.wait(1 / WRITES_A_SECOND):
                    try:
                        row = [texts.draw(), rng.randrange(self.rows)]
                        connection.execute("UPDATE post SET body = %s WHERE id = %s", row)
                    except psycopg.Error:
                        self.failed_writes += 1
                        if connection.closed:
                            raise
            self.stop.wait(0.2)


def connect(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True, connect_timeout=5)


# The events.


def load_day(week: Week) -> None:
    """The last partition's rows are deleted in one statement, and others inserted in another."""
    first = week.rows // DAYS * (DAYS - 1)
    week.execute(f"DELETE FROM post WHERE id >= {first}")
    week.execute(
        f"INSERT INTO post SELECT id, 'new ' || (SELECT body FROM post p WHERE p.id = i.id % {first}) "
        f"FROM generate_series({first}, {week.rows - 1}) i (id)"
    )


def update_all(week: Week) -> None:
    week.execute("UPDATE post SET body = body || ' b'")


def update_all_after_an_empty_log(week: Week) -> None:
    """The statistics of the log say that it is empty when the changes come."""
    week.execute(f"UPDATE post SET body = body || ' c' WHERE id < {week.rows // 20}")
    wait_until_current(week)
    week.execute("VACUUM ANALYZE textsim.pending")
    time.sleep(15)  # prepared statements of the workers become generic
    week.execute("UPDATE post SET body = body || ' d'")


def lose_server(week: Week) -> None:
    embedded_server.stop(week.folder)
    time.sleep(FAULT_SECONDS)
    embedded_server.start(week.folder)


def fill_disk(week: Week) -> None:
    if not week.is_small_disk:
        print("the disk is not filled: that needs the right to mount a file system")
        return
    # Longer texts: their documents do not fit into the space that vacuum has freed.
    week.execute("UPDATE post SET body = concat_ws(' e ', body, body, body)")
    filler = week.folder / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
    time.sleep(FAULT_SECONDS)
    filler.unlink()
    with suppress(psycopg.Error):
        embedded_server.start(week.folder)  # a full disk may have stopped the server


def make_read_only(week: Week) -> None:
    week.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    week.execute("SELECT pg_reload_conf()")
    time.sleep(10)
    with connect(week.url) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        connection.execute("SELECT pg_reload_conf()")


def end_workers(week: Week) -> None:
    """End and kill workers in the middle of their work."""
    week.execute("UPDATE post SET body = body || ' f'")
    for sent in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        time.sleep(1)
        for worker in week.workers:
            worker.send_signal(sent)


def kill_workers(week: Week, count: int = WORKERS) -> None:
    """Kill workers, which start again later, as after a failed deployment."""
    week.is_kept.clear()
    for worker in week.workers[:count]:
        worker.kill()
    time.sleep(FAULT_SECONDS)
    week.is_kept.set()


def stop_worker(week: Week) -> None:
    """Stop one of two workers, as a frozen machine does."""
    week.workers[1].send_signal(signal.SIGSTOP)
    time.sleep(FAULT_SECONDS)
    week.workers[1].send_signal(signal.SIGCONT)


def truncate_partition(week: Week) -> None:
    week.execute("TRUNCATE post_0")


def drop_partition(week: Week) -> None:
    week.execute("ALTER TABLE post DETACH PARTITION post_1")
    week.execute("DROP TABLE post_1")


def hold_table(week: Week) -> None:
    """A transaction of a user holds the table, as a slow ALTER TABLE does."""
    with connect(week.url) as connection, connection.transaction():
        connection.execute("LOCK TABLE post IN ACCESS EXCLUSIVE MODE")
        time.sleep(10)


def rebuild(week: Week) -> None:
    with ts.connect(week.url) as db:
        db.corpus("posts").rebuild(threshold=0.7)


EVENTS = (
    Event("a day's rows are loaded", load_day, 30),
    Event("all rows are updated", update_all, 90),
    Event("all rows are updated after an empty log", update_all_after_an_empty_log, 90),
    Event("the server is away for 20 s", lose_server, 45),
    Event("the disk is full for 20 s", fill_disk, 90),
    Event("a worker is killed for 20 s", partial(kill_workers, count=1), 30),
    Event("a worker is stopped for 20 s", stop_worker, 30),
    Event("all workers are killed for 20 s", kill_workers, 45),
    Event("the server is read-only for 10 s", make_read_only, 45),
    Event("workers end and are killed", end_workers, 180),
    Event("a partition is truncated", truncate_partition, 30),
    Event("a partition is detached and dropped", drop_partition, 30),
    Event("the table is locked for 10 s", hold_table, 20),
    Event("the corpus is rebuilt", rebuild, 30),
)


def wait_until_current(week: Week) -> float:
    """Wait until the lag stays under a second; return the seconds until it fell under it."""
    start = time.monotonic()
    current_since: float | None = None
    while time.monotonic() - start < PATIENCE_SECONDS:
        now = time.monotonic()
        if week.lag() >= 1:
            current_since = None
        elif current_since is None:
            current_since = now
        elif now - current_since >= STEADY_SECONDS:
            return current_since - start
        time.sleep(0.1)
    return float("inf")


@contextmanager
def busy(week: Week, seed: int) -> Iterator[None]:
    """Keep the workers running and write rows until the block ends."""
    writer = threading.Thread(target=week.write_steadily, args=[seed])
    threads = [threading.Thread(target=week.keep_workers), writer]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        week.stop.set()
        for thread in threads:
            thread.join()


def live(week: Week, seed: int) -> list[str]:
    """Let all events happen; return the faults."""
    faults = []
    week.is_kept.set()
    print(f"all rows are new: current after {wait_until_current(week):.1f} s", flush=True)
    with busy(week, seed):
        print(f"{'event':<42}{'seconds':>9}{'waiting':>10}{'current after s':>17}{'limit':>7}")
        for event in EVENTS:
            start = time.monotonic()
            event.happen(week)
            seconds, waiting = time.monotonic() - start, week.waiting()
            lag = wait_until_current(week)
            figures = f"{seconds:>9.1f}{waiting:>10,}{lag:>17.1f}{event.limit:>7.0f}"
            print(f"{event.name:<42}{figures}", flush=True)
            if lag > event.limit:
                faults.append(f"{event.name}: the lag was under a second after {lag:.1f} s only")
    print(f"{week.failed_writes} single updates failed while the server could not take them")
    return faults


def fill(week: Week) -> None:
    """Create the partitioned table and attach it."""
    with connect(week.url) as connection:
        columns = "(id bigint PRIMARY KEY, body text NOT NULL)"
        connection.execute(f"CREATE TABLE post {columns} PARTITION BY RANGE (id)".encode())
        share = -(-week.rows // DAYS)
        for day in range(DAYS):
            connection.execute(
                f"CREATE TABLE post_{day} PARTITION OF post "
                f"FOR VALUES FROM ({day * share}) TO ({(day + 1) * share})".encode()
            )
        with connection.cursor().copy("COPY post FROM STDIN") as copy:
            for number in range(week.rows):
                copy.write_row((number, week.texts.draw()))
    with ts.connect(week.url) as db:
        db.create_corpus("posts").attach("post", "id", "body")


@contextmanager
def small_disk() -> Iterator[tuple[Path, bool]]:
    """Yield a folder, and whether it has a file system of its own that can be filled."""
    folder = Path(tempfile.mkdtemp(prefix="tw-"))
    folder.chmod(0o755)
    mount = ["mount", "-t", "tmpfs", "-o", "size=3g,mode=755", "none", str(folder)]
    is_mounted = os.geteuid() == 0 and not subprocess.run(mount, capture_output=True).returncode
    try:
        yield folder, is_mounted
    finally:
        embedded_server.stop(folder)
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Fill a table on a small disk, start workers, live, and compare; return the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.week")
    parser.add_argument("--rows", type=int, default=105_000)
    arguments = arguments_of(parser)
    with small_disk() as (folder, is_small_disk):
        url = embedded_server.start(folder)
        ts.install(url)
        week = Week(folder, url, arguments.rows, Texts(arguments.seed), is_small_disk)
        fill(week)
        week.workers = [start_worker(url) for _ in range(WORKERS)]
        try:
            faults = live(week, arguments.seed)
            with ts.connect(url) as db, connect(url) as connection:
                faults += finish(connection, db.corpus("posts"), "post")
        finally:
            week.end_workers()
    for message in faults:
        print(f"FAILED: {message}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
