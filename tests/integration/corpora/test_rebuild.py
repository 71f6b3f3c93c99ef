"""Rebuilds: their result, the views that follow it, and the state after a rebuild that fails."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.proxy import cut_commit, open_proxy
from tests.support.rebuilds import TEXTS, stored_rows
from tests.support.sampling import sample
from textsim_db.db import stored_corpus
from textsim_db.results import ChangeReport
from textsim_db.settings.named_values import Mode, ModeName
from textsim_db.sync import read_source
from textsim_db.write import copy_corpus
from textsim_db.write.temporary_corpora import PREFIX


@pytest.mark.parametrize(
    "settings",
    sample(
        [
            {"shingle": "char:5"},
            {"bands": 10, "rows": 3},
            {"threshold": 0.5, "num_hashes": 64},
            {"passages": 6},
            {"seed": 7},
        ],
        2,
    ),
)
def test_a_rebuilt_corpus_equals_a_new_one(db: ts.Database, settings: dict[str, Any]) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many([*TEXTS.items(), ("empty", ""), ("short", "one"), ("long", "a " * 5000)])
    progress: list[tuple[int, int]] = []
    assert corpus.rebuild(**settings, progress=lambda *done: progress.append(done))
    assert progress[-1] == (303, 303)
    fresh = db.create_corpus("fresh", **settings)
    fresh.add_many([*TEXTS.items(), ("empty", ""), ("short", "one"), ("long", "a " * 5000)])
    assert corpus.config == fresh.config == db.corpus("c").config
    assert stored_rows(db, "c") == stored_rows(db, "fresh")
    assert corpus.check() == []
    assert sorted(corpus.pairs(0.5)) == sorted(fresh.pairs(0.5))
    assert stored_corpus.names(db.engine) == ["c", "fresh"]
    assert not corpus.rebuild(**settings)


def numbered_keys(db: ts.Database, name: str) -> list[tuple[int, str]]:
    corpus_id = stored_corpus.load(db.engine, name).id
    with db.engine.connect() as connection:
        statement = f"SELECT id, key FROM textsim.document_{corpus_id} ORDER BY id"
        return [(id_, key) for id_, key in connection.exec_driver_sql(statement)]


def test_a_document_that_changes_during_a_rebuild_keeps_its_number(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_corpus, "BATCH_DOCUMENTS", 100)
    monkeypatch.setattr("textsim_db.write.rebuild.FEW_CHANGES", 1)
    corpus, other = db.create_corpus("c", passages=4), db.corpus("c")
    corpus.add_many(TEXTS.items())
    keys = [key for _, key in numbered_keys(db, "c")]

    def change(done: int, documents: int) -> None:
        if done == 100:
            other.remove([keys[5], keys[250]])
            other.add_many([(keys[7], "changed words"), (keys[260], "changed"), ("new", "a text")])
            other.add(keys[5], "removed and added again")

    assert corpus.rebuild(seed=7, progress=change)
    numbered = numbered_keys(db, "c")
    expected = [*(key for i, key in enumerate(keys) if i not in (5, 250)), "new", keys[5]]
    assert [key for _, key in numbered] == expected
    assert (8, keys[7]) in numbered
    assert corpus.check() == []
    texts = TEXTS | {
        keys[7]: "changed words",
        keys[260]: "changed",
        "new": "a text",
        keys[5]: "removed and added again",
    }
    del texts[keys[250]]
    fresh = db.create_corpus("fresh", seed=7, passages=4)
    fresh.add_many(texts.items())
    assert stored_rows(db, "c") == stored_rows(db, "fresh")


def test_tables_stay_attached_to_a_rebuilt_corpus(db: ts.Database) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        for mode in ("queue", "inline"):
            connection.execute(f"CREATE TABLE {mode} (id int PRIMARY KEY, body text)")
        corpus = db.create_corpus("c")
        for mode in Mode:
            corpus.attach(mode, "id", "body", mode)
        connection.execute("INSERT INTO queue VALUES (1, 'the words of the queue')")
        db.worker().run(until_idle=True)
        connection.execute("INSERT INTO queue VALUES (2, 'other words of the queue')")
        connection.execute("INSERT INTO inline VALUES (3, 'the words that wait for numbers')")
        connection.execute("SELECT textsim.add('c', 'by hand', 'words that were added by hand')")
        assert corpus.rebuild(shingle="word:2")
        assert corpus.check() == []
        assert [match.key for match in corpus.query("the words that wait for numbers")] == ["3"]
        connection.execute("INSERT INTO queue VALUES (4, 'the words of another row')")
        connection.execute("INSERT INTO inline VALUES (5, 'the words of the last row')")
        assert [match.key for match in corpus.query("the words of the last row")] == ["5"]
        assert corpus.status()[:2] == (4, 2)
        db.worker().run(until_idle=True)
        assert corpus.status()[:4] == (6, 0, None, 0)
        assert list(corpus.drift()) == []
        assert corpus.check() == []
        connection.execute("DELETE FROM inline")
        assert len(corpus) == 4
    corpus.detach("queue")
    corpus.detach("inline")


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("ending", ["drop", "detach", "detach and drop"])
def test_a_corpus_of_dropped_or_detached_tables_can_be_rebuilt(
    db: ts.Database, mode: ModeName, ending: str
) -> None:
    corpus = db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        connection.execute("INSERT INTO t VALUES (1, 'the words of the table')")
        corpus.attach("t", "id", "body", mode)
        if "detach" in ending:
            corpus.detach("t")
        if "drop" in ending:
            connection.execute("DROP TABLE t")
        assert corpus.rebuild(seed=3)
        assert [problem.kind for problem in corpus.check()] == (
            ["attached table"] if ending == "drop" else []
        )
        corpus.reconcile()
        assert (len(corpus), corpus.check()) == (0 if ending == "drop" else 1, [])
        if ending == "detach":
            corpus.attach("t", "id", "body", mode)
            connection.execute("DELETE FROM t")
            db.worker().run(until_idle=True)
            assert len(corpus) == 0


def test_a_source_has_no_fault_while_its_corpus_is_replaced(db: ts.Database) -> None:
    """The corpus's number comes from an old snapshot, and its table is looked up later."""
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        db.create_corpus("c").attach("t", "id", "body")
        connection.execute("DROP TABLE textsim.document_1")
    assert [source.fault for source in read_source.sources(db.engine)] == [None]


