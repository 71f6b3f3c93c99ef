"""The objects that searches and writes return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from textsim_db.show.charts import over_similarity
from textsim_db.show.layout import note, output
from textsim_db.show.numbers import count
from textsim_db.show.result_list import ResultList, rows_as_table
from textsim_db.show.short_repr import short_repr
from textsim_db.show.tables import facts, table

Key = TypeVar("Key", str, int)

_SHOWN_KEYS = 20
"""The keys of a cluster that a notebook shows."""


class Match(NamedTuple):
    """A document that matches a query: its exact similarity reaches the threshold."""

    key: str
    """The key of the document."""
    similarity: float
    """The exact value of the measure, by default the Jaccard similarity."""
    estimate: float | None
    """The share of equal values in the two signatures; None in an exact corpus."""


class QueryMatch(NamedTuple):
    """A document that matches a row of a frame of queries."""

    query: Any
    """The row's value of the column `key`; its place, from 0 on, without this column."""
    key: str
    """The key of the document."""
    similarity: float
    """The exact value of the measure, by default the Jaccard similarity."""


class Candidate(NamedTuple):
    """A document that shares enough buckets with a query and is not verified."""

    key: str
    """The key of the document."""
    shared: int
    """The number of shared buckets."""


class Passage(NamedTuple):
    """A run of words that a text shares with a document; the document has no longer run around it."""

    key: str
    """The key of the document."""
    words: int
    """The words in the run."""
    in_text: int
    """The words of the text before the run; if the text has the run several times, before the first."""
    in_document: int
    """The words of the document before the run."""


class CommonRun(NamedTuple):
    """A run of words of a text that too many documents have, so that a search did not read them."""

    words: int
    """The words in the run."""
    in_text: int
    """The words of the text before the run."""
    documents: int
    """About how many documents have a part of it: counted up to 100,000, or estimated from the sample
    of which the corpus has learned its common shingles."""


class PassageList(ResultList[Passage]):
    """The passages of a text, the longest first."""

    def __init__(self, passages: Iterable[Passage] = (), common: Iterable[CommonRun] = ()) -> None:
        super().__init__(passages)
        self.common = list(common)
        """The runs whose parts are in very many documents, or in more than max_documents."""


class Contamination(NamedTuple):
    """The passages that a record of a test set shares with the documents of a corpus."""

    key: str
    """The key of the record."""
    words: int
    """The words of the record."""
    coverage: float
    """The share of its words that are in passages, 0 to 1."""
    documents: list[str]
    """The keys of the documents that share passages with it, in order."""


class SharedPassage(NamedTuple):
    """A run of words that two documents share; `b` has no longer run around it that `a` has."""

    a: str
    """The key of one document."""
    b: str
    """The key of the other document."""
    words: int
    """The words in the run."""
    in_a: int
    """The words of a before the run; if a has the run several times, before the first."""
    in_b: int
    """The words of b before the run."""


class Pair(NamedTuple):
    """Two matching documents, with the keys `a` < `b`, and their exact similarity."""

    a: str
    b: str
    similarity: float


class Cluster(NamedTuple, Generic[Key]):
    """Documents that pairs connect."""

    keys: tuple[Key, ...]
    """The keys of two documents or more, in order."""
    weakest: float
    """The lowest similarity among the links that hold the cluster together.

    A threshold up to this value does not split the cluster.
    """
    kept: Key | None = None
    """The member that is kept, with linkage "kept"; else None."""

    def _repr_html_(self: Any) -> str:  # mypy knows no self of a generic named tuple
        shown = self.keys[:_SHOWN_KEYS]
        rows = [(key, "kept" if key == self.kept else "") for key in shown]
        members = f"{count(len(self.keys), 'document')}, the weakest link {self.weakest:.4f}"
        more = len(self.keys) - len(shown)
        left_out = note(f"and {count(more, 'more document')}") if more else ""
        return output(note(members), table(("key", ""), rows), left_out)


class Inspection(NamedTuple):
    """The result of comparing at most 50 members of a cluster with each other."""

    weakest_member: str
    """The member whose most similar other member is the least similar."""
    least: float
    """The least similarity of two members; if `is_exact` is false, it may be lower."""
    is_exact: bool
    """Whether all members were compared."""
    template: tuple[str, ...]
    """The shingles that most members share, and also documents outside, or most of the corpus."""
    held_by_template: bool
    """Whether most members match no other member without the template."""


