"""Documents with the same words, folded: of each class one document stands for the others.

So ten thousand copies of a template cost what one document costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from textsim_db.cluster.spanning_forest import Ids
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements


class Copies:
    """Classes of documents with the same words: of each, the lowest id stands for the others."""

    def __init__(self, classes: list[Ids]) -> None:
        self.classes = classes
        self.by_representative = {int(ids[0]): ids for ids in classes}
        others = [np.empty(0, np.int64), *(ids[1:] for ids in classes)]
        self._represented = np.sort(np.concatenate(others))

    @classmethod
    def read(
        cls, connection: Connection, corpus: StoredCorpus, parameters: dict[str, Any]
    ) -> Copies:
        """Find the copies in a corpus; parameters has the language that limits the documents."""
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(corpus.statement(statements.COPIES), parameters)
        return cls([np.array(ids, np.int64) for (ids,) in rows])

    def without_represented(self, ids: Ids) -> Ids:
        """Return the ids of documents that stand for themselves or for their class."""
        if not len(self._represented):
            return ids
        last = len(self._represented) - 1
        places = np.minimum(np.searchsorted(self._represented, ids), last)
        representatives: Ids = ids[self._represented[places] != ids]
        return representatives

    def class_of(self, representative: int) -> Ids:
        """Return all documents that one document stands for, itself first."""
        ids = self.by_representative.get(representative)
        return np.array([representative], np.int64) if ids is None else ids
