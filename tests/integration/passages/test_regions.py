"""Regions: passages of a document joined across gaps, equal in Python and SQL."""

from __future__ import annotations

import random
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.results import Region

COLUMNS = "key, share, in_text, words_in_text, in_document, words_in_document, passages"


def in_sql(connection: Connection, text: str, **named: Any) -> list[tuple[Any, ...]]:
    names = "".join(f", {name} => %({name})s" for name in named)
    query = f"SELECT {COLUMNS} FROM textsim.regions('c', %(text)s{names})"
    return connection.execute(query.encode(), {"text": text, **named}).fetchall()


def as_in_sql(region: Region) -> tuple[Any, ...]:
    runs = [
        {"words": p.words, "in_text": p.in_text, "in_document": p.in_document}
        for p in region.passages
    ]
    return (*region[:6], runs)


def words(rng: random.Random, count: int, distinct: int) -> list[str]:
    return [f"w{rng.randrange(distinct) * 2654435761 % 2**32:x}" for _ in range(count)]


@pytest.mark.parametrize(
    "settings", [{}, {"shingle": "char:4"}, {"stop_words": ("w0", "w9e3779b1")}]
)
def test_regions_are_the_passages_joined_and_equal_in_sql(
    db: ts.Database, connection: Connection, seed: int, settings: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    corpus = db.create_corpus("c", passages=5, **settings)
    # A run of characters at more than ten places of a text is parted in SQL.
    few = 100 if "shingle" in settings else 9
    texts = {f"d{n}": words(rng, rng.choice((20, 200)), rng.choice((few, 200))) for n in range(12)}
    documents = [(key, " ".join(each)) for key, each in texts.items()]
    corpus.add_many(documents[:8])
    for key, text in documents[8:]:
        connection.execute("SELECT textsim.add('c', %s, %s)", (key, text))  # words without ids
    joined = shortened = 0
    for number in range(300):
        if number >= 12 and joined > 3 and shortened > 0:
            break
        source, start, copied = rng.choice(list(texts.values())), 0, list[str]()
        for _ in range(rng.randrange(1, 7)):
            start = rng.choice((start, rng.randrange(len(source))))
            size = rng.randrange(4, 15)
            copied += source[start : start + size] + words(rng, rng.choice((0, 3, 9, 60)), 999)
            start += size + rng.choice((0, 2, 9))
        text, gap = " ".join(copied), rng.choice((0, 1, 5, 20, 50))
        regions = corpus.regions(text, gap)
        assert in_sql(connection, text, gap=gap) == [as_in_sql(each) for each in regions]
        passages = [passage for region in regions for passage in region.passages]
        assert sorted(passages) == sorted(corpus.passages(text))
        for region in regions:
            assert len(region.passages) == 1 or region.share >= 0.34
            ends = [(p.in_text + p.words, p.in_document + p.words) for p in region.passages]
            assert region.in_text + region.words_in_text == max(end for end, _ in ends)
            assert region.in_document + region.words_in_document == max(end for _, end in ends)
            assert region.start == min(p.start or 0 for p in region.passages)
            joined += len(region.passages) > 1
        shortened += len(corpus.regions(text, 10_000)) > len({each.key for each in passages})
    assert joined > 3
    assert shortened > 0


def test_a_copy_with_changed_words_is_one_region(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", passages=5)
    lines = [f"line {n} of the law says a{n} b{n} c{n}" for n in range(6)]
    corpus.add("law", " ".join(lines))
    changed = [line.replace(f"a{n}", "other") for n, line in enumerate(lines)]
    (region,) = corpus.regions(f"so it says {' '.join(changed)} at last", gap=3)
    assert (region.in_text, region.words_in_text, region.words_in_document) == (3, 51, 51)
    assert region.share == pytest.approx(46 / 51)
    # One long gap divides it, in the text or in the document.
    text = " ".join([*changed[:3], *(f"x{n}" for n in range(9)), *changed[3:]])
    assert [each.words_in_text for each in corpus.regions(text, gap=5)] == [24, 24]
    assert len(corpus.regions(text, gap=12)) == 1
    assert [
        each.in_document for each in corpus.regions(" ".join(changed[:2] + changed[4:]), gap=9)
    ] == [0, 36]
    for gap in (-1, 10_001):
        with pytest.raises(ts.ConfigurationError, match="gap"):
            corpus.regions(text, gap)
        with pytest.raises(pg.InvalidParameterValue, match="gap"):
            in_sql(connection, text, gap=gap)
