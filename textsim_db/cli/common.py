"""What the commands share: options, the database, and messages on standard error."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from textsim_db.cli.logs import COMMANDS, chosen
from textsim_db.errors import (
    CorpusNotFound,
    DatabaseError,
    EmbeddedServerError,
    InputError,
    RecipeError,
)
from textsim_db.errors import shown as shown

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database
    from textsim_db.results import Refusal

SHOWN_REFUSALS = 20
_NO_RIGHT = "42501"

log = logging.getLogger(COMMANDS)

Choice = TypeVar("Choice", bound=StrEnum)
Found = TypeVar("Found")


def number(text: str) -> float:
    """Read a number of the command line; Typer's own messages are those of its libraries."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f'"{shown(text)}" is not a number') from None


def whole_number(text: str) -> int:
    """Read a whole number of the command line."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f'"{shown(text)}" is not a whole number') from None


def one_of(choices: type[Choice], text: str) -> Choice:
    """Read one of several words of the command line."""
    try:
        return choices(text)
    except ValueError:
        raise typer.BadParameter(f'"{shown(text)}" is not one of {", ".join(choices)}') from None


def _own_or_global(ctx: typer.Context, value: str | None) -> str | None:
    """Let --database-url stand before the command as well as after it."""
    return value or ctx.find_root().params.get("database_url")


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        callback=_own_or_global,
        help="The database, such as postgresql://user@host/name. Default: TEXTSIM_DATABASE_URL, "
        "or the embedded PostgreSQL.",
    ),
]
CorpusName = Annotated[str, typer.Argument(metavar="CORPUS", help="Name of the corpus.")]
Threshold = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="NUMBER",
        help="Least similarity, above 0 and at most 1. Default: the corpus's own. Below that, "
        "fewer of the similar documents are found: see textsim corpus show.",
    ),
]
LanguageLimit = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help='Only documents of a language, such as "en", in a corpus that identifies languages.',
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def connect(database_url: str | None) -> Database:
    """Open the database that the options name; the server is told by which command."""
    from textsim_db.database import connect

    return connect(database_url, f"textsim-db {chosen.command}".rstrip())


def complain(message: str, level: int = logging.INFO, **fields: object) -> None:
    """Print a message on standard error; the fields go with it where it is logged as JSON."""
    log.log(level, "%s", message, extra=fields)


def check_output(path: str) -> None:
    """Raise InputError unless a file can be written there, before the work that fills it."""
    if path == "-":
        return
    if os.path.isdir(path):
        raise InputError(f"{shown(path)} is a folder; a file was expected")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(f"{shown(path)}: cannot be written: there is no folder {shown(folder)}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise InputError(f"{shown(path)}: cannot be written: this user has no right to")


def explain(error: BaseException) -> str:
    """Return an error's message, with those of its causes that say something more, and its notes."""
    lines: list[str] = []
    notes = getattr(error, "__notes__", [])
    cause: BaseException | None = error
    while cause is not None:
        # SQLAlchemy's own message adds the statement and an address; the driver's is inside.
        original = getattr(cause, "orig", None) or cause
        message = _message(original)
        # What it caused quotes it on one line, where its sentences run into each other.
        quoted = _one_line(str(original)) or message
        lines = [line.replace(quoted, message) for line in lines]
        if message and not any(message in line for line in lines):
            lines.append(message)
        cause = cause.__cause__
    return "\n".join(["\n  because: ".join(lines), *notes])


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return shown(place + error.strerror)
    text = str(error) or type(error).__name__
    if isinstance(error, EmbeddedServerError):  # it has lines of the server's log
        return text
    return shown(text) if type(error).__module__.startswith("textsim") else _sentences(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sentences(text: str) -> str:
    """Return a text of several lines on one, each line but the last with a full stop at least."""
    lines = [_one_line(line) for line in text.splitlines() if line.strip()]
    ended = (line if line[-1] in ".,:;!?" else f"{line}." for line in lines[:-1])
    return " ".join([*ended, *lines[-1:]])


def confirm(action: str, yes: bool) -> None:
    """Ask before something is deleted; end with status 2 where the answer is no or cannot be had."""
    if yes:
        return
    if not sys.stdin.isatty() or chosen.json:
        complain(
            f"this would {action}; there is no terminal to ask on, so give --yes to confirm",
            logging.ERROR,
        )
        raise typer.Exit(2)
    if not typer.confirm(f"{action[0].upper()}{action[1:]}?", err=True):
        complain("nothing was deleted")
        raise typer.Exit(2)


def of_each(
    db: Database, name: str | None, look: Callable[[Corpus], Found]
) -> Iterator[tuple[Corpus, Found]]:
    """Look at a corpus, or at each of them but for those that cannot be opened or read."""
    if name is not None:
        corpus = db.corpus(name)
        yield corpus, look(corpus)
        return
    for each in db.corpora():
        with passing_over(db, each):
            try:
                corpus = db.corpus(each)
                found = look(corpus)
            except RecipeError as error:
                complain(f"left out: {error}", logging.WARNING, corpus=each)
            else:
                yield corpus, found


@contextmanager
def passing_over(db: Database, name: str) -> Iterator[None]:
    """Go on to the next corpus where one has been dropped meanwhile, or this role may not read it."""
    try:
        yield
    except (CorpusNotFound, DatabaseError) as error:
        if name not in db.corpora():
            return
        if getattr(error.__cause__, "sqlstate", None) != _NO_RIGHT:
            raise
        message = f'left out: this role may not read the corpus "{shown(name)}"'
        complain(message, logging.WARNING, corpus=name)


class Refusals:
    """Counts what was refused and keeps the first few to be shown."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def add(self, refusal: Refusal) -> None:
        """Take note of a record or file that could not be read."""
        self._note(shown(f"{refusal.key}: {refusal.reason}"))

    def add_documents(self, refusals: Iterable[Refusal]) -> None:
        """Take note of documents that could not be stored."""
        for refusal in refusals:
            self._note(shown(f'document "{refusal.key}": {refusal.reason}'))

    def show(self) -> None:
        """Print what was refused."""
        for line in self._first:
            complain(f"refused: {line}", logging.WARNING)
        if self.count > len(self._first):
            complain(f"... and {self.count - len(self._first):,} more", logging.WARNING)

    def _note(self, line: str) -> None:
        self.count += 1
        if len(self._first) < SHOWN_REFUSALS:
            self._first.append(line)


def program() -> str:
    """Return how the user calls this program, quoted for a shell, for the commands in hints."""
    import shlex
    import shutil

    name = sys.argv[0]
    if PurePath(name).name != "textsim":
        return f"{shlex.quote(sys.executable)} -m textsim_db.cli"
    on_path = shutil.which("textsim")
    return "textsim" if on_path and PurePath(on_path) == PurePath(name) else shlex.quote(name)


def count(number: int, noun: str) -> str:
    """Return "1 document", "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
