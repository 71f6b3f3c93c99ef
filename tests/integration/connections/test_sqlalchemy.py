"""textsim_db.sql: the functions of textsim in statements over mapped classes, synchronous and not."""

from __future__ import annotations

import asyncio
import datetime
import inspect
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, mapped_column

import textsim_db as ts
from tests.support.catalog import ARGUMENTS
from tests.support.connections import Connection
from textsim_db import sql

NEAR = [
    "The city council approved the new budget for schools on Monday evening after a debate.",
    "The city council approved the new budget for schools on Monday evening after a long debate.",
    "The council approved the new budget for schools on Monday evening after a debate.",
]
OTHER = "Whisk two eggs with sugar, and fold in the sifted flour until the dough is smooth."
TEXTS = [*NEAR, OTHER, f"As we wrote: {OTHER}"]


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"
    number: Mapped[int] = mapped_column("id", primary_key=True)
    body: Mapped[str] = mapped_column(sa.String(500))


class Entry(Base):
    """A row with a key of several columns."""

    __tablename__ = "entry"
    day: Mapped[datetime.date] = mapped_column(primary_key=True)
    at: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True), primary_key=True)
    code: Mapped[str] = mapped_column(sa.String(8), primary_key=True)
    body: Mapped[str]


@pytest.fixture
def items(db: ts.Database) -> ts.Corpus:
    Base.metadata.create_all(db.engine)
    with Session(db.engine) as session, session.begin():
        session.add_all(Item(number=n, body=text) for n, text in enumerate(TEXTS, 41))
    corpus = db.create_corpus("items", shingle="word:2", threshold=0.5, passages=6)
    corpus.attach(Item, key="id", text="body")
    return corpus


def near_42() -> Any:
    near = sql.neighbours("items", 42)
    return (
        sa.select(Item, near.c.similarity)
        .join(near, sql.has_key(Item, near.c.key))
        .order_by(near.c.similarity.desc())
    )


def near_all() -> Any:
    other, near = aliased(Item), sql.neighbours("items", sql.key_of(Item), 0.5)
    return (
        sa.select(Item.number, other.number)
        .select_from(Item)
        .join(near, sa.true())
        .join(other, sql.has_key(other, near.c.key))
        .where(Item.number < other.number)
        .order_by(Item.number, other.number)
    )


def test_a_mapped_class_joins_the_matches_of_a_row(db: ts.Database, items: ts.Corpus) -> None:
    expected = [(match.key, match.similarity) for match in items.neighbours("42")]
    assert len(expected) == 2
    pairs = [(int(pair.a), int(pair.b)) for pair in items.pairs()]
    with Session(db.engine) as session:
        rows = session.execute(near_42()).all()
        assert [(str(item.number), similarity) for item, similarity in rows] == expected
        assert all(isinstance(item, Item) for item, _ in rows)
        assert [tuple(row) for row in session.execute(near_all())] == sorted(pairs)
    with db.engine.connect() as connection:  # Core
        table, near = Item.__table__, sql.neighbours("items", "42", max_results=1)
        row = connection.execute(sa.select(table.c.id).join(near, sql.has_key(table, near.c.key)))
        assert str(row.scalar_one()) == expected[0][0]


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_the_statements_run_in_an_async_session(
    database_url: str, items: ts.Corpus, driver: str
) -> None:
    url = sa.make_url(database_url)
    query = dict(url.query)
    if driver == "asyncpg" and "host" in query:
        query["host"] = str(query["host"])
    engine = create_async_engine(url.set(drivername=f"postgresql+{driver}", query=query))

    async def rows() -> tuple[Sequence[Any], ...]:
        found = sql.matches("items", NEAR[0], 0.4, 5)
        twins = sql.twins_of("unique", ["x", "y"], [NEAR[0], OTHER])
        statements = (near_42(), near_all(), sa.select(found), sa.select(twins.c.key))
        async with AsyncSession(engine) as session:
            result = tuple([(await session.execute(each)).all() for each in statements])
        await engine.dispose()
        return result

    with ts.connect(database_url) as db:
        unique = db.create_corpus("unique", is_unique=True, threshold=0.5, shingle="word:2")
        unique.add_unique("a", NEAR[0])
    near, all_near, found, twins = asyncio.run(rows())
    assert [(str(item.number), value) for item, value in near] == [
        (match.key, match.similarity) for match in items.neighbours("42")
    ]
    assert len(all_near) == len(list(items.pairs()))
    assert [tuple(row)[:2] for row in found] == [
        match[:2] for match in items.query(NEAR[0], 0.4, 5)
    ]
    assert [tuple(row) for row in twins] == [("x",)]


def test_each_table_has_the_rows_of_its_function(
    db: ts.Database, connection: Connection, items: ts.Corpus
) -> None:
    items.track()
    items.update_clusters()
    unique = db.create_corpus("unique", is_unique=True)
    unique.add_unique("a", OTHER)
    calls: dict[str, tuple[Any, ...]] = {
        "matches": ("items", NEAR[0]),
        "nearest": ("items", OTHER, 2),
        "neighbours": ("items", "42"),
        "distinct_of": ("items", ["44", "42", "41"], 2),
        "pairs": ("items", 0.4),
        "clusters": ("items",),
        "duplicates": ("items", "longest"),
        "members": ("items",),
        "passages": ("items", f"He said: {OTHER}", 7),
        "twins_of": ("unique", ["b"], [OTHER]),
    }
    assert set(calls) | {"has_key", "key_of"} == set(sql.__all__)
    for name, arguments in calls.items():
        function = getattr(sql, name)
        table = function(*arguments)
        with Session(db.engine) as session, session.begin():
            rows = {str(tuple(row)) for row in session.execute(sa.select(table))}
            first = session.execute(sa.select(table)).first()
        places = ", ".join(["%s"] * len(arguments))
        expected = connection.execute(
            f"SELECT * FROM textsim.{name}({places})".encode(), arguments
        ).fetchall()
        assert rows == {str(tuple(row)) for row in expected}, name
        assert rows, name
        assert first is not None
        for column, value in zip(table.c, first, strict=True):
            assert value is None or isinstance(value, column.type.python_type), column


