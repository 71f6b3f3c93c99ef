"""Racing pairs: two sessions insert two similar documents at the same moment, again and again.

Documents 2p and 2p + 1 are a pair. Sessions take the numbers in order from one counter, so two sessions
insert a pair at nearly the same moment. Afterwards each pair should have one document. The same race
without locks runs beside it: the corpus is not unique, and a transaction searches before it inserts.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from psycopg import errors

import textsim_db as ts
from benchmarks.harness import Bench, fresh_database

Document = tuple[str, str]

VOCABULARY = 20_000
WORDS = 20
"""Words of a text: 18 shingles of three words, so some pairs are exactly at the threshold of 0.8."""
CHANGED_WORDS = (0, 1, 2, 2)
"""Last words that differ in the texts of a pair: similarities of 1, 17/19 and 16/20."""
BATCH = 20
"""Documents of each call of add_many."""
CORPUS = "race"


class Race(NamedTuple):
    """A race: `way` is a function of WAYS, and `settings` are the settings of the corpus."""

    name: str
    way: str
    sessions: int
    pairs: int
    settings: dict[str, Any]


class Outcome(NamedTuple):
    """The result of a race."""

    twins: int
    """Matches among all stored documents; in a corpus of bands, only matches that share a bucket."""
    none: int
    """Pairs without a stored document."""
    seconds: float
    errors: Counter[str]


def text_of(number: int) -> str:
    """Return the text of a document; the texts of different pairs have no shingle in common."""
    pair, side = divmod(number, 2)
    words = [f"w{n}" for n in random.Random(pair).choices(range(VOCABULARY), k=WORDS)]
    changed = CHANGED_WORDS[pair % len(CHANGED_WORDS)] if side else 0
    words[WORDS - changed :] = [f"other{pair}"] * changed
    if pair % len(CHANGED_WORDS) == 3:  # the difference is at the beginning instead of the end
        words.reverse()
    return " ".join(words)


# Ways to insert. Each makes a function that inserts documents, and returns how many were left out.

Insert = Callable[[list[Document]], int]


def sql(url: str, is_unique: bool) -> Insert:
    """Call textsim.add, which raises unique_violation."""
    return _statements(url, is_unique, "SELECT textsim.add('race', %s, %s)")


def table(url: str, is_unique: bool) -> Insert:
    """Insert rows into an attached table, which raises unique_violation."""
    return _statements(url, is_unique, "INSERT INTO race VALUES (%s, %s)")


def python_many(url: str, is_unique: bool) -> Insert:
    """Call corpus.add_many, which leaves duplicates out."""
    corpus = ts.connect(url).corpus(CORPUS)

    def insert(documents: list[Document]) -> int:
        if is_unique:
            return len(documents) - corpus.add_many(documents).stored
        matches = corpus.query_many([text for _, text in documents])
        new = [document for document, found in zip(documents, matches, strict=True) if not found]
        corpus.add_many(new)
        return len(documents) - len(new)

    return insert


def _statements(url: str, is_unique: bool, statement: str) -> Insert:
    """Return a function that runs a statement for each document, in a transaction of its own."""
    connection = psycopg.connect(url, autocommit=True)

    def insert_one(document: Document) -> bool:
        if is_unique:
            return connection.execute(statement.encode(), document, prepare=True).rowcount == 1
        with connection.transaction():
            if connection.execute(_FIND, document[1:], prepare=True).fetchall():
                return False
            connection.execute(statement.encode(), document, prepare=True)
            return True

    def insert(documents: list[Document]) -> int:
        left_out = 0
        for document in documents:
            try:
                left_out += not insert_one(document)
            except errors.UniqueViolation as error:
                if error.diag.constraint_name != CORPUS:
                    raise
                left_out += 1
        return left_out

    return insert


_FIND = "SELECT key FROM textsim.matches('race', %s, max_results => 1)"
WAYS: dict[str, Callable[[str, bool], Insert]] = {
    function.__name__: function for function in (sql, table, python_many)
}


def run(race: Race, is_unique: bool) -> Outcome:
    """Run a race on a new corpus and count what it left."""
    with fresh_database() as bench:
        corpus = _prepare(bench, race, is_unique)
        start = time.perf_counter()
        left_out, failures = _race(bench.db.url, race, is_unique)
        seconds = time.perf_counter() - start
        stored = _stored(bench, race)
        if len(stored) != 2 * race.pairs - left_out:
            failures[f"{left_out} were left out, but {len(stored)} are stored"] += 1
        counts = Counter(number // 2 for number in stored)
        both = sum(count == 2 for count in counts.values())
        twins = sum(1 for _ in corpus.pairs())
        if twins != both and corpus.config.is_exact:
            failures[
                f"pairs() finds {twins} twins, but both documents of {both} pairs are stored"
            ] += 1
    return Outcome(twins, race.pairs - len(counts), seconds, +failures)


def _prepare(bench: Bench, race: Race, is_unique: bool) -> ts.Corpus:
    settings = {"threshold": 0.8, "recall": 1.0, "is_unique": is_unique} | race.settings
    corpus = bench.db.create_corpus(CORPUS, **settings)
    if race.way == "table":
        bench.connection.execute("CREATE TABLE race (id bigint PRIMARY KEY, body text)")
        corpus.attach("race", "id", "body", "inline")
    return corpus


def _race(url: str, race: Race, is_unique: bool) -> tuple[int, Counter[str]]:
    """Run the sessions, and return how many documents they left out and their errors."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.unique_races", "textsim_db.database"])
    counter, results = context.Value("q", 0), context.Queue()
    barrier = context.Barrier(race.sessions)
    sessions = [
        context.Process(
            target=_session, args=(url, race, is_unique, counter, barrier, results), daemon=True
        )
        for _ in range(race.sessions)
    ]
    for session in sessions:
        session.start()
    left_out, failures = 0, Counter[str]()
    for _ in sessions:
        count, errors_of_session = results.get()
        left_out += count
        failures += errors_of_session
    for session in sessions:
        session.join()
    return left_out, failures


def _session(
    url: str, race: Race, is_unique: bool, counter: Any, barrier: Any, results: Any
) -> None:
    """Insert documents until the counter is at the end."""
    insert = WAYS[race.way](url, is_unique)
    size = BATCH if race.way == "python_many" else 1
    failures: Counter[str] = Counter()
    left_out = 0
    barrier.wait()
    while True:
        with counter.get_lock():
            turn = counter.value
            counter.value += 1
        block, side = divmod(turn, 2)
        numbers = range(2 * size * block + side, min(2 * size * (block + 1), 2 * race.pairs), 2)
        if not numbers:
            break
        try:
            left_out += insert([(str(number), text_of(number)) for number in numbers])
        except (psycopg.Error, ts.TextsimError) as error:
            failures[f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"] += 1
            left_out += size
    results.put((left_out, failures))


def _stored(bench: Bench, race: Race) -> list[int]:
    """Return the numbers of the stored documents; or of the rows of an attached table."""
    column, relation = "key", bench.relation("document", CORPUS)
    if race.way == "table":
        column, relation = "id", "race"
    rows = bench.connection.execute(f"SELECT {column}::bigint FROM {relation}".encode())
    return [number for (number,) in rows]
