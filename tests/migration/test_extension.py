"""CREATE EXTENSION and plain psql create the same schema as Alembic."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.catalog import CATALOG, fetch_sorted, schema_catalog
from tests.support.roles import FOX, RIGHTS, TEXTS, Stage, as_role, new_stage
from tests.support.servers import SYSTEM_PROGRAMS, Server, programs_of, run_server
from tests.support.truth import brute_force
from textsim_db.db import schema

ROOT = Path(__file__).parents[2]
UTF8 = "ENCODING 'UTF8' TEMPLATE template0"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that other users' servers can read, with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="ts-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def system_server(folder: Path) -> Iterator[Server]:
    """A server of the operating system's PostgreSQL, with the extension installed.

    PostgreSQL finds its files relative to its program, so a copy of the program has a folder of
    extensions that tests may write to.
    """
    if not SYSTEM_PROGRAMS or not (SYSTEM_PROGRAMS[-1] / "pg_config").exists():
        pytest.skip(
            "needs PostgreSQL 18, or the operating system's PostgreSQL in /usr/lib/postgresql"
        )
    config = SYSTEM_PROGRAMS[-1] / "pg_config"
    for option in ("--bindir", "--pkglibdir", "--sharedir"):
        original = Path(run_command(str(config), option).strip())
        shutil.copytree(original, folder / original.relative_to("/"), symlinks=True)
    make_install(f"PG_CONFIG={config}", f"DESTDIR={folder}")
    with run_server(folder / SYSTEM_PROGRAMS[-1].relative_to("/"), folder) as url:
        yield Server(url, "system_")


@dataclass
class Extensible(Server):
    """A server whose databases, if created here, find the extension."""

    control_path: str = ""

    def create(self, name: str, options: str = "") -> str:
        address = super().create(name, options)
        if self.control_path:
            statement = sql.SQL("ALTER DATABASE {} SET extension_control_path = {}")
            self.execute(statement.format(sql.Identifier(name), self.control_path))
        return address


@pytest.fixture(scope="module")
def extensible(server: Server, folder: Path, request: pytest.FixtureRequest) -> Server:
    """A server on which CREATE EXTENSION textsim works.

    Before PostgreSQL 18 the files must be in the server's own folder, so a copy of the server is used.
    """
    with psycopg.connect(server.url) as connection:
        if connection.info.server_version < 180000:
            system: Server = request.getfixturevalue("system_server")
            return system
    make_install(f"SHAREDIR={folder / 'share'}")
    return Extensible(server.url, f"{server.prefix}x", control_path=f"{folder / 'share'}:$system")


def programs(server: Server) -> Path:
    """Return the folder of a pg_dump of the server's version."""
    version = server.version().partition(".")[0]
    folder = programs_of(int(version))
    if folder is None or not (folder / "pg_dump").exists():
        pytest.skip(f"needs pg_dump of PostgreSQL {version}")
    return folder


def make_install(*variables: str) -> None:
    run_command("make", "-C", str(ROOT / "sql" / "extension"), "install", *variables)


def run_command(*command: str, user: str | None = None) -> str:
    result = subprocess.run(command, capture_output=True, text=True, user=user, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stderr[-2000:]}"
    return result.stdout + result.stderr


