"""The attached tables that a worker can index, read again every second."""

from __future__ import annotations

import logging
import time

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import is_trouble
from textsim_db.db.schema import check_installed
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, RecipeError, on_one_line
from textsim_db.sync import read_source
from textsim_db.sync.read_source import StoredSource
from textsim_db.text import languages

log = logging.getLogger(__name__)

REFRESH_SECONDS = 1.0


class Complaints:
    """The reasons why tables are not indexed, and other problems of tables; each is logged once."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        self._problems: dict[int, set[str]] = {}

    def set_fault(self, name: str, fault: str | None) -> None:
        """Record why a table is not indexed; fault is None if it is indexed."""
        if fault is None:
            self.faults.pop(name, None)
        elif self.faults.get(name) != fault:
            self.faults[name] = fault
            log.error("table %s is not indexed: %s", name, fault, extra={"table": name})

    def set_problems(self, source: StoredSource) -> None:
        """Record the changes that the triggers of a table may miss."""
        for problem in set(source.problems) - self._problems.get(source.id, set()):
            log.warning("table %s: %s", source.name, problem, extra={"table": source.name})
        self._problems[source.id] = set(source.problems)


class WorkerSources:
    """The usable tables by the id of their source, and their corpora; at most a second old."""

    def __init__(
        self,
        engine: Engine,
        dictionary: Dictionary,
        only_source: int | None,
        complaints: Complaints,
    ) -> None:
        self._engine = engine
        self._dictionary = dictionary
        self._only_source = only_source
        self._stores: dict[int, Store | None] = {}
        self.complaints = complaints
        self._read_at = float("-inf")
        self.by_id: dict[int, StoredSource] = {}

    def expire(self) -> None:
        """Make the next refresh() read everything again."""
        self._read_at = float("-inf")

    def refresh(self) -> None:
        """Read the tables again once a second, and log comparisons if triggers missed changes."""
        now = time.monotonic()
        if now - self._read_at < REFRESH_SECONDS:
            return
        # If another version of textsim-db has changed the schema, this version must not write to it.
        check_installed(self._engine)
        self._stores = {}
        self.by_id = {}
        for source in read_source.sources(self._engine):
            if self._only_source not in (None, source.id):
                continue
            if source.is_gone:
                self._release_dropped(source)
            elif self._is_usable(source):
                self.by_id[source.id] = source
                self._compare_if_changed(source)
        self._read_at = now

    def store(self, corpus_id: int) -> Store | None:
        """Return a corpus, None if it is gone; raises RecipeError if this worker cannot index it."""
        if corpus_id not in self._stores:
            corpus = stored_corpus.load_by_id(self._engine, corpus_id)
            if corpus is not None and corpus.config.language is not None:
                try:
                    languages.check_installed()
                except ConfigurationError as error:
                    raise RecipeError(f'corpus "{corpus.name}": {error}') from error
            self._stores[corpus_id] = (
                None if corpus is None else Store(self._engine, self._dictionary, corpus)
            )
        return self._stores[corpus_id]

    def _release_dropped(self, source: StoredSource) -> None:
        try:
            read_source.release_dropped(self._engine, source.corpus_id)
        except pg.InsufficientPrivilege as error:
            fault = f"{source.fault}: {error.diag.message_primary}"
            self.complaints.set_fault(source.name, fault)

    def _is_usable(self, source: StoredSource) -> bool:
        fault = source.fault
        if fault is None:
            try:
                self.store(source.corpus_id)
            except RecipeError as error:
                fault = str(error)
        self.complaints.set_fault(source.name, fault)
        return fault is None

    def _compare_if_changed(self, source: StoredSource) -> None:
        """Log a comparison of the table if its triggers may have missed changes."""
        if not source.differs:
            self.complaints.set_problems(source)
            return
        log.info("table %s changed in a way that triggers do not see; comparing it", source.name)
        try:
            read_source.log_unseen_changes(self._engine, source)
        except psycopg.Error as error:
            if is_trouble(error):
                raise
            self.complaints.set_fault(source.name, on_one_line(error))
