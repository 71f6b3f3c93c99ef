"""The README's examples run, in their order, in one database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import platformdirs
import psycopg
import pytest
import typer.main
import yaml
from platformdirs.unix import Unix

from textsim_db.cli import app
from textsim_db.db import embedded_server
from textsim_db.db.embedded_server import DATA_DIR_VARIABLE

pytestmark = pytest.mark.one_server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.S | re.M)


def test_the_examples_run(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    # Mapped classes look for the names of their annotations in their module.
    module = types.ModuleType("readme")
    monkeypatch.setitem(sys.modules, "readme", module)
    for language, code in BLOCKS:
        if language == "python":
            exec(compile(code, "README.md", "exec", dont_inherit=True), vars(module))
        elif language == "console":
            run_console(code, tmp_path)
        elif language == "sql":
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(code.encode())
    assert {"python", "console", "sql", "sh"} == {language for language, _ in BLOCKS}


def run_console(code: str, folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for line in code.splitlines():
        command = line.removeprefix("$ ")
        assert command != line, f"not a command: {line}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_two_commands_stand_first() -> None:
    language, code = BLOCKS[0]
    assert language == "sh"
    assert [line.split("#")[0].strip() for line in code.splitlines()] == ["make demo", "make test"]


def test_every_command_is_in_the_table() -> None:
    first_columns = re.findall(r"^\| (`.*?) \|", README, re.M)
    assert commands() <= set(re.findall(r"`([a-z ]+)[ `]", "\n".join(first_columns)))


def commands() -> set[str]:
    found = set()
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {f"{name} {other}" for other in inner} if inner else {name}
    return found


def test_the_data_directory_is_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", DATA_DIR_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: Unix(name).user_data_path)
    path = f"~/{embedded_server.data_dir().relative_to(Path.home()).as_posix()}"
    assert README.count(path) == 2


def test_the_readme_names_the_address_of_the_compose_file() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    environment = compose["services"]["database"]["environment"]
    user, name = environment["POSTGRES_USER"], environment["POSTGRES_DB"]
    exported = next(code for _, code in BLOCKS if "docker compose up" in code)
    assert f"postgresql://{user}:textsim@127.0.0.1:5432/{name}" in exported
