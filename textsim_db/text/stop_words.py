"""Stop words: frequent words, such as "the", that a corpus leaves out of its texts.

Lists for some fifty languages come from the package stopwordsiso; the extra "languages" installs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    Int64Array,
    kernel,
)
from textsim_db.errors import ConfigurationError, needs_extra, suggestion
from textsim_db.settings.check_values import several_items
from textsim_db.settings.corpus_settings import AUTO, CorpusConfig, CorpusSettings, WordsByLanguage
from textsim_db.settings.named_values import GuardRules, check_guards, listed
from textsim_db.text.guard_lines import is_counted
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import tokenize
from textsim_db.text.utf8 import Tokens, WordTable, number_of_span, word_table


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
        guard_fillers=stop_words(listed(settings.guard_fillers)),
    )
    if isinstance(settings.stop_words, str) and settings.stop_words == AUTO:
        lists = tuple(
            (code, _not_counted(words, settings)) for code, words in stop_words_by_language()
        )
        return replace(settings, stop_words=(), language=AUTO, stop_words_by_language=lists)
    return replace(settings, stop_words=_not_counted(stop_words(settings.stop_words), settings))


def _not_counted(words: tuple[str, ...], settings: CorpusSettings) -> tuple[str, ...]:
    rules = GuardRules(*map(tuple, (settings.guards, settings.guard_words, settings.guard_fillers)))
    return tuple(word for word in words if not is_counted(word, rules))


def with_guard_words(config: CorpusConfig) -> CorpusConfig:
    """Return a changed configuration with its guard words and fillers in normal form."""
    words, fillers = stop_words(config.guard_words), stop_words(config.guard_fillers)
    config = replace(config, guard_words=words, guard_fillers=fillers)
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
    expected = "stop_words takes the code of a language, or several words such as [word]"
    texts = []
    for word in several_items(words, expected):
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
    with needs_extra("languages", "lists of stop words are not installed"):
        import stopwordsiso
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
