"""The works that are killed, such as loads and rebuilds, with the checks after each kill."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg

import textsim_db as ts
from tests.crash import works
from tests.crash.checks import (
    Findings,
    Model,
    check_clusters,
    check_contents,
    check_corpus,
    check_leftovers,
    check_searches,
    documents,
)
from tests.crash.stage import REBUILT_DOCUMENTS, SETTINGS, Running, Stage, is_at_work, pending
from tests.crash.works import Changes
from tests.support import unique_writers
from tests.support.connections import Connection
from tests.support.waiting import wait_for
from textsim_db.settings.named_values import ModeName


@dataclass
class Work:
    """One kind of work: how to prepare, begin, check and complete it."""

    name: str
    kinds: tuple[str, ...]
    seconds: float  # the process is killed before this time is over
    findings: Findings = field(default_factory=Findings)

    def prepare(self, db: ts.Database) -> None:
        """Create the corpora and tables of the work, once."""

    def begin(self, stage: Stage, first: int) -> None:
        """Start the processes."""
        raise NotImplementedError

    def check(self, stage: Stage) -> None:
        """Compare the stored documents with the journals, right after the kill."""
        raise NotImplementedError

    def complete(self, stage: Stage, first: int) -> None:
        """Run the interrupted work again, and check the result."""
        raise NotImplementedError


class Load(Work):
    """Two clients load into one corpus; every second time, on average, it is empty."""

    clients = 2

    def prepare(self, db: ts.Database) -> None:
        self.versions: dict[str, int] = {}
        db.create_corpus("loaded", **SETTINGS)

    def begin(self, stage: Stage, first: int) -> None:
        if stage.rng.random() < 0.5:
            self.versions = {}
            with ts.connect(stage.url) as db:
                db.drop_corpus("loaded")
                db.create_corpus("loaded", **SETTINGS)
        for number in range(self.clients):
            stage.spawn("load", number, first)

    def check(self, stage: Stage) -> None:
        with ts.connect(stage.url) as db, psycopg.connect(stage.url) as connection:
            rows = documents(connection, "loaded")
            texts = dict(rows)
            model = Model()
            model.versions = self.versions
            for running in stage.running:
                self._replay(running, model, texts)
            check_contents(rows, model.texts, self.findings)
            check_corpus(db.corpus("loaded"), self.findings)

    def _replay(self, running: Running, model: Model, texts: dict[str, str]) -> None:
        """Apply the committed batches of a journal to the model; each batch is a transaction."""
        keys = works.load_keys(running.job.number)
        begun = acknowledged = 0
        for entry in running.entries:
            if "begin" in entry:
                begun, acknowledged = entry["begin"], 0
            elif "done" in entry:
                model.apply(dict.fromkeys(keys[acknowledged : entry["given"]], begun))
                self.findings.transactions += 1
                self.findings.documents += entry["given"] - acknowledged
                acknowledged = entry["given"]
        if begun and acknowledged < len(keys):
            batch = keys[acknowledged : acknowledged + works.LOAD_BATCH]
            model.resolve_doubt(dict.fromkeys(batch, begun), texts, self.findings)

    def complete(self, stage: Stage, first: int) -> None:
        with ts.connect(stage.url) as db, psycopg.connect(stage.url) as connection:
            corpus = db.corpus("loaded")
            for number in range(self.clients):
                stored = corpus.add_many(works.load_of(number, first)).stored
                expected = sum(self.versions.get(key) != first for key in works.load_keys(number))
                if stored != expected:
                    self.findings.problems.append(f"{stored} documents were stored, not {expected}")
                self.versions.update(dict.fromkeys(works.load_keys(number), first))
            model = Model()
            model.versions = self.versions
            check_contents(documents(connection, "loaded"), model.texts, self.findings)
            check_corpus(corpus, self.findings)
            check_searches(corpus, model.texts, self.findings)
            check_leftovers(db, connection, self.findings)


class Transactions(Work):
    """Clients whose transactions change a few keys each, and workers that index the changes."""

    corpus: str
    tables: tuple[str, ...] = ()
    workers = 2

    def prepare(self, db: ts.Database) -> None:
        self.model = Model()
        corpus = db.create_corpus(self.corpus, **SETTINGS)
        corpus.track(mode=self.mode)
        with psycopg.connect(db.url, autocommit=True) as connection:
            for table in self.tables:
                columns = "(id bigint PRIMARY KEY, body text)"
                connection.execute(f"CREATE TABLE {table} {columns}".encode())
                corpus.attach(table, "id", "body", self.mode)
                self._insert_cluster(connection, table)
        db.worker().run(until_idle=True)

    mode: ModeName = "queue"

    def _insert_cluster(self, connection: Connection, table: str) -> None:
        """Insert rows that match and that no client changes, so that there always is a cluster."""
        changes: Changes = {str(2 * works.KEYS + i): 0 for i in range(works.SIMILAR)}
        for key in changes:
            statement = f"INSERT INTO {table} VALUES (%s, %s)".encode()
            connection.execute(statement, [int(key), works.text_of(key, 0)])
        self.model.apply(changes)

    def begin(self, stage: Stage, first: int) -> None:
        for number in range(self.workers):
            stage.spawn("work", number, first)

    def check(self, stage: Stage) -> None:
        with ts.connect(stage.url) as db, psycopg.connect(stage.url) as connection:
            committed = self.committed(connection)
            self.replay(stage, dict(committed))
            check_contents(committed, self.model.texts, self.findings)
            check_corpus(db.corpus(self.corpus), self.findings)

    def replay(self, stage: Stage, texts: dict[str, str]) -> None:
        """Apply the committed transactions of the journals to the model."""
        for running in stage.running:
            begun: dict[int, Changes] = {}
            done: dict[int, bool] = {}
            for entry in running.entries:
                if "changes" in entry:
                    begun[entry["begin"]] = entry["changes"]
                elif "undone" in entry:
                    done[entry["undone"]] = False
                elif "done" in entry:
                    done.setdefault(entry["done"], True)
            for number, changes in begun.items():
                if number not in done:
                    self.model.resolve_doubt(changes, texts, self.findings)
                elif done[number]:
                    self.model.apply(changes)
                    self.findings.transactions += 1
                    self.findings.documents += len(changes)

    def committed(self, connection: Connection) -> list[tuple[str, str]]:
        """Return key and text of every row that the transactions have left."""
        return [
            row
            for table in self.tables
            for row in connection.execute(f"SELECT id::text, body FROM {table}".encode()).fetchall()
        ]

    def complete(self, stage: Stage, first: int) -> None:
        """Start a worker for each that was killed, and have all of them index what is pending."""
        for _ in range(self.workers - sum(map(is_at_work, stage.running))):
            stage.spawn("work", 0, first)
        with ts.connect(stage.url) as db, psycopg.connect(stage.url, autocommit=True) as connection:
            self.finish(stage, db, first)
            try:
                wait_for(lambda: not pending(connection))
            except AssertionError:
                self.findings.problems.append("the workers have not indexed all changes")
            corpus = db.corpus(self.corpus)
            check_contents(documents(connection, self.corpus), self.model.texts, self.findings)
            self.findings.problems += [f"differs: {difference}" for difference in corpus.drift()]
            check_corpus(corpus, self.findings)
            check_clusters(connection, corpus, self.findings)
            check_searches(corpus, self.model.texts, self.findings)
            check_leftovers(db, connection, self.findings)

    def finish(self, stage: Stage, db: ts.Database, first: int) -> None:
        """Repeat other work that was interrupted."""


class Queue(Transactions):
    """Clients that write an attached table, and workers that index it."""

    corpus = "queued"
    tables = ("queued_rows",)

    def begin(self, stage: Stage, first: int) -> None:
        super().begin(stage, first)
        for number in range(2):
            stage.spawn("write_queue", number, first)


class Inline(Transactions):
    """Clients whose own transactions index their writes, by SQL functions and by triggers."""

    corpus = "inline"
    tables = ("inline_rows",)
    mode = "inline"

    def begin(self, stage: Stage, first: int) -> None:
        super().begin(stage, first)
        stage.spawn("add_inline", 0, first)
        stage.spawn("write_inline", 1, first)

    def committed(self, connection: Connection) -> list[tuple[str, str]]:
        texts = documents(connection, self.corpus)
        rows = super().committed(connection)
        indexed = [(key, text) for key, text in texts if not key.startswith("s")]
        if sorted(indexed) != sorted(rows):
            self.findings.problems.append("the documents of an inline table differ from its rows")
        return texts


def _is_indexed(db: ts.Database, connection: Connection) -> bool:
    """Run a worker, and say whether nothing is left; it skips a change that must wait for a second."""
    db.worker().run(until_idle=True)
    return not pending(connection)


class Unique(Work):
    """Clients that write similar documents and rows to a unique corpus at random."""

    clients = 4

    def prepare(self, db: ts.Database) -> None:
        with psycopg.connect(db.url, autocommit=True) as connection:
            unique_writers.prepare(db, connection, "guards")

    def begin(self, stage: Stage, first: int) -> None:
        stage.spawn("work", 0, first)
        for number in range(self.clients):
            stage.spawn("write_unique", number, first)

    def check(self, stage: Stage) -> None:
        for running in stage.running:
            self.findings.transactions += sum("done" in entry for entry in running.entries)
        self._compare(stage)

    def complete(self, stage: Stage, first: int) -> None:
        """Write again, in this process, and index the words of all documents."""
        with ts.connect(stage.url) as db, psycopg.connect(stage.url, autocommit=True) as connection:
            client = unique_writers.Client(db, str(stage.rng.random()))
            client.run()
            client.connection.close()
            faults = [name for name in client.outcomes if name.startswith("fault: ")]
            self.findings.problems += faults
            wait_for(lambda: _is_indexed(db, connection))
            check_corpus(db.corpus("c"), self.findings)
            check_leftovers(db, connection, self.findings)
        self._compare(stage)

    def _compare(self, stage: Stage) -> None:
        """Find twins by brute force, and compare the tables with their documents."""
        with ts.connect(stage.url) as db, psycopg.connect(stage.url, autocommit=True) as connection:
            self.findings.problems += unique_writers.faults_of(db, connection, stage.rng)


class Rebuild(Transactions):
    """A corpus is rebuilt with its attached table, while clients write into both."""

    corpus = "rebuilt"
    tables = ("rebuilt_rows",)
    workers = 1

    def prepare(self, db: ts.Database) -> None:
        super().prepare(db)
        self.seed = db.corpus(self.corpus).config.seed
        base: Changes = {f"b{i}": 1 for i in range(REBUILT_DOCUMENTS)}
        self.model.apply(base)
        corpus = db.corpus(self.corpus)
        corpus.add_many((key, works.text_of(key, 1)) for key in base)
        corpus.update_clusters()

    def begin(self, stage: Stage, first: int) -> None:
        super().begin(stage, first)
        stage.spawn("rebuild", 0, first)
        stage.spawn("add_rebuilt", 0, first)
        stage.spawn("write_rebuilt", 0, first)

    def committed(self, connection: Connection) -> list[tuple[str, str]]:
        by_hand = [row for row in documents(connection, self.corpus) if not row[0].isdigit()]
        return by_hand + super().committed(connection)

    def check(self, stage: Stage) -> None:
        possible = {self.seed}
        for running in stage.running:
            if running.target == "rebuild":
                for entry in running.entries:
                    if "begin" in entry:
                        possible.add(entry["begin"])
                    elif "done" in entry:
                        possible = {entry["done"]}
                        self.findings.transactions += 1
        with ts.connect(stage.url) as db:
            self.seed = db.corpus(self.corpus).config.seed
        if self.seed not in possible:
            self.findings.problems.append(f"the seed is {self.seed}; expected one of {possible}")
        super().check(stage)

    def finish(self, stage: Stage, db: ts.Database, first: int) -> None:
        self.seed = first
        if not db.corpus(self.corpus).rebuild(seed=first):
            self.findings.problems.append("the repeated rebuild did nothing")
