"""check() reports every damage of the stored rows."""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from textsim_db.read import check_corpus
from textsim_db.results import Problem

# {d}: the id of the document. {first}, {second}: its two lowest buckets.
DAMAGES: dict[str, tuple[str, set[str]]] = {
    "one row": (
        "DELETE FROM textsim.band_1 WHERE document_id = {d} AND bucket = {first}",
        {"missing band row"},
    ),
    "all rows": ("DELETE FROM textsim.band_1 WHERE document_id = {d}", {"missing band row"}),
    "another bucket": (
        "UPDATE textsim.band_1 SET bucket = 42 WHERE document_id = {d} AND bucket = {first}",
        {"missing band row", "extra band row"},
    ),
    # A document may have a bucket twice, so rows are counted.
    "a bucket twice": (
        "UPDATE textsim.band_1 SET bucket = {first} WHERE document_id = {d} AND bucket = {second}",
        {"missing band row", "extra band row"},
    ),
    "rows twice": (
        "INSERT INTO textsim.band_1 SELECT * FROM textsim.band_1 WHERE document_id = {d}",
        {"extra band row"},
    ),
    "one more row": ("INSERT INTO textsim.band_1 SELECT 42, {d}", {"extra band row"}),
    "a value of a band": (
        "UPDATE textsim.document_1 SET signature[2] = signature[2] # 1 WHERE id = {d}",
        {"signature", "missing band row", "extra band row"},
    ),
    "a value of no band": (  # 18 bands of 7 rows do not use the last two values
        "UPDATE textsim.document_1 SET signature[128] = signature[128] # 1 WHERE id = {d}",
        {"signature"},
    ),
    "a count": (
        "UPDATE textsim.document_1 SET shingle_count = shingle_count + 1 WHERE id = {d}",
        {"shingle count"},
    ),
    "an unknown word": (
        "UPDATE textsim.document_1 SET word_ids = word_ids || 987654 WHERE id = {d}",
        {"unknown word"},
    ),
    "a removed word": (
        "DELETE FROM textsim.word_1 WHERE word = 'ofaremovedword'",
        {"unknown word"},
    ),
    "no document": ("DELETE FROM textsim.document_1 WHERE id = {d}", set()),
}
TEXTS = {key: f"the quick brown fox jumps of{key.replace(' ', '')}" for key in DAMAGES} | {
    "empty with a row": "",
    "empty with a word": "...",
    "a": "the quick brown fox jumps over the lazy dog",
    "b": "the quick brown fox jumps over the lazy cat",
}
DAMAGES |= {
    "empty with a row": DAMAGES["one more row"],
    "empty with a word": (
        "UPDATE textsim.document_1 SET word_ids = '{{987654}}' WHERE id = {d}",
        {"unknown word"},
    ),
}


@pytest.fixture(params=["word:3", pytest.param("char:5", marks=pytest.mark.more)])
def corpus(corpus_db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    counts: list[int] = []
    corpus = corpus_db.create_corpus("news", request.param)
    corpus.add_many(TEXTS.items())
    assert corpus.check(progress=counts.append) == []
    assert counts[-1] == len(TEXTS)
    return corpus


def problems_after(corpus: ts.Corpus, url: str, *damages: str) -> set[tuple[str, str]]:
    """Do damage, and return kind and subject of every problem that check reports."""
    with psycopg.connect(url) as connection:
        for damage in damages:
            assert connection.execute(damage.encode()).rowcount > 0, damage
    problems = corpus.check()
    assert all(isinstance(problem, Problem) and problem.detail for problem in problems)
    return {(problem.kind, problem.subject) for problem in problems}


def test_each_damage_is_reported_with_its_document(corpus: ts.Corpus, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT d.key, d.id, array(SELECT bucket FROM textsim.band_1 b WHERE document_id = d.id "
            "ORDER BY 1) FROM textsim.document_1 d"
        ).fetchall()
    damages = []
    for key, number, buckets in rows:
        if key in DAMAGES:
            first, second = buckets[:2] or (0, 0)
            damages.append(DAMAGES[key][0].format(d=number, first=first, second=second))
        if key == "no document":
            orphan = f"document {number}"
    damages.append("INSERT INTO textsim.band_1 VALUES (42, 987654)")
    expected = {(kind, key) for key, (_, kinds) in DAMAGES.items() for kind in kinds}
    expected |= {("orphan", orphan), ("orphan", "document 987654")}
    assert problems_after(corpus, database_url, *damages) == expected


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
def unchecked_hashes(corpus: ts.Corpus, database_url: str) -> None:
    """Let the server accept words with wrong hashes."""
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE textsim.word_1 DROP CONSTRAINT word_hash_check")


@pytest.mark.usefixtures("unchecked_hashes")
def test_a_changed_word_is_reported(corpus: ts.Corpus, database_url: str) -> None:
    damage = "UPDATE textsim.word_1 SET word = 'cow' WHERE word = 'dog'"
    problems = problems_after(corpus, database_url, damage)
    assert ("signature", "a") in problems
    assert any(kind == "word hash" for kind, _ in problems)
    assert not any(subject == "b" for _, subject in problems)


@pytest.mark.usefixtures("unchecked_hashes")
def test_a_changed_hash_is_reported(corpus: ts.Corpus, database_url: str) -> None:
    damage = "UPDATE textsim.word_1 SET hash = hash + 1 WHERE word = 'dog'"
    kinds = {kind for kind, _ in problems_after(corpus, database_url, damage)}
    assert kinds == {"word hash"}


def test_words_that_are_not_in_normal_form_are_reported(
    corpus: ts.Corpus, database_url: str
) -> None:
    words = {"dog": "Dog", "cat": "dog dog", "ofonerow": "", "ofallrows": "do-g"}
    damages = [
        f"UPDATE textsim.word_1 SET word = '{wrong}', hash = hashtextextended('{wrong}', 0) "
        f"WHERE word = '{word}'"
        for word, wrong in words.items()
    ]
    expected = {("words", key) for key in ("a", "b", "one row", "all rows")}
    assert problems_after(corpus, database_url, *damages) >= expected
