"""textsim.pairs makes the shingles of a document once, whatever its length."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sampling import sample

CALLS = (
    "SELECT coalesce(sum(pg_stat_get_xact_function_calls(oid)), 0) FROM pg_proc WHERE proname = %s"
)
TOO_LONG = 17_000
"""Words of a document whose shingles have no room in a tsvector."""


def families(rng: random.Random, lengths: list[int], members: int = 6) -> Iterator[tuple[str, str]]:
    """Yield near-copies and copies of texts with these numbers of words."""
    for family, length in enumerate(lengths):
        words = [f"w{rng.randrange(3000)}" for _ in range(length)]
        for member in range(members):
            yield f"{family} {member}", " ".join(words)
            if member % 3:  # else the next member is a copy
                for _ in range(1 + length // 100):
                    words[rng.randrange(length)] = f"x{rng.randrange(9)}"


def pairs_of_sql(
    connection: Connection, name: str, threshold: float
) -> list[tuple[str, str, float]]:
    return sorted(
        connection.execute("SELECT * FROM textsim.pairs(%s, %s)", [name, threshold]).fetchall()
    )


@pytest.mark.parametrize("recall", sample([0.95, 1], 2))
def test_filled_in_templates_give_the_results_of_python(
    db: ts.Database, connection: Connection, rng: random.Random, recall: float
) -> None:
    """The documents share most of their shingles, and one pair in nine matches."""
    corpus = db.create_corpus("c", recall=recall)
    text = "{} on {} was reported and the user was told that the next free colleague takes it"
    tickets = [(f"{i}", text.format(rng.randrange(99), rng.randrange(9))) for i in range(300)]
    corpus.add_many(tickets[:200])
    for ticket in tickets[200:]:  # their words have no ids
        connection.execute("SELECT textsim.add('c', %s, %s)", ticket)
    expected = sorted(tuple(pair) for pair in corpus.pairs())
    assert pairs_of_sql(connection, "c", 0.8) == expected
    assert len(expected) > 3000
    removed = connection.execute("SELECT * FROM textsim.duplicates('c')").fetchall()
    assert sorted(removed) == sorted(tuple(each) for each in corpus.duplicates())


@pytest.mark.more
def test_long_documents_are_compared_without_tsvectors(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = db.create_corpus("c", threshold=0.5)
    short, long = families(rng, [TOO_LONG // 2, TOO_LONG], 3), ("word " * TOO_LONG, "w" * 5000)
    documents = [
        *short,
        *((f"long {i} {j}", text) for j, text in enumerate(long) for i in range(2)),
    ]
    corpus.add_many(documents[::2])
    for key, text in documents[1::2]:
        connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
    expected = sorted(tuple(pair) for pair in corpus.pairs())
    assert pairs_of_sql(connection, "c", 0.5) == expected
    assert len(expected) == 8


@pytest.mark.parametrize("shingle", sample(["word:3", "word:5"], 2))
def test_no_pair_makes_shingles_again(
    db: ts.Database, connection: Connection, rng: random.Random, shingle: str
) -> None:
    corpus = db.create_corpus("c", shingle=shingle, threshold=0.5)
    documents = list(families(rng, [300], 30))
    corpus.add_many(documents)
    with connection.transaction():
        connection.execute("SET LOCAL track_functions = 'all'")
        assert len(pairs_of_sql(connection, "c", 0.5)) > 100
        assert value(connection, CALLS, ["_similarity"]) == 0
        assert value(connection, CALLS, ["_shingle_set"]) <= len(documents)


def test_long_texts_of_characters_are_cut_once(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = db.create_corpus("c", shingle="char:8", threshold=0.5)
    base = [rng.choice("abcdefgh ") for _ in range(80_000)]
    for key in "abcdef":
        base[rng.randrange(len(base))] = "é"
        corpus.add(key, "".join(base))
    connection.execute("SELECT textsim.add('c', 'short', 'é')")
    expected = sorted(tuple(pair) for pair in corpus.pairs())
    with connection.transaction():
        connection.execute("SET LOCAL track_functions = 'all'")
        assert pairs_of_sql(connection, "c", 0.5) == expected
        assert value(connection, CALLS, ["_without_spaces"]) == 6
        assert value(connection, CALLS, ["_similarity"]) == 0
    assert len(expected) == 15
