"""A corpus of an older recipe is refused by name with the command that rebuilds it."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest

import textsim_db as ts
from tests.support.commands import Textsim, rows
from tests.support.connections import Connection
from textsim_db.errors import RecipeError
from textsim_db.settings.corpus_settings import GUARD_LISTS, RECIPE

TEXT = "one two three four five six seven"
OLDER = f"""
UPDATE textsim.corpus SET recipe = {RECIPE - 1}, golden_buckets = golden_buckets || 1
WHERE name IN ('news', 'unique');
UPDATE textsim.corpus c SET created_with = textsim._settings(c);
-- As if it had left the letters as they were.
UPDATE textsim.word_1 SET word = 'TWO', hash = hashtextextended('TWO' COLLATE "C", 0) WHERE word = 'two';
"""

MEMBERS = """
SELECT d.key, m.cluster FROM textsim.member_1 m JOIN textsim.document_1 d ON d.id = m.document_id
"""


@pytest.fixture
def older(db: ts.Database, connection: Connection) -> ts.Database:
    """A corpus and a unique corpus of an older recipe, with tables; and a corpus of this recipe."""
    news, unique, other = (
        db.create_corpus(name, shingle="word:2", is_unique=name == "unique")
        for name in ("news", "unique", "other")
    )
    for table in ("queued", "inline", "kept_apart"):
        connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
    news.attach("queued", "id", "body")
    other.attach("queued", "id", "body")
    news.attach("inline", "id", "body", "inline")
    unique.attach("kept_apart", "id", "body")
    for table, text in (("queued", TEXT), ("inline", f"{TEXT} eight"), ("kept_apart", TEXT)):
        connection.execute(f"INSERT INTO {table} VALUES ('{table}', '{text}')".encode())
    news.add("free", TEXT)
    news.judge("free", "inline", "different")
    news.track()
    db.worker().run(until_idle=True)
    news.update_clusters()
    connection.execute(OLDER.encode())
    return db


def test_an_older_recipe_is_refused_with_the_command(
    older: ts.Database, connection: Connection, textsim: Textsim
) -> None:
    command = "textsim rebuild news"
    for method in (older.corpus, partial(older.corpus, on_server=True)):
        with pytest.raises(RecipeError, match=f"recipe {RECIPE - 1}; .*what to do: {command}"):
            method("news")
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        connection.execute("SELECT * FROM textsim.matches('news', %s)", [TEXT])
    assert refused.value.diag.message_hint == f"Run: {command}"
    assert command in textsim("corpus", "list").stderr
    problems = rows(textsim("check", "--format", "jsonl", status=1))
    assert [(row["corpus"], row["kind"], row["remedy"]) for row in problems] == [
        ("news", "recipe", command),
        ("unique", "recipe", "textsim rebuild unique"),
    ]


def test_a_rebuild_brings_a_corpus_to_this_recipe_while_it_is_in_use(
    older: ts.Database, connection: Connection, textsim: Textsim
) -> None:
    members = dict(connection.execute(MEMBERS).fetchall())
    assert members
    for table in ("queued", "inline"):
        connection.execute(f"INSERT INTO {table} VALUES ('{table} 2', 'more of {TEXT}')".encode())
        connection.execute(
            f"UPDATE {table} SET body = body || ' nine' WHERE id = %s".encode(), [table]
        )
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connection.execute("INSERT INTO kept_apart VALUES ('twin', %s)", [TEXT])
    # The other corpora go on.
    older.worker().run(until_idle=True)
    assert [match.key for match in older.corpus("other").query(f"{TEXT} nine")] == ["queued"]

    def write(done: int, total: int) -> None:
        connection.execute("INSERT INTO inline VALUES ('meanwhile', %s)", [TEXT])

    assert older.corpus("news", to_rebuild=True).rebuild(progress=write)
    textsim("rebuild", "unique")
    older.worker().run(until_idle=True)
    news = older.corpus("news")
    news.update_clusters()
    assert news.check() == []
    found = {match.key for match in news.query(TEXT, 0.9)}
    assert found == {"free", "meanwhile"}
    assert {match.key for match in news.query(f"more of {TEXT}", 1)} == {"queued 2", "inline 2"}
    assert news.normal_form("free") == TEXT
    assert [tuple(each[:2]) for each in news.judgements()] == [("free", "inline")]
    clusters = {member.key: member.cluster for member in news.members()}
    assert clusters.items() & members.items()
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO kept_apart VALUES ('twin', %s)", [TEXT])
    assert older.corpus("unique").check() == []
    assert "textsim rebuild" not in textsim("check").output


def test_guards_by_other_lists_are_refused_until_a_rebuild(
    db: ts.Database, connection: Connection, textsim: Textsim
) -> None:
    """Stored guards decide merges, so they must be those that a new text gets."""
    guarded = db.create_corpus("guarded", shingle="word:2", guards="negations", threshold=0.5)
    other = db.create_corpus("other", shingle="word:2", guards="words", guard_words=["x"])
    connection.execute("CREATE TABLE inline (id text PRIMARY KEY, body text)")
    guarded.attach("inline", "id", "body", "inline")
    other.add("a", TEXT)
    connection.execute(f"INSERT INTO inline VALUES ('a', '{TEXT}'), ('b', '{TEXT} not')".encode())
    db.worker().run(until_idle=True)
    # As if an older version had not known the word.
    connection.execute("UPDATE textsim.document_1 SET guard = 0 WHERE key = 'b'")

    def pretend(version: int) -> None:
        connection.execute(
            "UPDATE textsim.corpus SET created_with = created_with || "
            "jsonb_build_object('guard_lists', %s::integer)",
            [version],
        )

    command = "textsim rebuild guarded"
    for version, remedy in ((GUARD_LISTS + 1, "use a newer version"), (GUARD_LISTS - 1, command)):
        pretend(version)
        message = f"version {version} of the lists of guards; .*what to do: {remedy}"
        for method in (db.corpus, partial(db.corpus, on_server=True)):
            with pytest.raises(RecipeError, match=message):
                method("guarded")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="lists of guards") as refused:
            connection.execute("SELECT * FROM textsim.matches('guarded', %s)", [TEXT])
        assert remedy in str(refused.value.diag.message_hint).lower()
        problems = rows(textsim("check", "--format", "jsonl", status=1))
        assert [row["kind"] for row in problems] == ["recipe"]
        assert remedy in problems[0]["remedy"].lower()
        # A corpus whose guards depend on no list of ours goes on.
        assert [match.key for match in db.corpus("other").query(TEXT)] == ["a"]
    connection.execute(f"INSERT INTO inline VALUES ('c', '{TEXT} nothing')".encode())
    assert "c" not in dict(
        connection.execute("SELECT key, guard FROM textsim.document_1").fetchall()
    )
    textsim("rebuild", "guarded")
    db.worker().run(until_idle=True)
    rebuilt = db.corpus("guarded")
    assert rebuilt.check() == []
    differ = {match.key: match.differs for match in rebuilt.query(TEXT)}
    assert differ == {"a": (), "b": ("negations",), "c": ("negations",)}
    assert "textsim rebuild" not in textsim("check").output
