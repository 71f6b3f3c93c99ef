"""Texts, keys, scopes and notes as they can be stored: their types and limits; no kernels.

The keys of a table whose key has several columns are joined to one text, and split again. SQL
(`textsim.join_key`) and Spark (`textsim_db.spark.join_key`) have the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from numbers import Integral, Real
from typing import TypeAlias
from uuid import UUID

from textsim_db.errors import DocumentError, Misfit
from textsim_db.results.shown_values import shown

MAX_BYTES = 128 * 1024 * 1024
"""Bytes of the longest document in UTF-8: its word ids must fit in one PostgreSQL value."""
MAX_KEY_BYTES = 1000
MAX_SCOPE_BYTES = 200
MAX_NOTE_BYTES = 10_000
_EXPECTED = "str, an integer or a UUID"


def to_bytes(text: str) -> bytes:
    """Return the text as UTF-8; raise DocumentError if PostgreSQL cannot store it.

    PostgreSQL cannot store a value that is not a str, has a NUL character or a lone surrogate, or is
    longer than 128 MiB.
    """
    if not isinstance(text, str):
        raise wrong_value(text, "text", "str", "; leave it out, or give an empty text")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"the text has a lone surrogate U+{ord(text[error.start]):04X} "
            f"at character {error.start + 1}, which PostgreSQL cannot store; remove it"
        ) from None
    if b"\0" in data:
        raise DocumentError(
            f"the text has a NUL character at character {text.index(chr(0)) + 1}, "
            "which PostgreSQL cannot store; remove it"
        )
    if len(data) > MAX_BYTES:
        raise DocumentError(
            f"the text is {len(data)} bytes long; at most {MAX_BYTES} are possible; split the text"
        )
    return data


def is_null(value: object) -> bool:
    """Say whether a value is None, or what data frames have in its place: NaN, NA or NaT."""
    # Numbers of NumPy are real, too.
    if isinstance(value, Real):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def wrong_value(value: object, noun: str, expected: str, remedy: str = "") -> DocumentError:
    """Return the error for a value of a wrong type; remedy: follows if the value is null."""
    place = ""
    if isinstance(value, Misfit):
        place = f'column "{shown(value.column)}", row {value.row}: '
        value = value.value
    if is_null(value):
        return DocumentError(f"{place}the {noun} is null{remedy}")
    return DocumentError(
        f"{place}the {noun} is of type {type(value).__name__}; expected {expected}"
    )


def stored_key(key: object) -> str:
    """Return a key as it is stored; raise DocumentError if it cannot be stored."""
    return _stored(key, "key", MAX_KEY_BYTES)


def stored_scope(scope: object) -> str:
    """Return a scope as it is stored; raise DocumentError if it cannot be stored."""
    if type(scope) is not str and is_null(scope):
        raise DocumentError("the scope is missing; documents of a scoped corpus have one")
    return _stored(scope, "scope", MAX_SCOPE_BYTES)


def _stored(value: object, noun: str, most: int) -> str:
    if type(value) is str and value.isascii() and len(value) <= most and "\0" not in value:
        return value
    if not isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, Integral | UUID):
            raise wrong_value(value, noun, _EXPECTED)
        if isinstance(value, Integral) and abs(int(value)) >= 10**most:
            raise DocumentError(f"the {noun} is longer than {most} digits")
        value = str(value) if isinstance(value, UUID) else str(int(value))
    return _encodable(value, noun, most)


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


def stored_note(note: object, noun: str = "note") -> str:
    """Return the note or source of a judgement; raise DocumentError if it cannot be stored."""
    if not isinstance(note, str):
        raise wrong_value(note, noun, "str")
    return _encodable(note, noun, MAX_NOTE_BYTES)


def possible_key(key: object) -> str | None:
    """Return a key as it is stored, None if it cannot be the key of a document."""
    with suppress(DocumentError):
        return stored_key(key)
    return None


def possible_keys(keys: Iterable[object]) -> Iterator[str]:
    """Yield the keys that documents can have; raise DocumentError for a key of a wrong type."""
    for key in keys:
        if isinstance(key, bool) or not isinstance(key, str | Integral | UUID):
            raise wrong_value(key, "key", _EXPECTED)
        stored = possible_key(key)
        if stored is not None:
            yield stored


Key = str | int | UUID
"""The types of a key; a key is stored as its text."""

Scope = str | int | UUID
"""The types of a scope; a scope is stored as its text."""

KeyPart: TypeAlias = str | int | UUID | date
"""The value of a key column."""


def join_key(*parts: KeyPart) -> str:
    """Return the key of the row whose key columns have these values.

    A slash joins the values. Inside of a value ~ becomes ~0 and / becomes ~1, as in a JSON pointer
    (RFC 6901), so two different rows never have one key. A single value is only turned into a text.

    Args:
        parts: the values, in the order of `key_columns`. A datetime with a time zone is written in UTC.

    Raises:
        TypeError: there is no value, or a value has another type, such as None.

    Examples:
        >>> join_key(date(2026, 11, 25), 17)
        '2026-11-25/17'
        >>> join_key("and/or", "~")
        'and~1or/~0'
    """
    if not parts:
        raise TypeError("join_key expects at least one value")
    texts = [_text(part) for part in parts]
    if len(texts) == 1:
        return texts[0]
    return "/".join(text.replace("~", "~0").replace("/", "~1") for text in texts)


def split_key(key: str) -> list[str]:
    """Return the texts of the values that a key of several columns was joined from.

    Args:
        key: the key of a document from a table with several key columns.

    Examples:
        >>> split_key("2026-11-25/17")
        ['2026-11-25', '17']
        >>> split_key("and~1or/~0")
        ['and/or', '~']
    """
    return [part.replace("~1", "/").replace("~0", "~") for part in key.split("/")]


def _text(part: KeyPart) -> str:
    """Return a value as PostgreSQL writes it with DateStyle ISO and TimeZone UTC."""
    if isinstance(part, datetime):
        zone = "" if part.tzinfo is None else "+00"
        moment = part.replace(tzinfo=None) if not zone else part.astimezone(UTC)
        fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
        return moment.replace(microsecond=0, tzinfo=None).isoformat(" ") + fraction + zone
    if isinstance(part, date):
        return part.isoformat()
    if isinstance(part, str):
        return part
    if isinstance(part, int | UUID) and not isinstance(part, bool):
        return str(part)
    raise TypeError(
        f"a value of a key is of type {type(part).__name__}; expected str, int, UUID, date or datetime"
    )
