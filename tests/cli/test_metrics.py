"""Metrics for Prometheus, probes, and the files of docs/monitoring in the programs that read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import textsim_db as ts
from tests.support.commands import Textsim, process
from tests.support.connections import Connection
from tests.support.proxy import Proxy
from tests.support.waiting import wait_for
from textsim_db.cli import serve_metrics
from textsim_db.sync.worker_state import (
    ALIVE_SECONDS,
    READY_SECONDS,
    Progress,
    Report,
    why_not_ready,
    why_stuck,
)

FILES = Path(__file__).parents[2] / "docs" / "monitoring"


def program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read the text format with the parser of the official library."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def described_names(connection: Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM textsim._metric_descriptions()").fetchall()
    return {name for (name,) in rows} | {"textsim_up"}


def fetch(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def attach_table(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('c')")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    connection.execute("INSERT INTO t VALUES (0, 'a text')")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")


def test_status_prints_the_metrics(textsim: Textsim, db: ts.Database) -> None:
    name = 'with "quotes" and \\'
    db.create_corpus(name).add("a", "some text")
    text = textsim("status", "--prometheus").stdout
    assert samples(text)["textsim_documents", frozenset({("corpus", name)})] == 1
    assert "# TYPE textsim_written_documents_total counter" in text
    assert "# TYPE textsim_documents gauge" in text


def test_promtool_accepts_the_names(textsim: Textsim, db: ts.Database) -> None:
    promtool = program("promtool")
    db.create_corpus("c", is_unique=True).track()
    text = textsim("status", "--prometheus").stdout
    command = [promtool, "check", "metrics"]
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_status_fails_by_a_lag(textsim: Textsim, db: ts.Database, connection: Connection) -> None:
    attach_table(connection)
    textsim("status", "--max-lag", "60")
    connection.execute("UPDATE textsim.pending SET created_at = now() - interval '61 s'")
    late = textsim("status", "--max-lag", "60", status=1)
    assert "a change has waited for 61" in late.stderr
    textsim("status", "--max-lag", "600")
    db.worker().run(until_idle=True)
    textsim("status", "--max-lag", "0")
    corpus = db.corpus("c")
    corpus.track()
    corpus.add("a", "some text")
    connection.execute("UPDATE textsim.pending SET created_at = now() - interval '61 s'")
    textsim("status", "--max-lag", "60", status=1)  # tracked clusters are too old
    refused = textsim("status", "--max-lag", "5", "--watch", "1", status=2)
    assert "--max-lag" in refused.stderr


@contextmanager
def served_worker(url: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a worker with a port of metrics, and yield its process and the address."""
    started = process("worker", "--metrics-port", "0", "--log-json", *options, url=url)
    try:
        assert started.stderr is not None
        for line in started.stderr:
            if address := json.loads(line).get("address"):
                break
        else:
            raise AssertionError(f"the worker ended with status {started.wait()}")
        yield started, address
    finally:
        started.send_signal(signal.SIGCONT)
        started.terminate()
        started.communicate(timeout=60)


