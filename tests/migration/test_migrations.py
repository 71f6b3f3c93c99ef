"""The schema: fresh or upgraded it is the same, and it can be taken back, with rows and without."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

import textsim_db as ts
from scripts.freeze_schema import CHECKSUMS, checksums
from tests.support.catalog import CATALOG, fetch_sorted, schema_catalog, user_catalog
from tests.support.servers import Server
from tests.support.steps import FIRST, SECOND, second_step
from textsim_db.db import schema
from textsim_db.db.engine import open_engine

ROOT = Path(__file__).parents[2]


def run_script(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(schema.script().encode())


@pytest.fixture
def engine(empty_database_url: str) -> Iterator[Engine]:
    engine = open_engine(empty_database_url)
    yield engine
    engine.dispose()


def test_fresh_equals_upgraded(server: Server, engine: Engine, empty_database_url: str) -> None:
    schema.upgrade(engine)
    upgraded = schema_catalog(empty_database_url)
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as fresh_url:
        run_script(fresh_url)
        fresh = schema_catalog(fresh_url)
        for name in CATALOG:
            assert fresh[name] == upgraded[name], name
        with ts.connect(fresh_url) as db:
            corpus = db.create_corpus("news")
            corpus.add("a", "some text")
            assert corpus.check() == []
        assert ts.install(fresh_url) == schema.head()


def test_down_and_up_again(engine: Engine, empty_database_url: str) -> None:
    before = user_catalog(empty_database_url)
    schema.upgrade(engine)
    first = schema_catalog(empty_database_url)
    schema.downgrade(engine)
    assert user_catalog(empty_database_url) == before
    schema.upgrade(engine)
    assert schema_catalog(empty_database_url) == first
    schema.upgrade(engine)
    assert schema_catalog(empty_database_url) == first


@pytest.fixture
def two_steps() -> Iterator[Path]:
    """Have a schema of two steps; the folder with its files."""
    with second_step() as root:
        yield root


def test_fresh_equals_upgraded_in_two_steps(
    server: Server, engine: Engine, empty_database_url: str, two_steps: Path
) -> None:
    assert schema.upgrade(engine) == SECOND
    upgraded = schema_catalog(empty_database_url)
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as fresh_url:
        run_script(fresh_url)
        assert schema_catalog(fresh_url) == upgraded


def test_functions_of_corpora_equal_upgraded_ones(
    server: Server, engine: Engine, empty_database_url: str, two_steps: Path
) -> None:
    """Those of a corpus that is older than the step, and of one that was created after it."""
    schema.upgrade(engine)
    schema.downgrade(engine, "-1")
    create = "SELECT textsim.create_corpus('news', 'word:2', seed => 9)"
    of_corpora = f"SELECT * FROM ({CATALOG['functions']}) f (name) WHERE name ~ '_1[(]'"
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(create)
    older = fetch_sorted(empty_database_url, of_corpora)
    schema.upgrade(engine)
    upgraded = fetch_sorted(empty_database_url, of_corpora)
    assert len(upgraded) == 3
    assert upgraded != older
    assert any("forget a document of a corpus," in str(row) for row in upgraded)
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as fresh_url:
        run_script(fresh_url)
        with psycopg.connect(fresh_url, autocommit=True) as connection:
            connection.execute(create)
        assert fetch_sorted(fresh_url, of_corpora) == upgraded
    schema.downgrade(engine, "-1")
    assert fetch_sorted(empty_database_url, of_corpora) == older


def test_down_step_by_step(engine: Engine, empty_database_url: str, two_steps: Path) -> None:
    schema.upgrade(engine)
    complete = schema_catalog(empty_database_url)
    reached = []
    for _ in (SECOND, FIRST):
        schema.downgrade(engine, "-1")
        reached.append(fetch_sorted(empty_database_url, "SELECT * FROM textsim.alembic_version"))
    assert reached == [[(FIRST,)], []]
    schema.upgrade(engine)
    assert without_dropped_columns(schema_catalog(empty_database_url)) == without_dropped_columns(
        complete
    )


def without_dropped_columns(found: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[Any]]:
    """Leave out columns that were dropped, and the numbers of the others."""
    columns = [(row[0], *row[2:]) for row in found["columns"] if not row[10]]
    return found | {"columns": sorted(columns, key=repr)}


def test_hundreds_of_corpora_are_removed(engine: Engine, empty_database_url: str) -> None:
    """More than the server can lock in one transaction."""
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
        # A client that dies in a rebuild leaves a corpus with a trigger that refuses writes.
        connection.execute("SELECT textsim._replace_corpus(1, 2)")
        schema.downgrade(engine)
        connection.execute("INSERT INTO article VALUES (1, 'a row of a table that was attached')")
        connection.execute("DROP TABLE article")
    assert user_catalog(empty_database_url) == before


def test_up_and_down_with_rows(engine: Engine, empty_database_url: str) -> None:
    before = user_catalog(empty_database_url)
    schema.upgrade(engine)
    with ts.connect(empty_database_url) as db:
        for name in ("one", "two"):
            db.create_corpus(name).add_many([("a", "some text"), ("b", "other text")])
    schema.downgrade(engine)
    assert user_catalog(empty_database_url) == before
    schema.upgrade(engine)
    with ts.connect(empty_database_url) as db:
        assert db.corpora() == []
        assert db.create_corpus("one").add("a", "some text").added == 1


def test_released_files_never_change(two_steps: Path) -> None:
    """Nothing is released yet: the check must name what will be."""
    assert changed_files(ROOT) == []
    assert changed_files(two_steps) == []
    file = two_steps / "sql" / "upgrade" / FIRST / "10_tables.sql"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert changed_files(two_steps) == [f"{FIRST}/10_tables.sql"]


def changed_files(root: Path) -> list[str]:
    """Return the released files that are not what their checksums say."""
    upgrade = root / "sql" / "upgrade"
    if not upgrade.is_dir():
        return []
    lines = (upgrade / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    now = checksums(upgrade)
    return [name for name, digest in map(str.split, lines) if now.get(name) != digest]


def test_revision_is_that_of_the_extension() -> None:
    command = [
        "make",
        "-C",
        str(ROOT / "sql" / "extension"),
        "--eval",
        "print: ; @echo $(REVISION)",
    ]
    done = subprocess.run([*command, "-s", "print"], capture_output=True, text=True, check=True)
    assert schema.head() in done.stdout.split()


STORED = {
    "corpus": "SELECT id, name, threshold, bands, rows, base FROM textsim.corpus",
    "word": "SELECT * FROM textsim.word",
    "document": "SELECT id, key, word_ids, signature, shingle_count FROM textsim.document_1",
    "band": "SELECT * FROM textsim.band_1",
    "sequences": """
        SELECT sequencename, last_value FROM pg_sequences
        WHERE schemaname = 'textsim'
            AND sequencename IN ('document_1_id_seq', 'document_2_id_seq', 'word_id_seq')
    """,
}


def test_documents_survive_a_step(engine: Engine, empty_database_url: str, two_steps: Path) -> None:
    """Down by a step and up again, under a table that stays attached."""
    url = empty_database_url
    schema.upgrade(engine)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
        with ts.connect(url) as db:
            for name, mode in (("one", "queue"), ("two", "inline")):
                corpus = db.create_corpus(name)
                corpus.add_many([("a", "some text that is there"), ("b", "some text that is here")])
                corpus.attach("article", "id", "body", mode)
            connection.execute("INSERT INTO article VALUES (1, 'a row that is indexed')")
            db.worker().run(until_idle=True)
        connection.execute("INSERT INTO article VALUES (2, 'a row that is pending')")
        connection.execute("SELECT textsim.add('one', 'sql', 'words that wait for their ids')")
        stored = {name: fetch_sorted(url, query) for name, query in STORED.items()}
        schema.downgrade(engine, "-1")
        with pytest.raises(ts.SchemaError, match=f"at revision {FIRST}.* needs {SECOND}"):
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


def test_removing_what_a_view_needs_is_refused(db: ts.Database) -> None:
    """A view of the user's is not dropped along with the schema."""
    db.create_corpus("news")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE VIEW mine AS SELECT textsim.jaccard('news', 'a b', 'a b')")
        with pytest.raises(ts.SchemaError, match=r"view mine reads the schema .* DROP VIEW mine"):
            schema.downgrade(db.engine)
        connection.execute("DROP VIEW mine")
    schema.downgrade(db.engine)