class InspectedCluster(NamedTuple):
    """A cluster, and what holds it together."""

    cluster: Cluster[str]
    inspection: Inspection


class SharedShingle(NamedTuple):
    """A shingle that many documents of a corpus share."""

    text: str
    """The text of the shingle."""
    share: float
    """The share of the sampled texts that have it."""
    keys: tuple[str, ...]
    """Up to three documents that have it."""
    clusters: int | None
    """The clusters in which most sampled members have it; None if no clusters were asked for."""


class Boilerplate(NamedTuple):
    """The shingles that many documents of a corpus share, and the sample that shows them."""

    documents: int
    """The documents of the corpus."""
    sampled: int
    """The documents of the sample."""
    texts: int
    """The different texts of the sample; shares are shares of them."""
    shingles: list[SharedShingle]
    """The shingles, the most frequent first."""

    def __repr__(self) -> str:
        return short_repr(self, self._fields)

    def _repr_html_(self) -> str:
        sample = f"{self.texts:,} different texts of {count(self.sampled, 'document')}"
        shingles = rows_as_table(self.shingles, len(self.shingles))
        return output(note(f"{sample}, of {self.documents:,}"), shingles)


class Member(NamedTuple):
    """A document of a cluster of a tracked corpus."""

    key: str
    """The key of the document."""
    cluster: int
    """The id of the cluster, which it keeps, and which no other cluster ever gets."""
    representative: str | None
    """The document that stands for the cluster; None if it was removed since the last update."""
    similarity: float | None
    """The similarity to the representative; None if it is below the threshold."""
    crowded: bool
    """Whether it has too many candidates, and was compared with at most 200 earlier ones.

    Texts of one template have as many. Its cluster may be incomplete.
    """


class ClusterEvent(NamedTuple):
    """An event in the life of a cluster of a tracked corpus."""

    id: int
    """The id of the event; an event that is committed later has a higher id."""
    at: datetime
    """When the clusters were updated."""
    what: str
    """One of created, joined, left, split, merged and ended."""
    cluster: int
    """The id of the cluster."""
    key: str | None
    """The document that joined or left; None for other events."""
    other: int | None
    """The cluster that the document left, that members went to, or that all members went to."""


class Duplicate(NamedTuple):
    """A document to remove (`key`), the document that is kept instead (`kept`), and their similarity."""

    key: str
    kept: str
    similarity: float


class Judgement(NamedTuple):
    """The opinion of a person on two documents, which need not exist."""

    a: str
    """The key of one document; `a` < `b`."""
    b: str
    """The key of the other document."""
    verdict: str
    """The verdict: "same", "different" or "unsure"."""
    judged_by: str
    """The role of the database that judged the pair."""
    judged_at: datetime
    """When it did so."""
    note: str | None
    """Why, or anything else."""


class Contradiction(NamedTuple):
    """Two documents that were judged different, although a chain of the verdict "same" connects them."""

    a: str
    """The key of one document; `a` < `b`."""
    b: str
    """The key of the other document."""
    chain: tuple[str, ...]
    """The keys of a shortest chain, from `a` to `b`."""


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


class Problem(NamedTuple):
    """A stored row or an object of the database that is not as it should be."""

    kind: str
    """The invariant or the kind of object, such as "signature", "missing band row" or "index"."""
    subject: str
    """The key of the document, the word, the table or the object."""
    detail: str
    """The expected and the stored state."""
    remedy: str
    """The command or the SQL that mends it."""


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
    """The documents of a tracked corpus whose wrong matches or clusters were computed anew."""
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


