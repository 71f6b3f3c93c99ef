"""Judgements as files of records; in CSV no cell is a formula of a spreadsheet."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from textsim_db.errors import InputError, suggestion
from textsim_db.files.file_kinds import (
    BY_NAME,
    FileFormat,
    shown_name,
)
from textsim_db.files.record_files import RecordColumns, RecordFile
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
    b: str
    verdict: Verdict
    note: str | None
    judge: str | None
    confidence: float | None
    hashes: tuple[str | None, str | None] | None
    """Those of the texts that were judged; None without these columns."""
    place: str
    """The file and the line, for messages."""


def read_judgements(name: str, form: FileFormat = BY_NAME) -> list[ReadJudgement]:
    """Read a file of records; raises InputError at the first that is faulty or comes twice."""
    judgements: dict[frozenset[str], ReadJudgement] = {}
    with (
        RecordFile(name, RecordColumns("verdict"), form) as file,
        file.explained(),
        file.reader() as reader,
    ):
        # Other columns are read if they are there.
        reader.choose(_NAMES, read_all=True)
        for number, _, record in reader:
            place = f"{shown_name(name)}, {reader.unit} {number}"
            try:
                judgement = _judgement(record, place)
                first = judgements.setdefault(frozenset(judgement[:2]), judgement)
                if first is not judgement:
                    raise InputError(f"this pair is judged already: {first.place}")
            except InputError as error:
                raise InputError(f"{place}: {error}") from error
    return [*judgements.values()]


def _judgement(values: Values | InputError, place: str) -> ReadJudgement:
    if isinstance(values, InputError):
        raise values
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
    note, judge, confidence = (None if value == "" else value for value in given)
    try:
        sure = None if confidence is None else float(confidence)
    except (TypeError, ValueError) as error:
        raise InputError(f'"confidence" is {confidence!r:.40}; expected a number') from error
    return ReadJudgement(
        key_of(values["a"], "a"),
        key_of(values["b"], "b"),
        Verdict(verdict),
        None if note is None else text_of(note, "note"),
        None if judge is None else text_of(judge, "source"),
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
