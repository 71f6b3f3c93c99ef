"""Lists the judgements of a corpus, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, LiteralString

from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.files.arrow_results import ResultColumns, columns_of
from textsim_db.read import statements
from textsim_db.results import Contradiction, Judgement


def judgements(store: Store) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the judgements, in the order of their keys."""
    yield columns_of(Judgement, _rows(store, statements.JUDGEMENTS))


def contradictions(store: Store) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the pairs judged different that a chain of the same verdict connects."""
    rows = _rows(store, statements.CONTRADICTIONS)
    yield columns_of(Contradiction, [(a, b, tuple(chain)) for a, b, chain in rows])


def _rows(store: Store, statement: LiteralString) -> list[tuple[Any, ...]]:
    # A binary time is read whatever the DateStyle is.
    return read_rows(store.engine, statement, [store.corpus.name], binary=True)
