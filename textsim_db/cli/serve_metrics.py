"""Metrics as text for Prometheus, and the port of a worker that serves them with two probes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from textsim_db import results
from textsim_db.errors import DatabaseError

Probe = Callable[[], str | None]
"""Returns why a worker fails the probe; None if it passes."""
_REQUEST_SECONDS = 10.0
_TEXT = "text/plain; charset=utf-8"


def exposition(metrics: Iterable[results.Metric]) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(metrics))
    return generate_latest(registry).decode()


class _Families(Collector):
    def __init__(self, metrics: Iterable[results.Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        for name, group in groupby(self._metrics, key=lambda metric: metric.name):
            rows = list(group)
            names = sorted(rows[0].labels)
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name, rows[0].help, labels=names)
            for row in rows:
                family.add_metric([row.labels[label] for label in names], row.value)
            yield family


def _up(value: float) -> results.Metric:
    return results.Metric("textsim_up", {}, value, "Whether the database could be asked.")


class _MetricsServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Log no error: a client may end the connection before the answer, as after a time-out."""


@contextmanager
def served(
    host: str, port: int, read: Callable[[], list[results.Metric]], probes: dict[str, Probe]
) -> Iterator[str]:
    """Serve /metrics and the probes, such as /healthz, until the block ends; yield the address.

    port: 0 is any free port. Raises OSError if the port is in use.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, CONTENT_TYPE_PLAIN_0_0_4, _scrape(read))
            elif path in probes:
                fault = probes[path]()
                self._answer(503 if fault else 200, _TEXT, f"{fault or 'ok'}\n")
            else:
                paths = ", ".join(["/metrics", *probes])
                self._answer(404, _TEXT, f"expected one of {paths}\n")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log no requests: there is one every few seconds."""

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with _MetricsServer((host, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="textsim-metrics", daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _scrape(read: Callable[[], list[results.Metric]]) -> str:
    try:
        return exposition([*read(), _up(1)])
    except DatabaseError:
        return exposition([_up(0)])
