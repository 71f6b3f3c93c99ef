"""The settings of a corpus, which a user chooses, and the bands and rows that follow from them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, TypedDict

from textsim_db.errors import ConfigurationError, CorpusExists, RecipeError, suggestion
from textsim_db.settings.check_values import (
    check_count,
    check_duration,
    check_flag,
    check_threshold,
)
from textsim_db.settings.choose_bands import (
    MAX_HASHES,
    MIN_ROWS,
    Bands,
    banding_and_recall,
    probability_of,
)
from textsim_db.settings.named_values import (
    Guard,
    GuardRules,
    Shingle,
    check_guards,
    listed,
)

RECIPE = 3
"""The version of all steps from text to buckets. A change of any step needs a new version."""
GUARD_LISTS = 3
"""The version of the lists of guards: negations, fillers, units and endings of ordinals."""

NEWER_VERSION = "use a newer version of textsim-db"

AUTO = "auto"
"""As language: identify each document's language. As stop words: use the list of this language."""

LOW_RECALL = 0.8
"""If bands find less than this share of the pairs at the threshold, the user hears of it."""
MIN_QUOTATION, MAX_QUOTATION = 4, 500
"""The words of a quotation. Fewer stand in many texts by chance; SQL's work grows with their square."""
MAX_GAP = 10_000
"""The most words between two passages of a region."""
MIN_PASSAGE, MAX_PASSAGE = 4, 1000
"""The words or characters of the shortest passage that a corpus finds."""


WordsByLanguage = tuple[tuple[str, tuple[str, ...]], ...]
"""Stop words by the codes of their languages."""


def _setting(
    default: Any,
    meaning: str,
    metavar: str = "NUMBER",
    *,
    is_fixed: bool = False,
    of_corpus: bool = False,
    flag: str | None = None,
) -> Any:
    """Declare a setting.

    metavar: the values, as the help of an option shows them. is_fixed: whether a rebuild cannot
    change the setting. of_corpus: whether it needs a corpus that stays; the other settings say which
    texts are near-duplicates, and `textsim dedupe` has them too. flag: the option, if it is not the
    name.
    """
    metadata = {
        "meaning": meaning,
        "metavar": metavar,
        "is_fixed": is_fixed,
        "of_corpus": of_corpus,
        "flag": flag,
    }
    return field(default=default, metadata=metadata)


