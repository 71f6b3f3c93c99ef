"""check() reports every damage of the stored rows."""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from textsim_db.read import check_corpus

pytestmark = pytest.mark.one_server

TEXTS = {
    "a": "the quick brown fox jumps over the lazy dog",
    "b": "the quick brown fox jumps over the lazy cat",
    "c": "nothing of the kind",
    "short": "two words",
    "empty": "",
}
A = "(SELECT id FROM textsim.document_1 WHERE key = 'a')"
FIRST = f"(SELECT min(bucket) FROM textsim.band_1 WHERE document_id = {A})"


@pytest.fixture(params=["word:3", pytest.param("char:5", marks=pytest.mark.more)])
def corpus(corpus_db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    corpus = corpus_db.create_corpus("news", request.param)
    corpus.add_many(TEXTS.items())
    return corpus


def problems_after(corpus: ts.Corpus, url: str, damage: str) -> set[tuple[str, str]]:
    """Do damage, and return kind and subject of every problem that check reports."""
    assert corpus.check() == []
    with psycopg.connect(url) as connection:
        assert connection.execute(damage.encode()).rowcount > 0
    problems = corpus.check()
    assert all(isinstance(problem, ts.Problem) and problem.detail for problem in problems)
    return {(problem.kind, problem.subject) for problem in problems}


def test_check_reports_no_problem_of_an_intact_corpus(corpus: ts.Corpus) -> None:
    counts: list[int] = []
    assert corpus.check(progress=counts.append) == []
    assert counts[-1] == len(TEXTS)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (
            f"DELETE FROM textsim.band_1 WHERE document_id = {A} AND bucket = {FIRST}",
            {("missing band row", "a")},
        ),
        (f"DELETE FROM textsim.band_1 WHERE document_id = {A}", {("missing band row", "a")}),
        (
            f"UPDATE textsim.band_1 SET bucket = 42 WHERE document_id = {A} AND bucket = {FIRST}",
            {("missing band row", "a"), ("extra band row", "a")},
        ),
        (
            f"INSERT INTO textsim.band_1 SELECT * FROM textsim.band_1 WHERE document_id = {A}",
            {("extra band row", "a")},
        ),
        (
            "INSERT INTO textsim.band_1 SELECT 42, id FROM textsim.document_1 WHERE key = 'empty'",
            {("extra band row", "empty")},
        ),
        (
            "INSERT INTO textsim.band_1 SELECT 42, id FROM textsim.document_1 WHERE key = 'c'",
            {("extra band row", "c")},
        ),
        (
            "INSERT INTO textsim.band_1 VALUES (42, 987654)",
            {("orphan", "document 987654")},
        ),
        (
            "UPDATE textsim.document_1 SET signature[2] = signature[2] # 1 WHERE key = 'a'",
            {("signature", "a"), ("missing band row", "a"), ("extra band row", "a")},
        ),
        (
            "UPDATE textsim.document_1 SET signature[128] = signature[128] # 1 WHERE key = 'a'",
            {("signature", "a")},  # 18 bands of 7 rows do not use the last two values
        ),
        (
            "UPDATE textsim.document_1 SET shingle_count = shingle_count + 1 WHERE key = 'c'",
            {("shingle count", "c")},
        ),
        (
            "UPDATE textsim.document_1 SET word_ids = word_ids || 987654 WHERE key = 'c'",
            {("unknown word", "c")},
        ),
        (
            "UPDATE textsim.document_1 SET word_ids = '{987654}' WHERE key = 'empty'",
            {("unknown word", "empty")},
        ),
        (
            "DELETE FROM textsim.word WHERE word = 'lazy'",
            {("unknown word", "a"), ("unknown word", "b")},
        ),
    ],
)
def test_damage_is_reported_with_its_document(
    corpus: ts.Corpus, database_url: str, damage: str, expected: set[tuple[str, str]]
) -> None:
    assert problems_after(corpus, database_url, damage) == expected


