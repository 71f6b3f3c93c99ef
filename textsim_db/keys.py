"""The keys of tables whose key has several columns: joined to one text, and split again.

SQL (`textsim.join_key`) and Spark (`textsim_db.spark.join_key`) have the same rule.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TypeAlias
from uuid import UUID

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
