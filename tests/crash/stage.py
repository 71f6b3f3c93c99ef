"""The server of the crash tests, and the processes that work on it."""

from __future__ import annotations

import multiprocessing
import random
import signal
import sys
from dataclasses import dataclass
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.crash import works
from tests.crash.checks import Findings
from tests.crash.works import Job, read
from tests.support.connections import Connection
from tests.support.embedded import postmaster
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from textsim_db.db import embedded_server

CLIENT = "killed-client"
SETTINGS: dict[str, Any] = {"shingle": "word:2", "num_hashes": 32, "passages": 4}
REBUILT_DOCUMENTS = 2000
FIRST = 100_000
"""Distance between the first versions of two kills, so that each kill writes new texts."""


@dataclass
class Running:
    """A running process."""

    target: str
    """The function of works.py that it runs."""
    process: BaseProcess
    job: Job

    @property
    def entries(self) -> list[dict[str, Any]]:
        return read(self.job.journal)

    @property
    def is_worker(self) -> bool:
        return self.target == "work"


class Stage:
    """An embedded server, and the processes that are started and killed on it."""

    def __init__(self, folder: Path, seed: int, fsync: bool) -> None:
        self.folder = folder
        self.rng = random.Random(f"{seed} crash")
        self.url = embedded_server.start(folder)
        with psycopg.connect(self.url, autocommit=True) as connection:
            if not fsync:
                connection.execute("ALTER SYSTEM SET fsync = off")
            elif sys.platform == "linux":
                # Recovery syncs all files of all databases; file by file that takes seconds.
                connection.execute("ALTER SYSTEM SET recovery_init_sync_method = syncfs")
            connection.execute("SELECT pg_reload_conf()")
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.crash.preload"])
        self._numbers = count()
        self._journals = folder / "journals"
        self._journals.mkdir()
        # Workers go on when the clients stop, to index the remaining changes.
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
        wait_for(lambda: all(running.is_worker or running.entries for running in self.running))

    def kill(self, kind: str) -> None:
        """Kill a process with SIGKILL."""
        if kind in ("client", "worker"):
            is_worker = kind == "worker"
            chosen = self.rng.choice([each for each in self.running if each.is_worker == is_worker])
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
            # The backend is gone when the postmaster has noticed, and ends the other backends.
            wait_for(lambda: not psutil.pid_exists(victims[0].pid))

    def recover(self, kind: str, findings: Findings) -> None:
        """Start the server again if it was killed, and end all clients.

        Some clients have repeated their transaction, and go on until they are stopped.
        """
        self.url = embedded_server.start(self.folder)
        self._stop_clients.touch()
        for running in self.running:
            if not running.is_worker:
                running.process.join(PATIENCE_SECONDS)
                if running.process.is_alive():
                    findings.problems.append(f"{running.target} hangs after the kill of a {kind}")
                    running.process.kill()
        self._stop_clients.unlink(missing_ok=True)
        # The server may still run the last statement of a dead client.
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait_for(lambda: not connection.execute(_CLIENTS, [CLIENT]).fetchall())

    def finish(self, findings: Findings) -> None:
        """Stop the workers, and record processes that failed or hang."""
        self._stop_workers.touch()
        for running in self.running:
            running.process.join(PATIENCE_SECONDS)
            if running.process.is_alive():
                findings.problems.append(f"{running.target} does not stop")
                running.process.kill()
                running.process.join()
            if running.process.exitcode not in (0, -signal.SIGKILL):
                findings.problems.append(f"{running.target} exited with {running.process.exitcode}")
            for entry in running.entries:
                if str(entry.get("ended", "")).startswith("failed"):
                    findings.problems.append(f"{running.target} {entry['ended']}")
        self.running.clear()
        self._stop_workers.unlink()

    def close(self) -> None:
        for running in self.running:
            running.process.kill()
            running.process.join()


_CLIENTS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"


def is_client(process: psutil.Process) -> bool:
    """Return whether a process of the server serves a connection to a database of these tests."""
    try:
        title = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return title.startswith(f"postgres: postgres {embedded_server.DATABASE}")


def is_at_work(running: Running) -> bool:
    return running.is_worker and running.process.is_alive()


def pending(connection: Connection) -> bool:
    return bool(connection.execute("SELECT FROM textsim.pending LIMIT 1").fetchall())
