"""Adding, replacing, removing and dropping at once: which session waits, and the result."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Isolation
from tests.support.interleaving import ADD, LEVELS, REMOVE, RR, Scene, add_many_step, report_counts

# Two writers of one key.


@LEVELS
@pytest.mark.parametrize(("ends", "counts"), [("commit", (0, 1, 0)), ("rollback", (1, 0, 0))])
def test_add_many_waits_for_an_add(
    scene: Scene, level: Isolation, ends: str, counts: tuple[int, int, int]
) -> None:
    a, b = scene.client("a", level), scene.client("b")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(add_many_step(b, ("k", "from Python")))
    getattr(a, ends)()
    assert report_counts(b.end()) == counts
    assert scene.forms() == {"k": "from python"}
    scene.settle()


@LEVELS
def test_add_waits_for_add_many(scene: Scene, level: Isolation) -> None:
    """The gate locks the band rows, so add_many waits after writing its documents."""
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b", level)
    gate.does(gate.sql("LOCK TABLE textsim.band_1 IN SHARE MODE"))
    a.waits(add_many_step(a, ("k", "from Python")))
    b.waits(b.sql(ADD, "k", "from SQL"))
    gate.commit()
    assert report_counts(a.end()) == (1, 0, 0)
    if level == RR:
        with pytest.raises(psycopg.errors.SerializationFailure):
            b.end()
        b.rollback()
        assert scene.forms() == {"k": "from python"}
        b.does(b.sql(ADD, "k", "from SQL"))
    else:
        b.end()
    b.commit()
    assert scene.forms() == {"k": "from sql"}
    scene.settle()


def test_two_loads_of_the_same_keys_follow_each_other(scene: Scene) -> None:
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b")
    gate.does(gate.sql("LOCK TABLE textsim.band_1 IN SHARE MODE"))
    a.waits(add_many_step(a, ("k", "one"), ("l", "one")))
    b.waits(add_many_step(b, ("l", "two"), ("k", "two")))
    gate.commit()
    assert report_counts(a.end()) == (2, 0, 0)
    assert report_counts(b.end()) == (0, 2, 0)
    assert scene.forms() == {"k": "two", "l": "two"}
    scene.settle()


# New words.


@LEVELS
def test_adds_by_sql_with_the_same_new_words_do_not_wait(scene: Scene, level: Isolation) -> None:
    a, b, c = scene.client("a", level), scene.client("b", level), scene.client("c")
    a.does(a.sql(ADD, "a", "words never seen before"))
    b.does(b.sql(ADD, "b", "words never seen before"))
    assert report_counts(c.does(add_many_step(c, ("c", "words never seen before")))) == (1, 0, 0)
    b.commit()
    a.commit()
    scene.settle()
    assert {match.key for match in scene.corpus.query("words never seen before", 1.0)} == {
        "a",
        "b",
        "c",
    }
    assert scene.connection.execute(
        "SELECT count(*), count(DISTINCT word) FROM textsim.word"
    ).fetchall() == [(4, 4)]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_loads_wait_for_a_word_that_another_process_adds(scene: Scene, ends: str) -> None:
    """The other process may commit the word, or die before it does."""
    a, b, c = scene.client("a"), scene.client("b"), scene.client("c")
    a.does(
        a.sql("INSERT INTO textsim.word (hash, word) VALUES (hashtextextended('new', 0), 'new')")
    )
    b.waits(add_many_step(b, ("b", "new words")))
    c.waits(add_many_step(c, ("c", "new words")))
    getattr(a, ends)()
    assert report_counts(b.end()) == report_counts(c.end()) == (1, 0, 0)
    assert scene.connection.execute("SELECT word FROM textsim.word ORDER BY word").fetchall() == [
        ("new",),
        ("words",),
    ]
    assert {match.key for match in scene.corpus.query("new words", 1.0)} == {"b", "c"}
    scene.settle()


# Adding and removing.


@LEVELS
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_remove_and_replace_wait_for_each_other(scene: Scene, level: Isolation, ends: str) -> None:
    a, b, c = scene.client("a", level), scene.client("b"), scene.client("c")
    scene.corpus.add("k", "as it was")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").remove(["k"]))
    getattr(a, ends)()
    assert b.end() == 1
    assert scene.forms() == {}
    scene.corpus.add("k", "as it was")
    a.does(a.sql(REMOVE, "k"))
    b.waits(add_many_step(b, ("k", "from Python")))
    getattr(a, ends)()
    assert report_counts(b.end()) == ((1, 0, 0) if ends == "commit" else (0, 1, 0))
    assert scene.forms() == {"k": "from python"}
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").remove(["k"]))
    c.waits(add_many_step(c, ("k", "again from Python")))
    getattr(a, ends)()
    assert b.end() == 1
    assert sum(report_counts(c.end())) == 1
    assert scene.forms() in ({"k": "again from python"}, {})
    scene.settle()


# Dropping the corpus.


@LEVELS
def test_drop_waits_for_add(scene: Scene, level: Isolation) -> None:
    other = scene.db.create_corpus("other")
    a, b, c = scene.client("a", level), scene.client("b"), scene.client("c")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.drop_corpus("c"))
    # Later writers of the corpus wait for the drop; writers of other corpora do not wait.
    c.waits(add_many_step(c, ("l", "from Python")))
    scene.connection.execute("SELECT textsim.add('other', 'k', 'in another corpus')")
    a.commit()
    # The drop waits for a writer that has written documents already.
    b.end()
    with suppress(ts.CorpusNotFound):
        assert report_counts(c.end()) == (1, 0, 0)
    assert scene.db.corpora() == ["other"]
    assert (
        scene.connection.execute("SELECT FROM textsim.pending WHERE corpus_id = 1").fetchall() == []
    )
    scene.settle(other)


@LEVELS
def test_add_waits_for_drop(scene: Scene, level: Isolation) -> None:
    a, b = scene.client("a"), scene.client("b", level)
    a.does(a.sql("SELECT textsim.drop_corpus('c')"))
    b.waits(b.sql(ADD, "k", "from SQL"))
    a.rollback()
    b.end()
    b.commit()
    scene.settle()
    a.does(a.sql("SELECT textsim.drop_corpus('c')"))
    b.waits(b.sql(ADD, "k", "again"))
    a.commit()
    with pytest.raises(psycopg.errors.UndefinedTable):
        b.end()
    b.rollback()
    with pytest.raises(psycopg.errors.UndefinedObject, match='corpus "c" does not exist'):
        b.does(b.sql(ADD, "k", "again"))
    assert scene.connection.execute("SELECT FROM textsim.pending").fetchall() == []
