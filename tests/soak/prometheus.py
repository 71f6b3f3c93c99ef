"""A Prometheus of its own that scrapes workers every second, with the rules of docs/monitoring."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.waiting import wait_for

RULES = Path(__file__).parents[2] / "docs" / "monitoring" / "alerts.yml"
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_SMALLEST_TIME = 60
"""A number of a rule is a time in seconds from here on; smaller numbers are counts."""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


def faster_rules(text: str, factor: float) -> dict[str, Any]:
    """Return alert rules with their times divided by a factor: for, ranges, limits in seconds."""

    def shorter(match: re.Match[str]) -> str:
        return f"{round(int(match[1]) * _SECONDS[match[2]] / factor)}s"

    def lower(match: re.Match[str]) -> str:
        number = int(match[0])
        return str(round(number / factor)) if number >= _SMALLEST_TIME else match[0]

    rules: dict[str, Any] = yaml.safe_load(text)
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        limits = re.sub(r"(?<=[<>] )\d+\b", lower, rule["expr"])
        rule["expr"] = re.sub(r"\b(\d+)([smh])\b", shorter, limits)
        if "for" in rule:
            rule["for"] = re.sub(r"(\d+)([smh])", shorter, rule["for"])
    return rules


class Alert(NamedTuple):
    """An alert that fires."""

    name: str
    labels: str
    """Its labels except its severity, such as a corpus or a worker."""


class Prometheus:
    """Asks a Prometheus."""

    def __init__(self, address: str) -> None:
        self.address = address

    def firing(self) -> set[Alert]:
        alerts = self._ask("alerts")["alerts"]
        return {
            Alert(labels.pop("alertname"), ", ".join(sorted(labels.values())))
            for labels in (
                {k: v for k, v in alert["labels"].items() if k not in ("severity", "job")}
                for alert in alerts
                if alert["state"] == "firing"
            )
        }

    def value(self, query: str) -> float | None:
        """Return the value of a query; None if it has none."""
        found = self._ask(f"query?query={urllib.parse.quote(query)}")["result"]
        return float(found[0]["value"][1]) if found else None

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready") as answer:
                return bool(answer.status == 200)
        except urllib.error.URLError:
            return False

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]


def is_installed() -> bool:
    return shutil.which("prometheus") is not None


@contextmanager
def prometheus(folder: Path, ports: Sequence[int], factor: float) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes these ports, with the rules' times divided by factor."""
    (folder / "alerts.yml").write_text(yaml.safe_dump(faster_rules(RULES.read_text(), factor)))
    config = {
        "global": {
            "scrape_interval": "1s",
            "scrape_timeout": "1s",
            "evaluation_interval": "1s",
        },
        "rule_files": ["alerts.yml"],
        "scrape_configs": [
            {
                "job_name": "textsim",
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'series'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            asked = Prometheus(f"http://{address}")
            wait_for(asked.is_ready)
            yield asked
        finally:
            process.terminate()
            process.wait(60)
