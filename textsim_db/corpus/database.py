"""Database: the corpora of a database; connect() opens it, install() creates its schema."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from textsim_db.corpus import Corpus
from textsim_db.db import embedded_server, engine as engines, schema, stored_corpus
from textsim_db.db.connections import renew_after_fork
from textsim_db.db.store import KnownWords, Store
from textsim_db.errors import ConfigurationError, CorpusExists, suggest_settings
from textsim_db.results import CorpusSummary, Metric, Source, WorkerState
from textsim_db.results.html import ResultList
from textsim_db.settings.corpus_settings import SETTINGS, CorpusSettings, Settings
from textsim_db.sync import pending_log, sources as attached_tables
from textsim_db.sync.worker_state import (
    EXPIRE_AFTER_SECONDS,
    LEASE_SECONDS,
    POLL_SECONDS,
    WorkerSettings,
    WorkReport,
)
from textsim_db.write.temporary_corpora import check_not_reserved, is_temporary

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

    from textsim_db.sync.worker import Worker


URL_VARIABLE = "TEXTSIM_DATABASE_URL"


class Database:
    """The corpora of one database; connect() returns it.

    Close it after use, or use it in a with statement. Threads may share it.

    Examples:
        >>> import textsim_db
        >>> with textsim_db.connect() as db:
        ...     corpus = db.create_corpus("news")
        ...     db.corpora()
        {'news': CorpusSummary(shingle='word:3', threshold=0.8, recall=0.95, ...)}
    """

    def __init__(self, engine: Engine, owned: bool) -> None:
        self._engine = engine
        self._owned = owned
        self._known_words = KnownWords(engine)
        renew_after_fork(engine)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from textsim_db.db import addresses

        return f"Database({addresses.public_url(self._engine.url)!r})"

    @property
    def url(self) -> str:
        """The address of the database for psql and other clients, with the password."""
        from textsim_db.db import addresses

        return addresses.plain_url(self._engine.url)

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for your own statements."""
        return self._engine

    def close(self) -> None:
        """Close all connections, except those of an engine that was passed to connect()."""
        if self._owned:
            self._engine.dispose()

    @suggest_settings(*SETTINGS)
    def create_corpus(
        self, name: str, exist_ok: bool = False, **settings: Unpack[Settings]
    ) -> Corpus:
        """Create a corpus and return it.

        Args:
            name: at most 200 bytes; it must not begin with "textsim temporary ".
            exist_ok: return an existing corpus of this name, if it has the same settings.
            **settings: the fields of CorpusSettings, such as `threshold=0.7`.

        Raises:
            CorpusExists: there is a corpus of this name; with exist_ok, if it has other settings.
            ConfigurationError: a setting is out of range, or the settings contradict each other.

        Examples:
            >>> corpus = db.create_corpus("tickets", shingle="char:8", threshold=0.7)
            >>> corpus.config.bands, corpus.config.rows
            (25, 5)
        """
        from textsim_db.text.stop_words import with_lists

        check_not_reserved(name)
        wanted = with_lists(CorpusSettings(**settings))
        is_new = True
        try:
            stored_corpus.create(self._engine, name, wanted.complete())
            stored_corpus.warn_of_misses(name, wanted.complete())
        except CorpusExists:
            if not exist_ok:
                raise
            is_new = False
        stored = stored_corpus.load(self._engine, name)
        if not is_new:
            wanted.check_same(name, stored.config)
        return Corpus(Store(self._engine, self._known_words, stored))

    def corpus(self, name: str, *, on_server: bool = False, to_rebuild: bool = False) -> Corpus:
        """Open a corpus by its name.

        Args:
            name: the name of the corpus.
            on_server: load no kernels. It opens faster, to read its state or to search once. The server
                computes query(), neighbours() and nearest(), if it finds the same: by the measure
                jaccard, at the threshold of the corpus or more, without a language. Other methods load
                the kernels, and compare the golden signature first, which shows that this machine
                computes the same hashes.
            to_rebuild: open also a corpus that was built by an older recipe, without kernels. Until its
                `rebuild()` is done, the other methods fail.

        Raises:
            CorpusNotFound: there is no corpus of this name; the message suggests the nearest name.
            RecipeError: the corpus has signatures that this version of textsim-db does not compute.

        Examples:
            >>> db.corpus("news")
            Corpus('news', shingle='word:3', threshold=0.6, bands=32, rows=4)
        """
        if to_rebuild:
            stored = stored_corpus.load_unchecked(self._engine, name)
        else:
            stored = stored_corpus.load(self._engine, name, check_golden=not on_server)
        return Corpus(Store(self._engine, self._known_words, stored))

    def drop_corpus(self, name: str) -> None:
        """Remove a corpus with all its documents, even if it was built by another recipe.

        Raises:
            CorpusNotFound: there is no corpus of this name.
            ConfigurationError: a view depends on the corpus.
        """
        stored_corpus.drop_named(self._engine, name)

    def worker(
        self,
        poll: float = POLL_SECONDS,
        lease: float = LEASE_SECONDS,
        report: Callable[[WorkReport], None] | None = None,
        expire_after: float = EXPIRE_AFTER_SECONDS,
    ) -> Worker:
        """Return a worker, whose run() indexes the changes of attached tables.

        Any number of workers may run, on any machine.

        Args:
            poll: the longest pause between two polls of the log of changes, in seconds. After a
                change it polls sooner.
            lease: the seconds after which other workers take over the changes that this worker has
                claimed, if it dies.
            report: called after each transaction.
            expire_after: the seconds after which a worker removes a document that had expired when a
                worker looked. Until then the clock of the server may turn out to be ahead; 0 removes
                expired documents at once.

        Raises:
            ConfigurationError: an argument is out of range.

        Examples:
            >>> db.worker().run(until_idle=True)
            ChangeReport(added=0, replaced=0, removed=0, unchanged=0, ...)
        """
        from textsim_db.sync import worker

        settings = WorkerSettings(poll, lease, report, expire_after)
        return worker.Worker(self._engine, self._known_words, settings)

    def sources(self) -> list[Source]:
        """Return the attached tables of all corpora."""
        with engines.database_errors():
            return ResultList(attached_tables.attached(self._engine))

    def workers(self) -> list[WorkerState]:
        """Return what each running worker does, as the workers reported it."""
        with engines.database_errors():
            return ResultList(pending_log.workers(self._engine))

    def metrics(self) -> list[Metric]:
        """Return the rows of the view textsim.metrics, ordered by name."""
        with engines.database_errors():
            return pending_log.metrics(self._engine)

    def corpora(self) -> dict[str, CorpusSummary]:
        """Return what each corpus is, by the names in alphabetical order, except temporary corpora."""
        corpora = stored_corpus.summaries(self._engine)
        return {name: corpus for name, corpus in corpora.items() if not is_temporary(name)}


