"""The documents that a deduplication removed, in a few lines: their similarities and differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, auto
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from textsim_db.errors import MeasureError
from textsim_db.measures.word_diff import Change, DiffRun, differences, tokens, tokens_of_form
from textsim_db.settings.named_values import Guard, GuardRules
from textsim_db.text.distinctions import may_be_numeral
from textsim_db.text.guard_lines import elements_apart

TENTHS = 10
MOST_ALIGNED = 300
"""The removed documents whose words are compared; of more, evenly chosen ones are."""
_SHOWN_EXAMPLES = 3
_CONTENT = GuardRules((Guard.CONTENT,))


class StoredDocument(NamedTuple):
    """A document of a corpus or a file, which stands in the way of new documents."""

    corpus: str
    """The name of the corpus, or of the file."""
    key: str
    """The key; of a record without one, its number in the file from 1 on."""


AnyDocument = int | StoredDocument
"""A place among all documents, or a document of a corpus."""


class Removal(NamedTuple):
    """A document to remove."""

    number: int
    """Its place among all documents, from 0 on."""
    kept: AnyDocument
    """The place of the document that is kept in its stead, or a document of a corpus."""
    similarity: float


class Likeness(IntEnum):
    """How alike the texts of a removed document and of the kept one are."""

    OTHER_WORDS = auto()
    """The words, or their order, differ; or may, with a document of a corpus."""
    SAME_WORDS = auto()
    """Other characters differ, such as symbols, or words that do not count."""
    COPY = auto()
    """The texts are equal."""


class Example(NamedTuple):
    """A removed document, compared word by word."""

    removal: Removal
    diff: list[DiffRun]
    """The runs of words of the kept document, and of the removed one."""
    distinctions: list[str]
    """The kinds of the different words, as textsim compare names them; empty if others differ."""
    differs_in_one_word: bool
    """Whether one content word of no such kind differs, such as a name, wherever it stands."""

    @property
    def differs(self) -> bool:
        """Whether a word, the order of words or a symbol differs."""
        return bool(self.distinctions) or any(run.change != Change.SAME for run in self.diff)

    def numerals(self) -> set[str]:
        """Return the words that differ, if they are numerals."""
        if "numerals" not in self.distinctions:
            return set()
        changed = [run for run in self.diff if run.change != Change.SAME]
        words = {token.word for run in changed for text in run[1:] for token in tokens(text)}
        return {word for word in words if may_be_numeral(word)}


class RemovalSummary(NamedTuple):
    """The similarities and the differences of removed documents."""

    tenths: list[int]
    """The documents by tenth of similarity: of 0 to below 0.1 first, of 1 last."""
    compared: int
    """The documents whose words were compared with those of the kept document; copies are not."""
    differing: int
    """The compared documents of which a word, the order of words or a symbol differs."""
    distinctions: dict[str, int]
    """By a kind of words, the number of compared documents that differ only in such words."""
    numerals: list[str]
    """The numerals in which compared documents differ."""
    differ_in_one_word: int
    """The compared documents that differ in one other content word, such as a name."""
    lowest: list[Example]
    """The least similar ones; of equally similar ones, those that differ come first."""
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
    likeness: Mapping[int, Likeness],
    forms_of: Callable[[Collection[AnyDocument]], dict[AnyDocument, str]],
    texts_of: Callable[[Collection[int]], Mapping[int, str]],
) -> RemovalSummary:
    """Return what was removed.

    likeness: by the number of the removed document. forms_of: returns the normal forms of some
    documents. texts_of: returns the texts of some documents, which are read again.
    """
    ordered = sorted(
        removals,
        key=lambda removal: (removal.similarity, likeness[removal.number], removal.number),
    )
    different = [each for each in ordered if likeness[each.number] != Likeness.COPY]
    tenths = Counter(tenth_of(removal.similarity) for removal in ordered)
    sizes = Counter(removal.kept for removal in sorted(removals))
    largest = max(sizes, key=sizes.__getitem__, default=-1)
    of_largest = [removal for removal in ordered if removal.kept == largest][:_SHOWN_EXAMPLES]
    most = min(len(different), MOST_ALIGNED)
    chosen = np.linspace(0, len(different) - 1, most).astype(np.int64)
    sample = [different[place] for place in chosen.tolist()]
    wanted = {*sample, *ordered[:_SHOWN_EXAMPLES], *of_largest}
    forms = forms_of({document for removal in wanted for document in removal[:2]})
    # A normal form has no symbols.
    read_again = [each for each in wanted if likeness[each.number] == Likeness.SAME_WORDS]
    numbers = {number for each in read_again for number in each[:2] if isinstance(number, int)}
    texts = texts_of(numbers) if numbers else {}
    examples = {example.removal: example for example in _compared(wanted, forms, texts)}
    compared = [examples[removal] for removal in sample if removal in examples]
    kinds = Counter(kind for each in compared for kind in each.distinctions)
    return RemovalSummary(
        [tenths[tenth] for tenth in range(TENTHS + 1)],
        len(compared),
        sum(each.differs for each in compared),
        dict(sorted(kinds.items())),
        sorted(set().union(*(each.numerals() for each in compared))),
        sum(each.differs_in_one_word for each in compared),
        [examples[removal] for removal in ordered[:_SHOWN_EXAMPLES] if removal in examples],
        [examples[removal] for removal in of_largest if removal in examples],
        sizes[largest],
    )


def _compared(
    removals: set[Removal], forms: dict[AnyDocument, str], texts: Mapping[int, str]
) -> Iterator[Example]:
    """Yield removals with their differences; texts of millions of words may be too long to align."""
    for removal in removals:
        ends = removal.kept, removal.number
        if all(isinstance(place, int) and place in texts for place in ends):
            kept, removed = (tokens(texts[int(place)]) for place in ends)  # type: ignore[arg-type]
        else:
            kept, removed = (tokens_of_form(forms[place]) for place in ends)
        try:
            diff, distinctions = differences(kept, removed)
        except MeasureError:
            continue
        one, other = ([token.word for token in each if token.word] for each in (kept, removed))
        content = elements_apart(one, other, _CONTENT).get(Guard.CONTENT, ([], []))
        is_one_word = not distinctions and max(map(len, content)) == 1
        yield Example(removal, diff, distinctions, is_one_word)
