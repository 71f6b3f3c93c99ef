"""The answers of tools: JSON without empty members, of at most as many bytes as a model wants."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from textsim_db.errors import ConfigurationError
from textsim_db.measures.word_diff import Change, DiffRun

_LENGTHS = (2_000, 1_000, 500, 200, 100, 50)
"""The lengths to which long texts are cut, one after the other, until an answer is small enough."""
_KEYS = ("key", "a", "b", "copies")
"""The members with keys, which other tools take."""

JsonObject: TypeAlias = dict[str, Any]


def differing_words(
    diff: Sequence[DiffRun], kinds: Sequence[str], left: str, right: str
) -> JsonObject:
    """Return the words that one of two texts has alone, by the names of both."""
    changed = [run for run in diff if run.change is not Change.SAME]
    sides = {
        left: [run.a.strip() for run in changed],
        right: [run.b.strip() for run in changed],
    }
    words = {name: " / ".join(filter(None, side)) for name, side in sides.items()}
    return {"differs": words, "only": ", ".join(kinds)}


def fitted(answer: JsonObject, rows: str, most: int) -> str:
    """Return an answer as JSON of at most this many bytes, and say what it leaves out.

    rows: the member with the list of results. Texts are cut first, then the last results are left out.
    """
    text = _dump(answer)
    for length in _LENGTHS:
        if len(text.encode()) <= most:
            return text
        kept = _cut(answer, length)
        kept["cut"] = f"texts are cut at {length} characters; max_bytes gives more"
        text = _dump(kept)
    while len(text.encode()) > most and kept.get(rows):
        kept[rows].pop()
        kept["left_out"] = len(answer[rows]) - len(kept[rows])
        text = _dump(kept)
    if len(text.encode()) > most:
        raise ConfigurationError(f"the answer is longer than {most} bytes; raise max_bytes")
    return text


def _cut(value: Any, length: int) -> Any:
    """Return a value with its longer texts cut, except keys."""
    if isinstance(value, dict):
        return {name: each if name in _KEYS else _cut(each, length) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each, length) for each in value]
    is_long = isinstance(value, str) and len(value) > length
    return f"{value[:length]}…" if is_long else value


def _dump(value: Any) -> str:
    return json.dumps(_without_nothing(value), ensure_ascii=False, separators=(",", ":"))


def _without_nothing(value: Any) -> Any:
    """Return a value without the members that hold nothing; a list of results stays, if empty."""
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    if not isinstance(value, dict):
        return value
    members = {name: _without_nothing(each) for name, each in value.items()}
    return {name: each for name, each in members.items() if each not in (None, "", (), {})}
