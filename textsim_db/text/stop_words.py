"""Stop words: frequent words, such as "the", that a corpus may leave out of its texts.

Lists for some fifty languages come from the package stopwordsiso. The extra "languages" installs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from textsim_db.errors import ConfigurationError, install_extra, suggestion
from textsim_db.settings.check_values import check_several
from textsim_db.settings.corpus_settings import AUTO, CorpusSettings, WordsByLanguage
from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    enter,
    find,
    find_next,
    hash_span,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.numba_compiler import BoolArray, Int64Array, inlined_kernel, kernel
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.tokens import Tokens, tokenize
from textsim_db.text.utf8 import Utf8, concatenate, same_spans


def with_lists(settings: CorpusSettings) -> CorpusSettings:
    """Return the settings with lists of stop words in place of a language's code or AUTO.

    AUTO identifies the language of each document and leaves its stop words out. Raises
    ConfigurationError and DocumentError as stop_words() does.
    """
    if isinstance(settings.stop_words, str) and settings.stop_words == AUTO:
        lists = stop_words_by_language()
        return replace(settings, stop_words=(), language=AUTO, stop_words_by_language=lists)
    return replace(settings, stop_words=stop_words(settings.stop_words))


class WordTable(NamedTuple):
    """Distinct words, to look words up in."""

    words: Utf8
    """The words in UTF-8."""
    table: HashTable
    """The number of each word, by its hash."""


def stop_words(words: str | Iterable[str]) -> tuple[str, ...]:
    """Return stop words in normal form, each once, in order of their code points.

    words: the code of a language (ISO 639-1), or words; "don't" becomes "don" and "t". Raises
    ConfigurationError for an unknown language, or if no lists are installed. Raises DocumentError for
    words with NUL or lone surrogates.
    """
    if isinstance(words, str):
        words = _of_language(words)
    check_several(words, "stop_words takes the code of a language, or several words such as [word]")
    texts = []
    for word in words:
        if not isinstance(word, str):
            raise ConfigurationError(f"a stop word is {word!r:.100}; expected a str")
        texts.append(to_bytes(word))
    tokens = tokenize(texts)
    return tuple(sorted(set(tokens.words(np.arange(len(tokens.starts))))))


def stop_words_by_language() -> WordsByLanguage:
    """Return the lists of all languages, in order of the languages' codes.

    Raises ConfigurationError if no lists are installed.
    """
    return tuple((language, stop_words(language)) for language in _languages())


def are_stop_words(tokens: Tokens, words: tuple[str, ...]) -> BoolArray:
    """Say which words of texts are stop words, in the form that stop_words() returns: (words,)."""
    return find_words(tokens, np.arange(len(tokens.starts)), _cached_table(words))


def are_stop_words_of_languages(
    tokens: Tokens, languages: Sequence[str], words: WordsByLanguage
) -> BoolArray:
    """Say which words of texts are stop words of the language of their text: (words,)."""
    numbers: dict[str, int] = {}
    of_text = np.array([numbers.setdefault(code, len(numbers)) for code in languages], np.int64)
    of_word = np.repeat(of_text, np.diff(tokens.word_offsets))
    are_there = np.zeros(len(tokens.starts), np.bool_)
    for language, stop_words_of_language in words:
        if language in numbers:
            chosen = np.flatnonzero(of_word == numbers[language])
            are_there[chosen] = find_words(tokens, chosen, _cached_table(stop_words_of_language))
    return are_there


@lru_cache(maxsize=128)
def _cached_table(words: tuple[str, ...]) -> WordTable:
    return word_table([word.encode() for word in words])


def word_table(words: Sequence[bytes]) -> WordTable:
    """Return a hash table of distinct words."""
    return _table_of_words(concatenate(words), SPREAD)


@kernel
def _table_of_words(words: Utf8, spread: int) -> WordTable:
    hashes = np.empty(len(words.offsets) - 1, np.uint64)
    table = hash_table(hashes, len(hashes), spread)
    for number in range(len(hashes)):
        hashes[number] = hash_span(words.data, words.offsets[number], words.offsets[number + 1])
        slot = find(table, hashes[number])
        while is_taken(table, slot):
            slot = find_next(table, hashes[number], slot)
        enter(table, slot, number)
    return WordTable(words, table)


@kernel
def find_words(tokens: Tokens, chosen: Int64Array, words: WordTable) -> BoolArray:
    """Say which of the chosen words of the texts are in a table: shape (chosen,)."""
    is_there = np.empty(len(chosen), np.bool_)
    for i in range(len(chosen)):
        is_there[i] = _has_word(words, tokens, chosen[i])
    return is_there


@inlined_kernel
def _has_word(words: WordTable, tokens: Tokens, number: int) -> bool:
    start, end = tokens.starts[number], tokens.ends[number]
    word_hash = np.uint64(tokens.hashes[number])
    data, offsets = words.words
    slot = find(words.table, word_hash)
    while is_taken(words.table, slot):
        k = number_at(words.table, slot)
        if same_spans(tokens.normal, start, end, data, offsets[k], offsets[k + 1]):
            return True
        slot = find_next(words.table, word_hash, slot)
    return False


def _languages() -> list[str]:
    try:
        import stopwordsiso
    except ImportError as error:
        raise ConfigurationError(
            f"lists of stop words are not installed: {install_extra('languages')}"
        ) from error
    return sorted(stopwordsiso.langs())


def _of_language(language: str) -> Iterable[str]:
    languages = _languages()
    if language not in languages:
        raise ConfigurationError(
            f'there are no stop words for "{language}"{suggestion(language, languages)}; give words, or '
            "one of these languages: " + ", ".join(languages)
        )
    import stopwordsiso

    words: Iterable[str] = stopwordsiso.stopwords(language)
    return words
