"""The Python API from end to end: names, shapes and results."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import textsim_db as ts
from textsim_db.results import AddReport, CorpusSummary
from textsim_db.write.vacuum_loads import ANALYZE_DOCUMENTS

TEXTS = {
    "a": "the quick brown fox jumps over the lazy dog near the river bank",
    "b": "the quick brown fox jumps over the lazy dog near the river",
    "c": "the quick brown fox jumps over the lazy cat near the river bank today",
    "d": "an entirely different sentence about databases and their indexes",
    "e": "",
}


@pytest.fixture
def corpus(corpus_db: ts.Database) -> ts.Corpus:
    # With many narrow bands every pair with a common shingle is a candidate.
    corpus = corpus_db.create_corpus("news", num_hashes=2048, bands=1024, rows=2)
    corpus.add_many(TEXTS.items())
    return corpus


def test_corpora_are_listed_by_name(db: ts.Database) -> None:
    assert list(db.corpora()) == []
    for name in ("b", "Ä", "a b", "a", 'quoted "name"', "%s", "{document}"):
        db.create_corpus(name)
    assert list(db.corpora()) == sorted(["b", "Ä", "a b", "a", 'quoted "name"', "%s", "{document}"])
    db.corpus("{document}").add("k", "v")
    db.drop_corpus("a")
    assert "a" not in db.corpora()


def test_corpora_says_what_each_is(db: ts.Database) -> None:
    db.create_corpus("plain")
    db.create_corpus("exact", recall=1, shingle="char:4", threshold=0.6, guards=["numbers"])
    db.create_corpus("notes", is_unique=True, scoped=True)
    assert db.corpora() == {
        "exact": CorpusSummary("char:4", 0.6, 1.0, ("numbers",), False, False),
        "notes": CorpusSummary("word:3", 0.8, db.corpus("notes").config.recall, (), True, True),
        "plain": CorpusSummary("word:3", 0.8, db.corpus("plain").config.recall, (), False, False),
    }
    with pytest.raises(ts.CorpusNotFound):
        db.corpus("a")


def test_exist_ok_opens_a_corpus_of_the_same_settings(db: ts.Database) -> None:
    db.create_corpus("news").add("a", "b")
    with pytest.raises(ts.CorpusExists, match='"news" exists'):
        db.create_corpus("news")
    assert len(db.create_corpus("news", exist_ok=True)) == 1
    with pytest.raises(ts.CorpusExists, match=r"other settings: threshold is 0\.8 there, not 0\.7"):
        db.create_corpus("news", threshold=0.7, exist_ok=True)


def test_add_many_reads_a_stream_and_reports_progress(db: ts.Database) -> None:
    corpus = db.create_corpus("news", shingle="word:1", num_hashes=8)
    furthest = 0
    received, ahead = [0], [0]

    def documents() -> Iterator[tuple[str, str]]:
        nonlocal furthest
        for i in range(100_000):
            furthest = i
            yield str(i), "same words"

    def progress(report: AddReport) -> None:
        received.append(report.received)
        ahead.append(furthest - report.received)

    corpus.add_many(documents(), progress)
    assert max(ahead) <= 50_000
    assert len(received) > 2
    assert received == sorted(received)
    assert received[-1] == 100_000


def test_adding_unchanged_documents_writes_nothing(corpus: ts.Corpus, database_url: str) -> None:
    def state() -> list[object]:
        with psycopg.connect(database_url) as connection:
            return [
                connection.execute("SELECT xmin, ctid, id FROM textsim.document_1").fetchall(),
                connection.execute("SELECT xmin, ctid FROM textsim.band_1").fetchall(),
                connection.execute("SELECT id, word FROM textsim.word_1").fetchall(),
                connection.execute("SELECT last_value FROM textsim.document_1_id_seq").fetchall(),
            ]

    before = state()
    again = {key: f"  {text.upper()} !" for key, text in TEXTS.items()}
    assert corpus.add_many(again.items()) == AddReport(unchanged=len(TEXTS), without_words=1)
    assert state() == before


def test_equal_similarities_come_in_the_order_of_the_keys(db: ts.Database) -> None:
    corpus = db.create_corpus("news")
    corpus.add_many((key, "always the same text") for key in "cabd")
    assert [m.key for m in corpus.query("always the same text")] == list("abcd")
    assert [m.key for m in corpus.neighbours("b")] == list("acd")


def test_documents_may_be_added_while_pairs_are_read(corpus: ts.Corpus) -> None:
    pairs_read = []
    for pair in corpus.pairs(threshold=0.3):
        corpus.add(f"copy of {pair.a}", TEXTS[pair.a])
        pairs_read.append(pair)
    assert len(pairs_read) == 3


def test_a_corpus_supports_in_and_len(corpus: ts.Corpus) -> None:
    assert "a" in corpus
    assert "e" in corpus
    assert "zz" not in corpus
    for impossible in (1, True, None, "a\0", "\ud800", "k" * 1001):
        assert impossible not in corpus
    assert len(corpus) == 5


def test_a_first_load_leaves_planner_statistics(db: ts.Database, database_url: str) -> None:
    documents = [(f"{i}", f"a few words and the number {i % 90}") for i in range(ANALYZE_DOCUMENTS)]
    db.create_corpus("c").add_many(documents)
    db.create_corpus("quoted", passages=4).add_many(documents)
    with psycopg.connect(database_url) as connection:
        statement = "SELECT DISTINCT tablename FROM pg_stats WHERE schemaname = 'textsim'"
        analyzed = {name.rpartition("_")[0] for (name,) in connection.execute(statement)}
        assert {"document", "band", "passage"} <= analyzed
