"""Lists the judgements of a corpus."""

from __future__ import annotations

from collections.abc import Generator

from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.files.arrow_results import ResultColumns, columns_of
from textsim_db.read import statements
from textsim_db.results import Judgement


def judgements(store: Store) -> Generator[ResultColumns, None, None]:
    """Yield the columns of the judgements, in the order of their keys."""
    # A binary time is read whatever the DateStyle is.
    rows = read_rows(store.engine, statements.JUDGEMENTS, [store.corpus.name], binary=True)
    yield columns_of(Judgement, rows)
