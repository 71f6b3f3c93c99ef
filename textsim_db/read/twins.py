"""Which matching documents of a unique corpus may stand side by side, as people said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from textsim_db.compare.verify import Criterion
from textsim_db.db.engine import Connection, autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.frames.arrow_results import rows_of
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import statements
from textsim_db.read.pairs import pairs
from textsim_db.results import Pair

KeyPairs = set[tuple[str, str]]
"""Pairs of keys, each with the lower key first."""


def different_pairs(connection: Any, corpus: StoredCorpus, keys: Sequence[str] | None) -> KeyPairs:
    """Return the pairs that were judged different; keys: only pairs with one of these.

    connection: a connection or a cursor.
    """
    chosen = None if keys is None else list(keys)
    parameters = {"origin": corpus.origin, "keys": chosen}
    return set(connection.execute(statements.DIFFERENT_KEYS, parameters).fetchall())


class Exceptions(NamedTuple):
    """The matches of a unique corpus that are no twins."""

    forced: set[str]
    """The keys of the documents that were forced."""
    different: KeyPairs
    """The pairs that were judged different."""

    @classmethod
    def read(cls, connection: Connection, corpus: StoredCorpus) -> Exceptions:
        """Read the exceptions of a corpus."""
        rows = connection.execute(corpus.statement(statements.FORCED_KEYS)).fetchall()
        return cls({key for (key,) in rows}, different_pairs(connection, corpus, None))

    def include(self, a: str, b: str) -> bool:
        """Return whether two matching documents may stand side by side; a < b."""
        return a in self.forced or b in self.forced or (a, b) in self.different


def twins(store: Store) -> Iterator[Pair]:
    """Yield each pair of documents of a unique corpus that match and should not stand side by side."""
    # pairs() opens a connection of its own, and the pool may have only one.
    with autocommit(store.engine) as connection:
        exceptions = Exceptions.read(connection, store.corpus)
    criterion = Criterion(JACCARD, store.corpus.config.threshold)
    for pair in rows_of(Pair, partial(pairs, store, criterion)):
        if not exceptions.include(pair.a, pair.b):
            yield pair
