"""A rebuild and readers, writers or attached tables: which session waits, and the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Isolation
from tests.support.interleaving import ADD, LEVELS, REMOVE, Scene
from tests.support.sources import expected_forms, make_table


@LEVELS
def test_a_rebuild_waits_for_an_add(scene: Scene, level: Isolation) -> None:
    scene.corpus.add("z", "not touched")
    a, b = scene.client("a", level), scene.client("b")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").rebuild(shingle="word:1"))
    a.commit()
    assert b.end() is True
    rebuilt = scene.db.corpus("c")
    assert str(rebuilt.config.shingle) == "word:1"
    assert scene.forms() == {"k": "from sql", "z": "not touched"}
    scene.settle(rebuilt)


def test_lists_wait_for_the_end_of_a_rebuild_and_read_the_new_corpus(scene: Scene) -> None:
    """Each list has read the old corpus's number; when it gets the locks, those tables are dropped."""
    scene.corpus.add_many([("x", "one two three four"), ("y", "one two three four")])
    new = scene.db.create_corpus("new", seed=2)
    new.add_many([("x", "one two three four"), ("y", "one two three four")])
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b")
    lists = [scene.client(f"list {number}") for number in range(4)]
    corpora = [client.db.corpus("c") for client in lists]
    gate.does(gate.sql("SELECT textsim._replace_corpus(1, 2)"))
    gate.does(gate.sql("DELETE FROM textsim.corpus WHERE id = 1"))
    gate.does(gate.sql("SELECT textsim._drop_relations(1)"))
    a.waits(a.sql("SELECT a, b FROM textsim.pairs('c')"))
    b.waits(b.sql("SELECT a, b FROM textsim.candidate_pairs('c')"))
    lists[0].waits(lambda: [pair[:2] for pair in corpora[0].pairs()])
    lists[1].waits(lambda: [cluster.keys for cluster in corpora[1].clusters()])
    lists[2].waits(lambda: [(d.kept, d.key) for d in corpora[2].duplicates()])
    lists[3].waits(corpora[3].check)
    gate.commit()
    for client in (a, b, *lists[:3]):
        assert client.end() == [("x", "y")]
    assert lists[3].end() == []


@LEVELS
def test_writers_wait_for_a_rebuild_and_are_refused(scene: Scene, level: Isolation) -> None:
    """The gate locks the row of the corpus, so the rebuild waits just before it takes the name."""
    scene.corpus.add("z", "not touched")
    gate, rebuilder, a, b, c = (
        scene.client("gate"),
        scene.client("rebuilder"),
        scene.client("a", level),
        scene.client("b"),
        scene.client("c"),
    )
    old = b.db.corpus("c")
    gate.does(gate.sql("SELECT FROM textsim.corpus WHERE name = 'c' FOR SHARE"))
    rebuilder.waits(lambda: rebuilder.db.corpus("c").rebuild(shingle="word:1"))
    a.waits(a.sql(ADD, "a", "from SQL"))
    b.waits(lambda: old.add("b", "from Python"))
    c.waits(c.sql(REMOVE, "z"))
    gate.commit()
    rebuilder.end()
    for client in (a, c):
        with pytest.raises(psycopg.Error, match=r"rebuilt while this transaction wrote to it"):
            client.end()
        client.rollback()
    with pytest.raises(ts.CorpusChanged):
        b.end()
    rebuilt = scene.db.corpus("c")
    assert scene.forms() == {"z": "not touched"}
    a.does(a.sql(ADD, "a", "from SQL"))
    a.commit()
    b.does(lambda: old.add("b", "from Python"))
    c.does(c.sql(REMOVE, "z"))
    c.commit()
    assert scene.forms() == {"a": "from sql", "b": "from python"}
    scene.settle(rebuilt)


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_a_row_that_changes_during_a_rebuild_is_indexed(scene: Scene, mode: str) -> None:
    make_table(scene.connection, 3)
    scene.corpus.attach("t", "id", "body", mode)
    a, rebuilder, worker = scene.client("a"), scene.client("rebuilder"), scene.client("worker")
    a.does(a.sql("UPDATE t SET body = 'changed' WHERE id = '2'"))
    step: Callable[[], Any] = lambda: rebuilder.db.corpus("c").rebuild(shingle="word:1")  # noqa: E731
    if mode == "inline":
        rebuilder.waits(step)
    else:
        rebuilder.does(step)
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    a.commit()
    if mode == "inline":
        rebuilder.end()
    rebuilt = scene.db.corpus("c")
    assert str(rebuilt.config.shingle) == "word:1"
    scene.settle(rebuilt)
    assert scene.forms() == expected_forms(scene.connection, "t")
