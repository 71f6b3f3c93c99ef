"""Passages of hostile texts: forged fingerprints, short periods, runs at the ends, other scripts."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import textsim_db as ts
from tests.support import passages
from tests.support.connections import Connection
from tests.support.passages import (
    WORDS,
    Run,
    create_corpus,
    has_many_places,
    in_sql,
    places,
    related_texts,
)
from textsim_db.sketch.fingerprints import fingerprints_of_shingles, passage_shingles
from textsim_db.text.shingles import array_elements
from textsim_db.text.tokens import normal_form, tokens_of


def expected(text: str, documents: dict[str, str], least: int = WORDS) -> list[Run]:
    """Return the passages of a text by brute force."""
    forms = {key: normal_form(document) for key, document in documents.items()}
    return passages.expected(normal_form(text), forms, least)


# Forged fingerprints


def forged_shingles(rng: random.Random, count: int) -> list[str]:
    """Return shingles of four words whose values are small, and have the same low half.

    The value of a shingle is a sum of multiples of the hashes of its words. So all sums of two words
    before, and of two words after, are compared.
    """
    vocabulary = np.array([f"w{rng.randrange(10**9)}" for _ in range(1400)])
    hashes = array_elements(tokens_of([" ".join(vocabulary).encode()]).hashes)
    first, last = (
        (hashes[:, None] * np.uint64(31**power) + hashes * np.uint64(31 ** (power - 1))).ravel()
        for power in (3, 1)
    )
    low = np.uint64(2**32 - 1)
    order = np.argsort(last & low)
    in_order = (last & low)[order]
    rest = (np.uint64(rng.randrange(2**32)) - first) & low
    places = np.searchsorted(in_order, rest)
    has_rest = np.flatnonzero(in_order[places % len(order)] == rest)
    ends = order[places[has_rest]]
    values = first[has_rest] + last[ends] + np.uint64(31**4)
    smallest = np.argsort(values.astype(np.int64))[:count]
    pairs = ((has_rest[i], ends[i]) for i in smallest)
    return [
        " ".join(vocabulary[[*divmod(int(a), len(vocabulary)), *divmod(int(b), len(vocabulary))]])
        for a, b in pairs
    ]


@pytest.mark.more
def test_a_crowd_that_shares_a_forged_fingerprint_shares_no_passage(
    db: ts.Database, connection: Connection, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(seed)
    texts = [
        f"{shingle} {' '.join(f'x{rng.randrange(10**9)}' for _ in range(4))}"
        for shingle in forged_shingles(rng, 200)
    ]
    corpus = create_corpus(db)
    corpus.add_many((f"{number:03}", text) for number, text in enumerate(texts))
    statement = "SELECT array_agg(document_id) FROM textsim.passage_1 GROUP BY fingerprint"
    crowd = max((row[0] for row in connection.execute(statement)), key=len)
    assert len(crowd) > 70
    statement = "SELECT key FROM textsim.document_1 WHERE id = ANY (%s) ORDER BY key"
    keys = [row[0] for row in connection.execute(statement, [crowd])]
    text = f"before {texts[int(keys[0])]} after"
    assert places(corpus.passages(text)) == in_sql(connection, text) == [(keys[0], WORDS, 1, 0)]
    assert [match.key for match in corpus.query(text, 0.1, measure="containment")] == keys[:1]
    assert list(corpus.shared_passages()) == []
    assert not caplog.records
    assert list(corpus.shared_passages(max_documents=60)) == []
    assert "more than 60 documents" in caplog.text
    guarded = corpus.passages(text, max_documents=60)
    assert [run.documents for run in guarded.common] == [len(crowd)]
    assert corpus.check() == []


# Shingles that only the low half of their values distinguishes


def alike_shingles(rng: random.Random) -> list[list[str]]:
    """Return texts of six words: two shingles of three words whose values have equal high halves.

    Each pair makes two texts, one with either shingle first.
    """
    words = np.array([f"w{rng.randrange(10**9)}" for _ in range(900)])
    hashes = array_elements(tokens_of([" ".join(words).encode()]).hashes)
    first, second = hashes[:1] * np.uint64(31**2), hashes[1:, None] * np.uint64(31)
    values = np.uint64(31**3) + first + second + hashes[1:]
    high = (values.ravel().view(np.int64) >> 32).astype(np.int32)
    order = np.argsort(high, kind="stable")
    places = order[:-1][np.diff(high[order]) == 0]
    following = order[1:][np.diff(high[order]) == 0]

    def shingle(place: int) -> list[str]:
        return [str(words[0]), *(str(words[1 + each]) for each in divmod(place, len(words) - 1))]

    pairs = [(shingle(int(a)), shingle(int(b))) for a, b in zip(places, following, strict=True)]
    return [text for a, b in pairs for text in (a + b, b + a)]


def test_of_equal_high_halves_the_rightmost_shingle_is_chosen(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    """The low halves do not matter, in the bulk load, in a search, and in SQL."""
    corpus = db.create_corpus("c", passages=6)
    texts, chosen = [], []
    for words in alike_shingles(random.Random(seed))[:400]:
        shingles = passage_shingles(tokens_of([" ".join(words).encode()]), corpus.config)
        high = (shingles.values >> 32).tolist()
        assert high[0] == high[3]
        if high[0] < min(high[1:3]):
            texts.append(" ".join(words))
            chosen.append([int(shingles.values[3].astype(np.int32))])
            assert fingerprints_of_shingles(shingles, corpus.config).tolist() == chosen[-1]
    assert len(texts) > 10
    corpus.add_many((f"bulk {number:03}", text) for number, text in enumerate(texts))
    for number, text in enumerate(texts):
        connection.execute("SELECT textsim.add('c', %s, %s)", [f"sql {number:03}", text])
    statement = "SELECT fingerprints FROM textsim.document_1 ORDER BY key"
    assert [row[0] for row in connection.execute(statement)] == chosen * 2


# Periodic texts


def periodic(rng: random.Random) -> str:
    """Return a text of a short period, with a few other words."""
    words = (rng.sample("abc", rng.randrange(1, 4)) * 60)[: rng.randrange(8, 60)]
    for _ in range(rng.randrange(3)):
        words[rng.randrange(len(words))] = rng.choice("abcd")
    return " ".join(words)


def test_one_word_many_times(db: ts.Database, connection: Connection) -> None:
    corpus = create_corpus(db)
    corpus.add("long", "again " * 100_000)
    assert places(corpus.passages("again " * 100_000)) == [("long", 100_000, 0, 0)]
    assert places(corpus.passages(f"once {'again ' * 200} once")) == [("long", 200, 1, 0)]
    assert in_sql(connection, "again " * 200)[0][0] == "long"
    assert list(corpus.shared_passages()) == []


# Long texts


def test_sql_compares_long_texts_without_copies_of_them(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    """Rows that are hashed or sorted have a few words each, so the server needs no temporary files."""
    rng = random.Random(seed)
    long, short = (" ".join(f"w{rng.randrange(10**6)}" for _ in range(n)) for n in (9000, 30))
    corpus = create_corpus(db)
    corpus.add_many([("long", f"before {long}"), ("short", f"before {short}")])
    connection.execute("SELECT textsim.add('c', 'waiting', %s)", [f"its words have no ids {long}"])
    connection.execute("SET temp_file_limit = '3MB'")
    runs = [("long", 9000, 0, 1), ("waiting", 9000, 0, 5), ("short", 30, 9000, 1)]
    text = f"{long} {short}"
    assert places(corpus.passages(text)) == in_sql(connection, text) == runs


# Scripts without spaces

SCRIPTS = {
    "Han": "漢字文章検索比較重複部分引用条項契約家屋庭園樹木同意借主",
    "kana": "あいうえおかきくけこさしすせそがぎぐアイウエオカキクケコガギグ",
    "half-width": "ｱｲｳｴｵｶｷｸｹｺｶﾞｷﾞｸﾞ",
    "Thai": "กขคงจฉชซญดตถทธนบปผพฟภมยรลวศสหอ" + "\u0e31\u0e34\u0e35\u0e38\u0e48\u0e49",
    "Khmer": "កខគឃងចឆជឈញ" + "\u17b6\u17b7\u17d2",
}


def spaceless(rng: random.Random, characters: str) -> str:
    """Return a text of a script, with marks anywhere, and now and then a Latin word or punctuation."""
    others = ["、", "。", " ", "\n", " Latin ", "7"]
    return "".join(
        rng.choice(characters) if rng.random() < 0.9 else rng.choice(others)
        for _ in range(rng.randrange(80))
    )


Texts = Callable[[random.Random], tuple[dict[str, str], list[str]]]
"""Makes documents, and texts to look for."""


def with_quotations(rng: random.Random) -> tuple[dict[str, str], list[str]]:
    documents = related_texts(rng, 20)
    return documents, list(documents.values())


def with_periods(rng: random.Random) -> tuple[dict[str, str], list[str]]:
    documents = {f"{number:02}": periodic(rng) for number in range(12)}
    return documents, [*documents.values(), *(periodic(rng) for _ in range(8))]


def with_ends(rng: random.Random) -> tuple[dict[str, str], list[str]]:
    """No run goes over the end of a text."""
    documents = {
        f"{number:02}": " ".join(f"w{rng.randrange(10**9)}" for _ in range(rng.randrange(1, 20)))
        for number in range(30)
    }
    texts = []
    for a, b in pairwise(documents.values()):
        end, start = a.split()[-rng.randrange(1, 20) :], b.split()[: rng.randrange(1, 20)]
        texts += [" ".join(end + start), " ".join(start + end), f"{b} {a}", f"{a} {b}"]
    return documents, texts


def without_spaces(rng: random.Random) -> tuple[dict[str, str], list[str]]:
    documents = {
        f"{script} {number}": spaceless(rng, characters)
        for script, characters in SCRIPTS.items()
        for number in range(5)
    }
    texts = []
    for key, document in documents.items():
        start, end = sorted(rng.choices(range(len(document) + 1), k=2))
        own = spaceless(rng, SCRIPTS[key.split(" ")[0]])
        texts.append(own[:20] + document[start:end] + own[20:])
    return documents, texts


@pytest.mark.more
@pytest.mark.parametrize("make", [with_quotations, with_periods, with_ends, without_spaces])
def test_every_run_is_found(
    db: ts.Database, connection: Connection, rng: random.Random, make: Texts
) -> None:
    documents, texts = make(rng)
    corpus = create_corpus(db)
    for number, item in enumerate(documents.items()):
        if number % 3:
            corpus.add(*item)
        else:  # its words have no ids
            connection.execute("SELECT textsim.add('c', %s, %s)", item)
    found = 0
    for text in texts:
        runs = expected(text, documents)
        assert places(corpus.passages(text)) == runs, text
        assert places(corpus.passages(text, 12)) == expected(text, documents, 12), text
        of_sql = in_sql(connection, text)
        if not has_many_places(text.split()):
            assert of_sql == runs, text
            found += len(runs)
        # Else a run may be returned in parts.
        assert {run[0] for run in of_sql} == {run[0] for run in runs}, text
        for key, words, in_text, in_document in of_sql if make is with_periods else ():
            run = documents[key].split()[in_document : in_document + words]
            assert run == text.split()[in_text : in_text + words], text
    assert found > 0
