"""The works that are killed: a load, transactions, workers, and what must hold after each."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg

import textsim_db as ts
from tests.crash import works
from tests.crash.checks import (
    Model,
    Tally,
    check_contents,
    check_corpus,
    check_found,
    check_leftovers,
    documents,
)
from tests.crash.stage import (
    SETTINGS,
    Running,
    Stage,
    is_at_work,
    pending,
    wait,
)
from tests.crash.works import Changes
from tests.support.connections import Connection


@dataclass
class Work:
    """One kind of work: how it is prepared and begun, what to check, how it is completed."""

    name: str
    kinds: tuple[str, ...]
    seconds: float  # the process is killed before this time is over
    tally: Tally = field(default_factory=Tally)

    def prepare(self, db: ts.Database) -> None:
        """Make what the work needs, once."""

    def begin(self, stage: Stage, first: int) -> None:
        """Start the processes."""
        raise NotImplementedError

    def check(self, stage: Stage) -> None:
        """Compare what is there with the journals, right after the kill."""
        raise NotImplementedError

    def complete(self, stage: Stage, first: int) -> None:
        """Run the interrupted work again, and compare what comes out."""
        raise NotImplementedError


class Load(Work):
    """Two clients load into one corpus, which is empty every other time."""

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
            for one in stage.running:
                self._replay(one, model, texts)
            check_contents(rows, model.texts, self.tally)
            check_corpus(db.corpus("loaded"), self.tally)

    def _replay(self, one: Running, model: Model, texts: dict[str, str]) -> None:
        """Take from a journal what was committed; each batch is a transaction."""
        keys = works.load_keys(one.job.number)
        begun = given = 0
        for entry in one.entries:
            if "begin" in entry:
                begun, given = entry["begin"], 0
            elif "done" in entry:
                model.apply(dict.fromkeys(keys[given : entry["given"]], begun))
                self.tally.transactions += 1
                self.tally.documents += entry["given"] - given
                given = entry["given"]
        if begun and given < len(keys):
            batch = keys[given : given + works.LOAD_BATCH]
            model.settle(dict.fromkeys(batch, begun), texts, self.tally)

    def complete(self, stage: Stage, first: int) -> None:
        with ts.connect(stage.url) as db, psycopg.connect(stage.url) as connection:
            corpus = db.corpus("loaded")
            for number in range(self.clients):
                stored = corpus.add_many(works.load_of(number, first)).stored
                expected = sum(self.versions.get(key) != first for key in works.load_keys(number))
                if stored != expected:
                    self.tally.broken.append(f"{stored} documents were stored, not {expected}")
                self.versions.update(dict.fromkeys(works.load_keys(number), first))
            model = Model()
            model.versions = self.versions
            check_contents(documents(connection, "loaded"), model.texts, self.tally)
            check_corpus(corpus, self.tally)
            check_found(corpus, model.texts, self.tally)
            check_leftovers(db, connection, self.tally)


class Transactions(Work):
    """Clients with transactions of a few keys each, and what they write in."""

    corpus: str
    tables: tuple[str, ...] = ()
    workers = 2

    def prepare(self, db: ts.Database) -> None:
        self.model = Model()
        corpus = db.create_corpus(self.corpus, **SETTINGS)
        with psycopg.connect(db.url, autocommit=True) as connection:
            for table in self.tables:
                connection.execute(
                    f"CREATE TABLE {table} (id bigint PRIMARY KEY, body text)".encode()
                )
                corpus.attach(table, "id", "body", self.mode)

    mode = "queue"

    def begin(self, stage: Stage, first: int) -> None:
        for number in range(self.workers):
            stage.spawn("work", number, first)

    def check(self, stage: Stage) -> None:
        with ts.connect(stage.url) as db, psycopg.connect(stage.url) as connection:
            committed = self.committed(connection)
            self.replay(stage, dict(committed))
            check_contents(committed, self.model.texts, self.tally)
            check_corpus(db.corpus(self.corpus), self.tally)

    def replay(self, stage: Stage, texts: dict[str, str]) -> None:
        """Take from the journals what was committed."""
        for one in stage.running:
            begun: dict[int, Changes] = {}
            done: dict[int, bool] = {}
            for entry in one.entries:
                if "changes" in entry:
                    begun[entry["begin"]] = entry["changes"]
                elif "undone" in entry:
                    done[entry["undone"]] = False
                elif "done" in entry:
                    done.setdefault(entry["done"], True)
            for number, changes in begun.items():
                if number not in done:
                    self.model.settle(changes, texts, self.tally)
                elif done[number]:
                    self.model.apply(changes)
                    self.tally.transactions += 1
                    self.tally.documents += len(changes)

    def committed(self, connection: Connection) -> list[tuple[str, str]]:
        """Return what the transactions have left where they wrote, by key."""
        return [
            row
            for table in self.tables
            for row in connection.execute(f"SELECT id::text, body FROM {table}".encode()).fetchall()
        ]

    def complete(self, stage: Stage, first: int) -> None:
        """Have the workers that are left, and new ones for those that are not, do the rest."""
        for _ in range(self.workers - sum(map(is_at_work, stage.running))):
            stage.spawn("work", 0, first)
        with ts.connect(stage.url) as db, psycopg.connect(stage.url, autocommit=True) as connection:
            try:
                wait(lambda: not pending(connection), "workers to finish")
            except TimeoutError as error:
                self.tally.broken.append(str(error))
            self.finish(stage, db, first)
            corpus = db.corpus(self.corpus)
            check_contents(documents(connection, self.corpus), self.model.texts, self.tally)
            self.tally.broken += [f"differs: {difference}" for difference in corpus.drift()]
            check_corpus(corpus, self.tally)
            check_found(corpus, self.model.texts, self.tally)
            check_leftovers(db, connection, self.tally)

    def finish(self, stage: Stage, db: ts.Database, first: int) -> None:
        """Do again what else was interrupted."""


class Queue(Transactions):
    """Writers to an attached table, and the workers that index it."""

    corpus = "queued"
    tables = ("queued_rows",)

    def begin(self, stage: Stage, first: int) -> None:
        super().begin(stage, first)
        for number in range(2):
            stage.spawn("write_queue", number, first)


class Inline(Transactions):
    """Writers whose own transactions index: by SQL functions, and by triggers."""

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
            self.tally.broken.append("a table in mode inline is not what is indexed")
        return texts
