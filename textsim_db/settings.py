"""The settings of a corpus: what a user chooses, and the bands and rows that follow from it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from numbers import Real
from typing import Any, NamedTuple

from textsim_db.errors import ConfigurationError, CorpusExists, RecipeError, suggestion

RECIPE = 2
"""The version of everything from text to buckets; a change of any step makes a new one."""

AUTO = "auto"
"""As language: identify the language of each document. As stop words: follow that language."""

MIN_ROWS = 2
"""The fewest rows of a band. Of 1,000,000 documents, some 2,000 share one value of 16 bits by chance."""
MAX_HASHES = 4096
MAX_SHINGLE = 1000

_NEARLY_1 = math.nextafter(1, 0)

WordsByLanguage = tuple[tuple[str, tuple[str, ...]], ...]
"""Stop words by the codes of their languages."""


class Mode(StrEnum):
    """How an attached table is kept indexed.

    queue: a worker indexes changes. inline: the transaction that changes a row indexes it.
    """

    QUEUE = "queue"
    INLINE = "inline"


class Linkage(StrEnum):
    """Which verified pairs make a cluster.

    single: chains of pairs link its members. complete: every two members are a pair. kept: every
    other member is a pair with the member that is kept.
    """

    SINGLE = "single"
    COMPLETE = "complete"
    KEPT = "kept"


class Shingle(NamedTuple):
    """The unit of comparison: n consecutive words or characters of the normal form."""

    unit: str
    n: int

    def __str__(self) -> str:
        return f"{self.unit}:{self.n}"

    @classmethod
    def parse(cls, text: str) -> Shingle:
        """Read "word:3" or "char:5"; raise ConfigurationError for anything else."""
        unit, _, n = str(text).partition(":")
        if unit not in ("word", "char") or not (n.isascii() and n.isdigit()):
            raise ConfigurationError(
                f'shingle is "{text}"; expected "word:N" or "char:N", such as "word:3"'
                + suggestion(str(text), (f"word:{n or 3}", f"char:{n or 5}"))
            )
        if len(n) > 9 or not 1 <= int(n) <= MAX_SHINGLE:
            raise ConfigurationError(f"shingle length is {n[:20]}; expected 1 to {MAX_SHINGLE}")
        return cls(unit, int(n))


class Bands(NamedTuple):
    """The banding of a signature: bands buckets of rows values each."""

    bands: int
    rows: int

    def probability(self, similarity: float) -> float:
        """Return the probability that a pair of this similarity shares a bucket.

        1 - (1 - s^rows)^bands; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets,
        section 3.4.2. It is 1 for copies only.
        """
        probability = float(1 - (1 - similarity**self.rows) ** self.bands)
        if similarity == 1:
            return probability
        return min(probability, _NEARLY_1)  # rounding makes 1 of values near it


@dataclass(frozen=True, slots=True)
class CorpusConfig:
    """The configuration of a corpus, complete and checked."""

    shingle: Shingle
    threshold: float
    recall: float
    num_hashes: int
    bands: int
    rows: int
    seed: int
    recipe: int = RECIPE
    stop_words: tuple[str, ...] = ()
    language: str | None = None
    stop_words_by_language: WordsByLanguage = ()

    @property
    def banding(self) -> Bands:
        """The bands and rows as one value."""
        return Bands(self.bands, self.rows)

    def check_recipe(self, name: str) -> None:
        """Raise RecipeError unless the corpus of that name was built by the recipe of this version."""
        if self.recipe != RECIPE:
            raise RecipeError(
                f'corpus "{name}" was built by recipe {self.recipe}; this version of textsim-db '
                f"computes recipe {RECIPE}: use a version that computes {self.recipe}, or index it "
                "anew"
            )

    def changed(self, **changes: Any) -> CorpusConfig:
        """Return this configuration with the changes that are not None; raises ConfigurationError.

        Bands and rows stay unless a setting changes from which they follow.
        """
        changes = {name: value for name, value in changes.items() if value is not None}
        settings = CorpusSettings(
            str(self.shingle),
            self.threshold,
            self.recall,
            self.num_hashes,
            self.seed,
            stop_words=self.stop_words,
            language=self.language,
            stop_words_by_language=self.stop_words_by_language,
        )
        if changes.keys() & {"threshold", "recall", "num_hashes", "bands", "rows"}:
            return replace(settings, **changes).complete()
        same_bands = replace(settings, bands=self.bands, rows=self.rows, **changes)
        return replace(same_bands.complete(), recall=self.recall)


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """What a user chooses for a corpus: every default and meaning stands here and nowhere else.

    stop_words_by_language is no setting of a user's: with_lists() fills it in.
    """

    shingle: str = _setting(
        "word:3",
        'The unit of comparison: "word:N" or "char:N", N of them in a row; "word:1" is the bag of '
        "words.",
    )
    threshold: float = _setting(0.8, "The similarity from which documents match.")
    recall: float = _setting(
        0.95, "The probability that a pair exactly at the threshold is found, below 1."
    )
    num_hashes: int = _setting(128, "Values in a signature.")
    seed: int = _setting(1, "Seed of the hash functions.")
    bands: int | None = _setting(None, "Buckets of a document, with --rows: instead of --recall.")
    rows: int | None = _setting(None, "Signature values in a bucket, with --bands.")
    stop_words: str | Iterable[str] = _setting(
        (),
        'Leave words out of every text: those of a language, such as "en", "auto" for those of the '
        "text's own, or of a file with one on each line.",
    )
    language: str | None = _setting(
        None, '"auto": identify the language of each document, to limit searches to one.'
    )
    stop_words_by_language: WordsByLanguage = ()

    def complete(self) -> CorpusConfig:
        """Check the settings of a new corpus and complete them; raises ConfigurationError.

        stop_words are words as stop_words() returns them. If bands and rows are given, recall
        becomes the probability at the threshold that they really give.
        """
        if self.language not in (None, AUTO):
            raise ConfigurationError(
                f'language is {self.language!r}; expected "{AUTO}" or none'
                + suggestion(str(self.language), (AUTO,))
            )
        checked = replace(
            self,
            threshold=check_threshold(self.threshold),
            recall=check_threshold(self.recall, "recall"),
            num_hashes=check_count(self.num_hashes, "num_hashes", MIN_ROWS, MAX_HASHES),
        )
        banding, recall = checked._banding_and_recall()
        return CorpusConfig(
            Shingle.parse(self.shingle),
            checked.threshold,
            recall,
            checked.num_hashes,
            *banding,
            check_count(self.seed, "seed", 0, 2**63 - 1),
            stop_words=tuple(self.stop_words),
            language=self.language,
            stop_words_by_language=self.stop_words_by_language,
        )

    def _banding_and_recall(self) -> tuple[Bands, float]:
        if self.bands is None and self.rows is None:
            return choose_bands(self.threshold, self.recall, self.num_hashes), self.recall
        if self.bands is None or self.rows is None:
            raise ConfigurationError("bands and rows go together; one of them is missing")
        bands = check_count(self.bands, "bands", 1, MAX_HASHES)
        rows = check_count(self.rows, "rows", 1, MAX_HASHES)
        if bands * rows > self.num_hashes:
            raise ConfigurationError(
                f"{bands} bands of {rows} rows need {bands * rows} hashes; "
                f"num_hashes is {self.num_hashes}"
            )
        if rows < MIN_ROWS:
            raise ConfigurationError(
                f"rows is {rows}; expected {MIN_ROWS} or more: a value of 16 bits alone tells too little"
            )
        recall = Bands(bands, rows).probability(self.threshold)
        if recall == 0:
            raise ConfigurationError(
                f"{bands} bands of {rows} rows find nothing at threshold {self.threshold}; "
                "use fewer rows or a higher threshold"
            )
        return Bands(bands, rows), recall

    def check_same(self, name: str, config: CorpusConfig) -> None:
        """Raise CorpusExists unless the corpus of that name is the one that these settings make.

        The error names the settings that differ, or if there are none, the values that follow.
        """
        wanted = self.complete()
        names = [
            f.name for f in fields(config) if getattr(config, f.name) != getattr(wanted, f.name)
        ]
        following = {"bands", "rows"} if self.bands is None else {"recall"}
        differences = [
            f"{n.replace('_', ' ')} is {_shown(getattr(config, n))} there, "
            f"not {_shown(getattr(wanted, n))}"
            for n in [n for n in names if n not in following] or names
        ]
        if differences:
            raise CorpusExists(
                f'corpus "{name}" exists with other settings: {"; ".join(differences)}'
            )


DEFAULTS = CorpusSettings()
"""The settings of a corpus that is created without any."""


def meaning(name: str) -> str:
    """Return the meaning of a setting, in one sentence."""
    return str(next(f.metadata["meaning"] for f in fields(CorpusSettings) if f.name == name))


def is_number(value: object) -> bool:
    """Say whether this is a real number, of Python or NumPy, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_callable(value: object, name: str) -> None:
    """Raise ConfigurationError unless this is a function, or None."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} is {value!r:.100}; expected a function of yours")


def check_threshold(threshold: float, name: str = "threshold") -> float:
    """Return the threshold as a float; raise ConfigurationError unless it is in (0, 1]."""
    if not is_number(threshold):
        raise ConfigurationError(f"{name} is {threshold!r}; expected a number above 0, at most 1")
    if not 0 < threshold <= 1:
        raise ConfigurationError(f"{name} is {threshold}; expected above 0, at most 1")
    return float(threshold)


def check_linkage(linkage: str) -> Linkage:
    """Return the linkage of that name; raise ConfigurationError for any other."""
    try:
        return Linkage(linkage)
    except ValueError:
        expected = ", ".join(Linkage)
        near = suggestion(str(linkage), Linkage)
        raise ConfigurationError(
            f"linkage is {linkage!r}; expected one of {expected}{near}"
        ) from None


def check_count(value: int, name: str, low: int, high: int) -> int:
    """Return the value; raise ConfigurationError unless it is a whole number in [low, high]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigurationError(f"{name} is {value!r}; expected a whole number") from None
    if isinstance(value, bool) or not low <= number <= high:
        raise ConfigurationError(f"{name} is {value}; expected {low} to {high}")
    return number


