"""Documents by their keys: their normal forms, languages, scopes and tables; and some random ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from textsim_db.compare.verify import Criterion
from textsim_db.db.binary_format import Array
from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.read import search, statements
from textsim_db.results import Pair


class Traits(NamedTuple):
    """The language, the scope and the source of a document."""

    language: str | None = None
    scope: str | None = None
    source_id: int | None = None
    """The id of its attached table; None if a client added it."""


class RandomMatches(NamedTuple):
    """The matches of random documents."""

    documents: int
    """The number of random documents that exist."""
    pairs: list[Pair]
    """A pair for each match of each of these documents; it comes twice if both are among them."""


def traits(store: Store, keys: Sequence[str]) -> dict[str, Traits]:
    """Return the languages, scopes and tables of the documents with these keys, if they exist."""
    statement = store.corpus.statement(statements.TRAITS_OF_KEYS)
    rows = read_rows(store.engine, statement, [list(keys)])
    return {key: Traits(*row) for key, *row in rows}


def forms(store: Store, keys: Sequence[str]) -> dict[str, str]:
    """Return the normal forms of the documents with these keys, if they exist."""
    statement = store.corpus.statement(statements.DOCUMENTS_OF_KEYS)
    rows = read_rows(store.engine, statement, [list(keys)], binary=True)
    return dict(zip((row[1] for row in rows), search.forms_of_rows(store, rows), strict=True))


def random_matches(store: Store, criterion: Criterion, count: int, seed: int) -> RandomMatches:
    """Return the matches of at most this many random documents; it takes as many look-ups."""
    ((highest,),) = read_rows(store.engine, store.corpus.statement(statements.HIGHEST_ID))
    ids = random.Random(seed).sample(range(1, highest + 1), min(count, highest))  # noqa: S311
    statement = store.corpus.statement(statements.DOCUMENTS_OF_IDS)
    rows = read_rows(store.engine, statement, [Array(np.array(ids, np.int32))], binary=True)
    parts = np.array([row[5] for row in rows], np.int64) if store.corpus.config.scoped else None
    matches_of_rows = search.query_forms(store, search.forms_of_rows(store, rows), criterion, parts)
    pairs = [
        Pair(min(row[1], match.key), max(row[1], match.key), match.similarity)
        for row, matches in zip(rows, matches_of_rows, strict=True)
        for match in matches
        if match.key != row[1]
    ]
    return RandomMatches(len(rows), pairs)
