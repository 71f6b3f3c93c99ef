"""The checks of the crash tests detect damage."""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from tests.crash.checks import (
    Findings,
    Model,
    check_contents,
    check_corpus,
    check_leftovers,
    check_searches,
    documents,
)
from tests.crash.works import text_of
from textsim_db.db import stored_corpus

pytestmark = pytest.mark.long


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)
    corpus.add_many((f"k{i}", text_of(f"k{i}", 1)) for i in range(20))
    return corpus


def run_checks(db: ts.Database) -> Findings:
    findings = Findings()
    expected = {f"k{i}": text_of(f"k{i}", 1) for i in range(20)}
    with psycopg.connect(db.url, autocommit=True) as connection:
        check_contents(documents(connection, "c"), expected, findings)
        check_corpus(db.corpus("c"), findings)
        check_searches(db.corpus("c"), expected, findings)
        check_leftovers(db, connection, findings)
    return findings


@pytest.mark.parametrize(
    ("damage", "lost", "duplicated", "problems"),
    [
        ("SELECT", 0, 0, ""),
        ("SELECT textsim.remove('c', 'k7')", 1, 0, ""),
        ("SELECT textsim.add('c', 'k7', 'a text of another version')", 1, 0, "still pending"),
        ("SELECT textsim.add('c', 'more', 'a text that was never committed')", 0, 0, "more"),
        ("INSERT INTO textsim.band_1 SELECT * FROM textsim.band_1 LIMIT 1", 0, 1, ""),
        ("DELETE FROM textsim.band_1 WHERE bucket < 0", 0, 0, "missing band row"),
        (
            "INSERT INTO textsim.pending (kind, corpus_id, keys, lease_until) "
            "SELECT 'words', id, '{}', now() FROM textsim.corpus",
            0,
            0,
            "still pending",
        ),
        ("CREATE TABLE textsim.band_99 ()", 0, 0, "band_99 is of no corpus"),
        (
            "CREATE FUNCTION textsim._write_99() RETURNS integer LANGUAGE sql RETURN 1",
            0,
            0,
            "_write_99 is of no corpus",
        ),
    ],
)
def test_the_checks_find_damage(
    db: ts.Database, corpus: ts.Corpus, damage: str, lost: int, duplicated: int, problems: str
) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(damage.encode())
    findings = run_checks(db)
    assert findings.lost == lost
    assert findings.duplicated == duplicated
    assert problems in " ".join(findings.problems)
    assert bool(problems) == bool(findings.problems)


def test_the_checks_find_a_document_stored_twice(db: ts.Database, corpus: ts.Corpus) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("DROP INDEX textsim.document_1_key, textsim.document_1_id")
        connection.execute(
            "INSERT INTO textsim.document_1 SELECT * FROM textsim.document_1 LIMIT 1"
        )
    assert run_checks(db).duplicated >= 1


def test_the_checks_find_a_missing_index(db: ts.Database, corpus: ts.Corpus) -> None:
    findings = Findings()
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("DROP INDEX textsim.band_1_bucket")
        check_leftovers(db, connection, findings)
    assert findings.problems == ["corpus c has no index on its band rows"]


def test_the_checks_find_a_temporary_corpus(db: ts.Database, corpus: ts.Corpus) -> None:
    stored_corpus.create(db.engine, "textsim temporary 1", corpus.config)
    assert run_checks(db).problems == ["1 temporary corpora are left"]


def test_a_transaction_in_doubt_must_be_complete_or_absent() -> None:
    changes = {"a": 2, "b": None, "c": 2}
    before = {"a": text_of("a", 1), "b": text_of("b", 1)}
    after = {"a": text_of("a", 2), "c": text_of("c", 2)}
    for texts, problems in ((before, 0), (after, 0), (before | after, 1), ({}, 1)):
        model, findings = Model(), Findings()
        model.apply({"a": 1, "b": 1})
        model.resolve_doubt(dict(changes), texts, findings)
        assert len(findings.problems) == problems
        assert (model.texts == texts) == (not problems)
