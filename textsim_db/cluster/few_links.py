"""The matches of many documents, of which a document keeps only some with earlier documents."""

from __future__ import annotations

import numpy as np

from textsim_db.cluster.spanning_forest import Ids, Links, joined_links
from textsim_db.sketch.ragged import begins_run
from textsim_db.text.array_types import BoolArray

MOST_WAITING = 4_000_000
"""The links that wait until the links of crowded documents are removed; they take 100 MB."""


class FewLinks:
    """Links of documents, each with few links to earlier ones.

    Texts that fill in one template may all match each other, and their links would grow with the square
    of their number. A document with more earlier links than `most` is crowded: the earliest are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = joined_links([])
        self._waiting: list[Links] = []
        self._count = 0
        self._crowded: Ids = np.empty(0, np.int64)

    def add(self, links: Links) -> None:
        """Add links; left < right, and no link comes twice."""
        self._waiting.append(links)
        self._count += len(links.left)
        if self._count > max(MOST_WAITING, len(self._kept.left)):
            self._merge()

    def links(self) -> Links:
        """Return the kept links, sorted by their right document, then by their left one."""
        self._merge()
        return self._kept

    def crowded(self) -> Ids:
        """Return the documents that have lost links, sorted."""
        self._merge()
        return self._crowded

    def _merge(self) -> None:
        links = joined_links([self._kept, *self._waiting])
        order = np.lexsort((links.left, links.right))
        links = links.take(order)
        starts = np.flatnonzero(begins_run(links.right))
        places = np.arange(len(links.right)) - np.repeat(
            starts, np.diff(starts, append=len(links.right))
        )
        is_kept: BoolArray = places < self._most
        self._crowded = np.union1d(self._crowded, links.right[~is_kept])
        self._kept = links.take(is_kept)
        self._waiting, self._count = [], 0
