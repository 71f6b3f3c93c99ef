"""Writes or removes a batch, and tries again after a collision, a lost connection or a time-out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Generic, TypeVar

import numpy as np
import psycopg

from textsim_db.db.engine import is_lost, transaction
from textsim_db.db.retries import in_parts, repeated
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.write import statements, write_batch
from textsim_db.write.detect_changes import LEFT_OUT, UNCHANGED, Existing
from textsim_db.write.prepared_batch import Batch, part_of
from textsim_db.write.write_batch import Written

QUEUE_FROM = 2
"""From this attempt on, writers of the corpus queue, so that they no longer collide."""

Result = TypeVar("Result")
Cursor = psycopg.Cursor[Any]


def write_or_retry(store: Store, batch: Batch, are_new: bool = False) -> Written:
    """Write a batch, in halves if it exceeds the server's time limit; return the outcomes.

    are_new: the keys are probably new, so the first attempt does not look them up. If another session
    has added one of them, the server reports a unique violation, and the next attempt looks them up.
    """

    def write_part(part: slice) -> Written:
        write = partial(_write, store=store, batch=part_of(batch, part), are_new=are_new)
        outcomes, left_out = repeated(_Attempts(store, write, _outcomes_of_both))
        numbered = [twin._replace(number=twin.number + part.start) for twin in left_out]
        return Written(outcomes, numbered)

    parts = in_parts(store.engine, batch.keys, write_part)
    return Written(
        np.concatenate([part.outcomes for part in parts]),
        [twin for part in parts for twin in part.left_out],
    )


def remove_or_retry(store: Store, keys: list[str]) -> int:
    """Remove documents, in halves if that takes too long; return how many were removed."""

    def remove_part(part: slice) -> int:
        remove = partial(_remove, corpus=store.corpus, keys=keys[part])
        return repeated(_Attempts(store, remove, max))

    return sum(in_parts(store.engine, keys, remove_part))


def _write(cursor: Cursor, attempt: int, store: Store, batch: Batch, are_new: bool) -> Written:
    existing: Existing | None = {} if are_new and attempt == 0 else None
    return write_batch.write(cursor, store, batch, existing=existing)


def _remove(cursor: Cursor, attempt: int, corpus: StoredCorpus, keys: list[str]) -> int:
    locked = write_batch.lock(cursor, corpus, keys)
    write_batch.refuse_attached(cursor, corpus, list(locked))
    return write_batch.remove_locked(cursor, corpus, list(locked.values()))


def _outcomes_of_both(before: Written, now: Written) -> Written:
    """Return the outcomes of a batch that was attempted twice.

    If the second attempt finds a document unchanged, the first attempt was committed, or the document
    was unchanged then too. So the first outcome is right, except that of a document that was left out.
    """
    is_first = (now.outcomes == UNCHANGED) & (before.outcomes != LEFT_OUT)
    return Written(np.where(is_first, before.outcomes, now.outcomes), now.left_out)


class _Attempts(Generic[Result]):
    """One transaction with several attempts; work is called with the number of the attempt.

    If the connection is lost during COMMIT, the transaction may or may not be committed. Then
    merge(before, now) combines the results of both attempts.
    """

    def __init__(
        self,
        store: Store,
        work: Callable[[Cursor, int], Result],
        merge: Callable[[Result, Result], Result],
    ) -> None:
        self._store = store
        self._work = work
        self._merge = merge
        self._uncertain: list[Result] = []

    def __call__(self, attempt: int) -> Result:
        results: list[Result] = []
        try:
            with transaction(self._store.engine) as connection:
                cursor = connection.cursor(binary=True)
                if attempt >= QUEUE_FROM:
                    cursor.execute(statements.QUEUE_OF_WRITERS, [self._store.corpus.id])
                results.append(self._work(cursor, attempt))
        except psycopg.Error as error:
            if is_lost(error):
                self._uncertain += results
            raise
        return reduce(self._merge, self._uncertain + results)
