"""Parquet, read and copied by pyarrow. The extra "parquet" installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import IO, TYPE_CHECKING, Any, cast

from textsim_db.errors import InputError, install_extra, on_one_line
from textsim_db.files.record_reader import Names, RecordReader, Values
from textsim_db.files.text_lines import decoded
from textsim_db.frames.read_frame import has_strings
from textsim_db.lazy_imports import lazy
from textsim_db.text.storable_text import MAX_BYTES

if TYPE_CHECKING:
    import numpy as np

    from textsim_db.files.record_reader import Mask, Part
else:
    np = lazy("numpy", globals())

_READ_BYTES = 64 * 1024 * 1024


class ParquetReader(RecordReader):
    """The rows of a Parquet file. Dates, times and decimals are read as texts.

    A column with a dictionary of texts stays one: without it, a few kilobytes may become terabytes.
    """

    unit = "row"
    columns: list[str]

    def __init__(self, file: IO[bytes]) -> None:
        self._parquet = pyarrow_parquet()
        self._file = file
        with self._errors(), self._parquet.ParquetFile(self._file) as opened:
            self._schema = opened.schema_arrow
        self.columns = self._chosen = self._schema.names
        self._text = ""

    def choose(self, names: Names, read_all: bool = False) -> None:
        """Read only these columns; raise InputError if one is missing, or the text is no string."""
        super().choose(names)
        text = self._schema.field(dict(names)["--text"])
        if not has_strings(text.type, binary=True):
            raise InputError(
                f'"{text.name}" is a column of {text.type}; expected a column of strings'
            )
        self._text = text.name
        if not read_all:
            self._chosen = sorted({name for _, name in names})

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
                        if isinstance(text := record.get(self._text), bytes):
                            record[self._text] = decoded(text)
                    except InputError as error:
                        record = error
                    yield number, None, record

    def layout(self) -> object:
        """Return the names and types of the columns."""
        return self._schema

    def copy(self, kept: Mask, output: IO[bytes], others: Iterator[Part]) -> None:
        """Write the kept rows to a Parquet file of the same schema."""
        import pyarrow

        schema = self._schema
        with self._errors(), self._parquet.ParquetWriter(output, schema) as writer:
            for reader, stays in chain(
                [(self, kept)], cast("Iterator[tuple[ParquetReader, Mask]]", others)
            ):
                at = 0
                with reader._opened() as file:
                    for batch in file.iter_batches(_rows_at_once(file)):
                        is_kept = pyarrow.array(stays[at : at + len(batch)])
                        at += len(batch)
                        for part in _parts(batch.filter(is_kept)):
                            writer.write_batch(part.cast(schema))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow

        texts = [f.name for f in self._schema if f.type in (pyarrow.string(), pyarrow.binary())]
        with self._errors(), self._parquet.ParquetFile(self._file, read_dictionary=texts) as file:
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
    """Return the number of rows to read at once: about 64 MiB, at most 10,000 rows."""
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
