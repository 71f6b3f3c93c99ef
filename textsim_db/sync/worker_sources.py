"""The attached tables that a worker can index, read again every second."""

from __future__ import annotations

import logging
import time

from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import read_rows
from textsim_db.db.schema import check_installed
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, RecipeError
from textsim_db.sync import read_source, statements
from textsim_db.sync.apply_word_ids import words_of
from textsim_db.sync.faults import Faults
from textsim_db.sync.read_source import StoredSource
from textsim_db.text import languages

log = logging.getLogger(__name__)

REFRESH_SECONDS = 1.0


class WorkerSources:
    """The usable tables by the id of their source, and their corpora; at most a second old."""

    def __init__(
        self, engine: Engine, dictionary: Dictionary, only_source: int | None, faults: Faults
    ) -> None:
        self._engine = engine
        self._dictionary = dictionary
        self._only_source = only_source
        self._stores: dict[int, Store | None] = {}
        self._problems: dict[int, set[str]] = {}
        """What was last logged of each table: the changes that its triggers may miss."""
        self._read_at = float("-inf")
        self._usable: list[StoredSource] = []
        self._corpora: list[int] = []
        self.faults = faults

    @property
    def by_id(self) -> dict[int, StoredSource]:
        """The tables to index at present, without those whose last error was a moment ago."""
        return {each.id: each for each in self._usable if self.faults.is_due(each.indexing)}

    @property
    def wordless(self) -> list[int]:
        """The corpora for whose words the last error was a moment ago."""
        return [id_ for id_ in self._corpora if not self.faults.is_due(words_of(id_))]

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
        self._usable = []
        sources = read_source.sources(self._engine)
        self._corpora = [id_ for (id_,) in read_rows(self._engine, statements.CORPUS_IDS)]
        self.faults.keep(self._corpora)
        for source in sources:
            if self._only_source not in (None, source.id) or not self.faults.is_due(
                source.following
            ):
                continue
            with self.faults.attempt(source.following):
                self._follow(source)
        self._read_at = now

    def _follow(self, source: StoredSource) -> None:
        """Use a table, if this role may, and log what its triggers missed; detach a dropped table."""
        if source.is_gone:
            read_source.release_dropped(self._engine, source)
        elif self._is_usable(source):
            self._usable.append(source)
            if source.differs:
                log.info(
                    "table %s changed in a way that triggers do not see; comparing it", source.name
                )
                read_source.log_unseen_changes(self._engine, source)
            else:
                self._log_problems(source)

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

    def _is_usable(self, source: StoredSource) -> bool:
        fault = source.fault
        if fault is None:
            try:
                self.store(source.corpus_id)
            except RecipeError as error:
                fault = str(error)
        self.faults.refuse(source.name, fault)
        return fault is None

    def _log_problems(self, source: StoredSource) -> None:
        """Log once each reason why the triggers of a table may miss changes."""
        for problem in set(source.problems) - self._problems.get(source.id, set()):
            log.warning("table %s: %s", source.name, problem, extra={"table": source.name})
        self._problems[source.id] = set(source.problems)
