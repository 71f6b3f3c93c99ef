"""Passages that many documents have: what a search leaves out and reports."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.passages import (
    HEADER,
    QUOTATION,
    create_corpus,
    in_sql,
    places,
    with_header,
)
from tests.support.scopes import scopes_of_equal_bits
from textsim_db.base.run_ahead import BATCH_DOCUMENTS
from textsim_db.results import SharedPassage
from textsim_db.results.rows import CommonRun
from textsim_db.sketch.fingerprints import LEFT_OUT


def test_a_run_of_many_documents_is_named_and_not_followed(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create_corpus(db)
    corpus.add_many((f"{n:02}", f"{HEADER} and body{n} number{n}") for n in range(20))
    corpus.add("quoted", f"it said {QUOTATION} again")
    text = f"Before. {HEADER} between w1 w2 w3 {QUOTATION} after"
    assert len(corpus.passages(text)) == 21
    assert corpus.passages(text).common == []
    found = corpus.passages(text, max_documents=10)
    assert places(found) == [("quoted", 9, 15, 2)]
    (run,) = found.common
    assert run.documents == 20
    assert run.in_text >= 1
    assert run.in_text + run.words <= 11
    for most in (20, 2**31):
        assert corpus.passages(text, max_documents=most).common == []
    for limit in (10, 20):
        (record,) = corpus.contamination([("q", text)], max_documents=limit)
        alone = corpus.passages(text, max_documents=limit)
        assert record.common == alone.common
        assert record.documents == sorted({passage.key for passage in alone})
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    query = "SELECT * FROM textsim.passages('c', %s, max_documents => 10)"
    assert connection.execute(query, [text]).fetchall() == places(found)
    assert notices == ["a run of the text is in more than 10 documents, which are not all compared"]


def test_all_pairs_of_a_crowd_need_not_be_compared(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = create_corpus(db)
    corpus.add_many((f"{n:02}", HEADER) for n in range(20))
    corpus.add_many([("a", f"it said {QUOTATION} again"), ("b", f"they say {QUOTATION}")])
    assert len(list(corpus.shared_passages())) == 20 * 19 // 2 + 1
    assert not caplog.records
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    query = "SELECT * FROM textsim.shared_passages('c', max_documents => %s)"
    pair = SharedPassage("a", "b", 9, 2, 2)
    assert list(corpus.shared_passages(max_documents=19)) == [pair]
    assert connection.execute(query, [19]).fetchall() == [pair]
    assert notices[0] in caplog.text
    assert "more than 19 documents" in notices[0]
    assert len(list(corpus.shared_passages(max_documents=20))) == 191
    assert len(connection.execute(query, [20]).fetchall()) == 191
    assert len(notices) == len(caplog.records) == 1


def test_a_run_that_thousands_have_is_left_out(db: ts.Database, connection: Connection) -> None:
    """The classes are learned by the first load, and are the same in SQL and in Python."""
    corpus = create_corpus(db, threshold=0.9)
    corpus.add_many(with_header(1200))
    common = corpus.config.common_of_passages
    assert common is not None
    assert max(common.classes) == LEFT_OUT
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    found = corpus.passages(f"Before. {HEADER}, after")
    assert found == []
    assert found.common == [CommonRun(10, 1, 1024)]
    (record,) = corpus.contamination([("q", f"Before. {HEADER}, after")])
    assert record == ("q", 12, 0.0, [], [], found.common)
    assert in_sql(connection, f"Before. {HEADER}, after") == []
    assert notices == [
        'a run of the text is in very many documents of corpus "c", which are not searched for it'
    ]
    # A run that is common only in part is found, with all its words.
    text = f"{HEADER} and body7 number7 w7"
    assert corpus.passages(text)[0][:4] == in_sql(connection, text)[0] == ("0007", 14, 0, 0)
    connection.execute("SELECT textsim.add('c', 'new', %s)", [text])
    corpus.add("newer", text)
    stored = connection.execute(
        "SELECT fingerprints FROM textsim.document_2 WHERE key IN ('new', 'newer')"
    ).fetchall()
    assert stored[0] == stored[1] != ([],)
    assert corpus.check() == []
    assert db.corpus("c").config.common_of_passages.values.tolist() == common.values.tolist()


def test_documents_that_come_again_count_once(db: ts.Database) -> None:
    corpus = create_corpus(db)
    with_run = [(f"{n}", f"{HEADER} and body{n} number{n}") for n in range(600)]
    others = [(f"other{n}", f"word{n} thing{n}") for n in range(BATCH_DOCUMENTS)]
    assert len(with_run) < 2**LEFT_OUT <= 2 * len(with_run)
    corpus.add_many([*with_run, *others, *with_run])
    found = corpus.passages(HEADER)
    assert len(found) == len(with_run)
    assert found.common == []


def test_every_search_says_that_a_run_is_left_out(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = create_corpus(db, threshold=0.9)
    corpus.add_many(with_header(1100))
    message = 'a run of the text is in very many documents of corpus "c", which are not searched'
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    for search in (
        partial(corpus.query, HEADER, 0.5, measure="containment"),
        partial(corpus.neighbours, "0007", 0.5, measure="containment"),
    ):
        assert search() == []
        assert message in caplog.text
        assert "textsim rebuild c --common-passages" in caplog.text
        caplog.clear()
    other = "one two three four five six seven eight"
    assert corpus.query(other, 0.5, measure="containment") == []
    assert not caplog.records
    assert connection.execute("SELECT * FROM textsim.passages('c', %s)", [HEADER]).fetchall() == []
    assert notices.pop().startswith(message)


def test_a_scope_does_not_hide_the_passages_of_another(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create_corpus(db, scoped=True, threshold=0.9)
    corpus.add_many((*document, "large") for document in with_header(1200))
    assert corpus.config.common_of_passages is not None
    corpus.add("own", HEADER, scope="small")
    found = corpus.passages(HEADER, scope="small")
    assert places(found) == in_sql(connection, HEADER, None, None, "small") == [("own", 10, 0, 0)]
    assert found.common == []
    assert len(corpus.passages(HEADER, scope="large")) == 1200
    of_many = corpus.passages(HEADER, scope="large", max_documents=1000).common
    assert [run.documents for run in of_many] == [1200]
    assert corpus.check() == []


def test_documents_of_another_scope_and_expired_ones_are_not_counted(
    db: ts.Database, connection: Connection
) -> None:
    """The two scopes mix the same bits, so their fingerprints are the same numbers."""
    crowd, few = scopes_of_equal_bits()
    corpus = create_corpus(db, scoped=True, keep_for="1 day")
    corpus.add_many((f"{n:02}", f"{HEADER} and w{n} x{n}", crowd) for n in range(20))
    corpus.add_many((f"few {n}", f"{HEADER} and y{n} z{n}", few) for n in range(5))
    connection.execute("UPDATE textsim.document_1 SET expires_at = now() WHERE key >= 'few 2'")
    search = "SELECT key FROM textsim.passages('c', %s, scope => %s, max_documents => %s)"
    pairs = "SELECT a, b FROM textsim.shared_passages('c', max_documents => 10)"
    for limit, keys, counted in ((2, ["few 0", "few 1"], []), (1, [], [2])):
        found = corpus.passages(HEADER, scope=few, max_documents=limit)
        assert sorted(each.key for each in found) == keys
        assert [run.documents for run in found.common] == counted
        rows = connection.execute(search, [HEADER, few, limit]).fetchall()
        assert sorted(key for (key,) in rows) == keys
        ((record,),) = [corpus.contamination([("q", HEADER)], max_documents=limit, scope=few)]
        assert record.documents == keys
    (run,) = corpus.passages(HEADER, scope=crowd, max_documents=10).common
    assert run.documents == 20
    shared = {each[:2] for each in corpus.shared_passages(max_documents=10)}
    assert shared == set(connection.execute(pairs))
    assert {pair for pair in shared if "few" in pair[0]} == {("few 0", "few 1")}
    assert len(shared) < 20


def test_first_loads_that_begin_at_once_learn_together(db: ts.Database) -> None:
    create_corpus(db)
    corpora = [db.corpus("c") for _ in range(4)]
    begin = threading.Barrier(len(corpora))

    def load(number: int) -> int:
        begin.wait()
        documents = ((f"{number} {key}", text) for key, text in with_header(300))
        return corpora[number].add_many(documents).added

    with ThreadPoolExecutor(len(corpora)) as pool:
        assert list(pool.map(load, range(len(corpora)))) == [300] * len(corpora)
    corpus = db.corpus("c")
    assert corpus.config.common_of_passages is not None
    assert (len(corpus), corpus.check()) == (1200, [])
    assert len(corpus.passages(HEADER)) == 1200


def test_a_corpus_may_store_common_passages(db: ts.Database, connection: Connection) -> None:
    corpus = create_corpus(db, common_passages=True)
    corpus.add_many(with_header(1100))
    found = corpus.passages(HEADER)
    assert len(found) == len(in_sql(connection, HEADER)) == 1100
    assert found.common == []
    corpus.rebuild(common_passages=False)
    assert places(corpus.passages(HEADER)) == in_sql(connection, HEADER) == []
    assert corpus.check() == []


def test_classes_do_not_change_what_is_found(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    rng = random.Random(seed)
    phrases = [" ".join(f"p{rng.randrange(50)}" for _ in range(9)) for _ in range(8)]
    documents = {
        f"d{i:03}": " ".join(
            rng.choice(phrases) if rng.random() < 0.4 else f"w{rng.randrange(4000)} x{i}"
            for _ in range(12)
        )
        for i in range(200)
    }
    learned = create_corpus(db)
    learned.add_many(documents.items())
    common = learned.config.common_of_passages
    assert common is not None
    assert len(common.values) > 10
    plain = create_corpus(db, "plain")
    plain.add_many(list(documents.items())[:50])  # too few to learn from
    plain.add_many(documents.items())
    assert plain.config.common_of_passages is None
    runs = 0
    for text in list(documents.values())[:12]:
        found = learned.passages(text)
        assert found == plain.passages(text)
        assert places(found) == in_sql(connection, text)
        few = rng.randrange(1, 30)
        runs += len(learned.passages(text, max_documents=few).common)
    assert runs > 10
    assert learned.check() == plain.check() == []


def test_an_attached_table_teaches_what_is_common(db: ts.Database, connection: Connection) -> None:
    corpus = create_corpus(db)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(with_header(1100)))
    corpus.attach("t", "id", "body")
    assert corpus.config.common_of_passages is not None
    assert corpus.passages(HEADER) == []
    assert in_sql(connection, HEADER) == []
    assert [run.words for run in corpus.passages(HEADER).common] == [10]
    connection.execute("UPDATE t SET body = body || ' more' WHERE id < '0010'")
    db.worker().run(until_idle=True)
    assert corpus.check() == []
