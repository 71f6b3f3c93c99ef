"""Names and defaults of settings in SQL are those of Python, and unknown names get suggestions."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.settings.corpus_settings import DEFAULTS, SETTINGS, Settings

ARGUMENTS = """
SELECT name, pg_get_function_arg_default(p.oid, number::integer)
FROM pg_proc p, unnest(p.proargnames) WITH ORDINALITY a (name, number)
WHERE p.oid = 'textsim.create_corpus'::regproc
"""


def test_the_defaults_in_sql_equal_those_in_python(db: ts.Database) -> None:
    with psycopg.connect(db.url) as connection:
        arguments: dict[str, str] = dict(connection.execute(ARGUMENTS).fetchall())
        del arguments["name"]
        defaults: dict[str, Any] = {}
        for name, expression in arguments.items():
            row = connection.execute(f"SELECT {expression}".encode()).fetchone()
            assert row is not None
            defaults[name] = tuple(row[0]) if isinstance(row[0], list) else row[0]
    assert {n: float(v) if n in ("threshold", "recall") else v for n, v in defaults.items()} == {
        name: getattr(DEFAULTS, name) for name in SETTINGS
    }


def test_the_arguments_of_python_are_the_settings() -> None:
    assert tuple(Settings.__annotations__) == SETTINGS


def test_an_unknown_name_is_told_where_the_names_stand(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('news')")
    with pytest.raises(pg.UndefinedObject, match='corpus "newz" does not exist') as error:
        connection.execute("SELECT textsim.matches('newz', 'a text')")
    assert error.value.diag.message_hint == "SELECT name FROM textsim.corpus lists the corpora."
    connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
    with pytest.raises(pg.Error, match='column "bdy" does not exist'):
        connection.execute("SELECT textsim.attach('news', 'article', 'id', 'bdy')")
