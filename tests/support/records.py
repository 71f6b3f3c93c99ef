"""Records in every format that textsim dedupe reads; some texts are near-duplicates."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textsim_db.files.file_kinds import FileFormat, Kind
from textsim_db.files.record_formats import CsvReader

Rows = list[dict[str, Any]]
A = "the quick brown fox jumps over the lazy dog near the old river bank today"
NEAR_A = "The quick, brown fox jumps over the lazy dog near the old river bank today!"
LONGER_A = A + " again"
B = "something else that no other document says in these very words"


def records() -> Rows:
    texts = [A, B, NEAR_A, "", LONGER_A]
    return [
        {"id": name, "text": text, "score": score}
        for name, text, score in zip("abcde", texts, [3, 9, 7, 5, None], strict=True)
    ]


def as_jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(rows: Rows) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_parquet(rows: Rows) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def ids_of(name: str) -> list[Any]:
    data = Path(name).read_bytes()
    if name.endswith(".gz"):
        data = gzip.decompress(data)
    if "csv" in name:
        read = (record for _, _, record in CsvReader(io.BytesIO(data), FileFormat(Kind.CSV)))
        return [next(iter(record.values())) for record in read if isinstance(record, dict)]
    if "parquet" in name:
        parquet = pytest.importorskip("pyarrow.parquet")
        return [row["id"] for row in parquet.read_table(io.BytesIO(data)).to_pylist()]
    return [json.loads(line)["id"] for line in data.splitlines()]


KINDS: dict[str, Callable[[Rows], bytes]] = {
    "jsonl": as_jsonl,
    "csv": as_csv,
    "jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows)),
    "csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "parquet": as_parquet,
}
