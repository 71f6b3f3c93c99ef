"""Judgements of texts that have changed since: they are shown, and nothing obeys them."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.tracked import compare
from textsim_db.compare.match_rule import form_hash, is_stale
from textsim_db.results import Cluster
from textsim_db.settings.named_values import Linkage


def stale(corpus: ts.Corpus) -> list[tuple[str, str]]:
    return [(each.a, each.b) for each in corpus.judgements() if each.is_stale]


def test_a_stale_judgement_is_shown_and_holds_again_when_it_is_repeated(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.6)
    corpus.add_many([("hose", "a garden hose"), ("drill", "a cordless drill"), ("tap", "a tap")])
    corpus.judge("hose", "drill", "same", note="one offer")
    corpus.judge("drill", "tap", "same", any_text=True)
    corpus.judge("tap", "none", "same")
    everything = Cluster(("drill", "hose", "tap"), 1.0, None)

    def clusters() -> list[Cluster[str]]:
        return list(corpus.clusters(judgements=True))

    assert stale(corpus) == []
    assert clusters() == [everything]
    corpus.add("drill", "A cordless DRILL!")  # the words are the same
    assert clusters() == [everything]
    corpus.add("drill", "a hammer")
    assert stale(corpus) == [("drill", "hose")]
    assert clusters() == [Cluster(("drill", "tap"), 1.0, None)]
    corpus.add("none", "boots")  # nobody said which text has this key
    corpus.add("none", "shoes")
    assert stale(corpus) == [("drill", "hose")]
    corpus.remove(["none"])

    # A repeated judgement is about the present texts, and replaces nothing that is not seen.
    with pytest.raises(ts.JudgementExists):
        corpus.judge("hose", "drill", "different")
    assert corpus.judge("hose", "drill", "same")
    assert not corpus.judge("hose", "drill", "same")
    assert [each.note for each in corpus.judgements()] == ["one offer", None, None]
    assert clusters() == [everything]
    # The text of the removed document cannot be compared; it is, when it comes back.
    corpus.remove(["drill"])
    assert stale(corpus) == []
    corpus.add("drill", "a cordless drill")
    assert stale(corpus) == [("drill", "hose")]


def test_a_rebuild_leaves_judgements_as_they_are(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.6)
    corpus.add_many((key, f"a foot of every page and {key}") for key in "abcd")
    corpus.add_many((str(n), f"a foot of every page and {n}") for n in range(100))
    corpus._judge_many([("a", "b", "same"), ("c", "d", "same")])
    corpus.add("d", "another text")
    for settings in ({}, {"shingle": "char:4"}, {"shingle": "word:1"}, {"boilerplate": 0.5}):
        corpus.rebuild(**settings)
        assert stale(corpus) == [("c", "d")], settings
    assert corpus.normal_form("a") != "a foot of every page and a"
    # Nobody knows what was boilerplate in the text that was judged.
    corpus.add("d", "a foot of every page and d")
    assert stale(corpus) == [("c", "d")]


@pytest.mark.more
def test_all_clusters_follow_changed_texts(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    """Random judgements and changes: tracked clusters, Python and SQL agree after each step."""
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=1.0)
    keys = [f"k{number:02d}" for number in range(16)]
    texts = [
        " ".join([f"f{family}w{i}" for i in range(6)] + [f"x{n}"])
        for family in range(4)
        for n in range(3)
    ]
    corpus.add_many((key, rng.choice(texts)) for key in keys)
    corpus.track(threshold=0.5)
    corpus.update_clusters()
    seen = 0
    for step in range(8):
        for _ in range(3):
            pair = rng.choice(list(combinations(keys, 2)))
            verdict = rng.choice(["same", "same", "different"])
            corpus._judge_many([(*pair, verdict)], replace=True)
        for key in rng.sample(keys, 2):
            if rng.random() < 0.2:
                corpus.remove([key])
            else:
                corpus.add(key, rng.choice(texts))
        if step % 4 == 3:
            corpus.rebuild()
        assert corpus.check() == [], step
        corpus.update_clusters()
        seen += len(stale(corpus))
        compare(connection, corpus, 0.5)
        assert corpus.check() == [], step
        query = """
            SELECT array_agg(key ORDER BY key COLLATE "C")
            FROM textsim.clusters('c', 0.5, %s, judgements => true) GROUP BY cluster
        """
        for linkage in Linkage:
            in_python = corpus.clusters(0.5, linkage=linkage, judgements=True)
            in_sql: Any = connection.execute(query, [linkage]).fetchall()
            assert sorted(each.keys for each in in_python) == sorted(
                tuple(row[0]) for row in in_sql
            )
        verdicts = {(j.a, j.b): j for j in corpus.judgements()}
        for (a, b), judgement in verdicts.items():
            forms = [corpus.normal_form(key) if key in corpus else None for key in (a, b)]
            present = [None if form is None else form_hash(form) for form in forms]
            assert judgement.is_stale == is_stale((judgement.hash_a, judgement.hash_b), present)
    assert seen
