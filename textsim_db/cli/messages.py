"""The messages of a command on standard error, as text or JSON lines, and its result as JSON."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.errors import EmbeddedServerError
from textsim_db.results.shown_values import shown

if TYPE_CHECKING:
    from textsim_db.results import Refusal

LEVELS = ("debug", "info", "warning", "error")
COMMANDS = "textsim_db.cli"
COMPILER = "textsim_db.base.numba_compiler"
SEARCHES = "textsim_db.read.find_candidates"
LIBRARY = "textsim_db"
_DRIVERS = ("psycopg", "sqlalchemy")
"""They log errors that they meet while another error is handled, which the command reports."""
_IGNORE = logging.NullHandler()
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
_SHOWN_MESSAGES = 20
_SHOWN_PLACES = 3
_NUMBERS = re.compile(r"0x[0-9a-f]{2}|\d+")

log = logging.getLogger(COMMANDS)


@dataclass(slots=True)
class CommonOptions:
    """The options that all commands have, as the user gave them, and the name of the command."""

    json: bool = False
    log_json: bool = False
    log_level: int | None = None
    command: str = ""


common_options = CommonOptions()


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
        common_options.json = common_options.log_json = False
        common_options.log_level, common_options.command = None, ""
        library.removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def configure(default: int | None = None) -> None:
    """Log as the options say; default: the level without --log-level."""
    for handler in logging.getLogger(LIBRARY).handlers:
        if isinstance(handler, _Handler):
            plain = PlainFormatter("%(asctime)s %(message)s")
            handler.setFormatter(JsonFormatter() if common_options.log_json else plain)
    library = logging.INFO if common_options.log_json else logging.WARNING
    levels = {LIBRARY: default or library, COMMANDS: default or logging.INFO}
    levels[COMPILER] = levels[COMMANDS]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(common_options.log_level or level)


def print_message(message: str, level: int = logging.INFO, **fields: object) -> None:
    """Print a message on standard error; with --log-json the fields are logged beside it."""
    log.log(level, "%s", message, extra=fields)


def print_object(fields: dict[str, Any]) -> None:
    typer.echo(json.dumps(fields, ensure_ascii=False, default=str))


def print_result(message: str, **fields: Any) -> None:
    """Print what a command did: a message, or with --json the fields."""
    if common_options.json:
        print_object(fields)
    else:
        print_message(message, **fields)


def explain(error: BaseException) -> str:
    """Return an error's message, the messages of its causes that add something, and its notes."""
    lines: list[str] = []
    notes = getattr(error, "__notes__", [])
    cause: BaseException | None = error
    while cause is not None:
        # SQLAlchemy's own message adds the statement and an address; the driver's is inside.
        original = getattr(cause, "orig", None) or cause
        message = _message(original)
        # The error that it caused quotes it on one line, or without its hint. The message with
        # punctuation reads better.
        quoted = _one_line(str(original)) or message
        head, _, hint = message.partition(" HINT: ")
        if hint and lines and lines[-1] == head.rstrip("."):
            lines[-1] = message = f"{head} {hint}"
        lines = [line.replace(quoted, message) for line in lines]
        if message and not any(message in line for line in lines):
            lines.append(message)
        cause = cause.__cause__
    return "\n".join(["\n  because: ".join(lines), *notes])


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return shown(place + error.strerror)
    # The message of a function of the schema says everything; the lines that follow name our functions.
    text, _, context = str(error).partition("\nCONTEXT:  ")
    if "textsim." not in context:
        text = str(error)
    text = text or type(error).__name__
    if isinstance(error, EmbeddedServerError):  # its message ends with lines of the server's log
        return text
    return shown(text) if type(error).__module__.startswith("textsim") else _sentences(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sentences(text: str) -> str:
    """Return the lines of a text on one line; every line but the last ends with punctuation."""
    lines = [_one_line(line) for line in text.splitlines() if line.strip()]
    ended = (line if line[-1] in ".,:;!?" else f"{line}." for line in lines[:-1])
    return " ".join([*ended, *lines[-1:]])


def confirm(action: str, yes: bool) -> None:
    """Ask before a deletion; end with status 2 unless the answer is yes."""
    if yes:
        return
    if not sys.stdin.isatty() or common_options.log_json:
        print_message(
            f"this would {action}; there is no terminal to ask on: give --yes to confirm",
            logging.ERROR,
        )
        raise typer.Exit(2)
    if not typer.confirm(f"{action[0].upper()}{action[1:]}?", err=True):
        print_message("nothing was deleted")
        raise typer.Exit(2)


class Refusals:
    """Counts refused records by their reasons, and keeps the first places of each reason."""

    def __init__(self, action: str = "refused") -> None:
        self.count = 0
        self._action = action
        self._reasons: dict[str, _Reason] = {}
        """By the reason without its numbers."""

    def add(self, refusal: Refusal) -> None:
        self.count += 1
        alike = _NUMBERS.sub("#", refusal.reason)
        if alike not in self._reasons and len(self._reasons) == _SHOWN_MESSAGES:
            return
        reason = self._reasons.setdefault(alike, _Reason())
        reason.count += 1
        if reason.count <= _SHOWN_PLACES:
            reason.places.setdefault(refusal.reason, []).append(refusal.key)

    def add_documents(self, refusals: Iterable[Refusal]) -> None:
        for refusal in refusals:
            self.add(refusal._replace(key=f'document "{refusal.key}"'))

    def show(self) -> None:
        shown_count = 0
        for reason in self._reasons.values():
            shown_count += reason.count
            others = reason.count - min(reason.count, _SHOWN_PLACES)
            is_one = len(reason.places) == 1
            for text, places in reason.places.items():
                more = f" and {others:,} more" if others and is_one else ""
                self._print(f"{'; '.join(places)}{more}: {text}")
            if others and not is_one:
                self._print(f"{others:,} more for such a reason")
        if self.count > shown_count:
            print_message(f"... and {self.count - shown_count:,} more", logging.WARNING)

    def _print(self, line: str) -> None:
        print_message(shown(f"{self._action}: {line}"), logging.WARNING)


@dataclass(slots=True)
class _Reason:
    count: int = 0
    places: dict[str, list[str]] = field(default_factory=dict)
    """The first places by the reason with its numbers."""
