"""The documents that a deduplication removed, in a few lines: their similarities and differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from textsim_db.errors import MeasureError
from textsim_db.measures.word_diff import Part, differences, tokens_of_form

TENTHS = 10
MOST_ALIGNED = 300
"""The removed documents whose words are compared; of more, evenly chosen ones are."""
_SHOWN_EXAMPLES = 3
_FIRST_WORDS = 3


class StoredDocument(NamedTuple):
    """A document of a corpus, which stands in the way of new documents."""

    corpus: str
    key: str


AnyDocument = int | StoredDocument
"""A place among all documents, or a document of a corpus."""


class Removal(NamedTuple):
    """A document to remove."""

    number: int
    """Its place among all documents, from 0 on."""
    kept: AnyDocument
    """The place of the document that is kept in its stead, or a document of a corpus."""
    similarity: float
    """The similarity of the two documents."""


class Example(NamedTuple):
    """A removed document, compared word by word."""

    removal: Removal
    parts: list[Part]
    """The runs of words of the kept document, and of the removed one."""
    distinctions: list[str]
    """The kinds of the different words, as textsim compare names them; empty if others differ."""
    begins_otherwise: bool
    """Whether the first words differ, such as a name or a title."""


class RemovalSummary(NamedTuple):
    """The similarities and the differences of removed documents."""

    tenths: list[int]
    """The documents by tenth of similarity: of 0 to below 0.1 first, of 1 last."""
    compared: int
    """The documents whose words were compared with those of the kept document."""
    distinctions: dict[str, int]
    """By a kind of words, the number of compared documents that differ only in such words."""
    begin_otherwise: int
    """The compared documents that begin with other words, such as a name or a title."""
    lowest: list[Example]
    """The least similar ones."""
    largest: list[Example]
    """Documents of the largest cluster, the least similar first."""
    largest_size: int
    """The documents that were removed from it."""


def tenth_of(similarity: float) -> int:
    """Return the tenth of a similarity: 0 for less than 0.1, 10 for 1."""
    return sum(step / TENTHS <= similarity for step in range(TENTHS + 1)) - 1


def similar_scopes(scopes: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the scopes that differ only in case, spaces or encoding, in groups."""
    groups: dict[str, list[str]] = {}
    for scope in sorted(scopes):
        form = "".join(normalize("NFKC", scope).casefold().split())
        groups.setdefault(form, []).append(scope)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def summarize(
    removals: Sequence[Removal],
    forms_of: Callable[[Collection[AnyDocument]], dict[AnyDocument, str]],
) -> RemovalSummary:
    """Return what was removed; forms_of: returns the normal forms of some documents."""
    ordered = sorted(removals, key=lambda removal: (removal.similarity, removal.number))
    tenths = Counter(tenth_of(removal.similarity) for removal in ordered)
    sizes = Counter(removal.kept for removal in sorted(removals))
    largest = max(sizes, key=sizes.__getitem__, default=-1)
    of_largest = [removal for removal in ordered if removal.kept == largest][:_SHOWN_EXAMPLES]
    chosen = np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_ALIGNED)).astype(np.int64)
    sample = [ordered[place] for place in chosen.tolist()]
    wanted = {*sample, *ordered[:_SHOWN_EXAMPLES], *of_largest}
    forms = forms_of({document for removal in wanted for document in removal[:2]})
    examples = {example.removal: example for example in _compared(wanted, forms)}
    compared = [examples[removal] for removal in sample if removal in examples]
    kinds = Counter(kind for each in compared for kind in each.distinctions)
    return RemovalSummary(
        [tenths[tenth] for tenth in range(TENTHS + 1)],
        len(compared),
        dict(sorted(kinds.items())),
        sum(each.begins_otherwise for each in compared),
        [examples[removal] for removal in ordered[:_SHOWN_EXAMPLES] if removal in examples],
        [examples[removal] for removal in of_largest if removal in examples],
        sizes[largest],
    )


def _compared(removals: set[Removal], forms: dict[AnyDocument, str]) -> Iterator[Example]:
    """Yield removals with their differences; texts of millions of words may be too long to align."""
    for removal in removals:
        kept, removed = (tokens_of_form(forms[place]) for place in (removal.kept, removal.number))
        starts = [[token.word for token in each[:_FIRST_WORDS]] for each in (kept, removed)]
        try:
            parts, distinctions = differences(kept, removed)
        except MeasureError:
            continue
        yield Example(removal, parts, distinctions, starts[0] != starts[1])
