"""The objects that searches and writes return."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class Match(NamedTuple):
    """A document that matches a query: its exact similarity reaches the threshold.

    - `key`: the key of the document.
    - `similarity`: the exact value of the measure, by default the Jaccard similarity.
    - `estimate`: the share of equal values in the two signatures; None in an exact corpus.
    """

    key: str
    similarity: float
    estimate: float | None


class Candidate(NamedTuple):
    """A document that shares enough buckets with a query and is not verified.

    - `key`: the key of the document.
    - `shared`: the number of shared buckets.
    """

    key: str
    shared: int


class Pair(NamedTuple):
    """Two matching documents, with the keys `a` < `b`, and their exact similarity."""

    a: str
    b: str
    similarity: float


class Cluster(NamedTuple):
    """Documents that verified pairs connect.

    - `keys`: the keys of two documents or more, in order.
    - `weakest`: the lowest similarity among the links that hold the cluster together. A threshold up
      to this value does not split the cluster.
    - `kept`: the member that is kept, with linkage "kept"; else None.
    """

    keys: tuple[str, ...]
    weakest: float
    kept: str | None = None


class Duplicate(NamedTuple):
    """A document to remove (`key`), the document that is kept instead (`kept`), and their similarity."""

    key: str
    kept: str
    similarity: float


class Twin(NamedTuple):
    """A document that a unique corpus left out, because it matches a document of the corpus.

    - `key`: the key of the document that was left out.
    - `standing`: the key of the most similar document that stays.
    - `similarity`: their exact similarity.
    """

    key: str
    standing: str
    similarity: float


class Refusal(NamedTuple):
    """A document that was not stored, and the reason."""

    key: str
    reason: str


class Problem(NamedTuple):
    """A stored row or an object of the database that is not as it should be.

    - `kind`: the invariant or the kind of object, such as "signature", "missing band row" or "index".
    - `subject`: the key of the document, the word, the table or the object.
    - `detail`: the expected and the stored state.
    - `remedy`: the command or the SQL that mends it.
    """

    kind: str
    subject: str
    detail: str
    remedy: str


@dataclass(slots=True)
class AddReport:
    """The outcome of a call of `add_many`.

    - `added`, `replaced`, `unchanged`: documents by outcome.
    - `duplicates`: documents whose key came again in the same call. The last document with a key is
      stored.
    - `refused`: the documents that were not stored, with the reason.
    - `twins`: the documents that a unique corpus left out, each with the document that it matches.

    If the connection is lost during COMMIT, the batch is written again. Its documents count by their
    first outcome, except documents that another client has changed in between.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    duplicates: int = 0
    refused: list[Refusal] = field(default_factory=list)
    twins: list[Twin] = field(default_factory=list)

    @property
    def stored(self) -> int:
        """The documents of the call that the corpus now holds."""
        return self.added + self.replaced + self.unchanged

    @property
    def received(self) -> int:
        """The documents that the call has read so far."""
        return self.stored + self.duplicates + len(self.refused) + len(self.twins)


@dataclass(slots=True)
class ChangeReport:
    """The changes that a worker, `attach()` or `reconcile()` made in a corpus.

    - `added`, `replaced`, `removed`, `unchanged`: documents by outcome.
    - `completed`: documents added in SQL whose words now have ids.
    - `refused`: the documents that were set aside, with the reason.

    If the connection is lost during COMMIT, the documents of the transaction are not counted, or are
    counted as unchanged.
    """

    added: int = 0
    replaced: int = 0
    removed: int = 0
    unchanged: int = 0
    completed: int = 0
    refused: list[Refusal] = field(default_factory=list)

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
        self.refused += other.refused


class Status(NamedTuple):
    """How many documents of a corpus and its attached tables are indexed, pending or failed.

    - `indexed`: the documents in the index.
    - `pending`: the documents to index.
    - `oldest_pending`: the time of the oldest pending change, or None.
    - `failed`: the documents that were set aside with an error.
    - `is_estimate`: whether `pending` is an estimate. It is one while a table is compared with the
      corpus, and from a million changes on.
    - `problems`: the reasons why attached tables are not kept indexed, such as a disabled trigger.
    - `as_text`: the documents in the log that are stored as text. They are complete; a worker or
      `index_pending` gives their words ids, which save room. Removed documents may count too.
    - `saved_by_ids`: about how many bytes the ids would save.
    """

    indexed: int
    pending: int
    oldest_pending: datetime | None
    failed: int
    is_estimate: bool
    problems: list[str]
    as_text: int
    saved_by_ids: int


class Activity(NamedTuple):
    """How far a corpus is behind its tables, and how many documents were written.

    - `lag`: seconds since the oldest pending change, by the server's clock; None if none is pending.
    - `written`: the documents that all clients have written so far. The server counts them with a delay
      of a second, and starts at 0 after a crash or a rebuild. Two readings give a rate.
    """

    lag: float | None
    written: int