@pytest.mark.more
def test_a_worker_serves_probes(proxy: Proxy, db: ts.Database, connection: Connection) -> None:
    attach_table(connection)
    connection.execute("INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 5) i")
    with served_worker(proxy.url) as (started, address):
        wait_for(lambda: fetch(f"{address}/readyz")[0] == 200)
        assert fetch(f"{address}/healthz") == (200, "ok\n")
        assert fetch(f"{address}/other")[0] == 404
        worker = frozenset({("worker", f"{os.uname().nodename}:{started.pid}")})
        written = ("textsim_worker_written_documents_total", worker)
        wait_for(lambda: samples(fetch(f"{address}/metrics")[1]).get(written) == 6)
        scraped = samples(fetch(f"{address}/metrics")[1])
        assert scraped["textsim_up", frozenset()] == 1
        assert scraped["textsim_documents", frozenset({("corpus", "c")})] == 6
        # Without a server the worker is not ready, but starting it again would not help.
        proxy.cut = lambda proxy, data: "before"
        wait_for(lambda: fetch(f"{address}/readyz")[0] == 503)
        assert "tries again" in fetch(f"{address}/readyz")[1]
        assert fetch(f"{address}/healthz")[0] == 200
        assert samples(fetch(f"{address}/metrics")[1]) == {("textsim_up", frozenset()): 0}
        proxy.cut = lambda proxy, data: None
        wait_for(lambda: fetch(f"{address}/readyz")[0] == 200)
        # A stopped process answers no probe.
        started.send_signal(signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            urllib.request.urlopen(f"{address}/healthz", timeout=0.5)


def a_report(**fields: Any) -> Report:
    return Progress().report()._replace(claimed=0.1, **fields)


def test_probes_fail_without_progress() -> None:
    assert why_not_ready(Progress().report(), 0) == "it has not looked for changes yet"
    assert why_not_ready(a_report(), 0) is None
    slow = a_report(step="writes documents", step_began=READY_SECONDS + 1)
    assert why_not_ready(slow, 0) == "it writes documents for 61 s"
    assert why_not_ready(slow, 5) is None  # a worker that polls every 5 s may wait for as long
    assert why_stuck(slow, 0) is None
    stuck = a_report(step="writes documents", step_began=ALIVE_SECONDS + 1)
    assert why_stuck(stuck, 0) == "it writes documents for 601 s"
    failing = a_report(failed=0.05, error="the disk is full")
    assert why_not_ready(failing, 0) == "it tries again: the disk is full"
    assert why_stuck(failing, 0) is None
    assert why_not_ready(a_report(failed=5.0), 0) is None


def test_a_port_in_use_or_out_of_range(textsim: Textsim) -> None:
    with serve_metrics.served("127.0.0.1", 0, list, {}) as address:
        port = address.rpartition(":")[2]
        assert "in use" in textsim("worker", "--metrics-port", port, status=2).stderr
    assert "65535" in textsim("worker", "--metrics-port", "70000", status=2).stderr


def expressions() -> list[str]:
    """Return the queries of the dashboard, with values for its variables."""
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [q.replace("$corpus", ".*").replace("$__rate_interval", "1m") for q in queries]


def test_the_dashboard_and_the_rules_use_metrics_that_exist(connection: Connection) -> None:
    names = described_names(connection)
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for text in (*expressions(), (FILES / "alerts.yml").read_text()):
        assert set(re.findall(r"textsim_\w+", text)) <= names
    shown = set(re.findall(r"textsim_\w+", " ".join(expressions())))
    assert {name for name in names if "timestamp" not in name} - shown == {
        "textsim_doubtful_age_seconds",
        "textsim_pending_tables",
        "textsim_worker_clustered_documents_total",
    }


def test_promtool_accepts_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    promtool = program("promtool")
    rules = [{"record": f"query:{i}", "expr": each} for i, each in enumerate(expressions())]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    subprocess.run([promtool, "check", "rules", file], check=True)


ALERTS: dict[str, dict[str, str]] = {
    "TextsimDatabaseUnreachable": {'textsim_up{instance="i"}': "0x20"},
    "TextsimNoMetrics": {'textsim_up{instance="i"}': "_x20", "textsim_workers_running": "_x20"},
    "TextsimNoWorker": {
        "textsim_workers_running": "0x20",
        'textsim_pending_age_seconds{corpus="c",kind="change"}': "0+60x20",
    },
    "TextsimLag": {'textsim_pending_age_seconds{corpus="c",kind="change"}': "0+60x20"},
    "TextsimWorkerStuck": {'textsim_worker_busy_seconds{worker="w"}': "0+60x20"},
    "TextsimWorkerSilent": {'textsim_worker_last_report_timestamp_seconds{worker="w"}': "0x20"},
    "TextsimWorkerRetries": {'textsim_worker_retries_total{worker="w"}': "0+1x20"},
    "TextsimFailedDocuments": {'textsim_failed_documents{corpus="c"}': "1x20"},
    "TextsimTableProblem": {'textsim_table_problems{corpus="c"}': "2x20"},
    "TextsimDoubtfulWait": {'textsim_doubtful_age_seconds{corpus="c"}': "86400+60x20"},
    "TextsimManyTwins": {'textsim_refused_twins_total{corpus="c"}': "0+60x20"},
}
"""By alert: series that fire it, one value for each minute."""
NOTHING: tuple[str, dict[str, str]] = ("nothing", {})
WELL = {
    'textsim_up{instance="i"}': "1x20",
    "textsim_workers_running": "1x20",
    'textsim_pending_age_seconds{corpus="c",kind="change"}': "5x20",
    # Documents that only wait for ids are complete.
    'textsim_pending_age_seconds{corpus="c",kind="words"}': "0+60x20",
    'textsim_worker_busy_seconds{worker="w"}': "1x20",
    'textsim_worker_last_report_timestamp_seconds{worker="w"}': "0+60x20",
    'textsim_worker_retries_total{worker="w"}': "7x20",
    'textsim_failed_documents{corpus="c"}': "0x20",
    'textsim_table_problems{corpus="c"}': "0x20",
    'textsim_doubtful_age_seconds{corpus="c"}': "3600+60x20",
    'textsim_refused_twins_total{corpus="c"}': "0+30x20",
    'textsim_written_documents_total{corpus="c"}': "0+50x20",
}


def test_each_alert_fires_and_none_without_reason(tmp_path: Path) -> None:
    promtool = program("promtool")
    rules = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
    assert {rule["alert"] for rule in rules} == ALERTS.keys()
    tests = []
    for fired, changed in [*ALERTS.items(), NOTHING]:
        series = [{"series": name, "values": given} for name, given in (WELL | changed).items()]
        # ALERTS is a series of Prometheus that has a value for each alert that fires.
        query = 'group by (alertname) (ALERTS{alertstate="firing"})'
        expected = {fired} - {"nothing"}
        if fired == "TextsimNoWorker":  # then the changes also wait for long
            expected |= {"TextsimLag"}
        labels = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)]
        tests.append(
            {
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": [{"expr": query, "eval_time": "15m", "exp_samples": labels}],
            }
        )
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILES / "alerts.yml")], "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", file], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    with serve_metrics.served("127.0.0.1", 0, list, {}) as address:
        return int(address.rpartition(":")[2])


