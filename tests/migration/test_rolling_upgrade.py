"""An upgrade keeps what released code has stored. Processes are replaced, and no request fails."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import alembic.command
import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import engine_of
from tests.support.dumps import UTF8, check_functions, use_everything
from tests.support.own_alembic import own_alembic
from tests.support.released import ROOT, Release, each_release, start
from tests.support.roles import as_role, new_stage, rows_and_rights
from tests.support.servers import Server
from tests.support.steps import MADE_UP, later_step
from textsim_db.db import schema


@pytest.mark.more
@each_release
def test_everything_stored_stays_and_can_be_used(server: Server, release: Release) -> None:
    """Corpora, attached tables, judgements, clusters and waiting changes of the released version."""
    with new_stage(
        server,
        install=lambda address: release.call("textsim_db", "install", address),
        add=lambda address: release.call("tests.support.roles", "add_news", address),
    ) as stage:
        release.call("tests.support.dumps", "fill", stage)
        address = as_role(stage.url, stage.owner)
        stored = rows_and_rights(stage)
        # Documents of characters get normal forms for their word ids: test_upgrade compares them.
        corpora = stage.run(stage.owner, "SELECT id FROM textsim.corpus WHERE unit = 'char'")
        changed = {f"textsim.{table}_{id_}" for (id_,) in corpora for table in ("document", "word")}
        assert changed
        changed |= {"textsim.alembic_version", "textsim.installed", "rights"}
        for _ in range(2):
            ts.install(address)
            upgraded = rows_and_rights(stage)
            for name in stored.keys() - changed:
                # A step adds columns at the end.
                width = max(map(len, stored[name]), default=0)
                rows = sorted((row[:width] for row in upgraded[name]), key=repr)
                assert rows == stored[name], name
            # A step may drop a function.
            objects = {right[1] for right in upgraded["rights"]}
            kept = {right for right in stored["rights"] if right[1] in objects}
            assert kept <= set(upgraded["rights"])
        check_functions(stage)
        use_everything(stage)


@contextmanager
def running(code: Path, function: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the application, which must end well."""
    process = start(code, "tests.support.application", function, *args)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate()
    assert process.returncode == 0, printed


@pytest.mark.more
@pytest.mark.parametrize(
    "way", ["install", "own Alembic", "embedded", "two steps of the extension"]
)
@each_release
def test_no_request_fails_while_processes_are_replaced(
    server: Server, release: Release, way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Two processes that serve and a worker: first the schema is upgraded, then each in turn."""
    is_extension = way == "two steps of the extension"
    if is_extension:
        server = extensible = request.getfixturevalue("extensible")
        extensible.install(release.sql)
        with later_step() as root:
            extensible.install(root / "sql")
        extensible.install(ROOT / "sql")
    with (
        server.database(UTF8) as url,
        psycopg.connect(url, autocommit=True) as connection,
        ExitStack() as new,
    ):

        def wait(name: str, requests: int = 2) -> None:
            query = "SELECT coalesce(sum(count), 0) FROM request WHERE process = %s"
            (first,) = connection.execute(query, [name]).fetchone() or (0,)
            while all(process.poll() is None for process in processes):
                (done,) = connection.execute(query, [name]).fetchone() or (0,)
                if done >= first + requests:
                    return
                time.sleep(0.05)

        processes: list[subprocess.Popen[str]] = []
        if is_extension:
            connection.execute(f"CREATE EXTENSION textsim VERSION '{release.revision}'".encode())
        else:
            release.call("textsim_db", "install", url)
        release.call("tests.support.application", "prepare", url)
        with ExitStack() as old:
            for function, *args in (("serve", "one"), ("serve", "two"), ("work",)):
                one = old.enter_context(running(release.folder, function, url, *args))
                processes.append(one)
            wait("one")
            wait("two")
            if is_extension:
                connection.execute(f"ALTER EXTENSION textsim UPDATE TO '{MADE_UP}'".encode())
            elif way == "own Alembic":
                alembic.command.upgrade(own_alembic(tmp_path, url), "5f3a")
            elif way == "embedded":
                with engine_of(url) as engine:
                    schema.ensure_installed(engine)
            else:
                ts.install(url)
            wait("one")
            wait("two")
            for function, *args in (("work",), ("serve", "three"), ("serve", "four")):
                processes.append(new.enter_context(running(ROOT, function, url, *args)))
            wait("three")
            wait("four")
            wait("one")
        del processes[:3]
        wait("three")
        new.close()
        with ts.connect(url) as db:
            db.worker().run(until_idle=True)
            for name in ("news", "unique"):
                assert db.corpus(name).check() == []
                assert db.corpus(name).status().pending == 0
                assert db.corpus(name).pending() == []
            served = connection.execute("SELECT sum(count) FROM request").fetchone()
            assert served is not None
            assert len(db.corpus("unique")) >= served[0] >= 10
