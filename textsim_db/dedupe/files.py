"""One document of each cluster stays: a temporary corpus finds the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.cluster.keep_rule import Preference
from textsim_db.corpus import load_rooms
from textsim_db.db import stored_corpus
from textsim_db.errors import CorpusNotFound
from textsim_db.results import AddReport
from textsim_db.settings import CorpusSettings, Linkage
from textsim_db.text.stop_words import with_lists
from textsim_db.write.temporary_corpora import temporary_name

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database


class Rule(NamedTuple):
    """Which documents are near-duplicates of each other, and which of them stays."""

    preference: Preference
    settings: CorpusSettings
    linkage: str = Linkage.KEPT


class Removal(NamedTuple):
    """A document to remove and the one that is kept in its place, by number; their similarity."""

    number: int
    kept: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Which of the documents to remove, and by number, why the refused ones were not compared."""

    documents: int
    removals: list[Removal]
    refused: list[tuple[int, str]]

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return which documents stay: bool of shape (documents,)."""
        stays = np.ones(self.documents, np.bool_)
        stays[[removal.number for removal in self.removals]] = False
        return stays

    def clusters(self) -> list[list[Removal]]:
        """Return the removals by the document that is kept, in order."""
        by_kept: dict[int, list[Removal]] = {}
        for removal in sorted(self.removals):
            by_kept.setdefault(removal.kept, []).append(removal)
        return [by_kept[kept] for kept in sorted(by_kept)]


def deduplicate(
    database: Database,
    documents: Iterable[tuple[str | None, Any]],
    rule: Rule,
    progress: Callable[[AddReport], None] | None = None,
) -> Deduplication:
    """Find which of the documents, given as (text or None, value), to remove.

    Documents are numbered from 0. value is that of the column of the preference. progress is called
    as by Corpus.add_many. Raises ConfigurationError if values of the column cannot be compared.
    """
    numbered = _Numbered(documents, with_values=rule.preference.column is not None)
    with temporary_corpus(database, rule.settings) as corpus:
        report = corpus.add_many(numbered, progress)
        lengths = np.array(numbered.lengths, np.int64)
        ranks = rule.preference.ranks(lengths, numbered.values).tolist()
        duplicates = corpus.duplicates(linkage=rule.linkage, rank=lambda key: ranks[int(key)])
        removals = [Removal(int(d.key), int(d.kept), d.similarity) for d in duplicates]
    refused = [(int(refusal.key), refusal.reason) for refusal in report.refused]
    return Deduplication(len(lengths), removals, refused)


class _Numbered:
    """Documents under their numbers as keys; notes lengths and values while they are read."""

    def __init__(self, documents: Iterable[tuple[str | None, Any]], with_values: bool) -> None:
        self.lengths: list[int] = []
        self.values: list[Any] = []
        self._documents = documents
        self._with_values = with_values

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for number, (text, value) in enumerate(self._documents):
            self.lengths.append(0 if text is None else len(text))
            if self._with_values:
                self.values.append(value)
            if text is not None:
                yield f"{number:012d}", text


@contextmanager
def temporary_corpus(database: Database, settings: CorpusSettings) -> Iterator[Corpus]:
    """Lend a corpus, which is dropped afterwards."""
    load_rooms()
    with temporary_name(database.engine) as name:
        try:
            stored_corpus.create(database.engine, name, with_lists(settings).complete())
            yield database.corpus(name)
        finally:
            with suppress(CorpusNotFound):
                stored_corpus.drop_named(database.engine, name)
