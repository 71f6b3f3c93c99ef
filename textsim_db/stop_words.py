"""Words that say nothing of what a text is about, left out of texts by those who want it; pure.

Lists for some fifty languages come from stopwords-iso, by the package stopwordsiso, which the extra
"languages" installs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.hashing import PADDING, hash_spans
from textsim_db.text import Tokens, normal_form
from textsim_db.text_kernels import find_words, leave_out


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
    found: set[str] = set()
    for word in words:
        if not isinstance(word, str):
            raise ConfigurationError(f"a stop word is {word!r:.100}; expected a str")
        found.update(normal_form(word).split())
    return tuple(sorted(found))


def without(tokens: Tokens, words: tuple[str, ...]) -> Tokens:
    """Return the texts without stop words, which stop_words() returned."""
    table = _table(words)
    hashes = hash_spans(tokens.normal, tokens.starts, tokens.ends)
    left_out = find_words(
        tokens.normal, tokens.starts, tokens.ends, hashes, table.data, table.offsets, table.hashes
    )
    return Tokens(
        *leave_out(tokens.normal, tokens.starts, tokens.ends, tokens.word_offsets, left_out)
    )


def _of_language(language: str) -> Iterable[str]:
    try:
        import stopwordsiso
    except ImportError as error:
        raise ConfigurationError(
            "lists of stop words are not installed: pip install 'textsim-db[languages]'"
        ) from error
    known = sorted(stopwordsiso.langs())
    if language not in known:
        raise ConfigurationError(
            f'there are no stop words for "{language}"{suggestion(language, known)}; known are '
            + ", ".join(known)
        )
    found: Iterable[str] = stopwordsiso.stopwords(language)
    return found


@lru_cache(maxsize=16)
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
