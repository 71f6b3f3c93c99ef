"""Passages: every shared run of words is found, in Python and in SQL."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.passages import (
    QUOTATION,
    WORDS,
    create_corpus,
    expected,
    has_many_places,
    in_sql,
    maximal_runs,
    places,
    related_texts,
)
from tests.support.reference import without_spaces
from textsim_db.base.numba_compiler import HashArray, Int64Array
from textsim_db.results import SharedPassage
from textsim_db.sketch import fingerprints
from textsim_db.text.shingles import array_elements, shingles
from textsim_db.text.tokens import normal_form


def test_runs_of_long_documents_are_found(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    """SQL compares of a long document only the words around parts of the text."""
    rng = random.Random(seed)
    texts = [[f"w{rng.randrange(300)}" for _ in range(rng.randrange(10, 90))] for _ in range(8)]
    documents = {}
    for number in range(12):
        words = [f"w{rng.randrange(300)}" for _ in range(rng.randrange(490, 800))]
        for place in (0, len(words), rng.randrange(len(words)), rng.randrange(len(words))):
            quoted = rng.choice(texts)
            start = rng.randrange(len(quoted))
            words[place:place] = quoted[start : start + rng.randrange(WORDS - 1, 40)]
        documents[f"d{number:02}"] = " ".join(words)
    corpus = create_corpus(db)
    corpus.add_many(documents.items())
    compared = 0
    for least in (WORDS, 21):
        for text in [*map(" ".join, texts), *islice(documents.values(), 2)]:
            runs = places(corpus.passages(text, least))
            assert in_sql(connection, text, least) == runs, (text, least)
            compared += len(runs)
    assert compared > len(documents)


def test_a_passage_survives_another_form(db: ts.Database, connection: Connection) -> None:
    corpus = create_corpus(db)
    corpus.add("a", "Before it, one two three four five six seven eight nine. After it.")
    text = "ONE;\n\ntwo (three) four\nFIVE — six. Seven... EIGHT\tnine"
    assert places(corpus.passages(text)) == [("a", 9, 0, 2)]
    assert in_sql(connection, text) == [("a", 9, 0, 2)]
    assert corpus.passages("one two three four five six seven") == []
    assert corpus.passages("") == []
    assert in_sql(connection, "") == []


def test_passages_have_their_characters(db: ts.Database, seed: int) -> None:
    rng = random.Random(seed)
    corpus = create_corpus(db, stop_words=["the", "of"])
    words = ["The", "naïve", "ﬁne", "of", "漢", "ｶﾞ", "don't", "ÉTÉ", *"abcdefgh"]
    found = 0
    for number in range(15):
        document, text = (random_spelling(rng, rng.choices(words, k=60)) for _ in "ab")
        quoted = document[rng.randrange(50) : rng.randrange(50, len(document))]
        text = text[:50] + quoted + text[50:]
        corpus.add("a", document)
        for passage in corpus.passages(text):
            run = normal_form(text[passage.start : passage.end]).split()
            counted = [word for word in run if word not in ("the", "of")]
            start, end = corpus.characters(passage, document)
            in_document = normal_form(document[start:end]).split()
            assert counted == [word for word in in_document if word not in ("the", "of")]
            assert len(counted) == passage.words, (number, passage, text)
            found += 1
    assert found > 5
    with pytest.raises(ts.DocumentError, match="this is another text"):
        corpus.characters(passage, "another text")


def random_spelling(rng: random.Random, words: list[str]) -> str:
    return "".join(
        rng.choice((str.upper, str.lower, str))(word) + rng.choice((" ", "\n", ", ", " — “"))
        for word in words
    )


def test_passages_of_characters(db: ts.Database, connection: Connection, seed: int) -> None:
    rng = random.Random(seed)
    documents = related_texts(rng, 3) | {
        "漢": "漢字仮名交じり文の例文です、ほんとうに",
        "plain": "no run of these characters stands here more than once",
    }
    corpus = create_corpus(db, shingle="char:5", passages=20)
    for place, item in enumerate(documents.items()):
        if place % 3:
            corpus.add(*item)
        else:
            connection.execute("SELECT textsim.add('c', %s, %s)", item)
    forms = {key: corpus.normal_form(key) for key in documents}
    characters = {key: without_spaces(form) for key, form in forms.items()}
    compared = 0
    for key, text in documents.items():
        runs = [
            (other, *run)
            for other in forms
            for run in maximal_runs(list(characters[key]), list(characters[other]), 20)
        ]
        runs.sort(key=lambda run: (-run[1], run[0], run[3]))
        found = corpus.passages(text)
        assert places(found) == runs, key
        for passage in found:
            _, length, start, _ = passage[:4]
            own = normal_form(text[passage.start : passage.end])
            assert without_spaces(own) == characters[key][start : start + length].strip()
        windows = [characters[key][i : i + 20] for i in range(len(characters[key]) - 19)]
        if not any(windows.count(window) > 10 for window in set(windows)):
            assert in_sql(connection, text) == runs, key
            compared += len(runs)
    assert compared > 0
    assert corpus.check() == []


def test_documents_that_contain_a_text_are_found(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    documents = related_texts(random.Random(seed), 40)
    corpus = create_corpus(db, shingle="word:2")
    corpus.add_many(documents.items())
    pairs = []
    found = 0
    for key, text in documents.items():
        own = set(shingles(text, "word:2"))
        runs = expected(text, documents)
        shares = {
            other: len(own & set(shingles(document, "word:2"))) / max(len(own), 1)
            for other, document in documents.items()
        }
        # A document may share a fingerprint by a shorter run.
        matches = [match[:2] for match in corpus.query(text, 0.3, measure="containment")]
        assert {run[0] for run in runs if shares[run[0]] >= 0.3} <= dict(matches).keys()
        assert matches == sorted(matches, key=lambda match: (-match[1], match[0]))
        assert all(shares[other] == share >= 0.3 for other, share in matches)
        (many,) = corpus.query_many([text], 0.3, measure="containment")
        assert [match[:2] for match in many] == matches
        others = [match for match in matches if match[0] != key]
        neighbours = corpus.neighbours(key, 0.3, measure="containment")
        assert [match[:2] for match in neighbours] == others
        assert places(corpus.passages(corpus.normal_form(key))) == runs
        pairs += [(key, *run) for run in runs if key < run[0]]
        found += len(others)
    assert found > 5
    assert sorted(tuple(pair) for pair in corpus.shared_passages()) == sorted(pairs)
    few = {key for key, text in documents.items() if not has_many_places(text.split())}
    rows = connection.execute("SELECT * FROM textsim.shared_passages('c')").fetchall()
    of_few = [pair for pair in pairs if {*pair[:2]} <= few]
    assert sorted(row for row in rows if {*row[:2]} <= few) == sorted(of_few)


def test_a_text_shorter_than_a_passage_is_named(
    db: ts.Database, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = create_corpus(db)
    corpus.add("a", QUOTATION)
    text = "one two three four five six seven eight"
    assert len(corpus.query(text, 0.5, measure="containment")) == 1
    assert not caplog.records
    assert corpus.query("one two three", 0.5, measure="containment") == []
    assert "the text has 3 words" in caplog.text


def test_shared_passages_are_of_one_scope_and_not_expired(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create_corpus(db, scoped=True, keep_for="1 hour")
    for key, scope in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")):
        corpus.add(key, QUOTATION, scope=scope)
    connection.execute(
        "UPDATE textsim.document_1 SET expires_at = now() - interval '1 second' WHERE key = 'd'"
    )
    found = [SharedPassage("a", "c", 9, 0, 0)]
    assert list(corpus.shared_passages()) == found
    assert connection.execute("SELECT * FROM textsim.shared_passages('c')").fetchall() == found


def test_a_test_set_of_any_size_is_compared_record_by_record(db: ts.Database) -> None:
    corpus = create_corpus(db)
    corpus.add("a", QUOTATION)
    read = 0

    def records() -> Iterator[tuple[str, str]]:
        nonlocal read
        for read in range(1, 10**9):
            yield (
                f"q{read}",
                f"{'other words ' * (read % 3)}one two three four five six seven eight",
            )

    found = corpus.contamination(records())
    for number, record in enumerate(islice(found, 50), 1):
        assert (record.key, record.documents) == (f"q{number}", ["a"])
        assert record.coverage == 8 / record.words
        assert read <= number + 1
    found.close()


def test_a_wrong_record_of_a_test_set_is_named(db: ts.Database) -> None:
    corpus = create_corpus(db)
    first = ("q1", QUOTATION)
    for wrong, message in [
        (("q2", None), 'record "q2": the text is null'),
        (("q2", "a\0"), 'record "q2": the text has a NUL character at character 2'),
        ({"id": "q2", "text": QUOTATION}, "a record is of type dict; expected pairs"),
        ("q2", "a record is of type str; expected pairs"),
        (("q2", QUOTATION, "scope"), "a record has 3 values; expected its key and its text"),
    ]:
        given: Any = [first, wrong]
        records = corpus.contamination(given)
        assert next(records).key == "q1"
        with pytest.raises(ts.TextsimError, match=message):
            next(records)


def test_wrong_arguments_are_refused(db: ts.Database, connection: Connection) -> None:
    words, without = create_corpus(db), db.create_corpus("without")
    shortest = create_corpus(db, "shortest", passages=4)
    characters = create_corpus(db, "of characters", shingle="char:5")
    call = "SELECT * FROM textsim.passages('{}', 'a text', {})"
    cases: list[tuple[str, Callable[[], object], str]] = [
        (
            "expected 4 to 1000",
            lambda: create_corpus(db, "wrong", passages=1001),
            "SELECT textsim.create_corpus('wrong', passages => 1001)",
        ),
        (
            "common_passages needs passages",
            lambda: create_corpus(db, "wrong", passages=None, common_passages=True),
            "SELECT textsim.create_corpus('wrong', common_passages => true)",
        ),
        (
            f"of {WORDS} words or more, and not of 7",
            lambda: words.passages("a text", 7),
            call.format("c", 7),
        ),
        (
            f"of {WORDS} characters or more, and not of 7",
            lambda: characters.passages("a text", 7),
            call.format("of characters", 7),
        ),
        (
            "of 4 words or more, and not of 2(?s:.*)[Nn]o corpus finds shorter ones",
            lambda: shortest.passages("a text", 2),
            call.format("shortest", 2),
        ),
        ("has no passages", lambda: without.passages("a text"), call.format("without", 8)),
        (
            "max_documents is 0",
            lambda: list(words.shared_passages(max_documents=0)),
            "SELECT * FROM textsim.shared_passages('c', max_documents => 0)",
        ),
        (
            "max_documents is 0",
            lambda: words.passages("a text", max_documents=0),
            "SELECT * FROM textsim.passages('c', 'a text', max_documents => 0)",
        ),
    ]
    for message, in_python, statement in cases:
        with pytest.raises(ts.ConfigurationError, match=message):
            in_python()
        with pytest.raises(pg.Error, match=message):
            connection.execute(statement.encode())


def test_a_search_hashes_the_shingles_of_passages_at_most_once(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = create_corpus(db)
    text = f"it said {QUOTATION} again"
    corpus.add("a", text)
    corpus.add("b", f"they say {QUOTATION}")
    hashed: list[int] = []

    def counted(hashes: Int64Array) -> HashArray:
        hashed.append(len(hashes))
        return array_elements(hashes)

    monkeypatch.setattr(fingerprints, "array_elements", counted)
    searches: dict[str, tuple[Callable[[], Sequence[object]], int]] = {
        "containment": (lambda: corpus.query(text, 0.1, measure="containment"), 1),
        "of several texts": (lambda: corpus.query_many([text], 0.1, measure="containment")[0], 1),
        "of a document": (lambda: corpus.neighbours("a", 0.1, measure="containment"), 1),
        "passages": (lambda: corpus.passages(text), 1),
        "jaccard": (lambda: corpus.query(text), 0),
        "jaccard of several texts": (lambda: corpus.query_many([text])[0], 0),
    }
    for name, (search, times) in searches.items():
        hashed.clear()
        assert search(), name
        assert len(hashed) == times, name
