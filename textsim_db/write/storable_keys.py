"""Keys, scopes and notes as they are stored, and the errors for other values; no kernels."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral
from uuid import UUID

from textsim_db.errors import DocumentError
from textsim_db.text.storable_text import is_null, wrong_value

MAX_KEY_BYTES = 1000
MAX_SCOPE_BYTES = 200
MAX_NOTE_BYTES = 10_000
_EXPECTED = "str, an integer or a UUID"


def stored_key(key: object) -> str:
    """Return a key as it is stored; raise DocumentError if it cannot be stored.

    Integers, also those of NumPy, and UUIDs are stored as their text.
    """
    if type(key) is str and key.isascii() and len(key) <= MAX_KEY_BYTES and "\0" not in key:
        return key
    if not isinstance(key, str):
        if isinstance(key, bool) or not isinstance(key, Integral | UUID):
            raise wrong_value(key, "key", _EXPECTED)
        if isinstance(key, Integral) and abs(int(key)) >= 10**MAX_KEY_BYTES:
            raise DocumentError(f"the key is longer than {MAX_KEY_BYTES} digits")
        key = str(key) if isinstance(key, UUID) else str(int(key))
    return _encodable(key, "key", MAX_KEY_BYTES)


def stored_scope(scope: object) -> str:
    """Return a scope as it is stored; raise DocumentError if it cannot be stored.

    Integers and UUIDs are stored as their text.
    """
    if (
        type(scope) is str
        and scope.isascii()
        and len(scope) <= MAX_SCOPE_BYTES
        and "\0" not in scope
    ):
        return scope
    if is_null(scope):
        raise DocumentError("the scope is missing; documents of a scoped corpus have one")
    if isinstance(scope, Integral | UUID) and not isinstance(scope, bool):
        scope = str(scope)
    if not isinstance(scope, str):
        raise wrong_value(scope, "scope", _EXPECTED)
    return _encodable(scope, "scope", MAX_SCOPE_BYTES)


def _encodable(text: str, noun: str, most: int) -> str:
    """Return a text of at most this many bytes; raise DocumentError if it cannot be stored."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise DocumentError(f"the {noun} has a lone surrogate") from None
    if b"\0" in data:
        raise DocumentError(f"the {noun} has a NUL character")
    if len(data) > most:
        raise DocumentError(f"the {noun} is {len(data)} bytes long; at most {most} are possible")
    return text


def stored_note(note: object) -> str:
    """Return the note of a judgement; raise DocumentError if it cannot be stored."""
    if not isinstance(note, str):
        raise wrong_value(note, "note", "str")
    return _encodable(note, "note", MAX_NOTE_BYTES)


def possible_key(key: object) -> str | None:
    """Return a key as it is stored, None if it cannot be the key of a document."""
    with suppress(DocumentError):
        return stored_key(key)
    return None
