"""The faults of single tables and corpora: a worker goes on with the others.

A step for one table or corpus runs in StepFaults.attempt(), or notes its error there. So its error never
ends the others' maintenance, unless it is about the server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import errors as pg

from textsim_db.db.engine import is_timeout, is_trouble
from textsim_db.db.retries import OUTDATED, PASSING, pause_seconds
from textsim_db.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    SchemaError,
    TextsimError,
    on_one_line,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)

PAUSE_SECONDS = (1.0, 60.0)
"""The first and the longest pause before a step is tried again."""
LOCKED_SECONDS = (1.0, 5.0)
"""The pauses for a locked table. A worker waits 2 seconds for it, and then works for other tables."""
_QUIET = (*OUTDATED, *PASSING, pg.UndefinedObject)
"""Errors of a corpus that was rebuilt or dropped, or of a table that was altered, since it was read."""
_QUIET_TRIES = 4
"""A step that had such an error this often has a fault."""
_QUIET_PAUSE = (0.025, PAUSE_SECONDS[1])
SETTLING_SECONDS = 10.0
"""How long a worker that would end waits for a step that had such an error to be tried again."""


class Subject(NamedTuple):
    """A step of maintenance of one table or corpus."""

    name: str
    """The name of the table, or the step with the name of the corpus."""
    corpus_id: int
    lacks: str
    """Says that the step fails."""


def step_of_corpus(step: str, corpus_id: int, name: str, lacks: str) -> Subject:
    return Subject(f"{step} of corpus {name}", corpus_id, f"{step} of corpus {name} {lacks}")


def concerns_all(engine: Engine, error: Exception) -> bool:
    """Return whether an error is about the server or the schema, or somebody cancelled a statement."""
    if isinstance(error, pg.QueryCanceled):
        return not is_timeout(engine, error)
    if isinstance(error, psycopg.Error):
        return is_trouble(error)
    # Numba makes a SystemError of an interrupt.
    return isinstance(error, (DatabaseUnavailable, SchemaError, SystemError))


def concerns_corpus(engine: Engine, error: Exception) -> bool:
    """Return whether every document of a table or corpus would fail with an error.

    A right, a function or a table that is missing is never the fault of a document.
    """
    is_of_schema = isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("42")
    return is_of_schema or isinstance(error, OUTDATED) or concerns_all(engine, error)


def is_bug(error: Exception) -> bool:
    """Return whether an error is a bug of textsim-db, whose traceback belongs into the log."""
    return not isinstance(error, (psycopg.Error, TextsimError))


def reason_of(error: Exception) -> str:
    reason = on_one_line(error)
    if isinstance(error, psycopg.Error):
        return error.diag.message_primary or reason
    return f"a bug of textsim-db, {type(error).__name__}: {reason}" if is_bug(error) else reason


class _Fault(NamedTuple):
    subject: Subject
    reason: str
    failures: int
    due_at: float
    """When the step may be tried again, of the monotonic clock."""
    is_reported: bool
    settles_until: float
    """Until when a worker that would end waits for another try, of the monotonic clock."""

    def __str__(self) -> str:
        return f"{self.subject.lacks}: {self.reason}"


class _Refused(NamedTuple):
    corpus_id: int
    source_id: int
    fault: str
    """Why the role of the worker must not index the table."""


def _log(fault: _Fault, cause: Exception | None = None) -> None:
    extra = {"table": fault.subject.name, "reason": fault.reason}
    log.error("%s", fault, extra=extra, exc_info=cause)


class StepFaults:
    """The faults that one worker has met; its threads share them, and each changes one at a time."""

    def __init__(self, engine: Engine, quiet_tries: int = _QUIET_TRIES) -> None:
        self._engine = engine
        self._quiet_tries = quiet_tries
        self._by_name: dict[str, _Fault] = {}
        self._refused: dict[str, _Refused] = {}
        """By name: the tables that this role must not index; another worker may."""

    @contextmanager
    def attempt(self, subject: Subject) -> Iterator[None]:
        """Do a step; note its error, unless the error concerns all tables and corpora."""
        try:
            yield
        except Exception as error:
            self.note(subject, error)
        else:
            self.clear(subject)

    def note(self, subject: Subject, error: Exception) -> None:
        """Note the error of a step, or raise it again if it concerns all tables and corpora."""
        if concerns_all(self._engine, error):
            raise error
        reason = reason_of(error)
        is_quiet = isinstance(error, _QUIET)
        pauses = _QUIET_PAUSE if is_quiet else PAUSE_SECONDS
        if isinstance(error, pg.LockNotAvailable):
            pauses = LOCKED_SECONDS
        before = self._by_name.get(subject.name)
        failures = before.failures if before else 0
        now = time.monotonic()
        due_at = now + pause_seconds(failures, pauses, 0.5)
        is_reported = not is_quiet or failures + 1 >= self._quiet_tries
        settles_until = before.settles_until if before else now + SETTLING_SECONDS
        fault = _Fault(subject, reason, failures + 1, due_at, is_reported, settles_until)
        self._by_name[subject.name] = fault
        if is_reported and not (before and before.is_reported and before.reason == reason):
            _log(fault, error if is_bug(error) else None)

    def is_due(self, subject: Subject) -> bool:
        fault = self._by_name.get(subject.name)
        return fault is None or time.monotonic() >= fault.due_at

    def clear(self, subject: Subject) -> None:
        self._by_name.pop(subject.name, None)

    def clear_due(self, subjects: Collection[str]) -> None:
        """Forget the faults of these steps whose pauses are over: nothing is left that they can do."""
        for fault in self._all():
            if fault.subject.name in subjects and self.is_due(fault.subject):
                self.clear(fault.subject)

    def keep(self, corpora: Collection[int]) -> None:
        """Forget the faults of corpora that are no more."""
        for fault in self._all():
            if fault.subject.corpus_id not in corpora:
                self.clear(fault.subject)

    def refuse(self, indexing: Subject, source_id: int, reason: str | None) -> None:
        """Note why this role must not index a table; reason is None if it may."""
        name = indexing.name
        if reason is None:
            self._refused.pop(name, None)
            return
        refused = _Refused(indexing.corpus_id, source_id, reason)
        if self._refused.get(name) != refused:
            self._refused[name] = refused
            log.error("table %s is not indexed: %s", name, reason, extra={"table": name})

    @property
    def is_settling(self) -> bool:
        """Whether a step had an error that often passes at once, and may still be tried again."""
        now = time.monotonic()
        return any(not fault.is_reported and now < fault.settles_until for fault in self._all())

    def report_unsettled(self) -> None:
        """Report the faults of steps that were not tried again in time, because the worker ends."""
        for fault in self._all():
            if not fault.is_reported:
                self._by_name[fault.subject.name] = fault._replace(is_reported=True)
                _log(fault)

    def by_name(self) -> dict[str, str]:
        refused = {name: each.fault for name, each in self._refused.items()}
        return refused | {f.subject.name: f.reason for f in self._all() if f.is_reported}

    def raise_any(self) -> None:
        """Raise ConfigurationError if a step has a fault; the other steps are done."""
        if faults := self._all():
            raise ConfigurationError("; ".join(map(str, faults)))

    def report(self) -> list[dict[str, object]]:
        """Return what textsim.worker stores of the faults, and of the tables that this role refuses."""
        faults: list[dict[str, object]] = [
            {"corpus_id": fault.subject.corpus_id, "fault": str(fault)}
            for fault in self._all()
            if fault.is_reported
        ]
        return faults + [each._asdict() for each in list(self._refused.values())]

    def _all(self) -> list[_Fault]:
        """Return the faults of this moment, which other threads may change meanwhile."""
        return list(self._by_name.values())
