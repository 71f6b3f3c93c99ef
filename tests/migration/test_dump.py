"""pg_dump and pg_restore keep everything, on the same and on newer servers; so does pg_upgrade."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import textsim_db as ts
from tests.conftest import open_server
from tests.support.dumps import UTF8, answers, check, fill, programs, run_command
from tests.support.roles import Stage, new_role, new_stage
from tests.support.sampling import sample
from tests.support.servers import (
    EMBEDDED_VERSIONS,
    Server,
    database_of,
    programs_of,
    run_server,
    run_upgraded,
)

FORMATS = sample(["custom", "plain"], 2)


def dump_and_restore(folder: Path, source: str, target: str, form: str) -> None:
    """Dump with the programs of the newer server, as PostgreSQL's manual recommends."""
    with tempfile.TemporaryDirectory() as name:
        file = f"{name}/dump"
        run_command(str(folder / "pg_dump"), "--format", form, "--file", file, source)
        if form == "plain":
            command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, target]
        else:
            command = ["pg_restore", "--exit-on-error", "--jobs", "2", "--dbname", target, file]
        run_command(str(folder / command[0]), *command[1:])


@pytest.mark.more
@pytest.mark.parametrize("form", FORMATS)
def test_a_dump_on_the_same_server(server: Server, stage: Stage, form: str, tmp_path: Path) -> None:
    fill(stage)
    check_dump_of_schemas(server, stage, str(tmp_path / "dump"))
    with server.database(UTF8) as url:
        # The tables shift the oids: a dump must not depend on them.
        with psycopg.connect(url) as connection:
            for number in range(50):
                connection.execute(f"CREATE TABLE other_{number} (id int)".encode())
        dump_and_restore(programs(server), stage.url, url, form)
        check(stage, replace(stage, url=url), uses_both=True)


def check_dump_of_schemas(server: Server, stage: Stage, file: str) -> None:
    """Assert that a dump of the schema needs the schemas of the attached tables."""
    names = ("textsim", "public", "blog", "zebra")
    together = [option for name in names for option in ("-n", name)]
    for options, complete in ((together, True), (["-n", "textsim"], False)):
        run_command(str(programs(server) / "pg_dump"), "-f", file, *options, stage.url)
        with server.database(UTF8) as url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA public")
            psql = [str(programs(server) / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
            if complete:
                run_command(*psql, "-f", file, url)
                assert answers(replace(stage, url=url)) == answers(stage)
                continue
            # Without the attached tables the restore fails: it would have no triggers.
            with pytest.raises(AssertionError, match=r"does not exist\s+CONTEXT:  COPY source"):
                run_command(*psql, "-f", file, url)


@contextmanager
def server_of(config: pytest.Config, version: int) -> Iterator[Server]:
    """A server of the run, or else of programs that are installed."""
    if version in EMBEDDED_VERSIONS:
        with open_server(config, str(version)) as server:
            yield server
        return
    folder = programs_of(version)
    if folder is None or not (folder / "pg_dump").exists():
        pytest.skip(f"needs the programs of PostgreSQL {version}")
    with tempfile.TemporaryDirectory(prefix="ts-") as directory:
        Path(directory).chmod(0o755)
        with run_server(folder, Path(directory)) as url:
            yield Server(url, f"dump{version}_")


@pytest.mark.more
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("old", "new"), sample([(16, 18), (15, 16), (15, 18)], 3))
def test_dump_on_a_newer_server(pytestconfig: pytest.Config, old: int, new: int, form: str) -> None:
    with ExitStack() as stack:
        servers = (server_of(pytestconfig, version) for version in (old, new))
        source, target = map(stack.enter_context, servers)
        stage = stack.enter_context(new_stage(source))
        fill(stage)
        for role in (stage.owner, stage.reader, stage.writer, stage.other):
            stack.enter_context(new_role(target, role))
        url = stack.enter_context(target.database(UTF8))
        dump_and_restore(programs(target), stage.url, url, form)
        check(stage, replace(stage, url=url))


@pytest.mark.more
def test_pg_upgrade_keeps_everything_and_the_changes_that_wait() -> None:
    old, new = (programs_of(version) for version in EMBEDDED_VERSIONS)
    assert old is not None
    assert new is not None
    with ExitStack() as stack:
        folders = [tempfile.TemporaryDirectory(prefix="ts-") for _ in range(2)]
        first, second = (Path(stack.enter_context(folder)) for folder in folders)
        first.chmod(0o755)
        second.chmod(0o755)
        url = stack.enter_context(run_server(old, first))
        stage = stack.enter_context(new_stage(Server(url, "upgraded_")))
        fill(stage)
        upgraded = stack.enter_context(run_upgraded(old, url, new, second))
        check(stage, replace(stage, url=Server(upgraded, "").address(database_of(stage.url))))


def test_a_restored_oid_of_another_table_is_not_read(db: ts.Database) -> None:
    # pg_dump writes an attached table's name, but a dropped table's oid. On the restoring server that
    # oid may belong to any table.
    corpus = db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body")
        connection.execute("DROP TABLE t")
        connection.execute("CREATE TABLE secret (id int PRIMARY KEY, body text)")
        connection.execute("INSERT INTO secret VALUES (1, 'not for everyone')")
        connection.execute("UPDATE textsim.source SET relation = 'secret'::regclass")
        columns = "(kind, corpus_id, source_id)"
        connection.execute(
            f"INSERT INTO textsim.pending {columns} VALUES ('compare', 1, 1)".encode()
        )
        worker = db.worker()
        worker.run(until_idle=True)
        assert "does not have the triggers" in worker.unusable["public.secret"]
        with pytest.raises(ts.ConfigurationError, match="does not have the triggers"):
            corpus.reconcile()
        assert len(corpus) == 0
        corpus.detach("secret")
        assert db.sources() == []
