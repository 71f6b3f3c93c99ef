"""The errors of textsim-db; all derive from TextsimError."""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from textsim_db.results.shown_values import shown

if TYPE_CHECKING:
    from textsim_db.results import Match

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class TextsimError(Exception):
    """The base of all errors of textsim-db."""

    def __str__(self) -> str:
        """Return the message; a lone surrogate, as a key may have, is escaped to be printable."""
        return super().__str__().encode(errors="backslashreplace").decode()


class ConfigurationError(TextsimError, ValueError):
    """A setting or an argument is not possible, such as a threshold of 0."""


class MeasureError(TextsimError, ValueError):
    """A measure is unknown or cannot be computed, for example because the texts are too long."""


class DuplicateError(TextsimError):
    """A unique corpus has a document that matches a new one; `key` is the key of the new one.

    `matches` are the documents that stand in its way, best first. `reason` says why the first of them
    was rejected; it is None if it was not.
    """

    def __init__(
        self, corpus: str, key: str, matches: Sequence[Match], reason: str | None = None
    ) -> None:
        best = matches[0]
        why = "" if reason is None else f", which was rejected: {shown(reason)}"
        super().__init__(
            f'document "{shown(key[:100])}" was not added: it is a twin of document '
            f'"{shown(best.key[:100])}" of the corpus "{shown(corpus)}", with similarity '
            f"{best.similarity:.3f}{why}"
        )
        self.key = key
        self.matches = list(matches)
        self.reason = reason


class DocumentError(TextsimError, ValueError):
    """A document or its key cannot be stored, for example because it has a NUL character."""


class InputError(TextsimError, ValueError):
    """An input file cannot be read."""


class DatabaseError(TextsimError):
    """A database operation failed; `__cause__` is the error of the database driver."""


class DatabaseUnavailable(DatabaseError):
    """The database cannot be reached, or the connection was lost."""


class SchemaError(DatabaseError):
    """The schema is missing or has another version, or the server does not support it."""


class EmbeddedServerError(DatabaseUnavailable):
    """The embedded PostgreSQL is not installed or did not start."""


class CorpusNotFound(TextsimError, LookupError):
    """No corpus has this name; `name` is the name."""

    def __init__(self, name: str, others: Iterable[str] = ()) -> None:
        super().__init__(f'corpus "{name}" does not exist{suggestion(name, others)}')
        self.name = name


class CorpusExists(TextsimError):
    """A corpus with this name exists already."""


class CorpusBusy(TextsimError):
    """Another session is rebuilding the corpus; call again later."""


class CorpusChanged(TextsimError):
    """Another session rebuilt the corpus during the call; call again."""


class JudgementExists(TextsimError):
    """A pair was judged otherwise before, and the call does not name the verdict that it replaces."""


class DocumentNotFound(TextsimError, LookupError):
    """No document of the corpus has this key."""


class RecipeError(TextsimError):
    """The installed version of textsim-db does not compute the corpus, or ignores a setting of it."""


class Misfit(NamedTuple):
    """A value of a frame that is no text, key or scope, with its place."""

    value: Any
    column: str
    row: int
    """Its row, from 0 on."""


def lacks_right(error: Exception) -> bool:
    """Return whether the database refused something because the role has no right to it."""
    return getattr(error.__cause__, "sqlstate", None) == "42501"


def lacks_object(error: Exception) -> bool:
    """Return whether a table, a column or a function does not exist."""
    return getattr(error.__cause__, "sqlstate", None) in ("42P01", "42703", "42883")


def on_one_line(error: Exception) -> str:
    """Return the message of an error on one line, or its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def install_extra(name: str) -> str:
    """Return the command that installs an extra; no package is published yet."""
    is_checkout = (Path(__file__).parents[1] / "pyproject.toml").exists()
    how = (
        "-e " if is_checkout else ""
    )  # without it, a copy would replace the modules of the checkout
    return f"pip install {how}'.[{name}]' in a checkout of textsim-db"


@contextmanager
def needs_extra(
    name: str, reason: str, kind: type[TextsimError] = ConfigurationError
) -> Iterator[None]:
    """Raise an error, with the command that helps, if a package of an extra is missing."""
    try:
        yield
    except ImportError as error:
        raise kind(f"{reason}: {install_extra(name)}") from error


def suggestion(name: str, others: Iterable[str]) -> str:
    """Return '; did you mean ...?' with the name most similar to a misspelt name, or ''."""
    folded = {other.casefold(): other for other in others}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f'; did you mean "{shown(folded[near[0]])}"?' if near else ""


def _with_names(doc: str, settings: Sequence[str]) -> str:
    """Add the names of the settings to the paragraph of **settings in a docstring."""

    def added(match: re.Match[str]) -> str:
        indent = f"{match[2]}    "
        names = f"They are {', '.join(settings)}."
        return f"{match[1]}\n" + textwrap.fill(
            names, 100, initial_indent=indent, subsequent_indent=indent
        )

    return re.sub(r"(\n( *)\*\*settings:.*(?:\n\2 +\S.*)*)", added, doc)


def suggest_settings(
    *settings: str,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Name the settings in the docstring, and make the TypeError for a misspelt argument suggest one."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        names = [*inspect.signature(function).parameters, *settings]
        function.__doc__ = _with_names(function.__doc__ or "", settings)

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            for name in kwargs:
                if name not in names:
                    near = suggestion(name, names)
                    raise TypeError(f'{function.__name__}() has no argument "{name}"{near}')
            return function(*args, **kwargs)

        return call

    return decorate
