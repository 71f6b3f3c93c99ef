"""textsim attach, detach, worker, status, pending and reconcile: tables that stay indexed."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from textsim_db.cli.common import (
    CorpusName,
    DatabaseUrl,
    complain,
    connect,
    count,
    number,
    of_each,
    one_of,
    shown,
)
from textsim_db.cli.logs import COMMANDS, tell_from
from textsim_db.cli.output import Format, FormatOption, write
from textsim_db.cli.progress import passing
from textsim_db.errors import ConfigurationError, CorpusNotFound
from textsim_db.settings import Mode
from textsim_db.sync.stop_flag import Stop

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database
    from textsim_db.results import Activity, ChangeReport, Failure, Source, Status
    from textsim_db.sync.worker import Worker
    from textsim_db.sync.worker_settings import WorkReport

log = logging.getLogger(f"{COMMANDS}.worker")

_REPORT_SECONDS = 1.0
_LATE_SECONDS = 60
_GRACE_SECONDS = 5.0
"""Containers are killed 10 s after SIGTERM: until then other workers would wait for the lease."""
_LONGEST_WATCH = 86400
_SHOWN_ERRORS = 3
"""Of each corpus, the last ones."""
_MANY = 100
"""From so many documents on, a rate means something."""

TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help='Name of the table as SQL takes it: article, blog."Articles".'
    ),
]
OptionalCorpus = Annotated[
    str | None,
    typer.Argument(metavar="CORPUS", help="Name of the corpus; all of them if none."),
]


def _mode(text: str) -> Mode:
    return one_of(Mode, text)


def attach(
    corpus: CorpusName,
    table: TableName,
    key: Annotated[
        str, typer.Option(help="Column with the key: unique, an integer, uuid, text or varchar.")
    ] = "id",
    text: Annotated[str, typer.Option(help="Column with the text.")] = "text",
    mode: Annotated[
        Mode,
        typer.Option(
            parser=_mode,
            metavar="|".join(Mode),
            help="queue: workers index what changes, moments later. inline: the transaction that "
            "writes a row indexes it, and takes some milliseconds longer.",
        ),
    ] = Mode.QUEUE,
    create: Annotated[
        bool, typer.Option("--create", help="Create the corpus where it does not exist.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Keep a table indexed from now on, and index what it holds.

    What changes later is indexed by `textsim worker`, which must run.

    Example: `textsim attach news article --key id --text body --create`
    """
    with connect(database_url) as db:
        opened, is_new = _opened(db, corpus, create)
        start = time.monotonic()
        try:
            with passing("indexing", "rows") as done:
                report = opened.attach(table, key, text, mode, done)
        except ConfigurationError:
            # An empty corpus is not to be left behind by a mistake in the command; one that the
            # table has been attached to stays.
            if is_new and not len(opened):
                with suppress(ConfigurationError):
                    opened.drop()
            raise
    _tell(corpus, report, time.monotonic() - start, table=table)
    complain(
        "what changes from now on is indexed by: textsim worker"
        if mode is Mode.QUEUE
        else "what changes is found at once; what remains to be done is done by: textsim worker"
    )
    _complain_of(report)


def detach(corpus: CorpusName, table: TableName, database_url: DatabaseUrl = None) -> None:
    """Stop keeping a table indexed; its documents stay in the corpus.

    A table that is gone is named by its oid, as the worker's messages do.

    Example: `textsim detach news article`
    """
    with connect(database_url) as db:
        db.corpus(corpus).detach(table)
    complain(f'table {shown(table)} is not attached to the corpus "{shown(corpus)}" any more')


def worker(
    once: Annotated[
        bool, typer.Option("--once", help="End when nothing is left to do; 1 if some cannot be.")
    ] = False,
    poll: Annotated[
        float | None,
        typer.Option(
            parser=number, metavar="SECONDS", help="Time between two looks. Default: 0.025."
        ),
    ] = None,
    lease: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="SECONDS",
            help="Time after which others take over what a worker that died had in hand. "
            "Default: 60.",
        ),
    ] = None,
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
    times: dict[str, float] = {"poll": 1.0} if listen else {}
    times |= {k: v for k, v in (("poll", poll), ("lease", lease)) if v is not None}
    tell_from(logging.WARNING if quiet else logging.INFO)
    with connect(database_url) as db:
        news = _News()
        made = db.worker(listen=listen, report=news.add, **times)
        with _stopping(made):
            address = db.engine.url.render_as_string(hide_password=True)
            log.info("working for %s", address, extra={"database": address})
            if not db.sources():
                log.info("no table is attached; to attach one: textsim attach CORPUS TABLE")
            total = made.run(until_idle=once)
        news.tell()
        log.info("ended: %s", _summary(total), extra=_counts(total))
    if once and (total.refused or made.unusable):
        raise typer.Exit(1)