def check_several(values: object, expected: str) -> None:
    """Raise ConfigurationError unless the values are an iterable, but no str and no table.

    A str would yield its characters, and a data frame the names of its columns.
    """
    is_one = isinstance(values, str | bytes | bytearray | memoryview) or hasattr(values, "columns")
    if is_one or not isinstance(values, Iterable):
        raise ConfigurationError(f"{expected}; it got one {type(values).__name__}")


def choose_bands(threshold: float, recall: float, num_hashes: int) -> Bands:
    """Return the most selective banding that keeps the recall at the threshold.

    It is the largest r from 2 on with 1 - (1 - threshold^r)^b >= recall, where b = num_hashes div r.
    Raises ConfigurationError if not even two rows a band reach the recall, and for recall 1 with a
    threshold below 1.
    """
    if recall == 1 and threshold < 1:
        raise ConfigurationError(
            f"no bands of {num_hashes} hashes reach recall 1.0 at threshold {threshold}; "
            "expected a recall below 1, such as 0.99"
        )
    for rows in range(num_hashes, MIN_ROWS - 1, -1):
        banding = Bands(num_hashes // rows, rows)
        if banding.probability(threshold) >= recall:
            return banding
    best = Bands(num_hashes // MIN_ROWS, MIN_ROWS).probability(threshold)
    raise ConfigurationError(
        f"no bands of {num_hashes} hashes reach recall {recall} at threshold {threshold}; the best is "
        f"{best:.6f}, with {MIN_ROWS} rows a band: use more hashes, a lower recall or a higher threshold"
    )


def _shown(value: object) -> object:
    if isinstance(value, Shingle) or not isinstance(value, tuple | None):
        return value
    if not value:
        return "none"
    if isinstance(value[0], tuple):
        return f"{len(value)} lists of {sum(len(words) for _, words in value)} words"
    rest = ", ..." if len(value) > 5 else ""
    return f"{len(value)} words ({', '.join(value[:5])}{rest})"
