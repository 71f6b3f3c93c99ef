"""The frozen Unicode tables as arrays that kernels index by code point."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from textsim_db.text.array_types import ByteArray, Int32Array
from textsim_db.text.unicode_data import LOWER, RUNS, UNASSIGNED_RUNS

POINTS = 0x110000
SEPARATOR, WORD, MARK, SPACELESS = range(4)
SPACE = ord(" ")
UNSTABLE, UNASSIGNED, JOINING = 253, 254, 255
MAX_MARKS = 30
"""Marks kept in a run. NFKC sorts them in quadratic time, so the marks after them are dropped."""


class Tables(NamedTuple):
    """Properties of each code point: (POINTS,) each."""

    kind: ByteArray
    """SEPARATOR, WORD, MARK or SPACELESS."""
    order: ByteArray
    """The combining class, or UNSTABLE, UNASSIGNED or JOINING."""
    lower: Int32Array
    """The code point of the lower case."""
    ascii_letters: ByteArray
    """The lower case of each byte that is an ASCII letter or digit, else 0: (256,)."""


@cache
def tables() -> Tables:
    """Expand the generated runs into arrays of about 6.5 MB, once in a process."""
    firsts = np.array([run[0] for run in RUNS] + [POINTS])
    lengths = np.diff(firsts)
    kind = np.repeat(np.array([run[1] for run in RUNS], np.uint8), lengths)
    order = np.repeat(np.array([run[2] for run in RUNS], np.uint8), lengths)
    for first, last in UNASSIGNED_RUNS:
        kind[first : last + 1], order[first : last + 1] = SEPARATOR, UNASSIGNED
    lower = np.arange(POINTS, dtype=np.int32)
    for first, last, step, shift in LOWER:
        lower[first : last + 1 : step] += shift
    ascii_letters = np.zeros(256, np.uint8)
    ascii_letters[:128] = np.where(kind[:128] == WORD, lower[:128], 0)
    return Tables(kind, order, lower, ascii_letters)
