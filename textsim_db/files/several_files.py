"""The names of several files, and their records, read twice: to compare the texts, and to write some.

If the format and the columns stay, records are copied: lines byte for byte, Parquet row by row.
Otherwise the first reading finds the columns and their types, and any record that the other format
cannot hold.
"""

from __future__ import annotations

import gzip
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, cast

from textsim_db.errors import InputError
from textsim_db.files.file_kinds import (
    BY_NAME,
    STDIN,
    FileFormat,
    Kind,
    kind_of,
    kind_of_output,
    reason,
    resolved,
    shown_name,
)
from textsim_db.files.record_files import WRITERS, Record, RecordColumns, RecordFile, check_packages
from textsim_db.files.records import KeptRecords, RecordWriter, Values, replacing
from textsim_db.results import Refusal

if TYPE_CHECKING:
    from textsim_db.files.records import Appended, Mask


class RecordFiles:
    """The records of several files, one file after the other."""

    def __init__(
        self, names: Sequence[str], columns: RecordColumns, form: FileFormat = BY_NAME
    ) -> None:
        real_names = [resolved(name) for name in names]
        for place, name in enumerate(names):
            check_packages(name, form.kind)
            if real_names[place] in real_names[:place]:
                raise InputError(f"{shown_name(name)} is named twice")
        with ExitStack() as stack:
            self.files = [stack.enter_context(RecordFile(name, columns, form)) for name in names]
            self._stack = stack.pop_all()
        self.columns, self.form = columns, form
        self._ends: list[int] = []
        """For each file that was read, the number of records up to its end."""
        self._output_kind = self.files[0].kind
        self._writer: RecordWriter | None = None
        self._copied = self.files[0]

    def __enter__(self) -> RecordFiles:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[Record]:
        self._ends.clear()
        number = 0
        for file in self.files:
            for record in file:
                number += 1
                if record.fault is not None and len(self.files) > 1:
                    place = f"{shown_name(file.name)}, {record.fault.key}"
                    record = record._replace(fault=record.fault._replace(key=place))
                yield record
            self._ends.append(number)

    @property
    def title(self) -> str:
        """The name of the file, or of the first one with the number of the others."""
        first, others = self.files[0].name, len(self.files) - 1
        return first if not others else f"{first} and {others} more"

    @property
    def bytes_read(self) -> int:
        return sum(file.bytes_read for file in self.files)

    def total_bytes(self) -> int:
        return sum(file.total_bytes() for file in self.files)

    def file_of(self, number: int) -> str | None:
        place = bisect_right(self._ends, number)
        return self.files[place].name if len(self.files) > 1 else None

    def place(self, number: int) -> str:
        """Return the place of a record, from 0 on, for a message."""
        file = bisect_right(self._ends, number)
        start = self._ends[file - 1] if file else 0
        name = f"{shown_name(self.files[file].name)}, " if len(self.files) > 1 else ""
        return f"{name}record {number - start + 1}"

    def convert_for(self, output: str, kind: Kind = Kind.AUTO, drop_faulty: bool = False) -> None:
        """Write the kind that the name of the output means; called before the records are read.

        "-", and a name without an ending, keep the kind of the first file. While the records are read,
        an InputError is raised for a record that the kind cannot hold; with drop_faulty not for a record
        with a fault, which write() then must not keep. Raises InputError if the name means no kind, or
        another one than the given.
        """
        self._output_kind = kind_of_output(output, kind, self.files[0].kind)
        if all(file.kind is self._output_kind for file in self.files) and self._have_one_layout():
            return
        self._writer = WRITERS[self._output_kind]()
        for file in self.files:
            file.convert(self._writer, self._output_kind, drop_faulty)

    def write(self, kept: Mask, output: str, appended: Appended | None = None) -> None:
        """Write the kept records; raises InputError if a file has changed since it was read."""
        self._check_unchanged()
        with (
            replacing(output) as file,
            self._explained(),
            _packed(file, resolved(output).lower().endswith(".gz")) as target,
        ):
            kept_records = self._kept_records(kept, appended or {})
            if self._writer is None:
                first = next(kept_records)
                first.reader.copy(first, target, kept_records)
            else:
                values = (values for each in kept_records for values in _kept_values(each))
                self._writer.survey(self.columns.appended or {})
                self._writer.write(values, target)
            self._check_unchanged()

    def _have_one_layout(self) -> bool:
        if len(self.files) == 1:
            return True
        layouts = []
        for file in self.files:
            with file.explained(), file.reader() as reader:
                layouts.append(reader.layout())
        return all(layout == layouts[0] for layout in layouts)

    def _check_unchanged(self) -> None:
        for file in self.files:
            file.check_unchanged()

    def _kept_records(self, kept: Mask, appended: Appended) -> Iterator[KeptRecords]:
        start = 0
        for file, end in zip(self.files, self._ends, strict=True):
            self._copied = file
            with file.reader() as reader:
                values = {name: column[start:end] for name, column in appended.items()}
                yield KeptRecords(reader, kept[start:end], values, self.columns.appended or {})
            start = end

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            with self._copied.explained():
                raise


def _kept_values(each: KeptRecords) -> Iterator[Values]:
    for (_, _, record), appended in each.rows(each.reader):
        if isinstance(record, InputError):
            raise record
        yield record | appended


@contextmanager
def _packed(file: IO[bytes], packed: bool) -> Iterator[IO[bytes]]:
    """Yield the file, or a gzip file in it, which ends only if no error is raised."""
    target = cast(IO[bytes], gzip.GzipFile("", "wb", 6, file, mtime=0)) if packed else file
    yield target
    if packed:
        target.close()


def files_of(
    paths: Iterable[str], glob: str, on_refused: Callable[[Refusal], None]
) -> Iterator[str]:
    """Yield the names of files, also of the files in folders that match a pattern."""
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        is_empty = True
        for name in _walk(path, glob, on_refused):
            is_empty = False
            yield name
        if is_empty:
            on_refused(Refusal(path, f'no file in this folder matches "{glob}"'))


def record_files(paths: Sequence[str], glob: str, kind: Kind) -> list[str]:
    """Return the names of files, also of those in folders; raises InputError for an unknown format."""

    def refused(refusal: Refusal) -> None:
        raise InputError(f"{shown_name(refusal.key)}: {refusal.reason}")

    names = [*files_of(paths, glob, refused)]
    for name in names:
        if name not in paths and kind is Kind.AUTO and kind_of(name) is Kind.TEXT:
            raise InputError(
                f"{shown_name(name)}: the name says no format of records; choose the files of the "
                "folder with --glob, or give the kind with --kind"
            )
    return names


def _walk(folder: str, glob: str, on_refused: Callable[[Refusal], None]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        on_refused(Refusal(str(error.filename), reason(error)))

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            if name.startswith(".") or not PurePath(os.path.relpath(path, folder)).match(glob):
                continue
            if os.path.isfile(path) or not os.path.exists(path):  # no pipes, no devices
                yield path
