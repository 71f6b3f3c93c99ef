"""The image and docker-compose.yml use commands and files that exist."""

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

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.M)


@pytest.mark.parametrize("name", ["install", "worker"])
def test_the_commands_of_docker_compose_exist(name: str) -> None:
    assert instructions("ENTRYPOINT") == ['["textsim"]']
    command: Any = typer.main.get_command(app)
    for word in SERVICES[name]["command"]:
        if word.startswith("--"):
            options = [opt for option in command.params for opt in option.opts]
            assert word in [*options, *(opt for o in command.params for opt in o.secondary_opts)]
            continue
        command = getattr(command, "commands", {}).get(word)
        assert command is not None, word


def test_the_image_gets_the_files_that_the_wheel_is_built_from() -> None:
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
