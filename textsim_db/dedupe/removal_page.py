"""A page that stands alone: what was removed, by similarity and by cluster, differences marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from textsim_db.dedupe.by_temporary_corpus import Deduplication, Rule
from textsim_db.dedupe.shown_removals import (
    RemovedCluster,
    RemovedPair,
    ShownRemovals,
    StoredDocument,
    Tenth,
)
from textsim_db.dedupe.shown_texts import ShownTexts
from textsim_db.diff.html_page import warning_note
from textsim_db.diff.marked_parts import (
    COMPARED,
    LONGEST_EXCERPT,
    StartDifferences,
    compare_starts,
    excerpt_of_both,
    excerpts_side_by_side,
)
from textsim_db.diff.word_diff import Change, Token, tokens, tokens_of_form
from textsim_db.show.charts import bars_by_name
from textsim_db.show.escape import escaped, shortened
from textsim_db.show.layout import note, page
from textsim_db.show.numbers import count, similarity
from textsim_db.show.tables import facts
from textsim_db.show.word_borders import end_of_start

PAGE_BYTES = 5_000_000
"""The bytes of a page from which on no further cluster is added."""
_FAULTS = 20
_LONGEST_NAME = 200


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
    table: str | None = None
    """The table that has the clusters, if rows of a table were compared; then nothing was deleted."""

    @property
    def noun(self) -> str:
        """The name of a thing that was compared."""
        return "record" if self.table is None else "row"

    @property
    def removed(self) -> str:
        """The word of the page for a record or row that is not kept."""
        return "removed" if self.table is None else "to remove"


def removal_page(run: ReportedRun, shown: ShownRemovals, texts: ShownTexts) -> str:
    """Return the page.

    Its size is bounded: it names what it leaves out.
    """
    names = _Names(run.keys, run.noun, run.removed)
    heading = "What was removed from" if run.table is None else "What to remove from"
    pieces = [
        f"<h1>{heading} <bdi>{shortened(run.title, _LONGEST_NAME)}</bdi></h1>\n",
        _remark(run.table),
        _facts(run, shown),
        _histogram(shown, names),
        *(_sample(tenth, names, texts) for tenth in shown.tenths if tenth.pairs),
        *_clusters(shown, names, texts),
        _faults(run.faults),
    ]
    return page(f"{heading} {run.title[:_LONGEST_NAME]}", *pieces)


def _remark(table: str | None) -> str:
    if table is None:
        return ""
    return note(f"Nothing was deleted. The table {_name(table)} has the clusters.")


class _Names:
    """Names records, rows and documents as HTML."""

    def __init__(self, keys: Sequence[str | None], noun: str, removed: str) -> None:
        self._keys = keys
        self.noun = noun
        self.removed = removed

    def __call__(self, document: int | StoredDocument) -> str:
        if isinstance(document, StoredDocument):
            return f"document {_name(document.key)} of the corpus {_name(document.corpus)}"
        key = self._keys[document]
        if self.noun == "row" and key is not None:
            return f"row {_name(key)}"
        return f"record {document + 1:,}" + ("" if key is None else f", key {_name(key)}")


def _name(text: str) -> str:
    return f"<bdi>{shortened(text, _LONGEST_NAME)}</bdi>"


def _facts(run: ReportedRun, shown: ShownRemovals) -> str:
    result, settings = run.result, run.rule.settings
    preference = run.rule.preference
    dropped = 0 if run.faults.are_kept else len(run.faults.reasons)
    values: list[tuple[str, object]] = [
        (f"{run.noun}s", result.documents),
        ("kept", result.documents - len(result.removals) - len(result.standing) - dropped),
        (run.removed, len(result.removals)),
        ("clusters", shown.all_clusters),
        ("threshold", f"{settings.threshold:g}"),
        ("shingle", str(settings.shingle)),
        ("linkage", str(run.rule.linkage)),
        (f"kept {run.noun} of a cluster", ":".join(filter(None, preference))),
    ]
    if result.standing:
        values.insert(3, (f"{run.removed}, because a corpus has a match", len(result.standing)))
    if run.faults.reasons:
        values.insert(2, (run.faults.title, len(run.faults.reasons)))
    return facts(values)


def _histogram(shown: ShownRemovals, names: _Names) -> str:
    first = next((i for i, tenth in enumerate(shown.tenths) if tenth.pairs), None)
    if first is None:
        return f"<p>No {names.noun}s {names.removed}.</p>\n"
    tenths = shown.tenths[first:]
    bars = bars_by_name(
        [(_range(tenth), tenth.pairs) for tenth in tenths],
        [_anchor(tenth) if tenth.pairs else None for tenth in tenths],
    )
    noun = names.noun
    return f"<h2>{noun.title()}s {names.removed}, by similarity to the kept {noun}</h2>\n{bars}"


def _range(tenth: Tenth) -> str:
    if tenth.low == 1:
        return "1: the same shingles"
    return f"{tenth.low:.1f} to below {tenth.low + 0.1:.1g}"


def _anchor(tenth: Tenth) -> str:
    return f"from-{round(10 * tenth.low)}"


def _sample(tenth: Tenth, names: _Names, texts: ShownTexts) -> str:
    left_out = tenth.pairs - len(tenth.sample)
    sampled = f", of which {len(tenth.sample)} are shown" if left_out else ""
    remark = f"{count(tenth.pairs, 'pair')}{sampled}; the kept text is left, the other text right"
    pairs = "".join(_pair(pair, names, texts) for pair in tenth.sample)
    return (
        f'<section id="{_anchor(tenth)}">\n<h2>Similarity {_range(tenth)}</h2>\n'
        f"{note(remark)}{pairs}</section>\n"
    )


def _pair(pair: RemovedPair, names: _Names, texts: ShownTexts) -> str:
    differences = compare_starts(*_texts(pair, texts))
    heads = (
        f"<b>kept</b>: {names(pair.kept)}",
        f"<b>{names.removed}</b>: {names(pair.removed)}, similarity {similarity(pair.similarity)}",
    )
    excerpts = excerpts_side_by_side(differences.parts, *heads)
    return f"<article>\n{excerpts}{_remarks(differences)}</article>\n"


def _texts(pair: RemovedPair, texts: ShownTexts) -> tuple[str, str, Callable[[str], list[Token]]]:
    removed = texts.records[pair.removed]
    if isinstance(pair.kept, StoredDocument):
        # A corpus stores words only.
        return texts.documents[pair.kept], texts.forms[pair.removed], tokens_of_form
    return texts.records[pair.kept], removed, tokens


def _remarks(differences: StartDifferences) -> str:
    remarks = []
    if all(part.change is Change.SAME for part in differences.parts):
        remarks.append("no word differs")
    if differences.is_cut:
        remarks.append(f"only the first {COMPARED:,} characters are compared here")
    return (note("; ".join(remarks)) if remarks else "") + warning_note(differences.distinctions)


def _clusters(shown: ShownRemovals, names: _Names, texts: ShownTexts) -> Iterator[str]:
    if not shown.clusters:
        return
    yield "<h2>Clusters, the largest first</h2>\n"
    added = size = 0
    for cluster in shown.clusters:
        if size > PAGE_BYTES:
            break
        piece = _cluster(cluster, names, texts)
        added, size = added + 1, size + len(piece.encode(errors="replace"))
        yield piece
    if left_out := shown.all_clusters - added:
        yield note(f"{count(left_out, 'smaller cluster')} left out")


def _cluster(cluster: RemovedCluster, names: _Names, texts: ShownTexts) -> str:
    left_out = cluster.removed - len(cluster.shown)
    rest = note(f"{count(left_out, f'more similar {names.noun}')} left out") if left_out else ""
    return (
        f"<details>\n<summary>{names(cluster.kept)}: {count(cluster.removed, names.noun)} "
        f"{names.removed}, "
        f"least similarity {similarity(cluster.shown[0].similarity)}</summary>\n"
        f'<div class="text" dir="auto">{_kept_text(cluster.kept, texts)}</div>\n'
        f"{''.join(_member(pair, names, texts) for pair in cluster.shown)}{rest}</details>\n"
    )


def _kept_text(kept: int | StoredDocument, texts: ShownTexts) -> str:
    text = texts.records[kept] if isinstance(kept, int) else texts.documents[kept]
    if len(text) <= LONGEST_EXCERPT:
        return escaped(text)
    return f'{escaped(text[: end_of_start(text, LONGEST_EXCERPT)])} <i class="gap">…</i>'


def _member(pair: RemovedPair, names: _Names, texts: ShownTexts) -> str:
    differences = compare_starts(*_texts(pair, texts))
    return (
        f"<article><b>{names.removed}</b>: {names(pair.removed)}, "
        f"similarity {similarity(pair.similarity)}\n"
        f"{excerpt_of_both(differences.parts)}{_remarks(differences)}</article>\n"
    )


def _faults(faults: Faults) -> str:
    reasons = faults.reasons
    if not reasons:
        return ""
    items = "".join(f"<li>{shortened(each, LONGEST_EXCERPT)}</li>\n" for each in reasons[:_FAULTS])
    rest = note(f"{len(reasons) - _FAULTS:,} more not listed") if len(reasons) > _FAULTS else ""
    title = faults.title[0].upper() + faults.title[1:]
    return f"<h2>{title}</h2>\n<ul>\n{items}</ul>\n{rest}"
