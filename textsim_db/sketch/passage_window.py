"""The window of a passage: how many units a shingle has, and how many shingles a window; no NumPy."""

from __future__ import annotations

from typing import NamedTuple


class Window(NamedTuple):
    """The shingles of which a fingerprint is chosen."""

    n: int
    """The units in a shingle."""
    width: int
    """The shingles in a window."""


def window_of(length: int) -> Window:
    """Return the window of a passage of this many units.

    Longer shingles are in fewer documents by chance, and shorter ones make fewer fingerprints.
    """
    n = max(3, length // 2)
    return Window(n, length - n + 1)


def expected_fingerprints(units: float, length: int) -> float:
    """Return about how many fingerprints a text has, if no shingle comes twice.

    A window chooses another shingle than the window before with the probability 2 / (width + 1):
    Schleimer, Wilkerson and Aiken, "Winnowing", SIGMOD 2003, section 4.
    """
    width = window_of(length).width
    windows = units - length + 1
    return 0.0 if windows < 1 else 1 + (windows - 1) * 2 / (width + 1)
