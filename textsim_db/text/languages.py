"""The language of each text, by the model of the package py3langid; pure.

The extra "languages" installs it. Its own classify() is Python and takes one text; here is the same
computation as a kernel.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError
from textsim_db.text.array_types import Int32Array
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.tokens import Tokens

UNDETERMINED = "und"
"""The code of ISO 639-2 for the language of a text that cannot be told."""
READ_BYTES = 16 * 1024
"""How much of a normal form is read to tell the language."""

_CODE = re.compile("[a-z]{2,3}")


class _Model(NamedTuple):
    """An automaton that finds sequences of bytes, and what each of them weighs for each language.

    moves: the next state by row and byte, rows: the row of each state. features: the number of the
    sequence that a state ends, or -1. weights: float32 of shape (features, classes), logarithms, and
    priors of shape (classes,). labels: by class, the number of its language; some languages have two
    classes.
    """

    moves: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    features: Int32Array
    weights: npt.NDArray[np.float32]
    priors: npt.NDArray[np.float32]
    labels: Int32Array


class _Features(NamedTuple):
    """The features of one text at a time: their counts, 0 between two texts, and their numbers."""

    counts: Int32Array
    numbers: Int32Array


def identify(tokens: Tokens) -> list[str]:
    """Return the language of each text, as its code in ISO 639; UNDETERMINED if none is likelier.

    It is the likeliest of some 140, by the first READ_BYTES of the normal form, however short that
    is: of single sentences one in ten is taken for a neighbour of its language. Naive Bayes over
    sequences of bytes: Lui and Baldwin, "langid.py: an off-the-shelf language identification tool",
    2012. Raises ConfigurationError if py3langid is not installed.
    """
    codes, model = _model()
    return [codes[number] for number in _classify(tokens, model).tolist()]


def check_language(language: str) -> str:
    """Return the code of a language; raise ConfigurationError if it cannot be such a code."""
    if not isinstance(language, str) or not _CODE.fullmatch(language):
        raise ConfigurationError(
            f'language is {language!r}; expected a code of ISO 639, such as "en"'
        )
    return language


def check_installed() -> None:
    """Raise ConfigurationError unless py3langid is installed."""
    try:
        import py3langid.langid  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "identifying languages needs py3langid: pip install 'textsim-db[languages]'"
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
    """Return the language of each text by its number, -1 for a text without any feature."""
    languages = np.empty(len(tokens.normal_offsets) - 1, np.int32)
    size = len(model.weights)
    features = _Features(np.zeros(size, np.int32), np.empty(size, np.int32))
    scores = np.empty(len(model.priors), np.float32)
    for document in range(len(languages)):
        distinct = _count_features(tokens, document, model, features)
        scores[:] = model.priors
        _add_scores(model, features, distinct, scores)
        languages[document] = model.labels[np.argmax(scores)] if distinct else -1
    return languages


@inlined_kernel
def _count_features(tokens: Tokens, document: int, model: _Model, features: _Features) -> int:
    """Count the features of a text, and return how many different ones there are."""
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
    """Add the weights of the features to the scores of all classes, and set the counts back."""
    for k in range(distinct):
        feature = features.numbers[k]
        weight = np.float32(np.log1p(np.float32(features.counts[feature])))
        features.counts[feature] = 0
        for label in range(len(scores)):
            scores[label] += weight * model.weights[feature, label]
