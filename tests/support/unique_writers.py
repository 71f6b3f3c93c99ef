"""Clients that write to a unique corpus at random, and brute force that looks for twins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import psycopg
from psycopg import errors

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.reference import jaccard, shingles
from textsim_db.errors import CorpusChanged
from textsim_db.settings.named_values import GuardRules
from textsim_db.text.guard_lines import elements_apart

THRESHOLD = 0.8
SETTINGS: dict[str, dict[str, Any]] = {
    "exact, scoped": {"recall": 1.0, "scoped": True},
    "bands, expiring": {"num_hashes": 64, "bands": 32, "rows": 2, "keep_for": "1 day"},
    "exact": {"recall": 1.0},
    "guards": {
        "recall": 1.0,
        "guards": "numbers,negations,words",
        "guard_words": ["ea", "fbwa", "fcwbj"],
    },
}
"""Enough bands to miss no pair."""
PASSING = (
    *(CorpusChanged, errors.ObjectNotInPrerequisiteState),
    *(errors.UndefinedTable, errors.UndefinedFunction),
    errors.SerializationFailure,
)
"""Errors of a writer that began before the end of a rebuild, or whose row moved to another partition."""
FAMILIES = 60
WORDS = 20
KEYS = 40
"""Number of keys in each table, and among the documents of no table."""
TRANSACTIONS = 20
"""Number of transactions of each client in a round."""
TABLES = ("t_one", "t_other")
NUMBER = "SELECT id FROM textsim.corpus WHERE name = 'c'"
_LETTERS = str.maketrans("0123456789", "abcdefghij")
"""The guard numbers compares each word with a digit, so most words have none."""
PROBES = 10
"""Number of texts that are tried after each round."""


def text(rng: random.Random) -> str:
    """Return a text of a family, with some words replaced: many texts match, and many nearly do."""
    family = rng.randrange(FAMILIES)
    words = [f"f{family}w{i}".translate(_LETTERS) for i in range(WORDS)]
    for _ in range(rng.randrange(4)):
        # A word at an end is in fewer shingles, so the similarity is nearer to the threshold.
        place = rng.choice([0, 1, WORDS - 2, WORDS - 1, rng.randrange(WORDS)])
        words[place] = rng.choice(["ea", "eb", "17", "18", "not"])
    return " ".join(words[: rng.choice([WORDS, WORDS, WORDS - 2])])


def scope(corpus: ts.Corpus, rng: random.Random) -> str | None:
    return rng.choice(["x", "y"]) if corpus.config.scoped else None


class Client:
    """A session that writes at random."""

    def __init__(self, db: ts.Database, seed: str) -> None:
        self.rng = random.Random(seed)
        self.connection: Connection = psycopg.connect(db.url)
        self.corpus = db.corpus("c")
        self.outcomes: Counter[str] = Counter()
        self._operations: list[Callable[[], object]] = [
            *(self._add, self._add, self._add_unique, self._force, self._remove, self._add_listed),
            *(self._insert, self._insert, self._insert_many, self._update, self._update),
            *(self._upsert, self._move, self._delete, self._forget, self._reject),
        ]
        if self.corpus.config.scoped:  # no pair of two scopes is judged
            self._operations.append(self._lock_scope)
        else:
            self._operations.append(self._judge)
        if self.corpus.config.keep_for is not None:
            self._operations.append(self._expire)

    def run(self) -> None:
        """Run the transactions of a round."""
        for _ in range(TRANSACTIONS):
            try:
                self.run_one()
            except (psycopg.Error, ts.TextsimError, AssertionError) as error:
                self.connection.rollback()
                self.outcomes[f"fault: {type(error).__name__}: {error}"] += 1

    def run_one(self) -> None:
        """Run a transaction; a twin, a key in use, a deadlock and a rebuild may end it."""
        try:
            if self.rng.random() < 0.1:
                self._use_python()
            else:
                self._transaction()
            self.outcomes["ended"] += 1
        except (errors.UniqueViolation, errors.DeadlockDetected, *PASSING) as error:
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

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def _document(self) -> tuple[str, str, str | None]:
        """Return a key of no table, a text and a scope."""
        return f"s{self.rng.randrange(KEYS)}", text(self.rng), scope(self.corpus, self.rng)

    def _row(self) -> tuple[str, int]:
        """Return a table and an id; the ids of the tables differ."""
        number = self.rng.randrange(len(TABLES))
        return TABLES[number], 1000 * number + self.rng.randrange(KEYS)

    def _add(self) -> None:
        self._run("SELECT textsim.add('c', %s, %s, %s)", *self._document())

    def _add_unique(self) -> None:
        self._run("SELECT * FROM textsim.add_unique('c', %s, %s, %s)", *self._document())

    def _force(self) -> None:
        self._run("SELECT textsim.add('c', %s, %s, %s, force => true)", *self._document())

    def _remove(self) -> None:
        self._run("SELECT textsim.remove('c', %s)", self._document()[0])

    def _forget(self) -> None:
        """Its words go with the next rebuild."""
        self._run("SELECT FROM textsim.forget('c', ARRAY[%s])", self._document()[0])

    def _reject(self) -> None:
        try:
            with self.connection.transaction():
                self._run("SELECT textsim.reject('c', %s, 'spam')", self._document()[0])
        except errors.NoDataFound:
            self.outcomes["nothing to reject"] += 1

    def _add_listed(self) -> None:
        """Add the texts of a list that have no twin, in another order; none may be refused."""
        documents = {key: (body, of) for key, body, of in (self._document() for _ in range(4))}
        texts, scopes = map(list, zip(*documents.values(), strict=True))
        listed = (list(documents), texts, scopes if self.corpus.config.scoped else None)
        twins = self._run("SELECT key FROM textsim.twins_of('c', %s, %s, %s::text[])", *listed)
        remaining = documents.keys() - {key for (key,) in twins}
        for key in self.rng.sample(sorted(remaining), len(remaining)):
            try:
                self._run("SELECT textsim.add('c', %s, %s, %s)", key, *documents[key])
            except errors.UniqueViolation as error:
                raise AssertionError(f"after {twins} of {documents}: {error}") from error

    def _lock_scope(self) -> None:
        self._run("SELECT textsim.lock_corpus('c', %s)", scope(self.corpus, self.rng))

    def _judge(self) -> None:
        a, b = self.rng.sample([f"s{number}" for number in range(KEYS)], 2)
        self._run("SELECT textsim.judge('c', %s, %s, 'different')", a, b)

    def _expire(self) -> None:
        ((number,),) = self._run(NUMBER)
        statement = f"UPDATE textsim.document_{number} SET expires_at = now() WHERE key = %s"
        self._run(statement, self._document()[0])

    def _use_python(self) -> None:
        documents = [self._document() for _ in range(5)]
        if self.rng.random() < 0.5:
            self.corpus.add_unique(*documents[0])
        elif self.corpus.config.scoped:
            self.corpus.add_many(documents)
        else:
            self.corpus.add_many(document[:2] for document in documents)

    def _insert(self) -> None:
        table, row = self._row()
        statement = f"INSERT INTO {table} VALUES (%s, %s, %s)"
        self._run(statement, row, *self._document()[1:])

    def _insert_many(self) -> None:
        table, row = self._row()
        texts = [text(self.rng) for _ in range(3)]
        self._run(
            f"INSERT INTO {table} SELECT %s::bigint + n, body, %s "
            "FROM unnest(%s::text[]) WITH ORDINALITY o (body, n) ON CONFLICT (id) DO NOTHING",
            *(row, scope(self.corpus, self.rng), texts),
        )

    def _update(self) -> None:
        table, row = self._row()
        self._run(f"UPDATE {table} SET body = %s WHERE id = %s", text(self.rng), row)

    def _upsert(self) -> None:
        table, row = self._row()
        self._run(
            f"INSERT INTO {table} VALUES (%s, %s, %s) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body, scope = excluded.scope",
            *(row, *self._document()[1:]),
        )

    def _move(self) -> None:
        """Change a key; the row of a partitioned table moves to another partition."""
        table, row = self._row()
        new_row = row // 1000 * 1000 + self.rng.randrange(KEYS)
        self._run(f"UPDATE {table} SET id = %s WHERE id = %s", new_row, row)

    def _delete(self) -> None:
        table, row = self._row()
        self._run(f"DELETE FROM {table} WHERE id = %s", row)


def prepare(db: ts.Database, connection: Connection, settings: str = "exact") -> None:
    """Create the corpus and the tables, of which one has partitions."""
    corpus = db.create_corpus("c", threshold=THRESHOLD, is_unique=True, **SETTINGS[settings])
    until = "until timestamptz DEFAULT now() + '1 day'"
    columns = f"(id bigint PRIMARY KEY, body text, scope text, {until})"
    connection.execute(
        f"CREATE TABLE t_one {columns}; CREATE TABLE t_other {columns} PARTITION BY HASH (id);"
        "CREATE TABLE t_0 PARTITION OF t_other FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
        "CREATE TABLE t_1 PARTITION OF t_other FOR VALUES WITH (MODULUS 2, REMAINDER 1)".encode()
    )
    scope_column = "scope" if corpus.config.scoped else None
    expires = "until" if corpus.config.keep_for else None
    for table in TABLES:
        corpus.attach(table, "id", "body", scope=scope_column, expires=expires)


class Stored(NamedTuple):
    """A stored document."""

    text: str
    scope: str | None
    is_forced: bool
    shingles: set[str]

    def may_merge(self, other: Stored, rules: GuardRules) -> bool:
        """Return whether two documents are of one scope, and no guard keeps them apart."""
        one, another = (each.text.split() for each in (self, other))
        return self.scope == other.scope and not elements_apart(one, another, rules)


def faults_of(db: ts.Database, connection: Connection, rng: random.Random) -> list[str]:
    """Return what brute force finds wrong while no client writes."""
    documents = _documents(connection)
    rows = connection.execute("SELECT a, b FROM textsim.judgements('c')")
    different = {frozenset(pair) for pair in rows}
    rules = db.corpus("c").config.guard_rules
    faults = [
        f"{a} and {b} match: {one} {other}"
        for (a, one), (b, other) in combinations(documents.items(), 2)
        if one.may_merge(other, rules) and frozenset((a, b)) not in different
        if (value := jaccard(one.shingles, other.shingles)) >= THRESHOLD
        if value == 1 or not (one.is_forced or other.is_forced)
    ]
    for number, table in enumerate(TABLES):
        stored = dict(connection.execute(f"SELECT id::text, body FROM {table}".encode()).fetchall())
        own = [key for key in documents if key.isdigit() and int(key) // 1000 == number]
        indexed = {key: documents[key].text for key in own}
        if stored != indexed:
            faults.append(f"{table} differs from its documents: {stored.items() ^ indexed.items()}")
    return faults + _wrong_answers(db.corpus("c"), connection, documents, rng)


def _documents(connection: Connection) -> dict[str, Stored]:
    """Return all documents that have not expired, by key."""
    ((number,),) = connection.execute(NUMBER.encode()).fetchall()
    statement = (
        f"SELECT key, textsim._stored_form({number}, word_ids, normal_form), scope, forced "
        f"FROM textsim.document_{number} "
        "WHERE (expires_at > now() OR expires_at IS NULL) AND rejected IS NULL"
    )
    return {
        key: Stored(form, of, is_forced, set(shingles(form, "word", 3)))
        for key, form, of, is_forced in connection.execute(statement.encode())
    }


def _wrong_answers(
    corpus: ts.Corpus, connection: Connection, documents: dict[str, Stored], rng: random.Random
) -> list[str]:
    """Try texts, and return those that are refused or added against brute force."""
    faults = []
    for _ in range(PROBES):
        body, chosen = text(rng), scope(corpus, rng)
        own = Stored(body, chosen, False, set(shingles(body, "word", 3)))
        expected = {
            key: value
            for key, other in documents.items()
            if own.may_merge(other, corpus.config.guard_rules)
            and (value := jaccard(own.shingles, other.shingles)) >= THRESHOLD
        }
        with connection.transaction() as savepoint:
            added = "textsim.add_unique('c', 'probe', %s, %s) WHERE outcome = 'twin'"
            query = f"SELECT key, similarity FROM {added}".encode()
            found = dict(connection.execute(query, [body, chosen]).fetchall())
            if found != expected:
                faults.append(f"add_unique returns {found}, expected {expected} for {body!r}")
            raise psycopg.Rollback(savepoint)
    return faults
