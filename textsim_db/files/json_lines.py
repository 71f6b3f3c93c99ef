"""JSON lines: an object on each line, or an error for a malformed line; and records as such lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO

from textsim_db.errors import InputError, shown
from textsim_db.files import text_lines
from textsim_db.files.record_reader import LineReader, Values, type_name
from textsim_db.files.record_writer import RecordWriter
from textsim_db.files.text_lines import decoded, lines


class JsonReader(LineReader):
    """The objects of a file of JSON lines; blank lines are skipped."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[tuple[int, bytes | None, Values | InputError]]:
        for number, line in self.raw_records():
            record: Values | InputError
            try:
                record = json_object(line)
            except InputError as error:
                record = error
            yield number, line, record

    def raw_records(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the number and the bytes of each line that is not blank."""
        return (pair for pair in lines(self._file) if pair[1] is None or pair[1].strip())


class JsonWriter(RecordWriter):
    """Writes records as JSON lines."""

    def survey(self, values: Values) -> None:
        """Raise InputError if JSON cannot hold a value, such as binary data or NaN."""
        for name, value in values.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise InputError(f'"{shown(name)}" is {type_name(value)}') from error

    def write(self, records: Iterable[Values], output: IO[bytes]) -> None:
        """Write each record on a line."""
        for values in records:
            output.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")


def json_object(line: bytes | None) -> Values:
    """Return the JSON object of a line; raises InputError."""
    if line is None:
        raise InputError(f"the line is longer than {text_lines.MAX_LINE:,} bytes")
    text = decoded(line.rstrip()).removeprefix("\ufeff")  # where files were joined
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"malformed JSON at character {error.pos + 1}: {error.msg}") from error
    except RecursionError as error:
        raise InputError("malformed JSON: it is nested too deeply") from error
    except ValueError as error:  # a number of too many digits
        raise InputError(f"malformed JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"the line is {type_name(record)}; expected a JSON object")
    return record
