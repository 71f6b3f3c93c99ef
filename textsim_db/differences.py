"""Where two texts differ, word by word, in the texts as they were written; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from textsim_db.measures.alignment import alignment
from textsim_db.text import to_bytes, tokenize

_CONTRACTION = re.compile(r"(\w+?)(n['’]t\b.*)", re.IGNORECASE | re.DOTALL)
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}
_NEGATIONS = """
not no never none nor neither nobody nothing nowhere without cannot
nicht kein keine keinen keinem keiner keines nie niemals nichts ohne
ne pas jamais rien aucun aucune sans nunca nada ningún ninguna sin
non mai senza não nem sem niet geen nooit zonder
inte ingen inget aldrig ikke ei не нет ни никогда без bez
"""
"""In English, German, French, Spanish, Italian, Portuguese, Dutch, Scandinavian and Slavic languages."""
_DATES = """
january february march april june july august september october november december monday
tuesday wednesday thursday friday saturday sunday today tomorrow yesterday januar februar märz
mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
heute morgen gestern janvier février mars avril juin juillet août septembre octobre novembre
décembre lundi mardi mercredi jeudi vendredi samedi dimanche enero febrero marzo abril mayo
junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes
sábado domingo
"""
"""Months and days in English, German, French and Spanish; a date in figures is a number."""
_KINDS = dict.fromkeys(_NEGATIONS.split(), "negations") | dict.fromkeys(_DATES.split(), "dates")


class Change(StrEnum):
    """What became of a run of words."""

    SAME = "same"
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


class Part(NamedTuple):
    """A run of words of either text, one of them empty where words were removed or added."""

    change: Change
    a: str
    b: str


class Token(NamedTuple):
    """A word in normal form, and the text from it up to the next one."""

    word: str
    text: str


class Differences(NamedTuple):
    """Two texts by their runs of words, in order, and in what alone they differ.

    distinctions names the kinds of words that differ if these are only "dates", "negations" and
    "numbers": such near-duplicates may both have to be kept. It is empty where other words differ as
    well, or none.
    """

    parts: list[Part]
    distinctions: list[str]


def tokens(text: str) -> list[Token]:
    """Cut a text into words with all that stands between them: the texts together are the text.

    "n't" counts as the word "not". A text without words is one token, with an empty word. Raises
    DocumentError for NUL and lone surrogates.
    """
    pieces = re.findall(r"\s+|\S+\s*", text)
    found: list[Token] = []
    for piece, words in zip(pieces, _words(pieces), strict=True):
        if len(words) > 1:
            smaller = list(_split(piece))
            found += map(_token, zip(smaller, _words(smaller), strict=True))
        else:
            found.append(_token((piece, words)))
    return list(_attached(found))


def differences(a: Iterable[Token], b: Iterable[Token]) -> Differences:
    """Align two texts word by word.

    Raises MeasureError for texts of millions of words that have little in common.
    """
    one, other = list(a), list(b)
    lefts, rights = iter(one), iter(other)
    pairs: list[tuple[bool, str, str]] = []
    kinds: set[str] = set()
    words = alignment([token.word for token in one], [token.word for token in other])
    for left, right in zip(*words, strict=True):
        if left != right:
            kinds |= {_kind(str(word)) for word in (left, right) if word}
        texts = (
            "" if left is None else next(lefts).text,
            "" if right is None else next(rights).text,
        )
        pairs.append((left == right, *texts))
    parts = [_part(same, list(run)) for same, run in groupby(pairs, lambda pair: pair[0])]
    return Differences(parts, [] if "" in kinds else sorted(kinds))


def _kind(word: str) -> str:
    if any(character.isnumeric() for character in word):
        return "numbers"
    return _KINDS.get(word, "")


def _part(same: bool, run: list[tuple[bool, str, str]]) -> Part:
    a, b = "".join(left for _, left, _ in run), "".join(right for _, _, right in run)
    if same:
        return Part(Change.SAME, a, b)
    return Part(Change.CHANGED if a and b else Change.REMOVED if a else Change.ADDED, a, b)


def _words(pieces: list[str]) -> list[list[str]]:
    """Return the words of each piece of a text."""
    made = tokenize([to_bytes(piece) for piece in pieces])
    offsets = made.word_offsets.tolist()
    spans = zip(made.starts.tolist(), made.ends.tolist(), strict=True)
    words = [made.span(start, end) for start, end in spans]
    return [words[i:j] for i, j in pairwise(offsets)]


def _split(piece: str) -> Iterator[str]:
    """Cut a piece where a word may begin: after what is no letter, at one of a script without spaces."""
    contraction = _CONTRACTION.fullmatch(piece)
    if contraction:
        yield from contraction.groups()
        return
    start, is_inside, was_alone = 0, False, False
    for i, character in enumerate(piece):
        category = unicodedata.category(character)[0]
        if category in "LN":
            # Ideographs have no case and are letters of the kind "other".
            is_alone = unicodedata.category(character) == "Lo" and ord(character) >= 0x0E00
            if i > start and (not is_inside or is_alone or was_alone):
                yield piece[start:i]
                start = i
            is_inside, was_alone = True, is_alone
        elif category != "M":
            is_inside = False
    yield piece[start:]


def _token(found: tuple[str, list[str]]) -> Token:
    text, words = found
    word = " ".join(words)
    if re.fullmatch(r"n['’]t\W*", text, re.IGNORECASE):
        word = "not"
    return Token(_FULL.get(word, word), text)


def _attached(found: Iterable[Token]) -> Iterator[Token]:
    """Give what has no word to the token before it, or at the start to the one after it."""
    last: Token | None = None
    for token in found:
        if last is not None and not (last.word and token.word):
            last = Token(last.word or token.word, last.text + token.text)
            continue
        if last is not None:
            yield last
        last = token
    if last is not None:
        yield last
