"""Unicode 13.0 as the normal form sees it: arrays that kernels index by code point.

`scripts/make_unicode_tables.py` writes the file that they come from.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from textsim_db.text.array_types import ByteArray, Int32Array

UNICODE_VERSION = "13.0"
POINTS = 0x110000
SEPARATOR, WORD, MARK, SPACELESS = range(4)
SPACE = ord(" ")
UNSTABLE, UNASSIGNED, JOINING = 253, 254, 255
MAX_MARKS = 30
"""Marks kept in a run. NFKC sorts them in quadratic time, so the marks after them are dropped."""
RUN = np.dtype([("first", "<i4"), ("kind", "u1"), ("order", "u1"), ("shift", "<i4")])
"""Code points of equal properties, from the first up to that of the next run."""


class Tables(NamedTuple):
    """Properties of each code point: (POINTS,) each."""

    kind: ByteArray
    """SEPARATOR, WORD (a letter or number), MARK, or SPACELESS (a letter or number of a script that
    uses no spaces)."""
    order: ByteArray
    """The combining class, or UNSTABLE (NFKC changes it), UNASSIGNED, or JOINING (NFKC may join it
    with the characters before it)."""
    lower: Int32Array
    """The code point of the lower case."""
    ascii_letters: ByteArray
    """The lower case of each byte that is an ASCII letter or digit, else 0: (256,)."""


@cache
def tables() -> Tables:
    """Expand the runs into arrays of about 6.5 MB, once in a process."""
    runs = np.frombuffer(Path(__file__).with_name("unicode_runs.bin").read_bytes(), RUN)
    lengths = np.diff(runs["first"], append=POINTS)
    kind, order, shift = (np.repeat(runs[name], lengths) for name in ("kind", "order", "shift"))
    lower = np.arange(POINTS, dtype=np.int32) + shift
    ascii_letters = np.zeros(256, np.uint8)
    ascii_letters[:128] = np.where(kind[:128] == WORD, lower[:128], 0)
    return Tables(kind, order, lower, ascii_letters)
