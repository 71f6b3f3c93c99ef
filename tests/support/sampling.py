"""Every run tests a few of many parameters; `--more` or `--long` runs test all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

_PARAMETERS = type(pytest.param())


def sample(values: Iterable[Any], every: int, mark: str = "long") -> list[Any]:
    """Return a parameter for each value. Of every `every` values, all but the first have the mark.

    A tuple is the values of several names.
    """
    return [
        pytest.param(
            *(value if type(value) is tuple else (value,)),
            marks=getattr(pytest.mark, mark) if number % every else (),
        )
        for number, value in enumerate(values)
    ]


def mark_repetitions(items: Iterable[pytest.Item]) -> None:
    """Mark combinations of parameters of `sampled` tests long, except the first of each value."""
    functions: dict[object, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            functions.setdefault(item.obj, []).append(item)
    for cases in functions.values():
        places = [_places(case) for case in cases]
        lengths = {name: 1 + max(place[name] for place in places) for name in places[0]}
        longest = max(lengths, key=lengths.__getitem__)
        for case, place in zip(cases, places, strict=True):
            turn = place[longest]
            if any(place[name] != turn % length for name, length in lengths.items()):
                case.add_marker(pytest.mark.long)


def _places(case: pytest.Function) -> dict[str, int]:
    """Return the index of each parameter's value; for names that share a parametrize(), of the first."""
    places = {}
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        values = [_first(value, len(names)) for value in mark.args[1]]
        places[names[0]] = values.index(case.callspec.params[names[0]])
    return places


def _first(value: Any, names: int) -> Any:
    """Return the value of the first of the names that share a parametrize()."""
    if isinstance(value, _PARAMETERS):
        return value.values[0]
    return value if names == 1 else value[0]