class Settings(TypedDict, total=False):
    """The settings as keyword arguments; CorpusSettings has their defaults and meanings."""

    shingle: str
    threshold: float
    recall: float
    num_hashes: int
    seed: int
    bands: int | None
    rows: int | None
    stop_words: str | Iterable[str]
    language: str | None
    is_unique: bool
    unique_from: float | None
    scoped: bool
    keep_for: timedelta | str | None
    boilerplate: float | None
    passages: int | None
    common_passages: bool
    guards: str | Iterable[str]
    guard_words: str | Iterable[str]
    guard_fillers: str | Iterable[str]


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """The settings that a user chooses for a corpus.

    No other place in Python defines a default or a meaning.
    """

    shingle: str | Shingle = _setting(  # noqa: RUF009 - it calls dataclasses.field
        "word:3",
        'The unit of comparison: N words ("word:N") or N characters ("char:N") in a row. "word:1" '
        "compares sets of words.",
        "word:N|char:N",
    )
    threshold: float = _setting(0.8, "The Jaccard similarity from which documents match.")
    recall: float = _setting(
        0.95,
        "The probability of finding a pair whose similarity equals the threshold. 1 makes an exact "
        "corpus, which finds every pair.",
    )
    num_hashes: int = _setting(128, "The values in a signature.")
    seed: int = _setting(1, "The seed of the hash functions.")
    bands: int | None = _setting(
        None, "The buckets of a document; give --rows too, instead of --recall."
    )
    rows: int | None = _setting(None, "The signature values in a bucket; give --bands too.")
    stop_words: str | Iterable[str] = _setting(
        (),
        'Leave stop words out of every text: the code of a language such as "en", "auto" for the '
        "language of each text, or a file with a word on each line.",
        "LANGUAGE|auto|PATH",
        is_fixed=True,
    )
    language: str | None = _setting(
        None,
        '"auto" identifies the language of each document, so that searches can be limited to it.',
        AUTO,
        is_fixed=True,
        of_corpus=True,
    )
    is_unique: bool = _setting(
        False,
        "Keep near-duplicates out: a document that matches another document of the corpus is refused.",
        of_corpus=True,
    )
    unique_from: float | None = _setting(
        None,
        "The similarity from which a match is kept out, by default the threshold. A match below it is "
        "doubtful: the document is stored.",
        of_corpus=True,
    )
    scoped: bool = _setting(
        False,
        "Give each document a scope, such as a tenant: documents of different scopes never meet.",
        is_fixed=True,
        of_corpus=True,
    )
    keep_for: timedelta | str | None = _setting(  # noqa: RUF009 - it calls dataclasses.field
        None,
        'How long a document counts after it was last written, such as "30 days"; then searches do not '
        "find it, and a worker removes it. By default documents count for ever.",
        "TIME",
        is_fixed=True,
        of_corpus=True,
    )
    boilerplate: float | None = _setting(
        None,
        "Leave the words of boilerplate out of every text: of shingles that more than this share of the "
        "documents has, such as 0.01. The next rebuild learns them, and then they never change.",
        of_corpus=True,
    )
    passages: int | None = _setting(
        None,
        "Find every run of at least this many words that a text shares with a document, such as 13; "
        'each document then has fingerprints. With "char:N", characters are counted.',
        of_corpus=True,
    )
    common_passages: bool = _setting(
        False,
        "Also find passages whose shingles are all in very many documents, such as a header. They make "
        "the searches that find them slow.",
        of_corpus=True,
    )
    guards: str | Iterable[str] = _setting(
        (),
        "Never merge texts that differ in one of these; words are those of --guard-words, and content "
        "is all words but fillers, in their order. They still match, as siblings.",
        ",".join(Guard),
        flag="guard",
    )
    guard_words: str | Iterable[str] = _setting(
        (),
        "The words of --guard words, such as draft,final, or a file with a word on each line.",
        "WORDS|PATH",
    )
    guard_fillers: str | Iterable[str] = _setting(
        (),
        "Words that --guard content leaves out too, such as my,kindly, or a file with a word on each "
        "line.",
        "WORDS|PATH",
    )
    stop_words_by_language: WordsByLanguage = ()
    """The lists of stop words if they follow each document's language; with_lists() writes them."""
    boilerplate_values: tuple[int, ...] = ()
    """The values of the shingles that count as boilerplate, sorted; a rebuild learns them once."""

    def complete(self) -> CorpusConfig:
        """Check the settings of a new corpus and complete them; raises ConfigurationError.

        stop_words are words that stop_words() returned. If the user sets bands and rows, recall becomes
        the probability that they give at the threshold.
        """
        if self.language not in (None, AUTO):
            raise ConfigurationError(
                f'language is {self.language!r}; expected "{AUTO}" or none'
                + suggestion(str(self.language), (AUTO,))
            )
        if self.is_unique and self.stop_words_by_language:
            raise ConfigurationError(
                "a unique corpus cannot remove stop words by language: only a worker identifies "
                "languages, after the document is written; choose the stop words of one language"
            )
        shingle = Shingle.parse(str(self.shingle))
        threshold = check_threshold(self.threshold)
        checked = replace(
            self,
            shingle=shingle,
            threshold=threshold,
            recall=check_threshold(self.recall, "recall"),
            num_hashes=check_count(self.num_hashes, "num_hashes", MIN_ROWS, MAX_HASHES),
            seed=check_count(self.seed, "seed", 0, 2**63 - 1),
            stop_words=tuple(self.stop_words),
            is_unique=check_flag(self.is_unique, "is_unique"),
            unique_from=check_unique_from(self.unique_from, threshold, self.is_unique),
            scoped=check_flag(self.scoped, "scoped"),
            keep_for=check_duration(self.keep_for, "keep_for"),
            boilerplate=check_boilerplate(self.boilerplate, shingle),
            passages=self.passages
            if self.passages is None
            else check_count(self.passages, "passages", MIN_PASSAGE, MAX_PASSAGE),
            common_passages=check_flag(self.common_passages, "common_passages"),
            guards=check_guards(self.guards),
            guard_words=tuple(listed(self.guard_words)),
            guard_fillers=tuple(listed(self.guard_fillers)),
        )
        if (Guard.WORDS in checked.guards) != bool(checked.guard_words):
            raise ConfigurationError(
                'the guard "words" and guard_words go together; set both, with at least one word, '
                "or neither"
            )
        if checked.guard_fillers and Guard.CONTENT not in checked.guards:
            raise ConfigurationError('guard_fillers needs the guard "content"')
        if checked.common_passages and checked.passages is None:
            raise ConfigurationError("common_passages needs passages; set both, or neither")
        banding, recall = banding_and_recall(
            self.bands, self.rows, threshold, checked.recall, checked.num_hashes
        )
        bands, rows = (None, None) if banding is None else banding
        completed = replace(checked, bands=bands, rows=rows, recall=recall)
        return CorpusConfig(**_values_of(completed))

    def check_same(self, name: str, config: CorpusConfig) -> None:
        """Raise CorpusExists unless the corpus of this name has these settings.

        The error names the settings that differ. If none differ, it names the derived values that do.
        """
        wanted = replace(self.complete(), boilerplate_values=config.boilerplate_values)
        names = config.differences(wanted)
        following = {"bands", "rows"} if self.bands is None else {"recall"}
        differences = [
            f"{n.replace('_', ' ')} is {_shown(getattr(config, n))} there, "
            f"not {_shown(getattr(wanted, n))}"
            for n in [n for n in names if n not in following] or names
        ]
        if differences:
            raise CorpusExists(
                f'corpus "{name}" exists with other settings: {"; ".join(differences)}; '
                "use another name, or change the settings with textsim rebuild"
            )


