"""The unit of systemd and the manifest of Kubernetes are valid, and their commands exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

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
