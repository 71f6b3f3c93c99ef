"""Small files that are gigabytes when they are unpacked: refused, in little memory."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from textsim_db.errors import InputError
from textsim_db.files.record_files import RecordColumns
from textsim_db.files.several_files import RecordFiles

BLOCK = 2**24
GOOD = b'{"id": 1, "text": "some good text"}\n'
MEGABYTES = 1000
"""Memory of Python, and of at most three copies of the longest line that is read, 256 MiB."""

# Prints the documents, the refusals, and the peak memory of the process.
READ = """
import json, resource, sys
from textsim_db.files.read_documents import Inputs
refused = []
documents = [key[:40] for key, _ in Inputs(sys.argv[1:], refused.append)]
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps([documents, [[r.key, r.reason] for r in refused], most]))
"""


def run(program: str, *arguments: str | Path) -> Any:
    # On Linux the peak memory of a process includes its parent's; a shell as the parent is small.
    command = ["sh", "-c", '"$@"', "sh", sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def write(path: Path, *parts: tuple[bytes, int]) -> None:
    """Write a gzip file of repeated pieces, quickly and in little memory."""
    with path.open("wb") as file:
        for part, times in parts:
            block = max(1, BLOCK // len(part))
            packed = gzip.compress(part * block)
            for _ in range(times // block):
                file.write(packed)
            file.write(gzip.compress(part * (times % block)))
    unpacked = sum(len(part) * times for part, times in parts)
    assert unpacked > 500 * path.stat().st_size


Parts = list[tuple[bytes, int]]


@pytest.mark.parametrize(
    ("suffix", "parts", "place", "reason"),
    [
        pytest.param(
            "jsonl",
            [
                (GOOD, 1),
                (b'{"id": 2, "text": "', 1),
                (b"word ", 8 * 10**8),
                (b'"}\n', 1),
                (GOOD, 1),
            ],
            ", line 2",
            "the line is longer than 268,435,456 bytes",
            id="a line of 4 GB",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "csv",
            [(b'id,text\n1,t\n2,"', 1), (b"a line\n", 3 * 10**8), (b'"\n', 1)],
            "",
            "from line 3 on: a quotation mark is not closed",
            id="millions of lines in quotation marks",
            marks=pytest.mark.long,
        ),
    ],
)
def test_gzip(tmp_path: Path, suffix: str, parts: Parts, place: str, reason: str) -> None:
    path = tmp_path / f"bomb.{suffix}.gz"
    write(path, *parts)
    documents, refused, most = run(READ, path)
    print(f"{most} MB")
    assert refused == [[f"{path}{place}", reason]]
    assert documents == ["1"] * (suffix.count("l") + 1)
    assert most < MEGABYTES


@pytest.mark.long
def test_many_good_lines_take_no_more_memory_than_one(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl.gz"
    write(path, (b'{"id": 1, "text": "' + b"x" * 10_000 + b'"}\n', 10**5))
    documents, refused, most = run(READ, path)
    assert (len(documents), refused) == (10**5, [])
    assert most < 400


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    import pyarrow
    import pyarrow.parquet

    def write_table(rows: int, dictionaries: bool, **columns: Any) -> Path:
        path = tmp_path / "bomb.parquet"
        pyarrow.parquet.write_table(
            pyarrow.table({"id": np.arange(rows), **columns}),
            path,
            compression="zstd",
            use_dictionary=dictionaries,
            dictionary_pagesize_limit=2**30,
            store_schema=False,
        )
        return path

    return write_table


def test_damaged_parquet_is_an_error_that_names_the_file(
    parquet: Callable[..., Path], tmp_path: Path, rng: random.Random
) -> None:
    data = parquet(50, True, text=[f"text {i % 7}" for i in range(50)]).read_bytes()
    damaged = [data[:size] for size in (0, 3, 4, 12, len(data) // 2, len(data) - 1)]
    for _ in range(100):
        at = rng.randrange(len(data))
        damaged.append(data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + 1 :])
    # Each place where the file has the name of a column, changed to bytes that are not UTF-8.
    for place in range(len(data) - 3):
        if data[place : place + 4] == b"text":
            damaged.append(data[:place] + b"te\xd2t" + data[place + 4 :])
    path = tmp_path / "damaged.parquet"
    refused = 0
    for some in damaged:
        path.write_bytes(some)
        try:
            with RecordFiles([str(path)], RecordColumns("text")) as records:
                found = list(records)
                records.write(np.ones(len(found), np.bool_), str(tmp_path / "out.parquet"))
        except InputError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
    assert refused > 10
