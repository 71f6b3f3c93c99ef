"""The rows that searches, lists of pairs and clusters, and judgements consist of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from textsim_db.results.html import ResultList, note, output, table
from textsim_db.results.shown_values import count

AnyKey = TypeVar("AnyKey", str, int)

_SHOWN_KEYS = 20
"""The keys of a cluster that a notebook shows."""


class Pair(NamedTuple, Generic[AnyKey]):
    """Two matching documents, with the keys `a` < `b`, and their exact similarity."""

    a: AnyKey
    b: AnyKey
    similarity: float


class StoredKey(NamedTuple):
    """The key of a document, and what the corpus knows of the document besides its text."""

    key: str
    source: str | None
    """The attached table that it comes from, as `sources()` names it; None if it was added directly."""
    scope: str | None
    language: str | None
    """Its ISO 639 code, if the corpus identifies languages."""
    records: int
    """How many records `textsim dedupe --add` has taken for it, itself included."""


class DoubtfulPair(NamedTuple):
    """Two matching documents that nobody has judged, with the keys `a` < `b`."""

    a: str
    b: str
    similarity: float
    differs: tuple[str, ...] = ()
    """The guards of the corpus that differ, if the two are siblings."""


class Cluster(NamedTuple, Generic[AnyKey]):
    """Documents that pairs connect."""

    keys: tuple[AnyKey, ...]
    """The keys of two documents or more, in order."""
    weakest: float
    """The lowest similarity among the links that hold the cluster together.

    A threshold up to this value does not split the cluster.
    """
    kept: AnyKey | None = None
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


class Member(NamedTuple):
    """A document of a cluster of a tracked corpus."""

    key: str
    cluster: int
    """The id of the cluster, which it keeps, and which no other cluster ever gets."""
    representative: str | None
    """The document that stands for the cluster; None if it was removed since the last update."""
    similarity: float | None
    """The similarity to the representative; None if it is below the threshold."""
    crowded: bool
    """Whether it has too many candidates, of which at most 200 earlier ones count.

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


class MergeReport(NamedTuple):
    """The outcome of merge()."""

    run: int | None
    """The number of the run, for unmerge(); None if no row was merged."""
    merged: int
    """The rows that were merged, each into the row that is kept."""
    left_alone: dict[str, str]
    """The keys of rows that are no duplicates now, or that a constraint or trigger keeps, and why."""


class Unmerged(NamedTuple):
    """A row that unmerge() has brought back, or not."""

    key: str
    kept_key: str
    """The key of the row that was kept in its place."""
    outcome: str
    """restored, if need be with why it was not judged; or why the row did not come back."""


class Split(NamedTuple, Generic[AnyKey]):
    """Documents that were split at random, each cluster whole: no similar pair is in two subsets."""

    subsets: dict[str, tuple[AnyKey, ...]]
    """The keys of each subset by its name."""
    cut: int
    """The similar pairs that a split of single documents, with the same shares and seed, would cut."""
    largest: int
    """The documents of the largest cluster."""


class Distinct(NamedTuple, Generic[AnyKey]):
    """A result that may not be merged with one of higher rank."""

    key: AnyKey
    """The key of the document, or of the text."""
    rank: int
    """The place of the key in the list, from 1; what comes first has the highest rank."""
    copies: tuple[AnyKey, ...]
    """The results that it stands for, in order."""


class Match(NamedTuple):
    """A document that matches a query: its exact similarity reaches the threshold."""

    key: str
    similarity: float
    """The exact value of the measure, by default the Jaccard similarity."""
    differs: tuple[str, ...] = ()
    """The guards of the corpus that differ, so that the two are never merged."""


class Outcome(StrEnum):
    """The outcome of Corpus.add_unique() for a document."""

    NEW = "new"
    """It is stored, and has no match that nobody has judged."""
    TWIN = "twin"
    """Other documents keep it out."""
    REJECTED = "rejected"
    """A document that was rejected keeps it out."""
    DOUBTFUL = "doubtful"
    """It is stored beside matches below `unique_from`."""
    SIBLING = "sibling"
    """It is stored beside matches whose guards differ."""
    UNCHANGED = "unchanged"
    """It has the words of the stored document with its key."""


