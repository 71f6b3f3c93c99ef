"""Texts with some edits are found by an exact corpus with the threshold that the plan gives."""

from __future__ import annotations

import random
import string

import pytest
from rapidfuzz.distance import Levenshtein

import textsim_db as ts
from benchmarks.generate import documents, edited
from tests.support.connections import Connection
from textsim_db.sketch.plan_options import lowest_similarity, plan_edits
from textsim_db.text.shingles import shingles
from textsim_db.text.tokens import normal_form


@pytest.mark.parametrize("n", [2, 3, 5])
def test_no_similarity_is_lower_and_some_are_as_low(n: int, rng: random.Random) -> None:
    letters = string.ascii_lowercase
    for _ in range(2000):
        length = rng.randrange(n, 26)
        alphabet = letters[: rng.choice([2, 5, 26])]
        text = "".join(rng.choices(alphabet, k=length))
        edits = rng.choice([1, 2, 3])
        other = edited(text, edits, rng, alphabet)
        one, two = (set(shingles(each, f"char:{n}")) for each in (text, other))
        distinct = max(len(one), len(two))
        similarity = len(one & two) / max(1, len(one | two))
        assert similarity >= lowest_similarity(edits, distinct + n - 1, n), (text, other)
    one, two = (
        set(shingles(each, f"char:{n}")) for each in (letters, letters[:12] + "9" + letters[13:])
    )
    assert len(one & two) / len(one | two) == lowest_similarity(1, 26, n)


def test_a_letter_among_characters_without_spaces_is_up_to_three_edits(rng: random.Random) -> None:
    lower = 0
    for _ in range(2000):
        text = "".join(rng.choices("日本語学校東京ab", k=rng.randrange(8, 26)))
        other = edited(text, 1, rng, "日本語ab")
        one, two = (set(shingles(each, "char:3")) for each in (text, other))
        similarity, characters = len(one & two) / len(one | two), max(len(one), len(two)) + 2
        assert similarity >= lowest_similarity(3, characters, 3), (text, other)
        lower += similarity < lowest_similarity(1, characters, 3)
    assert lower > 10


@pytest.mark.parametrize("edits", [1, 2])
def test_every_text_with_some_edits_is_found(
    db: ts.Database, connection: Connection, rng: random.Random, edits: int
) -> None:
    characters = 16 * edits
    (option,) = (each for each in plan_edits(edits, characters) if each.chosen)
    shingle = f"char:{option.n}"
    made = [text[: rng.randrange(characters, 70)] for _, text in documents(400, 15)]
    texts = {str(i): text for i, text in enumerate([*made, *(edited(t, edits, rng) for t in made)])}
    corpus = db.create_corpus("c", shingle=shingle, threshold=option.threshold, recall=1)
    corpus.add_many(texts.items())
    forms = {key: normal_form(text) for key, text in texts.items()}
    sizes = {key: len(set(shingles(text, shingle))) for key, text in texts.items()}
    asked = [edited(texts[key], edits, rng) for key in rng.sample(sorted(texts), 100)]
    near = 0
    for text, matches in zip(asked, corpus.query_many(asked), strict=True):
        form, found = normal_form(text), {match.key for match in matches}
        least = option.least_shingles - len(set(shingles(text, shingle)))
        expected = {
            key
            for key, other in forms.items()
            if (least <= 0 or sizes[key] >= option.least_shingles)
            and Levenshtein.distance(form, other, score_cutoff=edits) <= edits
        }
        assert expected <= found, text
        near += len(expected)
    assert near > 50
    query = "SELECT key FROM textsim.matches('c', %s)"
    for text in asked[:10]:
        rows = connection.execute(query, [text]).fetchall()
        assert [key for (key,) in rows] == [match.key for match in corpus.query(text)]
