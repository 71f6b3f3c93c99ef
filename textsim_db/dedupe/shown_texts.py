"""The texts of the removals that a page shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textsim_db.dedupe.shown_removals import ShownRemovals, StoredDocument
from textsim_db.errors import DocumentNotFound
from textsim_db.settings import CorpusConfig, CorpusSettings
from textsim_db.sketch.sketch_texts import tokens_without
from textsim_db.text.storable_text import to_bytes

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus

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
