"""The clock of the server was ahead, or was set back: nothing is lost or stranded, and alarms fire."""

from __future__ import annotations

import itertools

import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.expiry import OTHER, TEXT, create, expiries, table_of
from textsim_db.sync.step_faults import StepFaults
from textsim_db.sync.upkeep import ExpiredDocuments

HOUR = 3600.0


@pytest.fixture
def chats(db: ts.Database) -> ts.Corpus:
    corpus = create(db, "c", keep_for="1 day")
    corpus.add_many({"a": TEXT, "b": OTHER})
    return corpus


def expire_ago(connection: Connection, corpus: ts.Corpus, key: str, ago: str) -> None:
    connection.execute(
        f"UPDATE {table_of(connection, corpus)} SET expires_at = now() - %s::text::interval "
        "WHERE key = %s".encode(),
        [ago, key],
    )


def look_ago(connection: Connection, ago: str) -> None:
    """Let the last look be earlier: the clock of the server cannot be moved."""
    connection.execute(
        "UPDATE textsim.expiry_look SET at = now() - %s::text::interval RETURNING 1", [ago]
    )


LOOK_AGE = "SELECT extract(epoch FROM now() - at) FROM textsim.expiry_look"


def test_a_clock_that_is_ahead_for_a_moment_removes_nothing(
    db: ts.Database, connection: Connection, chats: ts.Corpus
) -> None:
    expire_ago(connection, chats, "a", "1 day")
    for _ in range(2):
        assert db.worker().run(until_idle=True).removed == 0
        assert expiries(connection, chats).keys() == {"a", "b"}
        assert "a" not in chats
    # The clock is right again.
    expire_ago(connection, chats, "a", "-1 day")
    look_ago(connection, "-2 days")
    assert db.worker().run(until_idle=True).removed == 0
    assert "a" in chats
    assert float(str(value(connection, LOOK_AGE))) < HOUR
    assert chats.check() == []


def test_a_document_is_removed_by_a_later_look_that_agrees(
    db: ts.Database, connection: Connection, chats: ts.Corpus
) -> None:
    expire_ago(connection, chats, "a", "3 hours")
    expire_ago(connection, chats, "b", "1 second")
    db.worker().run(until_idle=True)
    look_ago(connection, "59 minutes")
    assert db.worker().run(until_idle=True).removed == 0
    assert db.worker(expire_after=58 * 60).run(until_idle=True).removed == 1
    # The other document had not expired at the earlier look, so the next one is the first to see it.
    assert list(expiries(connection, chats)) == ["b"]
    assert float(str(value(connection, LOOK_AGE))) < HOUR
    expire_ago(connection, chats, "b", "3 hours")
    look_ago(connection, "1 hour")
    chats.rebuild(seed=7)
    assert db.worker().run(until_idle=True).removed == 1
    assert expiries(connection, chats) == {}


@pytest.mark.parametrize("seconds", [-2 * HOUR, 2 * HOUR])
def test_a_look_does_not_count_after_a_jump_of_the_clock(
    db: ts.Database, connection: Connection, chats: ts.Corpus, seconds: float
) -> None:
    """The clock of the process jumps the other way, because the clock of the server cannot be moved."""
    engine, lead = db._engine, itertools.chain([0.0, 0.0], itertools.repeat(seconds))

    def clock() -> float:
        return float(str(value(connection, "SELECT extract(epoch FROM now())"))) - next(lead)

    expired = ExpiredDocuments(engine, StepFaults(engine), HOUR, clock)
    expire_ago(connection, chats, "a", "3 hours")
    assert expired.remove_some() == 0
    look_ago(connection, "2 hours")
    assert expired.remove_some() == 0
    assert float(str(value(connection, LOOK_AGE))) < HOUR
    look_ago(connection, "2 hours")
    assert expired.remove_some() == 1


def test_expire_after_has_bounds(db: ts.Database) -> None:
    for expire_after in (-1.0, float("nan"), 1e9):
        with pytest.raises(ts.ConfigurationError, match="expire_after is"):
            db.worker(expire_after=expire_after)


@pytest.fixture
def posts(db: ts.Database, connection: Connection) -> ts.Corpus:
    corpus = db.create_corpus("posts")
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, body text)")
    corpus.attach("post", "id", "body")
    db.worker().run(until_idle=True)
    return corpus


def shift_log(connection: Connection, ahead: str) -> None:
    """Let the log have been written, and leased, by a clock that was ahead."""
    connection.execute(
        "UPDATE textsim.pending SET created_at = created_at + a.ahead, "
        "lease_until = lease_until + a.ahead FROM (SELECT %s::text::interval) a (ahead)",
        [ahead],
    )


CLAIM = """
SELECT count(*) FROM textsim._claim(array(SELECT id FROM textsim.source), true, '{}', 0, 100, 60)
"""


@pytest.mark.parametrize("by", ["worker", "index_pending", "claim"])
def test_a_lease_of_a_clock_that_was_ahead_is_void(
    db: ts.Database, connection: Connection, posts: ts.Corpus, by: str
) -> None:
    connection.execute("INSERT INTO post VALUES (1, %s)", [TEXT])
    assert value(connection, CLAIM) == 1
    assert value(connection, CLAIM) == 0
    shift_log(connection, "2 days")
    match by:
        case "worker":
            db.worker().run(until_idle=True)
        case "index_pending":
            connection.execute("CALL textsim.index_pending('posts')")
        case "claim":
            assert value(connection, CLAIM) == 1
            assert value(connection, CLAIM) == 0
            return
    assert "1" in posts
    assert posts.status().pending == 0


def test_what_waits_since_a_clock_was_ahead_has_an_age(
    db: ts.Database, connection: Connection, posts: ts.Corpus
) -> None:
    connection.execute("INSERT INTO post VALUES (1, %s)", [TEXT])
    shift_log(connection, "2 days")
    age = value(connection, "SELECT extract(epoch FROM pending_age) FROM textsim.status('posts')")
    ages = [
        m.value
        for m in db.metrics()
        if m.name == "textsim_pending_age_seconds" and m.labels["kind"] == "change"
    ]
    assert len(ages) == 1
    for seconds in (float(str(age)), *ages, posts.status().lag or 0):
        assert 47 * HOUR < seconds <= 48 * HOUR


def test_a_worker_that_was_killed_while_the_clock_was_ahead_does_not_count(
    db: ts.Database, connection: Connection, posts: ts.Corpus
) -> None:
    connection.execute(
        "INSERT INTO textsim.worker (id, host, process, reported_at, step, step_began_at, faults) "
        "SELECT gen_random_uuid(), 'h', 1, now() + interval '2 days', 's', now(), "
        """jsonb_build_array(jsonb_build_object('corpus_id', id, 'fault', 'of a dead worker'))"""
        " FROM textsim.corpus"
    )
    assert [m.value for m in db.metrics() if m.name == "textsim_workers_running"] == [0]
    assert posts.status().problems == []
