"""textsim status and pending: documents that wait for a worker, and documents set aside."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from textsim_db.cli.messages import common_options, print_message, print_object
from textsim_db.cli.opening import connect, each_corpus
from textsim_db.cli.options import misused
from textsim_db.cli.output import Format, write
from textsim_db.errors import needs_extra
from textsim_db.results import ScopeStatus, Source
from textsim_db.results.shown_values import count, shown

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.corpus.database import Database
    from textsim_db.results import Failure, Status, WorkerState


_LATE_SECONDS = 60
_LONGEST_WATCH = 86400
_TRACKED_COLUMNS = ("tracked", "linkage", "threshold", "outdated", "outdated_since", "crowded")
_WORKER_COLUMNS = ("worker", "state", "last_claim", "last_write", "last_error")
_SHOWN_ERRORS = 3
"""The last errors of each corpus."""


def status(
    corpus: str | None = None,
    /,
    *,
    watch: float | None = None,
    scopes: bool = False,
    max_lag: float | None = None,
    prometheus: bool = False,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Show the attached tables, and how many documents wait for a worker.

    It prints for each corpus: indexed documents; pending documents, which wait for a worker; the age
    of the oldest change; and failed documents, which were set aside. "about" marks an estimate: above
    ten thousand, and while a table is compared with its documents. For each tracked corpus it prints how
    it is tracked, and how many documents have changed since its clusters were updated. Then it prints
    the tables, the workers with their progress, the last errors, and warnings. JSON lines have one
    object with all of this. Exit status 1 if something is wrong with a corpus or a table.

    Args:
        corpus: Name of the corpus. Default: every corpus.
        watch (SECONDS): Print the status again after this many seconds, with the documents written per
            second, until Ctrl-C.
        scopes: List the scopes of the corpus instead.
        max_lag (SECONDS): End with status 1 if a change, or a change of tracked clusters, has waited for
            longer than this.
        prometheus: Print the metrics of all corpora in the text format of Prometheus.

    Examples:
    - `textsim status`
    - `textsim status news --watch 10`
    - `textsim status --format jsonl`
    - `textsim status notes --scopes`
    - `textsim status --max-lag 60`
    - `textsim status --prometheus`

    """
    if watch is not None and not 0 < watch <= _LONGEST_WATCH:
        raise misused("--watch", f"expected seconds above 0, at most {_LONGEST_WATCH}")
    if max_lag is not None and (watch is not None or scopes or prometheus):
        raise misused("--max-lag", "it asks once, and for the lag only")
    if scopes:
        if watch is not None:
            raise misused("--watch", "it is not for --scopes, which lists once")
        if corpus is None:
            raise misused("--scopes", "name the corpus whose scopes to list")
        with connect(database_url) as db:
            if not write(ScopeStatus._fields, db.corpus(corpus, on_server=True).scopes(), form):
                print_message("no document is stored")
        return
    if prometheus and common_options.json:
        raise misused("--json", "--prometheus has a format of its own")
    if prometheus:
        with needs_extra("prometheus", "the metrics need the package prometheus-client"):
            from textsim_db.cli.serve_metrics import exposition
        with connect(database_url) as db:
            typer.echo(exposition(db.metrics()), nl=False)
        return
    with connect(database_url) as db:
        for sample in _samples(db, corpus, watch):
            if form is Format.JSONL:
                print_object(sample.as_object())
            else:
                _show(sample, form)
    lag = max(sample.lags, default=0)
    problems = [problem for state in sample.states for problem in state.status.problems]
    if max_lag is not None and lag > max_lag:
        message = f"a change has waited for {lag:,.1f} s, longer than {max_lag:g} s"
        print_message(message, logging.WARNING)
        raise typer.Exit(1)
    # A table with a problem does not wait for more workers.
    waiting = [s.status for s in sample.states if not s.status.problems]
    if not sample.workers and any(status.pending or status.outdated for status in waiting):
        message = "no worker is connected, and changes wait; to start a worker: textsim worker"
        print_message(message, logging.WARNING)
    elif lag > _LATE_SECONDS and not problems:
        print_message(
            "some changes have waited for over a minute; if the workers make progress, start more: "
            "textsim worker; but a table is compared with its documents by one worker",
            logging.WARNING,
        )
    if problems or sample.damaged:
        raise typer.Exit(1)


