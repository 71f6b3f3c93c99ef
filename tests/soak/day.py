"""Live through a day of faults in ten minutes, and print what an operator sees in Prometheus.

    python -m tests.soak.day

The test attaches a partitioned table on an embedded server whose disk is small. A client changes
rows all the time. Two workers serve their metrics, and start again when they end, as a service
manager does. A real Prometheus scrapes only the workers. It has the rules of
docs/monitoring/alerts.yml, whose times are divided by six: an alert of one minute fires after ten
seconds. A minute of the test stands for 2.4 hours.

The command prints for each minute the figures of Prometheus, and when alerts begin and end. It
exits with 1 and the reasons if an event does not raise its alert, if an alert still fires at the
end, or if the table and its documents differ. It needs the program prometheus. The full disk needs
the right to mount a file system.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.soak.prometheus import Alert, Prometheus, free_port, is_installed, prometheus
from tests.soak.week import (
    WORKERS,
    Week,
    busy,
    drop_partition,
    full_disk,
    lose_server,
    run,
    update_all,
    wait_until_current,
)
from tests.support.waiting import wait_for

FACTOR = 6.0
"""By which the times of the alert rules are divided."""
HOURS_OF_A_MINUTE = 2.4
FAULT_SECONDS = 45.0
"""How long each fault lasts: longer than the rules wait."""


@dataclass
class Day(Week):
    """The server, its client, and workers with ports of metrics."""

    ports: list[int] = field(default_factory=lambda: [free_port() for _ in range(WORKERS)])
    is_kept: threading.Event = field(default_factory=threading.Event)
    """Whether workers that have ended start again."""
    began: float = field(default_factory=time.monotonic)

    def start_worker(self, number: int) -> subprocess.Popen[bytes]:
        return self.run_worker("--metrics-port", str(self.ports[number]), "--log-level", "error")

    def keep_workers(self) -> None:
        while not self.stop.wait(0.5):
            if self.is_kept.is_set():
                self.start_ended_workers()

    def note(self, text: str) -> None:
        """Print what happens, with the seconds since the beginning and the hour of the day."""
        seconds = time.monotonic() - self.began
        hour, minute = divmod(int(seconds * HOURS_OF_A_MINUTE), 60)
        print(f"{seconds:6.0f} s  {hour:02}:{minute:02}  {text}", flush=True)


# The events.


def kill_worker(day: Day) -> None:
    """Kill one of two workers; its machine is away."""
    day.is_kept.clear()
    day.workers[0].kill()
    time.sleep(FAULT_SECONDS)
    day.is_kept.set()


def stop_worker(day: Day) -> None:
    """Stop one of two workers, as a frozen machine does."""
    day.workers[1].send_signal(signal.SIGSTOP)
    time.sleep(FAULT_SECONDS)
    day.workers[1].send_signal(signal.SIGCONT)


def kill_all_workers(day: Day) -> None:
    """No worker starts again, as after a failed deployment."""
    day.is_kept.clear()
    for worker in day.workers:
        worker.kill()
    time.sleep(FAULT_SECONDS)
    day.is_kept.set()


def fill_disk(day: Day) -> None:
    # Longer texts: their documents do not fit into the space that vacuum has freed.
    day.execute("UPDATE post SET body = concat_ws(' g ', body, body, body)")
    with full_disk(day, FAULT_SECONDS):
        pass


SILENT = "TextsimWorkerSilent"
"""Fires for a killed worker until a new worker starts and removes its row."""


class Event(NamedTuple):
    """Something that happens during the day."""

    second: float
    """When it begins, if the events before it are over."""
    name: str
    happen: Callable[[Day], None]
    alerts: frozenset[str] = frozenset()
    """One of these must fire before the next event; none: no alert is expected."""


EVENTS = (
    Event(
        30,
        "one worker is killed, and starts again later",
        kill_worker,
        frozenset({SILENT}),
    ),
    Event(
        120,
        "one worker is stopped (SIGSTOP), and goes on later",
        stop_worker,
        frozenset({SILENT}),
    ),
    Event(200, "all rows are updated", update_all),
    Event(
        270,
        "the server is stopped, and starts again later",
        partial(lose_server, seconds=FAULT_SECONDS),
        frozenset({"TextsimDatabaseUnreachable"}),
    ),
    Event(
        360,
        "all workers are killed, and start again later",
        kill_all_workers,
        frozenset({"TextsimNoMetrics"}),
    ),
    Event(
        440,
        "the disk is full, and has room again later",
        fill_disk,
        frozenset({"TextsimWorkerRetries", "TextsimNoWorker", "TextsimDatabaseUnreachable"}),
    ),
    Event(540, "a partition is dropped", drop_partition),
)
END = 600.0


class Operator(threading.Thread):
    """Looks at Prometheus every second, and prints what changes."""

    def __init__(self, day: Day, asked: Prometheus) -> None:
        super().__init__()
        self._day = day
        self._asked = asked
        self.firing: set[Alert] = set()
        self.fired: set[str] = set()
        """The names of the alerts that have fired since it was last emptied."""

    def run(self) -> None:
        next_minute = 0
        while not self._day.stop.wait(1.0):
            if time.monotonic() - self._day.began >= next_minute * 60:
                self._day.note(self._figures())
                next_minute += 1
            firing = self._asked.firing()
            for alert in sorted(firing - self.firing):
                self._day.note(f"    ALERT  {alert.name} {alert.labels}".rstrip())
            for alert in sorted(self.firing - firing):
                self._day.note(f"    over   {alert.name} {alert.labels}".rstrip())
            self.firing = firing
            self.fired |= {alert.name for alert in firing}

    def _figures(self) -> str:
        def shown(query: str, digits: int = 0) -> str:
            value = self._asked.value(query)
            return "?" if value is None else f"{value:,.{digits}f}"

        return (
            f"{shown('max(textsim_documents)')} documents, "
            f"{shown('max(sum by (instance) (textsim_pending_documents))')} waiting, the oldest for "
            f"{shown('max(textsim_pending_age_seconds)', 1)} s; "
            f"{shown('max(textsim_workers_running)')} workers report, "
            f"{shown('sum(up)')} answer, {shown('sum(textsim_up)')} reach the database"
        )


def live(day: Day, asked: Prometheus, seed: int) -> list[str]:
    """Let all events happen; return the faults."""
    faults = []
    operator = Operator(day, asked)
    day.began = time.monotonic()
    with busy(day, seed, operator):
        for event in EVENTS:
            wait_until_second(day, event.second)
            operator.fired = set()
            day.note(f"EVENT  {event.name}")
            event.happen(day)
            day.note(f"       over: {event.name}")
            lag = wait_until_current(day)
            day.note(f"       current {lag:.1f} s later")
            if event.alerts and not event.alerts & operator.fired:
                faults.append(f"{event.name}: none of {sorted(event.alerts)} fired")
        wait_until_second(day, END)
        faults += [f"still fires: {alert.name} {alert.labels}" for alert in operator.firing]
    return faults


def wait_until_second(day: Day, second: float) -> None:
    time.sleep(max(0.0, day.began + second - time.monotonic()))


def live_with_prometheus(day: Day, seed: int) -> list[str]:
    """Live beside a Prometheus that scrapes the workers."""
    wait_until_current(day)
    day.is_kept.set()
    with (
        tempfile.TemporaryDirectory() as series,
        prometheus(Path(series), day.ports, FACTOR) as asked,
    ):
        wait_for(lambda: asked.value("sum(textsim_up)") == WORKERS)
        return live(day, asked, seed)


if __name__ == "__main__":
    if not is_installed():
        sys.exit("the program prometheus is not installed")
    sys.exit(run("tests.soak.day", Day, 50_000, live_with_prometheus))
