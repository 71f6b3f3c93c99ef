"""Fixtures of pytest for the tests of an application, each on a PostgreSQL database of its own.

Every run of pytest loads this module, so it imports nothing else before a test asks for a fixture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from textsim_db import Corpus, Database


@pytest.fixture(scope="session")
def textsim_server() -> Iterator[str]:
    """Return the address of a server to create databases on; an embedded one that ends with the run."""
    from textsim_db.db import embedded_server
    from textsim_db.errors import EmbeddedServerError

    # The user root starts the server as another user, who may not enter the folders of pytest.
    with TemporaryDirectory(prefix="textsim-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            address = embedded_server.start(folder)
        except EmbeddedServerError as error:
            error.add_note(
                "a fixture textsim_server of your own may return the address of a server"
            )
            raise
        yield address
        embedded_server.stop(folder)


@pytest.fixture(scope="session")
def textsim_template(textsim_server: str) -> Iterator[str]:
    """Return the address of the database that each test gets a copy of; it has the schema."""
    from textsim_db import install

    with _database(textsim_server, "template0") as address:
        install(address)
        yield address


@pytest.fixture
def textsim_database(
    textsim_server: str, textsim_template: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """Return a database of this test alone; `connect()` and commands without an address use it too."""
    from textsim_db import connect
    from textsim_db.corpus.database import URL_VARIABLE
    from textsim_db.db.addresses import sqlalchemy_url

    template = sqlalchemy_url(textsim_template).database
    with _database(textsim_server, str(template)) as address, connect(address) as database:
        monkeypatch.setenv(URL_VARIABLE, address)
        yield database


@pytest.fixture
def textsim_corpus(textsim_database: Database) -> Corpus:
    """Return an empty corpus with the default settings, in the test's database."""
    return textsim_database.create_corpus("corpus")


@contextmanager
def _database(server: str, template: str) -> Iterator[str]:
    """Copy a database to which nobody is connected, yield the address of the copy, and drop it."""
    import psycopg
    from psycopg import sql

    from textsim_db.db.addresses import plain_url, sqlalchemy_url

    name, url = f"textsim_{os.urandom(8).hex()}", sqlalchemy_url(server)
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield plain_url(url.set(database=name))
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))
