"""textsim worker: a worker as a process of its own."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from textsim_db.cli.change_reports import WorkLog, counts, log, summary
from textsim_db.cli.connections import connect
from textsim_db.cli.logs import set_default_level
from textsim_db.cli.options import DatabaseUrl, number
from textsim_db.settings import LEASE_SECONDS, POLL_SECONDS
from textsim_db.sync.stop_flag import Stop

if TYPE_CHECKING:
    from textsim_db.database import Database
    from textsim_db.results import ChangeReport
    from textsim_db.sync.worker import Worker

_GRACE_SECONDS = 5.0
"""Containers are killed 10 s after SIGTERM: until then other workers would wait for the lease."""
_LISTEN_POLL_SECONDS = 1.0


def worker(
    once: Annotated[
        bool, typer.Option("--once", help="End when nothing is left to do; 1 if some cannot be.")
    ] = False,
    poll: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="SECONDS",
            help=f"Time between two looks. Default: {POLL_SECONDS}.",
        ),
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            parser=number,
            metavar="SECONDS",
            help="Time after which others take over what a worker that died had in hand.",
        ),
    ] = LEASE_SECONDS,
    listen: Annotated[
        bool,
        typer.Option(
            "--listen",
            help="Look once a second, and when a session with textsim.notify = on has written.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Tell only of what went wrong.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Index what changes in attached tables, until it is stopped.

    Any number of workers may run, on any machine. SIGTERM and Ctrl-C end one after the batch that
    it has in hand. A batch that takes longer than 5 seconds more is left to another worker. Nothing
    is lost however a worker ends.

    Examples: `textsim worker`, `textsim worker --once`
    """
    if poll is None:
        poll = _LISTEN_POLL_SECONDS if listen else POLL_SECONDS
    set_default_level(logging.WARNING if quiet else logging.INFO)
    with connect(database_url) as db:
        work = WorkLog()
        indexer = db.worker(poll, lease, listen, work.add)
        with _stopped_by_signals(indexer):
            total = _run(db, indexer, once)
        work.write()
        log.info("ended: %s", summary(total), extra=counts(total))
    if once and (total.refused or indexer.unusable):
        raise typer.Exit(1)


def _run(db: Database, indexer: Worker, once: bool) -> ChangeReport:
    address = db.engine.url.render_as_string(hide_password=True)
    log.info("working for %s", address, extra={"database": address})
    if not db.sources():
        log.info("no table is attached; to attach one: textsim attach CORPUS TABLE")
    return indexer.run(until_idle=once)


@contextmanager
def _stopped_by_signals(indexer: Worker) -> Iterator[None]:
    """Stop the worker at SIGTERM and the first SIGINT: it finishes its batch, if that is soon."""
    stop, ended = Stop(), threading.Event()

    def handle(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        indexer.stop()
        stop.set()

    before = {n: signal.signal(n, handle) for n in (signal.SIGTERM, signal.SIGINT)}
    threading.Thread(target=_end_process, args=(indexer, stop, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        stop.set()
        for n, handler in before.items():
            signal.signal(n, handler)


def _end_process(indexer: Worker, stop: Stop, ended: threading.Event) -> None:
    """End the process if a batch is not finished soon after the worker was stopped.

    Threads cannot be interrupted in a kernel or in a statement, and the largest texts take minutes.
    A transaction that is cut off is rolled back, as when a worker is killed.
    """
    stop.wait(float("inf"))
    if not ended.wait(_GRACE_SECONDS):
        indexer.abandon()
        log.warning("ended within a batch, which is left to another worker")
        os._exit(0)