def status(
    corpus: OptionalCorpus = None,
    watch: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="SECONDS",
            help="Show it again after so many seconds, with the documents written per second since "
            "the time before, until it is interrupted.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Everything as one JSON object; with --watch, one a line."),
    ] = False,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Show the attached tables, and how far the workers are.

    pending: documents that are to be indexed, the oldest of them lag seconds old; about: an estimate,
    while a table is compared with its documents. failed: documents that were set aside, the last of
    them with the reason, see `textsim pending`.

    Example: `textsim status --watch 10`
    """
    if watch is not None and not 0 < watch <= _LONGEST_WATCH:
        raise typer.BadParameter(
            f"expected seconds above 0, at most {_LONGEST_WATCH}", param_hint="--watch"
        )
    before = _Sample({}, time.monotonic())
    with connect(database_url) as db:
        while True:
            opened = list(of_each(db, corpus, _look))
            sample = _Sample({each.name: found[:2] for each, found in opened})
            rates = sample.rates(before) if watch is not None else {}
            errors = [
                Error(each.name, *failure)
                for each, (*_, failures) in opened
                for failure in failures
            ]
            attached = [t for t in db.sources() if corpus in (None, t.corpus)]
            if as_json:
                typer.echo(json.dumps(_as_object(sample, rates, attached, errors)))
            else:
                _show_status(sample, rates, attached, errors, form)
            if watch is None:
                break
            before = sample
            time.sleep(watch)
    if any((now.lag or 0) > _LATE_SECONDS for _, now in sample.found.values()):
        complain(
            "some changes are over a minute old: does a worker run? To start one: textsim worker",
            logging.WARNING,
        )


def _look(corpus: Corpus) -> tuple[Status, Activity, list[Failure]]:
    return corpus.status(), corpus.activity(), corpus.failures(_SHOWN_ERRORS)


class Error(NamedTuple):
    """A document that was set aside, and why."""

    corpus: str
    key: str | None
    table: str | None
    tries: int
    error: str


@dataclass
class _Sample:
    """The status of corpora at a time."""

    found: dict[str, tuple[Status, Activity]]
    taken: float = field(default_factory=time.monotonic)

    def rates(self, before: _Sample) -> dict[str, float | None]:
        """Return the documents written per second since then, None where that is not known."""
        seconds = self.taken - before.taken
        rates: dict[str, float | None] = dict.fromkeys(self.found)
        for name in self.found.keys() & before.found.keys():
            written = self.found[name][1].written - before.found[name][1].written
            if written >= 0:  # a corpus that was rebuilt counts anew
                rates[name] = round(written / seconds, 1)
        return rates


def _as_object(
    sample: _Sample,
    rates: dict[str, float | None],
    attached: list[Source],
    errors: list[Error],
) -> dict[str, object]:
    made = []
    for name, (found, activity) in sample.found.items():
        fields = found._asdict() | activity._asdict()
        fields["oldest_pending"] = found.oldest_pending and found.oldest_pending.isoformat()
        of_corpus: dict[str, list[Any]] = {"errors": errors, "tables": attached}
        made.append(
            {"corpus": name, **fields}
            | ({"written_per_second": rates[name]} if rates else {})
            | {
                what: [each._asdict() for each in rows if each.corpus == name]
                for what, rows in of_corpus.items()
            }
        )
    return {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "corpora": made}


def _show_status(
    sample: _Sample,
    rates: dict[str, float | None],
    attached: list[Source],
    errors: list[Error],
    form: Format,
) -> None:
    columns = ["corpus", "indexed", "pending", "oldest_pending", "failed"]
    columns += ["written_per_second"] if rates else []
    rows: list[tuple[Any, ...]] = []
    for name, (found, activity) in sample.found.items():
        oldest = found.oldest_pending.isoformat() if found.oldest_pending else ""
        if form is Format.TABLE and activity.lag is not None:
            oldest = f"{activity.lag:,.1f} s ago"
        pending: int | str = found.pending
        if form is Format.TABLE and found.is_estimate:
            pending = f"about {found.pending}"
        row: tuple[Any, ...] = (name, found.indexed, pending, oldest, found.failed)
        if rates:
            row += ("" if rates[name] is None else str(rates[name]),)
        rows.append(row)
    write(columns, rows, form)
    if form is Format.TABLE:
        write(("corpus", "table", "key", "text", "mode"), attached, form)
        if errors:
            write(Error._fields, errors, form)
    for found, _ in sample.found.values():
        for problem in found.problems:
            complain(problem, logging.WARNING)


def pending(
    corpus: OptionalCorpus = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Have the workers try them again.")
    ] = False,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the documents that could not be indexed and were set aside, with the reason."""
    rows: list[tuple[Any, ...]] = []
    again = 0
    with connect(database_url) as db:
        for opened, failures in of_each(db, corpus, lambda each: each.failures()):
            rows += [(opened.name, *failure) for failure in failures]
            if retry:
                again += opened.retry_failures()
    found = write(("corpus", "key", "table", "tries", "error"), rows, form)
    if retry:
        complain(f"{count(again, 'document')} will be tried again")
    elif not found:
        complain("nothing was set aside")


