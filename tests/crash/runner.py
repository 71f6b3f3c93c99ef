"""Starts the processes of a work, kills one of them or the server, and looks at what is left."""

from __future__ import annotations

import multiprocessing
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
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
from tests.crash.works import Changes, Job, read
from tests.support.catalog import catalog
from tests.support.connections import Connection
from tests.support.embedded import postmaster
from tests.support.servers import Server
from tests.support.steps import SECOND, second_step
from textsim_db.db import embedded_server, schema

PATIENCE_SECONDS = 60.0
KINDS = ("client", "worker", "backend", "server", "group")
"""What is killed; server: the postmaster alone, group: it and every process of it."""
CLIENT = "killed-client"
SETTINGS: dict[str, Any] = {"shingle": "word:2", "num_hashes": 32}
REBUILT_DOCUMENTS = 2000
FIRST = 100_000
"""Versions of texts that are new with each kill."""


@dataclass
class Running:
    """A process of a work; target: the function of works.py that it runs."""

    target: str
    process: BaseProcess
    job: Job

    @property
    def entries(self) -> list[dict[str, Any]]:
        return read(self.job.journal)

    @property
    def is_worker(self) -> bool:
        return self.target == "work"


class Stage:
    """A server of its own, and the processes that are started and killed on it."""

    def __init__(self, folder: Path, seed: int, fsync: bool) -> None:
        self.folder = folder
        self.rng = random.Random(f"{seed} crash")
        self.url = embedded_server.start(folder)
        with psycopg.connect(self.url, autocommit=True) as connection:
            if not fsync:
                connection.execute("ALTER SYSTEM SET fsync = off")
            elif sys.platform == "linux":
                # Recovery writes out all files of all databases; one by one that takes seconds.
                connection.execute("ALTER SYSTEM SET recovery_init_sync_method = syncfs")
            connection.execute("SELECT pg_reload_conf()")
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.crash.preload"])
        self._numbers = count()
        self._journals = folder / "journals"
        self._journals.mkdir()
        # Workers go on when the clients are told to stop: they have to do the rest.
        self._stop_clients, self._stop_workers = folder / "stop-clients", folder / "stop-workers"
        self.running: list[Running] = []

    def spawn(self, target: str, number: int, first: int, url: str = "") -> Running:
        journal = self._journals / f"{next(self._numbers):05d}-{target}.jsonl"
        seed = str(self.rng.random())
        address = f"{url or self.url}&application_name={CLIENT if target != 'work' else 'worker'}"
        stop = self._stop_workers if target == "work" else self._stop_clients
        job = Job(target, address, journal, stop, seed, number, first)
        process = self._context.Process(target=works.run, args=[job], daemon=True)
        process.start()
        started = Running(target, process, job)
        self.running.append(started)
        return started

    def wait_for_all(self) -> None:
        """Wait until every client has begun."""
        wait(
            lambda: (
                all(one.is_worker or one.job.journal.exists() for one in self.running)
                and all(one.is_worker or one.entries for one in self.running)
            ),
            "clients to begin",
        )

    def kill(self, kind: str) -> None:
        """Kill a process with SIGKILL."""
        if kind in ("client", "worker"):
            chosen = self.rng.choice(
                [one for one in self.running if one.is_worker == (kind == "worker")]
            )
            chosen.process.kill()
            chosen.process.join()
            return
        server = postmaster(self.folder)
        children = server.children(recursive=True)
        if kind == "backend":
            clients = [child for child in children if _is_client(child)]
            victims = [self.rng.choice(clients or children)]
        else:
            victims = [server, *(children if kind == "group" else [])]
        for victim in victims:
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                continue
        for victim in victims:
            victim.wait(PATIENCE_SECONDS)
        if kind == "backend":
            # Until the postmaster has noticed, and ends the other ones.
            wait(lambda: not psutil.pid_exists(victims[0].pid), "the postmaster")

    def recover(self, kind: str, tally: Tally) -> None:
        """Start the server again if it was killed, and have all clients end.

        Some of them have tried again what they were at, and go on.
        """
        self.url = embedded_server.start(self.folder)
        self._stop_clients.touch()
        for one in self.running:
            if not one.is_worker:
                one.process.join(PATIENCE_SECONDS)
                if one.process.is_alive():
                    tally.broken.append(f"{one.target} hangs after the kill of a {kind}")
                    one.process.kill()
        self._stop_clients.unlink(missing_ok=True)
        # The server may still be at the last statement of a client that is dead.
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait(lambda: not connection.execute(_CLIENTS, [CLIENT]).fetchall(), "dead clients")

    def finish(self, tally: Tally) -> None:
        """End the workers, and see that nothing has failed."""
        self._stop_workers.touch()
        for one in self.running:
            one.process.join(PATIENCE_SECONDS)
            if one.process.is_alive():
                tally.broken.append(f"{one.target} does not stop")
                one.process.kill()
                one.process.join()
            if one.process.exitcode not in (0, -signal.SIGKILL):
                tally.broken.append(f"{one.target} exited with {one.process.exitcode}")
            for entry in one.entries:
                if str(entry.get("ended", "")).startswith("failed"):
                    tally.broken.append(f"{one.target} {entry['ended']}")
        self.running.clear()
        self._stop_workers.unlink()

    def close(self) -> None:
        for one in self.running:
            one.process.kill()
            one.process.join()


