"""A database with the schema textsim, and how to come by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING

from sqlalchemy import URL, Engine

from textsim_db.corpus import Corpus, ManagedCorpus, load_rooms
from textsim_db.db import embedded_server, schema, stored_corpus
from textsim_db.db import engine as engines
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.process_fork import renew_after_fork
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, CorpusExists, suggest_arguments
from textsim_db.lazy_imports import lazy
from textsim_db.results import Source
from textsim_db.settings import DEFAULTS, CorpusSettings
from textsim_db.sync import sources
from textsim_db.sync.worker_settings import (
    LEASE_SECONDS,
    POLL_SECONDS,
    WorkerSettings,
    WorkReport,
)
from textsim_db.write.temporary_corpora import check_not_reserved, is_temporary

if TYPE_CHECKING:
    from textsim_db.sync import worker
    from textsim_db.sync.worker import Worker
    from textsim_db.text import stop_words as stop_word_lists
else:
    worker = lazy("textsim_db.sync.worker", globals())
    stop_word_lists = lazy("textsim_db.text.stop_words", globals())

URL_VARIABLE = "TEXTSIM_DATABASE_URL"


class Database:
    """The corpora of one database; close it, or use it in a with statement."""

    def __init__(self, engine: Engine, owned: bool) -> None:
        self._engine = engine
        self._owned = owned
        self._dictionary = Dictionary(engine)
        renew_after_fork(engine)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({self._engine.url.render_as_string(hide_password=True)!r})"

    @property
    def url(self) -> str:
        """The address for psql and other clients, password included."""
        return engines.plain_url(self._engine.url)

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for statements of your own."""
        return self._engine

    def close(self) -> None:
        """Close the connections, unless the engine was given by the caller."""
        if self._owned:
            self._engine.dispose()

    @suggest_arguments
    def create_corpus(
        self,
        name: str,
        shingle: str = DEFAULTS.shingle,
        threshold: float = DEFAULTS.threshold,
        recall: float = DEFAULTS.recall,
        num_hashes: int = DEFAULTS.num_hashes,
        seed: int = DEFAULTS.seed,
        exist_ok: bool = False,
        bands: int | None = DEFAULTS.bands,
        rows: int | None = DEFAULTS.rows,
        stop_words: str | Iterable[str] = DEFAULTS.stop_words,
        language: str | None = DEFAULTS.language,
    ) -> Corpus:
        """Create a corpus.

        shingle is "word:N" or "char:N". recall is the probability that a pair exactly at the
        threshold becomes a candidate; bands and rows follow from both, unless given. stop_words,
        the code of a language such as "en" or words, are left out of every text. With language
        "auto" the language of each document is identified and stored, and searches can be limited
        to one; with stop_words "auto" the words that are left out are those of that language. Raises
        ConfigurationError, and CorpusExists, also with exist_ok where the configuration differs.
        """
        check_not_reserved(name)
        settings = stop_word_lists.with_lists(
            CorpusSettings(
                shingle, threshold, recall, num_hashes, seed, bands, rows, stop_words, language
            )
        )
        load_rooms()
        try:
            stored = stored_corpus.create(self._engine, name, settings.complete())
        except CorpusExists:
            if not exist_ok:
                raise
            stored = None
        if stored is None:
            stored = stored_corpus.load(self._engine, name)
            settings.check_same(name, stored.config)
        return Corpus(Store(self._engine, self._dictionary, stored))

    def corpus(self, name: str) -> Corpus:
        """Open a corpus; raises CorpusNotFound, and RecipeError where this code hashes otherwise."""
        return Corpus(Store(self._engine, self._dictionary, stored_corpus.load(self._engine, name)))

    def manage(self, name: str) -> ManagedCorpus:
        """Open a corpus to look at its state, not to add or search; loads no kernels.

        Raises CorpusNotFound, and RecipeError if it was built by another recipe. Its golden
        signature is not computed.
        """
        stored = stored_corpus.load(self._engine, name, check_golden=False)
        return Corpus(Store(self._engine, self._dictionary, stored))

    def drop_corpus(self, name: str) -> None:
        """Remove a corpus with all its documents, also one of another recipe.

        Raises CorpusNotFound.
        """
        stored_corpus.drop_named(self._engine, name)

    def worker(
        self,
        poll: float = POLL_SECONDS,
        lease: float = LEASE_SECONDS,
        listen: bool = False,
        report: Callable[[WorkReport], None] | None = None,
    ) -> Worker:
        """Return a worker, whose run() indexes what changes in attached tables.

        poll: seconds between two looks at what is pending. lease: seconds after which others take
        over what it had in hand, if it dies. listen: wake up on notifications as well, which
        sessions with textsim.notify = on send. report is called after each transaction. Any number
        of workers may run, anywhere. Raises ConfigurationError.
        """
        settings = WorkerSettings(poll, lease, listen, report)
        return worker.Worker(self._engine, self._dictionary, settings)

    def sources(self) -> list[Source]:
        """Return the attached tables of all corpora."""
        with engines.database_errors():
            return sources.attached(self._engine)

    def corpora(self) -> list[str]:
        """Return the names of all corpora in order, but for temporary ones."""
        return [n for n in stored_corpus.names(self._engine) if not is_temporary(n)]


def connect(
    address: str | URL | Engine | None = None, application_name: str = engines.APPLICATION_NAME
) -> Database:
    """Open a database that has the schema.

    address is a URL such as postgresql://user@host/name, also as a SQLAlchemy URL, or a SQLAlchemy
    engine with psycopg 3.
    Without one it is TEXTSIM_DATABASE_URL, and without that the embedded PostgreSQL, which is
    started and, alone of all, given the schema. application_name is what pg_stat_activity shows,
    unless the address or PGAPPNAME says something else, or an engine is given. A process that is
    forked later gets connections of its own; in it the pool of the engine is replaced.
    Raises SchemaError where the schema is missing or of another version, DatabaseUnavailable, and
    ConfigurationError for an address that cannot be.
    """
    engine, ours, is_embedded = resolve(address, application_name)
    try:
        if is_embedded:
            schema.ensure_installed(engine)
        else:
            schema.check_installed(engine)
    except BaseException:
        if ours:
            engine.dispose()
        raise
    return Database(engine, ours)


def install(address: str | URL | Engine | None = None) -> str:
    """Install the schema, or bring it to this version, and return its revision.

    Raises SchemaError where the server cannot carry it: older than PostgreSQL 14, or not UTF8.
    """
    engine, ours, _ = resolve(address)
    try:
        return schema.upgrade(engine)
    finally:
        if ours:
            engine.dispose()


def resolve(
    address: str | URL | Engine | None, application_name: str = engines.APPLICATION_NAME
) -> tuple[Engine, bool, bool]:
    """Return an engine for an address, whether it is ours to close, and whether it is embedded."""
    if isinstance(address, Engine):
        return engines.check_engine(address), False, False
    if isinstance(address, URL):
        address = address.render_as_string(hide_password=False)
    if address is not None and not isinstance(address, str):
        raise ConfigurationError(
            f"the address is of type {type(address).__name__}; expected a URL or a SQLAlchemy engine"
        )
    engines.check_application_name(application_name)
    address = address or os.environ.get(URL_VARIABLE)
    if address:
        return engines.open_engine(address, application_name), True, False
    return engines.open_engine(embedded_server.start(), application_name), True, True
