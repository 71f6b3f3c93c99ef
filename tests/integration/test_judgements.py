"""Judgements: kept through every change of the documents, and obeyed alike by Python and SQL."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from tests.support.judgements import (
    Pair,
    expected_clusters,
    judged_groups,
    ordered,
    random_judgements,
)


def random_corpus(db: ts.Database, rng: random.Random, name: str, scoped: bool) -> ts.Corpus:
    """Return a corpus with chains of small changes, copies, and documents without words."""
    recall = rng.choice([0.9, 1.0])
    corpus = db.create_corpus(name, shingle="word:1", threshold=0.5, recall=recall, scoped=scoped)
    texts = dict(documents(20, words=12, planted=0.5, seed=rng.randrange(10**6)))
    words = texts["doc-0000000"].split()
    for step in range(10):
        words[rng.randrange(len(words))] = f"new{step}"
        texts[f"chain {step}"] = " ".join(words)
    texts |= {f"copy {i}": texts["chain 3"].upper() for i in range(4)}
    texts |= {"empty": "", "void": "?!"}
    keys = list(texts)
    rng.shuffle(keys)
    if scoped:
        corpus.add_many((key, texts[key], rng.choice("xyy")) for key in keys)
    else:
        corpus.add_many((key, texts[key]) for key in keys)
    return corpus


def scopes_of(corpus: ts.Corpus, connection: Connection) -> dict[str, str | None]:
    query = "SELECT id FROM textsim.corpus WHERE name = %s"
    row = connection.execute(query, [corpus.name]).fetchone()
    assert row is not None
    rows = connection.execute(f"SELECT key, scope FROM textsim.document_{row[0]}".encode())
    return dict(rows.fetchall())


def judge_all(corpus: ts.Corpus, scopes: dict[str, Any], judgements: dict[Pair, str]) -> None:
    """Record judgements, except those of documents of two scopes, which are dropped."""
    for (a, b), verdict in list(judgements.items()):
        if a in scopes and b in scopes and scopes[a] != scopes[b]:
            with pytest.raises(ts.ConfigurationError, match=r"have the scopes '[xy]' and"):
                corpus.judge(a, b, verdict)
            del judgements[a, b]
        else:
            assert corpus.judge(b, a, verdict)


def check_obeyed(
    corpus: ts.Corpus, connection: Connection, judgements: dict[Pair, str], where: str
) -> None:
    """Compare the clusters and duplicates of Python and SQL with the plain definition."""
    scopes = scopes_of(corpus, connection)
    pairs = {ordered(pair.a, pair.b): pair.similarity for pair in corpus.pairs()}
    keys = sorted(scopes)
    for linkage in ts.Linkage:
        at = f"{where}, {linkage}"
        found = list(corpus.clusters(linkage=linkage, judgements=True))
        assert found == expected_clusters(scopes, pairs, judgements, linkage, keys), at
        rows = connection.execute(
            "SELECT key, cluster, kept, weakest FROM textsim.clusters("
            "%s, linkage => %s, judgements => true)",
            [corpus.name, linkage],
        ).fetchall()
        listed = [(k, i, c.kept, c.weakest) for i, c in enumerate(found, 1) for k in c.keys]
        assert rows == listed, at
        for keep, order in (("first", keys), ("last", keys[::-1])):
            places = {key: place for place, key in enumerate(order)}
            duplicates = corpus.duplicates(
                linkage=linkage, rank=places.__getitem__, judgements=True
            )
            removed = sorted(duplicates)
            # Only linkage kept depends on the rank.
            considered = order if linkage is ts.Linkage.KEPT else keys
            clusters = expected_clusters(scopes, pairs, judgements, linkage, considered)
            assert {(d.key, d.kept) for d in removed} == {
                (key, first)
                for cluster in clusters
                for first in [min(cluster.keys, key=places.__getitem__)]
                for key in cluster.keys
                if key != first
            }, at
            for each in removed:
                value = pairs.get(ordered(each.key, each.kept), each.similarity)
                assert each.similarity == value, at
            rows = connection.execute(
                "SELECT key, kept, similarity FROM textsim.duplicates("
                "%s, %s, linkage => %s, judgements => true)",
                [corpus.name, keep, linkage],
            ).fetchall()
            assert sorted(rows) == removed, at


@pytest.mark.parametrize("scoped", [False, True])
def test_random_judgements_are_obeyed(
    db: ts.Database, connection: Connection, rng: random.Random, seed: int, scoped: bool
) -> None:
    """Also after an update, a removal and a rebuild."""
    for number in range(4):
        corpus = random_corpus(db, rng, f"c{number}", scoped)
        scopes = scopes_of(corpus, connection)
        near = [ordered(pair.a, pair.b) for pair in corpus.pairs()]
        judgements = random_judgements(rng, sorted(scopes), near, rng.choice([1, 5, 12, 25]))
        judge_all(corpus, scopes, judgements)
        where = f"--seed {seed}, corpus {number}"
        check_obeyed(corpus, connection, judgements, where)
        contradictions = list(corpus.contradictions())
        assert [(c.a, c.b) for c in contradictions] == judged_groups(judgements)[1]
        for a, b, chain in contradictions:
            assert (chain[0], chain[-1]) == (a, b)
            links = {judgements[ordered(*link)] for link in pairwise(chain)}
            assert links == {"same"}
        corpus.remove(rng.sample(sorted(scopes), 4))
        corpus.add("gone 1", "some words of a document that came later", "y" if scoped else None)
        check_obeyed(corpus, connection, judgements, f"{where}, changed")
        corpus.rebuild(seed=number + 2)
        check_obeyed(corpus, connection, judgements, f"{where}, rebuilt")
        assert {(j.a, j.b): j.verdict for j in corpus.judgements()} == judgements
