"""Pages that stand alone in a file: what dedupe removed, and two texts side by side.

Their templates and their style are those of the review; they need no server, and run no script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from textsim_db.dedupe.by_temporary_corpus import Deduplication, Rule
from textsim_db.dedupe.shown_removals import (
    COMPARED,
    RemovedCluster,
    RemovedPair,
    ShownRemovals,
    ShownTexts,
    StoredDocument,
    Tenth,
)
from textsim_db.measures.explanation import Explanation, measure_rows, warning
from textsim_db.review.reviewed import Text
from textsim_db.review.side_by_side import begin_of, compare_texts
from textsim_db.review.site import render

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
