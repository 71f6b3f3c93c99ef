"""A fresh schema equals an upgraded one, and a downgrade removes it, with rows and without."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine

import textsim_db as ts
from tests.support.catalog import (
    CATALOG,
    assert_same_schemas,
    fetch_sorted,
    schema_catalog,
    user_catalog,
)
from tests.support.own_alembic import run_alembic
from tests.support.servers import Server
from tests.support.steps import LAST, MADE_UP, NEWER, later_step
from textsim_db.db import schema
from textsim_db.db.engine import open_engine
from textsim_db.errors import SchemaError
from textsim_db.settings.named_values import Mode

ROOT = Path(__file__).parents[2]


def run_script(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(schema.script().encode())


@pytest.fixture
def engine(empty_database_url: str) -> Iterator[Engine]:
    engine = open_engine(empty_database_url)
    yield engine
    engine.dispose()


@pytest.mark.both_servers
def test_the_script_runs_in_the_transaction_of_a_migration(empty_database_url: str) -> None:
    script = schema.script(has_transaction=False).encode()
    before = user_catalog(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("SET search_path = public")
        connection.execute("CREATE TABLE story (id int PRIMARY KEY, body text)")
        connection.execute(script)
        connection.execute("SELECT textsim.create_corpus('news')")
        connection.execute("SELECT textsim.attach('news', 'story', 'id', 'body')")
        settings = "SELECT current_setting('search_path'), current_setting('client_min_messages')"
        assert connection.execute(settings).fetchone() == ("public", "notice")
        connection.rollback()
        assert user_catalog(empty_database_url) == before
        connection.execute(script)
        connection.commit()
        with connection.transaction():
            connection.execute(script)
    assert ts.install(empty_database_url) == schema.head()


def test_the_script_without_a_transaction_is_refused(empty_database_url: str) -> None:
    script = schema.script(has_transaction=False)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        # psql sends each statement alone.
        for statement in (
            script.split("$do$;\n")[0] + "$do$;",
            "SET LOCAL search_path = pg_catalog, pg_temp",
        ):
            connection.execute(statement.encode())
        check = script[script.index("DO $do$\nDECLARE") :].split("$do$;\n")[0] + "$do$"
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction, match="needs one transaction"):
            connection.execute(check.encode())


@pytest.mark.both_servers
def test_upgrade_and_downgrade(server: Server, engine: Engine, empty_database_url: str) -> None:
    before = user_catalog(empty_database_url)
    schema.upgrade(engine)
    upgraded = schema_catalog(empty_database_url)
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as fresh_url:
        run_script(fresh_url)
        assert_same_schemas(empty_database_url, fresh_url)
        assert ts.install(fresh_url) == schema.head()
    with ts.connect(empty_database_url) as db:
        for name in ("one", "two"):
            corpus = db.create_corpus(name)
            corpus.add_many([("a", "some text"), ("b", "other text")])
            assert corpus.check() == []
    schema.downgrade(engine)
    assert user_catalog(empty_database_url) == before
    for _ in range(2):
        schema.upgrade(engine)
        assert schema_catalog(empty_database_url) == upgraded
    with ts.connect(empty_database_url) as db:
        assert list(db.corpora()) == []
        assert db.create_corpus("one").add("a", "some text").added == 1


@pytest.mark.more
def test_alembic_builds_and_removes_the_schema(server: Server, empty_database_url: str) -> None:
    """From its command line, as install() does; offline it prints the same statements."""
    url = empty_database_url
    before = user_catalog(url)
    assert run_alembic(url, "current") == ""
    assert user_catalog(url) == before
    for target in ("0001_schema", "+1"):
        with pytest.raises(RuntimeError, match=f"expected the target head, which is {LAST}"):
            run_alembic(url, "upgrade", target)
    assert user_catalog(url) == before
    run_alembic(url, "upgrade", "head")
    assert f"{LAST} (head)" in run_alembic(url, "current")
    assert "No new upgrade operations" in run_alembic(url, "check")
    built = schema_catalog(url)
    with ts.connect(url) as db:
        assert db.create_corpus("news").add("a", "some text").added == 1
    for target in ("-1", "0001_schema"):
        with pytest.raises(RuntimeError, match="expected base"):
            run_alembic(url, "downgrade", target)
    run_alembic(url, "downgrade", "base")
    with pytest.raises(SchemaError, match="has no schema textsim"):
        ts.connect(url)
    assert run_alembic(url, "history").count("->") == len(schema.revisions())
    script = run_alembic("", "upgrade", "head", "--sql")
    stamp = run_alembic("", "stamp", "head", "--sql")
    assert f"VALUES ('{LAST}')" in stamp
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as offline_url:
        with psycopg.connect(offline_url, autocommit=True) as connection:
            connection.execute(script.encode())
        offline = schema_catalog(offline_url)
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as installed_url:
        ts.install(installed_url)
        installed = schema_catalog(installed_url)
    for name in CATALOG:
        assert installed[name] == built[name] == offline[name], name


def test_a_release_with_a_column_and_a_table_equals_a_new_schema(
    server: Server, engine: Engine, empty_database_url: str
) -> None:
    """The functions of an older corpus equal those of a corpus that is created after the step."""
    create = "SELECT textsim.create_corpus('news', 'word:2', seed => 9)"
    corpus_functions = f"SELECT * FROM ({CATALOG['functions']}) f (name) WHERE name ~ '_1[(]'"
    schema.upgrade(engine)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(create)
    before = fetch_sorted(empty_database_url, corpus_functions)
    with later_step():
        assert schema.upgrade(engine) == MADE_UP
        upgraded = schema_catalog(empty_database_url)
        assert upgraded["version"] == [(MADE_UP,)]
        made_anew = fetch_sorted(empty_database_url, corpus_functions)
        assert len(made_anew) == 6
        assert made_anew != before
        assert any("No row comes back if" in str(row) for row in made_anew)
        with server.database("ENCODING 'UTF8' TEMPLATE template0") as fresh_url:
            run_script(fresh_url)
            with psycopg.connect(fresh_url, autocommit=True) as connection:
                connection.execute(create)
            assert schema_catalog(fresh_url) == upgraded
        with psycopg.connect(empty_database_url) as connection:
            wrong = connection.execute("SELECT * FROM textsim._wrong_objects()").fetchall()
            assert wrong == []


ADDS_VALUES = re.compile(r"ADD COLUMN[^;]*\b(?:DEFAULT|NOT NULL)\b", re.IGNORECASE)


def test_steps_add_columns_as_the_newest_servers_allow() -> None:
    """They refuse a new column with a value, if a parsed function uses rows of the table.

    PostgreSQL 15.20 and 18.7 do so; the embedded servers are older.
    """
    assert ADDS_VALUES.search("ALTER TABLE a ADD COLUMN b integer\n NOT NULL DEFAULT 7;")
    for file in (ROOT / "sql" / "upgrade").glob("*.sql"):
        step = file.read_text("utf-8")
        assert ADDS_VALUES.search(step) is None, file.name
        for setting in re.findall(r"textsim\.corpus ADD COLUMN (\w+)", step):
            comment = rf"corpus\.{setting}\s+IS '[^;]*; since revision {file.name[:4]}';"
            assert re.search(comment, schema.file("schema/10_tables.sql")), setting


@pytest.mark.more
def test_a_downgrade_removes_hundreds_of_corpora(engine: Engine, empty_database_url: str) -> None:
    """These are more tables than the server can lock in one transaction."""
    before = user_catalog(empty_database_url)
    schema.upgrade(engine)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
        for first in range(0, 300, 50):
            connection.execute(
                "SELECT textsim.create_corpus('c' || i, num_hashes => 8) "
                "FROM generate_series(%s::integer, %s) i",
                [first, first + 49],
            )
        connection.execute("SELECT textsim.attach('c7', 'article', 'id', 'body')")
        # A client that dies during a rebuild leaves a corpus with a trigger that refuses writes.
        connection.execute("SELECT textsim._replace_corpus(1, 2)")
        schema.downgrade(engine)
        connection.execute("INSERT INTO article VALUES (1, 'a row of a table that was attached')")
        connection.execute("DROP TABLE article")
    assert user_catalog(empty_database_url) == before


def test_the_extension_has_the_revision_of_the_schema() -> None:
    folder = str(ROOT / "sql" / "extension")
    command = ["make", "-C", folder, "--eval", "print: ; @echo $(REVISION)"]
    result = subprocess.run([*command, "-s", "print"], capture_output=True, text=True, check=True)
    assert schema.head() in result.stdout.split()


STORED = {
    "corpus": "SELECT id, name, threshold, bands, rows, base FROM textsim.corpus",
    "word": "SELECT * FROM textsim.word_1",
    "document": "SELECT id, key, word_ids, signature, shingle_count FROM textsim.document_1",
    "band": "SELECT * FROM textsim.band_1",
    "sequences": """
        SELECT sequencename, last_value FROM pg_sequences
        WHERE schemaname = 'textsim'
            AND sequencename IN ('document_1_id_seq', 'document_2_id_seq', 'word_1_id_seq')
    """,
}


def test_documents_survive_an_upgrade(engine: Engine, empty_database_url: str) -> None:
    """A table stays attached meanwhile."""
    url = empty_database_url
    schema.upgrade(engine)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
        with ts.connect(url) as db:
            for name, mode in (("one", Mode.QUEUE), ("two", Mode.INLINE)):
                corpus = db.create_corpus(name)
                corpus.add_many([("a", "some text that is there"), ("b", "some text that is here")])
                corpus.attach("article", "id", "body", mode)
            connection.execute("INSERT INTO article VALUES (1, 'a row that is indexed')")
            db.worker().run(until_idle=True)
        connection.execute("INSERT INTO article VALUES (2, 'a row that is pending')")
        connection.execute("SELECT textsim.add('one', 'sql', 'words that wait for their ids')")
        stored = {name: fetch_sorted(url, query) for name, query in STORED.items()}
        with later_step():
            with pytest.raises(SchemaError, match=f"at revision {LAST}.* needs {MADE_UP}"):
                ts.connect(url)
            connection.execute("UPDATE article SET body = 'a row that was changed' WHERE id = 1")
            schema.upgrade(engine)
            with ts.connect(url) as db:
                db.worker().run(until_idle=True)
                for name in ("one", "two"):
                    corpus = db.corpus(name)
                    assert [m.key for m in corpus.query("a row that was changed")] == ["1"]
                    assert [m.key for m in corpus.query("a row that is pending")] == ["2"]
                    assert corpus.check() == []
        kept = {name: fetch_sorted(url, query) for name, query in STORED.items()}
        assert kept["corpus"] == stored["corpus"]
        assert set(kept["word"]) > set(stored["word"])


def test_a_downgrade_drops_no_object_of_a_user(db: ts.Database) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
        corpus = db.create_corpus("news")
        corpus.attach("article", "id", "body")
        corpus.add("a", "some text that is there")
        for definition in ("TABLE textsim.document_1", "SELECT textsim.jaccard('news', 'a', 'a')"):
            connection.execute(f"CREATE VIEW mine AS {definition}".encode())
            with pytest.raises(ts.DatabaseError, match=r"view (public\.)?mine depends on"):
                schema.downgrade(db.engine)
            connection.execute("DROP VIEW mine")
    schema.downgrade(db.engine)


@pytest.mark.more
def test_a_client_uses_a_newer_schema_that_serves_it(server: Server, database_url: str) -> None:
    """It goes on, connects anew, installs nothing, and is refused by a step that does not serve it.

    The step adds columns to tables that prepared statements of the client read.
    """
    engine = open_engine(database_url)
    with (
        ts.connect(database_url) as db,
        psycopg.connect(database_url, autocommit=True) as application,
    ):
        corpus = db.create_corpus("news")
        application.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
        corpus.attach("article", "id", "body")

        def use(first: int) -> None:
            for number in range(first, first + 7):  # psycopg prepares what came five times
                application.execute("INSERT INTO article VALUES (%s, 'a row')", [number])
                db.worker().run(until_idle=True)
                assert len(db.corpus("news").query("a row")) == number

        use(1)
        with later_step():
            assert schema.upgrade(engine) == MADE_UP
            upgraded = schema_catalog(database_url)
        use(8)
        assert corpus.add("a", "some text that is there").added == 1
    with ts.connect(database_url) as db:
        assert [m.key for m in db.corpus("news").query("some text that is there")] == ["a"]
        assert db.corpus("news").check() == []
    assert ts.install(database_url) == MADE_UP
    assert schema_catalog(database_url) == upgraded
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(NEWER.encode())
    for action in (ts.connect, ts.install):
        message = f"revision {MADE_UP}.*needs {LAST}; what to do: install a newer"
        with pytest.raises(SchemaError, match=message):
            action(database_url)
    # A downgrade removes the schema, as the error suggests.
    schema.downgrade(engine)
    assert schema.upgrade(engine) == schema.head()
    engine.dispose()
