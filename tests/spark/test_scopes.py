"""Scopes in Spark: documents of different scopes never meet, and results are those of a corpus."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import textsim_db as ts
from tests.support.rebuilds import stored_rows
from tests.support.scopes import THRESHOLD, Document, random_documents, true_pairs
from tests.support.spark import rows
from tests.support.spark_stages import find, results
from textsim_db.cluster import split_large_buckets
from textsim_db.compare import packed_pairs
from textsim_db.results import AddReport
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import Linkage
from textsim_db.spark import find_candidates, read, stage_2_edges, stage_3_results, write

pytestmark = pytest.mark.more

EXACT: dict[str, Any] = {"shingle": "word:2", "threshold": THRESHOLD, "recall": 1}
SETTINGS = [EXACT, EXACT | {"recall": 0.999}]
IDS = ["exact", "bands"]


def scoped_frame(spark: SparkSession, documents: Sequence[Document]) -> DataFrame:
    return spark.createDataFrame(documents, "id string, text string, scope string").repartition(3)


@pytest.mark.parametrize("recall", [0.999, 1])
def test_large_buckets_and_copies_stay_in_their_scope(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, recall: float
) -> None:
    monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", rng.choice((2, 5)))
    monkeypatch.setattr(split_large_buckets, "MOST_MET", 0)
    monkeypatch.setattr(stage_2_edges, "LARGEST_COUNTED", rng.choice((2, 64)))
    monkeypatch.setattr(stage_2_edges, "PARTITION_DOCUMENTS", rng.choice((20, 1000)))
    monkeypatch.setattr(packed_pairs, "PAIRS_AT_ONCE", rng.choice((3, 10_000)))
    config = CorpusSettings("word:2", THRESHOLD, recall, scoped=True).complete()
    documents = random_documents(rng.randrange(2**32), 400)
    candidates = find(documents, config, rng.choice((1, 7)))
    pairs = results(stage_3_results.pairs, documents, candidates, config)
    expected = sorted((*pair, similarity) for pair, similarity in true_pairs(documents).items())
    if recall == 1:
        assert pairs == expected
    else:
        assert set(expected).issuperset(pairs)
        assert len(pairs) > 0.95 * len(expected)
    of_stage, single = stage_3_results.clusters, Linkage.SINGLE
    clusters = results(of_stage, documents, candidates, config, linkage=single)
    in_clusters = {key for keys, _, _ in clusters for key in keys}
    assert in_clusters == {key for a, b, _ in pairs for key in (a, b)}
    scope_of = {document.key: document.scope for document in documents}
    assert all(len({scope_of[key] for key in keys}) == 1 for keys, _, _ in clusters)


@pytest.mark.parametrize("recall", [0.95, 1])
def test_a_text_that_many_scopes_have_connects_no_documents(recall: float) -> None:
    config = CorpusSettings("word:2", THRESHOLD, recall, scoped=True).complete()
    documents = [Document(str(i), "one two three four", f"scope {i}") for i in range(100)]
    assert len(find(documents, config, 3).numbers) == 0
    documents.append(documents[7]._replace(key="twin"))
    assert len(find(documents, config, 3).numbers) == 2


@pytest.mark.sampled
@pytest.mark.parametrize("settings", SETTINGS, ids=IDS)
@pytest.mark.parametrize("stored", [0, 150])
def test_a_written_corpus_equals_an_added_one_and_can_be_read_again(
    spark: SparkSession, db: ts.Database, seed: int, settings: dict[str, Any], stored: int
) -> None:
    documents = random_documents(seed, 300)
    settings = settings | {"scoped": True}
    for name in ("c", "added") if stored else ("added",):
        # Documents that are written again move into another scope.
        before = [document._replace(scope="old") for document in documents[:stored]]
        db.create_corpus(name, **settings).add_many(before)
    report = write(scoped_frame(spark, documents), db.url, "c", scope="scope", **settings)
    corpus, added = db.corpus("c"), db.corpus("added")
    assert report == added.add_many(documents)
    assert (report.added, report.replaced) == (300 - stored, stored)
    assert corpus.config == added.config
    assert stored_rows(db, "c") == stored_rows(db, "added")
    assert corpus.check() == []
    df = read(spark, db.url, "c")
    assert {(row["key"], row["scope"]) for row in df.collect()} == {d[::2] for d in documents}
    as_stored = EXACT | {"recall": settings["recall"]}
    found = find_candidates(df, "key", "normal_form", "scope", **as_stored)
    assert rows(found.pairs()) == sorted(corpus.pairs())


def test_a_scope_may_have_any_type(spark: SparkSession, db: ts.Database) -> None:
    day = datetime.date(2026, 1, 31)
    data = [(i, "one text", 7 + i // 3, day, [min(i, 2)]) for i in (1, 2, 3)]
    df = spark.createDataFrame(data, "id int, text string, number long, day date, list array<int>")
    everything = [("1", "2"), ("1", "3"), ("2", "3")]
    expected = {"number": everything[:1], "day": everything, "list": everything[2:]}
    for column, pairs in expected.items():
        found = find_candidates(df, scope=column)
        assert [(a, b) for a, b, _ in rows(found.pairs())] == pairs
    assert write(df, db.url, "c", scope="number", scoped=True).added == 3
    assert [match.key for match in db.corpus("c").query("one text", scope=8)] == ["3"]
    assert [match.key for match in db.corpus("c").query("one text", scope="7")] == ["1", "2"]


def test_rows_without_a_scope_are_refused_by_name(spark: SparkSession, db: ts.Database) -> None:
    scopes = ["a", None, "x" * 201, "a\0b", ""]
    data = [(f"k{i}", "one text", scope) for i, scope in enumerate(scopes)]
    df = spark.createDataFrame(data, "id string, text string, scope string")
    found = find_candidates(df, scope="scope")
    refusals = [
        ("k1", "the scope is null"),
        ("k2", "the scope is 201 bytes long; at most 200 are possible"),
        ("k3", "the scope has a NUL character"),
    ]
    assert found.refusals == refusals
    assert (found.documents, found.refused) == (2, 3)
    assert found.dedupe().count() == 5
    report = write(df, db.url, "c", scope="scope", scoped=True)
    assert report == AddReport(added=2, refused=report.refused)
    assert report.refused == refusals


def test_a_scope_is_required_in_scoped_corpora_only(spark: SparkSession, db: ts.Database) -> None:
    df = scoped_frame(spark, [Document("1", "one text", "a")])
    db.create_corpus("c", scoped=True)
    db.create_corpus("plain")
    choices: list[dict[str, Any]] = [{}, {"scoped": True}]
    for settings in choices:
        with pytest.raises(ts.ConfigurationError, match='"c" is scoped, and no scope is given'):
            write(df, db.url, "c", **settings)
    for name in ("plain", "new"):
        with pytest.raises(ts.ConfigurationError, match=f'"{name}" is not scoped; leave the scope'):
            write(df, db.url, name, scope="scope")
    with pytest.raises(ts.ConfigurationError, match=r'scope="scop" names no column .*"scope"'):
        find_candidates(df, scope="scop")
    assert list(db.corpora()) == ["c", "plain"]
