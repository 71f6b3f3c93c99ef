"""Values as messages and tables show them: a similarity, a count, and a name on one line."""

from __future__ import annotations


def similarity(value: float) -> str:
    """Return a similarity with four decimals; only an exact 1 is shown as 1.0000."""
    return "0.9999" if 0.99995 <= value < 1 else f"{value:.4f}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def shown(text: str) -> str:
    """Return a text with control characters escaped, to show it on one line."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )
