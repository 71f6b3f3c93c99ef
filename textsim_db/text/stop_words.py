"""Words that say nothing of what a text is about, left out of texts by those who want it; pure.

Lists for some fifty languages come from stopwords-iso, by the package stopwordsiso, which the extra
"languages" installs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.settings import AUTO, CorpusSettings, WordsByLanguage, check_several
from textsim_db.text.hashing import PADDING, hash_spans
from textsim_db.text.text_kernels import find_words, leave_out
from textsim_db.text.tokens import Tokens, to_bytes, tokenize


def with_lists(settings: CorpusSettings) -> CorpusSettings:
    """Return the settings with lists of stop words instead of the code of a language or AUTO.

    With AUTO the language of each document is identified, and its stop words are left out. Raises
    ConfigurationError and DocumentError as stop_words() does.
    """
    if isinstance(settings.stop_words, str) and settings.stop_words == AUTO:
        lists = stop_words_by_language()
        return replace(settings, stop_words=(), language=AUTO, stop_words_by_language=lists)
    return replace(settings, stop_words=stop_words(settings.stop_words))


class _Table(NamedTuple):
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.int64]


def stop_words(words: str | Iterable[str]) -> tuple[str, ...]:
    """Return stop words in normal form, each once, in order of their code points.

    words: the code of a language (ISO 639-1), or words; "don't" is "don" and "t". Raises
    ConfigurationError for an unknown language, and where no lists are installed; DocumentError for
    words with NUL or lone surrogates.
    """
    if isinstance(words, str):
        words = _of_language(words)
    check_several(words, "stop_words is the code of a language or several words")
    texts = []
    for word in words:
        if not isinstance(word, str):
            raise ConfigurationError(f"a stop word is {word!r:.100}; expected a str")
        texts.append(to_bytes(word))
    tokens = tokenize(texts)
    return tuple(sorted(set(tokens.words(np.arange(len(tokens.starts))))))


def stop_words_by_language() -> WordsByLanguage:
    """Return all the lists there are, in order of the codes of their languages.

    Raises ConfigurationError where none are installed.
    """
    return tuple((language, stop_words(language)) for language in _languages())


def without(tokens: Tokens, words: tuple[str, ...]) -> Tokens:
    """Return the texts without stop words, which stop_words() returned."""
    return _left_out(tokens, _among(tokens, slice(None), words))


def without_by_language(tokens: Tokens, languages: Sequence[str], words: WordsByLanguage) -> Tokens:
    """Return the texts, each without the stop words of its language, if there are any."""
    numbers: dict[str, int] = {}
    of_text = np.array([numbers.setdefault(code, len(numbers)) for code in languages], np.int64)
    of_word = np.repeat(of_text, np.diff(tokens.word_offsets))
    found = np.zeros(len(tokens.starts), np.bool_)
    for language, some in words:
        if language in numbers:
            chosen = np.flatnonzero(of_word == numbers[language])
            found[chosen] = _among(tokens, chosen, some)
    return _left_out(tokens, found)


def _among(
    tokens: Tokens, chosen: slice | npt.NDArray[np.int64], words: tuple[str, ...]
) -> npt.NDArray[np.bool_]:
    """Say which of the chosen words of the texts are among some."""
    table = _table(words)
    starts, ends = tokens.starts[chosen], tokens.ends[chosen]
    hashes = hash_spans(tokens.normal, starts, ends)
    return find_words(tokens.normal, starts, ends, hashes, table.data, table.offsets, table.hashes)


def _left_out(tokens: Tokens, found: npt.NDArray[np.bool_]) -> Tokens:
    return Tokens(*leave_out(tokens.normal, tokens.starts, tokens.ends, tokens.word_offsets, found))


def _languages() -> list[str]:
    try:
        import stopwordsiso
    except ImportError as error:
        raise ConfigurationError(
            "lists of stop words are not installed: pip install 'textsim-db[languages]'"
        ) from error
    return sorted(stopwordsiso.langs())


def _of_language(language: str) -> Iterable[str]:
    known = _languages()
    if language not in known:
        raise ConfigurationError(
            f'there are no stop words for "{language}"{suggestion(language, known)}; known are '
            + ", ".join(known)
        )
    import stopwordsiso

    found: Iterable[str] = stopwordsiso.stopwords(language)
    return found


@lru_cache(maxsize=128)
def _table(words: tuple[str, ...]) -> _Table:
    encoded = [word.encode() for word in words]
    ends = np.cumsum([len(word) for word in encoded], dtype=np.int32)
    data = np.frombuffer(b"".join(encoded) + bytes(PADDING), np.uint8)
    starts = ends - np.array([len(word) for word in encoded], np.int32)
    hashes = hash_spans(data, starts, ends)
    order = np.argsort(hashes)
    ordered = [encoded[i] for i in order]
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in ordered], out=offsets[1:])
    return _Table(np.frombuffer(b"".join(ordered), np.uint8), offsets, hashes[order])
