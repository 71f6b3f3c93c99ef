"""Every error that textsim-db raises on purpose; all derive from TextsimError."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TextsimError(Exception):
    """Base of every error of textsim-db."""


class ConfigurationError(TextsimError, ValueError):
    """A setting that cannot be, such as a threshold outside (0, 1]."""


class MeasureError(TextsimError, ValueError):
    """What cannot be measured: no sequence, a cost below 0, or texts too long to compare so."""


class DocumentError(TextsimError, ValueError):
    """A document or key that cannot be stored, such as one with a NUL character."""


class InputError(TextsimError, ValueError):
    """An input file that cannot be read as what it claims to be."""


class DatabaseError(TextsimError):
    """The database refused or failed; its own error is the cause."""


class DatabaseUnavailable(DatabaseError):
    """No connection to the database, or it was lost."""


class SchemaError(DatabaseError):
    """The schema is missing, of another version, or its server cannot carry it."""


class EmbeddedServerError(DatabaseUnavailable):
    """The embedded PostgreSQL is not installed or did not start."""


class CorpusNotFound(TextsimError, LookupError):
    """There is no corpus of that name."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        super().__init__(f'corpus "{name}" does not exist{suggestion(name, known)}')
        self.name = name


class CorpusExists(TextsimError):
    """A corpus of that name exists already."""


class CorpusBusy(TextsimError):
    """Another session is rebuilding the corpus."""


class CorpusChanged(TextsimError):
    """The corpus was rebuilt by somebody else while it was in use; the same call again will do."""


class DocumentNotFound(TextsimError, LookupError):
    """There is no document with that key in the corpus."""


class RecipeError(TextsimError):
    """The corpus was built by a recipe that this version, as installed, does not compute."""


def shown(text: str) -> str:
    """Return a text as it can be shown on one line: control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean ...?' for the nearest known name, or nothing."""
    folded = {other.casefold(): other for other in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f'; did you mean "{folded[near[0]]}"?' if near else ""
