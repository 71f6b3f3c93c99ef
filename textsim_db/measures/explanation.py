"""Compares two texts by every measure, shared shingles and differences, and shows it in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from textsim_db.measures.by_name import MEASURES, Measure
from textsim_db.measures.sets import Estimate, Sequence, containment, signature_estimate
from textsim_db.measures.word_diff import (
    DiffRun,
    Token,
    differences,
    side_by_side,
    tokens,
    tokens_of_form,
)
from textsim_db.results.html import note, output, shortened, table
from textsim_db.settings.corpus_settings import DEFAULTS, CorpusConfig, CorpusSettings
from textsim_db.text.storable import to_bytes

if TYPE_CHECKING:
    from textsim_db.text.utf8 import Tokens

_LONGEST_HEAD = 200
Sides = tuple[list[str], list[str]]
"""The elements of the first text, and those of the second."""


def warning(distinctions: list[str]) -> str:
    """Return a warning if two texts differ only in these kinds of words, or an empty string."""
    if not distinctions:
        return ""
    *most, last = distinctions
    kinds = f"{', '.join(most)} and {last}" if most else last
    return f"The texts differ only in {kinds}: both may have to be kept."


def warning_note(distinctions: list[str]) -> str:
    """Return the warning as a paragraph of HTML, or an empty string."""
    message = warning(distinctions)
    return f'<p class="warning">{message}</p>\n' if message else ""


def guard_notes(guards: Mapping[str, tuple[list[str], list[str]]]) -> list[str]:
    """Return a sentence for each guard that keeps the two texts from being merged."""
    notes = []
    for guard, sides in guards.items():
        one, other = (", ".join(f'"{element}"' for element in side) or "none" for side in sides)
        notes.append(
            f"The guard {guard} keeps them apart: {one} in the first, {other} in the second."
        )
    return notes


def notes_apart(explanation: Explanation) -> list[str]:
    """Return a sentence for each reason why two documents are not merged, however similar."""
    notes = guard_notes(explanation.guards)
    if explanation.scopes is not None:
        one, other = explanation.scopes
        notes.append(
            f'They never match: the scope of the first is "{one}", of the second "{other}".'
        )
    return notes


def measure_rows(explanation: Explanation) -> list[tuple[str, str]]:
    """Return the name and the value of each measure, formatted for display."""
    values = dict(explanation.measures)
    rows = []
    for measure in MEASURES.values():
        of = "shingles" if measure.of_shingles else "words"
        name = measure.name.replace("_", " ")
        value = values[measure.name]
        unit = f" {measure.unit.removesuffix('s') if value == 1 else measure.unit}".rstrip()
        if measure.name == "containment":
            rows.append(("containment of the first in the second, of shingles", f"{value:.4g}"))
            other = values["containment_of_b"]
            rows.append(("containment of the second in the first, of shingles", f"{other:.4g}"))
        else:
            many = value >= 1000 and value == int(value)
            rows.append((f"{name}, of {of}", f"{value:{',.0f' if many else '.4g'}}{unit}"))
    similarity, error = explanation.estimate
    rows.append(("jaccard, estimated by signatures", f"{similarity:.4g} ± {error:.2g}"))
    return rows


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The result of `explain()`: how similar two texts are, and where they differ."""

    words: tuple[int, int]
    """The number of words in each text."""
    measures: dict[str, float]
    """The value of each measure in `MEASURES` by name, of the shingles or the words.

    `containment_of_b` is the containment of the second text in the first.
    """
    estimate: Estimate
    """The Jaccard similarity estimated from the signatures, with its standard error."""
    shared: list[str]
    """The shingles of both texts, in order of appearance."""
    only_a: list[str]
    """The shingles of the first text only, in order of appearance."""
    only_b: list[str]
    """The shingles of the second text only, in order of appearance."""
    diff: list[DiffRun]
    """Both texts from start to end, as runs of equal and of different words."""
    distinctions: list[str]
    """The kinds of the different words: "dates", "letters", "negations", "numbers", "numerals",
    "order", "symbols", "units".

    It is empty if other words differ. Both texts of such a pair may be needed.
    """
    names: tuple[str, str] = ("a", "b")
    """The names of the texts, such as the keys of two documents."""
    guards: dict[str, Sides] = field(default_factory=dict)
    """The guards of the corpus that keep the two from being merged.

    Each has what it counts in the first text only, and in the second only.
    """
    scopes: tuple[str, str] | None = None
    """The scopes of two documents, if they differ: such documents are never compared."""

    def __repr__(self) -> str:
        similarity = f"jaccard={self.measures['jaccard']!r}"
        shared = f"shared=<{len(self.shared):,} shingles>"
        kinds = f"distinctions={self.distinctions}"
        if self.guards:
            kinds += f", guards={self.guards}"
        if self.scopes:
            kinds += f", scopes={self.scopes}"
        return f"Explanation(words={self.words}, {similarity}, {shared}, {kinds})"

    def _repr_html_(self) -> str:
        heads = (f"<b><bdi>{shortened(name, _LONGEST_HEAD)}</bdi></b>" for name in self.names)
        return output(
            warning_note(self.distinctions),
            *(note(escape(sentence)) for sentence in notes_apart(self)),
            side_by_side(self.diff, *heads),
            table(("measure", "value"), measure_rows(self)),
        )


