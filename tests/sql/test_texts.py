"""The SQL functions of texts equal those of Python, for every text."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from psycopg.errors import FeatureNotSupported, InvalidParameterValue

import textsim_db as ts
from tests.support import reference
from tests.support.connections import Connection, value
from tests.support.parity import create_corpora, differences
from tests.support.random_texts import ALPHABET, JAMO, MARKS, random_text
from tests.support.real_corpora import records
from tests.support.sampling import sample
from textsim_db.results import Passage
from textsim_db.sketch.sketch_texts import GOLDEN_TEXT, places_of_words
from textsim_db.text.tokens import normal_form


@pytest.mark.parametrize(
    "name",
    ["random", *sample(["languages", "licences", "arxiv", "scripture", "articles"], 5, "more")],
)
def test_texts_have_equal_buckets_in_sql_and_python(
    db: ts.Database, connection: Connection, rng: random.Random, seed: int, name: str
) -> None:
    if name == "random":
        texts = [GOLDEN_TEXT, "", " ", *(random_text(rng) for _ in range(300))]
    else:
        texts = [record["text"][:3000] for record in rng.sample(records(name), 25)]
    corpora = create_corpora(db)
    assert list(differences(connection, corpora, texts)) == [], f"--seed {seed}"


SIGNED = [
    "c++d",
    "a-5",
    "--5",
    "5²",
    "ab²",
    "abc²",
    "½",
    "C+++",
    "<\u0338",
    "bud-\nget",
    "בְּ",
    "ﷺ",
    "A#1",
    "\u1112\u1161\u11ab",
]
NOT_ALONE = re.compile(r"(?<![\u1100-\u11ff])[\u1161-\u11ff]+|[\u3130-\u318f\uffa0-\uffdc]|²")
"""Letters of Hangul outside a syllable, and digits that stand apart only after three letters.

The place of a word with such a character may have the characters before it, too.
"""


@pytest.mark.parametrize("stop_words", [[], ["a", "b", "5", "ä"]])
def test_words_have_equal_places_in_sql_and_python(
    db: ts.Database, connection: Connection, rng: random.Random, stop_words: list[str]
) -> None:
    corpus = db.create_corpus("c", stop_words=stop_words)
    compared = 0
    for _ in range(100):
        pieces = (rng.choice([random_text(rng)[:60], *SIGNED]) for _ in range(rng.randrange(1, 9)))
        text = "".join(
            (piece if piece in SIGNED else NOT_ALONE.sub(" ", piece))
            + rng.choice([" ", ", ", "\n"])
            for piece in pieces
        )
        words = len(places_of_words(text, corpus.config)[0])
        for first in rng.sample(range(words), min(words, 3)):
            count = rng.randrange(1, words - first + 1)
            query = "SELECT lower(r), upper(r) FROM textsim.characters('c', %s, %s, %s) r"
            row = connection.execute(query, (text, first, count)).fetchone()
            passage = Passage("a", count, 0, first)
            assert row == corpus.characters(passage, text), ascii((text, first, count))
            compared += 1
    assert compared > 100
    with pytest.raises(
        InvalidParameterValue, match="the text has 2 words, so it has no 1 words after 2"
    ):
        connection.execute("SELECT textsim.characters('c', 'x y', 2, 1)")


@pytest.mark.parametrize(
    "settings", [{"shingle": "char:5"}, {"boilerplate": 0.5}, {"stop_words": "auto"}]
)
def test_places_that_only_python_finds(
    db: ts.Database, connection: Connection, settings: dict[str, Any]
) -> None:
    db.create_corpus("c", **settings)
    with pytest.raises(
        FeatureNotSupported, match='corpus "c" has shingles of characters, boilerplate'
    ):
        connection.execute("SELECT textsim.characters('c', 'x y', 0, 1)")


def test_functions_of_texts_handle_empty_and_null_arguments(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c", shingle="word:1")
    assert value(connection, "SELECT textsim.normal_form(NULL)") is None
    assert value(connection, "SELECT textsim.jaccard('c', 'a b c', 'B, c; d')") == 0.5
    assert value(connection, "SELECT textsim.jaccard('c', '', '')") == 0
    assert value(connection, "SELECT count(*) FROM textsim.matches('c', '')") == 0
    assert value(connection, "SELECT count(*) FROM textsim.matches('c', NULL)") == 0
    db.create_corpus("stopped", stop_words=["the"])
    for corpus, body in (("c", None), ("stopped", None)):
        assert value(connection, "SELECT textsim.jaccard(%s, 'a', %s)", [corpus, body]) is None


@pytest.mark.parametrize("marks", sample(["\u0301\u0316", "\u0316\uff9e", "\u0344\u0316"], 3))
def test_millions_of_marks_take_linear_time(shared_connection: Connection, marks: str) -> None:
    half = 2_000_000
    for text in ("a" + marks * half, "a" + marks[0] * half + marks[1] * half):
        form = value(shared_connection, "SELECT textsim.normal_form(%s)", [text])
        assert form == reference.normal_form(text[:31])


@pytest.mark.parametrize(
    "alphabet", sample([ALPHABET, JAMO + MARKS, JAMO, "\u1161", "ﷺ", "漢\u0301", "a é-"], 7)
)
def test_texts_of_several_pieces_have_the_same_normal_form_in_sql(
    shared_connection: Connection, alphabet: str, rng: random.Random
) -> None:
    # A piece has 65,536 bytes: separators, marks and syllables lie across the edges of pieces.
    for _ in range(2):
        text = "".join(rng.choices(alphabet, k=80_000)) + "é"
        assert value(shared_connection, "SELECT textsim.normal_form(%s)", [text]) == normal_form(
            text
        )
    for text in ("-" * 80_000, "é" + "-" * 80_000, "-" * 80_000 + "é"):
        assert value(shared_connection, "SELECT textsim.normal_form(%s)", [text]) == normal_form(
            text
        )
