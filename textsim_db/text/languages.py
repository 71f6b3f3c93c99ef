"""The language of each text, by the model of the package py3langid.

The extra "languages" installs the package. Its classify() is Python and takes one text; this module
does the same computation in a kernel.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, install_extra
from textsim_db.text.numba_compiler import Int32Array, inlined_kernel, kernel
from textsim_db.text.tokens import Tokens
from textsim_db.text.utf8 import concatenate

UNDETERMINED = "und"
"""The code of ISO 639-2 for a text whose language cannot be identified."""
READ_BYTES = 16 * 1024
"""Bytes of a normal form that are read to identify the language. More take longer."""

_CODE = re.compile("[a-z]{2,3}")


class _Model(NamedTuple):
    """An automaton that finds sequences of bytes (features), and the weights of each feature."""

    moves: npt.NDArray[np.uint32]
    """The next state, by row and byte."""
    rows: npt.NDArray[np.uint32]
    """The row of each state."""
    features: Int32Array
    """The number of the feature that ends in each state, or -1."""
    weights: npt.NDArray[np.float32]
    """Logarithms: (features, classes)."""
    priors: npt.NDArray[np.float32]
    """(classes,)."""
    labels: Int32Array
    """The number of the language of each class. Some languages have two classes."""


class _Features(NamedTuple):
    """The features of one text at a time."""

    counts: Int32Array
    """How often each feature occurs; all are 0 when the next text starts."""
    numbers: Int32Array
    """The numbers of the features that occur."""


def identify(tokens: Tokens) -> list[str]:
    """Return the language of each text as a code of ISO 639, or UNDETERMINED without any feature.

    This is the most probable of some 140 languages, given the first READ_BYTES of the normal form.
    Short texts are often wrong: one sentence in ten gets the code of a similar language. The method is
    naive Bayes over sequences of bytes: Lui and Baldwin, "langid.py: an off-the-shelf language
    identification tool", 2012. Raises ConfigurationError if py3langid is not installed.
    """
    codes, model = _model()
    return [codes[number] for number in _classify(_with_own_yeh(tokens), model).tolist()]


_NOT_OF_ARABIC = re.compile("[پچژگٹڈڑںےہھ]")
"""Letters of Persian and Urdu. A text with one of them had their yeh and kaf before its normal form."""
_YEH_AND_KAF = str.maketrans("يك", "یک")


def _with_own_yeh(tokens: Tokens) -> Tokens:
    """Return texts of Persian and Urdu with their own yeh and kaf, which have as many bytes."""
    starts_arabic = (tokens.normal >= 0xD8) & (tokens.normal <= 0xDB)  # the first byte of a letter
    if not starts_arabic.any():
        return tokens
    forms = tokens.forms()
    forms = [
        form.translate(_YEH_AND_KAF) if _NOT_OF_ARABIC.search(form) else form for form in forms
    ]
    normal = concatenate([form.encode() for form in forms]).data
    offsets = tokens.normal_offsets - tokens.normal_offsets[0]
    return tokens._replace(normal=normal, normal_offsets=offsets)


def check_language(language: str) -> str:
    """Return the code of a language; raise ConfigurationError unless it has the form of a code."""
    if not isinstance(language, str) or not _CODE.fullmatch(language):
        raise ConfigurationError(
            f'language is {language!r}; expected a code of ISO 639, such as "en"'
        )
    return language


def check_installed() -> None:
    try:
        import py3langid.langid  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"identifying languages needs py3langid: {install_extra('languages')}"
        ) from error


@lru_cache(maxsize=1)
def _model() -> tuple[list[str], _Model]:
    """Return the codes of the languages, with UNDETERMINED last, and the model."""
    check_installed()
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    codes = list(identifier.nb_classes)
    model = _Model(
        np.array(identifier.tk_nextmove, np.uint32),
        np.array(identifier.tk_row, np.uint32),
        np.array(identifier.tk_output, np.int32),
        np.ascontiguousarray(identifier.nb_ptc, np.float32),
        np.array(identifier.nb_pc, np.float32),
        np.array([codes.index(code) for code in codes], np.int32),
    )
    return [*codes, UNDETERMINED], model


@kernel
def _classify(tokens: Tokens, model: _Model) -> Int32Array:
    """Return the number of each text's language, or -1 for a text without any feature."""
    languages = np.empty(len(tokens.normal_offsets) - 1, np.int32)
    size = len(model.weights)
    features = _Features(np.zeros(size, np.int32), np.empty(size, np.int32))
    scores = np.empty(len(model.priors), np.float32)
    for document in range(len(languages)):
        distinct = _count_features(tokens, document, model, features)
        for language in range(len(scores)):
            scores[language] = model.priors[language]
        _add_scores(model, features, distinct, scores)
        languages[document] = model.labels[np.argmax(scores)] if distinct else -1
    return languages


@inlined_kernel
def _count_features(tokens: Tokens, document: int, model: _Model, features: _Features) -> int:
    start, end = tokens.normal_offsets[document], tokens.normal_offsets[document + 1]
    distinct = 0
    state = np.int64(0)
    for i in range(start, min(end, start + READ_BYTES)):
        state = np.int64(model.moves[(np.int64(model.rows[state]) << 8) + tokens.normal[i]])
        feature = model.features[state]
        if feature < 0:
            continue
        if features.counts[feature] == 0:
            features.numbers[distinct] = feature
            distinct += 1
        features.counts[feature] += 1
    return distinct


@inlined_kernel
def _add_scores(
    model: _Model, features: _Features, distinct: int, scores: npt.NDArray[np.float32]
) -> None:
    """Add the weights of the features to the scores of all classes, and reset the counts to 0."""
    for k in range(distinct):
        feature = features.numbers[k]
        weight = np.float32(np.log1p(np.float32(features.counts[feature])))
        features.counts[feature] = 0
        for label in range(len(scores)):
            scores[label] += weight * model.weights[feature, label]