def test_band_rows_of_a_missing_document_are_reported(corpus: ts.Corpus, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(f"SELECT {A}".encode()).fetchone()
    assert row is not None
    damage = "DELETE FROM textsim.document_1 WHERE key = 'a'"
    assert problems_after(corpus, database_url, damage) == {("orphan", f"document {row[0]}")}


def test_a_band_row_that_replaces_another_is_reported(corpus: ts.Corpus, database_url: str) -> None:
    """A document may have a bucket twice, so rows are counted."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            f"SELECT bucket FROM textsim.band_1 WHERE document_id = {A}".encode()
        )
        first, second = [bucket for (bucket,) in rows][:2]
    damage = (
        f"UPDATE textsim.band_1 SET bucket = {first} WHERE document_id = {A} AND bucket = {second}"
    )
    assert problems_after(corpus, database_url, damage) == {
        ("missing band row", "a"),
        ("extra band row", "a"),
    }


def test_damage_in_one_block_of_ids_is_reported(
    db: ts.Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_corpus, "BLOCK_BITS", 2)
    corpus = db.create_corpus("c")
    corpus.add_many((f"{i:02d}", f"document {i} of a few {i}") for i in range(40))
    ids = "(SELECT id FROM textsim.document_1 WHERE key IN ('07', '08', '30'))"
    damage = f"DELETE FROM textsim.band_1 WHERE document_id IN {ids}"
    assert problems_after(corpus, database_url, damage) == {
        ("missing band row", key) for key in ("07", "08", "30")
    }


def test_a_changed_order_of_words_is_reported(corpus: ts.Corpus, database_url: str) -> None:
    damage = "UPDATE textsim.document_1 SET word_ids[1] = word_ids[2] WHERE key = 'a'"
    assert ("signature", "a") in problems_after(corpus, database_url, damage)


@pytest.fixture
def unchecked_hashes(database_url: str) -> None:
    """Let the server accept words with wrong hashes."""
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE textsim.word DROP CONSTRAINT word_hash_check")


@pytest.mark.usefixtures("unchecked_hashes")
def test_a_changed_word_is_reported(corpus: ts.Corpus, database_url: str) -> None:
    damage = "UPDATE textsim.word SET word = 'cow' WHERE word = 'dog'"
    problems = problems_after(corpus, database_url, damage)
    assert ("signature", "a") in problems
    assert any(kind == "word hash" for kind, _ in problems)
    assert not any(subject == "b" for _, subject in problems)


@pytest.mark.usefixtures("unchecked_hashes")
def test_a_changed_hash_is_reported(corpus: ts.Corpus, database_url: str) -> None:
    damage = "UPDATE textsim.word SET hash = hash + 1 WHERE word = 'dog'"
    assert [kind for kind, _ in problems_after(corpus, database_url, damage)] == ["word hash"]


@pytest.mark.parametrize("word", ["Dog", "dog dog", "", "do-g"])
def test_a_word_that_is_not_in_normal_form_is_reported(
    corpus: ts.Corpus, database_url: str, word: str
) -> None:
    damage = (
        f"UPDATE textsim.word SET word = '{word}', hash = hashtextextended('{word}', 0) "
        "WHERE word = 'dog'"
    )
    assert ("words", "a") in problems_after(corpus, database_url, damage)


def test_damage_is_reported_for_its_own_corpus_only(
    corpus: ts.Corpus, db: ts.Database, database_url: str
) -> None:
    other = db.create_corpus("other")
    other.add("a", "its own text")
    damage = "UPDATE textsim.document_2 SET shingle_count = 77"
    assert problems_after(corpus, database_url, damage) == set()
    assert [problem.subject for problem in other.check()] == ["a"]


def test_two_documents_cannot_have_one_key(corpus: ts.Corpus, database_url: str) -> None:
    with (
        psycopg.connect(database_url) as connection,
        pytest.raises(psycopg.errors.UniqueViolation),
    ):
        connection.execute("UPDATE textsim.document_1 SET key = 'b' WHERE key = 'a'")
    assert corpus.check() == []
