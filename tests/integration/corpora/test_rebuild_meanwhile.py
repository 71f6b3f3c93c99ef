"""Readers, writers and workers go on while a corpus is rebuilt."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.rebuilds import TEXTS
from textsim_db.db import stored_corpus
from textsim_db.errors import CorpusBusy, CorpusChanged
from textsim_db.sync.pieces import Piece
from textsim_db.write import rebuild


def test_a_second_rebuild_of_a_corpus_is_refused(db: ts.Database) -> None:
    corpus, other = db.create_corpus("c"), db.create_corpus("other")
    corpus.add_many(islice(TEXTS.items(), 20))
    begun, ended = threading.Event(), threading.Event()

    def hold(done: int, documents: int) -> None:
        begun.set()
        ended.wait()

    first = db.corpus("c")
    thread = threading.Thread(target=first.rebuild, kwargs={"seed": 3, "progress": hold})
    thread.start()
    try:
        begun.wait()
        with pytest.raises(CorpusBusy, match='another session rebuilds corpus "c"'):
            corpus.rebuild(seed=4)
        with psycopg.connect(db.url) as connection, pytest.raises(pg.ObjectInUse):
            connection.execute("SELECT textsim.track('c')")
        assert other.rebuild(seed=4)
    finally:
        ended.set()
        thread.join()
    assert db.corpus("c").config.seed == 3
    assert corpus.rebuild(seed=4)
    assert stored_corpus.names(db.engine) == ["c", "other"]


def test_a_worker_that_meets_a_rebuild_logs_no_error(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The rebuild happens after the worker has claimed changes, and before it reads their rows."""
    corpus = db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body")
        seeds: list[int] = []
        cut = Piece.cut

        def rebuilt_first(piece: Piece) -> Iterator[Piece]:
            while seeds:
                db.corpus("c").rebuild(seed=seeds.pop())
            yield from cut(piece)

        monkeypatch.setattr(Piece, "cut", rebuilt_first)
        for seed, write in enumerate(
            (
                "INSERT INTO t VALUES (1, 'the words of a row')",
                "SELECT textsim.add('c', 'by hand', 'words that wait for their ids')",
            ),
            2,
        ):
            seeds.append(seed)
            connection.execute(write.encode())
            db.worker().run(until_idle=True)
            assert not seeds
    assert corpus.status()[:4] == (2, 0, None, 0)
    assert [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.parametrize("seed", [None, 3])
def test_a_writer_is_refused_if_another_thread_has_noticed_the_rebuild(
    db: ts.Database, seed: int | None
) -> None:
    corpus = db.create_corpus("c")
    corpus.add("a", "some words of a text")

    def documents() -> Iterator[tuple[str, str]]:
        yield "b", "the words of a writer with the old settings"
        other = db.corpus("c")
        assert other.rebuild() if seed is None else other.rebuild(seed=seed)
        assert [match.key for match in corpus.query("some words of a text")] == ["a"]

    how = "" if seed is None else " with other settings"
    with pytest.raises(CorpusChanged, match=f"was rebuilt{how} meanwhile"):
        corpus.add_many(documents())
    corpus.add("b", "the words of a writer with the old settings")
    assert corpus.check() == []


@pytest.mark.more
def test_a_replaced_corpus_is_dropped_later_if_it_is_being_read(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rebuild, "DROP_PATIENCE", "100ms")
    corpus = db.create_corpus("c")
    corpus.add_many(TEXTS.items())
    with psycopg.connect(db.url) as reader:
        reader.execute("SELECT FROM textsim.document_1")  # a lock, but not of the band rows
        assert corpus.rebuild(seed=3)
        assert "the next rebuild drops the replaced corpus" in caplog.text
        assert (corpus.config.seed, db.corpus("c").config.seed) == (3, 3)
    assert corpus.rebuild(seed=4)
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT name FROM textsim.corpus").all() == [("c",)]


def test_a_snapshot_from_before_a_rebuild_gets_a_serialization_failure(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error's code asks the client to repeat the transaction."""
    monkeypatch.setattr(rebuild, "OLDER_SECONDS", 0.1)
    corpus = db.create_corpus("c")
    corpus.add_many(islice(TEXTS.items(), 20))
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body", "inline")
    for number, statement in enumerate(
        (
            "SELECT key, similarity FROM textsim.matches('c', 'some words of a text')",
            "SELECT textsim.add('c', 'a', 'some words of a text')",
            "SELECT textsim.remove('c', 'a')",
            "SELECT * FROM textsim.pairs('c')",
            "INSERT INTO t VALUES ('a', 'some words of a text')",
        )
    ):
        with psycopg.connect(db.url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("SELECT FROM textsim.corpus")
            assert corpus.rebuild(seed=100 + number)
            with pytest.raises(pg.SerializationFailure, match="after this transaction began"):
                connection.execute(statement.encode())
            connection.rollback()
            connection.execute(statement.encode())
    assert corpus.check() == []
