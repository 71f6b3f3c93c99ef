"""Files of systemd, Kubernetes and Docker Compose are valid, and name what exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.main
import yaml

import textsim_db
from tests.support.servers import EMBEDDED_VERSIONS, programs_of, run_server
from textsim_db.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "run-the-worker-in-production.md").read_text("utf-8")


def check_command(words: list[str]) -> None:
    """Parse the arguments of textsim, without running the command."""
    group = typer.main.get_command(app)
    command = group.get_command(None, words[0])  # type: ignore[attr-defined, unused-ignore]
    command.make_context(words[0], words[1:])


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    (unit,) = [u for u in re.findall(r"```ini\n(.*?)```", PAGE, re.S) if "[Service]" in u]
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    program, *arguments = start.split()
    check_command(arguments)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    file = tmp_path / "textsim-worker@.service"
    file.write_text(unit.replace(program, "/bin/true"))
    done = subprocess.run([analyze, "verify", file], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "textsim-worker" in line]
    assert (done.returncode, ours) == (0, [])


def test_the_manifest_runs_a_worker_with_all_probes() -> None:
    manifest = yaml.safe_load((DOCS / "monitoring" / "kubernetes.yml").read_text("utf-8"))
    pod = manifest["spec"]["template"]
    assert manifest["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    check_command(container["args"])
    port = container["args"][container["args"].index("--metrics-port") + 1]
    assert port == str(container["ports"][0]["containerPort"])
    assert port == pod["metadata"]["annotations"]["prometheus.io/port"]
    probes = {"startup": "/healthz", "readiness": "/readyz", "liveness": "/healthz"}
    for name, path in probes.items():
        probe = container[f"{name}Probe"]["httpGet"]
        assert probe == {"path": path, "port": container["ports"][0]["name"]}
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
    assert container["image"].endswith(f"/textsim-db:{textsim_db.__version__}")
    assert container["imagePullPolicy"] == "IfNotPresent"
    resources = container["resources"]
    assert (*resources["requests"], *resources["limits"]) == ("cpu", "memory", "memory")
    # The restricted profile of the Pod Security Standards.
    security = container["securityContext"] | pod["spec"]["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.M)


def test_the_image_has_all_commands() -> None:
    named = re.findall(r"'(?:\.|textsim-db)\[(.*?)\]'", DOCKERFILE)
    extras = {frozenset(names.split(",")) for names in named}
    assert {"languages", "mcp", "prometheus", "review"} <= frozenset.intersection(*extras)


def test_the_worker_of_docker_compose_is_a_command() -> None:
    assert instructions("ENTRYPOINT") == ['["textsim-in-container"]']
    assert 'exec textsim "$@"' in DOCKERFILE
    check_command(SERVICES["worker"]["command"])


PASSWORD = r"""it's "a" \password"""


@pytest.mark.more
def test_the_worker_of_docker_compose_has_few_rights(tmp_path: Path) -> None:
    """Run what the services run, on a new server."""
    programs = programs_of(EMBEDDED_VERSIONS[-1])
    assert programs is not None
    program = tmp_path / "textsim-in-container"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m textsim_db.cli "$@"\n')
    program.chmod(0o755)
    folders = f"{tmp_path}:{Path(sys.executable).parent}:{programs}:{os.environ['PATH']}"
    path = {"PATH": folders, "PYTHONPATH": str(ROOT)}
    server = SERVICES["database"]["environment"]
    settings = {name: value for name, value in server.items() if name.startswith("POSTGRES_")}
    settings |= {"TEXTSIM_PASSWORD": PASSWORD, "TEXTSIM_WORKER_PASSWORD": PASSWORD}
    with tempfile.TemporaryDirectory(prefix="ts-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with run_server(programs, folder) as url, psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {server['POSTGRES_DB']} ENCODING 'UTF8'".encode())
            host = {"PGHOST": str(folder / "data")}
            (script,) = [each for each in SERVICES["database"]["volumes"] if "initdb.d" in each]
            run(["sh", ROOT / script.partition(":")[0]], path | host | settings)

            def address(service: str) -> str:
                of_service = SERVICES[service]["environment"]["TEXTSIM_DATABASE_URL"]
                return f"{of_service.replace('@database', '@')}?host={host['PGHOST']}"

            install = SERVICES["install"]
            command = [*install["entrypoint"], *install["command"]]
            for _ in range(2):  # the second start changes nothing
                run(command, path | {"TEXTSIM_DATABASE_URL": address("install")})
            with textsim_db.connect(address("install")) as owner:
                with psycopg.connect(address("install"), autocommit=True) as connection:
                    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
                    corpus = owner.create_corpus("c")
                    corpus.attach("t", "id", "body")
                    connection.execute("INSERT INTO t VALUES (1, 'some words of a row')")
                words = [str(program), SERVICES["worker"]["command"][0], "--once"]
                run(words, path | {"TEXTSIM_DATABASE_URL": address("worker")})
                assert "1" in corpus
            roles = admin.execute(
                "SELECT rolname, rolsuper, rolpassword IS NULL, pg_has_role(rolname, 'app', 'MEMBER') "
                "FROM pg_authid WHERE rolname IN ('app', 'indexer', 'postgres') ORDER BY 1"
            ).fetchall()
            assert roles == [
                ("app", False, False, True),
                ("indexer", False, False, False),
                ("postgres", True, True, True),
            ]


def run(command: list[str | Path], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*/compose.yml")), ids=str)
def test_a_schema_of_an_example_is_run_wholly_or_not_at_all(file: Path) -> None:
    text = file.read_text("utf-8")
    for script in re.findall(r"psql .*-f .*|\| *psql.*", text):
        assert {"-X", "-1", "ON_ERROR_STOP=1"} <= set(script.split())


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


def test_compose_has_one_image_a_health_check_and_no_password_of_ours() -> None:
    worker = SERVICES["worker"]
    assert {service["image"] for service in SERVICES.values()} == {"postgres:18", "textsim-db"}
    cache = re.findall(r"^ENV NUMBA_CACHE_DIR=(/home\S+)", DOCKERFILE, re.M)
    assert worker["volumes"] == [f"kernels:{cache[0]}"]
    passwords = {
        value
        for service in SERVICES.values()
        for name, value in service["environment"].items()
        if "PASSWORD" in name
    }
    own = {each for each in passwords if not re.fullmatch(r"\$\{TEXTSIM_PASSWORD:\?.+\}", each)}
    assert own == {"${TEXTSIM_WORKER_PASSWORD:-$TEXTSIM_PASSWORD}"}
    assert worker["environment"]["PGPASSWORD"] in own
    assert worker["command"][-2:] == ["--metrics-port", "9464"]
    assert SERVICES["install"]["healthcheck"] == {"disable": True}
    (address,) = (text for text in instructions("ENV") if "healthz" in text)
    assert "9464/healthz" in address
    (check,) = instructions("HEALTHCHECK")
    python, *arguments = json.loads(check.partition("CMD ")[2])
    assert python == "python"
    # Without a worker it fails; test_metrics.py asks a worker for the same page.
    environment = {**os.environ, **dict([address.split("=")])}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True)
    assert b"refused" in done.stderr