class Status(NamedTuple):
    """How many documents of a corpus and its attached tables are indexed, pending or failed."""

    indexed: int
    """The documents in the index."""
    pending: int
    """The documents to index."""
    oldest_pending: datetime | None
    """The time of the oldest pending change, or None."""
    failed: int
    """The documents that were set aside with an error."""
    is_estimate: bool
    """Whether `pending` or `as_text` is an estimate.

    It is one above ten thousand changes, and while a table is compared with the corpus.
    """
    problems: list[str]
    """The reasons why attached tables are not kept indexed, such as a disabled trigger."""
    as_text: int
    """The documents in the log that are stored as text.

    They are complete; a worker or `index_pending` gives their words ids, which save space. Removed
    documents may count too.
    """
    saved_by_ids: int
    """About how many bytes the ids would save."""
    linkage: str | None
    """The linkage of the tracked clusters; None if the corpus is not tracked."""
    tracked_threshold: float | None
    """The least similarity of a match in the tracked clusters; None if the corpus is not tracked."""
    outdated: int
    """The documents that have changed since the tracked clusters were updated."""
    outdated_since: datetime | None
    """The time of the first of these changes, or None."""
    crowded: int
    """The texts of the tracked clusters that were compared with some of their candidates only."""
    indexed_is_estimate: bool
    """Whether `indexed` is an estimate: above ten thousand documents."""


class ScopeStatus(NamedTuple):
    """How many documents a scope has."""

    scope: str
    indexed: int
    """The documents in the index."""
    as_text: int
    """The documents among them whose words wait for ids."""


class Activity(NamedTuple):
    """How far a corpus is behind its tables, and how many documents were written."""

    lag: float | None
    """Seconds since the oldest pending change, by the server's clock; None if none is pending."""
    written: int
    """The documents that all clients have written so far.

    The server counts them with a delay of a second, and starts at 0 after a crash or a rebuild. Two
    readings give a rate.
    """
    cluster_lag: float | None
    """Seconds since the first change that the tracked clusters lack; None if they lack none."""


class WorkerState(NamedTuple):
    """The progress of a running worker. Times are seconds ago, by the server's clock; None if never."""

    host: str
    """The machine of the worker."""
    process: int
    """The process id of the worker."""
    reported: float
    """Its last report. A worker reports every 5 seconds, if it can write."""
    claimed: float | None
    """When it last looked for pending changes."""
    wrote: float | None
    """The end of its last write."""
    step: str
    """The present step of the worker."""
    step_seconds: float
    """How long the step has lasted so far."""
    error: str | None
    """Its last error."""
    failed: float | None
    """When its last error was."""

    @property
    def is_failing(self) -> bool:
        """Whether it has had no success since its last error."""
        return self.failed is not None and (self.claimed is None or self.claimed > self.failed)

    @property
    def is_busy(self) -> bool:
        """Whether it does something, and does not wait for changes."""
        return self.step != IDLE


class Metric(NamedTuple):
    """A figure for a monitoring system, in the names of Prometheus."""

    name: str
    """The name; a name that ends in `_total` is a counter, every other one a gauge."""
    labels: dict[str, str]
    """The corpus, and the kind or the state; or the worker, as host:process."""
    value: float
    """The value; times are seconds since 1970."""
    help: str
    """The meaning of the metric."""


IDLE = "waits for changes"
"""The step of a worker that waits for changes."""


class Drift(NamedTuple):
    """A document that differs between a corpus and its table."""

    key: str
    """The key of the document."""
    kind: str
    """The difference: "missing" (only in the table), "different", or "surplus" (only in the corpus)."""


class Failure(NamedTuple):
    """A document that was set aside."""

    key: str | None
    """The key of the document.

    None if comparing a whole table failed, or if the document was removed and its cluster cannot be
    updated.
    """
    table: str | None
    """The attached table, or None if a client added the document."""
    tries: int
    """How often it was tried."""
    error: str
    """The error of the last try."""