@dataclass(frozen=True, slots=True)
class CorpusConfig(CorpusSettings):
    """The configuration of a corpus: its settings, complete and checked; `corpus.config` returns it.

    The other fields are settings of Database.create_corpus().
    """

    shingle: Shingle
    """The unit of comparison, such as `Shingle("word", 3)`."""
    stop_words: tuple[str, ...] = ()
    """The words that are left out of every text, in normal form."""
    guards: tuple[str, ...] = ()
    """The kinds of words that two texts must share to be merged."""
    guard_words: tuple[str, ...] = ()
    """The words of the guard "words", in normal form."""
    guard_fillers: tuple[str, ...] = ()
    """The words that the guard "content" leaves out besides its own list, in normal form."""
    keep_for: timedelta | None = None
    """How long a document counts after it was last written; None: for ever."""
    recipe: int = RECIPE
    """The version of all steps from text to buckets."""
    guard_lists: int = field(default=GUARD_LISTS, compare=False, repr=False)
    """The version of the lists by which the guards of its documents were computed; no setting."""
    common: Any = field(default=None, compare=False, repr=False)
    """The common shingles that an exact corpus has learned, as CommonValues; no setting."""
    common_of_passages: Any = field(default=None, compare=False, repr=False)
    """The common shingles of passages that the corpus has learned, as CommonValues; no setting."""

    @property
    def guard_rules(self) -> GuardRules:
        """The guards with their words."""
        return GuardRules(self.guards, self.guard_words, self.guard_fillers)

    @property
    def twins_from(self) -> float:
        """The similarity from which two documents are twins."""
        return self.threshold if self.unique_from is None else self.unique_from

    @property
    def is_exact(self) -> bool:
        """Whether no pair at or above the threshold can be missed."""
        return self.bands is None

    @property
    def has_dictionary(self) -> bool:
        """Whether documents are stored as ids of their words; characters are stored as normal forms."""
        return self.shingle.unit == "word"

    @property
    def prefix_threshold(self) -> float:
        """The threshold of the prefixes of an exact corpus; 0 with bands, which have no prefixes."""
        return self.threshold if self.is_exact else 0.0

    @property
    def banding(self) -> Bands | None:
        """The bands and rows as one value; None in an exact corpus."""
        return None if self.bands is None or self.rows is None else Bands(self.bands, self.rows)

    def probability(self, similarity: float) -> float:
        """Return the probability that a pair of this similarity becomes a candidate."""
        return probability_of(self.banding, self.threshold, similarity)

    def share_found(self, similarity: float) -> str:
        """Return the share of the pairs of this similarity that are found, as text."""
        return f"{min(100 * self.probability(similarity), 99.9):.1f} %"

    def many_missed(self, similarity: float | None = None) -> str | None:
        """Say which share of the pairs is found, if it is low; None if it is not.

        similarity: that of the pairs, not below the threshold, which is the default.
        """
        least = self.threshold if similarity is None else similarity
        if self.recall >= LOW_RECALL or self.probability(least) >= LOW_RECALL:
            return None
        return (
            f"{self.bands} bands of {self.rows} rows find {self.share_found(least)} of the pairs at "
            f"{least:g}; fewer rows find more, and recall 1 finds all"
        )

    def check_recipe(self, name: str) -> None:
        """Raise `RecipeError` unless this version computes the recipe and the guards of the corpus."""
        if other := other_build(name, self.recipe, self.guard_lists):
            detail, remedy = other
            raise RecipeError(f"{detail}; what to do: {remedy}")

    @property
    def is_older(self) -> bool:
        """Whether only a rebuild makes the corpus one of this version."""
        return (self.recipe, self.guard_lists) < (RECIPE, GUARD_LISTS)

    def check_scope(self, name: str, is_given: bool) -> None:
        """Raise ConfigurationError if a scope is given to a corpus that is not scoped, or missing."""
        if self.scoped and not is_given:
            raise ConfigurationError(f'corpus "{name}" is scoped, and no scope is given; name one')
        if is_given and not self.scoped:
            raise ConfigurationError(
                f'corpus "{name}" is not scoped; leave the scope out, or create a scoped corpus'
            )

    def differences(self, other: CorpusConfig) -> list[str]:
        """Return the names of the fields that differ."""
        names = [each.name for each in fields(self) if each.compare]
        return [name for name in names if getattr(self, name) != getattr(other, name)]

    def changed(self, **changes: Any) -> CorpusConfig:
        """Return this configuration with the changes that are not None.

        Bands and rows are chosen again only if `threshold`, `recall`, `num_hashes`, `bands` or `rows`
        changes. Raises `ConfigurationError` if the result is not possible.
        """
        changes = {name: value for name, value in changes.items() if value is not None}
        if self.boilerplate_values:
            self._refuse_other_boilerplate(changes)
        settings = CorpusSettings(**_values_of(self))
        if not changes.keys() & {"threshold", "recall", "num_hashes", "bands", "rows"}:
            return replace(replace(settings, **changes).complete(), recall=self.recall)
        # Bands have recall 1 at threshold 1, which must not make an exact corpus of them.
        recall = DEFAULTS.recall if self.recall == 1 and not self.is_exact else self.recall
        chosen = {"bands": None, "rows": None, "recall": recall} | changes
        return replace(settings, **chosen).complete()

    def _refuse_other_boilerplate(self, changes: Mapping[str, Any]) -> None:
        for name in ("shingle", "boilerplate"):
            before = getattr(self, name)
            if name in changes and str(changes[name]) != str(before):
                raise ConfigurationError(
                    f"{name} cannot become {changes[name]}: the corpus has learned its boilerplate with "
                    f"{name} {before}, and left its words out of the stored documents; create the "
                    "corpus again"
                )

    @property
    def learns_boilerplate(self) -> bool:
        """Whether the next rebuild learns the boilerplate."""
        return self.boilerplate is not None and not self.boilerplate_values


