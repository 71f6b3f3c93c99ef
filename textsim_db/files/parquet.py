"""Parquet, read, copied and written by pyarrow; a written column has the one type of its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from textsim_db.base.run_ahead import cut
from textsim_db.errors import InputError, needs_extra, on_one_line
from textsim_db.files.arrow_frames import has_strings
from textsim_db.files.file_kinds import decoded
from textsim_db.files.records import (
    MAX_COLUMNS,
    Names,
    RecordReader,
    RecordWriter,
    Values,
    expect_utf8,
)
from textsim_db.results.shown_values import shown
from textsim_db.text.storable import MAX_BYTES

if TYPE_CHECKING:
    from textsim_db.files.records import KeptRecords


_READ_BYTES = 64 * 1024 * 1024


class ParquetReader(RecordReader):
    """The rows of a Parquet file. Dates, times and decimals are read as texts."""

    unit = "row"
    columns: list[str]

    def __init__(self, file: IO[bytes]) -> None:
        self._parquet = pyarrow_parquet()
        self._file = file
        with self._errors(), self._parquet.ParquetFile(self._file) as opened:
            self._schema = opened.schema_arrow
        self.columns = self._chosen = self._schema.names
        self._binary: set[str] = set()
        """The chosen columns that may have texts as bytes."""

    def choose(self, names: Names, read_all: bool = False) -> None:
        """Read only these columns; raise InputError if one is missing, or the text is no string."""
        columns = [(option, self._column(name)) for option, name in names]
        super().choose(columns)
        fields = [self._schema.field(name) for _, name in columns]
        for (option, name), field in zip(names, fields, strict=True):
            is_whole = option == "--text" and name == field.name
            if is_whole and not has_strings(field.type, binary=True):
                raise InputError(
                    f'"{name}" is a column of {field.type}; expected a column of strings'
                )
        self._binary = {
            field.name
            for field in fields
            if has_strings(field.type, binary=True) and not has_strings(field.type)
        }
        if not read_all:
            self._chosen = sorted({name for _, name in columns})

    def _column(self, name: str) -> str:
        first = name.partition(".")[0]
        is_column = name in self._schema.names or first not in self._schema.names
        return name if is_column else first

    def __iter__(self) -> Iterator[tuple[int, None, Values | InputError]]:
        number = 0
        with self._opened() as file:
            for batch in file.iter_batches(_rows_at_once(file), columns=self._chosen):
                columns = {name: _as_json(batch.column(name)) for name in self._chosen}
                for i in range(len(batch)):
                    number += 1
                    record: Values | InputError
                    try:
                        record = {name: _value(column[i], name) for name, column in columns.items()}
                        for name in self._binary:
                            if isinstance(value := record[name], bytes):
                                record[name] = decoded(value)
                    except InputError as error:
                        record = error
                    yield number, None, record

    def layout(self) -> object:
        return self._schema

    def copy(self, first: KeptRecords, output: IO[bytes], others: Iterator[KeptRecords]) -> None:
        import pyarrow

        schema = self._schema
        for name, value in first.example.items():
            schema = schema.append(pyarrow.field(name, _arrow(_type_of(value, name))))
        with self._errors(), self._parquet.ParquetWriter(output, schema) as writer:
            for each in chain([first], others):
                at = 0
                with each.reader._opened() as file:
                    for batch in file.iter_batches(_rows_at_once(file)):
                        rows = slice(at, at + len(batch))
                        for name, values in each.appended.items():
                            column = pyarrow.array(values[rows], schema.field(name).type)
                            batch = batch.append_column(name, column)
                        writer.write_batch(batch.filter(pyarrow.array(each.kept[rows])))
                        at += len(batch)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with self._errors(), self._parquet.ParquetFile(self._file) as file:
            yield file

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(f"damaged, or not Parquet: {on_one_line(error)}") from error


def _rows_at_once(file: Any) -> int:
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    largest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return min(max(_READ_BYTES // max(largest, 1), 1), 10_000)


def _as_json(column: Any) -> Any:
    """Return a column; dates, times and decimals, which JSON lacks, become texts."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    tests = (types.is_date, types.is_time, types.is_timestamp, types.is_decimal)
    return column.cast(pyarrow.string()) if any(test(kind) for test in tests) else column


