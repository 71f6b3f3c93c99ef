"""Tables of every kind, name and key type are attached, or refused with a reason."""

from __future__ import annotations

import uuid
from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import Table, Text, cast, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.sources import (
    MODES,
    expected_forms,
    index_all_pending,
    make_table,
    stored_forms,
    text_of,
)
from textsim_db.settings.named_values import ModeName

KEYS: dict[str, tuple[str, list[object]]] = {
    "smallint": ("smallint", [1, -2, 32767]),
    "integer": ("integer", [1, -2, 2**31 - 1]),
    "bigint": ("bigint", [1, -(2**63), 2**63 - 1]),
    "uuid": ("uuid", [uuid.UUID(int=1), uuid.UUID(int=2**127), uuid.UUID(int=77)]),
    "text": ("text", ["a", "", "Ä ö \"quoted\" 'key', {with} \\ and %s"]),
    "varchar": ("varchar(20)", ["a", "B", "漢字 \U0001f98a"]),
    "domain": ("name_of_it", ["a", "B", "c"]),
    "c": ('text COLLATE "C"', ["a", "B", "é"]),
}


@pytest.mark.parametrize("mode", sample(MODES, 2, "more"))
def test_keys_of_every_supported_type_are_indexed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    connection.execute("CREATE DOMAIN name_of_it AS text NOT NULL")
    for kind, (definition, keys) in KEYS.items():
        connection.execute(
            f"CREATE TABLE t (body varchar(500), id {definition} NOT NULL UNIQUE)".encode()
        )
        connection.execute("INSERT INTO t (id, body) VALUES (%s, %s)", [keys[0], text_of(0)])
        corpus.attach("t", "id", "body", mode)
        for number, key in enumerate(keys[1:], start=1):
            connection.execute("INSERT INTO t (id, body) VALUES (%s, %s)", [key, text_of(number)])
        index_all_pending(db, corpus)
        assert set(stored_forms(connection)) == {str(key) for key in keys}, kind
        connection.execute("UPDATE t SET body = 'changed' WHERE id = %s", [keys[2]])
        connection.execute("DELETE FROM t WHERE id = %s", [keys[1]])
        db.worker().run(until_idle=True)
        expected = {str(keys[0]): text_of(0), str(keys[2]): "changed"}
        assert stored_forms(connection) == expected, kind
        corpus.detach("t")
        corpus.remove(list(expected))
        connection.execute("DROP TABLE t")


@pytest.mark.parametrize("mode", sample(MODES, 2, "more"))
def test_changes_of_a_partitioned_table_are_indexed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    connection.execute(
        """
        CREATE TABLE t (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
        CREATE TABLE t2a PARTITION OF t2 FOR VALUES FROM (10) TO (15);
        CREATE TABLE t2b PARTITION OF t2 DEFAULT;
        INSERT INTO t SELECT i, 'row number ' || i || ' at first' FROM generate_series(0, 19) i
        """
    )
    corpus.attach("t", "id", "body", mode)
    index_all_pending(db, corpus)
    assert len(corpus) == 20
    for statement in (
        "UPDATE t1 SET body = body || ' changed in a partition' WHERE id = 3",
        "INSERT INTO t1 VALUES (4, 'again') ON CONFLICT (id) DO UPDATE SET body = 'upserted'",
        "UPDATE t SET id = 16 + 1000 WHERE false",
        "DELETE FROM t WHERE id = 12; UPDATE t SET id = 12 WHERE id = 5",
        "DELETE FROM t2b WHERE id = 17",
        "TRUNCATE t2a",
        "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30); "
        "INSERT INTO t3 VALUES (22, 'in a partition that came later')",
        "DELETE FROM t; INSERT INTO t VALUES (1, 'the last one')",
        "TRUNCATE t",
    ):
        connection.execute(statement)
        index_all_pending(db, corpus)
        assert stored_forms(connection) == expected_forms(connection, "t"), statement


