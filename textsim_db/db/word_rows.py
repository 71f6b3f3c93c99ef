"""Rows of the dictionary: reads and adds the words that a client does not know."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from psycopg import errors as pg

from textsim_db.base.run_ahead import ahead
from textsim_db.db import binary_format, statements
from textsim_db.db.engine import Connection, autocommit, read_rows, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.stored_corpus import named

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.base.numba_compiler import Int32Array
    from textsim_db.text.utf8 import Tokens

WORDS_AT_ONCE = 10_000
"""The words of one transaction."""
WORD_WRITERS = 2
"""The transactions that add the words of one batch at once. The first batch of a load waits for them."""
BULK_WORDS = 1_000
"""From this number on, new words are a bulk, which the server adds a third faster."""


def fetch_ids(engine: Engine, corpus_id: int, words: Tokens, add: bool) -> Int32Array:
    """Return the ids of words with different hashes, 0 for a word that the dictionary does not have."""
    starts = range(0, len(words.hashes), WORDS_AT_ONCE)
    slices = [words.take(slice(start, start + WORDS_AT_ONCE)) for start in starts]
    if not add:
        with autocommit(engine) as connection:
            return np.concatenate([_select(connection, corpus_id, some) for some in slices])
    if len(slices) == 1:
        return _add(engine, corpus_id, words)
    add_slice = partial(_add, engine, corpus_id)
    return np.concatenate([*ahead(slices, add_slice, WORD_WRITERS, WORD_WRITERS)])


def read_texts(engine: Engine, corpus_id: int, ids: set[int]) -> dict[int, str]:
    parameters = [binary_format.array(np.array(sorted(ids), np.int32))]
    statement = named(statements.WORDS_BY_ID, corpus_id)
    return dict(read_rows(engine, statement, parameters, binary=True))


def _add(engine: Engine, corpus_id: int, words: Tokens) -> Int32Array:
    """Add the missing words, in halves if that exceeds a time limit of the server."""
    ids = np.zeros(len(words.hashes), np.int32)
    for attempt in Attempts(engine, len(ids)):
        with attempt, transaction(engine) as connection:
            some = words.take(attempt.slice)
            ids[attempt.slice] = _select_or_insert(connection, corpus_id, some)
    return ids


def _select(connection: Connection, corpus_id: int, words: Tokens) -> Int32Array:
    statement = named(statements.SELECT_WORDS, corpus_id)
    rows = connection.execute(statement, _parameters(words), prepare=True, binary=True)
    ((ids,),) = rows.fetchall()
    return binary_format.load_int4_array(ids)


def _select_or_insert(connection: Connection, corpus_id: int, words: Tokens) -> Int32Array:
    ids = _select(connection, corpus_id, words)
    missing = np.flatnonzero(ids == 0)
    if len(missing):
        connection.execute(statements.DURABLE, prepare=True)
        ids[missing] = _insert(connection, corpus_id, words.take(missing))
        # Another writer may have added some of the words meanwhile.
        still_missing = np.flatnonzero(ids == 0)
        if len(still_missing):
            ids[still_missing] = _select(connection, corpus_id, words.take(still_missing))
    return ids


def _insert(connection: Connection, corpus_id: int, words: Tokens) -> Int32Array:
    """Add words; return the id of each, 0 if the dictionary has a word with the same hash already.

    Another writer rarely adds words of the same bulk. So the server looks for it only after a failure.
    """
    if len(words.hashes) >= BULK_WORDS:
        with suppress(pg.UniqueViolation), connection.transaction():
            return _insert_by(connection, named(statements.ADD_NEW_WORDS, corpus_id), words)
    return _insert_by(connection, named(statements.ADD_MISSING_WORDS, corpus_id), words)


def _insert_by(connection: Connection, statement: str, words: Tokens) -> Int32Array:
    ids = np.zeros(len(words.hashes), np.int32)
    rows = connection.execute(statement, _parameters(words), prepare=True, binary=True)
    ((hashes, added),) = rows.fetchall()
    if hashes is not None:
        new_hashes = binary_format.load_int8_array(hashes)
        is_added = np.isin(words.hashes, new_hashes, assume_unique=True)
        ids[is_added] = binary_format.load_int4_array(added)
    return ids


def _parameters(words: Tokens) -> list[binary_format.Parameter]:
    texts = binary_format.dump_spans(words.normal, words.starts, words.ends)
    return [binary_format.array(words.hashes), binary_format.Parameter(texts, binary_format.TEXTS)]
