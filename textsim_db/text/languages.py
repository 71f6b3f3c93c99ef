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
from textsim_db.text.compiler import kernel
from textsim_db.text.tokens import Tokens

UNDETERMINED = "und"
"""The code of ISO 639-2 for the language of a text that nothing can be said of."""
READ_BYTES = 16 * 1024
"""So much of a normal form tells the language; the rest of a long one is not read."""

_CODE = re.compile("[a-z]{2,3}")


class _Model(NamedTuple):
    """An automaton that finds sequences of bytes, and what each of them weighs for each language.

    moves: the next state by row and byte, rows: the row of each state. features: the number of the
    sequence that a state ends, or -1. weights: float32 of shape (features, classes), logarithms, and
    priors of shape (classes,). first: the class that a class counts for; some languages have two.
    """

    labels: list[str]
    moves: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    features: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    priors: npt.NDArray[np.float32]
    first: npt.NDArray[np.int32]


def identify(tokens: Tokens) -> list[str]:
    """Return the language of each text, as its code in ISO 639; UNDETERMINED where none is likelier.

    It is the likeliest of some 140, by the first READ_BYTES of the normal form, however short that
    is: of single sentences one in ten is taken for a neighbour of its language. Naive Bayes over
    sequences of bytes: Lui and Baldwin, "langid.py: an off-the-shelf language identification tool",
    2012. Raises ConfigurationError where py3langid is not installed.
    """
    model = _model()
    starts, ends = tokens.normal_offsets[:-1], tokens.normal_offsets[1:]
    read = np.minimum(ends, starts + READ_BYTES)
    found = _classify(tokens.normal, starts, read, *model[1:])
    return [model.labels[number] if number >= 0 else UNDETERMINED for number in found.tolist()]


def check_language(language: str) -> str:
    """Return the code of a language; raise ConfigurationError for what cannot be one."""
    if not isinstance(language, str) or not _CODE.fullmatch(language):
        raise ConfigurationError(
            f'language is {language!r}; expected a code of ISO 639, such as "en"'
        )
    return language


def check_installed() -> None:
    """Raise ConfigurationError where py3langid is not installed."""
    try:
        import py3langid.langid  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "identifying languages needs py3langid: pip install 'textsim-db[languages]'"
        ) from error


@lru_cache(maxsize=1)
def _model() -> _Model:
    check_installed()
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    made = LanguageIdentifier.from_model_file(MODEL_FILE)
    labels = list(made.nb_classes)
    return _Model(
        labels,
        np.array(made.tk_nextmove, np.uint32),
        np.array(made.tk_row, np.uint32),
        np.array(made.tk_output, np.int32),
        np.ascontiguousarray(made.nb_ptc, np.float32),
        np.array(made.nb_pc, np.float32),
        np.array([labels.index(label) for label in labels], np.int32),
    )


@kernel
def _classify(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    moves: npt.NDArray[np.uint32],
    rows: npt.NDArray[np.uint32],
    features: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    priors: npt.NDArray[np.float32],
    first: npt.NDArray[np.int32],
) -> npt.NDArray[np.int32]:
    """Return the class of each text, -1 for one without any feature."""
    found = np.full(len(starts), -1, np.int32)
    counts = np.zeros(len(weights), np.int32)
    met = np.empty(len(weights), np.int32)
    scores = np.empty(len(priors), np.float32)
    for document in range(len(starts)):
        distinct = 0
        state = np.int64(0)
        for i in range(starts[document], ends[document]):
            state = np.int64(moves[(np.int64(rows[state]) << 8) + data[i]])
            feature = features[state]
            if feature >= 0:
                if counts[feature] == 0:
                    met[distinct] = feature
                    distinct += 1
                counts[feature] += 1
        if distinct == 0:
            continue
        scores[:] = priors
        for k in range(distinct):
            feature = met[k]
            weight = np.float32(np.log1p(np.float32(counts[feature])))
            counts[feature] = 0
            for c in range(len(scores)):
                scores[c] += weight * weights[feature, c]
        best = 0
        for c in range(1, len(scores)):
            if scores[c] > scores[best]:
                best = c
        found[document] = first[best]
    return found