class WorkerState(NamedTuple):
    """The progress of a running worker. Times are seconds ago, by the server's clock; None if never.

    - `host`, `process`: the machine and the process id of the worker.
    - `reported`: its last report. A worker reports every 5 seconds, if it can write.
    - `claimed`: when it last looked for pending changes.
    - `wrote`: the end of its last write.
    - `step`, `step_seconds`: what it does, or waits for, and for how long.
    - `error`, `failed`: its last error, and when that was.
    """

    host: str
    process: int
    reported: float
    claimed: float | None
    wrote: float | None
    step: str
    step_seconds: float
    error: str | None
    failed: float | None

    @property
    def is_failing(self) -> bool:
        """Whether it has had no success since its last error."""
        return self.failed is not None and (self.claimed is None or self.claimed > self.failed)

    @property
    def is_busy(self) -> bool:
        """Whether it does something, and does not wait for changes."""
        return self.step != IDLE


IDLE = "waits for changes"
"""The step of a worker that waits for changes."""


class Drift(NamedTuple):
    """A document that differs between a corpus and its table.

    - `key`: the key of the document.
    - `kind`: "missing" (only in the table), "different", or "surplus" (only in the corpus).
    """

    key: str
    kind: str


class Failure(NamedTuple):
    """A document that was set aside.

    - `key`: the key of the document, or None if comparing a whole table failed.
    - `table`: the attached table, or None if a client added the document.
    - `tries`: how often it was tried.
    - `error`: the error of the last try.
    """

    key: str | None
    table: str | None
    tries: int
    error: str


class RecallReport(NamedTuple):
    """The recall of a corpus at a threshold, measured by brute force on a sample of its documents.

    - `threshold`: the threshold of the measurement.
    - `documents`: the documents in the corpus.
    - `empty`: the documents without words, which are left out.
    - `words`: the mean number of words in a document.
    - `sampled`: the documents that were compared with all documents.
    - `pairs`: the matching pairs of a sampled document and another document.
    - `candidate_pairs`: the matching pairs that share a bucket.
    - `recall`: `candidate_pairs` / `pairs`, or None without pairs.
    - `interval`: the 95 % confidence interval of the recall.
    - `promised`: the recall that bands and rows promise for pairs of these similarities.
    - `histogram`: the pairs that share a shingle, by hundredths of similarity; similarity 1 is last.
      Each pair counts once.
    - `sampled_histogram`: the part of `histogram` whose two documents are both in the sample.
    - `candidates`: the number of candidates of each sampled document.
    - `missed`: the matching pairs that share no bucket, the most similar first.
    - `lost`: the sampled documents that share a bucket with none of their matches.
    """

    threshold: float
    documents: int
    empty: int
    words: float
    sampled: int
    pairs: int
    candidate_pairs: int
    recall: float | None
    interval: tuple[float, float]
    promised: float | None
    histogram: list[int]
    sampled_histogram: list[int]
    candidates: list[int]
    missed: list[Pair]
    lost: list[str]


class Source(NamedTuple):
    """An attached table, which is kept indexed.

    - `corpus`: the name of the corpus.
    - `table`: the name of the table.
    - `key`, `text`: the columns with the key and the text.
    - `mode`: "queue" or "inline", see `Mode`.
    """

    corpus: str
    table: str
    key: str
    text: str
    mode: str


class Growth(NamedTuple):
    """The vocabulary of the first documents: their number, their words and their distinct words."""

    documents: int
    words: int
    vocabulary: int


class Frequency(NamedTuple):
    """How often a word occurs in a corpus, and how many documents have the word."""

    word: str
    occurrences: int
    documents: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a corpus: documents, words, languages, candidates, buckets and storage.

    - `recall`: the probability of finding a pair at the threshold; 1 in an exact corpus.
    - `documents`, `empty`: all documents, and the documents without words.
    - `words`, `vocabulary`: all words, and the distinct words.
    - `growth`: the numbers of words and distinct words in the first 5 % of the documents, the first
      10 %, and so on. The documents are in the order of their ids.
    - `frequent`: the most frequent words.
    - `languages`: the number of documents in each language, if languages are identified.
    - `lengths`: the percentiles of the number of words in a document: 0, 5, 25, 50, 75, 95 and 100.
    - `sampled`, `candidates`: the number of sampled documents, and the number of all their candidates.
    - `similarities`: a histogram of these candidates with 100 counts. The first count is for
      similarities below 0.01; the last count includes similarity 1.
    - `buckets`: pairs (documents in a bucket, number of buckets of this size).
    - `storage`: bytes of the documents, of the band rows, and of the indexes of each.
    """

    recall: float
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
