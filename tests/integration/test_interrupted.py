"""Interrupted loads and searches raise a clear error, and leave a consistent corpus."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from textsim_db.database import connect
from textsim_db.db import stored_corpus
from textsim_db.write.batch_size import BATCH_DOCUMENTS

Texts = list[tuple[str, str]]


@pytest.fixture(scope="module")
def texts() -> Texts:
    return list(documents(15_000, words=60, seed=11))


@pytest.fixture
def small_disk(db: ts.Database, tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes, which holds the tables of new corpora."""
    with psycopg.connect(db.url, autocommit=True) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        data = Path(row[0])
        if not data.exists() or os.geteuid() != 0:
            pytest.skip("needs root and a server on this machine")
        disk = data.parent / f"small-{os.getpid()}"
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(disk)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            disk.rmdir()
            pytest.skip("needs the right to mount a file system")
        try:
            folder = disk / "tablespace"
            folder.mkdir()
            owner = data.stat()
            os.chown(folder, owner.st_uid, owner.st_gid)
            connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'".encode())
            name = connection.info.dbname
            connection.execute(f'ALTER DATABASE "{name}" SET default_tablespace = small'.encode())
            yield disk
            connection.execute(f'ALTER DATABASE "{name}" RESET default_tablespace'.encode())
            with ts.connect(db.url) as other:
                for corpus in stored_corpus.names(other.engine):
                    other.drop_corpus(corpus)
            connection.execute("DROP TABLESPACE small")
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
            disk.rmdir()


@pytest.mark.long
def test_a_full_disk_ends_a_load_and_keeps_what_is_stored(
    db: ts.Database, small_disk: Path, texts: Texts
) -> None:
    with connect(db.url) as full:
        corpus = full.create_corpus("c")
        with pytest.raises(ts.DatabaseError, match="No space left on device") as raised:
            corpus.add_many(texts)
        assert isinstance(raised.value.__cause__, psycopg.errors.DiskFull)
        stored = len(corpus)
        assert stored % BATCH_DOCUMENTS == 0
        assert corpus.check() == []
        with pytest.raises(ts.DatabaseError, match="No space left on device"):
            corpus.add_many(texts)
        assert corpus.check() == []
        subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
        report = corpus.add_many(texts)
        assert (report.unchanged, report.added) == (stored, len(texts) - stored)
        assert corpus.check() == []
        assert len(corpus.query(texts[0][1], 0.99)) >= 1
