"""Damaged rows cause at most an error, and never a read of foreign memory.

A role that may write documents may write any values, which must not harm readers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import psycopg
import pytest

import textsim_db as ts
from tests.support.sampling import sample

COPIES = 20
WORDS = [f"w{i}" for i in range(200)]
DAMAGE = [
    "shingle_count = 0",
    "shingle_count = 1",
    "shingle_count = -2147483648",
    "shingle_count = 2147483647",
    "word_ids = '{}'",
    "word_ids = '{1,NULL,3}'",
    "word_ids = '{NULL}'",
    "word_ids = '{{1,2},{3,4}}'",
    "word_ids = '[5:7]={1,2,3}'",
    "word_ids = '{-5,0}'",
    "word_ids = '{999999}'",
    "word_ids = '{2147483647}'",
    "word_ids = array_fill(1, ARRAY[20000])",
    "word_ids = NULL, normal_form = ''",
    "word_ids = NULL, normal_form = 'No  NORMAL form! '",
    "word_ids = NULL, normal_form = repeat('ﷺ ', 3000)",
    "signature = '{}'",
    "signature = '{1,2,3}'",
    "signature = signature || signature",
    "signature = '{NULL}'",
    "signature = '{{1,2},{3,4}}'",
    "signature = array_fill(-1, ARRAY[32])",
    "id = id + 1000000",
    "source_id = 77",
]


@pytest.fixture(params=["word:1", pytest.param("char:5", marks=pytest.mark.long)])
def corpus(db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    corpus = db.create_corpus("news", request.param, threshold=0.5, num_hashes=32)
    corpus.add_many((f"k{i}", " ".join([*WORDS, f"x{i}"])) for i in range(COPIES))
    return corpus


def calls(corpus: ts.Corpus) -> Iterator[Callable[[], object]]:
    """Yield every call that reads or writes documents."""
    text = " ".join(WORDS)
    yield lambda: corpus.query(text)
    yield lambda: corpus.query_many([text, text])
    yield lambda: corpus.query(text, measure="cosine_similarity")
    yield lambda: corpus.query(text, 100, measure="levenshtein")
    yield lambda: corpus.neighbours("k0")
    yield lambda: corpus.neighbours("k1")
    yield lambda: list(corpus.pairs())
    yield lambda: list(corpus.clusters())
    yield lambda: list(corpus.clusters(linkage="complete"))
    yield lambda: list(corpus.duplicates())
    yield lambda: corpus.measure_recall(sample=20)
    yield lambda: corpus.statistics()
    yield lambda: corpus.explain("k0", "k1")
    yield lambda: corpus.status()
    yield lambda: corpus.add("k2", "a text in the place of another")
    yield lambda: corpus.remove(["k3"])


def make_calls(corpus: ts.Corpus) -> None:
    """Assert that a call returns or raises an error of one line."""
    for call in calls(corpus):
        try:
            call()
        except ts.TextsimError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("damage", sample(DAMAGE, 8))
def test_damaged_documents_cause_at_most_an_error(
    db: ts.Database, corpus: ts.Corpus, damage: str, rng: random.Random
) -> None:
    chosen = rng.choice((f"key = 'k{rng.randrange(1, COPIES)}'", "key <> 'k0'"))
    with psycopg.connect(db.url) as connection:
        connection.execute(f"UPDATE textsim.document_1 SET {damage} WHERE {chosen}".encode())
    if "source_id" not in damage:  # an unknown source is no damage: its table may be detached
        assert corpus.check() != []
    make_calls(corpus)
    for function in ("matches('news', 'w1 w2 w3')", "pairs('news')", "neighbours('news', 'k1')"):
        with psycopg.connect(db.url) as connection:
            connection.execute("SET statement_timeout = '60s'")
            try:
                connection.execute(f"SELECT * FROM textsim.{function}".encode())
            except psycopg.Error as error:
                assert not isinstance(error, psycopg.OperationalError)  # noqa: PT017


def test_damaged_band_rows_cause_at_most_an_error(db: ts.Database, corpus: ts.Corpus) -> None:
    for rows in (
        "SELECT bucket, document_id FROM textsim.band_1",
        "SELECT 42, document_id FROM textsim.band_1",
        "SELECT bucket, -document_id FROM textsim.band_1",
        "SELECT bucket, 2147483647 FROM textsim.band_1 LIMIT 10",
        "SELECT bucket, -2147483648 FROM textsim.band_1 LIMIT 10",
    ):
        with psycopg.connect(db.url) as connection:
            connection.execute(f"INSERT INTO textsim.band_1 {rows}".encode())
        assert corpus.check() != []
        make_calls(corpus)
