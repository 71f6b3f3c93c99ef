"""Hints of SQL's errors name the corpus or column that is most like a misspelt one."""

from __future__ import annotations

import pytest
from psycopg import errors as pg

from tests.support.connections import Connection


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("newz", "news"),
        ("nws", "news"),
        ("NEWS", "news"),
        ("recipe_texts", "recipes_texts"),
        ("blog", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_suggested(
    connection: Connection, name: str, expected: str | None
) -> None:
    names = ["news", "recipes_texts", "漢字"]
    row = connection.execute("SELECT textsim._nearest(%s, %s)", [name, names]).fetchone()
    assert row == (expected,)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("newz", 'Did you mean "news"?'),
        ("blog", "SELECT name FROM textsim.corpus lists the corpora."),
    ],
)
def test_the_hint_for_an_unknown_corpus_names_the_nearest_one(
    connection: Connection, name: str, hint: str
) -> None:
    connection.execute("SELECT textsim.create_corpus('news')")
    with pytest.raises(pg.UndefinedObject, match=f'corpus "{name}" does not exist') as error:
        connection.execute("SELECT textsim.matches(%s, 'a text')", [name])
    assert error.value.diag.message_hint == hint


def test_the_hint_for_an_unknown_column_names_the_nearest_one(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('news')")
    connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
    with pytest.raises(pg.Error, match='the table has "id", "body"; did you mean "body"'):
        connection.execute("SELECT textsim.attach('news', 'article', 'id', 'bdy')")
