"""Fingerprints and common shingles equal those of slow references, and golden values."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.support import reference
from textsim_db.settings.choose_bands import window_of
from textsim_db.settings.corpus_settings import CorpusConfig, CorpusSettings
from textsim_db.sketch.exact_prefix import (
    NO_COMMON,
    CommonValues,
    class_of,
    common_values,
    smallest_values,
)
from textsim_db.sketch.fingerprints import (
    LEFT_OUT,
    fingerprints_of,
    fingerprints_of_shingles,
    passage_shingles,
)
from textsim_db.sketch.learned_shingles import LEAST_OF_PASSAGES, learn_common
from textsim_db.sketch.sketch_texts import GOLDEN_TEXT
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import tokenize, tokens_of

GOLDEN = [
    *(-2146757830, -2063575466, -2020580243, -1520447165, -644256226, -41296810),
    *(716691761, 893099795, 917844098),
]


def settings(length: int, unit: str = "word") -> CorpusConfig:
    return CorpusSettings(shingle=f"{unit}:3", passages=length).complete()


def computed(texts: list[str], config: CorpusConfig) -> list[list[int]]:
    """Return the fingerprints of texts, which are the same for all texts at once and text by text."""
    fingerprints = fingerprints_of(tokenize([text.encode() for text in texts]), config)
    of_each = [fingerprints.of(i).tolist() for i in range(len(texts))]
    shingles = (passage_shingles(tokenize([text.encode()]), config) for text in texts)
    assert of_each == [fingerprints_of_shingles(each, config).tolist() for each in shingles]
    return of_each


def values_of(text: str, config: CorpusConfig) -> list[int]:
    assert config.passages is not None
    units = reference.words(text)
    if config.shingle.unit == "char":
        units = list(reference.without_spaces(" ".join(units)))
    hashes = [reference.text_hash(unit) for unit in units]
    n, _ = window_of(config.passages)
    values = [reference.array_hash(hashes[i : i + n], 0) for i in range(len(hashes) - n + 1)]
    return [reference.signed(value, 64) for value in values]


def by_reference(text: str, config: CorpusConfig, classes: dict[int, int]) -> list[int]:
    assert config.passages is not None
    values = values_of(text, config)
    _, width = window_of(config.passages)
    order = [(classes.get(value, 0), value >> 32, -place) for place, value in enumerate(values)]
    chosen = [min(order[i : i + width]) for i in range(len(values) - width + 1)]
    kept = [values[-place] for commonness, _, place in chosen if commonness < LEFT_OUT]
    return sorted({reference.signed(value, 32) for value in kept})


def random_texts(rng: random.Random) -> list[str]:
    texts = [GOLDEN_TEXT, "", "one", "again " * 100]
    for _ in range(30):
        numbers = (rng.randrange(rng.choice((2, 10, 1000))) for _ in range(rng.randrange(90)))
        texts.append(" ".join(f"w{number}" for number in numbers))
    return texts


def listed(classes: dict[int, int]) -> CommonValues:
    values, of_each = zip(*sorted(classes.items()), strict=True)
    return common_values(np.array(values, np.int64), np.array(of_each, np.int16))


def test_a_window_covers_the_units_of_a_passage() -> None:
    for length in range(4, 101):
        n, width = window_of(length)
        assert n + width - 1 == length
        assert min(n, width) >= 2
    assert window_of(13) == (6, 8)


def test_fingerprints_are_the_golden_values() -> None:
    assert computed([GOLDEN_TEXT], settings(13)) == [GOLDEN]


@pytest.mark.parametrize("unit", ["word", "char"])
def test_classes_come_before_values(unit: str, seed: int) -> None:
    rng = random.Random(seed)
    texts, config = random_texts(rng), settings(8, unit)
    values = {value for text in texts for value in values_of(text, config)}
    for share, highest in ((0.5, 4), (1.0, 15)):
        chosen = [value for value in sorted(values) if rng.random() < share]
        classes = {value: rng.randrange(1, highest + 1) for value in chosen}
        learned = replace(config, common_of_passages=listed(classes))
        expected = [by_reference(text, learned, classes) for text in texts]
        assert computed(texts, learned) == expected, (share, highest)


@pytest.mark.parametrize("unit", ["word", "char"])
def test_classes_are_learned_by_documents(unit: str, seed: int) -> None:
    """A repetition in one document does not count, and too few documents make no class."""
    rng = random.Random(seed)
    config = settings(8, unit)
    header = "this whole header is in every single document of the sample"
    few = "эти слова есть только в пятнадцати текстах а не в шестнадцати"
    texts = [
        f"{header} {f'x{i} y{i} z{i} ' * 5} {few if i < LEAST_OF_PASSAGES - 1 else ''} {rng.random()}"
        for i in range(1100)
    ]
    tokens = tokenize([text.encode() for text in texts])
    for stored in (False, True):
        learned = learn_common([tokens], replace(config, common_passages=stored))
        own = passage_shingles(tokenize([header.encode()]), learned)
        assert set(own.classes.tolist()) == {LEFT_OUT - 1 if stored else LEFT_OUT}
        assert computed([header], learned) == ([[]] if not stored else computed([header], config))
        assert not passage_shingles(tokenize([few.encode()]), learned).classes.any()
        common = learned.common_of_passages
        classes = dict(zip(common.values.tolist(), common.classes.tolist(), strict=True))
        expected = [by_reference(text, learned, classes) for text in texts[:20]]
        assert computed(texts[:20], learned) == expected


EXACT = CorpusSettings(shingle="word:1", recall=1).complete()


@pytest.mark.parametrize("documents", [0, 99, 100, 3000])
@pytest.mark.parametrize("share", [1, 1 / 4, 1 / 1000])
def test_common_shingles_are_those_of_several_documents(
    documents: int, share: float, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textsim_db.sketch.learned_shingles.COMMON_SHARE", share)
    texts = [f"all own{i} {rng.choice('ab')} w{rng.randrange(2000)}" for i in range(documents)]
    parts = [tokens_of([t.encode() for t in texts[i : i + 700]]) for i in range(0, documents, 700)]
    hashes = (find_shingles(part, EXACT.shingle).hashes.tolist() for part in parts)
    counts = Counter(reference.signed(value, 64) for each in hashes for value in each)
    least = max(2, documents * share)
    expected = {v: n.bit_length() - 1 for v, n in counts.items() if n >= least}
    listed = learn_common(parts, EXACT).common or NO_COMMON
    classes = dict(zip(listed.values.tolist(), listed.classes.tolist(), strict=True))
    assert classes == (expected if documents >= 100 else {})
    assert listed.values.tolist() == sorted(classes)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 100, 1000])
@pytest.mark.parametrize("bits", [6, 20, 63])
def test_listed_values_are_found_and_no_others(count: int, bits: int, rng: random.Random) -> None:
    """With few bits, all values have the same leading bits."""
    chosen = {rng.getrandbits(bits) - 2 ** (bits - 1) for _ in range(count)}
    values = sorted(chosen | ({-(2**63), 2**63 - 1} if count > 2 else set()))
    classes = {value: rng.randrange(1, 20) for value in values}
    listed = common_values(np.array(values, np.int64), np.array(list(classes.values()), np.int16))
    asked = [*values, *(max(-(2**63), v - 1) for v in values), *range(-3, 3), -(2**63), 2**63 - 1]
    for value in asked:
        assert class_of(np.int64(value), listed) == classes.get(value, 0)


def test_values_with_equal_leading_bits_are_sorted(rng: random.Random) -> None:
    """Somebody who chooses words by their hashes can make them equal in their leading bits."""
    for size in (10, 1000, 20_000):
        values = [rng.getrandbits(30) - 2**63 for _ in range(size)]
        rows = smallest_values(np.array(values, np.int64).view(np.uint64), np.array([0, size]), 0.8)
        assert rows.values.tolist() == reference.exact_signature(values, 0.8)