def learns_common(config: CorpusConfig) -> bool:
    """Say whether a corpus learns common shingles, which it has not learned yet."""
    of_shingles = config.is_exact and config.common is None
    return of_shingles or (config.passages is not None and config.common_of_passages is None)


DEFAULTS = CorpusSettings()
"""The default settings of a corpus, and of Spark."""

IN_MEMORY: Settings = {"recall": 1}
"""The other defaults of texts in memory. Nothing is stored, so recall 1 costs little: all are found."""

SETTINGS = tuple(each.name for each in fields(CorpusSettings) if each.metadata)
"""The names of the settings that a user chooses."""

CHANGEABLE = tuple(
    each.name for each in fields(CorpusSettings) if each.metadata and not each.metadata["is_fixed"]
)
"""The names of the settings that a rebuild can change."""

PAIR_SETTINGS = tuple(
    each.name for each in fields(CorpusSettings) if each.metadata and not each.metadata["of_corpus"]
)
"""The names of the settings that say which texts are near-duplicates, also without a stored corpus."""


def _values_of(settings: CorpusSettings) -> dict[str, Any]:
    return {each.name: getattr(settings, each.name) for each in fields(CorpusSettings)}


def metadata_of(name: str) -> Mapping[str, Any]:
    """Return the metadata of a setting, such as its meaning for help texts."""
    return next(each.metadata for each in fields(CorpusSettings) if each.name == name)


