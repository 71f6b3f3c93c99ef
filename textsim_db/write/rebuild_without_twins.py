"""Refuses a rebuild that would make a unique corpus of documents that match each other.

compare all documents of the new corpus, while writers go on -> under the locks of the swap, compare
the documents that matched, and those that were copied since, with all documents
"""

from __future__ import annotations

import shlex

import numpy as np

from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, shown
from textsim_db.read.list_pairs import Exceptions, twins
from textsim_db.write import statements
from textsim_db.write.copy_corpus import CorpusCopier
from textsim_db.write.find_twins import find_twins

MOST_LISTED = 10_000
"""With more twins than this a rebuild is refused at once. With fewer, writers wait for another look."""
_SHOWN_PAIRS = 10

Twins = dict[tuple[str, str], float]
"""The similarity of each pair of keys."""


class TwinCheck:
    """Finds the twins of a new unique corpus; of any other corpus it finds none."""

    def __init__(self, old: StoredCorpus, built: Store, copier: CorpusCopier) -> None:
        self.old = old
        self._built = built
        self._copier = copier
        self._is_unique = built.corpus.config.is_unique
        self._suspects: set[str] = set()

    def compare_all(self) -> None:
        """Find the documents of the new corpus that match; raise ConfigurationError if they are many."""
        if not self._is_unique:
            return
        self._copier.changed_keys = set()
        matches: Twins = {}
        count = 0
        for a, b, similarity in twins(self._built):
            count += 1
            if count <= MOST_LISTED:
                matches[a, b] = similarity
        if count > MOST_LISTED:
            raise self._refusal(matches, count)
        self._suspects = {key for pair in matches for key in pair}

    def refuse_twins(self, connection: Connection) -> None:
        """Raise ConfigurationError if documents match; the caller keeps other writers out."""
        self.refuse_sources(connection)
        if not self._is_unique:
            return
        keys = sorted(self._suspects | (self._copier.changed_keys or set()))
        matches: Twins = {}
        cursor = connection.cursor(binary=True)
        for batch in self._copier.batches_of(cursor, keys):
            everything = np.arange(len(batch.keys))
            for place, of_place in find_twins(cursor, self._built, batch, everything):
                key = batch.keys[place]
                for other, similarity, *_ in of_place:
                    matches[min(key, other), max(key, other)] = similarity
        if matches:
            exceptions = Exceptions.read(connection, self._built.corpus)
            matches = {pair: matches[pair] for pair in matches if not exceptions.include(*pair)}
        if matches:
            raise self._refusal(matches, len(matches))

    def refuse_sources(self, connection: Connection) -> None:
        """Raise ConfigurationError if the new corpus does not take an attached table as it is."""
        ids = [self.old.id, self._built.corpus.id]
        for table, fault in connection.execute(statements.SOURCE_FAULTS, ids):
            if fault is not None:
                reason = fault.replace(self._built.corpus.name, self.old.name)
                raise ConfigurationError(
                    f"table {table} is attached and does not fit the new settings: {reason}; detach "
                    "the table, and attach it again after the rebuild"
                )

    def _refusal(self, matches: Twins, count: int) -> ConfigurationError:
        name, config = self.old.name, self._built.corpus.config
        threshold = config.twins_from
        setting = "threshold" if config.unique_from is None else "unique_from"
        listed = ", ".join(
            f'"{shown(a[:100])}" and "{shown(b[:100])}" ({similarity:.3f})'
            for (a, b), similarity in sorted(matches.items())[:_SHOWN_PAIRS]
        )
        more = f" and {count - _SHOWN_PAIRS:,} more" if count > _SHOWN_PAIRS else ""
        command = f"textsim pairs {shlex.quote(name)} --threshold {threshold:g}"
        can_list = threshold >= self.old.config.threshold
        return ConfigurationError(
            f'corpus "{shown(name)}" cannot be unique at {setting} {threshold:g}: '
            f"{count:,} {'pair' if count == 1 else 'pairs'} of its documents match: {listed}{more}; "
            "nothing was changed: remove one document of each pair, judge it different, or choose a "
            "higher threshold or unique_from"
            + (f"; to list all pairs: {command}" if can_list else "")
        )
