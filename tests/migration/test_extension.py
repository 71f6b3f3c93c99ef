"""CREATE EXTENSION and plain psql create the same schema as Alembic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.migration.conftest import Extensible
from tests.support.catalog import (
    CATALOG,
    assert_same_schemas,
    schema_catalog,
    without_leftovers,
)
from tests.support.dumps import UTF8, check, fill, programs, run_command
from tests.support.released import Release, each_release
from tests.support.roles import FOX, TEXTS, Stage, as_role, new_stage
from tests.support.steps import LAST, MADE_UP, NEWER, later_step
from textsim_db.db import schema
from textsim_db.db.engine import open_engine
from textsim_db.errors import SchemaError

ROOT = Path(__file__).parents[2]


def extend(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION textsim")


def test_create_extension_equals_the_schema_of_alembic(extensible: Extensible) -> None:
    with extensible.database(UTF8) as extension_url, extensible.database(UTF8) as alembic_url:
        extend(extension_url)
        ts.install(alembic_url)
        assert_same_schemas(alembic_url, extension_url)
        with ts.connect(extension_url) as db:
            corpus = db.create_corpus("c")
            corpus.add("a", "one two three four")
            assert corpus.check() == []
        with psycopg.connect(extension_url) as connection:
            connection.execute("DROP EXTENSION textsim CASCADE")
        with pytest.raises(SchemaError, match="has no schema textsim"):
            ts.connect(extension_url)


def attach_tables(url: str) -> None:
    """Create two corpora, and attach a table of another role in each mode."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
        connection.execute("CREATE TABLE blog (id int, body text) PARTITION BY RANGE (id)")
        connection.execute("ALTER TABLE blog ADD PRIMARY KEY (id)")
        connection.execute("CREATE TABLE blog_1 PARTITION OF blog FOR VALUES FROM (0) TO (100)")
        connection.execute("SELECT textsim.create_corpus('news')")
        connection.execute("SELECT textsim.create_corpus('exact', recall => 1)")
        connection.execute("SELECT textsim.attach('news', 'article', 'id', 'body')")
        connection.execute("SELECT textsim.attach('news', 'blog', 'id', 'body')")
        connection.execute("SELECT textsim.attach('exact', 'article', 'id', 'body', 'inline')")
        connection.execute("INSERT INTO article VALUES (1, %s)", [FOX])


LEFT = """
SELECT relname FROM pg_class WHERE relnamespace = 'textsim'::regnamespace
UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'textsim'::regnamespace
UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'textsim'::regnamespace
UNION ALL SELECT tgname FROM pg_trigger
"""


def check_drop(url: str) -> None:
    """Assert that DROP EXTENSION is refused, and complete with CASCADE."""
    with psycopg.connect(url, autocommit=True) as connection:
        refused = psycopg.errors.DependentObjectsStillExist
        with pytest.raises(refused) as error:
            connection.execute("DROP EXTENSION textsim")
        for named in (
            *("table textsim.document_1", "table textsim.band_2", "on table article"),
            "on table blog",
        ):
            assert named in str(error.value)
        rows = connection.execute("SELECT key FROM textsim.matches('exact', %s)", [FOX]).fetchall()
        assert rows == [("1",)]
        connection.execute("DROP EXTENSION textsim CASCADE")
        assert connection.execute(LEFT.encode()).fetchall() == []
        connection.execute("INSERT INTO article VALUES (2, %s)", [FOX])
        connection.execute("TRUNCATE blog_1")
        connection.execute("UPDATE article SET body = 'other words'")
        connection.execute("INSERT INTO blog VALUES (2, %s)", [FOX])
        # Nothing is in the way of a new extension.
        connection.execute("CREATE EXTENSION textsim")
        connection.execute("SELECT textsim.create_corpus('news')")
        connection.execute("SELECT textsim.attach('news', 'article', 'id', 'body')")