@pytest.mark.usefixtures("items")
def test_results_of_a_subquery_without_copies(db: ts.Database) -> None:
    ranked = sa.select(sql.key_of(Item)).order_by(Item.number.desc()).scalar_subquery()
    found = sql.distinct_of("items", sa.func.array(ranked), guards=False)
    statement = sa.select(Item.number, found.c.copies).join(found, sql.has_key(Item, found.c.key))
    with Session(db.engine) as session:
        rows = session.execute(statement.order_by(found.c.rank)).all()
    assert [tuple(row) for row in rows] == [(45, ["44"]), (43, ["42", "41"])]


def test_names_defaults_and_types_are_those_of_the_catalog(connection: Connection) -> None:
    for name in set(sql.__all__) - {"has_key", "key_of"}:
        query = (
            f"SELECT a.* FROM pg_proc p CROSS JOIN LATERAL {ARGUMENTS} a "
            "WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = %s"
        )
        rows = connection.execute(query.encode(), [name]).fetchall()
        arguments, defaults, columns, types = rows[0]
        parameters = inspect.signature(getattr(sql, name)).parameters
        assert [*parameters] == arguments, name
        for parameter, default in zip(parameters.values(), defaults, strict=True):
            if default is None:
                assert parameter.default is inspect.Parameter.empty
            else:
                row = connection.execute(f"SELECT {default}".encode()).fetchone()
                assert row == (parameter.default,), (name, parameter)
        table = getattr(sql, name)(*(["x"] if p == "keys" else "x" for p in list(parameters)[:1]), **{
            p.name: ["x"] if p.name in ("keys", "texts") else "x"
            for p in [*parameters.values()][1:]
            if p.default is inspect.Parameter.empty
        })  # fmt: skip
        assert [column.name for column in table.c] == columns, name
        dialect = sa.create_engine("postgresql+psycopg://").dialect
        compiled = [column.type.compile(dialect).lower() for column in table.c]
        assert compiled == types, name


def test_a_key_of_several_columns_finds_its_row(db: ts.Database) -> None:
    Base.metadata.create_all(db.engine)
    moment = datetime.datetime(2026, 11, 25, 9, 30, tzinfo=datetime.UTC)
    with Session(db.engine) as session, session.begin():
        for n, text in enumerate(NEAR):
            at = moment + datetime.timedelta(milliseconds=500 * n)
            session.add(Entry(day=datetime.date(2026, 11, 25), at=at, code=f"a/{n}~", body=text))
    corpus = db.create_corpus("entries", shingle="word:2", threshold=0.4)
    corpus.attach(Entry, key_columns=[Entry.day, Entry.at, Entry.code], text=Entry.body)
    with Session(db.engine) as session:
        session.execute(sa.text("SET TimeZone = 'Asia/Kolkata'"))
        keys = session.scalars(sa.select(sql.key_of(Entry)).order_by(Entry.code)).all()
        assert keys == [match.key for match in sorted(corpus.query(NEAR[1], 0.1))]
        near = sql.neighbours("entries", keys[0])
        found = session.scalars(sa.select(Entry).join(near, sql.has_key(Entry, near.c.key))).all()
        assert {entry.code for entry in found} == {"a/1~", "a/2~"}
        near = sql.neighbours("entries", sql.key_of(Entry), max_results=1)
        query = sa.select(Entry.code, near.c.similarity).join(near, sa.true())
        assert len(session.execute(query).all()) == 3


def test_texts_of_a_column_are_searched_row_by_row(db: ts.Database, items: ts.Corpus) -> None:
    found = sql.matches("items", Item.body, 0.9)
    query = sa.select(Item.number, found.c.key).join(found, sa.true()).order_by(Item.number)
    with Session(db.engine) as session:
        rows = session.execute(query).all()
    expected = [(n, m.key) for n, text in enumerate(TEXTS, 41) for m in items.query(text, 0.9)]
    assert [tuple(row) for row in rows] == expected


def test_what_has_no_key_is_refused_with_what_is_expected() -> None:
    with pytest.raises(ts.ConfigurationError, match="expected a mapped class, a table, or a list"):
        sql.key_of(sa.table("item", sa.column("id")))
    with pytest.raises(ts.ConfigurationError, match="has no primary key"):
        sql.key_of("item")


def test_the_index_of_the_mapped_table_finds_the_rows(
    db: ts.Database, items: ts.Corpus, connection: Connection
) -> None:
    connection.execute(
        "INSERT INTO item SELECT n, 'filler ' || n FROM generate_series(100, 5000) n"
    )
    connection.execute("ANALYZE item")
    with db.engine.connect() as sa_connection:
        compiled = near_42().compile(sa_connection, compile_kwargs={"render_postcompile": True})
    with psycopg.connect(db.url) as explained:
        plan = explained.execute(b"EXPLAIN " + compiled.string.encode(), compiled.params).fetchall()
    assert any("Index Scan using item_pkey" in line for (line,) in plan), plan