def reconcile(
    corpus: CorpusName,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only list what differs; exit status 1 if anything does."),
    ] = False,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a corpus equal to its attached tables, by key and text.

    It mends what triggers cannot see: replicated rows, disabled triggers, attached partitions.
    With --check, changes that no worker has indexed yet are listed as well.

    Example: `textsim reconcile news --check`
    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        if check:
            if write(("key", "kind"), opened.drift(), form):
                raise typer.Exit(1)
            complain("nothing differs")
            return
        start = time.monotonic()
        with passing("comparing", "rows") as done:
            report = opened.reconcile(done)
    _tell(corpus, report, time.monotonic() - start)
    _complain_of(report)


def _opened(db: Database, name: str, create: bool) -> tuple[Corpus, bool]:
    """Return the corpus, and whether it has just been created."""
    try:
        return db.corpus(name), False
    except CorpusNotFound as error:
        if create:
            return db.create_corpus(name), True
        error.add_note(f"to create it, add --create, or run: textsim corpus create {name}")
        raise


def _summary(report: ChangeReport) -> str:
    parts = {
        "added": report.added,
        "replaced": report.replaced,
        "removed": report.removed,
        "given word ids": report.completed,
        "unchanged": report.unchanged,
        "set aside": len(report.refused),
    }
    return ", ".join(f"{n:,} {what}" for what, n in parts.items() if n) or "nothing to do"


def _counts(report: ChangeReport, seconds: float | None = None) -> dict[str, Any]:
    """Return a report as the fields of a record."""
    names = ("added", "replaced", "removed", "completed", "unchanged")
    found: dict[str, Any] = {"documents": report.written}
    found |= {name: getattr(report, name) for name in names}
    found["refused"] = len(report.refused)
    if seconds is not None:
        rate = round(report.written / max(seconds, 1e-9), 1)
        found |= {"seconds": round(seconds, 3), "rate": rate}
    return found


def _tell(corpus: str, report: ChangeReport, seconds: float, **fields: Any) -> None:
    summary = f"{_summary(report)}; {seconds:.1f} s"
    complain(summary, corpus=corpus, **fields, **_counts(report, seconds))


def _complain_of(report: ChangeReport) -> None:
    if report.refused:
        complain("to see why they were set aside: textsim pending", logging.WARNING)
        raise typer.Exit(1)


@contextmanager
def _stopping(worker: Worker) -> Iterator[None]:
    """Have SIGTERM and the first SIGINT end the work after the batch in hand, or without it."""
    stop, ended = Stop(), threading.Event()

    def handle(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        worker.stop()
        stop.set()

    before = {n: signal.signal(n, handle) for n in (signal.SIGTERM, signal.SIGINT)}
    threading.Thread(target=_end_process, args=(worker, stop, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        stop.set()
        for n, handler in before.items():
            signal.signal(n, handler)


def _end_process(worker: Worker, stop: Stop, ended: threading.Event) -> None:
    """End the process when a batch is not finished soon after the worker was stopped.

    Threads cannot be interrupted in a kernel or in a statement, and the largest texts take minutes.
    A transaction that is cut off is rolled back, as when a worker is killed.
    """
    stop.wait(float("inf"))
    if not ended.wait(_GRACE_SECONDS):
        worker.abandon()
        log.warning("ended within a batch, which is left to another worker")
        os._exit(0)


class _News:
    """Tells what was done, at most once a second."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str | None], ChangeReport] = {}
        self._since = 0.0
        self._told = 0.0

    def add(self, work: WorkReport) -> None:
        """Take note of a transaction."""
        from textsim_db.results import ChangeReport

        now = time.monotonic()
        if not self._waiting:
            self._since = max(now - work.seconds, self._told)
        self._waiting.setdefault((work.corpus, work.table), ChangeReport()).include(work.changes)
        if now - self._told >= _REPORT_SECONDS:
            self.tell()

    def tell(self) -> None:
        """Tell what was done since the last time."""
        self._told = time.monotonic()
        for (corpus, table), changes in self._waiting.items():
            origin = "added by hand" if table is None else f"from {table}"
            seconds = max(self._told - self._since, 1e-9)
            rate = changes.written / seconds
            speed = f" ({rate:,.0f}/s)" if changes.written >= _MANY else ""
            log.info(
                "%s, %s: %s%s",
                *(corpus, origin, _summary(changes), speed),
                extra={"corpus": corpus, "table": table, **_counts(changes, seconds)},
            )
        self._waiting = {}
