"""What searches and writes return: small named tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class Match(NamedTuple):
    """A document whose exact Jaccard similarity reaches the threshold.

    estimate is what the signatures say: the share of equal values.
    """

    key: str
    similarity: float
    estimate: float


class Candidate(NamedTuple):
    """A document that shares at least one bucket, and how many; nothing is claimed about it."""

    key: str
    bands: int


class Pair(NamedTuple):
    """Two documents, a < b, with their exact Jaccard similarity."""

    a: str
    b: str
    similarity: float


class Cluster(NamedTuple):
    """Documents connected by verified pairs; keys in order, two or more.

    weakest is the lowest similarity among the links that hold the cluster together: no threshold
    up to it would split the cluster. kept is the document that stands for the others, with linkage
    "kept".
    """

    keys: tuple[str, ...]
    weakest: float
    kept: str | None = None


class Duplicate(NamedTuple):
    """A document to remove, the one that is kept in its place, and how similar they are."""

    key: str
    kept: str
    similarity: float


class Refusal(NamedTuple):
    """A document that was not stored, and why."""

    key: str
    reason: str


class Problem(NamedTuple):
    """A stored row that breaks an invariant: what is wrong, and with which document or word."""

    kind: str
    subject: str
    detail: str


@dataclass(slots=True)
class AddReport:
    """What became of the documents given to add_many.

    added, replaced, unchanged: documents by outcome. duplicates: documents whose key came again in
    the same call, where the last one given wins. refused: those not stored. Where a connection was
    lost during COMMIT and the batch was written again, a document counts as what it was the first
    time, unless somebody else has changed it in between.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    duplicates: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def stored(self) -> int:
        """Documents that are in the corpus because of the call, or were already."""
        return self.added + self.replaced + self.unchanged

    @property
    def given(self) -> int:
        """Documents that the call was given so far."""
        return self.stored + self.duplicates + len(self.refused)


@dataclass(slots=True)
class ChangeReport:
    """What a worker, attach() or reconcile() did to a corpus.

    added, replaced, removed, unchanged: documents by outcome. completed: documents written by SQL
    whose words were given ids. refused: those set aside, with the reason. What was written by a
    transaction during whose COMMIT the connection was lost is not counted, or as unchanged.
    """

    added: int = 0
    replaced: int = 0
    removed: int = 0
    unchanged: int = 0
    completed: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def written(self) -> int:
        """The documents that were written in some way."""
        return self.added + self.replaced + self.removed + self.completed

    def include(self, other: ChangeReport) -> None:
        """Add up with another report."""
        self.added += other.added
        self.replaced += other.replaced
        self.removed += other.removed
        self.unchanged += other.unchanged
        self.completed += other.completed
        self.refused += other.refused


class Status(NamedTuple):
    """How far a corpus is with its attached tables.

    indexed: documents. pending: documents that are to be indexed, the oldest of them since
    oldest_pending; an estimate while a table is compared with the corpus, or with a million changes.
    failed: documents set aside with an error. problems: what keeps attached tables from being kept
    indexed, such as a disabled trigger.
    """

    indexed: int
    pending: int
    oldest_pending: datetime | None
    failed: int
    is_estimate: bool
    problems: list[str]


class Activity(NamedTuple):
    """How a corpus is kept up with, of which two at different times give a rate.

    lag: seconds, by the server's clock, since the oldest pending change was made; None where none
    is. written: documents written so far by anybody, as the server counts them, up to date but for
    a second; it starts anew after a crash, and when the corpus is rebuilt.
    """

    lag: float | None
    written: int


class Drift(NamedTuple):
    """A key by which a corpus differs from its table: missing, different or surplus."""

    key: str
    kind: str


class Failure(NamedTuple):
    """A document set aside, why, and the table that it comes from (None: it was given by hand)."""

    key: str | None
    table: str | None
    tries: int
    error: str


class RecallReport(NamedTuple):
    """What a corpus finds at a threshold, measured by brute force on a sample of its documents.

    documents, sampled: how many there are, and how many were compared with all. words: their mean
    number. pairs: pairs of a sampled document and any other at or above the threshold. found: those
    of them that share a bucket. recall: their share, None without pairs; interval: where it lies
    with 95 %. promised: what the bands and rows give for pairs of these similarities. histogram:
    pairs that share a shingle by similarity, in a hundredth each, those of 1 last. candidates: of
    each sampled document, in order. missed: pairs that share no bucket, the most similar first.
    lost: sampled documents with similar ones, none of which would be found.
    """

    threshold: float
    documents: int
    words: float
    sampled: int
    pairs: int
    found: int
    recall: float | None
    interval: tuple[float, float]
    promised: float | None
    histogram: list[int]
    candidates: list[int]
    missed: list[Pair]
    lost: list[str]


class Source(NamedTuple):
    """A table that is kept indexed: in which corpus, by which columns, in which mode."""

    corpus: str
    table: str
    key: str
    text: str
    mode: str


class Growth(NamedTuple):
    """How many distinct words there are in the first so many documents, with so many words."""

    documents: int
    words: int
    vocabulary: int


class Frequency(NamedTuple):
    """How often a word occurs in a corpus, and in how many documents."""

    word: str
    occurrences: int
    documents: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is in a corpus.

    empty: documents without words. vocabulary: distinct words; growth: after each twentieth of the
    documents, in the order of their ids. frequent: the most frequent words. languages: documents
    by language, where those are identified. lengths: words of a
    document by percentile, 0 to 100. similarities: of a sample of documents to all their
    candidates, in hundredths: 100 counts, the last with 1. buckets: (documents in it, buckets).
    storage: bytes, of the whole corpus.
    """

    documents: int
    empty: int
    words: int
    vocabulary: int
    growth: list[Growth]
    frequent: list[Frequency]
    languages: dict[str, int]
    lengths: dict[int, int]
    sampled: int
    candidates: int
    similarities: list[int]
    buckets: list[tuple[int, int]]
    storage: dict[str, int]
