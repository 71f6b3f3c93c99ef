"""Hints of SQL's errors name the corpus or column that is most like a misspelt one."""

from __future__ import annotations

import pytest
from psycopg import errors as pg

from tests.support.connections import Connection, value

pytestmark = pytest.mark.both_servers


def test_the_nearest_name_is_suggested(shared_connection: Connection) -> None:
    for name, expected in (
        ("newz", "news"),
        ("nws", "news"),
        ("NEWS", "news"),
        ("recipe_texts", "recipes_texts"),
        ("blog", None),
        ("", None),
    ):
        names = ["news", "recipes_texts", "漢字"]
        nearest = value(shared_connection, "SELECT textsim._most_alike_name(%s, %s)", [name, names])
        assert nearest == expected, name


def test_the_hint_for_an_unknown_name_gives_the_nearest_one(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('news')")
    for name, hint in (
        ("newz", 'Did you mean "news"?'),
        ("blog", "SELECT name FROM textsim.corpus lists the corpora."),
    ):
        with pytest.raises(pg.UndefinedObject, match=f'corpus "{name}" does not exist') as error:
            connection.execute("SELECT textsim.matches(%s, 'a text')", [name])
        assert error.value.diag.message_hint == hint
    connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
    with pytest.raises(pg.Error, match='the table has "id", "body"; did you mean "body"'):
        connection.execute("SELECT textsim.attach('news', 'article', 'id', 'bdy')")