def connect(
    address: str | URL | Engine | None = None, application_name: str = engines.APPLICATION_NAME
) -> Database:
    """Open a database that has the schema textsim.

    A process that is forked later gets its own connections, because its engine gets a new pool.

    Args:
        address: a URL such as postgresql://user@host/name, or a SQLAlchemy engine with psycopg 3. By
            default the environment variable TEXTSIM_DATABASE_URL. Without the variable, the embedded
            PostgreSQL is started, and gets the schema if it is missing.
        application_name: the name that pg_stat_activity shows. The address and PGAPPNAME take
            precedence. An engine keeps its own name.

    Raises:
        SchemaError: the schema is missing or of another version; the message has the command to run.
        DatabaseUnavailable: there is no connection to the database.
        ConfigurationError: the address is not an address of PostgreSQL, or the engine cannot be used.

    Examples:
        >>> import textsim_db
        >>> db = textsim_db.connect()
    """
    return _opened(*resolve(address, application_name))


def connect_briefly(address: str | None, application_name: str) -> Database:
    """Open a database for one command: SQLAlchemy is imported only if something needs its engine."""
    return _opened(*resolve(address, application_name, engines.open_light_engine))


def _opened(engine: Engine, ours: bool, is_embedded: bool) -> Database:
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
    """Install the schema textsim, or upgrade it to this version, and return its revision.

    Args:
        address: as in connect().

    Raises:
        SchemaError: the server is older than PostgreSQL 14, or the database's encoding is not UTF8.
        DatabaseUnavailable: there is no connection to the database.
        DatabaseError: the role has no right to create a schema.
    """
    engine, ours, _ = resolve(address)
    try:
        return schema.upgrade(engine)
    finally:
        if ours:
            engine.dispose()


def resolve(
    address: str | URL | Engine | None,
    application_name: str = engines.APPLICATION_NAME,
    open_engine: Callable[[str, str], Engine] = engines.open_engine,
) -> tuple[Engine, bool, bool]:
    """Return an engine for an address, whether we must close it, and whether it is embedded."""
    if address is not None and not isinstance(address, str):
        from sqlalchemy import URL, Engine

        if isinstance(address, Engine):
            return engines.check_engine(address), False, False
        if not isinstance(address, URL):
            raise ConfigurationError(
                f"the address is of type {type(address).__name__}; expected a URL or a SQLAlchemy engine"
            )
        address = address.render_as_string(hide_password=False)
    address = address or os.environ.get(URL_VARIABLE)
    if address:
        return open_engine(address, application_name), True, False
    return open_engine(embedded_server.start(), application_name), True, True
