"""textsim worker and mcp: processes that run until somebody stops them."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from textsim_db.cli.messages import common_options, configure, explain, print_message, print_object
from textsim_db.cli.opening import connect
from textsim_db.cli.progress_lines import WorkLog, counts, log
from textsim_db.errors import ConfigurationError, CorpusNotFound, needs_extra
from textsim_db.results.shown_values import shown
from textsim_db.sync.worker_state import EXPIRE_AFTER_SECONDS, LEASE_SECONDS, POLL_SECONDS

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.corpus.database import Database
    from textsim_db.results import ChangeReport
    from textsim_db.sync.worker import Worker

_GRACE_SECONDS, _RELEASE_SECONDS = 7.0, 1.0
"""Longer than the worker's own grace; together less than the 10 s after which containers get SIGKILL."""
_STOPPING = (signal.SIGTERM, signal.SIGINT)


def worker(
    *,
    once: bool = False,
    poll: float = POLL_SECONDS,
    lease: float = LEASE_SECONDS,
    expire_after: float = EXPIRE_AFTER_SECONDS,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    database_url: str | None = None,
) -> None:
    """Index the changes of attached tables, until SIGTERM or Ctrl-C.

    Any number of workers may run, on any machine. A worker that is stopped finishes its batch; if that
    takes more than 5 seconds, another worker does the batch again. No change is lost if a worker dies.
    The log shows the numbers of documents written, at most once a second.

    With --metrics-port, /readyz answers 503 while the worker indexes no changes, for example because the
    database cannot be reached. /healthz answers 503 if a step has lasted for over ten minutes: then the
    worker should be started again.

    Args:
        once: End when no change is pending; exit status 1 while documents are set aside, a table cannot
            be indexed, or another worker has claimed the rest.
        poll (SECONDS): The longest pause between two polls; after a change it polls sooner.
        lease (SECONDS): If a worker dies, another worker takes over its batch after this time.
        expire_after (SECONDS): Remove a document this long after a worker has seen that its time is
            over; 0: at once.
        metrics_port: Serve /metrics for Prometheus, and the probes /healthz and /readyz, on this port;
            0 is any free port.
        metrics_host (ADDRESS): Serve them on this address; 0.0.0.0 is every address of the machine.

    Examples:
    - `textsim worker`
    - `textsim worker --once --log-level warning`
    - `textsim worker --metrics-port 9464`

    """
    configure(logging.INFO)
    with connect(database_url, is_brief=False) as db:
        work = WorkLog()
        indexer = db.worker(poll, lease, work.add, expire_after)
        with _stopped_by_signals(indexer), _metrics_served(db, indexer, metrics_host, metrics_port):
            total = _run(db, indexer, once)
        work.write()
        log.info("ended: %s", total.summary, extra=counts(total))
        failed = _warn_of_failures(db) if once else 0
    if common_options.json:
        print_object(counts(total))
    if failed or (once and (indexer.unusable or indexer.left_to_others)):
        raise typer.Exit(1)


def _warn_of_failures(db: Database) -> int:
    failed = int(sum(m.value for m in db.metrics() if m.name == "textsim_failed_documents"))
    if failed:
        log.warning(
            "%s set aside; to see why: textsim pending; to try again: textsim pending --retry",
            "1 document is" if failed == 1 else f"{failed:,} documents are",
            extra={"failed": failed},
        )
    return failed


