"""Batches of documents: a refused document does not affect the other documents of its batch."""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.text import utf8
from textsim_db.write import prepare_batches
from textsim_db.write.prepare_batches import Batch, prepare, slice_of


def test_a_text_that_nfkc_makes_too_long_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test lowers the limit: with the real limit of 1 GiB it takes a minute."""
    monkeypatch.setattr(utf8, "MAX_BATCH_BYTES", 5_000)
    items = [("a", "a text that is fine"), ("b", "\ufdfa" * 600), ("c", "another text")]
    batch = prepare(items, CorpusSettings().complete())
    assert batch.keys == ["a", "c"]
    (refused,) = batch.refused
    assert (refused.key, "at most 5000 are possible" in refused.reason) == ("b", True)


ODD_ITEMS: list[object] = [
    ("naïve", "café ＡＢＣ ﬁne e\u0301"),
    ("", ""),
    ("k" * 1001, "a key that is too long"),
    ("é" * 501, "a key of too many bytes"),
    ("k\0", "a key with NUL"),
    ("nul", "a text\0with NUL"),
    ("surrogate", "a text with \ud800"),
    ("\ud800", "a key with a surrogate"),
    (7, "a number as key"),
    ("none", None),
    ("scope", "a document with a scope", "tenant"),
    ["a list", "of key and text"],
    "ab",
]


@pytest.mark.parametrize("is_unique", [False, True])
def test_documents_checked_together_are_prepared_as_one_by_one(
    seed: int, is_unique: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    words = ["one", "two,", "DREI", "čtyři", "五", "ＳＩＸ", "se\u0301pt", "", "\ufdfa"]
    config = CorpusSettings(is_unique=is_unique).complete()

    def made(choices: list[str]) -> tuple[str, str]:
        return f"{rng.random()}", " ".join(rng.choices(choices, k=rng.randrange(30)))

    ascii_, mixed = ([made(choices) for _ in range(40)] for choices in (words[:3], words))
    batches: list[list[Any]] = [ascii_, mixed, []]
    batches += [[*ascii_[:5], odd, *mixed[:5]] for odd in ODD_ITEMS]
    batches.append([*ascii_, ("repeated", "first"), *mixed, ("repeated", "last")])
    together = [prepare(items, config) for items in batches]
    monkeypatch.setattr(prepare_batches, "_plain_texts", lambda items, config: None)
    for items, batch in zip(batches, together, strict=True):
        one_by_one = prepare(items, config)
        for name in ("keys", "refused", "repeated_keys"):
            assert getattr(batch, name) == getattr(one_by_one, name), items
        pairs = zip(_arrays(batch), _arrays(one_by_one), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs), items


def _arrays(batch: Batch) -> list[npt.NDArray[Any]]:
    sketches = batch.sketches
    parts: tuple[Any, ...] = (batch.texts, sketches.tokens, sketches.signatures, sketches.buckets)
    return [sketches.shingle_counts, *chain.from_iterable(parts)]


def test_a_part_of_a_batch_has_its_texts() -> None:
    batch = prepare([("a", "one"), ("b", "zwölf"), ("c", "three")], CorpusSettings().complete())
    some = slice_of(batch, slice(1, 3))
    assert [some.texts.of(i) for i in range(2)] == ["zwölf".encode(), b"three"]