class RecallReport(NamedTuple):
    """The recall of a corpus at a threshold, measured by brute force on a sample of its documents."""

    threshold: float
    """The threshold of the measurement."""
    documents: int
    """The documents in the corpus."""
    empty: int
    """The documents without words, which are left out."""
    words: float
    """The mean number of words in a document."""
    sampled: int
    """The documents that were compared with all documents."""
    pairs: int
    """The matching pairs of a sampled document and another document."""
    candidate_pairs: int
    """The matching pairs that share a bucket."""
    recall: float | None
    """`candidate_pairs` / `pairs`, or None without pairs."""
    interval: tuple[float, float]
    """The 95 % confidence interval of the recall."""
    promised: float | None
    """The recall that bands and rows promise for pairs of these similarities."""
    histogram: list[int]
    """The pairs that share a shingle, by hundredths of similarity; similarity 1 is last.

    Each pair counts once.
    """
    sampled_histogram: list[int]
    """The part of `histogram` whose two documents are both in the sample."""
    candidates: list[int]
    """The number of candidates of each sampled document."""
    missed: list[Pair]
    """The matching pairs that share no bucket, the most similar first."""
    lost: list[str]
    """The sampled documents that share a bucket with none of their matches."""
    curve: list[float]
    """The probability that a pair is found, by hundredths of similarity from 0 to 1.

    In an exact corpus it is 1 from the threshold of the corpus on; 0 stands below it.
    """

    def __repr__(self) -> str:
        return short_repr(self, self._fields)

    def _repr_html_(self) -> str:
        values = [
            ("recall", "unknown: the sample has no pair" if self.recall is None else self.recall),
            ("95 % confidence", "{:.4f} to {:.4f}".format(*self.interval)),
            ("promised", self.promised),
            ("threshold", f"{self.threshold:g}"),
            ("pairs", self.pairs),
            ("pairs found", self.candidate_pairs),
            ("documents compared with all", self.sampled),
            ("documents", self.documents),
        ]
        missed = note("missed pairs") + rows_as_table(self.missed, len(self.missed))
        return output(
            facts(values),
            over_similarity(self.histogram, self.curve, self.threshold),
            note(
                "bars: pairs of the sample by similarity, on a logarithmic scale; line: the probability "
                "that a pair is found; dashed: the threshold"
            ),
            missed if self.missed else "",
        )


class Source(NamedTuple):
    """An attached table, which is kept indexed."""

    corpus: str
    """The name of the corpus."""
    table: str
    """The name of the table."""
    key_columns: tuple[str, ...]
    """The columns of the keys, whose values are joined as by `join_key`."""
    text: str
    """The column of the texts."""
    scope: str | None
    """The column of the scopes; None if the corpus is not scoped."""
    mode: str
    """The mode, "queue" or "inline"; see `Mode`."""
    time: str | None
    """The column of the times from which documents count for `keep_for`; or None."""
    expires: str | None
    """The column of the times from which documents no longer count; or None."""
    row_filter: str | None
    """The condition on the rows that have a document; None: every row."""


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


@dataclass(frozen=True, slots=True, repr=False)
class Statistics:
    """Statistics of a corpus: documents, words, languages, candidates, buckets and storage."""

    recall: float
    """The probability of finding a pair at the threshold; 1 in an exact corpus."""
    documents: int
    """The number of documents."""
    empty: int
    """The number of documents without words."""
    words: int
    """The number of words."""
    vocabulary: int
    """The number of distinct words."""
    growth: list[Growth]
    """The words and distinct words in the first 5 % of the documents, the first 10 %, and so on.

    The documents are in the order of their ids.
    """
    frequent: list[Frequency]
    """The most frequent words."""
    languages: dict[str, int]
    """The number of documents in each language, if languages are identified."""
    lengths: dict[int, int]
    """The percentiles of the number of words in a document: 0, 5, 25, 50, 75, 95 and 100."""
    sampled: int
    """The number of sampled documents."""
    candidates: int
    """The number of all candidates of the sampled documents."""
    similarities: list[int]
    """A histogram of the similarities of these candidates with 100 counts.

    The first count is for similarities below 0.01; the last count includes similarity 1.
    """
    buckets: list[tuple[int, int]]
    """Pairs (documents in a bucket, number of buckets of this size)."""
    storage: dict[str, int]
    """Bytes of the documents, of the band rows, and of the indexes of each."""

    def __repr__(self) -> str:
        return short_repr(self, (each.name for each in fields(self)))

    def _repr_html_(self) -> str:
        values = [
            ("documents", self.documents),
            ("documents without words", self.empty),
            ("words", self.words),
            ("distinct words", self.vocabulary),
            ("words of the median document", self.lengths.get(50)),
            ("candidates of a document", self.candidates / max(self.sampled, 1)),
            ("bytes", sum(self.storage.values())),
        ]
        languages = sorted(self.languages.items(), key=lambda each: -each[1])
        return output(
            facts(values),
            table(("language", "documents"), languages) if languages else "",
            over_similarity(self.similarities),
            note("candidates of the sample by similarity, on a logarithmic scale"),
            rows_as_table(self.frequent, len(self.frequent)),
        )
