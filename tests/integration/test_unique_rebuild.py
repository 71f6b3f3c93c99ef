"""Unique corpora that are rebuilt and checked: a rebuild makes no twins, and check lists them."""

from __future__ import annotations

from typing import Any

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.db import stored_corpus
from textsim_db.results import AddReport, Match, Problem
from textsim_db.write import rebuild

TEXT = "the quick brown fox jumps over the lazy dog and runs into the dark green forest"
NEAR = TEXT + " again"
OTHER = "rain is expected in the north while the south stays dry and warm until sunday"


def with_twins(db: ts.Database, count: int = 1, **settings: Any) -> ts.Corpus:
    """Return a corpus in which pairs of documents match."""
    corpus = db.create_corpus("c", threshold=0.6, recall=1, **settings)
    for i in range(count):
        words = " ".join(f"w{i}x{k}" for k in range(10))
        corpus.add_many({f"{i:03d}a": words, f"{i:03d}b": words + " more"})
    corpus.add("other", OTHER)
    return corpus


def test_rebuild_makes_a_corpus_unique_and_not_unique(db: ts.Database) -> None:
    corpus = db.create_corpus("c", threshold=0.6)
    corpus.add_many({"a": TEXT, "b": OTHER})
    assert corpus.rebuild(is_unique=True)
    assert db.corpus("c").config.is_unique
    assert not corpus.rebuild(is_unique=True)
    assert [match.key for match in corpus.add_unique("x", NEAR).matches] == ["a"]
    before = stored_corpus.load(db.engine, "c").id
    assert not corpus.rebuild(is_unique=False)
    assert stored_corpus.load(db.engine, "c").id == before
    assert corpus.add("x", NEAR) == AddReport(added=1)
    assert corpus.check() == []


def test_rebuild_lowers_the_threshold_of_bands_without_building(db: ts.Database) -> None:
    corpus = db.create_corpus("c", threshold=0.8, bands=32, rows=4)
    corpus.add_many({"a": TEXT, "b": NEAR})
    before = stored_corpus.load(db.engine, "c").id
    assert not corpus.rebuild(threshold=0.95, bands=32, rows=4)
    reopened = stored_corpus.load(db.engine, "c")
    assert (reopened.id, reopened.config.threshold) == (before, 0.95)
    assert corpus.query(TEXT) == [Match("a", 1.0)]
    with db.engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT key FROM textsim.matches('c', %s)", (TEXT,))
        assert rows.scalars().all() == ["a"]
    assert corpus.check() == []


def test_rebuild_lists_the_twins_that_stand(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = with_twins(db, 12)
    with monkeypatch.context() as patch:  # very many twins are refused at once
        patch.setattr(rebuild, "MOST_LISTED", 5)
        with pytest.raises(ts.ConfigurationError, match="12 pairs of its documents match"):
            corpus.rebuild(is_unique=True)
    with pytest.raises(ts.ConfigurationError) as caught:
        corpus.rebuild(is_unique=True)
    message = str(caught.value)
    assert "12 pairs of its documents match" in message
    assert '"000a" and "000b" (0.889), ' in message
    assert '"009a" and "009b" (0.889) and 2 more; nothing was changed' in message
    assert list(db.corpora()) == ["c"]
    assert not db.corpus("c").config.is_unique
    assert corpus.remove([f"{i:03d}b" for i in range(12)]) == 12
    assert corpus.rebuild(is_unique=True)


@pytest.mark.parametrize("settings", [{"recall": 1}, {"bands": 32, "rows": 4}], ids=str)
def test_a_lower_threshold_that_makes_twins_is_refused(
    db: ts.Database, settings: dict[str, Any]
) -> None:
    corpus = db.create_corpus("c", threshold=0.95, is_unique=True, **settings)
    corpus.add_many({"a": TEXT, "b": NEAR})
    with pytest.raises(ts.ConfigurationError, match=r'1 pair of its documents match: "a" and "b"'):
        corpus.rebuild(threshold=0.6, **settings)
    assert corpus.config.threshold == 0.95
    corpus.rebuild(threshold=0.97, **settings)
    assert corpus.config.is_unique


def test_a_corpus_with_a_queue_cannot_become_unique(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", recall=1)
    connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
    corpus.attach("article", "id", "body")
    with pytest.raises(
        ts.ConfigurationError, match=r"table article is attached and .* in mode queue"
    ):
        corpus.rebuild(is_unique=True)
    corpus.detach("article")
    assert corpus.rebuild(is_unique=True)


def test_twins_that_writers_make_during_a_rebuild_are_seen(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = db.create_corpus("c", threshold=0.6, recall=1)
    corpus.add_many({"a": TEXT, "b": OTHER})
    compare = rebuild.TwinCheck.compare_all

    def compare_and_add(self: rebuild.TwinCheck) -> None:
        compare(self)
        db.corpus("c").add("late", NEAR)

    monkeypatch.setattr(rebuild.TwinCheck, "compare_all", compare_and_add)
    with pytest.raises(
        ts.ConfigurationError, match=r'1 pair of its documents match: "a" and "late"'
    ):
        corpus.rebuild(is_unique=True)


def test_documents_that_no_longer_match_at_the_end_are_no_twins(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = with_twins(db, 2)
    compare = rebuild.TwinCheck.compare_all

    def compare_and_remove(self: rebuild.TwinCheck) -> None:
        compare(self)
        db.corpus("c").remove(["000b"])
        db.corpus("c").add("001b", TEXT)

    monkeypatch.setattr(rebuild.TwinCheck, "compare_all", compare_and_remove)
    assert corpus.rebuild(is_unique=True)
    assert corpus.check() == []


def test_check_lists_twins(db: ts.Database, connection: Connection) -> None:
    corpus = with_twins(db, 2)
    assert corpus.check() == []
    connection.execute("UPDATE textsim.corpus SET is_unique = true")
    connection.execute("CREATE SEQUENCE textsim.twin_1_seq OWNED BY textsim.document_1.id")
    connection.execute("UPDATE textsim.corpus c SET created_with = textsim._settings(c)")
    connection.execute("SELECT textsim._make_functions(1)")
    way_out = "remove one of the two documents or rows, or judge the two different"
    assert db.corpus("c").check() == [
        Problem("twin", "000b", 'it matches document "000a" with similarity 0.889', way_out),
        Problem("twin", "001b", 'it matches document "001a" with similarity 0.889', way_out),
    ]
