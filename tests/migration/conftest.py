"""The database and the roles of the tests of rights."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from tests.support.dumps import run_command
from tests.support.released import ROOT
from tests.support.roles import Stage, copy_of_stage, new_stage
from tests.support.servers import SYSTEM_PROGRAMS, Server, run_server


@dataclass
class Extensible(Server):
    """A server whose databases, if created here, find the extension."""

    control_path: str = ""
    variables: tuple[str, ...] = ()
    """Variables of the Makefile, which installs the files for this server."""

    def install(self, folder: Path) -> None:
        """Install the files of the extension from a folder sql."""
        run_command("make", "-C", str(folder / "extension"), "install", *self.variables)

    @contextmanager
    def database(self, options: str, copies_files: bool = False) -> Iterator[str]:
        with super().database(options, copies_files) as address:
            if self.control_path:
                name = sql.Identifier(str(make_url(address).database))
                statement = sql.SQL("ALTER DATABASE {} SET extension_control_path = {}")
                self.execute(statement.format(name, self.control_path))
            yield address


@pytest.fixture(scope="session")
def first_stage(server: Server) -> Iterator[Stage]:
    """The stage that is copied for each test."""
    with new_stage(server) as stage:
        yield stage


@pytest.fixture
def stage(server: Server, first_stage: Stage) -> Iterator[Stage]:
    """A database with the corpus "news", whose schema belongs to a role without superuser rights."""
    with copy_of_stage(server, first_stage) as stage:
        yield stage


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that other users' servers can read, with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="ts-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def system_server(folder: Path) -> Iterator[Extensible]:
    """A server of the operating system's PostgreSQL, with the extension installed.

    PostgreSQL finds its files relative to its program, so a copy of the program has a folder of
    extensions that tests may write to.
    """
    if not SYSTEM_PROGRAMS or not (SYSTEM_PROGRAMS[-1] / "pg_config").exists():
        pytest.skip("needs PostgreSQL 18, or the system's PostgreSQL in /usr/lib/postgresql")
    config = SYSTEM_PROGRAMS[-1] / "pg_config"
    for option in ("--bindir", "--pkglibdir", "--sharedir"):
        original = Path(run_command(str(config), option).strip())
        shutil.copytree(original, folder / original.relative_to("/"), symlinks=True)
    variables = (f"PG_CONFIG={config}", f"DESTDIR={folder}")
    with run_server(folder / SYSTEM_PROGRAMS[-1].relative_to("/"), folder) as url:
        yield Extensible(url, "system_", variables=variables)


@pytest.fixture(scope="module")
def extensible(server: Server, folder: Path, request: pytest.FixtureRequest) -> Extensible:
    """A server on which CREATE EXTENSION textsim works.

    Before PostgreSQL 18 the files must be in the server's own folder. So a copy of the operating
    system's server is used, unless TEXTSIM_TEST_SHAREDIR names a folder that tests may write to.
    """
    with psycopg.connect(server.url) as connection:
        has_control_path = connection.info.server_version >= 180000
    if own_folder := os.environ.get("TEXTSIM_TEST_SHAREDIR"):
        variables = (f"SHAREDIR={own_folder}",)
        extensible = Extensible(server.url, f"{server.prefix}x", variables=variables)
    elif has_control_path:
        share = folder / "share"
        paths = f"{share}:$system", (f"SHAREDIR={share}",)
        extensible = Extensible(server.url, f"{server.prefix}x", *paths)
    else:
        extensible = request.getfixturevalue("system_server")
    extensible.install(ROOT / "sql")
    return extensible