def test_a_single_partition_can_be_attached(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute(
        """
        CREATE TABLE t (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)
        """
    )
    corpus.attach("t1", "id", "body")
    connection.execute("INSERT INTO t VALUES (1, 'through the parent'), (11, 'elsewhere')")
    index_all_pending(db, corpus)
    assert stored_forms(connection) == {"1": "through the parent"}
    connection.execute("TRUNCATE t")
    index_all_pending(db, corpus)
    assert stored_forms(connection) == {}


REFUSED: dict[str, tuple[LiteralString, str]] = {
    "view": ("CREATE VIEW t AS SELECT 1 AS id, 'a' AS body", "it is a view"),
    "materialized view": ("CREATE MATERIALIZED VIEW t AS SELECT 1 AS id, 'a' AS body", "a view"),
    "temporary": ("CREATE TEMP TABLE t (id int PRIMARY KEY, body text)", "temporary"),
    "composite": ("CREATE TABLE t (id int, b int, body text, PRIMARY KEY (id, b))", "not unique"),
    "no key": ("CREATE TABLE t (id int NOT NULL, body text)", "not unique by itself"),
    "partial": (
        "CREATE TABLE t (id int NOT NULL, body text); CREATE UNIQUE INDEX ON t (id) WHERE id > 0",
        "not unique by itself",
    ),
    "nullable": ("CREATE TABLE t (id int UNIQUE, body text)", "may be NULL"),
    "float": ("CREATE TABLE t (id float8 PRIMARY KEY, body text)", "is of type double precision"),
    "bytea": ("CREATE TABLE t (id int PRIMARY KEY, body bytea)", "expected text"),
    "no such column": ("CREATE TABLE t (id int PRIMARY KEY, other text)", '"body" does not exist'),
    "inherited": (
        "CREATE TABLE p (id int PRIMARY KEY, body text); "
        "CREATE TABLE t (PRIMARY KEY (id)) INHERITS (p)",
        "inheritance",
    ),
    "sequence": ("CREATE SEQUENCE t", "not a table"),
}


def test_tables_that_cannot_be_attached_are_refused_with_a_reason(
    corpus: ts.Corpus, connection: Connection
) -> None:
    for kind, (definition, reason) in REFUSED.items():
        with connection.transaction(force_rollback=kind == "temporary"):
            connection.execute(definition)
            if kind == "temporary":
                with pytest.raises(psycopg.errors.FeatureNotSupported, match=reason):
                    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
                continue
        with pytest.raises(ts.ConfigurationError, match=f"cannot be attached: .*{reason}"):
            corpus.attach("t", "id", "body")
        row = connection.execute("SELECT relkind FROM pg_class WHERE relname = 't'").fetchone()
        assert row is not None
        dropped = {"v": "VIEW", "m": "MATERIALIZED VIEW", "S": "SEQUENCE"}.get(row[0], "TABLE")
        connection.execute(f"DROP {dropped} t".encode())
    assert connection.execute("SELECT count(*) FROM textsim.source").fetchone() == (0,)


def test_wrong_calls_of_attach_and_detach_are_refused(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    with pytest.raises(ts.ConfigurationError, match="there is no table 'none'"):
        corpus.attach("none", "id", "body")
    with pytest.raises(ts.ConfigurationError, match="table"):
        corpus.attach('a "b', "id", "body")
    with pytest.raises(ts.ConfigurationError, match="mode is 'later'"):
        corpus.attach("t", "id", "body", "later")  # type: ignore[arg-type]
    with pytest.raises(ts.ConfigurationError, match="neither a name, nor a SQLAlchemy table"):
        corpus.attach(int, "id", "body")
    with pytest.raises(
        ts.ConfigurationError, match="is not a column, and not the name of a column"
    ):
        corpus.attach("t", 7, "body")  # type: ignore[arg-type]
    with pytest.raises(ts.ConfigurationError, match="poll is 0; expected seconds above 0"):
        db.worker(poll=0)
    corpus.attach("t", "id", "body")
    with pytest.raises(ts.ConfigurationError, match=r'table public\.t is attached to corpus "c"'):
        corpus.attach("t", "id", "body")
    with pytest.raises(ts.ConfigurationError, match="detach them first"):
        db.drop_corpus(corpus.name)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="NULL"):
        connection.execute("SELECT textsim.attach('c', NULL, 'id', 'body')")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="name of the corpus is NULL"):
        connection.execute("SELECT textsim.attach(NULL, 't', 'id', 'body')")
    corpus.detach("t")
    with pytest.raises(ts.ConfigurationError, match=r"table public\.t is not attached"):
        corpus.detach("t")
    assert len(corpus) == 5
    db.drop_corpus(corpus.name)


