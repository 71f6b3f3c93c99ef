"""Pages that stand alone in a file: what dedupe removed, and two texts side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from textsim_db.dedupe.against_corpora import form_in
from textsim_db.dedupe.removal_summary import (
    TENTHS,
    AnyDocument,
    Removal,
    StoredDocument,
    tenth_of,
)
from textsim_db.dedupe.removals import Deduplication, Rule
from textsim_db.measures.explanation import Explanation, measure_rows, warning
from textsim_db.measures.word_diff import ShownText
from textsim_db.results.shown_values import shown
from textsim_db.review.rendering import begin_of, compare_texts, render
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.sketch_texts import tokens_without
from textsim_db.text.storable import to_bytes

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


SHOWN_PAIRS = 5
"""The pairs of each tenth that are shown."""
SHOWN_CLUSTERS = 100
"""The clusters that are shown."""
SHOWN_MEMBERS = 10
"""The removed records of a cluster that are shown."""
PAGE_BYTES = 5_000_000
"""The bytes of clusters from which on no further cluster is added."""
COMPARED = 10_000
"""The characters of a text that a page compares."""
_LONGEST_IN_MEMORY = 2 * COMPARED
"""The characters of a record that are kept in memory."""
_FAULTS = 20
_LISTED = 20
"""The words of a list that are shown."""


def comparison_page(explanation: Explanation, a: str, b: str) -> str:
    return render(
        "comparison.html",
        title=f"{a} and {b}",
        names=(a, b),
        diff=explanation.diff,
        warning=warning(explanation.distinctions),
        measures=measure_rows(explanation),
    )


class RemovalPage:
    """The page of a run of dedupe. The same result gives the same page, whose size is bounded."""

    def __init__(self, result: Deduplication, rule: Rule, corpora: Sequence[Corpus] = ()) -> None:
        """Choose what is shown, and read documents of corpora before added records replace them."""
        self._result = result
        self._rule = rule
        self._holder = "corpus" if corpora else "file"  # of the documents that stand
        pairs = sorted(result.removals, key=lambda pair: (pair.similarity, pair.number))
        by_kept: dict[AnyDocument, list[Removal]] = {}
        for pair in pairs:
            by_kept.setdefault(pair.kept, []).append(pair)
        # Ties go to the cluster whose first removed record comes first.
        self._clusters = sorted(
            by_kept.values(), key=lambda each: (-len(each), min(pair.number for pair in each))
        )
        self._also_kept: dict[AnyDocument, list[Removal]] = {}
        for pair in sorted(result.also_kept):
            self._also_kept.setdefault(pair.kept, []).append(pair)
        self._tenths = list(_tenths(pairs))
        self._shown = [pair for _, members in self._tenths for pair in _spread(members)]
        for cluster in self._clusters[:SHOWN_CLUSTERS]:
            self._shown += cluster[:SHOWN_MEMBERS]
        self._documents = {
            pair.kept: result.standing_forms.get(pair.kept) or form_in(corpora, pair.kept)
            for pair in self._shown
            if isinstance(pair.kept, StoredDocument)
        }
        self._texts: dict[int, str] = {}
        self._keys: Sequence[str | None] = ()

    def html(
        self,
        title: str,
        texts: Iterable[str | None],
        keys: Sequence[str | None],
        faults: Sequence[str] = (),
        are_kept: bool = True,
        choices: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Return the page.

        faults: why some records were not compared; are_kept: whether they stay. choices: what else
        decided the result, such as the columns of the scope.
        """
        wanted = {place for pair in self._shown for place in pair[:2] if isinstance(place, int)}
        self._keys = keys
        self._texts = {
            place: text[:_LONGEST_IN_MEMORY]
            for place, text in enumerate(texts)
            if place in wanted and text is not None
        }
        clusters = list(self._rendered_clusters())
        first = next((i for i, (_, pairs) in enumerate(self._tenths) if pairs), len(self._tenths))
        faults_title = f"{'kept' if are_kept else 'left out'}, because they cannot be compared"
        return render(
            "removals.html",
            title=f"What was removed from {title}",
            facts=self._counts(faults_title, len(faults), 0 if are_kept else len(faults))
            | self._choices(choices or {}),
            tenths=[(name, len(pairs)) for name, pairs in self._tenths[first:]],
            most=max(len(pairs) for _, pairs in self._tenths) or 1,
            samples=[
                (name, len(pairs), [self._row(pair) for pair in _spread(pairs)])
                for name, pairs in self._tenths
                if pairs
            ],
            clusters=clusters,
            clusters_left_out=len(self._clusters) - len(clusters),
            faults=faults[:_FAULTS],
            faults_title=faults_title,
            faults_left_out=len(faults) - _FAULTS,
        )

    def _counts(self, faults_title: str, faults: int, dropped: int) -> dict[str, str]:
        result = self._result
        removed = len(result.removals)
        counts = {
            "records": result.documents,
            "kept": result.documents - removed - dropped,
            faults_title: faults,
            "removed": removed - result.count_stored(),
            f"removed, because a {self._holder} has a match": result.count_stored(),
            "clusters": len(self._clusters),
        }
        always = ("records", "kept", "removed", "clusters")
        return {name: f"{number:,}" for name, number in counts.items() if number or name in always}

    def _choices(self, others: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return what decided which records match, so that a page that is kept says it."""
        rule, config = self._rule, self._rule.config
        choices: dict[str, Sequence[str]] = {
            "threshold": [f"{config.threshold:g}"],
            "shingle": [str(config.shingle)],
            "recall": [f"{config.recall:.4g}"],
            "linkage": [str(rule.linkage)],
            "kept record of a cluster": [":".join(filter(None, rule.preference))],
            "records kept of a cluster": [f"up to {rule.keep_up_to}"]
            if rule.keep_up_to > 1
            else [],
            "guards": config.guards,
            "guard words": config.guard_words,
            "stop words": ["of each language"]
            if config.stop_words_by_language
            else config.stop_words,
            **others,
        }
        return {name: _listed(values) for name, values in choices.items() if values}

    def _rendered_clusters(self) -> Iterator[str]:
        """Yield the largest clusters as HTML, up to PAGE_BYTES."""
        size = 0
        for cluster in self._clusters[:SHOWN_CLUSTERS]:
            if size > PAGE_BYTES:
                return
            kept = cluster[0].kept
            also_kept = self._also_kept.get(kept, [])
            piece = render(
                "removed_cluster.html",
                kept=self._name(kept),
                begin=begin_of(self._text(kept)),
                removed=len(cluster),
                least=cluster[0].similarity,
                rows=[self._row(pair) for pair in cluster[:SHOWN_MEMBERS]],
                left_out=max(len(cluster) - SHOWN_MEMBERS, 0),
                also_kept=[(self._name(p.number), p.similarity) for p in also_kept[:SHOWN_MEMBERS]],
                also_kept_left_out=max(len(also_kept) - SHOWN_MEMBERS, 0),
            )
            size += len(piece.encode(errors="replace"))
            yield piece

    def _row(self, pair: Removal) -> Mapping[str, object]:
        kept, removed = self._text(pair.kept), self._text(pair.number)
        if not isinstance(pair.kept, int):
            removed = ShownText(_form(removed.text, self._rule.config), False)
        starts = [kept.begin(COMPARED), removed.begin(COMPARED)]
        compared, is_cut = compare_texts(*starts), [kept, removed] != starts
        return {
            "kept": self._name(pair.kept),
            "removed": self._name(pair.number),
            "similarity": pair.similarity,
            "compared": compared,
            "is_cut": is_cut,
            "is_equal": all(run.is_same for run in (*compared.left, *compared.right)),
            "warning": "" if is_cut else warning(compared.distinctions),
        }

    def _name(self, document: AnyDocument) -> Mapping[str, object]:
        if isinstance(document, int):
            return {"record": document + 1, "key": self._keys[document]}
        return {**document._asdict(), "holder": self._holder}

    def _text(self, document: AnyDocument) -> ShownText:
        """Return the text of a document; a corpus stores words only."""
        if isinstance(document, int):
            return ShownText(self._texts[document], True)
        return ShownText(self._documents[document], False)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(map(shown, names[:_LISTED])) + more


def _tenths(pairs: Iterable[Removal]) -> Iterator[tuple[str, list[Removal]]]:
    """Yield the tenths of similarity with their pairs; equal sets are a class of their own."""
    classes: list[list[Removal]] = [[] for _ in range(TENTHS + 1)]
    for pair in pairs:
        classes[tenth_of(pair.similarity)].append(pair)
    for tenth, members in enumerate(classes):
        low = tenth / TENTHS
        name = "1: the same shingles" if low == 1 else f"{low:.1f} to below {low + 0.1:.1g}"
        yield name, members


def _spread(pairs: Sequence[Removal]) -> list[Removal]:
    number = min(SHOWN_PAIRS, len(pairs))
    return [pairs[int((i + 0.5) * len(pairs) / number)] for i in range(number)]


def _form(text: str, config: CorpusConfig) -> str:
    """Return a text as a corpus stores it."""
    tokens = tokens_without([to_bytes(text)], config)
    return " ".join(tokens.words(np.arange(len(tokens.starts))))
