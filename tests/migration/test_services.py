"""Files of systemd, Kubernetes and Docker Compose are valid, and name what exists."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

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
    done = subprocess.run([analyze, "verify", file], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "textsim-worker" in line]
    assert (done.returncode, ours) == (0, [])


def test_the_manifest_runs_a_worker_with_both_probes() -> None:
    manifest = yaml.safe_load((DOCS / "monitoring" / "kubernetes.yml").read_text("utf-8"))
    pod = manifest["spec"]["template"]
    assert manifest["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    check_command(container["args"])
    port = container["args"][container["args"].index("--metrics-port") + 1]
    assert port == str(container["ports"][0]["containerPort"])
    assert port == pod["metadata"]["annotations"]["prometheus.io/port"]
    for name, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
        probe = container[name]["httpGet"]
        assert probe == {"path": path, "port": container["ports"][0]["name"]}
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}


ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.M)


@pytest.mark.parametrize("name", ["install", "worker"])
def test_the_commands_of_docker_compose_exist(name: str) -> None:
    assert instructions("ENTRYPOINT") == ['["textsim-in-container"]']
    assert 'exec textsim "$@"' in DOCKERFILE
    command: Any = typer.main.get_command(app)
    for word in SERVICES[name]["command"]:
        if word.isdigit():
            continue
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


def test_compose_has_one_image_a_health_check_and_no_password_of_ours() -> None:
    worker, manifest = (
        SERVICES["worker"],
        (DOCS / "monitoring" / "kubernetes.yml").read_text("utf-8"),
    )
    assert f"image: {worker['image']}:latest" in manifest
    cache = re.findall(r"^ENV NUMBA_CACHE_DIR=(/home\S+)", DOCKERFILE, re.M)
    assert worker["volumes"] == [f"kernels:{cache[0]}"]
    passwords = {SERVICES["database"]["environment"]["POSTGRES_PASSWORD"]}
    passwords.add(worker["environment"]["PGPASSWORD"])
    assert all(re.fullmatch(r"\$\{TEXTSIM_PASSWORD:\?.+\}", each) for each in passwords)
    assert worker["command"][-2:] == ["--metrics-port", "9464"]
    start, python, *arguments = worker["healthcheck"]["test"]
    assert (start, python) == ("CMD", "python")
    # Without a worker it fails; test_metrics.py asks a worker for the same page.
    done = subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
    assert b"refused" in done.stderr
    assert "9464/healthz" in arguments[1]
