"""Spark finds what a corpus finds, whatever the partitions and the settings."""

from __future__ import annotations

import os
import random
from functools import partial
from typing import Any

import pytest
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812
)

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.guarded_texts import (
    GUARD_FILLER,
    GUARD_WORDS,
    guarded_texts,
    many_guarded_texts,
)
from tests.support.random_texts import templated
from tests.support.rebuilds import stored_rows
from tests.support.sampling import sample
from tests.support.spark import Documents, frame, near_duplicates, rows
from tests.support.spark_stages import find, results
from textsim_db.cluster import split_large_buckets
from textsim_db.errors import ConfigurationError
from textsim_db.read import bucket_pairs
from textsim_db.settings.named_values import Linkage
from textsim_db.spark import pair_frames, stage_3_results, write

pytestmark = pytest.mark.more

SETTINGS: list[dict[str, Any]] = [
    {"threshold": 0.7},
    {"threshold": 0.5, "recall": 1},
    {"threshold": 0.5, "recall": 1, "shingle": "word:1"},
    {"threshold": 0.8, "shingle": "char:5", "stop_words": ["w1", "w2"]},
]
GUARDS: list[dict[str, Any]] = [
    {"threshold": 0.6, "recall": 1, "shingle": "word:1", "guards": ["numbers", "negations"]},
    {"threshold": 0.6, "shingle": "char:3", "guards": "words,numbers", "guard_words": GUARD_WORDS}
    | {"stop_words": ["the", "final"]},
    {"threshold": 0.6, "shingle": "word:1", "guards": ["numbers", "content"]}
    | {"guard_fillers": [GUARD_FILLER]},
]
EVERY_GUARD: dict[str, Any] = {
    "threshold": 0.6,
    "shingle": "word:1",
    "guards": ["numbers", "negations", "words", "content"],
    "guard_words": GUARD_WORDS,
    "guard_fillers": [GUARD_FILLER],
}
DOCUMENTS = int(os.environ.get("TEXTSIM_TEST_DOCUMENTS", "100"))


@pytest.fixture(scope="module")
def documents(seed: int) -> Documents:
    return near_duplicates(random.Random(seed), 600)


@pytest.mark.parametrize("settings", sample(SETTINGS, 2), ids=str)
def test_results_agree(spark: Any, db: ts.Database, documents: Documents, settings: Any) -> None:
    corpus = db.create_corpus("c", **settings)
    corpus.add_many(sorted(documents))
    found = pair_frames.find_candidates(frame(spark, documents), **settings)
    assert found.documents == len(documents)
    pairs = rows(found.pairs())
    assert pairs == sorted(corpus.pairs())
    assert len(pairs) > 50
    for count in (1, 7):  # the results do not depend on partitions
        df = frame(spark, documents, count)
        assert rows(pair_frames.find_candidates(df, partitions=count, **settings).pairs()) == pairs
    for linkage in Linkage:
        assert rows(found.clusters(linkage)) == sorted(corpus.clusters(linkage=linkage))
        assert rows(found.duplicates(linkage)) == sorted(corpus.duplicates(linkage=linkage))


@pytest.mark.parametrize("settings", GUARDS, ids=str)
@pytest.mark.parametrize("limit", [2, 256])
def test_siblings_are_pairs_and_in_no_cluster(
    db: ts.Database, rng: random.Random, monkeypatch: pytest.MonkeyPatch, settings: Any, limit: int
) -> None:
    for module in (split_large_buckets, bucket_pairs):
        for name in {"LARGE_BUCKET", "CROWDED_BUCKET", "MOST_MET"} & vars(module).keys():
            monkeypatch.setattr(module, name, 0 if name == "MOST_MET" and limit == 2 else limit)
    documents = [*guarded_texts(rng, 200).items()]
    corpus = db.create_corpus("c", **settings)
    corpus.add_many(documents)
    config = corpus.config
    candidates = find(documents, config, 7)

    def found(function: Any, **task: Any) -> list[Any]:
        return results(function, documents, candidates, config, **task)

    pairs = found(stage_3_results.pairs)
    assert pairs == sorted(corpus.pairs())
    for linkage in Linkage:
        clusters = found(stage_3_results.clusters, linkage=linkage)
        # Of large buckets not every link is verified, so the weakest may be another.
        expected = [(c.keys, c.kept) for c in corpus.clusters(linkage=linkage)]
        assert [(keys, kept) for keys, _, kept in clusters] == sorted(expected)
        assert len(clusters) > 5
        duplicates = found(stage_3_results.duplicates, linkage=linkage)
        assert duplicates == sorted(corpus.duplicates(linkage=linkage))


