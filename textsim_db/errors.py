"""Every error that textsim-db raises on purpose; all derive from TextsimError."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class TextsimError(Exception):
    """Base of every error of textsim-db."""


class ConfigurationError(TextsimError, ValueError):
    """A setting that is not possible, such as a threshold outside (0, 1]."""


class MeasureError(TextsimError, ValueError):
    """A measure that cannot be computed: no sequence, a cost below 0, or texts that are too long."""


class DocumentError(TextsimError, ValueError):
    """A document or key that cannot be stored, such as one with a NUL character."""


class InputError(TextsimError, ValueError):
    """An input file that cannot be read."""


class DatabaseError(TextsimError):
    """The database refused or failed; its own error is the cause."""


class DatabaseUnavailable(DatabaseError):
    """No connection to the database, or it was lost."""


class SchemaError(DatabaseError):
    """The schema is missing or of another version, or the server cannot hold it."""


class EmbeddedServerError(DatabaseUnavailable):
    """The embedded PostgreSQL is not installed or did not start."""


class CorpusNotFound(TextsimError, LookupError):
    """There is no corpus of that name."""

    def __init__(self, name: str, others: Iterable[str] = ()) -> None:
        super().__init__(f'corpus "{name}" does not exist{suggestion(name, others)}')
        self.name = name


class CorpusExists(TextsimError):
    """A corpus of that name exists already."""


class CorpusBusy(TextsimError):
    """Another session is rebuilding the corpus."""


class CorpusChanged(TextsimError):
    """Another session rebuilt the corpus while it was in use; repeat the call."""


class DocumentNotFound(TextsimError, LookupError):
    """There is no document with that key in the corpus."""


class RecipeError(TextsimError):
    """The corpus was built with signatures that this installation does not compute."""


def shown(text: str) -> str:
    """Return a text for one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def suggestion(name: str, others: Iterable[str]) -> str:
    """Return '; did you mean ...?' with the name that is most like a misspelt one, or ''."""
    folded = {other.casefold(): other for other in others}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f'; did you mean "{shown(folded[near[0]])}"?' if near else ""


def suggest_arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make the TypeError for a misspelt keyword argument name the argument that is most like it."""
    names = list(inspect.signature(function).parameters)[1:]

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for name in kwargs:
            if name not in names:
                near = suggestion(name, names)
                raise TypeError(f'{function.__name__}() has no argument "{name}"{near}')
        return function(*args, **kwargs)

    return call
