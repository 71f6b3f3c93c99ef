"""The values that a user chooses from by name: modes, linkages, verdicts, guards and shingles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, NamedTuple

from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.settings.check_values import several_items

MAX_SHINGLE = 1000


class Mode(StrEnum):
    """How an attached table is kept indexed.

    - `queue`: a worker indexes changes after they are committed.
    - `inline`: the transaction that changes a row indexes it.
    """

    QUEUE = "queue"
    INLINE = "inline"


class Existing(StrEnum):
    """How `attach` takes rows that match already, if the corpus is unique.

    - `refuse`: it raises an error that lists them.
    - `keep`: it keeps them.
    """

    REFUSE = "refuse"
    KEEP = "keep"


class Linkage(StrEnum):
    """How verified pairs make clusters.

    - `single`: a chain of pairs connects every two members.
    - `complete`: every two members are a pair.
    - `kept`: one member is kept, and each other member makes a pair with it.
    """

    SINGLE = "single"
    COMPLETE = "complete"
    KEPT = "kept"


class Verdict(StrEnum):
    """The opinion of a person on two documents."""

    SAME = "same"
    DIFFERENT = "different"
    UNSURE = "unsure"


class Guard(StrEnum):
    """A kind of words that two texts must share to be merged, however similar they are.

    - `numbers`: the runs of words with a digit.
    - `negations`: how many words of negation there are, such as "not".
    - `words`: which of the guard words occur.
    - `content`: the words in their order, except fillers, such as "the", "is" and "please".
    """

    NUMBERS = "numbers"
    NEGATIONS = "negations"
    WORDS = "words"
    CONTENT = "content"


class GuardRules(NamedTuple):
    """The guards of a corpus, with the words that they need in normal form."""

    guards: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Those of the guard "words"."""
    fillers: tuple[str, ...] = ()
    """Words that "content" leaves out, besides its own list."""


ModeName = Literal["queue", "inline"] | Mode
ExistingName = Literal["refuse", "keep"] | Existing
LinkageName = Literal["single", "complete", "kept"] | Linkage
VerdictName = Literal["same", "different", "unsure"] | Verdict
MeasureName = Literal[
    "jaccard",
    "containment",
    "overlap",
    "dice",
    "jaccard_of_counts",
    "cosine_similarity",
    "cosine_distance",
    "euclidean",
    "manhattan",
    "levenshtein",
    "levenshtein_similarity",
]
"""The names as arguments, so that type checkers and editors know them."""


class Shingle(NamedTuple):
    """The unit of comparison: `n` consecutive words or characters of the normal form."""

    unit: str
    n: int

    def __str__(self) -> str:
        return f"{self.unit}:{self.n}"

    @property
    def noun(self) -> str:
        """The word for the unit in messages: "word" or "character"."""
        return "word" if self.unit == "word" else "character"

    @classmethod
    def parse(cls, text: str) -> Shingle:
        """Read "word:N" or "char:N"; raise `ConfigurationError` for another text.

        >>> Shingle.parse("word:3")
        Shingle(unit='word', n=3)
        """
        unit, _, n = str(text).partition(":")
        if unit not in ("word", "char") or not (n.isascii() and n.isdigit()):
            digits = re.search("[0-9]+", n)
            choices = [
                f"{each}:{digits[0] if digits else m}" for each, m in (("word", 3), ("char", 5))
            ]
            raise ConfigurationError(
                f'shingle is "{text}"; expected "word:N" or "char:N", such as "word:3"'
                + suggestion(str(text), choices)
            )
        if len(n) > 9 or not 1 <= int(n) <= MAX_SHINGLE:
            raise ConfigurationError(f"shingle length is {n[:20]}; expected 1 to {MAX_SHINGLE}")
        return cls(unit, int(n))


def listed(words: str | Iterable[str]) -> list[str]:
    """Return words that are given as a list, or as one text with commas; an empty text has none."""
    if isinstance(words, str):
        return words.split(",") if words else []
    return list(
        several_items(words, "expected several words, such as [word], or one str with commas")
    )


def check_guards(guards: str | Iterable[str]) -> tuple[str, ...]:
    """Return kinds of guards in their order, from a list or from one text with commas."""
    names = listed(guards)
    for name in names:
        if name not in list(Guard):
            near = suggestion(str(name), Guard)
            raise ConfigurationError(f"guard is {name!r}; expected one of {', '.join(Guard)}{near}")
    return tuple(guard.value for guard in Guard if guard in names)


def check_linkage(linkage: str) -> Linkage:
    """Return the linkage with this name; raise ConfigurationError for an unknown name."""
    try:
        return Linkage(linkage)
    except ValueError:
        expected = ", ".join(Linkage)
        near = suggestion(str(linkage), Linkage)
        raise ConfigurationError(
            f"linkage is {linkage!r}; expected one of {expected}{near}"
        ) from None
