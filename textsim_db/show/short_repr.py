"""The plain form of an object with long lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_MOST_VALUES = 10
"""The values of a list that are shown."""


def short_repr(owner: object, fields: Iterable[str]) -> str:
    """Return Name(field=value, ...), with a number in the place of a long list."""
    values = ", ".join(f"{name}={_shortened(getattr(owner, name))}" for name in fields)
    return f"{type(owner).__name__}({values})"


def _shortened(value: Any) -> str:
    if isinstance(value, list | tuple | dict) and len(value) > _MOST_VALUES:
        return f"<{len(value):,} values>"
    return repr(value)
