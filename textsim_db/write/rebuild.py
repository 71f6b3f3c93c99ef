"""Changes settings of a corpus: stores them alone if no row depends on them, or builds it anew.

While it is built anew, the old corpus stays in use:

lock against other rebuilds -> new corpus under a temporary name -> copy everything
-> copy the changes made meanwhile, until they are few -> while writers wait: copy the last changes,
move attached tables and tracked clusters, take the name -> drop the old corpus

An advisory lock protects the temporary name: if the process dies, the next rebuild drops that corpus.
Rows that change meanwhile are known by their xmin. A writer that waited for the last transaction has
computed signatures of the old kind, so a trigger on the old table raises an error. Another advisory lock
for each corpus excludes a second rebuild, and track() shares it. `origin` tells a rebuilt corpus from a
new corpus of the same name.
"""

from __future__ import annotations

import logging
import math
import shlex
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import psycopg
from psycopg import errors as pg

from textsim_db.db import stored_corpus
from textsim_db.db.engine import (
    Connection,
    autocommit,
    is_lost,
    read_rows,
    transaction,
    wait_at_most,
)
from textsim_db.db.retries import Attempts
from textsim_db.db.statements import LOCK_UNIQUE
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import (
    ConfigurationError,
    CorpusBusy,
    CorpusChanged,
    CorpusNotFound,
    TextsimError,
)
from textsim_db.read.integrity_statements import TRACKED
from textsim_db.read.list_pairs import Exceptions, twins
from textsim_db.results.shown_values import shown
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.write import statements
from textsim_db.write.copy_corpus import CorpusCopier
from textsim_db.write.find_twins import find_twins
from textsim_db.write.temporary_corpora import locked, temporary_name
from textsim_db.write.vacuum_loads import VacuumDuringLoad, settle

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)


FEW_CHANGES = 2000
"""If fewer documents than this changed, they are copied while writers wait."""
MAX_ROUNDS = 10
REPLACE_PATIENCE = "100ms"
"""How long we queue for the lock. Meanwhile new writers wait behind us, so a longer wait delays them."""
DROP_PATIENCE = "60s"
"""How long the end of a rebuild waits for readers of the replaced corpus."""
OLDER_SECONDS = 2.0
"""How long older transactions can still find the replaced corpus; larger values delay rebuild()."""


def rebuild(
    store: Store, config: CorpusConfig, progress: Callable[[int, int], None] | None = None
) -> StoredCorpus:
    """Build the corpus anew, replace the old corpus by the new one, and return the new one.

    If the rebuild fails or is interrupted, the old corpus stays as it is. Raises CorpusBusy while
    another session rebuilds the corpus. Raises ConfigurationError if a view reads the tables of
    the corpus, or if documents match each other and the settings make a unique corpus.
    """
    engine, old = store.engine, store.corpus
    with lock_of_rebuilds(store), temporary_name(engine) as name:
        new = stored_corpus.create(engine, name, config)
        try:
            with autocommit(engine) as connection:
                ids = {"old": old.id, "new": new.id}
                connection.execute(statements.BEGIN_TO_ERASE, ids)
            # The judgements belong to the origin.
            built = replace(store, corpus=replace(new, origin=old.origin))
            copier = CorpusCopier(old, built)
            check = TwinCheck(old, built, copier)
            with autocommit(engine) as connection:
                check.refuse_sources(connection)
            _copy(built, copier, check, progress)
            replace_corpus(store, copier, check)
        except BaseException as error:
            is_uncertain = isinstance(error, psycopg.Error) and is_lost(error)
            if not (is_uncertain and _is_in_place(engine, old.name, new)):
                # If the COMMIT succeeded after all, the new corpus no longer has its temporary name.
                with suppress(TextsimError):
                    stored_corpus.drop_named(engine, name)
                raise
        drop_replaced(engine, old)
    return StoredCorpus(new.id, old.name, config, old.origin)


@contextmanager
def lock_of_rebuilds(store: Store) -> Iterator[None]:
    """Hold the lock against other rebuilds of a corpus; sessions that track it share it."""
    corpus = store.corpus
    with locked(store.engine, f"textsim rebuild of corpus {corpus.id}") as name:
        if name is None:
            raise CorpusBusy(
                f'another session rebuilds corpus "{corpus.name}" or tracks it; '
                "try again when it has finished"
            )
        with autocommit(store.engine) as connection:
            row = connection.execute(statements.IS_IN_PLACE, [corpus.id, corpus.name]).fetchone()
            if row != (True,):
                raise CorpusChanged(
                    f'another session rebuilt or dropped corpus "{corpus.name}" meanwhile; try again'
                )
            try:
                connection.execute(statements.REFUSE_REBUILD, {"id": corpus.id})
            except pg.DependentObjectsStillExist as error:
                raise ConfigurationError(str(error.diag.message_primary)) from error
        yield


