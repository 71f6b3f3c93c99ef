"""textsim attach, detach, worker, status, pending and reconcile: tables that stay indexed."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.common import (
    CorpusName,
    DatabaseUrl,
    complain,
    connect,
    count,
    number,
    one_of,
    shown,
)
from textsim_db.cli.output import Format, FormatOption, error_console, write
from textsim_db.config import Mode
from textsim_db.errors import CorpusNotFound, RecipeError

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database
    from textsim_db.results import ChangeReport
    from textsim_db.worker import WorkReport

_REPORT_SECONDS = 1.0
_LATE_SECONDS = 60
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
        opened = _opened(db, corpus, create)
        start = time.monotonic()
        with _progress("indexing") as done:
            report = opened.attach(table, key, text, mode, done)
    complain(f"{_summary(report)}; {time.monotonic() - start:.1f} s")
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
    it has in hand; nothing is lost however it ends.

    Examples: `textsim worker`, `textsim worker --once`
    """
    times: dict[str, float] = {"poll": 1.0} if listen else {}
    times |= {k: v for k, v in (("poll", poll), ("lease", lease)) if v is not None}
    with connect(database_url) as db, _told(quiet) as log:
        news = _News(log)
        made = db.worker(listen=listen, report=news.add, **times)
        with _stopping(made.stop):
            log.info("working for %s", db.engine.url.render_as_string(hide_password=True))
            if not db.tables():
                log.info("no table is attached; to attach one: textsim attach CORPUS TABLE")
            total = made.run(until_idle=once)
        news.tell()
        log.info("ended: %s", _summary(total))
    if once and (total.refused or made.unusable):
        raise typer.Exit(1)


def status(
    corpus: OptionalCorpus = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Show the attached tables, and how far the workers are.

    pending: changes that no worker has indexed yet; failed: documents that were set aside, see
    `textsim pending`.
    """
    rows: list[tuple[Any, ...]] = []
    late = False
    with connect(database_url) as db:
        for opened in _corpora(db, corpus):
            found = opened.status()
            oldest: str | None = None
            if found.oldest_pending is not None:
                age = (datetime.now(UTC) - found.oldest_pending).total_seconds()
                late = late or age > _LATE_SECONDS
                oldest = (
                    f"{max(age, 0):,.1f} s ago"
                    if form is Format.TABLE
                    else found.oldest_pending.isoformat()
                )
            rows.append((opened.name, found.indexed, found.pending, oldest or "", found.failed))
        attached = [t for t in db.tables() if corpus in (None, t.corpus)]
    write(("corpus", "indexed", "pending", "oldest_pending", "failed"), rows, form)
    if form is Format.TABLE:
        write(("corpus", "table", "key", "text", "mode"), attached, form)
    if late:
        complain(
            "some changes are over a minute old: does a worker run? To start one: textsim worker"
        )


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
        for opened in _corpora(db, corpus):
            rows += [(opened.name, *failure) for failure in opened.failures()]
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
            if write(("key", "kind"), opened.differences(), form):
                raise typer.Exit(1)
            complain("nothing differs")
            return
        start = time.monotonic()
        with _progress("comparing") as done:
            report = opened.reconcile(done)
    complain(f"{_summary(report)}; {time.monotonic() - start:.1f} s")
    _complain_of(report)


def _opened(db: Database, name: str, create: bool) -> Corpus:
    try:
        return db.corpus(name)
    except CorpusNotFound as error:
        if create:
            return db.create_corpus(name)
        error.add_note(f"to create it, add --create, or run: textsim corpus create {name}")
        raise


def _corpora(db: Database, name: str | None) -> Iterator[Corpus]:
    for each in db.corpora() if name is None else [name]:
        try:
            yield db.corpus(each)
        except RecipeError as error:
            complain(f"left out: {error}")


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


def _complain_of(report: ChangeReport) -> None:
    if report.refused:
        complain("to see why they were set aside: textsim pending")
        raise typer.Exit(1)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"),
        rich.SpinnerColumn(),
        rich.TextColumn("{task.completed:,} rows, {task.speed}/s"),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Have SIGTERM and the first SIGINT end the work in good order."""

    def handle(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    before = {n: signal.signal(n, handle) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)


@contextmanager
def _told(quiet: bool) -> Iterator[logging.Logger]:
    """Have what the library logs written to standard error."""
    log = logging.getLogger("textsim_db")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield log
    finally:
        log.removeHandler(handler)


class _News:
    """Tells what was done, at most once a second."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
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
            rate = changes.written / max(self._told - self._since, 1e-9)
            speed = f" ({rate:,.0f}/s)" if changes.written >= _MANY else ""
            self._log.info("%s, %s: %s%s", corpus, origin, _summary(changes), speed)
        self._waiting = {}
