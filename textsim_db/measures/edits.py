"""Edit distance: the least cost of turning one sequence into another; computed by RapidFuzz."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence as Items
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from rapidfuzz.distance import Levenshtein

from textsim_db.errors import MeasureError
from textsim_db.measures.sets import Sequence
from textsim_db.settings.check_values import items_of

MAX_CELLS = 2**35
"""Cells of the largest table that is filled cell by cell, which takes about a minute."""
MAX_BITS = 2**39
"""Cells of the largest table that RapidFuzz fills 64 bits at a time, in about two minutes."""
LONG = 2**20
"""Cells from which RapidFuzz first tries a narrow diagonal of the table."""

Encoded: TypeAlias = tuple[list[int], list[int]]
Comparable: TypeAlias = tuple[Items[Hashable], Items[Hashable]]


class Costs(NamedTuple):
    """The costs of inserting, deleting and substituting an item."""

    insertion: float
    deletion: float
    substitution: float


_UNIT = Costs(1, 1, 1)


def levenshtein(
    a: Sequence, b: Sequence, insertion: float = 1, deletion: float = 1, substitution: float = 1
) -> float:
    """Return the least cost of turning a into b by inserting, deleting and substituting items.

    The result is 0 for equal sequences, and an int if all costs are whole numbers.

    Raises `MeasureError` for costs below 0, and for long sequences that differ so much that the
    comparison would take minutes, such as two unrelated texts of ten million characters. Compare the
    words of such texts instead. Levenshtein, "Binary codes capable of correcting deletions, insertions,
    and reversals", 1966; Wagner and Fischer, "The string-to-string correction problem", 1974.

        >>> levenshtein("kitten", "sitting")
        3
    """
    return distance(comparable(a, b), costs_of(insertion, deletion, substitution))


def levenshtein_similarity(
    a: Sequence, b: Sequence, insertion: float = 1, deletion: float = 1, substitution: float = 1
) -> float:
    """Return 1 - d / m, from 0 to 1: d is `levenshtein()`, m its maximum for these lengths.

    The maximum is the cost of replacing every item. The result is 0 if both sequences are empty, or if
    all costs are 0. Raises `MeasureError` as `levenshtein()` does.

        >>> levenshtein_similarity("cat", "cart")
        0.75
    """
    costs = costs_of(insertion, deletion, substitution)
    both = comparable(a, b)
    most = _most(len(both[0]), len(both[1]), costs)
    return max(1 - distance(both, costs) / most, 0.0) if most else 0.0


def costs_of(insertion: float, deletion: float, substitution: float) -> Costs:
    """Check costs and return whole numbers as int; raise MeasureError for a cost outside 0 to 2^31."""
    if type(insertion) is type(deletion) is type(substitution) is int and (
        insertion == deletion == substitution == 1
    ):
        return _UNIT
    costs: list[float] = []
    for name, cost in zip(Costs._fields, (insertion, deletion, substitution), strict=True):
        if not isinstance(cost, int | float) or not 0 <= cost <= 2**31:
            raise MeasureError(f"{name} costs {cost!r}; expected 0 to 2^31")
        costs.append(int(cost) if cost == int(cost) else cost)
    return Costs(*costs)


def is_unit(costs: Costs) -> bool:
    """Say whether every change costs the same."""
    return costs.insertion == costs.deletion == costs.substitution


def comparable(a: Sequence, b: Sequence) -> Comparable:
    """Return two sequences in a form that RapidFuzz compares correctly.

    RapidFuzz compares items that are not strings by their hashes, and hash(-1) equals hash(-2).
    """
    if isinstance(a, str) and isinstance(b, str):
        return a, b
    one, other = (x if isinstance(x, list) else list(items_of(x)) for x in (a, b))
    try:
        # join() is the fastest check that all items are strings. RapidFuzz reads "" as "\0".
        "".join(one), "".join(other)  # type: ignore[arg-type]
        if "" not in one and "" not in other:
            return one, other
    except TypeError:
        pass
    return as_text(encoded(one, other))


def as_text(both: Encoded) -> Comparable:
    """Return numbers as characters, which RapidFuzz reads fastest; as lists if a number is too large."""
    if max(map(max, filter(None, both)), default=0) > sys.maxunicode:
        return both
    one, other = ("".join(map(chr, numbers)) for numbers in both)
    return one, other


def encoded(a: Sequence, b: Sequence) -> Encoded:
    """Return sequences as numbers, with equal numbers for equal items."""
    numbers: dict[Hashable, int] = {}
    try:
        one, other = (
            [numbers.setdefault(item, len(numbers)) for item in items_of(sequence)]
            for sequence in (a, b)
        )
    except TypeError as error:
        raise MeasureError(f"an item cannot be compared: {error}") from error
    return one, other


def distance(both: Comparable, costs: Costs) -> float:
    """Return the edit distance of two sequences from comparable()."""
    whole = all(isinstance(cost, int) for cost in costs)
    # RapidFuzz is fast if all cost the same, or a substitution as much as a deletion and an insertion.
    is_fast = (
        whole
        and costs.insertion == costs.deletion
        and (is_unit(costs) or costs.substitution >= costs.insertion + costs.deletion)
    )
    sizes = len(both[0]), len(both[1])
    cells = sizes[0] * sizes[1]
    if not is_fast:
        refuse_above(cells, MAX_CELLS, *sizes)
    if not whole:
        import numpy as np

        one, other = (np.array(numbers, np.int32) for numbers in encoded(*both))
        row = np.arange(len(other) + 1) * float(costs.insertion)
        return compiled(_distance)(one, other, *map(float, costs), row)  # type: ignore[no-any-return]
    # Long texts may be nearly equal. The hint makes RapidFuzz try a narrow diagonal first. Near it, a
    # distance up to the cutoff takes some ten seconds.
    unit = int(costs.insertion)
    hint = unit if is_fast and cells > LONG else None
    cutoff = unit * (MAX_BITS // (2 * max(sizes))) if is_fast and cells > MAX_BITS else None
    weights = unit, int(costs.deletion), int(costs.substitution)
    least = Levenshtein.distance(*both, weights=weights, score_cutoff=cutoff, score_hint=hint)
    if cutoff is not None and least > cutoff:
        refuse_above(cells, MAX_BITS, *sizes)
    return least


def strip(a: Encoded) -> tuple[int, int]:
    """Return how many items two sequences share at the start, and of the remaining items at the end."""
    start = _count_equal(*a)
    return start, _count_equal(*(numbers[start:][::-1] for numbers in a))


def _count_equal(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def refuse_above(cells: int, most: int, a: int, b: int) -> None:
    """Raise MeasureError if a table has more cells than most; a, b: the lengths of the sequences."""
    if cells > most:
        raise MeasureError(
            f"sequences of {a:,} and {b:,} items differ too much to be compared item by item; "
            "compare words instead of characters, or compare shorter parts"
        )


def _most(a: int, b: int, costs: Costs) -> float:
    replaced = min(a, b) * min(costs.substitution, costs.insertion + costs.deletion)
    return replaced + max(a - b, 0) * costs.deletion + max(b - a, 0) * costs.insertion


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """Return a function as a kernel; Numba is loaded only for this."""
    from textsim_db.base.numba_compiler import kernel

    return kernel(function)


def _distance(
    a: Items[int], b: Items[int], insertion: float, deletion: float, substitution: float, row: Any
) -> float:
    for i in range(len(a)):
        diagonal = row[0]
        row[0] += deletion
        for j in range(len(b)):
            kept = diagonal if a[i] == b[j] else diagonal + substitution
            diagonal = row[j + 1]
            row[j + 1] = min(kept, diagonal + deletion, row[j] + insertion)
    return float(row[len(b)])
