"""Vacuums and analyzes after a large load at once, minutes before the server's autovacuum would.

Until VACUUM marks the new pages as visible to all, a look-up reads a page of the table for each band
row. Without statistics the planner guesses: for a view of candidate pairs it compares all documents
with each other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import LiteralString

import psycopg

from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.write import statements

log = logging.getLogger(__name__)

LARGE_LOAD = 10_000
"""VACUUM follows a load of at least this many documents, if VACUUM_SHARE is reached too."""
VACUUM_SHARE = 0.2
"""The share of the corpus that a load must have for a VACUUM."""
ANALYZE_DOCUMENTS = 100
"""ANALYZE follows a load of at least this many documents into a corpus without statistics."""


def settle(
    store: Store,
    added: int,
    vacuums: Sequence[LiteralString] = (statements.VACUUM_DOCUMENTS, statements.VACUUM_BAND_ROWS),
) -> None:
    """Vacuum or analyze the tables of a corpus, if the load was large.

    A failure is ignored, because autovacuum does the same later. If the role does not own the tables,
    the server skips them with a warning.
    """
    if added < ANALYZE_DOCUMENTS:
        return
    corpus = store.corpus
    of_passages = corpus.config.passages is not None and statements.VACUUM_BAND_ROWS in vacuums
    with suppress(psycopg.Error), autocommit(store.engine) as connection:
        row = connection.execute(corpus.statement(statements.ESTIMATED_DOCUMENTS)).fetchone()
        estimated = -1 if row is None else row[0]
        if added < LARGE_LOAD:
            if estimated < 0 and statements.VACUUM_BAND_ROWS in vacuums:
                connection.execute(corpus.statement(statements.ANALYZE))
                if of_passages:
                    connection.execute(corpus.statement(statements.ANALYZE_FINGERPRINTS))
        elif estimated < added / VACUUM_SHARE:
            log.info("vacuuming corpus %s after a load", corpus.name, extra={"corpus": corpus.name})
            for vacuum in vacuums:
                connection.execute(corpus.statement(vacuum))
            if of_passages:
                connection.execute(corpus.statement(statements.VACUUM_FINGERPRINTS))
