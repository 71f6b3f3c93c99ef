"""What a corpus is built with, and how bands and rows follow from what the user wants."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from numbers import Real
from typing import Any, NamedTuple

from textsim_db.errors import ConfigurationError

RECIPE = 1
"""The version of everything from text to buckets; a change of any step makes a new one."""

AUTO = "auto"
"""The language of a corpus whose documents' languages are identified, and stop words that follow."""

MAX_HASHES = 4096
MAX_SHINGLE = 1000


_NEARLY_1 = math.nextafter(1, 0)

WordsByLanguage = tuple[tuple[str, tuple[str, ...]], ...]
"""Stop words by the codes of their languages."""


class Mode(StrEnum):
    """How an attached table is kept indexed.

    queue: a worker indexes what changed. inline: the transaction that changes it does.
    """

    QUEUE = "queue"
    INLINE = "inline"


class Linkage(StrEnum):
    """What makes a cluster of verified pairs.

    single: its members are linked by chains of pairs. complete: every two of them are a pair. kept:
    every other member is a pair with the one that is kept.
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
        found = float(1 - (1 - similarity**self.rows) ** self.bands)
        return found if similarity == 1 else min(found, _NEARLY_1)  # what rounding made of it


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


def is_number(value: object) -> bool:
    """Say whether this is a real number, also one of NumPy; a bool is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_callable(value: object, what: str) -> None:
    """Raise ConfigurationError unless this is a function, or None."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{what} is {value!r:.100}; expected a function of yours")


def check_threshold(threshold: float, what: str = "threshold") -> float:
    """Return the threshold as a float; raise ConfigurationError unless it is in (0, 1]."""
    if not is_number(threshold):
        raise ConfigurationError(f"{what} is {threshold!r}; expected a number above 0, at most 1")
    if not 0 < threshold <= 1:
        raise ConfigurationError(f"{what} is {threshold}; expected above 0, at most 1")
    return float(threshold)


def check_linkage(linkage: str) -> Linkage:
    """Return the linkage of that name; raise ConfigurationError for any other."""
    try:
        return Linkage(linkage)
    except ValueError:
        expected = ", ".join(Linkage)
        raise ConfigurationError(f"linkage is {linkage!r}; expected one of {expected}") from None


def check_count(value: int, what: str, low: int, high: int) -> int:
    """Return the value; raise ConfigurationError unless it is a whole number in [low, high]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigurationError(f"{what} is {value!r}; expected a whole number") from None
    if isinstance(value, bool) or not low <= number <= high:
        raise ConfigurationError(f"{what} is {value}; expected {low} to {high}")
    return number


def check_several(values: object, expected: str) -> None:
    """Raise ConfigurationError unless the values are several: an iterable, but no str and no table.

    A str would give its characters, and a data frame the names of its columns.
    """
    one = isinstance(values, str | bytes | bytearray | memoryview) or hasattr(values, "columns")
    if one or not isinstance(values, Iterable):
        raise ConfigurationError(f"{expected}; it got one {type(values).__name__}")


