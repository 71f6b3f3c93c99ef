"""Lists the judgements of a corpus, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Generator
from typing import LiteralString, NamedTuple

from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.frames.arrow_results import ResultColumns, columns_of
from textsim_db.read import statements
from textsim_db.results import Contradiction, Judgement


def judgements(store: Store) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the judgements, in the order of their keys."""
    return _listed(store, Judgement, statements.JUDGEMENTS)


def contradictions(store: Store) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the pairs judged different that a chain of the same verdict connects."""
    return _listed(store, Contradiction, statements.CONTRADICTIONS)


def _listed(
    store: Store, row: type[NamedTuple], statement: LiteralString
) -> Generator[ResultColumns, None, None]:
    with autocommit(store.engine) as connection:
        # A binary time is read whatever the DateStyle is.
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(statement, [store.corpus.name]).fetchall()
    yield columns_of(row, rows)
