"""Parquet, read and written by pyarrow. The extra "parquet" installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, Any

import numpy as np

from textsim_db.errors import InputError, install_extra
from textsim_db.files.record_files import Columns, Mask, Record, Records
from textsim_db.text.utf8 import MAX_BYTES

_READ_BYTES = 64 * 1024 * 1024


class ParquetRecords(Records):
    """The rows of a Parquet file.

    A column with a dictionary of texts stays one: without it, a few kilobytes may become terabytes.
    """

    def __init__(self, name: str, columns: Columns) -> None:
        self._parquet = pyarrow_parquet()
        super().__init__(name, columns)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        import pyarrow

        try:
            with self._parquet.ParquetFile(self._path) as file:
                schema = file.schema_arrow
            texts = [f.name for f in schema if f.type in (pyarrow.string(), pyarrow.binary())]
            with self._parquet.ParquetFile(self._path, read_dictionary=texts) as file:
                yield file, schema
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(f"damaged, or not Parquet: {' '.join(str(error).split())}") from error

    def _records(self) -> Iterator[Record]:
        with self._file() as (file, schema):
            names = sorted(set(self.columns.wanted(schema.names).values()))
            number = 0
            for batch in file.iter_batches(_rows_at_once(file), columns=names):
                for i in range(len(batch)):
                    number += 1
                    yield self._record(number, {name: batch.column(name)[i] for name in names})

    def _record(self, number: int, row: dict[str, Any]) -> Record:
        columns = self.columns
        key: str | None = None
        try:
            raw_key = _value(row[columns.key], columns.key) if columns.key in row else None
            key = None if raw_key is None else str(raw_key)
            value = None if columns.value is None else _value(row[columns.value], columns.value)
            text = _value(row[columns.text], columns.text)
        except InputError as error:
            return Record(None, key, None, f"row {number}: {error}")
        if not isinstance(text, str):
            kind = "null" if text is None else type(text).__name__
            fault = f'row {number}: "{columns.text}" is {kind}; expected a string'
            return Record(None, key, value, fault)
        return Record(text, key, value)

    def _copy(self, kept: Mask, output: IO[bytes], packed: bool) -> None:
        import pyarrow

        at = 0
        with self._file() as (file, schema), self._parquet.ParquetWriter(output, schema) as writer:
            for batch in file.iter_batches(_rows_at_once(file)):
                is_kept = pyarrow.array(kept[at : at + len(batch)])
                at += len(batch)
                for part in _parts(batch.filter(is_kept)):
                    writer.write_batch(part.cast(schema))


def _rows_at_once(file: Any) -> int:
    """Return the number of rows to read at once: about 64 MiB, at most 10,000 rows."""
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    largest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return min(max(_READ_BYTES // max(largest, 1), 1), 10_000)


def _value(scalar: Any, name: str) -> Any:
    """Return a value of a Parquet column; raise InputError if it is too long or damaged."""
    import pyarrow

    if isinstance(scalar, pyarrow.DictionaryScalar) and scalar.is_valid:
        scalar = scalar.value
    if isinstance(scalar, pyarrow.StringScalar | pyarrow.LargeStringScalar) and scalar.is_valid:
        size = scalar.as_buffer().size
        if size > MAX_BYTES:
            raise InputError(f'"{name}" is {size:,} bytes long; at most {MAX_BYTES:,} are possible')
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        raise InputError(f'"{name}" is not UTF-8: {error.reason}') from error
    except (ValueError, OverflowError) as error:  # a date that Python does not have
        raise InputError(f'"{name}" cannot be read: {error}') from error


def _is_dictionary_of_texts(kind: Any) -> bool:
    import pyarrow

    return pyarrow.types.is_dictionary(kind) and kind.value_type in (
        pyarrow.string(),
        pyarrow.binary(),
        pyarrow.large_string(),
        pyarrow.large_binary(),
    )


def _parts(batch: Any) -> Iterator[Any]:
    """Cut a batch into parts of bounded size; a row's size includes its texts in the dictionary."""
    from pyarrow import compute

    sizes = np.zeros(len(batch), np.int64)
    for column in batch.columns:
        if _is_dictionary_of_texts(column.type):
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            sizes += compute.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    bounds = np.flatnonzero(np.diff(np.cumsum(sizes) // _READ_BYTES, prepend=0))
    for start, end in pairwise([0, *bounds.tolist(), len(batch)]):
        if end > start:
            yield batch.slice(start, end - start)


def pyarrow_parquet() -> Any:
    """Return the module pyarrow.parquet; raise InputError if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"Parquet needs pyarrow, which is not installed: {install_extra('parquet')}"
        ) from error
    return pyarrow.parquet
