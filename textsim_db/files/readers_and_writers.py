"""The readers and writers of all kinds of files with records."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import IO

from textsim_db.files.csv_records import CsvReader, CsvWriter
from textsim_db.files.file_kinds import Kind, check_first_bytes
from textsim_db.files.json_lines import JsonReader, JsonWriter
from textsim_db.files.parquet_reader import ParquetReader
from textsim_db.files.parquet_writer import ParquetWriter
from textsim_db.files.record_reader import RecordReader
from textsim_db.files.record_writer import RecordWriter

READERS: dict[Kind, Callable[[IO[bytes]], RecordReader]] = {
    Kind.JSONL: JsonReader,
    Kind.CSV: CsvReader,
    Kind.TSV: partial(CsvReader, kind=Kind.TSV),
    Kind.UNQUOTED_TSV: partial(CsvReader, kind=Kind.UNQUOTED_TSV),
    Kind.PARQUET: ParquetReader,
}
"""How a file of each kind is read. PyArrow is imported when Parquet is read or written."""
WRITERS: dict[Kind, Callable[[], RecordWriter]] = {
    Kind.JSONL: JsonWriter,
    Kind.CSV: CsvWriter,
    Kind.TSV: partial(CsvWriter, Kind.TSV),
    Kind.UNQUOTED_TSV: partial(
        CsvWriter, Kind.TSV
    ),  # if the records of several files are not copied
    Kind.PARQUET: ParquetWriter,
}
"""How records are written as each kind."""


@contextmanager
def read_records(file: IO[bytes], name: str, kind: Kind) -> Iterator[RecordReader]:
    """Lend a reader of an unpacked file; raises InputError if the file is of another kind."""
    check_first_bytes(file, name, kind)
    with (
        _spooled(file)
        if kind is Kind.PARQUET and not file.seekable()
        else nullcontext(file) as whole
    ):
        yield READERS[kind](whole)


@contextmanager
def _spooled(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Copy a stream to a temporary file: the end of a Parquet file says where its columns are."""
    with tempfile.TemporaryFile(prefix="textsim-") as spool:
        shutil.copyfileobj(file, spool, 2**20)
        yield spool
