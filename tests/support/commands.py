"""The command line, in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from typer.testing import Result

import textsim_db
from textsim_db.database import URL_VARIABLE

Textsim = Callable[..., Result]

NEWS = {
    "a": "the quick brown fox jumps over the lazy dog near the river bank",
    "b": "The quick, brown fox jumps over the lazy dog near the river bank!",
    "c": "the quick brown fox jumps over the lazy dog near the river",
    "d": "something else that no other document says in these words",
}


def process(*args: str, url: str | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start a command as a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    # Commands run in folders of their own.
    environment["PYTHONPATH"] = str(Path(textsim_db.__file__).parent.parent)
    if url is not None:
        environment[URL_VARIABLE] = url
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-m", "textsim_db.cli", *args],
        text=True,
        env=environment,
        **{**pipes, **options},
    )


def give_first_document(url: str, name: str, started: subprocess.Popen[str]) -> None:
    """Give an index command its first document, and wait for the corpus that it creates then."""
    assert started.stdin is not None
    started.stdin.write('{"id": 1, "text": "some text"}\n')
    started.stdin.flush()
    while started.poll() is None:
        with psycopg.connect(url) as connection:
            query = "SELECT FROM textsim.corpus WHERE name = %s"
            if connection.execute(query, [name]).fetchone() is not None:
                return
        time.sleep(0.05)
    raise AssertionError(f"it ended before there was a corpus {name}: {started.communicate()}")


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def cut_connections(database_url: str, for_good: bool) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        if for_good:
            connection.execute(
                "UPDATE pg_database SET datallowconn = false WHERE datname = current_database()"
            )
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