def test_drop_extension_is_refused_or_drops_everything(extensible: Extensible) -> None:
    with extensible.database(UTF8) as url:
        extend(url)
        attach_tables(url)
        with psycopg.connect(url, autocommit=True) as connection:
            # These replace the functions of a corpus and of an attached table.
            connection.execute("SELECT textsim._make_functions(c.id) FROM textsim.corpus c")
            connection.execute("SELECT textsim._make_trigger_function(s) FROM textsim.source s")
        check_drop(url)


def test_drop_extension_without_corpora_needs_no_cascade(extensible: Extensible) -> None:
    with extensible.database(UTF8) as url:
        extend(url)
        attach_tables(url)
        with psycopg.connect(url, autocommit=True) as connection:
            for corpus, table in (("news", "article"), ("news", "blog"), ("exact", "article")):
                connection.execute("SELECT textsim.detach(%s, %s::text::regclass)", [corpus, table])
            connection.execute("SELECT textsim.drop_corpus('news'), textsim.drop_corpus('exact')")
            connection.execute("DROP EXTENSION textsim")
            assert connection.execute(LEFT.encode()).fetchall() == []


def test_the_command_changes_no_extension(extensible: Extensible) -> None:
    """The refusal comes before anything is removed, and names the statement."""
    with extensible.database(UTF8) as url:
        extend(url)
        attach_tables(url)
        before = schema_catalog(url)
        engine = open_engine(url)
        message = r"nothing was changed.*: DROP EXTENSION textsim CASCADE$"
        with pytest.raises(SchemaError, match=message):
            schema.downgrade(engine)
        assert ts.install(url) == schema.head()
        assert schema_catalog(url) == before
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(NEWER.encode())
        for action in (ts.install, ts.connect):
            message = rf"{MADE_UP}.*: DROP EXTENSION textsim CASCADE in SQL$"
            with pytest.raises(SchemaError, match=message):
                action(url)
        engine.dispose()


@pytest.mark.more
def test_a_later_version_updates_the_extension(extensible: Extensible, tmp_path: Path) -> None:
    """It equals a new extension; a dump of it is complete; its functions are dropped with it."""
    dump = str(tmp_path / "dump.sql")
    corpora = "SELECT textsim.create_corpus('news'), textsim.create_corpus('exact', recall => 1)"
    with (
        later_step() as root,
        extensible.database(UTF8) as url,
        extensible.database(UTF8) as new_url,
        extensible.database(UTF8) as restored_url,
    ):
        extensible.install(root / "sql")
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE EXTENSION textsim VERSION '{LAST}'".encode())
                attach_tables(url)
                old = schema_catalog(url)
                with pytest.raises(
                    SchemaError,
                    match=f"{LAST}.*{MADE_UP}; what to do: ALTER EXTENSION textsim UPDATE",
                ):
                    ts.connect(url)
                check_restore_of_an_older_version(extensible, url, dump)
                connection.execute("ALTER EXTENSION textsim UPDATE")
                connection.execute("INSERT INTO textsim.made_up (note) VALUES ('kept')")
                # The statement of an application goes on while the functions are replaced.
                connection.execute("INSERT INTO article VALUES (2, %s)", [FOX])
                keys = "SELECT key FROM textsim.matches('exact', %s) ORDER BY key"
                assert connection.execute(keys.encode(), [FOX]).fetchall() == [("1",), ("2",)]
            extend(new_url)
            with psycopg.connect(new_url, autocommit=True) as connection:
                connection.execute(corpora.encode())
            new = schema_catalog(new_url)
            updated = without_leftovers(schema_catalog(url), old, new)
            for name in CATALOG:
                assert without_triggers(updated[name]) == new[name], name
            run_command(str(programs(extensible) / "pg_dump"), "-f", dump, url)
            psql = [str(programs(extensible) / "psql"), "-X", "-q", "-1", "-f", dump, restored_url]
            run_command(*psql)
            assert_same_schemas(url, restored_url)
            with psycopg.connect(restored_url, autocommit=True) as connection:
                notes = connection.execute("SELECT note FROM textsim.made_up").fetchall()
                assert notes == [("kept",)]
                connection.execute("DELETE FROM article WHERE id = 2")
            check_drop(restored_url)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DELETE FROM article WHERE id = 2")
            check_drop(url)
        finally:
            extensible.install(ROOT / "sql")


