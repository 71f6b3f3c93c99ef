"""Threads and forked processes share a database object."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import textsim_db as ts
from tests.support.forking import run_script
from tests.support.sampling import sample
from tests.support.waiting import PATIENCE_SECONDS, wait_until
from textsim_db.results import AddReport

WRITERS = """
address = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:")) if {own} else url
db = ts.connect(address)
corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)
corpus.add_many(documents("first"))
assert corpus.query("document number 7 of first with some words")
ready, begin = os.pipe()

def ask(statement):
    with db.engine.connect() as connection:
        return [value for value, in connection.exec_driver_sql(statement)]

sessions = ask("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")

def write(name):
    for round in range(3):
        corpus.add_many(documents(f"{{name}}-{{round}}"))
        key = f"{{name}}-{{round}}-7"
        match = corpus.query(f"document number 7 of {{name}}-{{round}} with some words", 1.0)
        assert [m.key for m in match] == [key], match

def child(number):
    os.close(begin)
    os.read(ready, 1)  # returns when the parent closes the other end
    assert not set(ask("SELECT pg_backend_pid()")) & set(sessions)
    write(f"child-{{number}}")

children = [fork(lambda: child(number)) for number in range(5)]
os.close(begin)
write("parent")
wait_for(children)
assert len(corpus) == 100 * (1 + 3 * 6), len(corpus)
assert corpus.check() == []
"""


LOCKED = """
db = ts.connect(url)
corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)
corpus.add_many(documents("first"))
with psycopg.connect(url) as connection:
    connection.execute("LOCK TABLE textsim.word_1 IN SHARE ROW EXCLUSIVE MODE")
    writer = threading.Thread(target=corpus.add_many, args=[[("k", "words that nobody knows yet")]])
    writer.start()
    waiting = (
        "SELECT FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(url, autocommit=True) as other:
        while not other.execute(waiting).fetchall():
            pass
    # The thread holds the lock of the dictionary while it waits for the server.
    wait_for([fork(lambda: corpus.query("document number 7 of first with other words"))])
    connection.rollback()
writer.join()
assert len(corpus) == 101
"""

IN_USE = """
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns when a rollback fails
db = ts.connect(url)
corpus = db.create_corpus("c", shingle="word:2", threshold=0.5, num_hashes=32)
corpus.add_many(documents("first"))
every = sorted(corpus.pairs())
pairs = corpus.pairs()
first = next(pairs)

def child():
    try:
        for pair in pairs:
            pass
    except ts.DatabaseUnavailable:
        pairs.close()
        assert sorted(corpus.pairs()) == every
    else:
        raise AssertionError("the child went on with a transaction of its parent")

wait_for([fork(child), fork(pairs.close)])
assert sorted([first, *pairs]) == every
"""

KILLED = """
import signal

db = ts.connect(url + ("&" if "?" in url else "?") + "application_name=parent")
corpus = db.create_corpus("c", shingle="word:2", threshold=0.5, num_hashes=32)
corpus.add_many(documents("first"))
pairs = corpus.pairs()
next(pairs)

def child():
    os.kill(os.getppid(), signal.SIGKILL)
    with psycopg.connect(url, autocommit=True) as connection:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'parent'"
        while connection.execute(count).fetchone() != (0,):
            pass
    print("the server noticed", flush=True)

fork(child)
threading.Event().wait()
"""


@pytest.mark.more
@pytest.mark.parametrize("own", sample([False, True], 2), ids=["address", "engine"])
def test_children_write_while_the_parent_goes_on(database_url: str, own: bool) -> None:
    assert run_script(WRITERS.format(own=own), database_url) == (0, "", "")


@pytest.mark.more
def test_a_child_works_if_a_lock_is_held_during_the_fork(database_url: str) -> None:
    assert run_script(LOCKED, database_url) == (0, "", "")


@pytest.mark.more
def test_a_child_cannot_continue_a_transaction_of_its_parent(database_url: str) -> None:
    assert run_script(IN_USE, database_url) == (0, "", "")


@pytest.mark.more
def test_the_server_ends_the_sessions_of_a_killed_parent(database_url: str) -> None:
    _, output, errors = run_script(KILLED, database_url)
    assert (output, errors) == ("the server noticed\n", "")
    with psycopg.connect(database_url) as connection, ts.connect(database_url) as db:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert db.corpus("c").check() == []


def test_threads_create_one_corpus_at_once(db: ts.Database) -> None:
    def create(_: int) -> ts.Corpus:
        return db.create_corpus("shared", num_hashes=32, exist_ok=True)

    with ThreadPoolExecutor(8) as pool:
        corpora = list(pool.map(create, range(8)))
    assert {corpus.config for corpus in corpora} == {db.corpus("shared").config}
    assert list(db.corpora()) == ["shared"]


def install(url: str) -> str:
    return ts.install(url)


def test_threads_install_the_schema_at_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        revisions = set(pool.map(install, [empty_database_url] * 4))
    assert len(revisions) == 1
    with ts.connect(empty_database_url) as db:
        assert list(db.corpora()) == []


DROP_WAITS = b"""
SELECT FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'textsim-db' AND wait_event = 'PgSleep'
"""
"""The drop has not got its locks, and lets others go on before it tries again."""


def test_dropping_a_corpus_does_not_delay_another(
    db: ts.Database, connection: psycopg.Connection
) -> None:
    dropped, kept = db.create_corpus("gone"), db.create_corpus("stays")
    for corpus in (dropped, kept):
        corpus.add("a", "one two three four")
    # The reader locks the tables of the dropped corpus, so the drop waits for it.
    with psycopg.connect(db.url) as reader:
        reader.execute("SELECT count(*) FROM textsim.document_1")
        dropping = threading.Thread(target=db.drop_corpus, args=("gone",))
        dropping.start()
        wait_until(connection, DROP_WAITS)
        with psycopg.connect(db.url, options="-c lock_timeout=60000") as writer:
            writer.execute("SELECT textsim.add('stays', 'b', 'one two three five')")
            pairs = writer.execute("SELECT * FROM textsim.pairs('stays')")
            assert len(pairs.fetchall()) <= 1
        with ts.connect(db.url) as other:
            other.create_corpus("made meanwhile")
        reader.commit()
    dropping.join(PATIENCE_SECONDS)
    assert not dropping.is_alive()
    assert list(db.corpora()) == ["made meanwhile", "stays"]
    assert kept.check() == []


def test_an_error_of_the_progress_function_leaves_no_thread(db: ts.Database) -> None:
    corpus = db.create_corpus("c")

    def fail(report: AddReport) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        corpus.add_many(((f"k{i}", f"text number {i}") for i in range(25_000)), fail)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("textsim-ahead")]
    assert corpus.check() == []
