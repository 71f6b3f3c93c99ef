"""The guards of texts are equal in SQL and Python."""

from __future__ import annotations

import hashlib
import random
from itertools import chain, combinations, pairwise

from tests.support.connections import Connection, value
from tests.support.random_texts import random_text
from textsim_db.settings.corpus_settings import GUARD_LISTS, CorpusSettings
from textsim_db.settings.named_values import Guard, GuardRules
from textsim_db.sketch.sketch_texts import sketch
from textsim_db.text import distinctions, guard_lines, guards
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import normal_form, tokenize, words

KINDS = [list(kinds) for k in range(5) for kinds in combinations([*map(str, Guard)], k)]
GUARD_WORDS = ["draft", "e", "monday", "没", "안", "x1"]
GUARD_FILLERS = ["7", "7m", "bitte", "d", "e", "m", "my", "漢"]
WORDS = [
    *distinctions.NEGATIONS,
    *" ".join(distinctions.NEGATION_PHRASES).split(),
    *GUARD_WORDS,
    *GUARD_FILLERS,
    *distinctions.FILLERS,
]
CLOSE = [
    *distinctions.ENDS_OF_NE,
    "ne",
    "n",
    *guard_lines.UNITS,
    *guard_lines.ORDINALS,
    *distinctions.HOSTS,
    *distinctions.CLITICS,
]
NUMBERS = [
    "-5",
    "7",
    "70",
    "1.2.1",
    "1.1.2",
    "٣",
    "m²",
    "½",
    "covid19",
    "10⁵",
    "2없",
    "않아요",
    "있없",
    "26th",
    "-26th",
    "26thm",
    "2e",
    "-8w",
    "8wth",
]


def awkward_text(rng: random.Random) -> str:
    """Return a text of random characters, or of words that a guard looks at and some others."""
    if rng.random() < 0.2:
        return random_text(rng)
    choices = [
        *rng.choices(WORDS, k=5),
        *rng.choices(CLOSE, k=4),
        *rng.choices(NUMBERS, k=3),
        *("the", "c++", "t", "?!", "漢"),
    ]
    separators = [" ", " ", "\n", "", "-", ". ", "'"]
    return "".join(
        rng.choice(choices) + rng.choice(separators) for _ in range(rng.choice((0, 1, 2, 5, 30)))
    )


def test_negations_are_words_of_normal_forms_and_the_same_in_sql(
    shared_connection: Connection,
) -> None:
    negations, phrases = sorted(distinctions.NEGATIONS), sorted(distinctions.NEGATION_PHRASES)
    assert value(shared_connection, "SELECT textsim._word_list('negations')") == "|".join(negations)
    assert value(shared_connection, "SELECT textsim._word_list('negation_phrases')") == "|".join(
        phrases
    )
    assert [normal_form(each) for each in [*negations, *phrases]] == [*negations, *phrases]
    assert distinctions.NEGATIONS.isdisjoint(" ".join(phrases).split())
    assert {len(each.split()) for each in phrases} == {2, 3}
    assert {(each.encode()[0], len(each.encode())) for each in distinctions.NEGATION_SYLLABLES} == {
        (0xEC, 3)
    }


