"""The doubtful: matches below unique_from, and siblings, that nobody has judged."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from itertools import combinations

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.judgements import judged_groups
from textsim_db.results import Pair
from textsim_db.settings.named_values import Verdict
from textsim_db.sync import build_clusters


def texts_of(rng: random.Random) -> dict[str, str]:
    """Return variants of a few texts, in which words are replaced, and numbers in some."""
    texts = {}
    for base in range(4):
        words = [f"w{rng.choice('abcdefgh')}{rng.choice('xyz')}" for _ in range(12)]
        for variant in range(6):
            changed = [f"v{rng.choice('pqrs')}" if rng.random() < 0.05 else w for w in words]
            text = " ".join(changed)
            texts[f"{base}{variant}"] = f"{text} {rng.choice(['7', '8'])}"
    return texts


@pytest.mark.parametrize("tracked", [None, 0.4, 0.6, 0.9])
def test_pairs_that_nobody_judged(
    db: ts.Database, connection: Connection, rng: random.Random, tracked: float | None
) -> None:
    """The lists of a tracked corpus, of its pairs and of brute force are the same."""
    corpus = db.create_corpus(
        "c",
        shingle="word:1",
        threshold=0.6 if tracked != 0.4 else 0.4,
        recall=1,
        is_unique=True,
        unique_from=0.9,
        guards="numbers",
        scoped=rng.random() < 0.5,
    )
    scopes = ["x", "y"] if corpus.config.scoped else [None]
    for key, text in texts_of(rng).items():
        with suppress(ts.DuplicateError):
            corpus.add(key, text, rng.choice(scopes), unique_from=rng.choice([0.95, math.inf]))
    if tracked is not None:
        corpus.track(threshold=tracked)
        corpus.update_clusters()
        if tracked == 0.4:
            corpus.rebuild(threshold=0.6)
            corpus.update_clusters()
    for pair in rng.sample(list(corpus.pairs()), 5):
        corpus.judge(pair.a, pair.b, rng.choice([*Verdict, Verdict.SAME]))
    if tracked is not None:
        corpus.update_clusters()
    verdicts = {(each.a, each.b): str(each.verdict) for each in corpus.judgements()}
    groups, _ = judged_groups(verdicts)
    judged = set(verdicts).union(*(combinations(sorted(group), 2) for group in groups))
    open_pairs = [pair for pair in corpus.pairs() if pair[:2] not in judged]
    seen: set[tuple[str, ...]] = set()
    for siblings in (False, True):
        for scope in {None, scopes[0]}:
            expected = [
                (*pair, differs)
                for pair in sorted(open_pairs, key=lambda pair: (-pair.similarity, pair.a, pair.b))
                if (scope is None or in_scope(connection, pair.a, scope))
                and (pair.similarity < 0.9 or differing(connection, pair))
                and (siblings or not differing(connection, pair))
                for differs in [differing(connection, pair)]
            ]
            found = corpus.doubtful(scope, None, siblings=siblings)
            assert [tuple(pair) for pair in found] == expected
            seen.update({differs for *_, differs in expected})
            assert [tuple(p) for p in corpus.doubtful(scope, 2, siblings=siblings)] == expected[:2]
            rows = connection.execute(
                "SELECT * FROM textsim.doubtful('c', %s, NULL, %s)", [scope, siblings]
            ).fetchall()
            assert [(*row[:3], tuple(row[3])) for row in rows] == expected
    assert seen == {(), ("numbers",)}
    assert corpus.check() == []


def differing(connection: Connection, pair: Pair[str]) -> tuple[str, ...]:
    query = "SELECT textsim.differs('c', %s, %s)"
    ((kinds,),) = connection.execute(query, [pair.a, pair.b]).fetchall()
    return tuple(kinds)


def in_scope(connection: Connection, key: str, scope: str) -> bool:
    query = b"SELECT scope FROM textsim.document_%d WHERE key = %%s"
    ((corpus_id,),) = connection.execute(
        "SELECT id FROM textsim.corpus WHERE name = 'c'"
    ).fetchall()
    return connection.execute(query % corpus_id, [key]).fetchall() == [(scope,)]


def test_an_update_dates_new_doubtful_matches(
    db: ts.Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements of an update do, and the join that computes all matches anew dates them."""
    corpus = db.create_corpus("c", shingle="word:1", is_unique=True, unique_from=0.95)
    text = " ".join(f"w{n:02}" for n in range(20))
    corpus.track()
    for key, dates in (("a", 0), ("b", 1), ("z", 1)):
        corpus.add(key, "other words" if key == "z" else f"{text} {key}")
        connection.execute("CALL textsim.update_clusters('c')")
        assert _dates(connection) == dates
    corpus.untrack()
    monkeypatch.setattr(build_clusters, "LEAST_DOCUMENTS", 1)
    corpus.track()
    corpus.update_clusters()
    assert _dates(connection) == 1


def _dates(connection: Connection) -> int:
    ((dates,),) = connection.execute("SELECT count(since) FROM textsim.match_1").fetchall()
    return int(dates)