def extend(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION textsim")


def test_create_extension_equals_the_schema_of_alembic(extensible: Server) -> None:
    with extensible.database(UTF8) as extension_url, extensible.database(UTF8) as alembic_url:
        extend(extension_url)
        ts.install(alembic_url)
        extended, expected = schema_catalog(extension_url), schema_catalog(alembic_url)
        for name in CATALOG:
            assert extended[name] == expected[name], name
        with ts.connect(extension_url) as db:
            corpus = db.create_corpus("c")
            corpus.add("a", "one two three four")
            assert corpus.check() == []
        with psycopg.connect(extension_url) as connection:
            connection.execute("DROP EXTENSION textsim CASCADE")
        with pytest.raises(ts.SchemaError, match="has no schema textsim"):
            ts.connect(extension_url)


def test_a_database_of_another_encoding_is_refused(extensible: Server) -> None:
    options = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    with (
        extensible.database(options) as url,
        pytest.raises(psycopg.errors.UntranslatableCharacter),
    ):
        extend(url)


@pytest.fixture
def stage(extensible: Server) -> Iterator[Stage]:
    with new_stage(extensible, install=extend) as stage:
        yield stage


def test_a_role_without_superuser_rights_owns_the_extension(stage: Stage) -> None:
    owners = stage.run(
        stage.owner,
        """
        SELECT DISTINCT r.rolname, r.rolsuper FROM pg_roles r JOIN (
            SELECT relowner FROM pg_class WHERE relnamespace = 'textsim'::regnamespace
            UNION ALL SELECT proowner FROM pg_proc WHERE pronamespace = 'textsim'::regnamespace
            UNION ALL SELECT nspowner FROM pg_namespace WHERE nspname = 'textsim'
            UNION ALL SELECT extowner FROM pg_extension WHERE extname = 'textsim'
        ) o (owner) ON o.owner = r.oid
        """,
    )
    assert owners == [(stage.owner, False)]


def answers(stage: Stage) -> list[object]:
    with stage.connect(stage.reader) as db:
        corpus = db.corpus("news")
        return [
            db.corpora(),
            corpus.config,
            [corpus.query(text, 0.5) for _, text in TEXTS],
            sorted(corpus.pairs(0.3)),
            sorted(stage.run(stage.reader, "SELECT * FROM textsim.pairs('news', 0.3)")),
            sorted(stage.run(stage.reader, "SELECT * FROM textsim.sources")),
            len(corpus),
            corpus.status(),
            corpus.check(),
        ]


@pytest.mark.long
def test_a_dump_restores_everything(stage: Stage, extensible: Server, tmp_path: Path) -> None:
    stage.run(
        stage.writer,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        "CREATE TABLE note (id uuid PRIMARY KEY, body text)",
        f"INSERT INTO article VALUES (1, '{FOX}')",
    )
    with stage.connect(stage.writer) as db:
        db.corpus("news").attach("article", "id", "body")
        db.corpus("news").attach("note", "id", "body", "inline")
    stage.run(
        stage.writer,
        f"INSERT INTO article VALUES (2, '{FOX} again')",
        f"INSERT INTO note VALUES ('00000000-0000-0000-0000-000000000001', '{FOX}')",
    )
    dump = tmp_path / "dump.sql"
    run_command(str(programs(extensible) / "pg_dump"), "-f", str(dump), stage.url)
    with extensible.database(UTF8) as url, psycopg.connect(url, autocommit=True) as connection:
        database_name = sql.Identifier(connection.info.dbname)
        owner = sql.Identifier(stage.owner)
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database_name, owner))
        # pg_dump does not keep the owner of an extension, so the role creates it before the restore.
        extend(as_role(url, stage.owner))
        errors = run_command(str(programs(extensible) / "psql"), "-X", "-q", "-f", str(dump), url)
        assert re.findall("ERROR: .*", errors) == ['ERROR:  schema "textsim" already exists']
        restored = replace(stage, url=url)
        assert answers(restored) == answers(stage)
        restored_catalog, expected = schema_catalog(url), schema_catalog(stage.url)
        for name in CATALOG:
            assert restored_catalog[name] == expected[name], name
        assert fetch_sorted(url, RIGHTS) == fetch_sorted(stage.url, RIGHTS)
        for each in (stage, restored):
            each.run(stage.writer, f"UPDATE article SET body = '{FOX} today' WHERE id = 1")
            each.run(stage.writer, "DELETE FROM note")
            each.work(stage.writer)
            with each.connect(stage.owner) as db:
                db.create_corpus("later").add_many(TEXTS)
        assert restored.similar_keys() == stage.similar_keys() == ["1", "2"]
        assert answers(restored) == answers(stage)


def test_an_exact_corpus_is_dumped_with_its_common_shingles(
    extensible: Server, tmp_path: Path
) -> None:
    texts = dict(documents(200, words=30, planted=0.3, boilerplate=100, seed=7))
    with extensible.database(UTF8) as url, extensible.database(UTF8) as restored_url:
        extend(url)
        with ts.connect(url) as db:
            corpus = db.create_corpus("c", threshold=0.6, recall=1)
            corpus.add_many(texts)
            assert corpus.config.common is not None
            corpus.rebuild(threshold=0.5)
            expected = sorted(corpus.pairs())
            assert {(a, b): similarity for a, b, similarity in expected} == brute_force(
                texts, "word:3", 0.5
            )
            dump = tmp_path / "dump.sql"
            run_command(str(programs(extensible) / "pg_dump"), "-f", str(dump), url)
        run_command(str(programs(extensible) / "psql"), "-X", "-q", "-f", str(dump), restored_url)
        with ts.connect(restored_url) as db:
            restored = db.corpus("c")
            assert restored.config.common is not None
            assert restored.config.common.values.tolist() == corpus.config.common.values.tolist()
            assert restored.check() == []
            assert sorted(restored.pairs()) == expected
            assert restored.query(texts[expected[0].a], 0.5)


def test_psql_creates_the_schema_from_the_script(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    file = tmp_path / "textsim.sql"
    file.write_text(schema.script(), encoding="utf-8")
    run_command(psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), empty_database_url)
    by_psql, expected = schema_catalog(empty_database_url), schema_catalog(database_url)
    for name in CATALOG:
        assert by_psql[name] == expected[name], name
