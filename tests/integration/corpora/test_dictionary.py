"""The dictionary: a collision of 64-bit hashes, words of other clients, words that wait for ids."""

from __future__ import annotations

from contextlib import ExitStack

import psycopg
import pytest

import textsim_db as ts
from tests.support import collision
from tests.support.connections import Connection
from tests.support.threads import in_thread
from tests.support.waiting import CLIENT_WAITS_FOR_A_LOCK, wait_until
from textsim_db.db.addresses import plain_url, sqlalchemy_url
from textsim_db.db.dictionary import BULK_WORDS, WORDS_AT_ONCE
from textsim_db.results import AddReport
from textsim_db.text.hashing import hash_texts
from textsim_db.text.tokens import words


def test_the_words_of_the_collision_have_one_hash() -> None:
    assert collision.FIRST != collision.SECOND
    assert words(f"{collision.FIRST} {collision.SECOND}") == [collision.FIRST, collision.SECOND]
    assert len(set(hash_texts([collision.FIRST, collision.SECOND]))) == 1


def is_refused(report: AddReport, key: str, word: str) -> bool:
    [refusal] = report.refused
    return refusal.key == key and f'"{word}"' in refusal.reason and "hash" in refusal.reason


def test_a_word_that_collides_with_a_stored_word_is_refused(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    corpus.add("a", f"one {collision.FIRST}")
    report = corpus.add_many([("b", f"one {collision.SECOND}"), ("c", "another"), ("d", "")])
    assert report.added == 2
    assert is_refused(report, "b", collision.SECOND)
    assert "b" not in corpus
    with pytest.raises(ts.DocumentError, match=collision.SECOND):
        corpus.add("b", collision.SECOND)
    assert corpus.check() == []


def test_a_collision_within_a_batch_refuses_one_document(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    texts = [("a", f"one {collision.FIRST}"), ("b", f"one {collision.SECOND}"), ("c", "one")]
    report = corpus.add_many(texts)
    assert report.added == 2
    [refusal] = report.refused
    assert (refusal.key, True) in {("a", "a" not in corpus), ("b", "b" not in corpus)}
    assert collision.FIRST in refusal.reason or collision.SECOND in refusal.reason
    assert "c" in corpus
    assert corpus.check() == []


def test_a_collision_within_a_document_refuses_the_document(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    report = corpus.add_many([("a", f"{collision.FIRST} {collision.SECOND}"), ("b", "one")])
    assert report.added == 1
    assert [refusal.key for refusal in report.refused] == ["a"]
    assert corpus.check() == []


@pytest.mark.parametrize("shingle", ["word:1", "char:5"])
def test_a_query_does_not_match_a_colliding_word(db: ts.Database, shingle: str) -> None:
    corpus = db.create_corpus("c", shingle=shingle)
    corpus.add("a", collision.FIRST)
    assert [match.similarity for match in corpus.query(collision.FIRST)] == [1.0]
    assert corpus.query(collision.SECOND) == []
    assert corpus.query_many([collision.SECOND, collision.FIRST])[0] == []


def test_different_shingles_with_one_hash_are_different(db: ts.Database) -> None:
    # Without their last letter, the words themselves do not collide.
    corpus = db.create_corpus("c", shingle="char:24")
    corpus.add_many([("a", collision.FIRST[:-1]), ("b", collision.SECOND[:-1])])
    assert list(corpus.pairs(0.01)) == []


def test_a_bulk_of_words_meets_the_words_of_another_client(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    bulk = [f"w{i}" for i in range(2 * WORDS_AT_ONCE + BULK_WORDS)]
    add = "INSERT INTO textsim.word_1 (hash, word) SELECT hashtextextended(%s, 0), %s"
    with ExitStack() as threads, psycopg.connect(db.url) as other:
        other.execute(add, [bulk[0], bulk[0]])
        loading = in_thread(lambda: corpus.add_many([("a", " ".join(bulk))]))
        failures = threads.enter_context(loading)
        wait_until(connection, CLIENT_WAITS_FOR_A_LOCK)
    assert failures == []
    assert corpus.normal_form("a") == " ".join(bulk)
    assert corpus.check() == []


def test_a_bulk_of_words_meets_a_collision(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    corpus.add("a", collision.FIRST)
    with ts.connect(db.url) as other:
        bulk = " ".join(f"w{i}" for i in range(BULK_WORDS))
        report = other.corpus("c").add_many([("b", bulk), ("c", collision.SECOND)])
    assert report.added == 1
    assert is_refused(report, "c", collision.SECOND)
    assert corpus.check() == []


def test_words_are_committed_durably_for_every_role(db: ts.Database) -> None:
    """A crash must not lose a word whose id later documents use."""
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(
            """
            CREATE TABLE seen (setting text);
            CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO public.seen VALUES (current_setting('synchronous_commit'));
                RETURN NULL;
            END $$;
            """
        )
        settings = (("off", "on"), ("local", "local"), ("on", "on"))
        for place, (setting, expected) in enumerate(settings, 1):
            connection.execute("TRUNCATE seen")
            option = {"options": f"-c synchronous_commit={setting}"}
            url = sqlalchemy_url(db.url).update_query_dict(option)
            with ts.connect(plain_url(url)) as other:
                corpus = other.create_corpus(setting)
                connection.execute(
                    f"CREATE TRIGGER see AFTER INSERT ON textsim.word_{place} "
                    "FOR EACH STATEMENT EXECUTE FUNCTION see()".encode()
                )
                corpus.add("a", f"words that are new {setting}")
            assert connection.execute("SELECT DISTINCT setting FROM seen").fetchall() == [
                (expected,)
            ]


def test_a_query_does_not_wait_for_the_words_of_another_thread(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c")
    corpus.add("a", "these are all the words of it")
    known = "these are all the words of it"
    with ExitStack() as threads, connection.transaction():
        connection.execute("LOCK TABLE textsim.word_1")
        waiting = in_thread(lambda: corpus.query(f"{known} and of strangers"))
        failures = threads.enter_context(waiting)
        wait_until(connection, CLIENT_WAITS_FOR_A_LOCK)
        with in_thread(lambda: corpus.query(known)) as others:
            pass
    assert failures == others == []


def test_check_reports_documents_without_ids_and_log_entry(
    corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute(
        "SELECT textsim.add('c', k, 'one two three') FROM unnest('{a,\"\"}'::text[]) k"
    )
    assert corpus.check() == []
    connection.execute("DELETE FROM textsim.pending")
    problems = corpus.check()
    assert {problem[:2] for problem in problems} == {("words", "a"), ("words", "")}
    assert corpus.reconcile().completed == 2
    assert corpus.check() == []