_CLIENTS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"


def wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s for {what}")
        time.sleep(0.02)


def _is_client(process: psutil.Process) -> bool:
    """Say whether a process of the server serves a connection to a database of these tests."""
    try:
        title = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return title.startswith(f"postgres: postgres {embedded_server.DATABASE}")


def _is_at_work(one: Running) -> bool:
    return one.is_worker and one.process.is_alive()


def _pending(connection: Connection) -> bool:
    return bool(connection.execute("SELECT FROM textsim.pending LIMIT 1").fetchall())


@dataclass
class Work:
    """One kind of work: how it is prepared and begun, what to check, how it is completed."""

    name: str
    kinds: tuple[str, ...]
    seconds: float  # the kill comes within so many after the start
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
            found = dict(rows)
            model = Model()
            model.versions = self.versions
            for one in stage.running:
                self._replay(one, model, found)
            check_contents(rows, model.texts, self.tally)
            check_corpus(db.corpus("loaded"), self.tally)

    def _replay(self, one: Running, model: Model, found: dict[str, str]) -> None:
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
            model.settle(dict.fromkeys(batch, begun), found, self.tally)

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

    def replay(self, stage: Stage, found: dict[str, str]) -> None:
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
                    self.model.settle(changes, found, self.tally)
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
        for _ in range(self.workers - sum(map(_is_at_work, stage.running))):
            stage.spawn("work", 0, first)
        with ts.connect(stage.url) as db, psycopg.connect(stage.url, autocommit=True) as connection:
            try:
                wait(lambda: not _pending(connection), "workers to finish")
            except TimeoutError as error:
                self.tally.broken.append(str(error))
            self.finish(stage, db, first)
            corpus = db.corpus(self.corpus)
            check_contents(documents(connection, self.corpus), self.model.texts, self.tally)
            self.tally.broken += [f"differs: {found}" for found in corpus.drift()]
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
        found = documents(connection, self.corpus)
        rows = super().committed(connection)
        indexed = [(key, text) for key, text in found if not key.startswith("s")]
        if sorted(indexed) != sorted(rows):
            self.tally.broken.append("a table in mode inline is not what is indexed")
        return found


class Rebuild(Transactions):
    """A corpus that is rebuilt, and its table moved, while others write into both."""

    corpus = "rebuilt"
    tables = ("rebuilt_rows",)
    workers = 1

    def prepare(self, db: ts.Database) -> None:
        super().prepare(db)
        self.seed = db.corpus(self.corpus).config.seed
        base = {f"b{i}": 1 for i in range(REBUILT_DOCUMENTS)}
        self.model.apply(dict(base))
        db.corpus(self.corpus).add_many(self.model.texts.items())

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
        for one in stage.running:
            if one.target == "rebuild":
                for entry in one.entries:
                    if "begin" in entry:
                        possible.add(entry["begin"])
                    elif "done" in entry:
                        possible = {entry["done"]}
                        self.tally.transactions += 1
        with ts.connect(stage.url) as db:
            self.seed = db.corpus(self.corpus).config.seed
        if self.seed not in possible:
            self.tally.broken.append(f"the seed is {self.seed}, which is none of {possible}")
        super().check(stage)

    def finish(self, stage: Stage, db: ts.Database, first: int) -> None:
        self.seed = first
        if not db.corpus(self.corpus).rebuild(seed=first):
            self.tally.broken.append("the rebuild that was run again did nothing")


