"""What docker-compose.yml starts: a database, the schema in it, and then a worker."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from textsim_db.cli import app
from textsim_db.database import URL_VARIABLE
from textsim_db.db.engine import sqlalchemy_url

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ["install", "worker"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.M)


def test_what_waits_for_what() -> None:
    assert list(SERVICES) == ["database", *OURS]
    healthy = {"condition": "service_healthy"}
    assert "healthcheck" in SERVICES["database"]
    assert SERVICES["install"]["depends_on"] == {"database": healthy}
    # up --wait takes a service that has ended for a failure, unless another one waits for that.
    assert SERVICES["worker"]["depends_on"] == {
        "database": healthy,
        "install": {"condition": "service_completed_successfully"},
    }
    assert "restart" not in SERVICES["install"]
    assert SERVICES["worker"]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", OURS)
def test_the_address_is_that_of_the_database(name: str) -> None:
    database = SERVICES["database"]["environment"]
    environment = SERVICES[name]["environment"]
    url = sqlalchemy_url(environment[URL_VARIABLE])
    assert (url.host, url.port) == ("database", None)
    assert (url.username, url.database) == (database["POSTGRES_USER"], database["POSTGRES_DB"])
    # Not in the address, where some characters have a meaning.
    assert url.password is None
    assert environment["PGPASSWORD"] == database["POSTGRES_PASSWORD"]


@pytest.mark.parametrize(
    "name",
    [
        "install",
        "worker",
    ],
)
def test_the_commands_exist(name: str) -> None:
    assert instructions("ENTRYPOINT") == ['["textsim"]']
    command: Any = typer.main.get_command(app)
    for word in SERVICES[name]["command"]:
        command = getattr(command, "commands", {}).get(word)
        assert command is not None, word


def test_the_image() -> None:
    assert {SERVICES[name]["build"] for name in OURS} == {"."}
    assert len(set(instructions("FROM")[-1].split())) == 1
    python = instructions("FROM")[-1].removeprefix("python:").removesuffix("-slim")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]
    assert instructions("USER") == ["textsim"]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert not any("embedded" in line for line in instructions("RUN"))


def test_what_the_wheel_is_built_from_is_sent() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    assert all((ROOT / name).exists() for name in sent)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, wheel = pyproject["project"], pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]
    built_from = {project["readme"], *project["license-files"]}
    built_from |= {*wheel["packages"], *wheel["force-include"], "pyproject.toml"}
    options = shlex.split(instructions("RUN")[0])
    assert sent == built_from | {options[options.index("--constraint") + 1]}
