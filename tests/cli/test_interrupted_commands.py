"""Ctrl-C ends a rebuild and a check at any moment, and leaves a corpus without a fault."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import process
from tests.support.connections import Connection
from tests.support.waiting import wait_for

DOCUMENTS = 5_000
RUNNING = b"""
SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s
"""
COPIED = b"""
SELECT coalesce(max(pg_relation_size(c.oid)), 0) FROM pg_class c
WHERE c.relname = (
    SELECT 'document_' || max(id) FROM textsim.corpus WHERE name LIKE 'textsim temporary %%'
)
"""


def interrupt(url: str, command: str, condition: Callable[[], object]) -> tuple[int, str]:
    """Send Ctrl-C to a command when a condition holds; return its exit status and messages."""
    with process(*command.split(), url=url) as started:
        wait_for(lambda: started.poll() is not None or condition())
        if started.poll() is None:
            started.send_signal(signal.SIGINT)
        _, messages = started.communicate()
    return started.returncode, messages


@pytest.mark.more
def test_interrupted_rebuilds(db: ts.Database, connection: Connection, rng: random.Random) -> None:
    corpus = db.create_corpus("c", threshold=0.8)
    corpus.add_many(documents(DOCUMENTS, words=60, seed=1))
    connection.execute("VACUUM")
    row = connection.execute("SELECT pg_relation_size('textsim.document_1')").fetchone()
    assert row is not None
    moments = [1, *(rng.randrange(row[0]) for _ in range(2)), row[0] - 8192]
    statuses = []
    for moment in moments:

        def copied(size: int = moment) -> bool:
            ((found,),) = connection.execute(COPIED).fetchall()
            return bool(found >= size)

        status, messages = interrupt(db.url, "rebuild c --threshold 0.7", copied)
        statuses.append(status)
        assert status in (0, 130), messages
        opened = db.corpus("c")
        if status == 130:
            assert messages == "interrupted\n"
            assert opened.config.threshold in (0.8, 0.7)
        assert len(opened) == DOCUMENTS
        assert opened.check() == []
        assert db.corpora() == ["c"]
        hidden = "SELECT FROM textsim.corpus WHERE name LIKE 'textsim temporary %'"
        assert connection.execute(hidden).fetchall() == []
        assert connection.execute(RUNNING, ["textsim-db rebuild"]).fetchall() == []
        if opened.config.threshold == 0.7:
            opened.rebuild(threshold=0.8)
    assert 130 in statuses


@pytest.mark.more
def test_interrupted_checks(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(documents(DOCUMENTS, words=60, seed=1))
    reading = RUNNING + b"AND state = 'active' AND query LIKE '%%textsim-db:%%'"
    status, messages = interrupt(
        db.url, "check c", lambda: connection.execute(reading, ["textsim-db check"]).fetchall()
    )
    assert (status, messages) == (130, "interrupted\n")
    wait_for(lambda: not connection.execute(RUNNING, ["textsim-db check"]).fetchall())
    assert corpus.check() == []