def _value(scalar: Any, name: str) -> Any:
    """Return a value of a Parquet column; raise InputError if it is too long or damaged."""
    import pyarrow

    try:
        if isinstance(scalar, pyarrow.DictionaryScalar) and scalar.is_valid:
            scalar = scalar.value
        if isinstance(scalar, pyarrow.BinaryScalar) and scalar.is_valid:
            size = scalar.as_buffer().size
            if size > MAX_BYTES:
                raise InputError(
                    f'"{name}" is {size:,} bytes long; at most {MAX_BYTES:,} are possible'
                )
        return scalar.as_py()
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f'"{name}" is not UTF-8: {error.reason}') from error
    except (ValueError, OverflowError, pyarrow.ArrowException) as error:
        # Damaged, or a date that Python does not have.
        raise InputError(f'"{name}" cannot be read: {on_one_line(error)}') from error


def pyarrow_parquet() -> Any:
    """Return the module pyarrow.parquet; raise InputError if it is not installed."""
    with needs_extra("parquet", "Parquet needs pyarrow, which is not installed", InputError):
        import pyarrow.parquet
    return pyarrow.parquet


_ROWS = 10_000
_EXACT = 2**53
"""A double holds all whole numbers up to this one."""

Type = str | list[Any] | dict[str, Any] | None
"""None: only nulls so far; [Type]: arrays of a type; {name: Type}: objects; "large": past _EXACT."""


class ParquetWriter(RecordWriter):
    """Writes records as Parquet. A column with nothing but nulls is written as strings."""

    def __init__(self) -> None:
        super().__init__()
        self._parquet = pyarrow_parquet()

    def survey(self, values: Values) -> None:
        """Decide the types of the columns; raise InputError if a value does not fit its column."""
        self.add_columns(values)
        for name, value in values.items():
            try:
                self._columns[name] = _common(self._columns[name], _type_of(value, name))
            except _Mismatch as error:
                raise InputError(
                    f'"{shown(name)}" is {error.args[1]}, and {error.args[0]} in an earlier record'
                ) from error
            except RecursionError as error:
                raise InputError(f'"{shown(name)}" is nested too deeply') from error

    def write(self, records: Iterable[Values], output: IO[bytes]) -> None:
        import pyarrow

        self._expect_columns()
        schema = pyarrow.schema((name, _arrow(kind)) for name, kind in self._columns.items())
        with self._parquet.ParquetWriter(output, schema) as writer:
            for rows in cut(records, _ROWS, _size):
                columns = [
                    pyarrow.array([row.get(field.name) for row in rows], field.type)
                    for field in schema
                ]
                writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))


class _Mismatch(Exception):
    """Two values have no common type; the arguments describe both types."""


def _type_of(value: Any, name: str) -> Type:
    if isinstance(value, str):
        expect_utf8(value, name)
        return "string"
    if value is None or isinstance(value, bool | float):
        return None if value is None else "bool" if isinstance(value, bool) else "double"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InputError(f'"{shown(name)}" is {value}, a number of more than 64 bits')
        return "int64" if abs(value) <= _EXACT else "large"
    if isinstance(value, list):
        items: Type = None
        for item in value:
            items = _common(items, _type_of(item, name))
        return [items]
    if not value:
        raise InputError(f'"{shown(name)}" has an empty object')
    for member in value:
        expect_utf8(member, name)
    return {member: _type_of(item, name) for member, item in value.items()}


def _common(a: Type, b: Type) -> Type:
    """Return the type that holds the values of both types; raise _Mismatch if there is none."""
    if a == b or b is None:
        return a
    if a is None:
        return b
    if isinstance(a, list) and isinstance(b, list):
        return [_common(a[0], b[0])]
    if isinstance(a, dict) and isinstance(b, dict):
        members = {name: _common(a.get(name), b.get(name)) for name in {**a, **b}}
        if len(members) > MAX_COLUMNS:
            raise InputError(f"the objects have more than {MAX_COLUMNS:,} members")
        return members
    for wide in ("double", "large"):
        if (a, b) in (("int64", wide), (wide, "int64")):
            return wide
    raise _Mismatch(_described(a), _described(b))


def _described(kind: Type) -> str:
    names = {"string": "a string", "bool": "a truth value", "double": "a number with a fraction"}
    names |= {"int64": "a whole number", "large": "a whole number past 2^53"}
    if isinstance(kind, str):
        return names[kind]
    return "an array" if isinstance(kind, list) else "an object"


def _arrow(kind: Type) -> Any:
    import pyarrow

    if isinstance(kind, list):
        return pyarrow.list_(_arrow(kind[0]))
    if isinstance(kind, dict):
        return pyarrow.struct([(name, _arrow(member)) for name, member in kind.items()])
    types = {"bool": pyarrow.bool_, "double": pyarrow.float64, "int64": pyarrow.int64}
    types |= {"large": pyarrow.int64}
    return types.get(kind or "", pyarrow.string)()


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return 8 + sum(map(_size, items))
    return 8