class Answer(NamedTuple):
    """The outcome of a write, and the documents that decided it."""

    outcome: Outcome
    matches: list[Match]
    """If it is a twin, all documents that keep it out, best first; of a stored document the best ten."""
    reason: str | None = None
    """Why the first of them was rejected, which comes before others; None if it was not."""

    @property
    def is_stored(self) -> bool:
        """Whether the corpus has the document now."""
        return self.outcome not in (Outcome.TWIN, Outcome.REJECTED)


class Rejected(NamedTuple):
    """A document that was rejected, so that its twins are kept out."""

    key: str
    """The key that it has since, such as "rejected: a"."""
    reason: str
    scope: str | None
    """The scope; None if the corpus is not scoped."""


class QueryMatch(NamedTuple):
    """A document that matches a row of a frame of queries."""

    query: Any
    """The row's value of the column `key`; its place, from 0 on, without this column."""
    key: str
    similarity: float
    """The exact value of the measure, by default the Jaccard similarity."""


class Candidate(NamedTuple):
    """A document that shares enough buckets with a query and is not verified."""

    key: str
    shared: int
    """The number of shared buckets."""


class Passage(NamedTuple):
    """A run of words that a text shares with a document; the document has no longer run around it."""

    key: str
    words: int
    in_text: int
    """The words of the text before the run; if the text has the run several times, before the first."""
    in_document: int
    """The words of the document before the run."""
    start: int | None = None
    """The characters of the text before the run; None if the text is a stored document."""
    end: int | None = None
    """The characters of the text up to the end of the run; None if the text is a stored document."""


class Region(NamedTuple):
    """Words of a document that a text has in changed form: passages with short gaps between them."""

    key: str
    share: float
    """The share of equal words: 2 * the words that both sides have / the words of both, 0.34 or more."""
    in_text: int
    """The words of the text before the region."""
    words_in_text: int
    """The words of the region in the text."""
    in_document: int
    """The words of the document before the region."""
    words_in_document: int
    """The words of the region in the document."""
    passages: tuple[Passage, ...]
    """The equal runs in it, one or more, in the order of the text."""
    start: int | None = None
    """The characters of the text before the region."""
    end: int | None = None
    """The characters of the text up to its end."""


class CommonRun(NamedTuple):
    """A run of words of a text that too many documents have, so that a search did not read them."""

    words: int
    in_text: int
    """The words of the text before the run."""
    documents: int
    """About how many documents have a shingle of it: counted up to 100,000, or estimated from the sample
    from which the corpus has learned its common shingles."""


class PassageList(ResultList[Passage]):
    """The passages of a text, the longest first."""

    def __init__(self, passages: Iterable[Passage] = (), common: Iterable[CommonRun] = ()) -> None:
        super().__init__(passages)
        self.common = list(common)
        """The runs whose shingles are in very many documents, or in more than max_documents."""


class Contamination(NamedTuple):
    """The passages that a record of a test set shares with the documents of a corpus."""

    key: str
    words: int
    coverage: float
    """The share of its words that are in passages, 0 to 1."""
    documents: list[str]
    """The keys of the documents that share passages with it, in order."""
    passages: list[Passage]
    """The passages, the longest first."""
    common: list[CommonRun]
    """The runs whose shingles are in very many documents, or in more than max_documents."""


class SharedPassage(NamedTuple):
    """A run of words that two documents share; `b` has no longer run around it that `a` has."""

    a: str
    b: str
    words: int
    in_a: int
    """The words of a before the run; if a has the run several times, before the first."""
    in_b: int
    """The words of b before the run."""


class Judgement(NamedTuple):
    """The opinion of a person or a model on two documents, which need not exist."""

    a: str
    """The key of one document; `a` < `b`."""
    b: str
    verdict: Literal["same", "different", "unsure"]
    judged_by: str
    """The role of the database that judged the pair."""
    judged_at: datetime
    """When it did so."""
    note: str | None
    """Why, or anything else."""
    source: str | None = None
    """The name of the person or the model that judges."""
    confidence: float | None = None
    """How sure that is, from 0 to 1."""
    hash_a: str | None = None
    """The hash of the text of `a` that was judged; None: the judgement holds for any text."""
    hash_b: str | None = None
    """The same of `b`."""
    is_stale: bool = False
    """Whether one of the texts has changed since; then nothing obeys the judgement."""
