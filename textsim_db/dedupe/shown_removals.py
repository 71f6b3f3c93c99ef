"""The removals that a page shows, and their texts.

They are samples of each tenth of similarity, and the largest clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textsim_db.dedupe.by_temporary_corpus import Deduplication
from textsim_db.errors import DocumentNotFound
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