@contextmanager
def _metrics_served(db: Database, indexer: Worker, host: str, port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    with needs_extra("prometheus", "the metrics need the package prometheus-client"):
        from textsim_db.cli import serve_metrics
    probes = {"/healthz": indexer.why_stuck, "/readyz": indexer.why_not_ready}
    with serve_metrics.served(host, port, db.metrics, probes) as address:
        log.info("metrics on %s/metrics", address, extra={"address": address})
        yield


def _run(db: Database, indexer: Worker, once: bool) -> ChangeReport:
    from textsim_db.db.addresses import public_url

    address = public_url(db.engine.url)
    log.info("working for %s", address, extra={"database": address})
    if not db.sources():
        log.info("no table is attached; to attach a table: textsim attach CORPUS TABLE")
    return indexer.run(until_idle=once)


@contextmanager
def _stopped_by_signals(indexer: Worker) -> Iterator[None]:
    """Stop the worker at SIGTERM and at the first SIGINT, after its batch if that ends soon.

    Python calls a handler only when the main thread returns from a kernel, which may take minutes. The
    number of a signal comes through the socket at once.
    """
    numbers, sender = socket.socketpair()
    sender.setblocking(False)
    ended = threading.Event()

    def handle(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        indexer.stop()

    before = {n: signal.signal(n, handle) for n in _STOPPING}
    sender_before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_process, args=(indexer, numbers, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(sender_before)
        sender.close()
        for n, handler in before.items():
            signal.signal(n, handler)


def _end_process(indexer: Worker, numbers: socket.socket, ended: threading.Event) -> None:
    """End the process if the batch is not finished soon after the worker was stopped.

    A kernel cannot be interrupted, and the largest texts take minutes. The server rolls the transaction
    back, as if the worker had been killed.
    """
    with numbers:
        while (received := numbers.recv(1)) and received[0] not in _STOPPING:
            pass
    if not received:
        return
    indexer.stop()
    if not ended.wait(_GRACE_SECONDS):
        log.warning("ended before the batch was finished; another worker does the batch again")
        # The server may be silent.
        cancel = threading.Thread(target=indexer.cancel, daemon=True)
        cancel.start()
        cancel.join(_RELEASE_SECONDS)
        os._exit(0)


def mcp(
    corpus: str,
    /,
    *,
    scope: str | None = None,
    write: bool = False,
    http: int | None = None,
    database_url: str | None = None,
) -> None:
    """Let a model search a corpus, and remember texts in it, by tools of the Model Context Protocol.

    The tools are check_before_write, search, passages, verify_quote, compare, doubtful and status; with
    --write also remember, judge and forget. They see one scope, which no argument of theirs changes.
    Over HTTP each request needs a token: that of TEXTSIM_MCP_TOKEN, or a new one, which is printed once.

    Args:
        scope: Search the documents of this scope only. A scoped corpus requires it.
        write: Offer also the tools remember, judge and forget.
        http: Serve over HTTP on this port of this machine; 0 is any free port. Default: over standard
            input and output.

    Examples:
    - `textsim mcp notes --scope anna --write`
    - `textsim mcp news --http 8080`

    """
    with needs_extra("mcp", "the tools need the package mcp"):
        from textsim_db.mcp.tool_server import ToolServer, http_token
        from textsim_db.mcp.tools import CorpusTools

    token, is_new = ("", False) if http is None else http_token()
    if scope is not None and not scope.strip():
        raise ConfigurationError(
            "--scope is empty; all clients without a name would share one memory: name a user"
        )
    with connect(database_url, is_brief=False) as db:
        try:
            opened = db.corpus(corpus, on_server=True)
        except CorpusNotFound as error:
            error.add_note(f"to create it, run: textsim corpus create {shown(corpus)}")
            raise
        server = ToolServer(CorpusTools(opened, scope), write, explain)
        # A client waits some seconds for its first answer, and compiling may take half a minute.
        threading.Thread(target=_load_kernels, args=(opened,), daemon=True).start()
        if http is None:
            server.run_on_stdio()
            return

        def show(address: str) -> None:
            print_message(f"serving on {address}; press Ctrl-C to end")
            if is_new:
                print_message(f"token: {token}")

        server.run_on_http(http, token, show)


def _load_kernels(corpus: Corpus) -> None:
    # The first call that needs a kernel says what is wrong.
    with suppress(Exception):
        corpus._current.load(is_checked=True)
