"""The differences of two texts, word by word, with the texts' own spelling and punctuation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from textsim_db.measures.alignments import alignment
from textsim_db.results.html import escaped
from textsim_db.text.distinctions import INFLECTIONS, kinds_of_run, symbols

_CANNOT = re.compile("cannot", re.IGNORECASE | re.ASCII)
_CONTRACTED = ("n'", "n’", "N'", "N’")
_STEMS = {"ca": "can", "wo": "will", "sha": "shall"}


class Change(StrEnum):
    """How a run of words differs between two texts."""

    SAME = "same"
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


class DiffRun(NamedTuple):
    """A run of words of both texts."""

    change: Change
    a: str
    """The words in the first text; empty if the second text adds words."""
    b: str
    """The words in the second text; empty if the words were removed."""


class Token(NamedTuple):
    """A word of a text."""

    word: str
    """The word in normal form; empty for a text without words."""
    text: str
    """The characters of the text from this word up to the next word."""


class Differences(NamedTuple):
    """Two texts as runs of words in order, and the kinds of their different words."""

    diff: list[DiffRun]
    """The runs of words."""
    distinctions: list[str]
    """The kinds of the different words: "dates", "letters", "negations", "numbers", "numerals",
    "order", "symbols", "units".

    Both texts of such a pair may be needed. If no words differ, but operators, currencies or other
    symbols do, it is "symbols"; so are words with other signs at the end, such as "c" and "c++". It is
    "order" if both have the same words, each as often. It is empty if other words differ.
    """


def tokens_of_form(form: str) -> list[Token]:
    """Return the words of a normal form, each with the space after it.

    Between two words of scripts that are written without spaces, such as Chinese, is none.
    """
    words = form.split()
    spaceless = [_is_spaceless(word) for word in words] + [False]
    return [
        Token(word, word if spaceless[i] and spaceless[i + 1] else f"{word} ")
        for i, word in enumerate(words)
    ]


def written(form: str) -> str:
    """Return a normal form with spaces only where its scripts have them."""
    return "".join(token.text for token in tokens_of_form(form)).rstrip()


def tokens(text: str) -> list[Token]:
    """Cut a text into words, each with the characters up to the next word.

    The texts of the tokens, joined, are the whole text. "n't" and the end of "cannot" count as the word
    "not". A text without words is one token with an empty word. Raises DocumentError for NUL and lone
    surrogates.
    """
    from textsim_db.text.word_places import place_words

    words, places = place_words(text)
    starts = places.starts.tolist()
    # Words that one character makes, such as the fraction in "½", are one token.
    firsts = [k for k in range(len(starts)) if k == 0 or starts[k] > starts[k - 1]]
    if not firsts:
        return [Token("", text)] if text else []
    ends = places.ends.tolist()
    bounds = [0, *(_border(text, ends[k - 1], starts[k]) for k in firsts[1:]), len(text)]
    spans = zip(pairwise([*firsts, len(words)]), pairwise(bounds), strict=True)
    return list(
        _with_not([Token(" ".join(words[a:b]), text[start:end]) for (a, b), (start, end) in spans])
    )


class ShownText(NamedTuple):
    """A text of a document as a person sees it."""

    text: str
    is_original: bool
    """Whether it is the text as it was written; otherwise it is the normal form."""

    def begin(self, most: int) -> ShownText:
        """Return the first characters of the text."""
        return self._replace(text=self.text[:most])

    def words(self) -> list[Token]:
        """Cut the text into words."""
        return tokens(self.text) if self.is_original else tokens_of_form(self.text)


def differences(a: Iterable[Token], b: Iterable[Token]) -> Differences:
    """Align two texts word by word.

    Raises MeasureError for texts of millions of words that share little.
    """
    one, other = list(a), list(b)
    lefts, rights = iter(one), iter(other)
    pairs: list[tuple[bool, str, str]] = []
    runs: list[list[tuple[str, str]]] = [[]]
    words = alignment([token.word for token in one], [token.word for token in other])
    for left, right in zip(*words, strict=True):
        if left != right:
            runs[-1].append((str(left or ""), str(right or "")))
        elif runs[-1]:
            runs.append([])
        texts = (
            "" if left is None else next(lefts).text,
            "" if right is None else next(rights).text,
        )
        pairs.append((left == right, *texts))
    if not any(runs):
        # No word differs: the runs show where other characters do.
        diff = [_diff_run(True, list(run)) for _, run in groupby(pairs, _are_written_alike)]
        texts_differ = _symbols(one) != _symbols(other)
        return Differences(diff, ["symbols"] if texts_differ else [])
    diff = [_diff_run(same, list(run)) for same, run in groupby(pairs, lambda pair: pair[0])]
    kinds = {kind for run in runs if run for kind in kinds_of_run(run, _are_spaceless(run))}
    if "negations" in kinds:
        kinds.discard(INFLECTIONS)
    have_words = any(token.word for token in one) and any(token.word for token in other)
    if have_words and kinds.isdisjoint({"", INFLECTIONS}):
        return Differences(diff, sorted(kinds))
    have_same_words = Counter(token.word for token in one) == Counter(token.word for token in other)
    return Differences(diff, ["order"] if have_same_words else [])


def _are_written_alike(pair: tuple[bool, str, str]) -> bool:
    return pair[1].split() == pair[2].split()


def _symbols(tokens: Iterable[Token]) -> list[str]:
    return symbols("".join(token.text for token in tokens))


def _are_spaceless(run: Sequence[tuple[str, str]]) -> bool:
    return all(_is_spaceless(word) for pair in run for word in pair if word)


def _is_spaceless(word: str) -> bool:
    if word < "\u0e01":  # Thai is the first such script; no table is loaded
        return False
    from textsim_db.text.word_places import is_spaceless

    return is_spaceless(word)


def _diff_run(same: bool, run: list[tuple[bool, str, str]]) -> DiffRun:
    a, b = "".join(left for _, left, _ in run), "".join(right for _, _, right in run)
    if same:
        return DiffRun(Change.SAME, a, b)
    return DiffRun(Change.CHANGED if a and b else Change.REMOVED if a else Change.ADDED, a, b)


def _with_not(tokens: list[Token]) -> Iterator[Token]:
    """Replace the words of contractions such as "don't" by "do" and "not", and "cannot" by two words."""
    from textsim_db.text.tokens import normal_form

    waiting = tokens[0]
    for token in tokens[1:]:
        stem, end = waiting.text[:-2], waiting.text[-2:]
        if token.word == "t" and end in _CONTRACTED and (word := normal_form(stem)):
            yield Token(_STEMS.get(word, word), stem)
            waiting = Token("not", end + token.text)
        else:
            yield from _with_can(waiting)
            waiting = token
    yield from _with_can(waiting)


def _border(text: str, end: int, start: int) -> int:
    """Return where the token of a word begins: after the last space between it and the word before."""
    between = text[end:start]
    last = between.split()[-1] if between.strip() and between[-1:].strip() else ""
    return start - len(last) if len(last) < len(between) else start


def _with_can(token: Token) -> Iterator[Token]:
    cannot = _CANNOT.search(token.text) if token.word == "cannot" else None
    if cannot is None:
        yield token
    else:
        middle = cannot.start() + len("can")
        yield Token("can", token.text[:middle])
        yield Token("not", token.text[middle:])


def side_by_side(diff: Sequence[DiffRun], a: str, b: str) -> str:
    """Return both texts in two columns, whole; a, b: the HTML that names them."""
    left, right = ("".join(marked(run, side) for run in diff) for side in ("a", "b"))
    return columns(a, b, left, right)


def columns(a: str, b: str, left: str, right: str) -> str:
    """Return two texts as HTML in two columns, below the HTML that names them."""
    return (
        f'<div class="texts"><div>{a}</div><div>{b}</div>\n'
        f'<div class="text" dir="auto">{left}</div>\n<div class="text" dir="auto">{right}</div></div>\n'
    )


def marked(run: DiffRun, side: str) -> str:
    """Return the words of one text in a run; side: "a" or "b"."""
    return _tagged(_tag(run, side), escaped(getattr(run, side)))


def _tag(run: DiffRun, side: str) -> str:
    return "" if run.change is Change.SAME else "del" if side == "a" else "ins"


def _tagged(tag: str, content: str) -> str:
    if not tag:
        return content
    words = content.rstrip()
    return f"<{tag}>{words}</{tag}>{content[len(words) :]}" if words else content
