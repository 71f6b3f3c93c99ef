"""The one declaration of the formats of records: how each kind of file is read and written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, NamedTuple

from textsim_db.files.csv_records import CsvReader, CsvWriter, TsvReader, TsvWriter
from textsim_db.files.file_kinds import Kind
from textsim_db.files.json_lines import JsonReader, JsonWriter
from textsim_db.files.parquet_reader import ParquetReader
from textsim_db.files.parquet_writer import ParquetWriter
from textsim_db.files.record_reader import RecordReader
from textsim_db.files.record_writer import RecordWriter
from textsim_db.files.text_lines import check_encoding


class RecordFormat(NamedTuple):
    """A format of records. PyArrow is imported when Parquet is read or written."""

    title: str
    reader: type[RecordReader]
    writer: type[RecordWriter]


FORMATS = {
    Kind.JSONL: RecordFormat("JSON lines", JsonReader, JsonWriter),
    Kind.CSV: RecordFormat("CSV", CsvReader, CsvWriter),
    Kind.TSV: RecordFormat("TSV", TsvReader, TsvWriter),
    Kind.PARQUET: RecordFormat("Parquet", ParquetReader, ParquetWriter),
}


@contextmanager
def read_records(file: IO[bytes], kind: Kind) -> Iterator[RecordReader]:
    """Lend a reader of an unpacked file; raises InputError if the file is of another kind."""
    is_parquet = kind is Kind.PARQUET
    check_encoding(file, is_parquet)
    with _spooled(file) if is_parquet and not file.seekable() else nullcontext(file) as whole:
        yield FORMATS[kind].reader(whole)


@contextmanager
def _spooled(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Copy a stream to a temporary file: the end of a Parquet file says where its columns are."""
    with tempfile.TemporaryFile(prefix="textsim-") as spool:
        shutil.copyfileobj(file, spool, 2**20)
        yield spool