@pytest.mark.parametrize("settings", sample([*GUARDS, EVERY_GUARD], 3), ids=str)
def test_guards_agree(
    spark: Any, db: ts.Database, connection: Connection, rng: random.Random, settings: Any
) -> None:
    """A corpus, SQL, Spark and memory have the same guards, pairs, clusters and duplicates."""
    settings = {"recall": 0.95} | settings  # the default of memory is 1
    documents = [*many_guarded_texts(rng, DOCUMENTS).items()]
    corpus = db.create_corpus("c", **settings)
    corpus.add_many(documents)
    assert corpus.check() == []
    pairs, clusters = sorted(corpus.pairs()), sorted(corpus.clusters())
    assert len(clusters) > DOCUMENTS // 50
    df = frame(spark, documents)
    found = pair_frames.find_candidates(df, **settings)
    assert rows(found.pairs()) == pairs
    assert rows(found.clusters()) == clusters
    duplicates = sorted(corpus.duplicates())
    assert rows(found.duplicates()) == duplicates
    write(df, db.url, "written", **settings)
    assert db.corpus("written").config == corpus.config
    assert stored_rows(db, "written") == stored_rows(db, "c")
    assert db.corpus("written").check() == []
    in_memory = [(a, b, value) for a, b, value in ts.pairs(dict(documents), **settings)]
    assert sorted(in_memory) == [tuple(pair) for pair in pairs]
    assert sorted(ts.clusters(dict(documents), **settings)) == clusters
    assert sorted(
        connection.execute("SELECT key, kept, similarity FROM textsim.duplicates('c')")
    ) == [tuple(duplicate) for duplicate in duplicates]
    db.create_corpus("sql", **settings)
    connection.execute(
        "SELECT textsim.add('sql', key, text) FROM unnest(%s::text[], %s::text[]) d (key, text)",
        [*map(list, zip(*documents, strict=True))],
    )
    guards = [
        [(key, guard) for key, _, _, _, guard, *_ in stored_rows(db, name)[0]]
        for name in ("c", "sql")
    ]
    assert guards[0] == guards[1]
    assert db.corpus("sql").check() == []


@pytest.mark.parametrize("recall", sample([1, 0.95], 2))
def test_copies_and_templates_are_found_as_in_a_corpus(
    spark: Any, db: ts.Database, rng: random.Random, recall: float
) -> None:
    model = [f"common{i}" for i in range(60)]
    texts = [" ".join(model)] * 300
    for number in range(300):
        filled = model.copy()
        filled[rng.randrange(60)] = f"name{number}"
        texts.append(" ".join(filled))
    documents = [(f"k{rng.randrange(10**9)}-{i}", text) for i, text in enumerate(texts)]
    corpus = db.create_corpus("c", threshold=0.8, recall=recall)
    corpus.add_many(sorted(documents))
    found = pair_frames.find_candidates(frame(spark, documents), recall=recall)
    assert rows(found.duplicates()) == sorted(corpus.duplicates())
    clusters = [keys for keys, _, _ in rows(found.clusters())]
    assert clusters == sorted(cluster.keys for cluster in corpus.clusters())
    pairs = rows(found.pairs())
    assert pairs == sorted(corpus.pairs())
    assert len(pairs) > 300 * 299 // 2


