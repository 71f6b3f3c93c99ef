"""The language of each text, by the model of the package py3langid.

The extra "languages" installs the package. Its classify() is Python and takes one text; this module
does the same computation in a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import (
    ByteArray,
    FloatArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.errors import ConfigurationError, needs_extra
from textsim_db.settings.check_values import items_in_order
from textsim_db.text.nfkc import SPACE
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import tokenize
from textsim_db.text.utf8 import Tokens, concatenate

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


class Language(NamedTuple):
    """A language of a text."""

    code: str
    """Its code of ISO 639."""
    confidence: float
    """The probability that a part of the text, chosen at random, is in this language: from 0 to 1."""


_SECTION_BYTES = 50
"""Bytes of the sections of a text: half a sentence. Smaller ones find shorter passages, and err more.

Of texts of a sentence each in two languages 91 % had exactly these two, and 73 % with 100 bytes."""
_MOST_SECTIONS = 1000
_SHARPNESS = 0.2
"""The model takes features for independent, and is far too sure. Its logarithms are multiplied by this.

So of 7,100 single sentences in 71 languages 95 % were right, and the mean confidence was 0.97."""
_INFERENCES = 8
_LEAST_CONFIDENCE = 0.1
"""Languages below it are left out."""
_LEAST_FIRST = 0.2
"""If the most probable language is below it, the text is too short to say."""
_IDENTIFIED_AT_ONCE = 1000
_NO_LANGUAGE = "zxx"
"""The model's code for what is no language, such as markup."""


def identify_languages(texts: Iterable[str]) -> list[list[Language]]:
    """Return the languages of each text, the most probable first; none if it is too short to say.

    A text of several languages has several, if each has a tenth of the text or more. Of two similar
    languages both may be listed. A corpus stores the most probable language of the whole text.

    Sections of half a sentence are compared with the model. The other sections of a text say which
    languages are probable in a section, so the result is a mixture: Lui, Lau and Baldwin, "Automatic
    detection and language identification of multilingual documents", 2014, here with the variational
    inference of Asuncion, Welling, Smyth and Teh, "On smoothing and inference for topic models", 2009.

    Args:
        texts: texts of any length; 20 words or more give a reliable answer.

    Raises:
        ConfigurationError: the extra "languages" is not installed.
        DocumentError: a text cannot be stored, for example because it has NUL.

    Examples:
        >>> texts = ["Guten Abend, meine Damen", "ok"]
        >>> [[language.code for language in found] for found in identify_languages(texts)]
        [['de'], []]
    """
    codes, model = _model()
    expected = "identify_languages() takes several texts in an order, such as [text]"
    remaining = iter(items_in_order(texts, expected))
    found: list[list[Language]] = []
    while batch := [*map(to_bytes, islice(remaining, _IDENTIFIED_AT_ONCE))]:
        tokens = _with_own_yeh(tokenize(batch))
        for row in _confidences(tokens, model, len(codes)):
            places = np.flatnonzero(row >= _LEAST_CONFIDENCE)
            languages = [Language(codes[n], float(row[n])) for n in places.tolist()]
            languages.sort(key=lambda language: -language.confidence)
            is_clear = bool(languages) and languages[0].confidence >= _LEAST_FIRST
            found.append([x for x in languages if x.code != _NO_LANGUAGE] if is_clear else [])
    return found


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
    with needs_extra("languages", "identifying languages needs py3langid"):
        import py3langid.langid  # noqa: F401


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
    features = _no_features(model)
    scores = np.empty(len(model.priors), np.float32)
    for document in range(len(languages)):
        start, end = tokens.normal_offsets[document], tokens.normal_offsets[document + 1]
        distinct = _score(tokens.normal[start:end], model, features, scores)
        languages[document] = model.labels[np.argmax(scores)] if distinct else -1
    return languages