def test_another_version_is_refused_by_name(database_url: str) -> None:
    """A client older than the schema, as a client newer than it, names what both are at."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for found in ("0001_000000000000", "9999_later"):
            connection.execute("UPDATE textsim.alembic_version SET version_num = %s", [found])
            with pytest.raises(ts.SchemaError, match=f"revision {found}.*needs {schema.head()}"):
                ts.connect(database_url)
    # There is no way from a revision that this version does not know: nothing is changed.
    before = schema_catalog(database_url)
    with pytest.raises(ts.SchemaError, match="9999_later"):
        ts.install(database_url)
    assert schema_catalog(database_url) == before
    # It can be removed, as the error says.
    engine = open_engine(database_url)
    schema.downgrade(engine)
    assert schema.upgrade(engine) == schema.head()
    engine.dispose()


def test_a_newer_upgrade_while_a_client_works(db: ts.Database) -> None:
    """What is open is not asked again for its version: only a new connect() is refused."""
    corpus = db.create_corpus("news")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("UPDATE textsim.alembic_version SET version_num = '9999_later'")
    corpus.add("a", "some text that is there")
    assert [m.key for m in corpus.query("some text that is there")] == ["a"]
    with pytest.raises(ts.SchemaError, match="9999_later"):
        ts.connect(db.url)