class Migrate(Work):
    """The schema of a database with rows in it, taken back and up again."""

    target = "migrate"
    newest = SECOND
    database = f"{embedded_server.DATABASE}_migrated"

    def prepare(self, db: ts.Database) -> None:
        self.server = Server(db.url, "")
        self.template = f"{self.database}_template"
        url = self.server.create(self.template, "ENCODING 'UTF8' TEMPLATE template0")
        self.fill(url)
        self.catalog = self.catalog_of(url)
        self.rows = self.rows_of(url)

    def fill(self, url: str) -> None:
        with second_step():
            ts.install(url)
            self.fill_corpus(url)

    def fill_corpus(self, url: str) -> None:
        with ts.connect(url) as db, psycopg.connect(url, autocommit=True) as connection:
            corpus = db.create_corpus("c", **SETTINGS)
            connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
            corpus.attach("t", "id", "body")
            corpus.add_many((f"k{i}", works.text_of(f"k{i}", 1)) for i in range(200))
            for i in range(20):
                text = works.text_of(str(i), 1)
                connection.execute("INSERT INTO t VALUES (%s, %s)", [i, text])
                connection.execute("SELECT textsim.add('c', %s, %s)", [f"s{i}", text])

    def catalog_of(self, url: str) -> dict[str, list[tuple[Any, ...]]]:
        """Return what the schema consists of, but for the numbers of columns that came and went."""
        found = catalog(url)
        found["columns"] = sorted(
            ((row[0], *row[2:]) for row in found["columns"] if not row[10]), key=repr
        )
        return found

    def rows_of(self, url: str) -> list[Any]:
        """Return what is stored in it."""
        with psycopg.connect(url) as connection:
            return [
                sorted(documents(connection, "c")),
                *(
                    connection.execute(f"SELECT {columns} ORDER BY 1, 2".encode()).fetchall()
                    for columns in (
                        "name, id, seed, a, b FROM textsim.corpus",
                        "id, corpus_id, relation, mode, active FROM textsim.source",
                        "id, corpus_id, source_id, keys FROM textsim.pending",
                    )
                ),
            ]

    def begin(self, stage: Stage, first: int) -> None:
        self.server.url = stage.url
        self.server.drop(self.database)
        self.url = self.server.create(self.database, f'TEMPLATE "{self.template}"')
        stage.spawn(self.target, 0, first, self.url)

    def check(self, stage: Stage) -> None:
        self.server.url = stage.url
        self.url = self.server.address(self.database)
        (one,) = stage.running
        possible = {self.newest}
        for entry in one.entries:
            if "begin" in entry:
                possible.add(entry["begin"])
            elif "done" in entry:
                possible = {entry["done"]}
                self.tally.transactions += 1
        self.tally.doubtful += len(possible) - 1
        with psycopg.connect(self.url) as connection:
            found = schema.current(connection) or "base"
        if found not in possible:
            self.tally.lost += 1
            self.tally.broken.append(f"the schema is at {found}, which is none of {possible}")
        self.check_rows("right after the kill")

    def check_rows(self, when: str) -> None:
        if self.rows_of(self.url) != self.rows:
            self.tally.lost += 1
            self.tally.broken.append(f"rows of a migrated database differ {when}")

    def complete(self, stage: Stage, first: int) -> None:
        with second_step():
            self.upgrade()

    def upgrade(self) -> None:
        ts.install(self.url)
        found = self.catalog_of(self.url)
        self.tally.broken += [
            f"the schema is another one: {name}"
            for name, rows in self.catalog.items()
            if found[name] != rows
        ]
        self.check_rows("after the upgrade")
        with ts.connect(self.url) as db, psycopg.connect(self.url) as connection:
            check_corpus(db.corpus("c"), self.tally)
            db.worker().run(until_idle=True)
            check_corpus(db.corpus("c"), self.tally)
            check_leftovers(db, connection, self.tally)


