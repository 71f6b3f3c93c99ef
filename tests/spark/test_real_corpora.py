"""Spark's stages find in real corpora what Corpus finds; they run in this process, without Spark."""

from __future__ import annotations

import pytest

import textsim_db as ts
from tests.support.real_corpora import records
from tests.support.spark_stages import find, results
from textsim_db.settings import Linkage
from textsim_db.spark import stage_3_results

MOST = 400
"""The documents that are read of each corpus."""

pytestmark = pytest.mark.more


@pytest.mark.sampled
@pytest.mark.parametrize("recall", [0.95, 1])
@pytest.mark.parametrize("threshold", [0.8, 0.5])
@pytest.mark.parametrize("shingle", ["word:3", "word:1", "char:5"])
@pytest.mark.parametrize(
    "name", ["arxiv", "arxiv_revisions", "articles", "languages", "licences", "scripture"]
)
def test_results_are_those_of_a_corpus(
    db: ts.Database, name: str, shingle: str, threshold: float, recall: float
) -> None:
    texts = {row["id"]: row["text"] for row in records(name, MOST)}
    corpus = db.create_corpus("c", shingle=shingle, threshold=threshold, recall=recall)
    corpus.add_many(texts)
    documents, config = list(texts.items()), corpus.config
    found = find(documents, config, 7)
    assert results(stage_3_results.pairs, documents, found, config) == sorted(corpus.pairs())
    for linkage in Linkage:
        clusters = results(stage_3_results.clusters, documents, found, config, linkage=linkage)
        expected = sorted(corpus.clusters(linkage=linkage))
        assert [(keys, kept) for keys, _, kept in clusters] == [(c.keys, c.kept) for c in expected]
        duplicates = results(stage_3_results.duplicates, documents, found, config, linkage=linkage)
        assert duplicates == sorted(corpus.duplicates(linkage=linkage))
