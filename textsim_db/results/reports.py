"""Reports of written documents, and figures of a whole corpus."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple

from textsim_db.results import html
from textsim_db.results.rows import Pair
from textsim_db.results.shown_values import count


class SharedShingle(NamedTuple):
    """A shingle that many documents of a corpus share."""

    text: str
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
        return html.short_repr(self, self._fields)

    def _repr_html_(self) -> str:
        sample = f"{self.texts:,} different texts of {count(self.sampled, 'document')}"
        shingles = html.rows_as_table(self.shingles, len(self.shingles))
        return html.output(html.note(f"{sample}, of {self.documents:,}"), shingles)


class RecallReport(NamedTuple):
    """The recall of a corpus at a threshold, measured by brute force on a sample of its documents."""

    threshold: float
    """The threshold of the measurement."""
    documents: int
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
    missed: list[Pair[str]]
    """The matching pairs that share no bucket, the most similar first."""
    lost: list[str]
    """The sampled documents that share a bucket with none of their matches."""
    curve: list[float]
    """The probability that a pair is found, by hundredths of similarity from 0 to 1.

    In an exact corpus it is 1 from the threshold of the corpus on; 0 stands below it.
    """
    shingle: str | None = None
    """A longer shingle that fits the script of the documents, such as Chinese; None if theirs fits."""

    def __repr__(self) -> str:
        return html.short_repr(self, self._fields)

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
        missed = html.note("missed pairs") + html.rows_as_table(self.missed, len(self.missed))
        return html.output(
            html.facts(values),
            html.over_similarity(self.histogram, self.curve, self.threshold),
            html.note(
                "bars: pairs of the sample by similarity, on a logarithmic scale; line: the probability "
                "that a pair is found; dashed: the threshold"
            ),
            missed if self.missed else "",
        )


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
    empty: int
    """The number of documents without words."""
    words: int
    vocabulary: int
    growth: list[Growth]
    """The words and distinct words in the first 5 % of the documents, the first 10 %, and so on.

    The documents are in the order of their ids.
    """
    frequent: list[Frequency]
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
        return html.short_repr(self, (each.name for each in fields(self)))

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
        return html.output(
            html.facts(values),
            html.table(("language", "documents"), languages) if languages else "",
            html.over_similarity(self.similarities),
            html.note("candidates of the sample by similarity, on a logarithmic scale"),
            html.rows_as_table(self.frequent, len(self.frequent)),
        )


class Twin(NamedTuple):
    """A document that a unique corpus left out, because it matches a document of the corpus."""

    key: str
    """The key of the document that was left out."""
    standing: str
    """The key of the most similar document that stays."""
    similarity: float


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
    without_words: int = 0
    """The stored documents without words that count, such as empty texts. They match nothing."""
    some_repeated: list[str] = field(default_factory=list, repr=False, compare=False)
    """The first different keys of these documents, at most five."""
    refused: list[Refusal] = field(default_factory=html.ResultList)
    """The documents that were not stored, with the reason."""
    twins: list[Twin] = field(default_factory=html.ResultList)
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
        names = ("added", "replaced", "unchanged", "repeated_keys", "without_words")
        counts = [(name.replace("_", " "), getattr(self, name)) for name in names]
        counts += [("refused", len(self.refused)), ("twins", len(self.twins))]
        tables = [
            html.rows_as_table(rows, len(rows)) for rows in (self.refused, self.twins) if rows
        ]
        return html.output(html.facts(counts), *tables)


@dataclass(slots=True)
class ForgetReport:
    """The numbers of rows that forget() removed, and what it could not reach."""

    documents: int = 0
    judgements: int = 0
    """The judgements of their pairs, with the notes."""
    events: int = 0
    """The events of their clusters."""
    log_entries: int = 0
    """The entries of the log that named them."""
    has_words: bool = True
    """Whether the corpus still has their words: it is not rebuilt yet."""
    to_run: list[str] = field(default_factory=list)
    """The statements that others held up; files have removed rows until these have run."""

    out_of_reach: ClassVar[tuple[str, ...]] = (
        "the write-ahead log and its archive",
        "backups and dumps",
        "standbys, until they have replayed the changes",
        "your own tables, until VACUUM FULL writes them anew, and their statistics, until ANALYZE",
    )
    """The places that may still have the texts."""


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
    without_words: int = 0
    """The documents without words among the added, replaced and unchanged. They match nothing."""
    mended: int = 0
    """The documents of a tracked corpus, if any match or cluster was wrong: all were computed anew."""
    refused: list[Refusal] = field(default_factory=html.ResultList)
    """The documents that were set aside, with the reason."""

    @property
    def written(self) -> int:
        """The number of documents that were added, replaced, removed or completed."""
        return self.added + self.replaced + self.removed + self.completed

    @property
    def summary(self) -> str:
        """The counts as a phrase, such as "2 added, 1 removed"."""
        counts = {
            "added": self.added,
            "replaced": self.replaced,
            "removed": self.removed,
            "given word ids": self.completed,
            "unchanged": self.unchanged,
            "without words": self.without_words,
            "given clusters anew": self.mended,
            "set aside": len(self.refused),
        }
        return (
            ", ".join(f"{n:,} {outcome}" for outcome, n in counts.items() if n) or "nothing to do"
        )

    def include(self, other: ChangeReport) -> None:
        """Add the counts and refusals of another report."""
        for each in fields(self):
            total = getattr(self, each.name)
            total += getattr(other, each.name)
            setattr(self, each.name, total)
