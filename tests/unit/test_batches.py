"""Batches of documents: a refused document does not affect the other documents of its batch."""

from __future__ import annotations

import pytest

from textsim_db.settings import CorpusSettings
from textsim_db.text import utf8
from textsim_db.write.prepare_batches import prepare


def test_a_text_that_nfkc_makes_too_long_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test lowers the limit: with the real limit of 1 GiB it takes a minute."""
    monkeypatch.setattr(utf8, "MAX_BATCH_BYTES", 5_000)
    items = [("a", "a text that is fine"), ("b", "\ufdfa" * 600), ("c", "another text")]
    batch = prepare(items, CorpusSettings().complete())
    assert batch.keys == ["a", "c"]
    assert [(key, "at most 5000 are possible" in reason) for key, reason in batch.refused] == [
        ("b", True)
    ]