def check_boilerplate(share: float | None, shingle: Shingle) -> float | None:
    """Return the share as a float; raise ConfigurationError unless it is in (0, 1), or None."""
    if share is None:
        return None
    if check_threshold(share, "boilerplate") == 1:
        raise ConfigurationError("boilerplate is 1; expected above 0, below 1")
    if shingle.unit != "word":
        raise ConfigurationError(
            f'boilerplate needs shingles of words, and shingle is "{shingle}": most runs of characters '
            "are in many documents"
        )
    return float(share)


def check_unique_from(value: float | None, threshold: float, is_unique: bool) -> float | None:
    """Return the similarity of twins, None if it is the threshold; raises ConfigurationError."""
    similarity = None if value is None else check_threshold(value, "unique_from")
    if similarity in (None, threshold):
        return None
    if not is_unique:
        raise ConfigurationError(
            f"unique_from is {value}, and the corpus is not unique; leave unique_from out, or give it "
            "the value of threshold"
        )
    if similarity < threshold:
        raise ConfigurationError(
            f"unique_from is {value}; expected the threshold, which is {threshold}, or more, at most 1"
        )
    return similarity


def _shown(value: object) -> object:
    if isinstance(value, Shingle) or not isinstance(value, tuple | None):
        return value
    if not value:
        return "none"
    if isinstance(value[0], tuple):
        return f"{len(value)} lists of {sum(len(words) for _, words in value)} words"
    rest = ", ..." if len(value) > 5 else ""
    return f"{len(value)} words ({', '.join(value[:5])}{rest})"


def other_build(name: str, recipe: int, guard_lists: int) -> tuple[str, str] | None:
    """Return what is wrong with a corpus of another recipe or other lists, and what to do about it."""
    if recipe != RECIPE:
        detail = f"was built by recipe {recipe}; this version computes recipe {RECIPE}"
    elif guard_lists != GUARD_LISTS:
        detail = (
            f"has guards by version {guard_lists} of the lists of guards; this version of textsim-db "
            f"has version {GUARD_LISTS}"
        )
    else:
        return None
    is_older = recipe <= RECIPE and guard_lists <= GUARD_LISTS
    remedy = f"textsim rebuild {shlex.quote(name)}" if is_older else NEWER_VERSION
    return f'corpus "{name}" {detail}', remedy
