"""The stage of a crash: a server, a corpus, and the processes that work on it."""

from __future__ import annotations

import multiprocessing
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.crash import works
from tests.crash.checks import (
    Tally,
)
from tests.crash.works import Job, read
from tests.support.connections import Connection
from tests.support.embedded import postmaster
from textsim_db.db import embedded_server

PATIENCE_SECONDS = 60.0
CLIENT = "killed-client"
SETTINGS: dict[str, Any] = {"shingle": "word:2", "num_hashes": 32}
REBUILT_DOCUMENTS = 2000
FIRST = 100_000
"""Versions of texts that are new with each kill."""


@dataclass
class Running:
    """A process of a work; target: the function of works.py that it runs."""

    target: str
    process: BaseProcess
    job: Job

    @property
    def entries(self) -> list[dict[str, Any]]:
        return read(self.job.journal)

    @property
    def is_worker(self) -> bool:
        return self.target == "work"


class Stage:
    """A server of its own, and the processes that are started and killed on it."""

    def __init__(self, folder: Path, seed: int, fsync: bool) -> None:
        self.folder = folder
        self.rng = random.Random(f"{seed} crash")
        self.url = embedded_server.start(folder)
        with psycopg.connect(self.url, autocommit=True) as connection:
            if not fsync:
                connection.execute("ALTER SYSTEM SET fsync = off")
            elif sys.platform == "linux":
                # Recovery writes out all files of all databases; one by one that takes seconds.
                connection.execute("ALTER SYSTEM SET recovery_init_sync_method = syncfs")
            connection.execute("SELECT pg_reload_conf()")
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.crash.preload"])
        self._numbers = count()
        self._journals = folder / "journals"
        self._journals.mkdir()
        # Workers go on when the clients stop: they index the changes that are left.
        self._stop_clients, self._stop_workers = folder / "stop-clients", folder / "stop-workers"
        self.running: list[Running] = []

    def spawn(self, target: str, number: int, first: int, url: str = "") -> Running:
        journal = self._journals / f"{next(self._numbers):05d}-{target}.jsonl"
        seed = str(self.rng.random())
        address = f"{url or self.url}&application_name={CLIENT if target != 'work' else 'worker'}"
        stop = self._stop_workers if target == "work" else self._stop_clients
        job = Job(target, address, journal, stop, seed, number, first)
        process = self._context.Process(target=works.run, args=[job], daemon=True)
        process.start()
        started = Running(target, process, job)
        self.running.append(started)
        return started

    def wait_for_all(self) -> None:
        """Wait until every client has begun."""
        wait(
            lambda: (
                all(one.is_worker or one.job.journal.exists() for one in self.running)
                and all(one.is_worker or one.entries for one in self.running)
            ),
            "clients to begin",
        )

    def kill(self, kind: str) -> None:
        """Kill a process with SIGKILL."""
        if kind in ("client", "worker"):
            chosen = self.rng.choice(
                [one for one in self.running if one.is_worker == (kind == "worker")]
            )
            chosen.process.kill()
            chosen.process.join()
            return
        server = postmaster(self.folder)
        children = server.children(recursive=True)
        if kind == "backend":
            clients = [child for child in children if is_client(child)]
            victims = [self.rng.choice(clients or children)]
        else:
            victims = [server, *(children if kind == "group" else [])]
        for victim in victims:
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                continue
        for victim in victims:
            victim.wait(PATIENCE_SECONDS)
        if kind == "backend":
            # Until the postmaster has noticed, and ends the other ones.
            wait(lambda: not psutil.pid_exists(victims[0].pid), "the postmaster")

    def recover(self, kind: str, tally: Tally) -> None:
        """Start the server again if it was killed, and have all clients end.

        Some of them have tried again what they were at, and go on.
        """
        self.url = embedded_server.start(self.folder)
        self._stop_clients.touch()
        for one in self.running:
            if not one.is_worker:
                one.process.join(PATIENCE_SECONDS)
                if one.process.is_alive():
                    tally.broken.append(f"{one.target} hangs after the kill of a {kind}")
                    one.process.kill()
        self._stop_clients.unlink(missing_ok=True)
        # The server may still be at the last statement of a client that is dead.
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait(lambda: not connection.execute(_CLIENTS, [CLIENT]).fetchall(), "dead clients")

    def finish(self, tally: Tally) -> None:
        """End the workers, and see that nothing has failed."""
        self._stop_workers.touch()
        for one in self.running:
            one.process.join(PATIENCE_SECONDS)
            if one.process.is_alive():
                tally.broken.append(f"{one.target} does not stop")
                one.process.kill()
                one.process.join()
            if one.process.exitcode not in (0, -signal.SIGKILL):
                tally.broken.append(f"{one.target} exited with {one.process.exitcode}")
            for entry in one.entries:
                if str(entry.get("ended", "")).startswith("failed"):
                    tally.broken.append(f"{one.target} {entry['ended']}")
        self.running.clear()
        self._stop_workers.unlink()

    def close(self) -> None:
        for one in self.running:
            one.process.kill()
            one.process.join()


_CLIENTS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"


def wait(condition: Callable[[], bool], message: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s for {message}")
        time.sleep(0.02)


def is_client(process: psutil.Process) -> bool:
    """Say whether a process of the server serves a connection to a database of these tests."""
    try:
        title = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return title.startswith(f"postgres: postgres {embedded_server.DATABASE}")


def is_at_work(one: Running) -> bool:
    return one.is_worker and one.process.is_alive()


def pending(connection: Connection) -> bool:
    return bool(connection.execute("SELECT FROM textsim.pending LIMIT 1").fetchall())
