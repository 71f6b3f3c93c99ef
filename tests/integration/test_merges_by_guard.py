"""Documents whose guards differ match, and are never merged."""

from __future__ import annotations

import pytest

import textsim_db as ts
from tests.support.connections import Connection

pytestmark = pytest.mark.both_servers

INVOICE = "the invoice number {} was {}paid by the customer on monday in {}"
TEXTS = {
    "first": INVOICE.format(4711, "", "full"),
    "other number": INVOICE.format(4712, "", "full"),
    "same": INVOICE.format(4711, "", "part"),
    "negated": INVOICE.format(4711, "not ", "full"),
}
SIMILAR = [("first", "negated"), ("first", "other number"), ("first", "same"), ("negated", "same")]


@pytest.mark.parametrize("recall", [0.95, 1.0], ids=["bands", "exact"])
def test_siblings_match_and_do_not_merge(
    db: ts.Database, connection: Connection, recall: float
) -> None:
    corpus = db.create_corpus("c", threshold=0.5, recall=recall, guards="numbers,negations")
    corpus.add_many(TEXTS)
    assert [pair[:2] for pair in corpus.pairs()] == SIMILAR
    assert_searches_tell_what_differs(corpus, connection)
    for linkage in ts.Linkage:
        found = [cluster.keys for cluster in corpus.clusters(linkage=linkage)]
        rows = connection.execute(
            "SELECT key FROM textsim.clusters('c', linkage => %s)", [linkage.value]
        )
        assert found == [tuple(key for (key,) in rows)] == [("first", "same")]
    assert [row[:2] for row in corpus.duplicates()] == [("same", "first")]
    assert corpus.check() == []
    corpus.rebuild(guards=())
    assert [cluster.keys for cluster in corpus.clusters()] == [tuple(sorted(TEXTS))]
    corpus.rebuild(guards="words", guard_words=["Part"])
    assert [cluster.keys for cluster in corpus.clusters()] == [("first", "negated", "other number")]


def assert_searches_tell_what_differs(corpus: ts.Corpus, connection: Connection) -> None:
    differs = {"first": (), "other number": ("numbers",), "same": (), "negated": ("negations",)}
    matches = corpus.query(TEXTS["first"])
    assert {match.key: match.differs for match in matches} == differs
    assert corpus.query_many([TEXTS["first"]]) == [matches]
    sql = "SELECT key, differs FROM textsim.{}"
    rows = connection.execute(sql.format("matches('c', %s)").encode(), [TEXTS["first"]])
    assert {key: tuple(kinds) for key, kinds in rows} == differs
    del differs["first"]
    assert {match.key: match.differs for match in corpus.neighbours("first")} == differs
    rows = connection.execute(sql.format("neighbours('c', 'first')").encode())
    assert {key: tuple(kinds) for key, kinds in rows} == differs
    for key, kinds in differs.items():
        row = connection.execute("SELECT textsim.differs('c', %s, 'first')", [key]).fetchone()
        assert row == (list(kinds),)
    explanation = corpus.explain("other number", "negated")
    assert explanation.guards == {"numbers": (["4712"], ["4711"]), "negations": ([], ["1"])}
    both = connection.execute("SELECT textsim.differs('c', 'other number', 'negated')").fetchone()
    assert both == (["numbers", "negations"],)
    if corpus.config.is_exact:
        assert [match.differs for match in corpus.nearest(TEXTS["same"])] == [
            (),
            (),
            ("negations",),
            ("numbers",),
        ]
        rows = connection.execute(sql.format("nearest('c', %s)").encode(), [TEXTS["same"]])
        assert [kinds for _, kinds in rows] == [[], [], ["negations"], ["numbers"]]


def test_a_unique_corpus_stores_siblings(db: ts.Database, connection: Connection) -> None:
    for recall in (0.95, 1.0):
        corpus = db.create_corpus(
            f"c{recall}",
            threshold=0.5,
            recall=recall,
            is_unique=True,
            guards=["numbers", "negations"],
        )
        assert [twin[:2] for twin in corpus.add_many(TEXTS).twins] == [("same", "first")]
        arguments = {"corpus": corpus.name, **TEXTS, "free": INVOICE.format(5, "", "full")}
        rows = connection.execute(
            "SELECT key, standing FROM textsim.twins_of(%(corpus)s, '{x,y,z}', "
            "ARRAY[%(same)s, %(free)s, %(free)s])",
            arguments,
        ).fetchall()
        assert rows == [("x", "first"), ("z", "y")]
        for key, text in (("x", TEXTS["same"]), ("y", arguments["free"])):
            added = connection.execute(
                "SELECT a.key FROM textsim.add_unique(%s, %s, %s) a", [corpus.name, key, text]
            ).fetchall()
            assert added == ([("first",)] if key == "x" else [])
        assert corpus.check() == []


def test_a_stop_word_that_a_guard_counts_stays(db: ts.Database, connection: Connection) -> None:
    settings = {"guards": ["negations"], "stop_words": ["not", "the"]}
    corpus = db.create_corpus("python", **settings)  # type: ignore[arg-type]
    connection.execute(
        "SELECT textsim.create_corpus('sql', guards => '{negations}', stop_words => '{not,the}')"
    )
    assert corpus.config == db.corpus("sql").config
    assert corpus.config.stop_words == ("the",)
    with pytest.raises(ts.ConfigurationError, match='leaves out the stop word "the"'):
        corpus.rebuild(guards="words", guard_words=["the"])


def test_wrong_guards_are_refused(db: ts.Database, connection: Connection) -> None:
    for guards, words, message in (
        ("numbrs", (), "expected one of numbers, negations, words; did you mean"),
        ("words", (), "go together"),
        ("numbers", ["x"], "go together"),
    ):
        with pytest.raises(ts.ConfigurationError, match=message):
            db.create_corpus("c", guards=guards, guard_words=words)
