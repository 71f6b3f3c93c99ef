"""Pages that stand alone in a file: what dedupe removed, and two texts side by side.

Their templates and their style are those of the review; they need no server, and run no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textsim_db.dedupe.by_temporary_corpus import Deduplication, Rule
from textsim_db.errors import DocumentNotFound
from textsim_db.measures.explanation import Explanation, measure_rows, warning
from textsim_db.review.reviewed import Text
from textsim_db.review.side_by_side import begin_of, compare_texts
from textsim_db.review.site import render
from textsim_db.settings.corpus_settings import CorpusConfig, CorpusSettings
from textsim_db.sketch.sketch_texts import tokens_without
from textsim_db.text.storable_text import to_bytes

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


SHOWN_PAIRS = 5
"""The pairs of each tenth that are shown."""
SHOWN_CLUSTERS = 100
"""The clusters that are shown."""
SHOWN_MEMBERS = 10
"""The removed records of a cluster that are shown."""
_TENTHS = 10


class StoredDocument(NamedTuple):
    """A document of a corpus."""

    corpus: str
    key: str


class RemovedPair(NamedTuple):
    """A record that is removed, and what is kept in its stead."""

    removed: int
    """The place of the record, from 0 on."""
    kept: int | StoredDocument
    """The place of the kept record, or a document of a corpus."""
    similarity: float


class Tenth(NamedTuple):
    """The removed pairs of a tenth of similarity; those of similarity 1 are a class of their own."""

    low: float
    """The least similarity of the tenth; 1 for equal sets."""
    pairs: int
    """The number of pairs."""
    sample: list[RemovedPair]
    """Some of them, spread over their similarities, the least similar first."""


class RemovedCluster(NamedTuple):
    """The records that are removed for one kept document."""

    kept: int | StoredDocument
    removed: int
    """The number of removed records."""
    shown: list[RemovedPair]
    """Some of them, the least similar first."""


class ShownRemovals(NamedTuple):
    """The removals that a page shows."""

    tenths: list[Tenth]
    """All classes from 0 on, the last for similarity 1."""
    clusters: list[RemovedCluster]
    """The largest clusters, the largest first."""
    all_clusters: int
    """The number of all clusters."""

    def pairs(self) -> Iterator[RemovedPair]:
        """Yield the pairs that are shown; a pair may come twice."""
        for part in (*(tenth.sample for tenth in self.tenths), *(c.shown for c in self.clusters)):
            yield from part


def choose_removals(result: Deduplication) -> ShownRemovals:
    """Choose what a page shows of a result; the same result gives the same choice."""
    pairs = [RemovedPair(*removal) for removal in result.removals]
    pairs += [
        RemovedPair(number, StoredDocument(standing.corpus, standing.key), standing.similarity)
        for number, standing in result.standing.items()
    ]
    pairs.sort(key=lambda pair: (pair.similarity, pair.removed))
    by_kept: dict[int | StoredDocument, list[RemovedPair]] = {}
    for pair in pairs:
        by_kept.setdefault(pair.kept, []).append(pair)
    # Ties go to the cluster whose first removed record comes first.
    largest = sorted(by_kept.items(), key=lambda each: (-len(each[1]), min(each[1]).removed))
    clusters = [
        RemovedCluster(kept, len(removed), removed[:SHOWN_MEMBERS])
        for kept, removed in largest[:SHOWN_CLUSTERS]
    ]
    return ShownRemovals(list(_tenths(pairs)), clusters, len(by_kept))


def _tenths(pairs: Iterable[RemovedPair]) -> Iterator[Tenth]:
    lows = [step / _TENTHS for step in range(_TENTHS + 1)]
    classes: list[list[RemovedPair]] = [[] for _ in lows]
    for pair in pairs:
        classes[sum(low <= pair.similarity for low in lows) - 1].append(pair)
    for low, members in zip(lows, classes, strict=True):
        yield Tenth(low, len(members), _spread(members))


def _spread(pairs: Sequence[RemovedPair]) -> list[RemovedPair]:
    """Return some of the pairs at equal distances."""
    number = min(SHOWN_PAIRS, len(pairs))
    return [pairs[int((i + 0.5) * len(pairs) / number)] for i in range(number)]


COMPARED = 10_000
"""The characters of a text that a page compares."""
_LONGEST_IN_MEMORY = 2 * COMPARED
"""The characters of a record that are kept in memory."""


class ShownTexts(NamedTuple):
    """The texts of the pairs that a page shows, or their starts if they are long."""

    records: dict[int, str]
    """The text of a record, by its place."""
    forms: dict[int, str]
    """The words of a record that matches a document, as a corpus stores them."""
    documents: dict[StoredDocument, str]
    """The words of a document, with one space between them."""


def read_documents(shown: ShownRemovals, corpora: Sequence[Corpus]) -> dict[StoredDocument, str]:
    """Return the words of the documents that are shown; a document that was removed since has none."""
    by_name = {corpus.name: corpus for corpus in corpora}
    return {
        kept: _words_of(by_name[kept.corpus], kept.key)
        for _, kept, _ in shown.pairs()
        if isinstance(kept, StoredDocument)
    }


def read_texts(
    shown: ShownRemovals,
    texts: Iterable[str | None],
    documents: dict[StoredDocument, str],
    settings: CorpusSettings,
) -> ShownTexts:
    """Choose the texts that are shown; texts: the texts of all records, in their order."""
    pairs = list(shown.pairs())
    wanted = {number for pair in pairs for number in pair[:2] if isinstance(number, int)}
    records = {
        number: text[:_LONGEST_IN_MEMORY]
        for number, text in enumerate(texts)
        if number in wanted and text is not None
    }
    forms = {
        removed: _form(records[removed], settings)
        for removed, kept, _ in pairs
        if isinstance(kept, StoredDocument)
    }
    return ShownTexts(records, forms, documents)


def _words_of(corpus: Corpus, key: str) -> str:
    with suppress(DocumentNotFound):
        return corpus.normal_form(key)
    return ""


def _form(text: str, settings: CorpusSettings) -> str:
    """Return a text as a corpus stores it; the settings of a corpus are a CorpusConfig."""
    config = settings if isinstance(settings, CorpusConfig) else settings.complete()
    tokens = tokens_without([to_bytes(text)], config)
    return " ".join(tokens.words(np.arange(len(tokens.starts))))


PAGE_BYTES = 5_000_000
"""The bytes of clusters from which on no further cluster is added."""
_FAULTS = 20


class Faults(NamedTuple):
    """The records that were not compared."""

    reasons: Sequence[str] = ()
    are_kept: bool = True
    """Whether these records stay."""

    @property
    def title(self) -> str:
        """The outcome of these records, for a heading."""
        return f"{'kept' if self.are_kept else 'left out'}, because they cannot be compared"


class ReportedRun(NamedTuple):
    """The run that a page reports."""

    title: str
    rule: Rule
    result: Deduplication
    keys: Sequence[str | None]
    """The key of each record."""
    faults: Faults


def comparison_page(explanation: Explanation, a: str, b: str) -> str:
    """Return the page of two texts with these names."""
    return render(
        "comparison.html",
        title=f"{a} and {b}",
        names=(a, b),
        parts=explanation.parts,
        warning=warning(explanation.distinctions),
        measures=measure_rows(explanation),
    )


def removal_page(run: ReportedRun, shown: ShownRemovals, texts: ShownTexts) -> str:
    """Return the page of a run of dedupe.

    Its size is bounded: it names what it leaves out.
    """
    pairs = _Pairs(run.keys, texts)
    clusters = list(_clusters(shown, pairs))
    first = next((i for i, tenth in enumerate(shown.tenths) if tenth.pairs), len(shown.tenths))
    return render(
        "removals.html",
        title=f"What was removed from {run.title}",
        facts=_facts(run, shown),
        tenths=[(_range(tenth), tenth.pairs) for tenth in shown.tenths[first:]],
        most=max(tenth.pairs for tenth in shown.tenths) or 1,
        samples=[
            (_range(tenth), tenth.pairs, [pairs.row(pair) for pair in tenth.sample])
            for tenth in shown.tenths
            if tenth.pairs
        ],
        clusters=clusters,
        clusters_left_out=shown.all_clusters - len(clusters),
        faults=run.faults.reasons[:_FAULTS],
        faults_title=run.faults.title,
        faults_left_out=len(run.faults.reasons) - _FAULTS,
    )


def _facts(run: ReportedRun, shown: ShownRemovals) -> dict[str, object]:
    result, settings, faults = run.result, run.rule.settings, run.faults
    dropped = 0 if faults.are_kept else len(faults.reasons)
    removed = len(result.removals) + len(result.standing)
    counts = {
        "records": result.documents,
        "kept": result.documents - removed - dropped,
        faults.title: len(faults.reasons),
        "removed": len(result.removals),
        "removed, because a corpus has a match": len(result.standing),
        "clusters": shown.all_clusters,
    }
    always = ("records", "kept", "removed", "clusters")
    return {
        **{name: f"{number:,}" for name, number in counts.items() if number or name in always},
        "threshold": f"{settings.threshold:g}",
        "shingle": str(settings.shingle),
        "linkage": str(run.rule.linkage),
        "kept record of a cluster": ":".join(filter(None, run.rule.preference)),
    }


def _range(tenth: Tenth) -> str:
    if tenth.low == 1:
        return "1: the same shingles"
    return f"{tenth.low:.1f} to below {tenth.low + 0.1:.1g}"


class _Pairs:
    """Pairs as the templates show them."""

    def __init__(self, keys: Sequence[str | None], texts: ShownTexts) -> None:
        self._keys = keys
        self._texts = texts

    def row(self, pair: RemovedPair) -> Mapping[str, object]:
        """Return the names of two documents, and where their starts differ."""
        kept, removed = self.text(pair.kept), Text(self._texts.records[pair.removed], True)
        if isinstance(pair.kept, StoredDocument):
            removed = Text(self._texts.forms[pair.removed], False)
        starts = [Text(each.text[:COMPARED], each.is_original) for each in (kept, removed)]
        compared, is_cut = compare_texts(*starts), [kept, removed] != starts
        return {
            "kept": self.name(pair.kept),
            "removed": self.name(pair.removed),
            "similarity": pair.similarity,
            "compared": compared,
            "is_cut": is_cut,
            "is_equal": all(run.is_same for run in (*compared.left, *compared.right)),
            "warning": "" if is_cut else warning(compared.distinctions),
        }

    def name(self, document: int | StoredDocument) -> Mapping[str, object]:
        """Return the parts of the name of a document."""
        if isinstance(document, StoredDocument):
            return document._asdict()
        return {"record": document + 1, "key": self._keys[document]}

    def text(self, document: int | StoredDocument) -> Text:
        """Return the text of a document; a corpus stores words only."""
        if isinstance(document, StoredDocument):
            return Text(self._texts.documents[document], False)
        return Text(self._texts.records[document], True)


def _clusters(shown: ShownRemovals, pairs: _Pairs) -> Iterator[str]:
    """Yield the clusters as HTML, up to PAGE_BYTES."""
    size = 0
    for cluster in shown.clusters:
        if size > PAGE_BYTES:
            return
        piece = _cluster(cluster, pairs)
        size += len(piece.encode(errors="replace"))
        yield piece


def _cluster(cluster: RemovedCluster, pairs: _Pairs) -> str:
    return render(
        "removed_cluster.html",
        kept=pairs.name(cluster.kept),
        begin=begin_of(pairs.text(cluster.kept)),
        removed=cluster.removed,
        least=cluster.shown[0].similarity,
        rows=[pairs.row(pair) for pair in cluster.shown],
        left_out=cluster.removed - len(cluster.shown),
    )
