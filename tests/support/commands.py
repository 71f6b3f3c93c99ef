"""The command line, in this process or in a separate one, and a terminal for its messages."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from typing import Any

import psycopg
import pytest
from typer.testing import Result

import textsim_db
from textsim_db.corpus.database import URL_VARIABLE

Textsim = Callable[..., Result]

NEWS = {
    "a": "the quick brown fox jumps over the lazy dog near the river bank",
    "b": "The quick, brown fox jumps over the lazy dog near the river bank!",
    "c": "the quick brown fox jumps over the lazy dog near the river",
    "d": "something else that no other document says in these words",
}


def process(
    *args: str, url: str | None = None, packages: Path | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Start a command as a separate process; packages: the folder of all packages that it has."""
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    # Each command has its own working directory, so the package must be on the path.
    path = [str(Path(textsim_db.__file__).parent.parent)]
    python = [sys.executable]
    if packages is not None:
        path.append(str(packages))
        python.append("-S")
    environment["PYTHONPATH"] = os.pathsep.join(path)
    if url is not None:
        environment[URL_VARIABLE] = url
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*python, "-m", "textsim_db.cli", *args], text=True, env=environment, **{**pipes, **options}
    )


def give_first_document(url: str, name: str, started: subprocess.Popen[str]) -> None:
    """Send documents to an index command until it has created the corpus and reads on."""
    assert started.stdin is not None
    is_created = False
    while started.poll() is None:
        started.stdin.write('{"id": 1, "text": "some text"}\n')
        started.stdin.flush()
        while started.poll() is None and ioctl(started.stdin, FIONREAD, bytes(4)) != bytes(4):
            time.sleep(0.05)
        if is_created:
            return
        with psycopg.connect(url) as connection:
            query = "SELECT FROM textsim.corpus WHERE name = %s"
            is_created = connection.execute(query, [name]).fetchone() is not None
    raise AssertionError(f"the command ended without a corpus {name}: {started.communicate()}")


def rows(result: Result) -> list[dict[str, Any]]:
    """Return the lines of JSON that a command printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def cut_connections(database_url: str, for_good: bool) -> None:
    """End all other connections to a database; for_good: and allow no new ones."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        if for_good:
            close = "UPDATE pg_database SET datallowconn = false WHERE datname = "
            connection.execute(f"{close}current_database()".encode())
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


class Terminal(io.StringIO):
    """Remembers what is written to it."""

    def isatty(self) -> bool:
        return True


def replace_standard_error(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal of 120 columns that stands in for standard error."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return terminal