def choose_bands(threshold: float, recall: float, num_hashes: int) -> Bands:
    """Return the most selective banding that keeps the recall at the threshold.

    With b = num_hashes div r it is the largest r with 1 - (1 - threshold^r)^b >= recall. Raises
    ConfigurationError where not even one row a band reaches the recall, and for recall 1 below
    threshold 1.
    """
    if recall == 1 and threshold < 1:
        raise ConfigurationError(
            f"no bands of {num_hashes} hashes reach recall 1.0 at threshold {threshold}; "
            "expected a recall below 1, such as 0.99"
        )
    for rows in range(num_hashes, 0, -1):
        banding = Bands(num_hashes // rows, rows)
        if banding.probability(threshold) >= recall:
            return banding
    best = Bands(num_hashes, 1).probability(threshold)
    raise ConfigurationError(
        f"no bands of {num_hashes} hashes reach recall {recall} at threshold {threshold}; "
        f"the best is {best:.6f}: use more hashes or a lower recall"
    )


def make_config(
    shingle: str = "word:3",
    threshold: float = 0.8,
    recall: float = 0.95,
    num_hashes: int = 128,
    seed: int = 1,
    bands: int | None = None,
    rows: int | None = None,
    stop_words: tuple[str, ...] = (),
    language: str | None = None,
    stop_words_by_language: WordsByLanguage = (),
) -> CorpusConfig:
    """Check the settings of a new corpus and complete them; raises ConfigurationError.

    stop_words are those that textsim_db.stop_words.stop_words() returns; stop_words_by_language, in
    their place, are those that follow each document's language, which is AUTO then.
    With bands and rows given, recall becomes the probability that they really give at the
    threshold; it has to be above 0.
    """
    if language not in (None, AUTO):
        raise ConfigurationError(f'language is {language!r}; expected "{AUTO}" or none')
    if stop_words_by_language and language is None:
        raise ConfigurationError(
            f'stop words that follow the language need language="{AUTO}", which identifies it'
        )
    unit = Shingle.parse(shingle)
    threshold = check_threshold(threshold)
    recall = check_threshold(recall, "recall")
    num_hashes = check_count(num_hashes, "num_hashes", 1, MAX_HASHES)
    seed = check_count(seed, "seed", 0, 2**63 - 1)
    if (bands is None) != (rows is None):
        raise ConfigurationError("bands and rows go together; one of them is missing")
    if bands is None or rows is None:
        banding = choose_bands(threshold, recall, num_hashes)
    else:
        bands = check_count(bands, "bands", 1, MAX_HASHES)
        rows = check_count(rows, "rows", 1, MAX_HASHES)
        if bands * rows > num_hashes:
            raise ConfigurationError(
                f"{bands} bands of {rows} rows need {bands * rows} hashes; num_hashes is {num_hashes}"
            )
        banding = Bands(bands, rows)
        recall = banding.probability(threshold)
        if recall == 0:
            raise ConfigurationError(
                f"{bands} bands of {rows} rows find nothing at threshold {threshold}; "
                "use fewer rows or a higher threshold"
            )
    return CorpusConfig(
        unit,
        threshold,
        recall,
        num_hashes,
        *banding,
        seed,
        stop_words=stop_words,
        language=language,
        stop_words_by_language=stop_words_by_language,
    )


def changed_config(config: CorpusConfig, **settings: Any) -> CorpusConfig:
    """Return a configuration with some settings of make_config changed; raises ConfigurationError.

    Bands and rows stay where nothing is given that they follow from.
    """
    if not settings.keys() & {"threshold", "recall", "num_hashes", "bands", "rows"}:
        checked = make_config(**settings)
        return replace(
            config,
            shingle=checked.shingle if "shingle" in settings else config.shingle,
            seed=checked.seed if "seed" in settings else config.seed,
        )
    names = ("threshold", "recall", "num_hashes", "seed")
    kept: dict[str, Any] = {name: getattr(config, name) for name in names}
    return replace(
        make_config(**(kept | {"shingle": str(config.shingle)} | settings)),
        stop_words=config.stop_words,
        language=config.language,
        stop_words_by_language=config.stop_words_by_language,
    )


def differing_settings(there: CorpusConfig, settings: Mapping[str, Any]) -> str:
    """Return how a configuration differs from what settings of make_config would make, or "".

    It names the settings that were given; where none of those differs, the ones that follow.
    """
    wanted = make_config(**settings)
    found = {field.name: getattr(there, field.name) for field in fields(there)}
    differing = [name for name in found if found[name] != getattr(wanted, name)]
    told = [name for name in differing if name in settings] or differing
    return "; ".join(
        f"{n.replace('_', ' ')} is {_shown(found[n])} there, not {_shown(getattr(wanted, n))}"
        for n in told
    )


def _shown(value: object) -> object:
    if isinstance(value, Shingle) or not isinstance(value, tuple | None):
        return value
    if not value:
        return "none"
    if isinstance(value[0], tuple):
        return f"{len(value)} lists of {sum(len(words) for _, words in value)} words"
    more = ", ..." if len(value) > 5 else ""
    return f"{len(value)} words ({', '.join(value[:5])}{more})"
