"""Words that a corpus leaves out of its texts: stop words, and boilerplate.

Stop words are frequent words, such as "the". Lists for some fifty languages come from the package
stopwordsiso; the extra "languages" installs it. Boilerplate is shingles that many documents of a corpus
share, such as a header. Their words are left out of every text, so no later step knows of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from textsim_db.errors import ConfigurationError, install_extra, suggestion
from textsim_db.settings.check_values import check_several
from textsim_db.settings.corpus_settings import AUTO, CorpusConfig, CorpusSettings, WordsByLanguage
from textsim_db.settings.named_values import Shingle, check_guards, listed
from textsim_db.text.distinctions import is_counted
from textsim_db.text.numba_compiler import (
    BoolArray,
    HashArray,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.text.shingles import array_elements, find_shingles
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.tokens import Tokens, tokenize
from textsim_db.text.utf8 import WordTable, number_of_span, word_table

FEWEST_SAMPLED = 100
"""A sample of fewer documents does not show which shingles are boilerplate."""
FEWEST_SHARING = 10
"""Fewer documents than this may be copies of each other."""


def with_lists(settings: CorpusSettings) -> CorpusSettings:
    """Return the settings with lists of stop words in place of a language's code or AUTO.

    Stop words and guard words are in normal form then. Words that a guard counts are no stop words.
    AUTO identifies the language of each document and leaves its stop words out. Raises
    ConfigurationError and DocumentError as stop_words() does.
    """
    settings = replace(
        settings,
        guards=check_guards(settings.guards),
        guard_words=stop_words(listed(settings.guard_words)),
    )
    if isinstance(settings.stop_words, str) and settings.stop_words == AUTO:
        lists = tuple(
            (code, _not_counted(words, settings)) for code, words in stop_words_by_language()
        )
        return replace(settings, stop_words=(), language=AUTO, stop_words_by_language=lists)
    return replace(settings, stop_words=_not_counted(stop_words(settings.stop_words), settings))


def _not_counted(words: tuple[str, ...], settings: CorpusSettings) -> tuple[str, ...]:
    guards, guard_words = tuple(settings.guards), frozenset(settings.guard_words)
    if not guards:
        return words
    return tuple(word for word in words if not is_counted(word, guards, guard_words))


def with_guard_words(config: CorpusConfig) -> CorpusConfig:
    """Return a changed configuration with its guard words in normal form."""
    config = replace(config, guard_words=stop_words(config.guard_words))
    for words in (config.stop_words, *(words for _, words in config.stop_words_by_language)):
        if missing := set(words).difference(_not_counted(words, config)):
            raise ConfigurationError(
                f'the corpus leaves out the stop word "{min(missing)}", which its guards would count; '
                "create the corpus again with these guards"
            )
    return config


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
    """Return the lists of all languages, in order of the languages' codes."""
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


@kernel
def find_words(tokens: Tokens, chosen: Int64Array, words: WordTable) -> BoolArray:
    """Say which of the chosen words of the texts are in a table: shape (chosen,)."""
    is_there = np.empty(len(chosen), np.bool_)
    for i in range(len(chosen)):
        k = chosen[i]
        word_hash = np.uint64(tokens.hashes[k])
        number = number_of_span(words, tokens.normal, tokens.starts[k], tokens.ends[k], word_hash)
        is_there[i] = number >= 0
    return is_there


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


def learn_boilerplate(samples: Iterable[Tokens], n: int, share: float) -> tuple[int, ...]:
    """Return the values of the shingles that more than a share of a sample has, sorted.

    n: the words of a shingle. Equal texts of one part count once, so that copies are no boilerplate.
    Returns none if there are fewer than FEWEST_SAMPLED texts. The share is of the texts that count.
    """
    hashes, documents = [np.empty(0, np.int64)], 0
    for tokens in samples:
        shingles = find_shingles(tokens, Shingle("word", n))
        first = first_copies(tokens)
        documents += len(first)
        is_first = np.zeros(tokens.documents, np.bool_)
        is_first[first] = True
        counts = np.diff(shingles.offsets)
        hashes.append(shingles.hashes.view(np.int64)[np.repeat(is_first, counts)])
    if documents < FEWEST_SAMPLED:
        return ()
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    is_boilerplate = (counts > share * documents) & (counts >= FEWEST_SHARING)
    return tuple(values[is_boilerplate].tolist())


def first_copies(tokens: Tokens) -> Int64Array:
    """Return the numbers of the texts that no earlier text equals, in order."""
    bounds = tokens.normal_offsets.tolist()
    firsts: dict[bytes, int] = {}
    for number in range(tokens.documents):
        firsts.setdefault(tokens.normal[bounds[number] : bounds[number + 1]].tobytes(), number)
    return np.array([*firsts.values()], np.int64)


def words_of_shingles(tokens: Tokens, n: int, values: tuple[int, ...]) -> BoolArray:
    """Say which words are in a shingle of n words with one of these values, sorted: (words,)."""
    return _words_of_shingles(tokens, n, _as_array(values))


@lru_cache(maxsize=16)
def _as_array(values: tuple[int, ...]) -> Int64Array:
    return np.array(values, np.int64)


@kernel
def _words_of_shingles(tokens: Tokens, n: int, values: Int64Array) -> BoolArray:
    is_covered = np.zeros(len(tokens.starts), np.bool_)
    elements = array_elements(tokens.hashes)
    for document in range(len(tokens.word_offsets) - 1):
        first, last = tokens.word_offsets[document], tokens.word_offsets[document + 1]
        if n == 1:
            for k in range(first, last):
                is_covered[k] = _is_listed(values, tokens.hashes[k])
        elif first < last:
            _cover(elements, first, last, n, values, is_covered)
    return is_covered


@inlined_kernel
def _cover(
    elements: HashArray, first: int, last: int, n: int, values: Int64Array, is_covered: BoolArray
) -> None:
    """Mark the words of a document; the values are those of find_shingles(), one for each place."""
    ahead = first + min(n, last - first)
    power, total = np.uint64(1), np.uint64(0)
    for k in range(first, ahead):
        power *= np.uint64(31)
        total = total * np.uint64(31) + elements[k]
    until = first
    for end in range(ahead, last + 1):
        if end > ahead:
            first += 1
            total = total * np.uint64(31) + (elements[end - 1] - power * elements[first - 1])
        if _is_listed(values, np.int64(power + total)):
            for k in range(max(until, first), end):
                is_covered[k] = True
            until = end


@inlined_kernel
def _is_listed(values: Int64Array, value: np.int64) -> bool:
    place = np.searchsorted(values, value)
    return bool(place < len(values) and values[place] == value)
