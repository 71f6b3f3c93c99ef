"""Texts to words, shingles, signatures and buckets, under one configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int16Array, Int32Array, Int64Array
from textsim_db.errors import ConfigurationError, RecipeError
from textsim_db.settings.corpus_settings import RECIPE, CorpusConfig
from textsim_db.sketch import fast_similarity
from textsim_db.sketch.exact_prefix import NO_COMMON, smallest_values
from textsim_db.sketch.fingerprints import Fingerprints, fingerprints_of
from textsim_db.sketch.learned_shingles import words_of_shingles
from textsim_db.sketch.ragged import (
    Buckets,
    Parts,
    Ragged,
    Signatures,
    in_parts,
    joined,
    of_rows,
    part_only,
)
from textsim_db.text.guards import guards_of
from textsim_db.text.languages import identify
from textsim_db.text.shingles import find_shingles
from textsim_db.text.stop_words import are_stop_words, are_stop_words_of_languages
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import leave_out, tokenize
from textsim_db.text.utf8 import Tokens
from textsim_db.text.word_places import WordPlaces, place_words

GOLDEN_TEXT = (
    "The 3 QUICK brown foxes — naïve, ﬁne — jumped; Быстрая ЛИСА, ταχεία ΑΛΕΠΟΎΣ, 素早い狐が跳ぶ, "
    "चतुर लोमड़ी, الثعلب السريع, สุนัขจิ้งจอก, İstanbul’da 12½ km², e\u0301te\u0301 \U0001f98a. A recom-\n"
    "mended C++ of −5, Straße, مُدَرِّس ١٢, ща\u0301с, co\u00adop, rose¹."
)
"""The signature and buckets of this text are stored with each corpus and checked when it is opened."""

_BYTES_AT_ONCE = 1_000_000
"""Bytes of text that are sketched at once. The shingles of more would not fit in the cache."""


@dataclass(frozen=True, slots=True)
class Sketches:
    """The words, signatures and buckets of several texts."""

    tokens: Tokens
    shingle_counts: Int64Array
    """The number of distinct shingles of each document: (documents,)."""
    signatures: Signatures
    buckets: Buckets
    """The buckets as they are stored: mixed with the parts."""
    fingerprints: Fingerprints | None
    """The fingerprints, not mixed with parts; None in a corpus without passages, or if not needed."""
    parts: Parts
    """The part of each document; None in a corpus without parts."""
    guards: Int64Array | None = None
    """The guard of each document; None in a corpus without guards."""

    def guard_of(self, document: int) -> int | None:
        return None if self.guards is None else int(self.guards[document])


def sketch(
    texts: Sequence[bytes],
    config: CorpusConfig,
    language: str | None = None,
    parts: Parts = None,
    needs_fingerprints: bool = True,
) -> Sketches:
    """Compute the words, signatures and buckets of texts; language: that of all, None identifies it."""
    tokens = tokens_without(texts, config, language)
    return sketch_tokens(tokens, config, parts, needs_fingerprints)


def tokens_without(
    texts: Sequence[bytes], config: CorpusConfig, language: str | None = None
) -> Tokens:
    languages = None if language is None else [language] * len(texts)
    return words_that_count(tokenize(texts), config, languages)


def places_of_units(text: str, config: CorpusConfig) -> WordPlaces:
    """Return the places of the units of a text: its words, or the characters of its normal form."""
    words, places = places_of_words(text, config)
    return places.of_characters(text, words) if config.shingle.unit == "char" else places


def places_of_words(text: str, config: CorpusConfig | None) -> tuple[list[str], WordPlaces]:
    """Return the words of a text that count, and the place of each; None: all words count."""
    words, places = place_words(text)
    if config is None or not (
        config.stop_words or config.stop_words_by_language or config.boilerplate_values
    ):
        return words, places
    tokens = tokenize([to_bytes(text)])
    are_left_out = _are_stop_words(tokens, config, None)
    if are_left_out is not None:
        places, tokens = places.take(~are_left_out), leave_out(tokens, are_left_out)
    if config.boilerplate_values:
        are_left_out = boilerplate_words(tokens, config)
        places, tokens = places.take(~are_left_out), leave_out(tokens, are_left_out)
    return tokens.words(np.arange(len(tokens.starts))), places


def words_that_count(
    tokens: Tokens, config: CorpusConfig, languages: Sequence[str] | None = None
) -> Tokens:
    """Return the words of texts without the stop words and the boilerplate of the configuration."""
    are_left_out = _are_stop_words(tokens, config, languages)
    if are_left_out is not None:
        tokens = leave_out(tokens, are_left_out)
    return without_boilerplate(tokens, config)


def _are_stop_words(
    tokens: Tokens, config: CorpusConfig, languages: Sequence[str] | None
) -> BoolArray | None:
    """Say which words of texts are stop words: (words,), or None if the configuration has none."""
    if config.stop_words_by_language:
        if languages is None:
            languages = identify(tokens)
        return are_stop_words_of_languages(tokens, languages, config.stop_words_by_language)
    return are_stop_words(tokens, config.stop_words) if config.stop_words else None


def without_boilerplate(tokens: Tokens, config: CorpusConfig) -> Tokens:
    """Return texts without the words of the boilerplate; only once, as new neighbours make shingles."""
    if not config.boilerplate_values:
        return tokens
    return leave_out(tokens, boilerplate_words(tokens, config))


def boilerplate_words(tokens: Tokens, config: CorpusConfig) -> BoolArray:
    return words_of_shingles(tokens, config.shingle.n, config.boilerplate_values)


def tokens_and_languages(tokens: Tokens, config: CorpusConfig) -> tuple[Tokens, list[str] | None]:
    """Return the words of documents that count, and their languages if the configuration has any.

    tokens: all words of the documents.
    The language is identified from the stored words, so that a document added in SQL has the same
    language. If stop words depend on the language, it is identified from all words.
    """
    if config.stop_words_by_language:
        languages = identify(tokens)
        return words_that_count(tokens, config, languages), languages
    tokens = words_that_count(tokens, config)
    return tokens, None if config.language is None else identify(tokens)


def sketch_tokens(
    tokens: Tokens, config: CorpusConfig, parts: Parts = None, needs_fingerprints: bool = True
) -> Sketches:
    """Compute the shingles, signatures and buckets of texts from their words."""
    chunks = [_counts_and_signatures(chunk, config) for chunk in tokens.slices(_BYTES_AT_ONCE)]
    counts, signatures = chunks[0]
    if len(chunks) > 1:
        counts = np.concatenate([counts for counts, _ in chunks])
        signatures = joined([signatures for _, signatures in chunks])
    buckets = in_parts(buckets_of(signatures, config), parts)
    has_fingerprints = needs_fingerprints and config.passages is not None
    fingerprints = fingerprints_of(tokens, config) if has_fingerprints else None
    guards = guards_of(tokens, config.guard_rules) if config.guards else None
    return Sketches(tokens, counts, signatures, buckets, fingerprints, parts, guards)


def _counts_and_signatures(tokens: Tokens, config: CorpusConfig) -> tuple[Int64Array, Signatures]:
    """Return the number of shingles of documents, and their signatures."""
    shingles = find_shingles(tokens, config.shingle)
    counts = shingles.offsets[1:] - shingles.offsets[:-1]
    if config.is_exact:
        common = config.common or NO_COMMON
        return counts, smallest_values(shingles.hashes, shingles.offsets, config.threshold, common)
    matrix = fast_similarity.signatures(
        shingles.hashes, shingles.offsets, config.seed, config.num_hashes
    )
    return counts, of_rows(matrix, counts > 0)


def buckets_of(signatures: Signatures, config: CorpusConfig) -> Buckets:
    """Return the buckets of documents without parts; in an exact corpus they are the signatures."""
    banding = config.banding
    if banding is None:
        return signatures
    matrix = signatures.values.reshape(-1, config.num_hashes)
    offsets = signatures.offsets // config.num_hashes * banding.bands
    return Ragged(fast_similarity.buckets_in_bands(matrix, banding).ravel(), offsets)


def signature(text: str, config: CorpusConfig) -> Int16Array | Int32Array:
    """Return the signature of a text: int16 of shape (num_hashes,), or (0,) for one with no words.

    In an exact corpus it is int32 of shape (rows,). Raises DocumentError for a text that cannot be
    stored.
    """
    return sketch([to_bytes(text)], config).signatures.values


def buckets(text: str, config: CorpusConfig, part: int | None = None) -> Int32Array:
    """Return the buckets of a text: int32 of shape (buckets,), or (0,) for one with no words."""
    return sketch([to_bytes(text)], config, parts=part_only(part)).buckets.values


def golden(config: CorpusConfig) -> tuple[Int16Array | Int32Array, Int32Array]:
    """Return the signature and the buckets of GOLDEN_TEXT, without what the corpus has learned."""
    sketches = sketch([to_bytes(GOLDEN_TEXT)], replace(config, common=None, boilerplate_values=()))
    return sketches.signatures.values, sketches.buckets.values


def check_golden(
    name: str, config: CorpusConfig, golden_signature: Sequence[int], golden_buckets: Sequence[int]
) -> None:
    """Raise RecipeError unless this code computes the stored signature and buckets of GOLDEN_TEXT."""
    try:
        computed = tuple(array.tolist() for array in golden(config))
    except ConfigurationError as error:
        raise RecipeError(f'corpus "{name}": {error}') from error
    if computed != (list(golden_signature), list(golden_buckets)):
        raise RecipeError(
            f'corpus "{name}" has recipe {config.recipe}, but its stored golden signature differs from '
            f"the one that recipe {RECIPE} computes: its configuration or this installation is damaged; "
            "reinstall textsim-db, and if the error stays, create the corpus again"
        )
