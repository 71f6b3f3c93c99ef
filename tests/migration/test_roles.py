"""The rights of readers and writers of a corpus.

The schema belongs to a role without superuser rights, as on managed services.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.roles import FOX, Stage


def test_a_writer_adds_and_removes_documents(stage: Stage) -> None:
    with stage.connect(stage.writer) as db:
        corpus = db.corpus("news")
        corpus.add("d", FOX)
        assert corpus.add_many([("e", FOX + " again"), ("d", FOX + " today")]).replaced == 1
        assert corpus.remove(["a"]) == 1
        assert db.worker().run(until_idle=True).written == 0
    assert stage.run(stage.writer, "SELECT textsim.add('news', 'f', %s)", values=[FOX]) == [(True,)]
    assert stage.run(stage.writer, "SELECT textsim.remove('news', 'b')") == [(True,)]
    stage.work(stage.writer)
    assert stage.similar_keys() == ["d", "e", "f"]
    with stage.connect(stage.owner) as db:
        db.create_corpus("later")
        assert db.corpus("news").check() == []
    with stage.connect(stage.writer) as db:
        assert db.corpus("later").add("a", FOX).added == 1


_LOG_WORDS = (
    "INSERT INTO textsim.pending (kind, corpus_id, keys, tries) VALUES ('words', {}, '{}', {})"
)


REFUSED_ROWS = [
    ("INSERT INTO textsim.pending (kind, corpus_id) VALUES ('words', 1)", "pending_check"),
    (_LOG_WORDS.format(1, "{a,NULL}", 0), "keys_check"),
    (_LOG_WORDS.format(1, "{{a},{b}}", 0), "keys_check"),
    (_LOG_WORDS.format(1, "{{a,NULL}}", 0), "keys_check"),
    (_LOG_WORDS.format(-1, "{a}", 0), "pending_check"),
    (_LOG_WORDS.format(1, "{a}", 2147483647), "pending_check"),
    ("UPDATE textsim.pending SET keys = NULL", "pending_check"),
    ("UPDATE textsim.pending SET tries = -5", "pending_check"),
    ("UPDATE textsim.pending SET kind = 'change'", "pending_check"),
    ("UPDATE textsim.pending SET kind = 'compare'", "pending_check"),
    ("UPDATE textsim.pending SET kind = 'failed'", "pending_check"),
    ("UPDATE textsim.pending SET kind = 'other'", "pending_check"),
    ("UPDATE textsim.pending SET error = 'none'", "pending_check"),
    (
        "INSERT INTO textsim.word_1 (hash, word) VALUES (hashtextextended('a', 0), 'b')",
        "word_hash_c",
    ),
]


def test_a_writer_of_one_corpus_cannot_write_rows_that_stop_a_worker(stage: Stage) -> None:
    stage.run(
        stage.owner,
        f"SELECT textsim.revoke_all('\"{stage.writer}\"')",
        f"SELECT textsim.grant_writer('\"{stage.writer}\"', 'news')",
    )
    stage.run(stage.writer, "SELECT textsim.add('news', 'd', %s)", values=[FOX])
    for statement, constraint in REFUSED_ROWS:
        with pytest.raises((pg.CheckViolation, pg.InsufficientPrivilege)) as refused:
            stage.run(stage.writer, statement)
        assert constraint in str(refused.value) or "row-level security" in str(refused.value)
    stage.work(stage.owner)
    assert stage.similar_keys() == ["d"]


def test_a_reader_cannot_lock_writers_out(stage: Stage) -> None:
    with stage.connect(stage.owner) as db:
        db.create_corpus("offers", is_unique=True)
        db.create_corpus("facts", is_unique=True, scoped=True)
    ((corpus_id,),) = stage.run(stage.owner, "SELECT id FROM textsim.corpus WHERE name = 'offers'")
    for call in (
        "textsim.lock_corpus('offers')",
        "textsim.lock_corpus('facts', 'anna')",
        "textsim.twins_of('offers', ARRAY['a'], ARRAY['b'])",
        f"textsim._lock_unique({corpus_id}, true)",
        f"textsim._lock_buckets({corpus_id}, '{{1,2,3}}', NULL)",
    ):
        with pytest.raises(pg.InsufficientPrivilege, match='may not write to corpus "'):
            stage.run(stage.reader, f"SELECT {call}")
        stage.run(stage.writer, f"SELECT {call}")


def test_writers_judge_and_readers_read_the_judgements_of_their_corpora(stage: Stage) -> None:
    with stage.connect(stage.owner) as db:
        db.create_corpus("secret").judge("a", "b", "same", "nobody's business")
    stage.run(
        stage.owner,
        f"SELECT textsim.revoke_all('\"{stage.writer}\"'), textsim.revoke_all('\"{stage.reader}\"')",
        f"SELECT textsim.grant_writer('\"{stage.writer}\"', 'news')",
        f"SELECT textsim.grant_reader('\"{stage.reader}\"', 'news')",
        f"SELECT textsim.grant_reader('\"{stage.writer}\"', 'secret')",
    )
    with stage.connect(stage.writer) as db:
        assert db.corpus("news").judge("a", "c", "same")
        assert [j.note for j in db.corpus("secret").judgements()] == ["nobody's business"]
        secret = db.corpus("secret")
        with pytest.raises(ts.DatabaseError, match="permission denied for the judgements"):
            secret.judge("a", "c", "same")
        with pytest.raises(ts.DatabaseError, match="permission denied for the judgements"):
            secret.unjudge("a", "b")
    with stage.connect(stage.reader) as db:
        news = db.corpus("news")
        (judged,) = news.judgements()
        assert judged.judged_by == stage.writer
        assert [c.keys for c in news.clusters(judgements=True)] == [("a", "b", "c")]
        assert len(list(news.duplicates(judgements=True))) == 2
        calls: list[Callable[[], object]] = [
            lambda: news.judge("a", "b", "same"),
            lambda: news.unjudge("a", "c"),
            lambda: list(db.corpus("secret").judgements()),
        ]
        for call in calls:
            with pytest.raises(ts.DatabaseError, match="permission denied"):
                call()
    # The rows of other corpora are hidden from the table, too, and nobody writes under another name.
    count = "SELECT count(*) FROM textsim.judgement"
    assert stage.run(stage.reader, count) == [(1,)]
    assert stage.run(stage.writer, count) == [(2,)]
    assert stage.run(stage.other, "SELECT 1") == [(1,)]
    for statement in (
        "INSERT INTO textsim.judgement (origin, a, b, verdict) SELECT c.id, 'x', 'y', 'same' "
        "FROM textsim.corpus c WHERE c.name = 'secret'",
        "INSERT INTO textsim.judgement (origin, a, b, verdict, judged_by) "
        "SELECT c.id, 'x', 'y', 'same', 'z' FROM textsim.corpus c WHERE c.name = 'news'",
        "UPDATE textsim.judgement SET judged_by = 'z' WHERE note IS NULL",
        "UPDATE textsim.judgement SET origin = (SELECT id FROM textsim.corpus WHERE name = 'secret')",
    ):
        with pytest.raises(pg.InsufficientPrivilege, match="row-level security"):
            stage.run(stage.writer, statement)
    stage.run(stage.writer, "DELETE FROM textsim.judgement")
    assert stage.run(stage.owner, "SELECT note FROM textsim.judgement") == [("nobody's business",)]
