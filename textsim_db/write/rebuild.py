"""A corpus built anew with other settings, beside the one that is in use until then.

lock of rebuilds -> new corpus under a temporary name -> copy everything
-> copy what changed meanwhile, until that is little -> while writers wait: copy the rest,
move views and attached tables, take the name -> drop the old corpus
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.engine import autocommit, is_lost, transaction, wait_at_most
from textsim_db.db.retries import repeated
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import (
    ConfigurationError,
    CorpusBusy,
    CorpusChanged,
    CorpusNotFound,
    TextsimError,
)
from textsim_db.settings import CorpusConfig
from textsim_db.write import statements
from textsim_db.write.after_load import settle
from textsim_db.write.copy_corpus import CorpusCopier
from textsim_db.write.temporary_corpora import locked, temporary_name

log = logging.getLogger(__name__)

FEW = 2000
"""So many changed documents are copied while writers wait."""
MAX_ROUNDS = 10
PATIENCE = "100ms"
"""How long other writers wait behind this one for one that is at work, before it lets them."""
DROP_PATIENCE = "60s"
"""How long the end of a rebuild waits for readers of the corpus that was replaced."""
OLDER_SECONDS = 2.0
"""How long the replaced corpus stays for transactions that began before; larger delays rebuild()."""

Progress = Callable[[int, int], None]
"""Called with the documents copied so far, and their number."""


def rebuild(store: Store, config: CorpusConfig, progress: Progress | None = None) -> StoredCorpus:
    """Build the corpus anew and put it in the place of the old one; return the new one.

    If it fails or is interrupted, everything is as before. Raises CorpusBusy while another session
    rebuilds the corpus, and ConfigurationError for a view that cannot read the new corpus instead.
    """
    engine, old = store.engine, store.corpus
    with _lock_of_rebuilds(store), temporary_name(engine) as name:
        new = stored_corpus.create(engine, name, config)
        try:
            copier = CorpusCopier(old, replace(store, corpus=new))
            _copy(store, copier, progress)
            _replace(store, copier)
        except BaseException as error:
            is_uncertain = isinstance(error, psycopg.Error) and is_lost(error)
            if not (is_uncertain and _is_in_place(engine, old.name, new)):
                # By the temporary name: if the new corpus is in place after all, it has another.
                with suppress(TextsimError):
                    stored_corpus.drop_named(engine, name)
                raise
        _wait_for_readers(engine)
        _drop_replaced(engine, old)
    return StoredCorpus(new.id, old.name, config, old.origin)


@contextmanager
def _lock_of_rebuilds(store: Store) -> Iterator[None]:
    """Hold the lock of a corpus's rebuild; sessions that create a view over the corpus share it."""
    corpus = store.corpus
    with locked(store.engine, f"textsim rebuild of corpus {corpus.id}") as name:
        if name is None:
            raise CorpusBusy(
                f'corpus "{corpus.name}" is being rebuilt, or a view of it created, by another '
                "session; try again when that is done"
            )
        with autocommit(store.engine) as connection:
            row = connection.execute(statements.IS_IN_PLACE, [corpus.id, corpus.name]).fetchone()
            if row != (True,):
                raise CorpusChanged(f'corpus "{corpus.name}" was rebuilt meanwhile; try again')
            try:
                connection.execute(statements.REFUSE_VIEWS, [corpus.id])
            except pg.DependentObjectsStillExist as error:
                raise ConfigurationError(str(error.diag.message_primary)) from error
        yield


def _copy(store: Store, copier: CorpusCopier, progress: Progress | None) -> None:
    """Copy everything, and then what has changed meanwhile, until that is little."""
    name = store.corpus.name
    stored_corpus.drop_band_index(store.engine, copier.new)
    for number in range(1, MAX_ROUNDS + 1):
        is_first = number == 1
        copied, removed = copier.copy_changes(progress if is_first else None)
        if is_first:
            stored_corpus.build_band_index(store.engine, copier.new)
            settle(replace(store, corpus=copier.new), copied)
        log.info(
            "corpus %s: round %s of the rebuild, %s documents copied, %s removed",
            *(name, number, copied, removed),
            extra={"corpus": name, "documents": copied, "removed": removed},
        )
        if copied + removed < FEW:
            return


def _replace(store: Store, copier: CorpusCopier) -> None:
    """Copy the rest while writers wait, and take the place, in one transaction.

    If lock_timeout is set, that is how long this is tried in all.
    """
    ids = [store.corpus.id, copier.new.id]
    start = time.monotonic()
    limit = None
    while True:
        try:
            with transaction(store.engine) as connection:
                lock_timeout, limit = wait_at_most(connection, PATIENCE)
                connection.execute(store.corpus.statement(statements.LOCK_AGAINST_WRITERS))
                # This waits for sessions that read a view; then it is tried again, like the lock.
                connection.execute(statements.MOVE_VIEWS, ids)
                connection.execute(statements.SET_LOCK_TIMEOUT, [lock_timeout])
                copier.copy_rest(connection.cursor(binary=True))
                connection.execute(statements.REPLACE_CORPUS, ids)
            return
        except pg.LockNotAvailable:
            if limit is not None and time.monotonic() - start >= limit:
                raise
        time.sleep(random.uniform(0, 0.2))  # noqa: S311


def _is_in_place(engine: Engine, name: str, new: StoredCorpus) -> bool:
    """Say whether the new corpus has the name, after the COMMIT that gives it was interrupted."""

    def has_name(_: int) -> bool:
        with autocommit(engine) as connection:
            row = connection.execute(statements.IS_IN_PLACE, [new.id, name]).fetchone()
            return row == (True,)

    return repeated(has_name)


def _wait_for_readers(engine: Engine) -> None:
    """Wait for transactions that may have read the old number, and have not locked its tables yet.

    A search in SQL by such a transaction would fail, because the tables are gone.
    """
    end = time.monotonic() + OLDER_SECONDS
    with suppress(psycopg.Error):
        older = _open_transactions(engine)
        while older and time.monotonic() < end:
            time.sleep(0.02)
            older &= _open_transactions(engine)


def _open_transactions(engine: Engine) -> set[str]:
    with autocommit(engine) as connection:
        return {number for (number,) in connection.execute(statements.OPEN_TRANSACTIONS)}


def _drop_replaced(engine: Engine, old: StoredCorpus) -> None:
    """Drop the replaced corpus; while others still read it, the next rebuild will."""
    try:
        stored_corpus.drop(engine, old, DROP_PATIENCE)
    except CorpusNotFound:
        pass  # another session has dropped it
    except TextsimError as error:
        log.warning(
            "corpus %s was rebuilt; the corpus that it replaces is dropped later: %s",
            *(old.name, error),
            extra={"corpus": old.name},
        )