def test_postgres_exporter_same(database_url: str, db: ts.Database, connection: Connection) -> None:
    exporter = program("prometheus-postgres-exporter")
    corpus = db.create_corpus("c", is_unique=True, unique_from=0.9)
    corpus.track()
    corpus.add("a", "some text")
    with psycopg.connect(database_url) as opened:
        host, socket_port = opened.info.host, opened.info.port
        name, user = opened.info.dbname, opened.info.user
    port = free_port()
    source = f"host={host} port={socket_port} dbname={name} user={user} sslmode=disable"
    environment = {**os.environ, "DATA_SOURCE_NAME": source}
    options = ["--disable-default-metrics", "--disable-settings-metrics", "--log.level=error"]
    started = subprocess.Popen(
        [
            *(exporter, *options, f"--web.listen-address=127.0.0.1:{port}"),
            f"--extend.query-path={FILES / 'postgres-exporter.yml'}",
        ],
        env=environment,
    )
    address = f"http://127.0.0.1:{port}/metrics"
    try:

        def is_listening() -> bool:
            try:
                return "textsim_documents" in fetch(address)[1]
            except urllib.error.URLError:
                return False

        wait_for(is_listening)
        exported = {
            (name, labels - {pair for pair in labels if pair[0] == "server"}): value
            for (name, labels), value in samples(fetch(address)[1]).items()
        }
    finally:
        started.terminate()
        started.wait()
    own = samples(serve_metrics.exposition(db.metrics()))
    assert own
    for key, value in own.items():
        if key[0] == "textsim_pending_age_seconds":
            assert key in exported
        else:
            assert exported[key] == value, key
