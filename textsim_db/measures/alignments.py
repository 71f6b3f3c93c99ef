"""Alignments of two sequences at the least cost of edits.

The table is our own, because RapidFuzz aligns with equal costs only, and shows no table. It aligns the
sequences that are too long for the table.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING, Any, TypeAlias

from rapidfuzz.distance import Editops, Levenshtein

from textsim_db.measures.edits import (
    Costs,
    Encoded,
    as_text,
    compiled,
    costs_of,
    distance,
    encoded,
    is_unit,
    refuse_above,
    strip,
)
from textsim_db.measures.sets import Sequence
from textsim_db.settings.check_values import items_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_CELLS = 2**17
"""Cells of the largest table that Python fills, in less time than Numba takes to load."""
MAX_ARROWS = 2**28
"""Cells of the largest table of arrows, a byte each: two sequences of 16,000 items."""
MAX_TABLE = 2**22
"""Cells of the largest table that is returned: two sequences of 2,000 items."""

Aligned: TypeAlias = tuple[list[Hashable | None], list[Hashable | None]]

_DIAGONAL, _UP, _LEFT = 1, 2, 4


class Arrow(IntFlag):
    """The steps that lead to a cell of an `EditTable` at the least cost; ties set several flags."""

    DIAGONAL = _DIAGONAL
    UP = _UP
    LEFT = _LEFT


_SIGNS = {Arrow.DIAGONAL: "↖", Arrow.UP: "↑", Arrow.LEFT: "←"}
_OF_EDIT = {"replace": _DIAGONAL, "delete": _UP, "insert": _LEFT}


@dataclass(frozen=True, slots=True)
class EditTable:
    """The table of the classic algorithm for edit distances; `print()` shows it with its arrows."""

    a: list[Hashable]
    """The items of the first sequence."""
    b: list[Hashable]
    """The items of the second sequence."""
    distances: npt.NDArray[np.float64]
    """The least costs: float64 of shape (len(a) + 1, len(b) + 1).

    Cell (i, j) is the least cost of turning the first i items of a into the first j items of b.
    """
    arrows: npt.NDArray[np.uint8]
    """`Arrow` flags: uint8 of the same shape.

    UP deletes an item of a, LEFT inserts an item of b, DIAGONAL keeps or substitutes an item.
    """

    def __str__(self) -> str:
        rows = [["", "#", *map(str, self.b)]]
        for i, item in enumerate(["#", *map(str, self.a)]):
            rows.append([item, *(self._cell(i, j) for j in range(len(self.b) + 1))])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            " ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )

    def _cell(self, i: int, j: int) -> str:
        arrow = Arrow(int(self.arrows[i, j]))
        signs = "".join(sign for flag, sign in _SIGNS.items() if flag in arrow)
        return f"{signs}{self.distances[i, j]:g}"


def edit_table(
    a: Sequence, b: Sequence, insertion: float = 1, deletion: float = 1, substitution: float = 1
) -> EditTable:
    """Return the table of edit distances, with the arrows that trace alignments back.

    Raises `MeasureError` for costs below 0, and for over 2^22 cells, such as two sequences of 2,050
    items. Wagner and Fischer, "The string-to-string correction problem", 1974; Jurafsky and Martin,
    "Speech and Language Processing", chapter 2, on minimum edit distance.

        >>> print(edit_table("at", "art"))
           #  a  r  t
        #  0 ←1 ←2 ←3
        a ↑1 ↖0 ←1 ←2
        t ↑2 ↑1 ↖1 ↖1
    """
    costs = costs_of(insertion, deletion, substitution)
    one, other = list(items_of(a)), list(items_of(b))
    shape = len(one) + 1, len(other) + 1
    refuse_above(shape[0] * shape[1], MAX_TABLE, len(one), len(other))
    import numpy as np

    distances, arrows = np.zeros(shape), np.zeros(shape, np.uint8)
    compiled(_fill)(*_arrays(encoded(one, other), costs), distances, arrows)
    return EditTable(one, other, distances, arrows)


def alignment(
    a: Sequence, b: Sequence, insertion: float = 1, deletion: float = 1, substitution: float = 1
) -> Aligned:
    """Return both sequences as lists of equal length, with None for a gap, aligned at the least cost.

    A gap in the first list is an insertion, and a gap in the second list is a deletion. The same input
    always gives the same alignment, even if several have the least cost. Empty sequences give empty
    lists.

    Raises `MeasureError` for costs below 0, and for sequences whose alignment would take minutes or
    gigabytes. If the costs differ from each other, the limit is 2^28 cells: two sequences of 16,000
    items that share neither start nor end. Wagner and Fischer, "The string-to-string correction
    problem", 1974.

        >>> alignment("cat", "cart")
        (['c', 'a', None, 't'], ['c', 'a', 'r', 't'])
    """
    costs = costs_of(insertion, deletion, substitution)
    one, other = list(items_of(a)), list(items_of(b))
    numbers = encoded(one, other)
    start, end = strip(numbers)
    inner = numbers[0][start : len(one) - end], numbers[1][start : len(other) - end]
    path = [_DIAGONAL] * start + _path(inner, costs) + [_DIAGONAL] * end
    ones, others = iter(one), iter(other)
    return (
        [None if arrow == _LEFT else next(ones) for arrow in path],
        [None if arrow == _UP else next(others) for arrow in path],
    )


def _path(both: Encoded, costs: Costs) -> list[int]:
    sizes = len(both[0]), len(both[1])
    shape = sizes[0] + 1, sizes[1] + 1
    if is_unit(costs) and shape[0] * shape[1] > MAX_ARROWS:
        texts = as_text(both)
        distance(texts, Costs(1, 1, 1))  # raises MeasureError if it would take too long
        return _path_of(Levenshtein.editops(*texts, score_hint=64), sizes[0])
    refuse_above(shape[0] * shape[1], MAX_ARROWS, *sizes)
    if shape[0] * shape[1] <= MOST_CELLS and "numba" not in sys.modules:
        rows = [[0] * shape[1] for _ in range(shape[0])]
        _fill(*both, costs, [[0.0] * shape[1] for _ in range(2)], rows)
        return _back_trace(rows, [0] * sum(sizes))  # type: ignore[no-any-return]
    import numpy as np

    arrows = np.zeros(shape, np.uint8)
    compiled(_fill)(*_arrays(both, costs), np.zeros((2, shape[1])), arrows)
    return compiled(_back_trace)(arrows, np.empty(sum(sizes), np.uint8)).tolist()  # type: ignore[no-any-return]


def _arrays(both: Encoded, costs: Costs) -> list[npt.NDArray[Any]]:
    import numpy as np

    return [*(np.array(numbers, np.int32) for numbers in both), np.array(costs, np.float64)]


def path_through(table: EditTable) -> list[Arrow]:
    """Return the arrows of one path from the first cell to the last; of equals, items are replaced."""
    steps = [0] * (len(table.a) + len(table.b))
    return [*map(Arrow, _back_trace(table.arrows.tolist(), steps))]


def _path_of(edits: Editops, size: int) -> list[int]:
    path: list[int] = []
    i = 0
    for edit in edits:
        path += [_DIAGONAL] * (edit.src_pos - i)
        path.append(_OF_EDIT[edit.tag])
        i = edit.src_pos + (edit.tag != "insert")
    return path + [_DIAGONAL] * (size - i)


def _fill(a: Any, b: Any, costs: Any, distances: Any, arrows: Any) -> None:
    """Fill a table of arrows, and one of distances or its last two rows; arrays, or lists for Python."""
    insertion, deletion, substitution = costs
    rows = len(distances)
    for i in range(len(a) + 1):
        row, above, steps = distances[i % rows], distances[(i - 1) % rows], arrows[i]
        row[0] = 0.0
        if i > 0:
            row[0] = above[0] + deletion
            steps[0] = _UP
        for j in range(1, len(b) + 1):
            inserted = row[j - 1] + insertion
            if i == 0:
                row[j] = inserted
                steps[j] = _LEFT
                continue
            kept = above[j - 1]
            if a[i - 1] != b[j - 1]:
                kept += substitution
            deleted = above[j] + deletion
            least = min(kept, deleted, inserted)
            row[j] = least
            arrow = _DIAGONAL if kept == least else 0
            if deleted == least:
                arrow |= _UP
            if inserted == least:
                arrow |= _LEFT
            steps[j] = arrow


def _back_trace(arrows: Any, path: Any) -> Any:
    """Return the arrows of one path from the first cell to the last cell; path: room for them."""
    i, j = len(arrows) - 1, len(arrows[0]) - 1
    at = len(path)
    while i > 0 or j > 0:
        at -= 1
        if arrows[i][j] & _DIAGONAL:
            path[at] = _DIAGONAL
            i -= 1
            j -= 1
        elif arrows[i][j] & _UP:
            path[at] = _UP
            i -= 1
        else:
            path[at] = _LEFT
            j -= 1
    return path[at:]
