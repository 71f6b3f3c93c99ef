"""A database whose schema belongs to a role without superuser rights, and other roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import errors as pg, sql

import textsim_db as ts
from tests.support.servers import Server, database_of
from textsim_db.db.addresses import plain_url, sqlalchemy_url

PASSWORD = "secret"
TEXTS = [
    ("a", "one two three four five six"),
    ("b", "one two three four five six seven"),
    ("c", "nothing of the kind has ever been seen"),
]
FOX = "the quick brown fox jumps over the lazy dog"
RELATIONS = """
SELECT c.oid::regclass::text, c.relkind, (
    SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = 1)
FROM pg_class c
WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
ORDER BY 1
"""
RIGHTS = """
SELECT 'schema', nspname::text, nspacl::text FROM pg_namespace WHERE nspname = 'textsim'
UNION ALL SELECT 'relation', relname, relacl::text FROM pg_class
WHERE relnamespace = 'textsim'::regnamespace
UNION ALL SELECT 'column', attname, attacl::text FROM pg_attribute
JOIN pg_class c ON c.oid = attrelid
WHERE relnamespace = 'textsim'::regnamespace
UNION ALL SELECT 'function', oid::regprocedure::text, proacl::text FROM pg_proc
WHERE pronamespace = 'textsim'::regnamespace
"""


@contextmanager
def new_role(server: Server, name: str) -> Iterator[str]:
    """Create a role that may log in, and drop it at the end; by then it must own nothing."""
    role = sql.Identifier(name)
    server.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, PASSWORD))
    try:
        yield name
    finally:
        server.execute(sql.SQL("DROP ROLE {}").format(role))


def as_role(address: str, role: str) -> str:
    """Return the address of a database with another role."""
    url = plain_url(sqlalchemy_url(address).set(username=role, password=PASSWORD))
    return url.replace(" ", "%20")  # SQLAlchemy keeps spaces, and libpq refuses them


def truncate_name(name: str) -> str:
    """Return a name as the server truncates it."""
    return name.encode()[:63].decode(errors="ignore")


@dataclass(frozen=True)
class Stage:
    """A database whose schema belongs to the role `owner`; all roles may create tables.

    It has a corpus "news". The reader and the writer got their rights before the corpus was created.
    """

    url: str
    owner: str
    reader: str
    writer: str
    other: str

    def run(self, role: str, *statements: str, values: Any = None) -> list[tuple[Any, ...]]:
        """Run each statement in its own transaction, and return the rows of the last statement."""
        with psycopg.connect(as_role(self.url, role), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def allowed(self, role: str, statements: Iterable[str]) -> list[str]:
        """Run statements and return those that are not refused for missing rights."""
        not_refused = []
        for statement in statements:
            try:
                self.run(role, statement)
            except pg.InsufficientPrivilege:
                continue
            not_refused.append(statement)
        return not_refused

    def connect(self, role: str) -> ts.Database:
        return ts.connect(as_role(self.url, role))

    def work(self, role: str) -> None:
        """Have a worker of this role index everything that is pending."""
        with self.connect(role) as db:
            worker = db.worker()
            worker.run(until_idle=True)
            assert worker.unusable == {}
            assert db.corpus("news").status().failed == 0
            assert db.corpus("news").status().pending == 0

    def similar_keys(self, text: str = FOX) -> list[str]:
        """Return the keys of the documents that match a text."""
        with self.connect(self.owner) as db:
            return sorted(match.key for match in db.corpus("news").query(text))


@contextmanager
def new_stage(
    server: Server,
    writer: str = "writer",
    other: str = "other",
    install: Callable[[str], object] = ts.install,
    add: Callable[[str], object] | None = None,
) -> Iterator[Stage]:
    with ExitStack() as stack:
        owner, reader, writer, other = (
            stack.enter_context(new_role(server, truncate_name(f"{server.new_name()}_{name}")))
            for name in ("owner", "reader", writer, other)
        )
        url = stack.enter_context(server.database("ENCODING 'UTF8' TEMPLATE template0"))
        stage = Stage(url, owner, reader, writer, other)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
        set_owner(server, url, owner)
        install(as_role(url, owner))
        stage.run(owner, "SELECT textsim.grant_reader(quote_ident(%s)::regrole)", values=[reader])
        stage.run(owner, "SELECT textsim.grant_writer(quote_ident(%s)::regrole)", values=[writer])
        (add or add_news)(as_role(url, owner))
        yield stage


def add_news(address: str) -> None:
    with ts.connect(address) as db:
        db.create_corpus("news").add_many(TEXTS)


@contextmanager
def copy_of_stage(server: Server, stage: Stage) -> Iterator[Stage]:
    """Copy the database of a stage, for the same roles; nobody may be connected to it."""
    with server.clone(database_of(stage.url)) as url:
        set_owner(server, url, stage.owner)
        yield replace(stage, url=url)


def set_owner(server: Server, url: str, owner: str) -> None:
    """Make a role the owner of a database."""
    statement = sql.SQL("ALTER DATABASE {} OWNER TO {}")
    server.execute(statement.format(*map(sql.Identifier, (database_of(url), owner))))


def rows_and_rights(stage: Stage) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row in the schema, and every right on the schema."""
    rows_by_relation = {"rights": sorted(stage.run(stage.owner, RIGHTS), key=repr)}
    for name, kind, _ in stage.run(stage.owner, RELATIONS):
        if name == "textsim.metrics":  # a view; it shows ages
            continue
        columns = "last_value" if kind == "S" else "*"
        rows = stage.run(stage.owner, f"SELECT {columns} FROM {name}")
        rows_by_relation[name] = sorted(rows, key=repr)
    return rows_by_relation
