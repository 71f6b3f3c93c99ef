"""CREATE EXTENSION and plain psql give the same schema as Alembic."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import textsim_db as ts
from tests.migration.test_migrations import CATALOG, catalog
from textsim_db.db import schema

ROOT = Path(__file__).parents[2]


def make(goal: str, sharedir: Path) -> None:
    command = ["make", "-C", str(ROOT / "sql" / "extension"), goal, f"SHAREDIR={sharedir}"]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def extension_files(connection: psycopg.Connection[tuple[str]], folder: Path) -> Iterator[None]:
    """Install the extension's files where the server of this connection finds them."""
    if connection.info.server_version >= 180000:
        make("install", folder)
        folder.chmod(0o755)
        connection.execute(f"SET extension_control_path = '{folder}:$system'".encode())
        yield
        return
    row = connection.execute("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'").fetchone()
    assert row is not None
    sharedir = Path(row[0])
    if "site-packages" in sharedir.parts or not os.access(sharedir / "extension", os.W_OK):
        pytest.skip("extensions can be installed on PostgreSQL 18, or by an administrator")
    make("install", sharedir)
    try:
        yield
    finally:
        make("uninstall", sharedir)


def test_create_extension_equals_upgraded(
    database_url: str, empty_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("extension")
    for parent in [folder, *folder.parents[:3]]:
        parent.chmod(0o755)  # the server may run as another user
    with (
        psycopg.connect(empty_database_url, autocommit=True) as connection,
        extension_files(connection, folder),
    ):
        connection.execute("CREATE EXTENSION textsim")
        made, expected = catalog(empty_database_url), catalog(database_url)
        for name in CATALOG:
            assert made[name] == expected[name], name
        with ts.connect(empty_database_url) as db:
            corpus = db.create_corpus("c")
            corpus.add("a", "one two three four")
            assert corpus.verify() == []
        connection.execute("DROP EXTENSION textsim CASCADE")
        with pytest.raises(ts.SchemaError, match="has no schema textsim"):
            ts.connect(empty_database_url)


def test_psql_runs_the_script(database_url: str, empty_database_url: str, tmp_path: Path) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    file = tmp_path / "textsim.sql"
    file.write_text(schema.script(), encoding="utf-8")
    command = [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), empty_database_url]
    subprocess.run(command, check=True, capture_output=True)
    made, expected = catalog(empty_database_url), catalog(database_url)
    for name in CATALOG:
        assert made[name] == expected[name], name