@pytest.mark.more
@each_release
def test_a_released_extension_is_updated(extensible: Extensible, release: Release) -> None:
    extensible.install(release.sql)
    extensible.install(ROOT / "sql")
    with extensible.database(UTF8) as url, extensible.database(UTF8) as new_url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE EXTENSION textsim VERSION '{release.revision}'".encode())
            attach_tables(url)
            old = schema_catalog(url)
            connection.execute("ALTER EXTENSION textsim UPDATE")
        extend(new_url)
        attach_tables(new_url)
        new = schema_catalog(new_url)
        updated = without_leftovers(schema_catalog(url), old, new)
        for name in CATALOG:
            assert without_triggers(updated[name]) == without_triggers(new[name]), name
        check_drop(url)


def check_restore_of_an_older_version(extensible: Extensible, url: str, dump: str) -> None:
    """Assert that a dump is restored into its own version, and updated then."""
    run_command(str(programs(extensible) / "pg_dump"), "-f", dump, url)
    with extensible.database(UTF8) as restored_url:
        with psycopg.connect(restored_url, autocommit=True) as connection:
            connection.execute(f"CREATE EXTENSION textsim VERSION '{LAST}'".encode())
        psql = [str(programs(extensible) / "psql"), "-X", "-q", "-f", dump, restored_url]
        errors = re.findall("ERROR: .*", run_command(*psql))
        assert errors == ['ERROR:  schema "textsim" already exists']
        with psycopg.connect(restored_url, autocommit=True) as connection:
            connection.execute("ALTER EXTENSION textsim UPDATE")
        with ts.connect(restored_url) as db:
            db.worker().run(until_idle=True)
            assert [match.key for match in db.corpus("news").query(FOX)] == ["1"]


def without_triggers(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leave out the trigger functions of attached tables."""
    return [row for row in rows if not str(row[0]).startswith("textsim._changes_")]


def test_a_database_of_another_encoding_is_refused(extensible: Extensible) -> None:
    options = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    with extensible.database(options) as url, pytest.raises(psycopg.errors.UntranslatableCharacter):
        extend(url)


@pytest.fixture
def stage(extensible: Extensible) -> Iterator[Stage]:
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


@pytest.mark.more
def test_a_dump_restores_everything(stage: Stage, extensible: Extensible, tmp_path: Path) -> None:
    fill(stage)
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
        check(stage, replace(stage, url=url))


@pytest.mark.more
def test_a_restore_by_a_superuser(stage: Stage, extensible: Extensible, tmp_path: Path) -> None:
    """The superuser owns the members then, and the old owner the rest, so that the application fails."""
    stage.run(stage.writer, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    with stage.connect(stage.writer) as db:
        db.corpus("news").attach("article", "id", "body")
    dump = str(tmp_path / "dump.sql")
    run_command(str(programs(extensible) / "pg_dump"), "-f", dump, stage.url)
    with extensible.database(UTF8) as url:
        run_command(str(programs(extensible) / "psql"), "-X", "-q", "-1", "-f", dump, url)
        restored = replace(stage, url=url)
        insert = f"INSERT INTO article VALUES (1, '{FOX}')"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            restored.run(stage.writer, insert)
        remedy = f"SELECT textsim.set_owner('{stage.owner}')"
        with pytest.raises(SchemaError, match="after a restore a superuser"):
            restored.connect(stage.owner)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(remedy.encode())
        restored.run(stage.writer, insert)
        restored.work(stage.writer)
        assert restored.similar_keys() == ["1"]
        assert_same_schemas(stage.url, url)
        with restored.connect(stage.owner) as db:
            db.create_corpus("later").add_many(TEXTS)
        with restored.connect(stage.reader) as db:
            assert db.corpus("later").query(TEXTS[0][1])
