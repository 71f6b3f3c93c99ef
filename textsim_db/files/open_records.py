"""Open a file of records by its kind: JSON lines and CSV here, Parquet in parquet_files."""

from __future__ import annotations

import gzip
import os
from abc import abstractmethod
from collections.abc import Iterator
from typing import IO, Any

from textsim_db.errors import InputError
from textsim_db.files import text_lines
from textsim_db.files.csv_records import CsvRecords
from textsim_db.files.file_kinds import STDIN, kind_of, shown_name
from textsim_db.files.json_lines import JsonRecords
from textsim_db.files.record_files import Columns, Mask, Record, Records
from textsim_db.files.record_reader import RecordReader, text_of


class LineRecords(Records):
    """Records on lines, which are copied byte for byte."""

    @abstractmethod
    def _reader(self, file: IO[bytes]) -> RecordReader: ...

    def _records(self) -> Iterator[Record]:
        with self._opened() as file:
            reader = self._reader(file)
            for number, raw, record in reader:
                _check_length(number, raw)
                yield self._record(reader, number, record)

    def _record(self, reader: RecordReader, number: int, record: Any) -> Record:
        columns = self.columns
        key: str | None = None
        try:
            if isinstance(record, InputError):
                raise record
            raw_key = reader.value(record, columns.key)
            key = None if raw_key is None else str(raw_key)
            value = None if columns.value is None else reader.value(record, columns.value)
            reader.expect(record, {"--text": columns.text})
            return Record(text_of(reader.value(record, columns.text), columns.text), key, value)
        except InputError as error:
            return Record(None, key, None, f"line {number}: {error}")

    def _copy(self, kept: Mask, output: IO[bytes], packed: bool) -> None:
        target: Any = gzip.GzipFile("", "wb", 6, output, mtime=0) if packed else output
        with self._opened() as file:
            ended = True
            for raw in self._raw_kept(self._reader(file), kept):
                target.write(raw if ended else b"\n" + raw)
                ended = raw.endswith((b"\n", b"\r"))
        if packed:
            target.close()

    def _raw_kept(self, reader: RecordReader, kept: Mask) -> Iterator[bytes]:
        if reader.raw_header:
            yield reader.raw_header
        for (number, raw), is_kept in zip(reader.raw_records(), kept.tolist(), strict=False):
            if is_kept:
                yield _check_length(number, raw)


class _JsonLines(LineRecords):
    def _reader(self, file: IO[bytes]) -> RecordReader:
        return JsonRecords(file)


class _Csv(LineRecords):
    def _reader(self, file: IO[bytes]) -> RecordReader:
        reader = CsvRecords(file)
        self.columns.wanted(reader.header)
        return reader


def _check_length(number: int, raw: bytes | None) -> bytes:
    if raw is None:
        raise InputError(f"line {number} is longer than {text_lines.MAX_LINE:,} bytes")
    return raw


def open_records(name: str, columns: Columns, kind: str = "auto") -> Records:
    """Open a file of records; raises InputError, and OSError if it cannot be opened.

    kind: jsonl, csv or parquet; auto chooses by the name. Standard input, "-", is copied to a temporary
    file. Its default kind is jsonl.
    """
    if name != STDIN and os.path.isdir(name):
        raise InputError(f"{name} is a folder; expected a file")
    if kind == "auto":
        parquet = name.lower().endswith((".parquet", ".pq"))
        kind = "parquet" if parquet else str(kind_of(name))
    if kind == "parquet":
        from textsim_db.files.parquet_files import ParquetRecords

        return ParquetRecords(name, columns)
    kinds: dict[str, type[Records]] = {"jsonl": _JsonLines, "csv": _Csv}
    if kind not in kinds:
        raise InputError(
            f"{shown_name(name)}: expected a name that ends in .jsonl, .csv, .jsonl.gz, .csv.gz or "
            ".parquet; for another name give the kind with --kind"
        )
    return kinds[kind](name, columns)
