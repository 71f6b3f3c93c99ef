"""One document of each cluster: over a corpus that is there only for as long as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.cluster.keep_rule import Preference
from textsim_db.db import stored_corpus
from textsim_db.errors import CorpusNotFound
from textsim_db.results import AddReport
from textsim_db.settings import CorpusSettings
from textsim_db.text.stop_words import with_lists
from textsim_db.write.temporary_corpora import temporary_name

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database


class Removal(NamedTuple):
    """A document that goes, the one that stays in its place, by number; and how similar they are."""

    number: int
    kept: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Deduplication:
    """What to remove of so many documents; refused says why some could not be compared."""

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
        found: dict[int, list[Removal]] = {}
        for removal in sorted(self.removals):
            found.setdefault(removal.kept, []).append(removal)
        return [found[kept] for kept in sorted(found)]


def deduplicate(
    database: Database,
    documents: Iterable[tuple[str | None, Any]],
    preference: Preference,
    settings: CorpusSettings,
    linkage: str = "kept",
    progress: Callable[[AddReport], None] | None = None,
) -> Deduplication:
    """Find which of the documents, given as (text or None, value), to remove.

    Documents are numbered from 0. value is that of the column of the preference. settings are those
    of Database.create_corpus. progress is called as by Corpus.add_many. Raises ConfigurationError
    where values of the column cannot be compared.
    """
    lengths: list[int] = []
    values: list[Any] = []

    def numbered() -> Iterator[tuple[str, str]]:
        for number, (text, value) in enumerate(documents):
            lengths.append(0 if text is None else len(text))
            if preference.column is not None:
                values.append(value)
            if text is not None:
                yield f"{number:012d}", text

    with temporary_corpus(database, settings) as corpus:
        report = corpus.add_many(numbered(), progress)
        ranks = preference.ranks(np.array(lengths, np.int64), values).tolist()
        found = corpus.duplicates(linkage=linkage, rank=lambda key: ranks[int(key)])
        removals = [Removal(int(d.key), int(d.kept), d.similarity) for d in found]
    refused = [(int(refusal.key), refusal.reason) for refusal in report.refused]
    return Deduplication(len(lengths), removals, refused)


@contextmanager
def temporary_corpus(database: Database, settings: CorpusSettings) -> Iterator[Corpus]:
    """Lend a corpus that is dropped in the end."""
    with temporary_name(database.engine) as name:
        stored_corpus.create(database.engine, name, with_lists(settings).complete())
        corpus = database.corpus(name)
        try:
            yield corpus
        finally:
            with suppress(CorpusNotFound):
                corpus.drop()
