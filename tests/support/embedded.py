"""Embedded servers that one test or a long program starts and stops in a temporary folder."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

import textsim_db as ts
from tests.support.servers import new_folder
from textsim_db.db import embedded_server

SERVER_VERSION = embedded_server.SERVER_VERSION


@contextmanager
def server_folder() -> Iterator[Path]:
    folder = new_folder("te-")
    try:
        yield folder
    finally:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder)
            for version in (16, 18):
                stack.callback(embedded_server.stop, folder, version)


@contextmanager
def served() -> Iterator[str]:
    """Start a server with the schema, and yield its address."""
    with server_folder() as folder:
        url = embedded_server.start(folder)
        ts.install(url)
        yield url


def start_worker(url: str, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "textsim_db.cli", "worker", "--log-level", "warning", *options],
        env={**os.environ, "TEXTSIM_DATABASE_URL": url},
    )


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments of a long program, and print its seed."""
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    # However the run ends, the server must not outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"--seed {arguments.seed}", flush=True)
    return arguments


def postmaster(folder: Path, version: int = SERVER_VERSION) -> psutil.Process:
    cluster = folder / f"postgresql-{version}"
    process = psutil.Process(int((cluster / "postmaster.pid").read_text().split("\n", 1)[0]))
    assert str(cluster) in process.cmdline(), "the process is not a server of this test"
    return process


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_postmaster(folder: Path) -> None:
    """Kill the postmaster of this test, as a machine that is out of memory does."""
    process = postmaster(folder)
    process.kill()
    process.wait(30)
