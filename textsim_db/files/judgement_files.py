"""Judgements as files of records; in CSV no cell is a formula of a spreadsheet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple
from uuid import UUID

from textsim_db.errors import InputError, suggestion
from textsim_db.files.file_kinds import (
    BY_NAME,
    STDIN,
    FileFormat,
    kind_of_records,
    reason,
    shown_name,
    unpacked,
)
from textsim_db.files.record_files import read_records
from textsim_db.files.records import Values, key_of, needed, text_of
from textsim_db.settings.named_values import Verdict

_NAMES = [("A", "a"), ("B", "b"), ("VERDICT", "verdict")]
"""The columns or members that a file must have."""


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""The characters with which a cell begins that a spreadsheet takes for a formula."""
GUARDED = "apostrophe_before"
"""The column with the names of the cells that got an apostrophe, so that they are no formulas."""


class ReadJudgement(NamedTuple):
    a: str
    """The key of one document."""
    b: str
    """The key of the other document."""
    verdict: Verdict
    note: str | None
    source: str | None
    confidence: float | None
    hashes: tuple[str | None, str | None] | None
    """Those of the texts that were judged; None without these columns."""
    place: str
    """The file and the line, for messages."""


def read_judgements(name: str, form: FileFormat = BY_NAME) -> list[ReadJudgement]:
    """Read a file of records; raises InputError at the first that is faulty or comes twice."""
    form = form._replace(kind=kind_of_records(name, form.kind))
    places: dict[frozenset[str], str] = {}
    judgements = []
    try:
        for judgement in _read(name, form):
            pair = frozenset(judgement[:2])
            if pair in places:
                raise InputError(f"{judgement.place}: this pair is judged already: {places[pair]}")
            places[pair] = judgement.place
            judgements.append(judgement)
    except OSError as error:
        raise InputError(f"{shown_name(name)}: {reason(error)}") from error
    return judgements


def _read(name: str, form: FileFormat) -> Iterator[ReadJudgement]:
    place = shown_name(name)
    try:
        with (
            nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as raw,
            read_records(unpacked(raw, name), name, form) as records,
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
    for option, name in _NAMES:
        needed(values, name, option)
    for name in str(values.get(GUARDED) or "").split():
        if isinstance(cell := values.get(name), str):
            values = {**values, name: cell.removeprefix("'")}
    verdict = text_of(values["verdict"], "verdict")
    if verdict not in list(Verdict):
        near = suggestion(verdict, Verdict)
        raise InputError(
            f'"verdict" is {verdict!r:.40}; expected one of {", ".join(Verdict)}{near}'
        )
    given = (values.get(name) for name in ("note", "source", "confidence"))
    note, source, confidence = (None if value == "" else value for value in given)
    try:
        sure = None if confidence is None else float(confidence)
    except (TypeError, ValueError) as error:
        raise InputError(f'"confidence" is {confidence!r:.40}; expected a number') from error
    return ReadJudgement(
        key_of(values["a"], "a"),
        key_of(values["b"], "b"),
        Verdict(verdict),
        None if note is None else text_of(note, "note"),
        None if source is None else text_of(source, "source"),
        sure,
        _hashes_of(values),
        place,
    )


def _hashes_of(values: Values) -> tuple[str | None, str | None] | None:
    if "hash_a" not in values and "hash_b" not in values:
        return None
    given = [values.get(name) or None for name in ("hash_a", "hash_b")]
    try:
        a, b = (None if each is None else str(UUID(str(each))) for each in given)
    except ValueError as error:
        raise InputError(f'"hash_a" and "hash_b" are {given!r:.100}; expected hashes') from error
    return a, b
