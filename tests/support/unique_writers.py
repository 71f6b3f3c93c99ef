"""Clients that write to a unique corpus at random, and brute force that looks for twins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import psycopg
from psycopg import errors

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.reference import jaccard, shingles

THRESHOLD = 0.8
FAMILIES = 60
WORDS = 20
KEYS = 40
"""Number of keys in each table, and among the documents of no table."""
TRANSACTIONS = 40
"""Number of transactions of each client in a round."""
TABLES = ("t_one", "t_other")
PROBES = 10
"""Number of texts that are tried after each round."""


def text(rng: random.Random) -> str:
    """Return a text of a family, with some words replaced: many texts match, and many nearly do."""
    family = rng.randrange(FAMILIES)
    words = [f"f{family}w{i}" for i in range(WORDS)]
    for _ in range(rng.randrange(4)):
        # A word at an end is in fewer shingles, so the similarity is nearer to the threshold.
        place = rng.choice([0, 1, WORDS - 2, WORDS - 1, rng.randrange(WORDS)])
        words[place] = f"e{rng.randrange(3)}"
    return " ".join(words[: rng.choice([WORDS, WORDS, WORDS - 2])])


class Client:
    """A session that writes at random."""

    def __init__(self, db: ts.Database, seed: str) -> None:
        self.rng = random.Random(seed)
        self.connection: Connection = psycopg.connect(db.url)
        self.corpus = db.corpus("c")
        self.outcomes: Counter[str] = Counter()
        self._operations: list[Callable[[], object]] = [
            *(self._add, self._add, self._add_unique, self._remove, self._insert, self._insert),
            *(
                self._insert_many,
                self._update,
                self._update,
                self._upsert,
                self._move,
                self._delete,
            ),
        ]

    def run(self) -> None:
        """Run the transactions of a round."""
        for _ in range(TRANSACTIONS):
            try:
                self.run_one()
            except (psycopg.Error, ts.TextsimError) as error:
                self.connection.rollback()
                self.outcomes[f"fault: {type(error).__name__}: {error}"] += 1

    def run_one(self) -> None:
        """Run a transaction; a twin, a key in use and a deadlock may end it."""
        try:
            if self.rng.random() < 0.1:
                self._add_many()
            else:
                self._transaction()
            self.outcomes["ended"] += 1
        except (errors.UniqueViolation, errors.DeadlockDetected) as error:
            self.connection.rollback()
            self.outcomes[type(error).__name__] += 1

    def _transaction(self) -> None:
        for _ in range(self.rng.choice([1, 1, 1, 2, 4])):
            if self.rng.random() < 0.5:
                self.rng.choice(self._operations)()
            else:
                self._in_savepoint(self.rng.choice(self._operations))
        if self.rng.random() < 0.2:
            self.connection.rollback()
        else:
            self.connection.commit()

    def _in_savepoint(self, operation: Callable[[], object]) -> None:
        try:
            with self.connection.transaction(force_rollback=self.rng.random() < 0.3):
                operation()
        except errors.UniqueViolation:
            self.outcomes["refused in a savepoint"] += 1

    def _run(self, statement: str, *values: object) -> None:
        self.connection.execute(statement.encode(), values)

    def _key(self) -> str:
        return f"s{self.rng.randrange(KEYS)}"

    def _row(self) -> tuple[str, int]:
        """Return a table and an id; the ids of the tables differ."""
        number = self.rng.randrange(len(TABLES))
        return TABLES[number], 1000 * number + self.rng.randrange(KEYS)

    def _add(self) -> None:
        self._run("SELECT textsim.add('c', %s, %s)", self._key(), text(self.rng))

    def _add_unique(self) -> None:
        self._run("SELECT * FROM textsim.add_unique('c', %s, %s)", self._key(), text(self.rng))

    def _remove(self) -> None:
        self._run("SELECT textsim.remove('c', %s)", self._key())

    def _add_many(self) -> None:
        keys = self.rng.sample(range(KEYS), 5)
        self.corpus.add_many([(f"s{key}", text(self.rng)) for key in keys])

    def _insert(self) -> None:
        table, row = self._row()
        self._run(f"INSERT INTO {table} VALUES (%s, %s)", row, text(self.rng))

    def _insert_many(self) -> None:
        table, row = self._row()
        texts = [text(self.rng) for _ in range(3)]
        self._run(
            f"INSERT INTO {table} SELECT %s::bigint + n, body "
            "FROM unnest(%s::text[]) WITH ORDINALITY o (body, n) ON CONFLICT (id) DO NOTHING",
            *(row, texts),
        )

    def _update(self) -> None:
        table, row = self._row()
        self._run(f"UPDATE {table} SET body = %s WHERE id = %s", text(self.rng), row)

    def _upsert(self) -> None:
        table, row = self._row()
        self._run(
            f"INSERT INTO {table} VALUES (%s, %s) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            *(row, text(self.rng)),
        )

    def _move(self) -> None:
        table, row = self._row()
        new_row = row // 1000 * 1000 + self.rng.randrange(KEYS)
        self._run(f"UPDATE {table} SET id = %s WHERE id = %s", new_row, row)

    def _delete(self) -> None:
        table, row = self._row()
        self._run(f"DELETE FROM {table} WHERE id = %s", row)


def prepare(db: ts.Database, connection: Connection) -> None:
    """Create the corpus and the tables."""
    db.create_corpus("c", threshold=THRESHOLD, recall=1.0, is_unique=True)
    for table in TABLES:
        connection.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, body text)".encode())
        connection.execute("SELECT textsim.attach('c', %s::regclass, 'id', 'body')", [table])


def faults_of(connection: Connection, rng: random.Random) -> list[str]:
    """Return what brute force finds wrong while no client writes."""
    documents = dict(connection.execute(_documents(connection)).fetchall())
    sets = {key: set(shingles(form, "word", 3)) for key, form in documents.items()}
    keys = sorted(sets)
    faults = [
        f"{a} and {b} match: {documents[a]!r} {documents[b]!r}"
        for i, a in enumerate(keys)
        for b in keys[:i]
        if jaccard(sets[a], sets[b]) >= THRESHOLD
    ]
    for number, table in enumerate(TABLES):
        rows = dict(connection.execute(f"SELECT id::text, body FROM {table}".encode()).fetchall())
        indexed = {
            k: form for k, form in documents.items() if k.isdigit() and int(k) // 1000 == number
        }
        if rows != indexed:
            faults.append(f"{table} differs from its documents: {rows.items() ^ indexed.items()}")
    return faults + _wrong_answers(connection, sets, rng)


def _documents(connection: Connection) -> bytes:
    """Return a statement that reads all documents."""
    ((number,),) = connection.execute("SELECT id FROM textsim.corpus WHERE name = 'c'").fetchall()
    return (
        "SELECT key, coalesce(normal_form, textsim._normal_form_of(word_ids)) "
        f"FROM textsim.document_{number}"
    ).encode()


def _wrong_answers(
    connection: Connection, sets: dict[str, set[str]], rng: random.Random
) -> list[str]:
    """Try texts, and return those that are refused or added against brute force."""
    faults = []
    for _ in range(PROBES):
        body = text(rng)
        own = set(shingles(body, "word", 3))
        expected = {
            key: value for key, other in sets.items() if (value := jaccard(own, other)) >= THRESHOLD
        }
        with connection.transaction() as savepoint:
            query = "SELECT key, similarity FROM textsim.add_unique('c', 'probe', %s)"
            found = dict(connection.execute(query, [body]).fetchall())
            if found != expected:
                faults.append(f"add_unique returns {found}, expected {expected} for {body!r}")
            raise psycopg.Rollback(savepoint)
    return faults
