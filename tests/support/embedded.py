"""Embedded servers that one test starts and stops in a temporary folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

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
