"""A search warns if it cannot find every match, and gives the figure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.settings.named_values import MeasureName

LOGGER = "textsim_db.read.find_candidates"
TEXT = "the council voted on monday to rebuild the old stone bridge over the river before winter"
BELOW = (
    'threshold 0.5 is below 0.8, the threshold of corpus "c": '
    "13.2 % of the documents at 0.5 are found"
)


def warnings_of(caplog: pytest.LogCaptureFixture, search: Callable[[], object]) -> list[str]:
    caplog.clear()
    search()
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


@pytest.fixture
def corpus(corpus_db: ts.Database) -> ts.Corpus:
    corpus = corpus_db.create_corpus("c")
    corpus.add_many({"a": TEXT, "b": TEXT + " and spring", "c": TEXT})
    return corpus


@pytest.fixture
def exact(corpus_db: ts.Database) -> ts.Corpus:
    return corpus_db.create_corpus("e", recall=1)


SEARCHES: dict[str, Callable[[ts.Corpus, float], object]] = {
    "query": lambda corpus, threshold: corpus.query(TEXT, threshold),
    "query_many": lambda corpus, threshold: corpus.query_many([TEXT, "two"], threshold),
    "neighbours": lambda corpus, threshold: corpus.neighbours("a", threshold),
    "pairs": lambda corpus, threshold: list(corpus.pairs(threshold)),
    "clusters": lambda corpus, threshold: list(corpus.clusters(threshold)),
    "duplicates": lambda corpus, threshold: list(corpus.duplicates(threshold)),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_below_the_threshold_of_the_corpus_warns(
    corpus: ts.Corpus, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    search = SEARCHES[name]
    advice = "; to find more: textsim rebuild c --threshold 0.5"
    assert warnings_of(caplog, lambda: search(corpus, 0.5)) == [BELOW + advice]
    assert "0.0 % of the documents at 1e-09" in warnings_of(caplog, lambda: search(corpus, 1e-9))[0]
    for threshold in (0.8, 1.0):
        assert warnings_of(caplog, partial(search, corpus, threshold)) == []


@pytest.mark.parametrize(
    "search",
    [
        "textsim.matches('c', 'the council voted', {})",
        "textsim.neighbours('c', 'a', {})",
        "textsim.pairs('c', {})",
    ],
)
def test_every_search_in_sql_below_the_threshold_of_the_corpus_warns(
    corpus: ts.Corpus, shared_connection: Connection, search: str
) -> None:
    messages: list[str] = []
    shared_connection.add_notice_handler(
        lambda notice: messages.append(f"{notice.severity}: {notice.message_primary}")
    )
    for threshold in ("NULL", "0.8", "1"):
        shared_connection.execute(f"SELECT * FROM {search.format(threshold)}".encode())
    assert messages == []
    shared_connection.execute(f"SELECT * FROM {search.format('0.5')}".encode())
    assert messages == [f"WARNING: {BELOW}"]
    messages.clear()
    shared_connection.execute(f"SELECT * FROM {search.format('1e-9')}".encode())
    assert "0.0 % of the documents at 1e-09 are found" in messages[0]


FEW = "5 bands of 20 rows find 5.6 % of the pairs at 0.8; fewer rows find more, and recall 1 finds all"


def test_each_search_by_bands_that_find_little_warns(
    corpus_db: ts.Database, caplog: pytest.LogCaptureFixture
) -> None:
    """So does creation, and a rebuild with other settings; a higher threshold may find enough."""
    caplog.clear()
    few = corpus_db.create_corpus("few", bands=5, rows=20)
    assert [record.getMessage() for record in caplog.records] == [f'corpus "few": {FEW}']
    few.add_many({"a": TEXT, "b": TEXT + " and spring", "c": TEXT})
    for search in SEARCHES.values():
        assert warnings_of(caplog, partial(search, few, 0.8)) == [f'corpus "few": {FEW}']
        assert warnings_of(caplog, partial(search, few, 1.0)) == []
    assert warnings_of(caplog, lambda: corpus_db.corpus("few", on_server=True).query(TEXT)) != []
    caplog.clear()
    assert few.rebuild(bands=6, rows=20)
    few.rebuild(threshold=0.99, bands=6, rows=20)
    assert [r.getMessage()[:40] for r in caplog.records] == [
        'corpus "few": 6 bands of 20 rows find 6.'
    ]


def test_sql_warns_of_bands_that_find_little(connection: Connection) -> None:
    messages: list[str] = []
    connection.add_notice_handler(
        lambda notice: messages.append(f"{notice.severity}: {notice.message_primary}")
    )
    for statement in (
        "SELECT textsim.create_corpus('sql', bands => 5, rows => 20)",
        "SELECT * FROM textsim.matches('sql', 'the council voted')",
        "SELECT * FROM textsim.pairs('sql')",
        "SELECT * FROM textsim.clusters('sql')",
        "SELECT * FROM textsim.duplicates('sql', threshold => 0.8)",
    ):
        connection.execute(statement.encode())
        expected = 'corpus "sql": 5 bands of 20 rows find 5.6 % of the pairs at 0.8'
        assert messages == [f"WARNING: {expected}"], statement
        messages.clear()
    for statement in (
        "SELECT * FROM textsim.pairs('sql', 0.99)",
        "SELECT textsim.create_corpus('enough', recall => 0.75)",
        "SELECT textsim.create_corpus('exact', recall => 1)",
    ):
        connection.execute(statement.encode())
        assert messages == [], statement


def test_texts_in_memory_by_bands_that_find_little_warn(caplog: pytest.LogCaptureFixture) -> None:
    for compare in (ts.pairs, ts.clusters):
        caplog.clear()
        compare([TEXT], bands=5, rows=20)
        assert [record.getMessage() for record in caplog.records] == [FEW]
        compare([TEXT], recall=0.95)
        compare([TEXT])
        assert len(caplog.records) == 1


def test_each_measure_warns_unless_it_implies_enough_jaccard_similarity(
    corpus: ts.Corpus, exact: ts.Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    exact.add_many({"a": TEXT})
    for each in (corpus, exact):
        implied: tuple[tuple[MeasureName, float], ...] = (
            ("dice", 0.9),
            ("levenshtein", 0),
            ("levenshtein_similarity", 1),
        )
        for measure, threshold in implied:
            search = partial(each.query, TEXT, threshold, measure=measure)
            assert warnings_of(caplog, search) == []
    chosen = ': the candidates of corpus "{}" are chosen by Jaccard similarity: '
    of_bands = chosen.format("c") + "98.6 % of the documents at 0.8 are found, {} % at {}"
    of_exact = chosen.format("e") + "documents below 0.8 may be missed"
    cases: tuple[tuple[MeasureName, float, tuple[str, str]], ...] = (
        ("dice", 0.6, ("4.7", "0.429")),
        ("cosine_similarity", 0.9, ("2.9", "0.4")),
        ("overlap", 0.9, ("2.9", "0.4")),
    )
    for measure, threshold, lower in cases:
        for each, expected in ((corpus, of_bands.format(*lower)), (exact, of_exact)):
            for call in (
                partial(each.neighbours, "a", threshold, measure=measure),
                lambda c=each, t=threshold, m=measure: list(c.pairs(t, m)),
            ):
                assert warnings_of(caplog, call) == [measure + expected]
    assert warnings_of(caplog, lambda: corpus.query("", 0.9, measure="overlap")) == []
