"""Works that replace a whole corpus or the schema: rebuilds, migrations and installations."""

from __future__ import annotations

from typing import Any

import psycopg

import textsim_db as ts
from tests.crash import works
from tests.crash.checks import (
    check_corpus,
    check_leftovers,
    documents,
)
from tests.crash.scenarios import Transactions, Work
from tests.crash.stage import (
    REBUILT_DOCUMENTS,
    SETTINGS,
    Stage,
)
from tests.crash.works import Changes
from tests.support.catalog import schema_catalog
from tests.support.connections import Connection
from tests.support.servers import Server
from tests.support.steps import SECOND, second_step
from textsim_db.db import embedded_server, schema


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


class Migrate(Work):
    """The schema of a database with rows is downgraded and upgraded."""

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
        """Return the catalog of the schema, without dropped columns and without column numbers."""
        contents = schema_catalog(url)
        contents["columns"] = sorted(
            ((row[0], *row[2:]) for row in contents["columns"] if not row[10]), key=repr
        )
        return contents

    def rows_of(self, url: str) -> list[Any]:
        """Return the stored rows."""
        with psycopg.connect(url) as connection:
            return [
                sorted(documents(connection, "c")),
                *(
                    connection.execute(f"SELECT {columns} ORDER BY 1, 2".encode()).fetchall()
                    for columns in (
                        "name, id, seed, base FROM textsim.corpus",
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
        (running,) = stage.running
        possible = {self.newest}
        for entry in running.entries:
            if "begin" in entry:
                possible.add(entry["begin"])
            elif "done" in entry:
                possible = {entry["done"]}
                self.findings.transactions += 1
        self.findings.in_doubt += len(possible) - 1
        with psycopg.connect(self.url) as connection:
            revision = schema.current(connection) or "base"
        if revision not in possible:
            self.findings.lost += 1
            self.findings.problems.append(
                f"the schema is at {revision}; expected one of {possible}"
            )
        self.check_rows("right after the kill")

    def check_rows(self, when: str) -> None:
        if self.rows_of(self.url) != self.rows:
            self.findings.lost += 1
            self.findings.problems.append(f"rows of a migrated database differ {when}")

    def complete(self, stage: Stage, first: int) -> None:
        with second_step():
            self.upgrade()

    def upgrade(self) -> None:
        ts.install(self.url)
        contents = self.catalog_of(self.url)
        self.findings.problems += [
            f"the schema differs after the upgrade: {name}"
            for name, rows in self.catalog.items()
            if contents[name] != rows
        ]
        self.check_rows("after the upgrade")
        with ts.connect(self.url) as db, psycopg.connect(self.url) as connection:
            check_corpus(db.corpus("c"), self.findings)
            db.worker().run(until_idle=True)
            check_corpus(db.corpus("c"), self.findings)
            check_leftovers(db, connection, self.findings)


class Install(Migrate):
    """The schema of an empty database is installed and removed."""

    target = "install"
    newest = schema.head()
    database = f"{embedded_server.DATABASE}_installed"

    def fill(self, url: str) -> None:
        ts.install(url)

    def rows_of(self, url: str) -> list[Any]:
        """Return nothing if the schema is complete or absent, else a description."""
        with psycopg.connect(url) as connection:
            if schema.current(connection) is None:
                return connection.execute(
                    "SELECT nspname FROM pg_namespace WHERE nspname = 'textsim'"
                ).fetchall()
        same = self.catalog_of(url) == self.catalog
        return [] if same else ["the schema is incomplete"]

    def complete(self, stage: Stage, first: int) -> None:
        ts.install(self.url)
        if self.catalog_of(self.url) != self.catalog:
            self.findings.problems.append("the schema differs after the repeated installation")
