"""Messages on standard error, as text or JSON lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer
import typer.main

from textsim_db.results.shown_values import shown

LEVELS = ("debug", "info", "warning", "error")
COMMANDS = "textsim_db.cli"
COMPILER = "textsim_db.base.numba_compiler"
SEARCHES = "textsim_db.read.find_candidates"
LIBRARY = "textsim_db"
_DRIVERS = ("psycopg", "sqlalchemy")
"""They log errors that they meet while another error is handled, which the command reports."""
_IGNORE = logging.NullHandler()
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


@dataclass(slots=True)
class LogOptions:
    json: bool = False
    level: int | None = None
    command: str = ""


log_options = LogOptions()


class JsonFormatter(logging.Formatter):
    """One JSON object: time (UTC, ISO 8601), level, logger, message, and the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


class PlainFormatter(logging.Formatter):
    """The commands' own messages as they are, with "error: " before errors; others with the time."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name not in (COMMANDS, SEARCHES, COMPILER):
            return _harmless(super().format(record))
        mark = "error: " if record.levelno >= logging.ERROR else ""
        return _harmless(mark + record.getMessage())


def _harmless(text: str) -> str:
    """Return a message without control characters: a name in it may hold any."""
    return "\n".join(map(shown, text.split("\n")))


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=True)  # sys.stderr may have been replaced


@contextmanager
def log_to_stderr() -> Iterator[None]:
    handler = _Handler()
    for name in _DRIVERS:
        # Also after the command: an interrupt may reach a connection that is cleaned up.
        logging.getLogger(name).addHandler(_IGNORE)
    library = logging.getLogger(LIBRARY)
    levels = {name: logging.getLogger(name).level for name in (LIBRARY, COMMANDS, COMPILER)}
    library.addHandler(handler)
    try:
        configure()
        yield
    finally:
        log_options.json, log_options.level, log_options.command = False, None, ""
        library.removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def configure(default: int | None = None) -> None:
    """Log as the options say; default: the level without --log-level."""
    for handler in logging.getLogger(LIBRARY).handlers:
        if isinstance(handler, _Handler):
            plain = PlainFormatter("%(asctime)s %(message)s")
            handler.setFormatter(JsonFormatter() if log_options.json else plain)
    library = logging.INFO if log_options.json else logging.WARNING
    levels = {LIBRARY: default or library, COMMANDS: default or logging.INFO}
    levels[COMPILER] = levels[COMMANDS]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(log_options.level or level)
