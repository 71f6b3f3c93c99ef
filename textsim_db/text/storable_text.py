"""Texts that PostgreSQL can store, and the errors for other values; no kernels.

The keys of a table whose key has several columns are joined to one text, and split again. SQL
(`textsim.join_key`) and Spark (`textsim_db.spark.join_key`) have the same rule.
"""

from __future__ import annotations

from numbers import Real

from textsim_db.errors import DocumentError, Misfit, shown

MAX_BYTES = 128 * 1024 * 1024
"""Bytes of the longest document in UTF-8: its word ids must fit in one PostgreSQL value."""


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