@kernel
def _confidences(tokens: Tokens, model: _Model, languages: int) -> FloatArray:
    """Return the share of each language in each text: (documents, languages)."""
    documents = len(tokens.normal_offsets) - 1
    confidences = np.zeros((documents, languages), np.float64)
    features = _no_features(model)
    scores = np.empty(len(model.priors), np.float32)
    for document in range(documents):
        start, end = tokens.normal_offsets[document], tokens.normal_offsets[document + 1]
        text = tokens.normal[start:end]
        ends = _ends_of_sections(text)
        likelihoods = np.zeros((len(ends), languages), np.float64)
        begin = np.int64(0)
        for section in range(len(ends)):
            distinct = _score(text[begin : ends[section]], model, features, scores)
            _add_likelihoods(model, scores, distinct, likelihoods[section])
            begin = ends[section]
        shares = _shares_of_sections(likelihoods)
        begin = np.int64(0)
        for section in range(len(ends)):
            weight = (ends[section] - begin) / max(len(text), 1)
            for language in range(languages):
                confidences[document, language] += weight * shares[section, language]
            begin = ends[section]
    return confidences


@kernel
def _ends_of_sections(text: ByteArray) -> Int64Array:
    """Return where the sections of a normal form end: at spaces, and at its end."""
    sections = min(max((len(text) + _SECTION_BYTES // 2) // _SECTION_BYTES, 1), _MOST_SECTIONS)
    ends = np.empty(sections, np.int64)
    count = 0
    for section in range(1, sections):
        end = len(text) * section // sections
        while end < len(text) and text[end] != SPACE:
            end += 1
        if end < len(text) and (count == 0 or end > ends[count - 1]):
            ends[count] = end
            count += 1
    ends[count] = len(text)
    return ends[: count + 1]


@inlined_kernel
def _add_likelihoods(
    model: _Model, scores: npt.NDArray[np.float32], distinct: int, likelihoods: FloatArray
) -> None:
    """Add the likelihood of a section in each language; a section without features is likely in all."""
    most = scores[0]
    for score in scores:
        most = max(most, score)
    for label in range(len(scores)):
        likelihood = np.exp(_SHARPNESS * np.float64(scores[label] - most)) if distinct else 1.0
        likelihoods[model.labels[label]] += likelihood


@kernel
def _shares_of_sections(likelihoods: FloatArray) -> FloatArray:
    """Return the probability of each language in each section: (sections, languages).

    The other sections of a text say how probable a language is before the section is read.
    """
    sections, languages = likelihoods.shape
    shares = np.empty((sections, languages), np.float64)
    totals = np.zeros(languages, np.float64)
    for section in range(sections):
        whole = likelihoods[section].sum()
        for language in range(languages):
            shares[section, language] = likelihoods[section, language] / whole
            totals[language] += shares[section, language]
    for _ in range(_INFERENCES if sections > 1 else 0):
        for section in range(sections):
            whole = 0.0
            for language in range(languages):
                others = max(totals[language] - shares[section, language], 0.0) + 1 / languages
                totals[language] -= shares[section, language]
                shares[section, language] = others * likelihoods[section, language]
                whole += shares[section, language]
            for language in range(languages):
                shares[section, language] /= whole
                totals[language] += shares[section, language]
    return shares


@kernel
def _no_features(model: _Model) -> _Features:
    size = len(model.weights)
    return _Features(np.zeros(size, np.int32), np.empty(size, np.int32))


@inlined_kernel
def _score(
    text: ByteArray, model: _Model, features: _Features, scores: npt.NDArray[np.float32]
) -> int:
    """Compute the score of each class for a normal form, and return the number of its features."""
    distinct = _count_features(text, model, features)
    for label in range(len(scores)):
        scores[label] = model.priors[label]
    _add_scores(model, features, distinct, scores)
    return distinct


@inlined_kernel
def _count_features(text: ByteArray, model: _Model, features: _Features) -> int:
    distinct = 0
    state = np.int64(0)
    for i in range(min(len(text), READ_BYTES)):
        state = np.int64(model.moves[(np.int64(model.rows[state]) << 8) + text[i]])
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
