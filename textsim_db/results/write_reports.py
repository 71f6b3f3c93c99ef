"""Reports of written and of refused documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from textsim_db.results.html import facts, output
from textsim_db.results.result_list import ResultList, rows_as_table


class Twin(NamedTuple):
    """A document that a unique corpus left out, because it matches a document of the corpus."""

    key: str
    """The key of the document that was left out."""
    standing: str
    """The key of the most similar document that stays."""
    similarity: float
    """Their exact similarity."""


class Refusal(NamedTuple):
    """A document that was not stored, and the reason."""

    key: str
    reason: str


@dataclass(slots=True)
class AddReport:
    """The outcome of a call of `add_many`.

    If the connection is lost during COMMIT, the batch is written again. Its documents count by their
    first outcome, except documents that another client has changed in between.
    """

    added: int = 0
    """The documents with new keys."""
    replaced: int = 0
    """The documents whose words differ from the stored document with the same key."""
    unchanged: int = 0
    """The documents that are stored already, with the same words."""
    repeated_keys: int = 0
    """The documents whose key came again in the same call; the last document with a key is stored."""
    some_repeated: list[str] = field(default_factory=list, repr=False, compare=False)
    """The first different keys of these documents, at most five."""
    refused: list[Refusal] = field(default_factory=ResultList)
    """The documents that were not stored, with the reason."""
    twins: list[Twin] = field(default_factory=ResultList)
    """The documents that a unique corpus left out, each with the document that it matches."""

    @property
    def stored(self) -> int:
        """The documents of the call that the corpus now holds."""
        return self.added + self.replaced + self.unchanged

    @property
    def received(self) -> int:
        """The documents that the call has read so far."""
        return self.stored + self.repeated_keys + len(self.refused) + len(self.twins)

    def _repr_html_(self) -> str:
        names = ("added", "replaced", "unchanged", "repeated_keys")
        counts = [(name.replace("_", " "), getattr(self, name)) for name in names]
        counts += [("refused", len(self.refused)), ("twins", len(self.twins))]
        tables = [rows_as_table(rows, len(rows)) for rows in (self.refused, self.twins) if rows]
        return output(facts(counts), *tables)


@dataclass(slots=True)
class ChangeReport:
    """The changes that a worker, `attach()` or `reconcile()` made in a corpus.

    If the connection is lost during COMMIT, the documents of the transaction are not counted, or are
    counted as unchanged.
    """

    added: int = 0
    """The documents with new keys."""
    replaced: int = 0
    """The documents whose words, scope or expiry changed."""
    removed: int = 0
    """The documents without a row, and the expired documents that a worker removed."""
    unchanged: int = 0
    """The documents that are stored already, with the same words."""
    completed: int = 0
    """The documents added in SQL whose words now have ids."""
    mended: int = 0
    """The documents of a tracked corpus, if any match or cluster was wrong: all were computed anew."""
    refused: list[Refusal] = field(default_factory=ResultList)
    """The documents that were set aside, with the reason."""

    @property
    def written(self) -> int:
        """The number of documents that were added, replaced, removed or completed."""
        return self.added + self.replaced + self.removed + self.completed

    def include(self, other: ChangeReport) -> None:
        """Add the counts and refusals of another report."""
        self.added += other.added
        self.replaced += other.replaced
        self.removed += other.removed
        self.unchanged += other.unchanged
        self.completed += other.completed
        self.mended += other.mended
        self.refused += other.refused
