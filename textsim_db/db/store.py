"""A stored corpus with its engine and the words that are known, and calls that survive a rebuild of it.

A rebuild by another session gives a corpus new tables and another id. A statement with the old id then
fails: the tables are missing, or a trigger refuses the write. CurrentStore loads the corpus again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Concatenate, LiteralString, ParamSpec, TypeVar
from weakref import WeakSet

from psycopg import errors as pg

from textsim_db.db import stored_corpus
from textsim_db.db.engine import database_errors, read_rows
from textsim_db.db.retries import OUTDATED
from textsim_db.errors import CorpusChanged, CorpusNotFound

if TYPE_CHECKING:
    from psycopg.abc import Params
    from sqlalchemy import Engine

    from textsim_db.db.stored_corpus import StoredCorpus
    from textsim_db.text.word_cache import WordCache


MAX_TEXTS = 500_000
"""The words of a database that a process knows by their ids."""


class KnownWords:
    """The words of a database that a process knows, up to a bound; threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self._cached: dict[int, _Cached] = {}
        """The words of each corpus; the corpus that was used last comes last."""
        _all.add(self)

    def cached(self, corpus_id: int) -> _Cached:
        """Return the known words of a corpus, without those of others if all are too many.

        The caller holds the lock.
        """
        chosen = self._cached.pop(corpus_id, None) or _Cached()
        self._cached[corpus_id] = chosen
        while len(self._cached) > 1 and self._are_too_many():
            del self._cached[next(iter(self._cached))]
        return chosen

    def _are_too_many(self) -> bool:
        from textsim_db.text.word_cache import MAX_CACHED_WORDS

        each = self._cached.values()
        return (
            sum(len(cached.texts) for cached in each) > MAX_TEXTS
            or sum(len(cached.words) for cached in each if cached.words) > MAX_CACHED_WORDS
        )

    def renew_lock(self) -> None:
        """Replace the lock and the caches in a forked child, if a thread of the parent held the lock."""
        if self.lock.locked():
            self.lock = threading.Lock()
            self._cached = {}


class _Cached:
    """Words of a corpus."""

    def __init__(self) -> None:
        self.words: WordCache | None = None
        """Finds the id of a word; None until kernels look one up."""
        self.texts: dict[int, str] = {}
        """Words by their ids."""


_all: WeakSet[KnownWords] = WeakSet()


def _renew_locks() -> None:
    for known_words in list(_all):
        known_words.renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


@dataclass(frozen=True, slots=True)
class Store:
    """A stored corpus, the engine that connects to its database, and what is known of its words."""

    engine: Engine
    known_words: KnownWords
    corpus: StoredCorpus

    def read(
        self,
        statement: LiteralString,
        parameters: Params | None = None,
        *,
        binary: bool = False,
        prepare: bool | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on the tables of the corpus, as read_rows() does."""
        filled = self.corpus.statement(statement)
        return read_rows(self.engine, filled, parameters, binary=binary, prepare=prepare)


INDEX_PATIENCE = "100ms"
"""How long a search waits for writers to build a missing band index, before it goes on without."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class CurrentStore:
    """The store of a corpus; it is loaded again when a statement fails because of a rebuild."""

    store: Store
    """The store as it was loaded last."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._has_index = False

    def call(
        self,
        function: Callable[Concatenate[Store, Parameters], Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Call a function; call it again if the corpus was rebuilt meanwhile."""
        while True:
            store = self.store
            with suppress(CorpusChanged), self._errors(store):
                return function(store, *args, **kwargs)

    def search(
        self,
        function: Callable[Concatenate[Store, Parameters], Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Call a function that reads, after building the band index if it is missing."""
        if not self._has_index:
            self._build_index()
        return self.call(function, *args, **kwargs)

    def checked(self) -> CurrentStore:
        """Compare the golden signature first, because the kernels of this machine hash the text."""
        if not self.store.corpus.is_checked:
            self.load(is_checked=True)
        return self

    def stream(
        self,
        function: Callable[Concatenate[Store, Parameters], Generator[Result, None, None]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Generator[Result, None, None]:
        """Yield the items of a reader; start again if the corpus was rebuilt before the first item.

        After the first item the reader's transaction holds locks, so that no rebuild drops the tables.
        """
        while True:
            is_begun = False
            try:
                store = self.store
                with self._errors(store), closing(function(store, *args, **kwargs)) as items:
                    for item in items:
                        is_begun = True
                        yield item
                return
            except CorpusChanged:
                if is_begun:
                    raise

    def call_once(
        self,
        function: Callable[Concatenate[Store, Parameters], Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Call a function once; raises CorpusChanged if the corpus was rebuilt meanwhile."""
        store = self.store
        with self._errors(store):
            return function(store, *args, **kwargs)

    def loaded(self) -> CurrentStore:
        """Load the corpus first: with an outdated id, some functions find nothing instead of failing."""
        self.load()
        return self

    def load(self, cause: Exception | None = None, is_checked: bool = False) -> bool:
        """Load the corpus again, and return whether it was rebuilt; is_checked: check the hashes."""
        before = self.store.corpus
        try:
            corpus = stored_corpus.load(
                self.store.engine, before.name, is_checked or before.is_checked
            )
        except CorpusNotFound:
            raise CorpusNotFound(before.name) from cause
        if corpus.origin != before.origin:  # a new corpus with the same name
            raise CorpusNotFound(before.name) from cause
        self.store = replace(self.store, corpus=corpus)
        return corpus.id != before.id

    @contextmanager
    def _errors(self, used: Store) -> Iterator[None]:
        with database_errors():
            try:
                yield
            except (*OUTDATED, pg.UndefinedFunction) as error:
                self.load(error)
                # Another thread may have loaded the corpus before.
                if self.store.corpus.id != used.corpus.id:
                    changed = used.corpus.config.differences(self.store.corpus.config)
                    settings = " with other settings" if changed else ""
                    raise CorpusChanged(
                        f'corpus "{self.store.corpus.name}" was rebuilt{settings} meanwhile; try again'
                    ) from error
                raise

    def _build_index(self) -> None:
        """Build the band index if an interrupted bulk load left the corpus without it."""
        with suppress(pg.Error):
            if not stored_corpus.has_band_index(self.store.engine, self.store.corpus):
                stored_corpus.build_band_index(self.store.engine, self.store.corpus, INDEX_PATIENCE)
            self._has_index = True
