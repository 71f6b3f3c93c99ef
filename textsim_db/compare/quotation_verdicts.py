"""Quotations: the words of a quotation and of a document in, its verdict, places and differences out.

The place of a piece is the run of the document with the fewest edits, by a fitting alignment: an edit
inserts, deletes or replaces a word, and both ends of the document are free. Ties go to the run with the
earliest end, then to the run with the latest start. So a place begins and ends with a word of the
piece. Sellers, "The theory and computation of evolutionary distances: pattern recognition", 1980. In SQL
49_quotations.sql does the same, and finds the windows that can hold a place first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int32Array, kernel
from textsim_db.errors import DocumentError
from textsim_db.measures.alignments import Arrow, edit_table, path_through
from textsim_db.results import Quotation
from textsim_db.results.quotations import QuotationDifference, QuotationVerdict, QuotedPiece
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import MAX_QUOTATION, CorpusConfig
from textsim_db.settings.named_values import Guard, GuardRules
from textsim_db.sketch.sketch_texts import places_of_words
from textsim_db.text.distinctions import numerals_and_units, symbols
from textsim_db.text.guard_lines import elements_apart
from textsim_db.text.storable import to_bytes
from textsim_db.text.word_places import WordPlaces

LEAST_WORDS_OF_PIECE = 3
"""A piece of fewer words stands in many texts by chance, so it counts as missing."""
_CONTEXT = 2
"""Equal words on each side of a difference with which it is judged: a negation may have three words."""
_KINDS = (Guard.NUMBERS, Guard.NEGATIONS, Guard.WORDS)
_EDIT = 1 << 32
"""The cost of an edit. The low half of a cost has the start of the run, negated, so the latest wins."""
_BEST_FIRST: tuple[QuotationVerdict, ...] = ("exact", "pieces", "altered", "absent")
_DIGIT = re.compile("[0-9]")
_ELLIPSES = r"\.{3,}|…|\. \. \."
_CUTS = [re.compile(cuts) for cuts in (_ELLIPSES, _ELLIPSES + r"|\[[^][]*\]")]
"""Divide a quotation. Words in square brackets are the quoter's, or stand in the document."""
_LETTERS = "[A-Za-zÀ-ʯͰ-ԯ]"
"""Of scripts with capitals."""
_PART_OF_WORD = re.compile(rf"\[({_LETTERS}+)\](?={_LETTERS})|(?<={_LETTERS})\[({_LETTERS}+)\]")
"""Letters in square brackets that the quoter changed: [T]he."""


class Reading(NamedTuple):
    """One reading of a quotation: all its words as one piece, or its pieces between ellipses."""

    words: list[list[str]]
    """The words of each piece; a piece has at least one."""
    spans: list[tuple[int, int]]
    """The characters of each piece in the quotation, from its first word to its last."""
    parts: list[tuple[str, int, int]]
    """The text with the characters of each piece and its signs, which are read if they are compared."""

    @property
    def total(self) -> int:
        return sum(map(len, self.words))


def readings_of(text: str, shortest: int, config: CorpusConfig | None = None) -> list[Reading]:
    """Return the readings of a quotation that have enough words.

    All its words are one piece; if it is divided, ellipses divide it, then also words in brackets. Then
    [T]he is one word.
    """
    check_count(shortest, "shortest", 1, MAX_QUOTATION)
    to_bytes(text)  # refuses a value that is no text
    first = _reading(text, [(0, len(text))], config)
    words = len(first.words[0]) if first.words else 0
    if not shortest <= words <= MAX_QUOTATION:
        raise DocumentError(
            f"the quotation has {words:,} words; expected {shortest} to {MAX_QUOTATION}"
            + ("; shortest allows fewer, which are found only unaltered" * (0 < words < shortest))
        )
    # A soft hyphen ends no word, and keeps the places of the characters.
    whole_words = _PART_OF_WORD.sub(lambda found: f"\u00ad{found[0][1:-1]}\u00ad", text)
    readings = [first]
    for cuts, form in zip(_CUTS, (text, whole_words), strict=True):
        spans = _spans_between(cuts, form)
        if len(spans) > 1 or form != text:
            readings.append(_reading(form, spans, config))
    return [reading for reading in readings if reading.total >= shortest]


