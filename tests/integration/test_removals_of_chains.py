"""dedupe removes a document only if it was verified against the kept document, also in chains."""

from __future__ import annotations

import logging
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import textsim_db as ts
from textsim_db.cluster.keep_rule import Preference
from textsim_db.dedupe import by_temporary_corpus
from textsim_db.dedupe.by_temporary_corpus import Document, Rule, deduplicate
from textsim_db.measures import jaccard, shingles
from textsim_db.settings import CorpusSettings

THRESHOLD = 0.6


@st.composite
def chains(draw: st.DrawFn) -> list[str]:
    """Return texts of which each is a window over a row of words, a few words after the last one."""
    texts = []
    for chain in range(draw(st.integers(1, 3))):
        place = 0
        for _ in range(draw(st.integers(2, 8))):
            texts.append(" ".join(f"c{chain}w{k}" for k in range(place, place + 12)))
            place += draw(st.integers(0, 4))
    return draw(st.permutations(texts))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=chains(),
    linkage=st.sampled_from(["kept", "complete"]),
    keep=st.sampled_from(["first", "last", "longest"]),
    recall=st.sampled_from([0.95, 1]),
)
def test_each_removed_document_matches_the_kept_one(
    shared_db: ts.Database, texts: list[str], linkage: str, keep: str, recall: float
) -> None:
    corpus_settings = CorpusSettings(shingle="word:2", threshold=THRESHOLD, recall=recall)
    rule = Rule(Preference.parse(keep), corpus_settings, linkage)
    result = deduplicate(shared_db, [Document(text) for text in texts], rule)
    removed = {removal.number for removal in result.removals}
    for removal in result.removals:
        similarity = jaccard(
            shingles(texts[removal.number], "word:2"), shingles(texts[removal.kept], "word:2")
        )
        assert similarity >= THRESHOLD
        assert removal.similarity == similarity
        assert removal.kept not in removed


def test_a_large_cluster_is_reported_with_what_holds_it_together(
    db: ts.Database,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(by_temporary_corpus, "LARGE", 60)
    notice = [f"notice{i}" for i in range(60)]
    texts = [
        " ".join([*notice, *(f"w{rng.randrange(10**6)}" for _ in range(40))]) for _ in range(80)
    ]
    rule = Rule(Preference.parse("first"), CorpusSettings(threshold=0.4, recall=1))
    with caplog.at_level(logging.WARNING):
        result = deduplicate(db, [Document(text) for text in texts], rule)
    assert len(result.removals) == 79
    (message,) = caplog.messages
    assert message.startswith("79 documents are removed for the document in place 1; the least sim")
    assert 'a template holds them together, such as "notice0 notice1 notice2"' in message
    caplog.clear()
    monkeypatch.setattr(by_temporary_corpus, "LARGE", 81)
    deduplicate(db, [Document(text) for text in texts], rule)
    assert caplog.messages == []
