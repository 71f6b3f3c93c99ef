"""What the server's autovacuum would do within minutes of a large load, done at once.

Until the new pages are known to be visible to all, each band row of a look-up costs a page of the
table. Without statistics the plans are guesses: a view of candidate pairs compares all documents
with each other then.
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

VACUUM_DOCUMENTS = 10_000
VACUUM_SHARE = 0.2
"""A load of so many documents, and of this share of the corpus, is followed by a VACUUM."""
ANALYZE_DOCUMENTS = 100
"""A load of so many documents into a corpus that has no statistics yet is followed by ANALYZE."""


def settle(
    store: Store,
    added: int,
    vacuums: Sequence[LiteralString] = (statements.VACUUM_DOCUMENTS, statements.VACUUM_BAND_ROWS),
) -> None:
    """Vacuum or analyze the tables of a corpus after a load, if the load was large.

    Nothing depends on it: the server only warns a role that does not own the tables, and a failure
    is left to autovacuum.
    """
    if added < ANALYZE_DOCUMENTS:
        return
    corpus = store.corpus
    with suppress(psycopg.Error), autocommit(store.engine) as connection:
        row = connection.execute(corpus.statement(statements.ESTIMATED_DOCUMENTS)).fetchone()
        estimated = -1 if row is None else row[0]
        if added < VACUUM_DOCUMENTS:
            if estimated < 0 and statements.VACUUM_BAND_ROWS in vacuums:
                connection.execute(corpus.statement(statements.ANALYZE))
        elif estimated < added / VACUUM_SHARE:
            log.info("vacuum of corpus %s after a load", corpus.name, extra={"corpus": corpus.name})
            for vacuum in vacuums:
                connection.execute(corpus.statement(vacuum))