def _spans_between(cuts: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Return the characters between cuts."""
    found = [match.span() for match in cuts.finditer(text)]
    starts, ends = [0, *(end for _, end in found)], [*(start for start, _ in found), len(text)]
    return list(zip(starts, ends, strict=True))


def _reading(text: str, spans: Iterable[tuple[int, int]], config: CorpusConfig | None) -> Reading:
    reading = Reading([], [], [])
    for start, end in spans:
        words, places = places_of_words(text[start:end], config)
        if words:
            reading.words.append(words)
            first, last = places.span(0, len(words))
            reading.spans.append((start + first, start + last))
            reading.parts.append((text, start, end))
    return reading


class Original(NamedTuple):
    """The text of a document, and the places of its words."""

    text: str
    places: WordPlaces

    def signs(self, first: int, last: int, before: bool = True, after: bool = True) -> str:
        """Return the signs of a run of words, and those between it and the words before and after it."""
        starts, ends = self.places
        start, end = int(starts[first]), int(ends[last - 1])
        if before:
            start = int(ends[first - 1]) if first else 0
        if after:
            end = int(starts[last]) if last < len(starts) else len(self.text)
        return " ".join(symbols(self.text, start, end))

    def possible_signs(self, first: int, last: int, words: Sequence[str]) -> set[str]:
        """Return the signs that an unaltered quotation of a run of words may have.

        It may leave out those before its first word and after its last word, if this word has no digit:
        in "50 % of the rent", the sign belongs to the number.
        """
        sides = [
            (True,) if _DIGIT.search(word) else (True, False) for word in (words[0], words[-1])
        ]
        return {self.signs(first, last, *each) for each in product(*sides)}


class DocumentWords(NamedTuple):
    """The words of a document, as numbers."""

    numbers: Int32Array
    number_of: Mapping[str, int]
    """The numbers of the words of a quotation; those that are left out are in no document."""
    texts_of: Callable[[list[int]], list[str]]
    original: Original | None = None
    guard_words: Collection[str] = ()

    @classmethod
    def of(cls, words: Sequence[str], original: Original) -> DocumentWords:
        number_of: dict[str, int] = {}
        numbers = [number_of.setdefault(word, len(number_of)) for word in words]
        texts = list(number_of)
        return cls(
            np.array(numbers, np.int32),
            number_of,
            lambda chosen: [texts[n] for n in chosen],
            original,
        )

    def words(self, first: int, last: int) -> list[str]:
        return self.texts_of(self.numbers[first:last].tolist())

    def numbers_of(self, words: Sequence[str]) -> Int32Array:
        absent = np.iinfo(np.int32).min
        return np.array([self.number_of.get(word, absent) for word in words], np.int32)

    def kinds(self, words: Sequence[str], others: Sequence[str]) -> list[str]:
        """Return the guards that differ between two runs of words."""
        apart = elements_apart(words, others, GuardRules(_KINDS, tuple(self.guard_words)))
        return [kind.value for kind in _KINDS if kind in apart]


class _PieceAt(NamedTuple):
    first: int
    """The words of the document before the piece."""
    last: int
    """The words of the document up to its end."""
    edits: int


def verdict_on(readings: Sequence[Reading], document: DocumentWords) -> Quotation:
    """Return the verdict on a quotation by its best reading; of equals, by the first."""
    return best(_verdict_on_reading(reading, document) for reading in readings)


def best(quotations: Iterable[Quotation]) -> Quotation:
    """Return the best of several verdicts: by its kind, then by its share; of equals, the first."""
    return min(quotations, key=lambda each: (_BEST_FIRST.index(each.verdict), -(each.share or 0.0)))


def _verdict_on_reading(reading: Reading, document: DocumentWords) -> Quotation:
    places = list(_places(reading.words, document))
    edits = sum(
        len(words) if place is None else place.edits
        for words, place in zip(reading.words, places, strict=True)
    )
    if 10 * edits > 3 * reading.total:
        return Quotation("absent")
    unaltered: QuotationVerdict = "exact" if len(places) == 1 else "pieces"
    pieces, differences = list[QuotedPiece](), list[QuotationDifference]()
    end = 0
    before = accumulate(map(len, reading.words), initial=0)
    columns = zip(*reading, places, before, strict=False)
    for words, characters, part, place, in_text in columns:
        if place is None:
            kinds = (*document.kinds(words, []), *numerals_and_units(words, []))
            differences.append(QuotationDifference(in_text, " ".join(words), None, "", kinds))
            pieces.append(QuotedPiece(in_text, len(words), None, 0, "", (), *characters))
            continue
        left_out = document.words(end, place.first) if pieces else []
        kinds = ()
        if left_out:
            kinds = (*document.kinds([], left_out), *numerals_and_units([], left_out))
        size = place.last - place.first
        span: tuple[int, int] | tuple[None, None] = (None, None)
        if place.edits:
            differences += _differences(words, in_text, place, end, document)
        if document.original is not None:
            span = document.original.places.span(place.first, size)
            original, run = document.original, (place.first, place.last)
            signs = " ".join(symbols(*part))
            if not place.edits and signs not in original.possible_signs(*run, words):
                theirs = original.signs(*run)
                differences.append(
                    QuotationDifference(in_text, signs, place.first, theirs, ("symbols",))
                )
        pieces.append(
            QuotedPiece(
                *(in_text, len(words), place.first, size, " ".join(left_out), kinds),
                *(*characters, *span),
            )
        )
        end = place.last
    share = 1.0 - edits / reading.total
    verdict = "altered" if edits else unaltered
    return Quotation(verdict, None, share, tuple(pieces), tuple(differences))


def _places(pieces: Sequence[Sequence[str]], document: DocumentWords) -> Iterator[_PieceAt | None]:
    """Yield the place of each piece after the piece before; None if it stands nowhere."""
    end = 0
    for words in pieces:
        if len(pieces) > 1 and len(words) < LEAST_WORDS_OF_PIECE:
            yield None
            continue
        edits, first, last = _find_place(document.numbers_of(words), document.numbers[end:])
        if 10 * edits > 3 * len(words):
            yield None
        else:
            yield _PieceAt(end + first, end + last, edits)
            end += last


@kernel
def _find_place(piece: Int32Array, document: Int32Array) -> tuple[int, int, int]:
    """Return the edits of the best run of the document, and the words before it and up to its end."""
    words = len(piece)
    costs = np.arange(words + 1) * _EDIT
    edits, first, last = words, 0, 0
    for end in range(1, len(document) + 1):
        diagonal = costs[0]
        costs[0] = -end
        for i in range(1, words + 1):
            cost = diagonal if piece[i - 1] == document[end - 1] else diagonal + _EDIT
            diagonal = costs[i]
            costs[i] = min(cost, min(diagonal, costs[i - 1]) + _EDIT)
        fewest = -(-costs[words] >> 32)
        if fewest < edits:
            edits, last = fewest, end
            first = -costs[words] & (_EDIT - 1)
    return edits, first, last


def _differences(
    words: Sequence[str],
    in_text: int,
    place: _PieceAt,
    earliest: int,
    document: DocumentWords,
) -> Iterator[QuotationDifference]:
    """Yield the runs in which a piece and its place differ.

    earliest: the words of the document up to the end of the piece before. A place begins and ends with a
    word of the piece, so if the ends of the piece differ, the words next to the place are named.
    """
    piece, run = document.numbers_of(words), document.numbers[place.first : place.last]
    runs = _different_runs(piece, run)
    start = max(earliest, place.first - len(words))
    around = document.words(start, place.last + len(words))
    for k, (first, last, low, high) in enumerate(runs):
        before = min(_CONTEXT, first - (runs[k - 1][1] if k else 0))
        following = runs[k + 1][0] if k + 1 < len(runs) else len(words)
        after = min(_CONTEXT, following - last)
        low, high = place.first + low, place.first + high
        if first == 0:
            low = max(earliest, low - (last - first))
        if last == len(words):
            high = min(len(document.numbers), high + (last - first))
        low_around, high_around = low - start, high - start
        kinds = document.kinds(
            words[first - before : last + after], around[low_around - before : high_around + after]
        )
        theirs = around[low_around:high_around]
        kinds += numerals_and_units(words[first:last], theirs)
        yield QuotationDifference(
            in_text + first, " ".join(words[first:last]), low, " ".join(theirs), tuple(kinds)
        )


def _different_runs(piece: Int32Array, run: Int32Array) -> list[tuple[int, int, int, int]]:
    """Return the bounds in piece and run of the words that differ; of equals, words are replaced."""
    runs = list[tuple[int, int, int, int]]()
    i = j = first = low = 0
    for arrow in path_through(edit_table(piece.tolist(), run.tolist())):
        if arrow is Arrow.DIAGONAL and piece[i] == run[j]:
            if (i, j) != (first, low):
                runs.append((first, i, low, j))
            first, low = i + 1, j + 1
        i += arrow is not Arrow.LEFT
        j += arrow is not Arrow.UP
    if (i, j) != (first, low):
        runs.append((first, i, low, j))
    return runs