def _copy(
    built: Store,
    copier: CorpusCopier,
    check: TwinCheck,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Copy everything, and then the changes made meanwhile, until they are few."""
    name = check.old.name
    for number in range(1, MAX_ROUNDS + 1):
        if number == 1:
            copied, removed = _copy_first(built, copier, progress)
            check.compare_all()
        else:
            copied, removed = copier.copy_changes()
        log.info(
            "corpus %s: round %s of the rebuild, %s documents copied, %s removed",
            name,
            number,
            copied,
            removed,
            extra={"corpus": name, "documents": copied, "removed": removed},
        )
        if copied + removed < FEW_CHANGES:
            return


def _copy_first(
    built: Store, copier: CorpusCopier, progress: Callable[[int, int], None] | None
) -> tuple[int, int]:
    """Copy all documents, as a bulk load does; return how many were copied, and how many removed."""
    stored_corpus.drop_band_index(built.engine, built.corpus)
    with ThreadPoolExecutor(1) as executor, VacuumDuringLoad(built, executor) as vacuum:

        def note(done: int, count: int) -> None:
            vacuum.after(done)
            if progress is not None:
                progress(done, count)

        copied, removed = copier.copy_changes(note)
    stored_corpus.build_band_index(built.engine, built.corpus)
    settle(built, copied)
    return copied, removed


def replace_corpus(store: Store, copier: CorpusCopier, check: TwinCheck) -> None:
    """Copy the last changes while writers wait, and replace the corpus, in one transaction."""
    attempts = _AttemptsToLock()
    for attempt in attempts:
        with attempt:
            # No writer waits for us while we wait for an update of clusters.
            with transaction(store.engine) as connection:
                connection.execute(statements.WAIT_FOR_CLUSTERS, [store.corpus.id])
            with transaction(store.engine) as connection:
                lock_timeout, attempts.limit = wait_at_most(connection, REPLACE_PATIENCE)
                _lock(connection, store.corpus, copier.new)
                connection.execute(statements.SET_LOCK_TIMEOUT, [lock_timeout])
                copier.copy_rest(connection.cursor(binary=True))
                check.refuse_twins(connection)
                connection.execute(statements.REPLACE_CORPUS, [store.corpus.id, copier.new.id])


def _lock(connection: Connection, old: StoredCorpus, new: StoredCorpus) -> None:
    """Keep writers out of the old corpus, and make the tables of its clusters."""
    # Writers lock in this order: buckets, documents, and when they commit clusters. Sessions that
    # judge lock the corpus instead of documents.
    if old.config.is_unique:
        connection.execute(LOCK_UNIQUE, [old.id])
    connection.execute(old.statement(statements.LOCK_AGAINST_WRITERS))
    connection.execute(statements.LOCK_AGAINST_JUDGEMENTS, [old.id])
    connection.execute(statements.WAIT_FOR_CLUSTERS, [old.id])
    connection.execute(statements.MOVE_TRACKING, {"old": old.id, "new": new.id})


class _AttemptsToLock(Attempts):
    """Attempts that repeat while a lock is not free, until the user's lock_timeout is over."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = math.inf
        self.limit: float | None = None
        """The user's lock_timeout in seconds; None if there is none."""
        self._start = time.monotonic()

    def repeats(self, error: Exception) -> bool:
        """Return whether a lock was not free, and there is time left."""
        return isinstance(error, pg.LockNotAvailable) and (
            self.limit is None or time.monotonic() - self._start < self.limit
        )


def _is_in_place(engine: Engine, name: str, new: StoredCorpus) -> bool:
    """Return whether the new corpus has the name, after a COMMIT whose result was lost."""
    for attempt in Attempts():
        with attempt:
            rows = read_rows(engine, statements.IS_IN_PLACE, [new.id, name])
    return rows == [(True,)]


def drop_replaced(engine: Engine, old: StoredCorpus) -> None:
    """Drop the replaced corpus; if transactions read it, a worker or the next rebuild drops it."""
    # A search in SQL whose transaction has read the old id, and has not locked the tables yet, would
    # fail if they were gone.
    end = time.monotonic() + OLDER_SECONDS
    with suppress(psycopg.Error):
        older = set(read_rows(engine, statements.OPEN_TRANSACTIONS))
        while older and time.monotonic() < end:
            time.sleep(0.02)
            older &= set(read_rows(engine, statements.OPEN_TRANSACTIONS))
    try:
        stored_corpus.drop(engine, old, DROP_PATIENCE)
    except CorpusNotFound:
        pass  # another session has dropped it
    except TextsimError as error:
        is_read = isinstance(error.__cause__, pg.LockNotAvailable)
        log.warning(
            "corpus %s was rebuilt; a worker or the next rebuild drops the replaced corpus, because %s",
            old.name,
            "a transaction reads it" if is_read else error,
            extra={"corpus": old.name},
        )


FREE = frozenset({"recall", "is_unique", "unique_from"})
"""The settings on which no stored row depends. With bands, the threshold is one of them."""


def is_enough(store: Store, config: CorpusConfig) -> bool:
    """Return whether no stored row depends on the changed settings, so that alter() can store them.

    The prefixes of an exact corpus depend on its threshold, but the buckets of bands do not. A corpus
    that becomes unique must have no twins.
    """
    old = store.corpus.config
    free = FREE if config.is_exact else FREE | {"threshold"}
    may_match = not old.is_unique or config.twins_from < old.twins_from
    if not free.issuperset(old.differences(config)) or (config.is_unique and may_match):
        return False
    return old.threshold == config.threshold or not store.read(TRACKED)


def alter(store: Store, config: CorpusConfig) -> None:
    """Store settings for which is_enough() is true; raises CorpusBusy."""
    with lock_of_rebuilds(store):
        stored_corpus.alter(store.engine, store.corpus, config)


MOST_LISTED = 10_000
"""With more twins than this a rebuild is refused at once. With fewer, writers wait for another look."""
_SHOWN_PAIRS = 10

Twins = dict[tuple[str, str], float]
"""The similarity of each pair of keys."""


class TwinCheck:
    """Finds the twins of a new unique corpus; of any other corpus it finds none."""

    def __init__(self, old: StoredCorpus, built: Store, copier: CorpusCopier) -> None:
        self.old = old
        self._built = built
        self._copier = copier
        self._is_unique = built.corpus.config.is_unique
        self._suspects: set[str] = set()

    def compare_all(self) -> None:
        """Find the documents of the new corpus that match; raise ConfigurationError if they are many."""
        if not self._is_unique:
            return
        self._copier.changed_keys = set()
        matches: Twins = {}
        count = 0
        for a, b, similarity in twins(self._built):
            count += 1
            if count <= MOST_LISTED:
                matches[a, b] = similarity
        if count > MOST_LISTED:
            raise self._refusal(matches, count)
        self._suspects = {key for pair in matches for key in pair}

    def refuse_twins(self, connection: Connection) -> None:
        """Raise ConfigurationError if documents match; the caller keeps other writers out."""
        self.refuse_sources(connection)
        if not self._is_unique:
            return
        keys = sorted(self._suspects | (self._copier.changed_keys or set()))
        matches: Twins = {}
        cursor = connection.cursor(binary=True)
        for batch in self._copier.batches_of(cursor, keys):
            everything = np.arange(len(batch.keys))
            for place, of_place in find_twins(cursor, self._built, batch, everything):
                key = batch.keys[place]
                for other, similarity, *_ in of_place:
                    matches[min(key, other), max(key, other)] = similarity
        if matches:
            exceptions = Exceptions.read(connection, self._built.corpus)
            matches = {pair: matches[pair] for pair in matches if not exceptions.include(*pair)}
        if matches:
            raise self._refusal(matches, len(matches))

    def refuse_sources(self, connection: Connection) -> None:
        """Raise ConfigurationError if the new corpus does not take an attached table as it is."""
        ids = [self.old.id, self._built.corpus.id]
        for table, fault in connection.execute(statements.SOURCE_FAULTS, ids):
            if fault is not None:
                reason = fault.replace(self._built.corpus.name, self.old.name)
                raise ConfigurationError(
                    f"table {table} is attached and does not fit the new settings: {reason}; "
                    "before the rebuild, attach it anew with replace, or detach it"
                )

    def _refusal(self, matches: Twins, count: int) -> ConfigurationError:
        name, config = self.old.name, self._built.corpus.config
        threshold = config.twins_from
        setting = "threshold" if config.unique_from is None else "unique_from"
        listed = ", ".join(
            f'"{shown(a[:100])}" and "{shown(b[:100])}" ({similarity:.3f})'
            for (a, b), similarity in sorted(matches.items())[:_SHOWN_PAIRS]
        )
        more = f" and {count - _SHOWN_PAIRS:,} more" if count > _SHOWN_PAIRS else ""
        command = f"textsim pairs {shlex.quote(name)} --threshold {threshold:g}"
        can_list = threshold >= self.old.config.threshold
        return ConfigurationError(
            f'corpus "{shown(name)}" cannot be unique at {setting} {threshold:g}: '
            f"{count:,} {'pair' if count == 1 else 'pairs'} of its documents match: {listed}{more}; "
            "nothing was changed: remove one document of each pair, judge it different, or choose a "
            "higher threshold or unique_from"
            + (f"; to list all pairs: {command}" if can_list else "")
        )