def test_the_rank_decides(spark: Any, db: ts.Database, documents: Documents, rng: Any) -> None:
    choices = [None, float("nan"), *map(float, range(20))]
    ranks: dict[str, float | None] = {key: rng.choice(choices) for key, _ in documents}
    data = [(key, text, ranks[key]) for key, text in documents]
    df = spark.createDataFrame(data, "id string, text string, score double")
    found = pair_frames.find_candidates(df, threshold=0.7)
    corpus = db.create_corpus("c", threshold=0.7)
    corpus.add_many(documents)

    def ascending(key: str, sign: int = 1) -> float:
        rank = ranks[key]
        return sign * rank if rank is not None and rank == rank else 1000.0

    descending = partial(ascending, sign=-1)
    assert rows(found.duplicates(rank="score")) == sorted(corpus.duplicates(rank=ascending))
    highest = rows(found.duplicates(rank="score", descending=True))
    assert highest == sorted(corpus.duplicates(rank=descending))
    longest = rows(found.duplicates(rank=F.length("text"), descending=True))
    lengths = {key: -len(text) for key, text in documents}
    assert longest == sorted(corpus.duplicates(rank=lengths.__getitem__))


def test_dedupe_keeps_columns_and_rows_that_cannot_be_compared(spark: Any) -> None:
    long = " ".join(f"w{i}" for i in range(30))
    data = [(7, long, "a"), (8, long + " w30", "b"), (None, long, "c"), (9, None, "d")]
    data += [(10, "a\0b", "e"), (11, "", "f")]
    df = spark.createDataFrame(data, "id int, text string, other string")
    found = pair_frames.find_candidates(df)
    assert rows(found.dedupe().select("other")) == [("a",), ("c",), ("d",), ("e",), ("f",)]
    assert (found.documents, found.refused) == (3, 3)
    assert [(key, reason.split(" at ")[0]) for key, reason in found.refusals] == [
        ("10", "the text has a NUL character"),
        ("9", "the text is null"),
        ("null", "the key is null"),
    ]


def test_texts_that_are_not_utf8_are_refused(spark: Any) -> None:
    df = spark.sql("SELECT 'a' AS id, CAST(X'61FF62' AS string) AS text")
    found = pair_frames.find_candidates(df)
    assert [refusal.key for refusal in found.refusals] == ["a"]
    assert "not UTF-8 at byte 2" in found.refusals[0].reason


def test_two_rows_of_one_key_are_named(spark: Any) -> None:
    documents = [("a", "one two three"), ("b", "four"), ("a", "five"), ("c", "six"), ("c", "six")]
    with pytest.raises(ConfigurationError, match='several rows with the key "a", "c"; keys must'):
        pair_frames.find_candidates(frame(spark, documents)).pairs()


def test_an_empty_frame_has_no_pairs(spark: Any) -> None:
    found = pair_frames.find_candidates(frame(spark, []))
    assert (found.documents, found.candidates) == (0, 0)
    assert rows(found.pairs()) == rows(found.clusters()) == rows(found.duplicates()) == []


@pytest.mark.parametrize("recall", [0.95, 1])
def test_spark_leaves_out_the_boilerplate_of_a_corpus(
    spark: SparkSession, db: ts.Database, rng: random.Random, recall: float
) -> None:
    texts, more = templated(rng, 200), templated(rng, 300)
    for name in ("spark", "added"):
        corpus = db.create_corpus(name, boilerplate=0.2, recall=recall)
        corpus.add_many(texts.items())
        corpus.rebuild()
        corpus.remove(texts)
    assert db.corpus("spark").config.boilerplate_values
    write(spark.createDataFrame([*more.items()], "id string, text string"), db.url, "spark")
    db.corpus("added").add_many(more.items())
    assert db.corpus("spark").config == db.corpus("added").config
    assert stored_rows(db, "spark") == stored_rows(db, "added")


TEXTS = {i: f"the quick brown fox number {i // 2} jumps over the lazy dog" for i in range(300)}


def test_frames_of_spark_are_indexed_and_deduplicated(spark: SparkSession, db: ts.Database) -> None:
    frame = spark.createDataFrame(list(TEXTS.items()), "id int, body string")
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.95)
    assert corpus.add_many(frame, key="id", text="body").added == len(TEXTS)
    matches = corpus.query_many(frame.where("id < 4"), key="id", text="body")
    found = {(match.query, match.key) for match in matches}
    assert found == {(a, str(b)) for a in range(4) for b in range(4) if a // 2 == b // 2}
    unique, report = ts.dedupe_frame(frame, text="body", key="id", shingle="word:1", threshold=0.95)
    kept = unique["id"].to_pylist()
    assert {number // 2 for number in kept} == set(range(150))
    assert len(kept) == 150
    assert {row.key for row in report.removed} == TEXTS.keys() - set(kept)