class Install(Migrate):
    """The schema of an empty database, installed and removed."""

    target = "install"
    newest = schema.head()
    database = f"{embedded_server.DATABASE}_installed"

    def fill(self, url: str) -> None:
        ts.install(url)

    def rows_of(self, url: str) -> list[Any]:
        """Return nothing, where the schema is there as a whole or not at all."""
        with psycopg.connect(url) as connection:
            if schema.current(connection) is None:
                return connection.execute(
                    "SELECT nspname FROM pg_namespace WHERE nspname = 'textsim'"
                ).fetchall()
        same = self.catalog_of(url) == self.catalog
        return [] if same else ["a part of the schema is there"]

    def complete(self, stage: Stage, first: int) -> None:
        ts.install(self.url)
        if self.catalog_of(self.url) != self.catalog:
            self.tally.broken.append("the schema that was installed again is another one")


def make_works() -> list[Work]:
    return [
        Load("bulk load", ("client", "backend", "server", "group"), 1.5),
        Queue("worker", KINDS, 1.0),
        Inline("inline writes", KINDS, 1.0),
        Rebuild("rebuild", KINDS, 1.5),
        Migrate("migration", ("client", "backend", "server", "group"), 0.4),
        Install("installation", ("client", "backend", "server", "group"), 1.2),
    ]


def crash(
    folder: Path,
    kills: int,
    seed: int,
    fsync: bool = True,
    tell: Callable[[str], None] = print,
) -> list[Work]:
    """Kill so often, each kind of work in turn, and return what was found.

    fsync: have the server write commits to the disk, which no SIGKILL needs.
    """
    stage = Stage(folder, seed, fsync)
    try:
        found = make_works()
        ts.install(stage.url)
        with ts.connect(stage.url) as db:
            for work in found:
                work.prepare(db)
        kinds: dict[str, list[str]] = {work.name: [] for work in found}
        for number in range(kills):
            work = found[number % len(found)]
            left = kinds[work.name]
            if not left:
                left += stage.rng.sample(work.kinds, len(work.kinds))
            _kill_once(stage, work, left.pop(), (number + 1) * FIRST, tell)
    finally:
        stage.close()
    return found


def _kill_once(
    stage: Stage, work: Work, kind: str, first: int, tell: Callable[[str], None]
) -> None:
    start, before = time.monotonic(), work.tally.faults
    work.begin(stage, first)
    stage.wait_for_all()
    moment = stage.rng.uniform(0, work.seconds)
    time.sleep(moment)
    stage.kill(kind)
    work.tally.kills[kind] += 1
    stage.recover(kind, work.tally)
    try:
        work.check(stage)
        work.complete(stage, first + FIRST // 2)
    except (ts.TextsimError, psycopg.Error) as error:
        work.tally.broken.append(f"what was run again failed: {error!r}")
    stage.finish(work.tally)
    tell(
        f"{first // FIRST:4d}. {work.name}: {kind} killed after {moment:.2f} s, "
        f"{work.tally.faults - before} faults ({time.monotonic() - start:.1f} s)"
    )


def table(found: Iterable[Work]) -> str:
    """Return the table of what was killed and what was found."""
    heads = [*KINDS, "transactions", "documents", "in doubt", "lost", "doubled", "broken"]
    rows = {work.name: _figures(work.tally) for work in found}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [f"{'killed:':14}" + "".join(f"{head:>{len(head) + 2}}" for head in heads)]
    for name, figures in rows.items():
        cells = zip(figures, heads, strict=True)
        lines.append(f"{name:14}" + "".join(f"{n:>{len(head) + 2},}" for n, head in cells))
    return "\n".join(lines)


def _figures(tally: Tally) -> list[int]:
    return [
        *(tally.kills[kind] for kind in KINDS),
        tally.transactions,
        tally.documents,
        tally.doubtful,
        tally.lost,
        tally.duplicated,
        len(tally.broken),
    ]
