"""The small objects that searches and writes return."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class Match(NamedTuple):
    """A document whose exact Jaccard similarity reaches the threshold.

    estimate is the share of equal values in the signatures; None in an exact corpus.
    """

    key: str
    similarity: float
    estimate: float | None


class Candidate(NamedTuple):
    """A document that shares enough buckets, not verified; shared: how many it shares."""

    key: str
    shared: int


class Pair(NamedTuple):
    """Two documents, a < b, with their exact Jaccard similarity."""

    a: str
    b: str
    similarity: float


class Cluster(NamedTuple):
    """Documents connected by verified pairs; keys in order, two or more.

    weakest is the lowest similarity among the links that hold the cluster together: no threshold
    up to it would split the cluster. kept is the member that is kept, with linkage "kept".
    """

    keys: tuple[str, ...]
    weakest: float
    kept: str | None = None


class Duplicate(NamedTuple):
    """A document to remove, the document that is kept in its place, and their similarity."""

    key: str
    kept: str
    similarity: float


class Refusal(NamedTuple):
    """A document that was not stored, and why."""

    key: str
    reason: str


class Problem(NamedTuple):
    """A stored row that breaks an invariant: which one, and of which document or word."""

    kind: str
    subject: str
    detail: str


@dataclass(slots=True)
class AddReport:
    """How many documents of a call of add_many were stored, and why others were refused.

    added, replaced, unchanged: documents by outcome. duplicates: documents whose key came again in
    the same call; the last document with the key is stored. If a batch is written again because the
    connection was lost during COMMIT, its documents count by their first outcome, except those that
    another client has changed in between.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    duplicates: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def stored(self) -> int:
        """Documents that the corpus now holds as the call gave them."""
        return self.added + self.replaced + self.unchanged

    @property
    def received(self) -> int:
        """Documents that the call has read so far."""
        return self.stored + self.duplicates + len(self.refused)


@dataclass(slots=True)
class ChangeReport:
    """What a worker, attach() or reconcile() did to a corpus.

    added, replaced, removed, unchanged: documents by outcome. completed: documents written by SQL
    whose words now have ids. refused: documents that were set aside, with the reason. If the
    connection is lost during a COMMIT, its documents are not counted, or counted as unchanged.
    """

    added: int = 0
    replaced: int = 0
    removed: int = 0
    unchanged: int = 0
    completed: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def written(self) -> int:
        """The documents that were added, replaced, removed or completed."""
        return self.added + self.replaced + self.removed + self.completed

    def include(self, other: ChangeReport) -> None:
        """Add the counts and refusals of another report."""
        self.added += other.added
        self.replaced += other.replaced
        self.removed += other.removed
        self.unchanged += other.unchanged
        self.completed += other.completed
        self.refused += other.refused


class Status(NamedTuple):
    """How far a corpus is with its attached tables.

    indexed: documents. pending: documents to index; an estimate while a table is compared with the
    corpus, or with a million changes. oldest_pending: when the oldest of them changed. failed:
    documents set aside with an error. problems: why attached tables are not kept indexed, such as a
    disabled trigger.
    """

    indexed: int
    pending: int
    oldest_pending: datetime | None
    failed: int
    is_estimate: bool
    problems: list[str]


class Activity(NamedTuple):
    """How far behind its tables a corpus is, and how much was written; two of them give a rate.

    lag: seconds, by the server's clock, since the oldest pending change was made; None if no change
    is pending. written: documents written so far by all clients, as the server counts them with a
    delay of a second; it is 0 again after a crash, and when the corpus is rebuilt.
    """

    lag: float | None
    written: int


class Drift(NamedTuple):
    """A key by which a corpus differs from its table: missing, different or surplus."""

    key: str
    kind: str


class Failure(NamedTuple):
    """A document that was set aside, its table (None: it was added by a client), and the error."""

    key: str | None
    table: str | None
    tries: int
    error: str


class RecallReport(NamedTuple):
    """The recall of a corpus at a threshold, measured by brute force on a sample of its documents.

    documents: in the corpus. sampled: documents compared with all. words: the mean of a document.
    pairs: pairs at or above the threshold with a sampled document. candidate_pairs: the pairs that
    share a bucket. recall: their share, None without pairs. interval: the 95 % confidence interval
    of the recall. promised: the recall that bands and rows give for pairs of these similarities.
    histogram: pairs that share a shingle, by hundredths of similarity, similarity 1 last.
    candidates: of each sampled document, in order. missed: pairs that share no bucket, the most
    similar first. lost: sampled documents of which no similar document shares a bucket.
    """

    threshold: float
    documents: int
    words: float
    sampled: int
    pairs: int
    candidate_pairs: int
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
    """The distinct words of the first documents, with the number of documents and of words."""

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
    """The numbers of a corpus.

    empty: documents without words. vocabulary: distinct words. growth: the vocabulary after each
    twentieth of the documents, in the order of their ids. frequent: the most frequent words.
    languages: documents by language, if languages are identified. lengths: words of a document by
    percentile, 0 to 100. similarities: of sampled documents to all their candidates, 100 counts by
    hundredths, the last with 1. buckets: (documents in a bucket, buckets). storage: bytes by part.
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