def test_an_open_corpus_follows_a_rebuild_by_another_client(db: ts.Database) -> None:
    """A call with the old number would find nothing, and raise no error."""
    stale = [db.create_corpus("c")]
    with psycopg.connect(db.url, autocommit=True) as connection:
        for table in ("t", "u"):
            connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
        stale[0].attach("t", "id", "body")
        refused = "k" * 1001
        connection.execute("INSERT INTO t VALUES (%s, 'x'), ('2', 'a row of it')", [refused])
        db.worker().run(until_idle=True)
        stale += [db.corpus("c") for _ in range(6)]
        connection.execute("ALTER TABLE t DISABLE TRIGGER USER")
        connection.execute("INSERT INTO t VALUES ('3', 'a row that the triggers have missed')")
        assert db.corpus("c").rebuild(seed=2)
        assert [failure.key for failure in stale[0].pending()] == [refused]
        assert len(stale[1].pending(retry=True)) == 1
        assert ("3", "missing") in list(stale[2].drift())
        assert stale[3].reconcile().added == 1
        assert stale[4].attach("u", "id", "body") == ChangeReport()
        assert stale[5].status().indexed == 2
        stale[6].detach("u")
    assert [corpus.config.seed for corpus in stale] == [2] * 7


def test_an_interrupted_rebuild_changes_nothing(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(TEXTS.items())
    before = stored_rows(db, "c")

    def fail(done: int, documents: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.rebuild(seed=3, progress=fail)
    assert stored_corpus.names(db.engine) == ["c"]
    assert stored_rows(db, "c") == before
    corpus.add("more", "the corpus is as it was before")
    # A process that died during a rebuild leaves such a corpus.
    stored_corpus.create(db.engine, PREFIX + "0123456789abcdef", corpus.config)
    with pytest.raises(ts.ConfigurationError, match="are reserved for rebuilds"):
        db.create_corpus(PREFIX + "data")
    assert list(db.corpora()) == ["c"]
    assert corpus.rebuild(seed=3)
    assert stored_corpus.names(db.engine) == ["c"]


@pytest.mark.more
@pytest.mark.parametrize("when", sample(["after", "before"], 2))
@pytest.mark.parametrize("attached", sample([True, False], 2))
def test_a_lost_commit_leaves_the_old_or_the_new_corpus(
    db: ts.Database, rng: random.Random, when: str, attached: bool
) -> None:
    """The test loses each COMMIT of a rebuild in turn; one complete corpus remains."""
    db.create_corpus("c").add_many(TEXTS.items())
    if attached:
        with psycopg.connect(db.url) as connection:
            connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
        db.corpus("c").attach("t", "id", "body")
    with open_proxy(db.url) as proxy, ts.connect(proxy.url) as proxied_db:
        proxy.commits = 0
        assert proxied_db.corpus("c").rebuild(seed=1000)
        commits = proxy.commits
        for number in range(1, commits + 1):
            corpus = proxied_db.corpus("c")
            before = corpus.config.seed
            proxy.cuts, proxy.cut = 0, cut_commit(number, when)
            try:
                corpus.rebuild(seed=number)
            except ts.DatabaseUnavailable:
                assert db.corpus("c").config.seed == before
            else:
                assert db.corpus("c").config.seed == number
            assert proxy.cuts == 1
            corpus = db.corpus("c")
            assert (len(corpus), corpus.check()) == (len(TEXTS), [])
    assert db.corpus("c").rebuild(seed=rng.randrange(2000, 3000))
    with db.engine.connect() as direct:
        assert direct.exec_driver_sql("SELECT name FROM textsim.corpus").all() == [("c",)]


def test_a_rebuild_copies_long_documents_in_small_parts(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_corpus, "BYTES_AT_ONCE", 50_000)
    corpus = db.create_corpus("c", num_hashes=16)
    long_documents = [(f"long {i}", " ".join(f"w{i}x{j}" for j in range(5_000))) for i in range(5)]
    short_documents = [(f"short {i}", f"some words of text {i}") for i in range(20)]
    corpus.add_many(long_documents + short_documents)
    progress: list[int] = []
    assert corpus.rebuild(seed=3, progress=lambda copied, documents: progress.append(copied))
    parts = np.diff([0, *progress])
    assert parts.sum() == 25
    assert len(parts) >= 3
    assert (len(corpus), corpus.check()) == (25, [])


def test_a_view_of_the_tables_of_a_corpus_keeps_them(db: ts.Database) -> None:
    corpus = db.create_corpus("c", threshold=0.5)
    with psycopg.connect(db.url, autocommit=True) as connection:
        corpus_id = connection.execute("SELECT id FROM textsim.corpus").fetchone()
        assert corpus_id is not None
        for kind in ("", "MATERIALIZED "):
            connection.execute(
                f"CREATE {kind}VIEW own AS SELECT key FROM textsim.document_{corpus_id[0]}".encode()
            )
            refused = (
                f"view public.own reads the tables of the corpus; .* DROP {kind}VIEW public.own"
            )
            with pytest.raises(pg.DependentObjectsStillExist, match=refused):
                connection.execute("SELECT textsim.drop_corpus('c')")
            for call in (lambda: db.drop_corpus("c"), lambda: corpus.rebuild(seed=9)):
                with pytest.raises(ts.ConfigurationError, match=refused):
                    call()
            connection.execute(f"DROP {kind}VIEW own".encode())
        assert stored_corpus.names(db.engine) == ["c"]
    assert corpus.rebuild(seed=9)
    db.drop_corpus(corpus.name)
