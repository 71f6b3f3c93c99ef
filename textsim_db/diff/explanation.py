"""How similar two texts are by every measure, what they share, and where they differ; pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from textsim_db.diff.word_diff import Part, Token, differences, tokens
from textsim_db.measures.by_name import MEASURES, Measure
from textsim_db.measures.estimates import Estimate, signature_estimate
from textsim_db.measures.sets import containment
from textsim_db.settings import DEFAULTS, CorpusConfig, CorpusSettings
from textsim_db.sketch.fast_similarity import signatures
from textsim_db.sketch.sketches import tokens_without
from textsim_db.text.array_types import Int16Array
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import Tokens, tokens_of
from textsim_db.text.utf8 import to_bytes


@dataclass(frozen=True, slots=True)
class Explanation:
    """What explain() finds.

    words: how many words each text has. measures: the value of each measure of MEASURES by its name,
    of the shingles or of the words, and containment_of_b, of the second in the first. estimate: of
    the Jaccard similarity, by the signatures. shared, only_a, only_b: shingles, in order of first
    appearance. parts: both texts from start to end, by runs of words. distinctions: "dates",
    "negations", "numbers": not empty where texts differ in nothing else, so that both may have to be
    kept.
    """

    words: tuple[int, int]
    measures: dict[str, float]
    estimate: Estimate
    shared: list[str]
    only_a: list[str]
    only_b: list[str]
    parts: list[Part]
    distinctions: list[str]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the texts to explain."""

    words: list[str]
    shingles: list[str]
    signature: Int16Array
    tokens: list[Token]


def explain(a: str, b: str, shingle: str = DEFAULTS.shingle) -> Explanation:
    """Compare two texts by every measure and word by word.

    shingle is "word:N" or "char:N". Raises ConfigurationError for anything else, DocumentError for
    NUL and lone surrogates, and MeasureError for texts of millions of words with little in common.
    """
    config = CorpusSettings(shingle=shingle).complete()
    return explain_sides(*(side_of_text(text, config) for text in (a, b)))


def side_of_text(text: str, config: CorpusConfig) -> Side:
    """Return a text as explain_sides() takes it."""
    return _side(tokens_without([to_bytes(text)], config), tokens(text), config)


def side_of_form(form: str, config: CorpusConfig) -> Side:
    """Return a stored document, of which there is only the normal form."""
    own = [Token(word, f"{word} ") for word in form.split()]
    return _side(tokens_of([form.encode()]), own, config)


def explain_sides(a: Side, b: Side) -> Explanation:
    """Compare two texts that were prepared under one configuration."""
    one, other = set(a.shingles), set(b.shingles)
    parts, distinctions = differences(a.tokens, b.tokens)
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
        parts=parts,
        distinctions=distinctions,
    )


def _value(measure: Measure, a: Side, b: Side) -> float:
    if measure.of_shingles:
        return measure.function(a.shingles, b.shingles)
    return measure.function(a.words, b.words)


def _side(normal: Tokens, in_text: list[Token], config: CorpusConfig) -> Side:
    shingles = find_shingles(normal, config.shingle)
    hashes, offsets = shingles.hashes, shingles.offsets
    signature = signatures(hashes, offsets, config.seed, config.num_hashes)[0]
    return Side(
        words=normal.words(np.arange(len(normal.starts))),
        shingles=shingles.texts(normal),
        signature=signature if len(shingles.hashes) else signature[:0],
        tokens=in_text,
    )