def test_attaching_again_takes_over_the_stored_documents(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.add_many([("0", text_of(0)), ("1", "an old text"), ("by hand", "it stays")])
    report = corpus.attach("t", "id", "body")
    assert (report.added, report.replaced, report.unchanged) == (3, 1, 1)
    corpus.detach("t")
    connection.execute("DELETE FROM t WHERE id = 0")
    report = corpus.attach("t", "id", "body")
    assert (report.unchanged, report.removed) == (4, 1)
    index_all_pending(db, corpus)
    assert set(stored_forms(connection)) == {"1", "2", "3", "4", "by hand"}


def test_two_tables_in_one_corpus_cannot_share_a_key(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    for name in ("x", "y"):
        connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, body text)".encode())
        corpus.attach(name, "id", "body", "queue" if name == "x" else "inline")
    connection.execute("INSERT INTO x VALUES ('a', 'from x'), ('b', 'from x too')")
    index_all_pending(db, corpus)
    connection.execute("INSERT INTO y VALUES ('c', 'from y'), ('b', 'not this one')")
    db.worker().run(until_idle=True)
    assert stored_forms(connection) == {"a": "from x", "b": "from x too", "c": "from y"}
    failure = corpus.pending()[0]
    assert failure[:2] == ("b", "y")
    assert failure.error == "the corpus has this key from the table x"
    connection.execute("DELETE FROM y WHERE id = 'b'")
    report = db.worker().run(until_idle=True)
    assert report.removed == 0
    assert "b" in corpus
    connection.execute("INSERT INTO y VALUES ('b', 'now it may be'); DELETE FROM x WHERE id = 'b'")
    db.worker().run(until_idle=True)
    assert len(corpus.pending(retry=True)) <= 1
    index_all_pending(db, corpus)
    assert stored_forms(connection)["b"] == "now it may be"


class Base(DeclarativeBase):
    pass


class Article(Base):
    __tablename__ = "articles of"
    __table_args__ = {"schema": "Blog"}  # noqa: RUF012 - as SQLAlchemy declares it
    number: Mapped[int] = mapped_column("id", primary_key=True)
    content: Mapped[str | None] = mapped_column("the body")


@pytest.mark.parametrize("way", ["class", "columns", "table"])
def test_tables_of_sqlalchemy_are_attached_and_joined(
    db: ts.Database, corpus: ts.Corpus, way: str
) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql('CREATE SCHEMA "Blog"')
        Base.metadata.create_all(connection)
    if way == "class":
        corpus.attach(Article, key="number", text="content")
    elif way == "columns":
        corpus.attach(Article, key=Article.number, text=Article.content)
    else:
        table = Article.__table__
        assert isinstance(table, Table)
        corpus.attach(table, key=table.c.id, text="the body")
    with Session(db.engine) as session, session.begin():
        session.add_all(Article(number=i, content=text_of(i % 3)) for i in range(1, 7))
    db.worker().run(until_idle=True)
    matches = func.textsim.matches("c", text_of(1), 0.9).table_valued("key", "similarity")
    query = (
        select(Article, matches.c.similarity)
        .join(matches, matches.c.key == cast(Article.number, Text))
        .where(Article.number > 1)
    )
    with Session(db.engine) as session:
        matching_articles = session.execute(query).all()
    assert [(article.number, similarity) for article, similarity in matching_articles] == [(4, 1.0)]
    corpus.detach(Article)