class PairDifferences(NamedTuple):
    """A pair of `Corpus.differences()`: where two documents differ."""

    a: str
    b: str
    diff: list[DiffRun]
    """Both texts from start to end, as runs of equal and of different words."""
    distinctions: list[str]
    """The kinds of the different words: "dates", "letters", "negations", "numbers", "numerals",
    "order", "symbols", "units".

    It is empty if other words differ.
    """


@dataclass(frozen=True, slots=True)
class Side:
    """A text that is prepared for explain_sides()."""

    words: list[str]
    """The words of the normal form."""
    shingles: list[str]
    """The distinct shingles, in order of appearance."""
    signature: Sequence
    """Its num_hashes values, or none for a text without words."""
    tokens: list[Token]
    """The words with the characters of the text."""


def explain(a: str, b: str, shingle: str = str(DEFAULTS.shingle)) -> Explanation:
    """Compare two texts by every measure and word by word, without a database.

    `shingle` is "word:N" or "char:N"; other values raise `ConfigurationError`. A text with NUL or a lone
    surrogate raises `DocumentError`. Texts of millions of words that share little raise `MeasureError`.

        >>> explain("The cat sat.", "The cat ran.", shingle="word:1").measures["jaccard"]
        0.5
    """
    config = CorpusSettings(shingle=shingle).complete()
    return explain_sides(side_of_text(a, config), side_of_text(b, config))


def side_of_text(text: str, config: CorpusConfig) -> Side:
    """Prepare a text for explain_sides()."""
    from textsim_db.sketch.sketch_texts import tokens_without

    return _side(tokens_without([to_bytes(text)], config), tokens(text), config)


def side_of_form(form: str, config: CorpusConfig) -> Side:
    """Prepare a stored document, which has only its normal form, for explain_sides()."""
    from textsim_db.text.tokens import tokens_of

    return _side(tokens_of([form.encode()]), tokens_of_form(form), config)


def differences_of(
    pairs: Iterable[tuple[str, str]], forms: Mapping[str, str]
) -> Iterator[PairDifferences]:
    """Yield where the documents of pairs differ; forms: their normal forms, by key."""
    words = {key: tokens_of_form(form) for key, form in forms.items()}
    for a, b in pairs:
        yield PairDifferences(a, b, *differences(words[a], words[b]))


def explain_sides(a: Side, b: Side, names: tuple[str, str] = ("a", "b")) -> Explanation:
    """Compare two texts that were prepared under the same configuration."""
    one, other = set(a.shingles), set(b.shingles)
    diff, distinctions = differences(a.tokens, b.tokens)
    return Explanation(
        words=(len(a.words), len(b.words)),
        measures={
            **{measure.name: _value(measure, a, b) for measure in MEASURES.values()},
            "containment_of_b": containment(b.shingles, a.shingles),
        },
        estimate=signature_estimate(a.signature, b.signature),
        shared=[shingle for shingle in a.shingles if shingle in other],
        only_a=[shingle for shingle in a.shingles if shingle not in other],
        only_b=[shingle for shingle in b.shingles if shingle not in one],
        diff=diff,
        distinctions=distinctions,
        names=names,
    )


def _value(measure: Measure, a: Side, b: Side) -> float:
    if measure.of_shingles:
        return measure.function(a.shingles, b.shingles)
    return measure.function(a.words, b.words)


def _side(normal: Tokens, in_text: list[Token], config: CorpusConfig) -> Side:
    import numpy as np

    from textsim_db.sketch.fast_similarity import signatures
    from textsim_db.text.shingles import find_shingles

    shingles = find_shingles(normal, config.shingle)
    hashes, offsets = shingles.hashes, shingles.offsets
    signature = signatures(hashes, offsets, config.seed, config.num_hashes)[0]
    return Side(
        words=normal.words(np.arange(len(normal.starts))),
        shingles=shingles.texts(),
        signature=signature if len(shingles.hashes) else signature[:0],
        tokens=in_text,
    )