def test_fillers_and_units_are_words_of_normal_forms_and_the_same_in_sql(
    shared_connection: Connection,
) -> None:
    lists = {
        "fillers": sorted(distinctions.FILLERS),
        "hosts": sorted(distinctions.HOSTS),
        "clitics": sorted(distinctions.CLITICS),
        "ordinals": list(guard_lines.ORDINALS),
        "units": sorted(guard_lines.UNITS),
    }
    everything = [
        *sorted(distinctions.NEGATIONS),
        *sorted(distinctions.NEGATION_PHRASES),
        distinctions.NEGATION_SYLLABLES,
        *sorted(distinctions.ENDS_OF_NE),
        *sorted(distinctions.AFTER_N),
        *chain.from_iterable(lists.values()),
    ]
    frozen = hashlib.sha256("|".join(everything).encode()).hexdigest()[:16]
    assert frozen == "e723bea4ea5d5d4d", "a list has changed: raise GUARD_LISTS, here and in SQL"
    assert value(shared_connection, "SELECT textsim._guard_lists()") == GUARD_LISTS == 3
    lists["numerals"] = sorted(distinctions.NUMERALS)
    lists["compared_units"] = sorted(distinctions.COMPARED_UNITS)
    for name, listed in lists.items():
        assert value(shared_connection, f"SELECT textsim._word_list('{name}')") == "|".join(listed)
        assert [normal_form(word) for word in listed] == listed, name
    assert distinctions.FILLERS.isdisjoint(distinctions.NEGATIONS)
    assert distinctions.FILLERS.isdisjoint(
        distinctions.HOSTS | distinctions.CLITICS | guard_lines.UNITS
    )
    assert distinctions.HOSTS.isdisjoint(distinctions.CLITICS)


def test_guards_are_equal_in_sql_and_python(
    shared_connection: Connection, rng: random.Random, seed: int
) -> None:
    texts = ["", *(awkward_text(rng) for _ in range(500))]
    tokens = tokenize([to_bytes(text) for text in texts])
    forms = tokens.forms()
    for kinds in KINDS:
        rules = GuardRules(tuple(kinds), tuple(GUARD_WORDS), tuple(GUARD_FILLERS))
        lines = [guard_lines.guard_lines(form.split(), rules) for form in forms]
        hashes = guards.guards_of(tokens, rules).tolist() if kinds else [None] * len(texts)
        rows = shared_connection.execute(
            "SELECT textsim._guard_lines(%(kinds)s::text[], %(words)s::text[], %(fillers)s::text[], f), "
            "textsim._guard(%(kinds)s, %(words)s, %(fillers)s, f) FROM unnest(%(forms)s::text[]) f",
            {"kinds": kinds, "words": GUARD_WORDS, "fillers": GUARD_FILLERS, "forms": forms},
        ).fetchall()
        assert [row[0] for row in rows] == lines, f"--seed {seed}"
        assert [row[1] for row in rows] == hashes, f"--seed {seed}"
    pairs = [*pairwise(forms)]
    differing = shared_connection.execute(
        "SELECT textsim._differing(%s::text[], %s::text[], %s::text[], a, b) "
        "FROM unnest(%s::text[], %s::text[]) f (a, b)",
        [KINDS[-1], GUARD_WORDS, GUARD_FILLERS, *map(list, zip(*pairs, strict=True))],
    ).fetchall()
    assert [row[0] for row in differing] == [
        [*guard_lines.elements_apart(a.split(), b.split(), rules)] for a, b in pairs
    ], f"--seed {seed}"


def test_words_that_a_guard_counts_are_the_same_in_sql_and_python(
    shared_connection: Connection,
) -> None:
    texts = [*WORDS, *CLOSE, *NUMBERS, "the", "c++"]
    everything = sorted({word for text in texts for word in words(text)})
    for kinds in KINDS:
        rules = GuardRules(tuple(kinds), tuple(GUARD_WORDS), tuple(GUARD_FILLERS))
        rows = shared_connection.execute(
            "SELECT textsim._is_counted(%s::text[], %s::text[], %s::text[], w) "
            "FROM unnest(%s::text[]) w",
            [kinds, GUARD_WORDS, GUARD_FILLERS, everything],
        ).fetchall()
        assert [row[0] for row in rows] == [
            guard_lines.is_counted(word, rules) for word in everything
        ]


def test_a_corpus_without_guards_has_none(shared_connection: Connection) -> None:
    assert value(shared_connection, "SELECT textsim._guard(NULL, '{}', '{}', 'a 1')") is None
    assert sketch([b"a 1"], CorpusSettings().complete()).guards is None
