"""Judgements from a file of records: two keys, a verdict, and if you like a note."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

from textsim_db.errors import InputError, suggestion
from textsim_db.files.file_kinds import STDIN, Kind, kind_of_records, reason, shown_name
from textsim_db.files.readers_and_writers import read_records
from textsim_db.files.record_reader import Values, expect_members, key_of, text_of
from textsim_db.files.text_lines import unpacked
from textsim_db.settings import Verdict

_NAMES = [("A", "a"), ("B", "b"), ("VERDICT", "verdict")]
"""The columns or members that a file must have."""


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""The characters with which a cell begins that a spreadsheet takes for a formula."""
GUARDED = "apostrophe_before"
"""The column with the names of the cells that got an apostrophe, so that they are no formulas."""


class ReadJudgement(NamedTuple):
    """A judgement of a file."""

    a: str
    """The key of one document."""
    b: str
    """The key of the other document."""
    verdict: Verdict
    note: str | None
    place: str
    """The file and the line, for messages."""


def read_judgements(name: str, kind: Kind = Kind.AUTO) -> list[ReadJudgement]:
    """Read a file of records; "-" is standard input.

    Raises InputError, with the file and the line, at the first faulty record, and if a pair comes twice.
    """
    kind = kind_of_records(name, kind)
    places: dict[frozenset[str], str] = {}
    judgements = []
    try:
        for judgement in _read(name, kind):
            pair = frozenset(judgement[:2])
            if pair in places:
                raise InputError(f"{judgement.place}: this pair is judged already: {places[pair]}")
            places[pair] = judgement.place
            judgements.append(judgement)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shown_name(name)}: {reason(error)}") from error
    return judgements


def _read(name: str, kind: Kind) -> Iterator[ReadJudgement]:
    place = shown_name(name)
    try:
        with (
            nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as raw,
            read_records(unpacked(raw, name), name, kind) as records,
        ):
            # Other columns are read if they are there.
            records.choose(_NAMES, read_all=True)
            for number, _, record in records:
                place = f"{shown_name(name)}, {records.unit} {number}"
                if isinstance(record, InputError):
                    raise record
                yield _judgement(record, place)
    except InputError as error:
        if str(error).startswith(place):
            raise
        raise InputError(f"{place}: {error}") from error


def _judgement(values: Values, place: str) -> ReadJudgement:
    expect_members(values, _NAMES)
    for name in str(values.get(GUARDED) or "").split():
        if isinstance(cell := values.get(name), str):
            values = {**values, name: cell.removeprefix("'")}
    verdict = text_of(values["verdict"], "verdict")
    if verdict not in list(Verdict):
        near = suggestion(verdict, Verdict)
        raise InputError(
            f'"verdict" is {verdict!r:.40}; expected one of {", ".join(Verdict)}{near}'
        )
    note = values.get("note")
    return ReadJudgement(
        key_of(values["a"], "a"),
        key_of(values["b"], "b"),
        Verdict(verdict),
        None if note is None or note == "" else text_of(note, "note"),
        place,
    )
