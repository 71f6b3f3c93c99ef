"""Processes that fork after connect(): a child opens its own connections and locks.

Each test runs a script in a separate process, because a fork copies the locks of all threads of its
process. A script that hangs is killed, and its test fails.
"""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from tests.support.forking import run_script
from tests.support.sampling import sample

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

POOL = """
import multiprocessing

db = ts.connect(url)
corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)

def write(name):
    corpus.add_many(documents(name))
    return len(corpus.query(f"document number 7 of {name} with some words", 1.0))

assert write("parent") == 1
with multiprocessing.get_context("fork").Pool(8) as pool:
    assert pool.map(write, map(str, range(40)), 1) == [1] * 40
assert len(corpus) == 100 * 41
assert corpus.check() == []
"""

LOCKED = """
db = ts.connect(url)
corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)
corpus.add_many(documents("first"))
with psycopg.connect(url) as connection:
    connection.execute("LOCK TABLE textsim.word IN SHARE ROW EXCLUSIVE MODE")
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
def test_a_pool_of_forked_processes_writes(database_url: str) -> None:
    assert run_script(POOL, database_url) == (0, "", "")


@pytest.mark.more
def test_a_child_works_if_a_lock_is_held_during_the_fork(database_url: str) -> None:
    assert run_script(LOCKED, database_url) == (0, "", "")


def test_a_child_cannot_continue_a_transaction_of_its_parent(database_url: str) -> None:
    assert run_script(IN_USE, database_url) == (0, "", "")


@pytest.mark.more
def test_the_server_ends_the_sessions_of_a_killed_parent(database_url: str) -> None:
    _, output, errors = run_script(KILLED, database_url)
    assert (output, errors) == ("the server noticed\n", "")
    with psycopg.connect(database_url) as connection, ts.connect(database_url) as db:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert db.corpus("c").check() == []