def pending(
    corpus: str | None = None,
    /,
    *,
    retry: bool = False,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """List the documents that were set aside, with the errors.

    A worker sets a document aside if it cannot be indexed. It prints the key, the table, the number of
    tries and the error.

    Args:
        corpus: Name of the corpus. Default: every corpus.
        retry: Let the workers try these documents again.

    Examples:
    - `textsim pending news`
    - `textsim pending news --retry`

    """
    errors: list[Error] = []
    damaged: list[str] = []
    with connect(database_url) as db:
        for opened, failures in each_corpus(db, corpus, lambda each: each.pending(), damaged):
            errors += [Error(opened.name, *failure) for failure in failures]
            if retry:
                opened.pending(retry=True)
    write(Error._fields, errors, form)
    if retry:
        print_message(f"{count(len(errors), 'document')} will be tried again")
    elif not errors:
        print_message("no document was set aside")
    if damaged:
        raise typer.Exit(1)


class Error(NamedTuple):
    """A document that was set aside, and why."""

    corpus: str
    key: str | None
    table: str | None
    tries: int
    error: str


class State(NamedTuple):
    corpus: str
    status: Status
    failures: list[Failure]
    rate: float | None = None
    """The documents written per second; None: not known."""

    @property
    def errors(self) -> list[Error]:
        return [Error(self.corpus, *failure) for failure in self.failures]


@dataclass(slots=True)
class _Sample:
    states: list[State]
    sources: list[Source]
    workers: list[WorkerState]
    damaged: list[str]
    """The names of the corpora that lack a table or a function."""
    has_rates: bool
    """Whether there are several samples."""
    taken: float = field(default_factory=time.monotonic)

    def set_rates(self, before: _Sample) -> None:
        """Compute the documents written per second since an earlier sample."""
        written_before = {state.corpus: state.status.written for state in before.states}
        seconds = self.taken - before.taken
        for i, state in enumerate(self.states):
            written = state.status.written - written_before.get(state.corpus, float("inf"))
            if written >= 0:  # a rebuilt corpus counts from 0
                self.states[i] = state._replace(rate=round(written / seconds, 1))

    @property
    def lags(self) -> Iterator[float]:
        for state in self.states:
            yield state.status.lag or 0
            yield state.status.cluster_lag or 0

    def as_object(self) -> dict[str, object]:
        corpora = [self._corpus_object(state) for state in self.states]
        workers = [worker._asdict() for worker in self.workers]
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {"time": time, "corpora": corpora, "workers": workers}

    def _corpus_object(self, state: State) -> dict[str, object]:
        oldest, since = state.status.oldest_pending, state.status.outdated_since
        return {
            "corpus": state.corpus,
            **state.status._asdict(),
            "oldest_pending": oldest and oldest.isoformat(),
            "outdated_since": since and since.isoformat(),
            **({"written_per_second": state.rate} if self.has_rates else {}),
            "errors": [error._asdict() for error in state.errors],
            "tables": [s._asdict() for s in self.sources if s.corpus == state.corpus],
        }


def _samples(db: Database, corpus: str | None, watch: float | None) -> Iterator[_Sample]:
    """Yield one sample; with watch, yield samples forever, watch seconds apart."""
    before: _Sample | None = None
    while True:
        damaged: list[str] = []
        states = [state for _, state in each_corpus(db, corpus, _state, damaged)]
        sources = [source for source in db.sources() if corpus in (None, source.corpus)]
        sample = _Sample(states, sources, db.workers(), damaged, has_rates=watch is not None)
        if before is not None:
            sample.set_rates(before)
        yield sample
        if watch is None:
            return
        before = sample
        time.sleep(watch)


def _state(corpus: Corpus) -> State:
    failures = corpus.pending(_SHOWN_ERRORS)
    return State(corpus.name, corpus.status(), failures)


def _show(sample: _Sample, form: Format) -> None:
    columns = ["corpus", "indexed", "pending", "oldest_pending", "failed"]
    rows = [_row(state, form) for state in sample.states]
    if sample.has_rates:
        columns.append("written_per_second")
        rates = ["" if state.rate is None else str(state.rate) for state in sample.states]
        rows = [(*row, rate) for row, rate in zip(rows, rates, strict=True)]
    write(columns, rows, form)
    if form is Format.TABLE:
        tracked = [_tracked_row(state) for state in sample.states if state.status.linkage]
        write(_TRACKED_COLUMNS, tracked, form)
        # Only a scoped corpus has a column of scopes, and only documents that expire have one of times.
        names = [
            n for n in Source._fields if any(getattr(s, n) is not None for s in sample.sources)
        ]
        write(names, [[getattr(s, n) for n in names] for s in sample.sources], form)
        write(_WORKER_COLUMNS, [_worker_row(worker) for worker in sample.workers], form)
        write(Error._fields, [error for state in sample.states for error in state.errors], form)
    for state in sample.states:
        if state.status.as_text:
            name, documents = shown(state.corpus), count(state.status.as_text, "document")
            print_message(
                f'corpus "{name}": {documents} stored as text; textsim worker or '
                f"CALL textsim.index_pending('{name}') gives their words ids, which save space "
                f"(about {state.status.saved_by_ids / 1e6:,.1f} MB)"
            )
        for each in state.status.notes:
            print_message(each)
        for problem in state.status.problems:
            print_message(problem, logging.WARNING)


def _tracked_row(state: State) -> tuple[Any, ...]:
    status, lag = state.status, state.status.cluster_lag
    since = "" if lag is None else f"{lag:,.1f} s ago"
    tracked = (state.corpus, status.linkage, status.tracked_threshold)
    return (*tracked, status.outdated, since, status.crowded)


def _worker_row(worker: WorkerState) -> tuple[str, ...]:
    claimed, wrote = (
        "" if age is None else f"{age:,.1f} s ago" for age in (worker.claimed, worker.wrote)
    )
    state = f"{worker.step} for {worker.step_seconds:,.0f} s" if worker.is_busy else worker.step
    return (f"{worker.host}:{worker.process}", state, claimed, wrote, worker.error or "")


def _row(state: State, form: Format) -> tuple[Any, ...]:
    status, lag = state.status, state.status.lag
    oldest = status.oldest_pending.isoformat() if status.oldest_pending else ""
    pending: int | str = status.pending
    if form is Format.TABLE and lag is not None:
        oldest = f"{lag:,.1f} s ago"
    if form is Format.TABLE and status.is_estimate:
        pending = f"about {status.pending:,}"
    indexed: int | str = status.indexed
    if form is Format.TABLE and status.indexed_is_estimate:
        indexed = f"about {status.indexed:,}"
    return (state.corpus, indexed, pending, oldest, status.failed)
