"""Records written as Parquet; each column has one type, which all records together decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from textsim_db.errors import InputError, shown
from textsim_db.files.parquet_reader import pyarrow_parquet
from textsim_db.files.record_reader import Values
from textsim_db.files.record_writer import MAX_COLUMNS, RecordWriter, expect_utf8
from textsim_db.text.run_ahead import cut

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
        """Write the records, some thousand at a time."""
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
        return _common_members(a, b)
    for wide in ("double", "large"):
        if (a, b) in (("int64", wide), (wide, "int64")):
            return wide
    raise _Mismatch(_described(a), _described(b))


def _common_members(a: dict[str, Any], b: dict[str, Any]) -> Type:
    members = {name: _common(a.get(name), b.get(name)) for name in {**a, **b}}
    if len(members) > MAX_COLUMNS:
        raise InputError(f"the objects have more than {MAX_COLUMNS:,} members")
    return members


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
    """Return about how many bytes a value takes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return 8 + sum(map(_size, items))
    return 8
