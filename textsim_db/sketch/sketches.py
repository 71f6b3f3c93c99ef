"""The whole way from texts to signatures and buckets under one configuration; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, RecipeError
from textsim_db.settings import RECIPE, CorpusConfig
from textsim_db.sketch import band_buckets, minhash
from textsim_db.text.languages import identify
from textsim_db.text.stop_words import without, without_by_language
from textsim_db.text.tokens import Tokens, find_shingles, to_bytes, tokenize

GOLDEN_TEXT = (
    "The 3 QUICK brown foxes — naïve, ﬁne — jumped; Быстрая ЛИСА, ταχεία ΑΛΕΠΟΎΣ, 素早い狐が跳ぶ, "
    "चतुर लोमड़ी, الثعلب السريع, สุนัขจิ้งจอก, İstanbul’da 12½ km², e\u0301te\u0301 \U0001f98a."
)
"""A text whose signature and buckets are stored with each corpus and computed again on opening."""


@dataclass(frozen=True, slots=True)
class Sketches:
    """What several texts become: their words, signatures and buckets.

    shingle_counts: int64 of shape (documents,), the distinct shingles of each. signatures: int32 of
    shape (documents, num_hashes). buckets: int64 of shape (documents, bands). The rows of a
    document with no shingles mean nothing.
    """

    tokens: Tokens
    shingle_counts: npt.NDArray[np.int64]
    signatures: npt.NDArray[np.int32]
    buckets: npt.NDArray[np.int64]


def sketch(texts: Sequence[bytes], config: CorpusConfig, language: str | None = None) -> Sketches:
    """Compute everything about several texts in UTF-8 (see textsim_db.text.to_bytes).

    language: that of all of them, where it is known.
    """
    return sketch_tokens(tokens_without(texts, config, language), config)


def tokens_without(
    texts: Sequence[bytes], config: CorpusConfig, language: str | None = None
) -> Tokens:
    """Return the words of texts, those left out that are stop words of the configuration."""
    tokens = tokenize(texts)
    if config.stop_words_by_language:
        languages = identify(tokens) if language is None else [language] * len(texts)
        return without_by_language(tokens, languages, config.stop_words_by_language)
    return without(tokens, config.stop_words) if config.stop_words else tokens


def tokens_and_languages(
    texts: Sequence[bytes], config: CorpusConfig
) -> tuple[Tokens, list[str] | None]:
    """Return the words of documents, and their languages where the configuration wants them.

    A language is identified in the words that are stored, so that it is the same for a document
    that came by SQL; only where stop words follow it, in the words before they are left out.
    """
    if config.language is None:
        return tokens_without(texts, config), None
    if not config.stop_words_by_language:
        tokens = tokens_without(texts, config)
        return tokens, identify(tokens)
    tokens = tokenize(texts)
    languages = identify(tokens)
    return without_by_language(tokens, languages, config.stop_words_by_language), languages


def sketch_tokens(tokens: Tokens, config: CorpusConfig) -> Sketches:
    """Compute signatures and buckets of texts whose words are known."""
    shingles = find_shingles(tokens, config.shingle)
    coefficients = minhash.coefficients(config.seed, config.num_hashes)
    signatures = minhash.signatures(shingles.hashes, shingles.offsets, *coefficients)
    return Sketches(
        tokens,
        np.diff(shingles.offsets),
        signatures,
        band_buckets.buckets(signatures, config.banding),
    )


def signature(text: str, config: CorpusConfig) -> npt.NDArray[np.int32]:
    """Return the signature of a text: int32 of shape (num_hashes,), or (0,) for one with no words.

    Raises DocumentError for a text that cannot be stored.
    """
    made = sketch([to_bytes(text)], config)
    return made.signatures[0] if made.shingle_counts[0] else made.signatures[0, :0]


def buckets(text: str, config: CorpusConfig) -> npt.NDArray[np.int64]:
    """Return the buckets of a text: int64 of shape (bands,), or (0,) for one with no words.

    Raises DocumentError for a text that cannot be stored.
    """
    made = sketch([to_bytes(text)], config)
    return made.buckets[0] if made.shingle_counts[0] else made.buckets[0, :0]


def check_golden(
    name: str, config: CorpusConfig, golden_signature: Sequence[int], golden_buckets: Sequence[int]
) -> None:
    """Raise RecipeError unless this code computes the stored signature and buckets of GOLDEN_TEXT."""
    try:
        computed = (signature(GOLDEN_TEXT, config).tolist(), buckets(GOLDEN_TEXT, config).tolist())
    except ConfigurationError as error:
        raise RecipeError(f'corpus "{name}": {error}') from error
    if computed != (list(golden_signature), list(golden_buckets)):
        raise RecipeError(
            f'corpus "{name}" says recipe {config.recipe}, but its stored golden signature is not '
            f"what recipe {RECIPE} computes: its configuration or this installation is damaged"
        )
