"""Explanations: tokens add up to the text, and differences turn one text into the other."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from tests.support.html import Html
from tests.support.random_texts import random_text
from textsim_db.errors import ConfigurationError, DocumentError
from textsim_db.measures import MEASURES, jaccard, levenshtein, shingles, signature_estimate, words
from textsim_db.measures.explanation import explain
from textsim_db.measures.word_diff import Change, differences, tokens
from textsim_db.review.report_pages import comparison_page
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.sketch.sketch_texts import signature
from textsim_db.text import distinctions
from textsim_db.text.tokens import normal_form

TEXTS = st.lists(
    st.sampled_from(
        ["The", "cat,", "isn't", "3.5%", "漢字", "กิ่ง", "(b)", "…", "\n", "e\u0301t", "a-b"]
    )
).map(" ".join)


@given(TEXTS, TEXTS)
def test_runs_add_up_to_both_texts(a: str, b: str) -> None:
    tokens_of_a, tokens_of_b = tokens(a), tokens(b)
    runs = differences(tokens_of_a, tokens_of_b).diff
    assert "".join(run.a for run in runs) == a
    assert "".join(run.b for run in runs) == b
    for change, left, right in runs:
        assert (change is Change.ADDED) == (not left and bool(right))
        assert (change is Change.REMOVED) == (not right and bool(left))
        if change is Change.SAME:
            assert [t.word for t in tokens(left)] == [t.word for t in tokens(right)]
    changed = any(run.change is not Change.SAME for run in runs)
    assert changed == ([t.word for t in tokens_of_a] != [t.word for t in tokens_of_b])


def test_tokens_have_the_words_of_the_normal_form(rng: random.Random) -> None:
    for _ in range(1000):
        text = random_text(rng)
        runs = tokens(text)
        assert "".join(token.text for token in runs) == text
        assert " ".join(token.word for token in runs if token.word) == normal_form(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-\u0301a b", ["-\u0301a ", "b"]),  # a mark begins a word
        ("a-x™b", ["a-", "x™", "b"]),
        ("a\u0870'a", ["a\u0870'", "a"]),  # a letter of Unicode 14.0 separates words
        ("don\u0870't", ["don\u0870'", "t"]),
        ("x½ 5½", ["x", "½ ", "5", "½"]),
        ("the com-\n mittee, Mon\u00adday", ["the ", "com-\n mittee, ", "Mon\u00adday"]),
        ("(don't) 'CANNOT'", ["(do", "n't) ", "'CAN", "NOT'"]),
        ("n't", ["n'", "t"]),
    ],
)
def test_marks_symbols_and_contractions_are_split(text: str, expected: list[str]) -> None:
    assert [token.text for token in tokens(text)] == expected


def test_contractions_are_split_into_words() -> None:
    for text, expected in (
        ("Don't go; it CAN'T be 漢字.", "do not go it can not be 漢 字"),
        ("he paid in CA; wo liegt das", "he paid in ca wo liegt das"),
    ):
        assert " ".join(token.word for token in tokens(text)) == expected
    for text in ("서울-부산 열차", "한국(서울)에서", "ሰላም-ዓለም", "abc漢字-กิ่งกข"):
        assert [token.word for token in tokens(text)] == words(text)
    assert tokens("") == []
    assert tokens(" ?!") == [("", " ?!")]
    assert tokens(" (a) b") == [("a", " (a) "), ("b", "b")]
    with pytest.raises(DocumentError, match="NUL character"):
        tokens("a\0b")


DIFFERENCES = {
    "numbers": [
        *(("pay 5 euro", "pay 50 euro"), ("part I of it", "part 2 of it")),
        *(("due 2024-05-01", "due 2024-06-01"), ("covid19 is bad", "covid20 is bad")),
        *(("the 3rd of", "the 4th of"), ("at −5 degrees", "at 5 degrees")),
    ],
    "numerals": [
        *(("part II of the plan", "part III of the plan"), ("for two days", "for twelve days")),
        *(("On bridges. Part I", "On bridges. Part II"), ("chapter IV of it", "chapter V of it")),
        *(("chapter V of it", "chapter VI of it"), ("chapter X of it", "chapter XI of it")),
        *(("volume XX", "volume XXI"), ("part one of it", "part two of it")),
        *(("Teil eins", "Teil zwei"), ("John Smith Jr", "John Smith Sr")),
        *(("John Smith Junior", "John Smith Senior"), ("第三章", "第五章")),
    ],
    "": [
        *(("one day", "any day"), ("I saw it", "we saw it"), ("a senior clerk", "an old clerk")),
        *(("red and green", "green and red and"), ("the same", "The same!"), ("", "5")),
        *(("---", "5"), ("I can't go", "I cannot go"), ("covid19 is bad", "apple3 is bad")),
        *(("the com-\nmittee", "the committee"), ("one - two", "one, two")),
        ("ma alergię na orzechy", "ma alergii na orzechy"),
        *(("C'est vrai", "Ce n'est pas vrai"), ("Hän on täällä", "Hän ei ole täällä")),
    ],
    "order": [*(("dogs bite men", "men bite dogs"), ("狗咬人", "人咬狗"))],
    "units": [("from 20 USD to EUR", "from 20 EUR to USD")],
    "negations": [
        *(("It is safe", "It is not safe"), ("It is safe", "It isn't safe")),
        *(("es ist sicher", "es ist nicht sicher"), ("I can go", "I cannot go")),
        ("ma alergię na orzechy", "nie ma alergii na orzechy"),
        *(("with sugar", "without sugar"), ("I dont know", "I know")),
        *(("Er hat ein Auto", "Er hat kein Auto"), ("Il est là", "Il n'est pas là")),
        *(("Het is een fout", "Het is geen fout"), ("To jest prawda", "To nie jest prawda")),
        *(("He es seguro", "He no es seguro"), ("É seguro", "Não é seguro")),
        *(("Det är säkert", "Det är inte säkert"), ("Это верно", "Это не верно")),
        *(("Είναι σωστό", "Δεν είναι σωστό"), ("Bu doğru", "Bu doğru değil")),
        *(("Ez igaz", "Ez nem igaz"), ("Ini benar", "Ini tidak benar")),
        *(("Tôi biết", "Tôi không biết"), ("هذا صحيح", "هذا غير صحيح")),
        *(("זה נכון", "זה לא נכון"), ("यह सही है", "यह सही नहीं है"), ("这很安全", "这不安全")),
        *(("行きます", "行きません"), ("ปลอดภัย", "ไม่ปลอดภัย")),
    ],
    "dates, numbers": [("on Monday at 3", "on Friday at 4")],
    "numbers, units": [("pay 5 euro", "pay 50 dollars"), ("a bottle of 500 ml", "a bottle of 1 l")],
    "letters": [
        *(("Flat A, 3-B", "Flat C, 3-C"), ("a shirt of size L", "a shirt of size M")),
        ("invoice A-1001", "invoice B-1001"),
    ],
    "symbols": [
        *(("a == b", "a != b"), ("for 5 €", "for 5 $"), ("good ★★★", "good ★"), ("50 %", "50")),
        *(("5 * 3", "5 / 3"), ("blood A+", "blood A-"), ("blood A-, cold", "blood A, cold")),
        *(("C-- and C", "C++ and C#"), ("👍👍", "👎👎")),
    ],
    "dates": [*(("у понедельник", "у пятница"), ("lunedì", "giovedì"))],
}
"""Pairs of texts, by the kinds of words in which they differ."""


@pytest.mark.parametrize("kinds", DIFFERENCES)
def test_small_but_decisive_differences_are_named(kinds: str) -> None:
    expected = kinds.split(", ") if kinds else []
    for a, b in DIFFERENCES[kinds]:
        assert differences(tokens(a), tokens(b)).distinctions == expected, (a, b)
        assert differences(tokens(b), tokens(a)).distinctions == expected, (a, b)


def test_lists_of_kinds_are_words_of_normal_forms() -> None:
    for word in distinctions._KINDS:
        assert words(word) == [word]


def test_an_explanation_has_measures_shingles_and_a_diff() -> None:
    a, b = "One two three four. Five", "one two three FOUR six seven"
    explanation = explain(a, b, "word:2")
    assert explanation.words == (5, 6)
    assert explanation.measures.keys() == {*MEASURES, "containment_of_b"}
    assert explanation.measures["jaccard"] == jaccard(shingles(a, "word:2"), shingles(b, "word:2"))
    assert explanation.measures["containment"] == 3 / 4
    assert explanation.measures["containment_of_b"] == 3 / 5
    assert explanation.measures["levenshtein"] == levenshtein(words(a), words(b)) == 2
    config = CorpusSettings(shingle="word:2").complete()
    assert explanation.estimate == signature_estimate(signature(a, config), signature(b, config))
    assert explanation.shared == ["one two", "two three", "three four"]
    assert (explanation.only_a, explanation.only_b) == (["four five"], ["four six", "six seven"])
    assert explanation.diff == [
        (Change.SAME, "One two three four. ", "one two three FOUR "),
        (Change.CHANGED, "Five", "six seven"),
    ]
    with pytest.raises(ConfigurationError, match="shingle"):
        explain(a, b, "line:1")
    empty = explain("", "")
    assert set(empty.measures.values()) == {0.0, 90.0}
    assert empty.diff == []


def test_a_page_escapes_its_texts_and_closes_its_elements() -> None:
    a = "if x < 3 && y > 2: <script>alert('hi')</script> the rest of it"
    b = "if x < 4 && y > 2: <b>alert('hi')</b> the $rest of it"
    page = comparison_page(explain(a, b), "<one>", 'the "other"')
    read = Html(page)
    assert read.unclosed == []
    ids = read.values("id")
    assert ids == {link.removeprefix("#") for link in read.values("href")}
    assert len(ids) > 3
    assert not read.values("src", "onclick")
    assert "<script" not in page
    assert "&lt;one&gt;" in page
    assert any(text.startswith("3") for text in read.texts["del"])
    assert any(text.startswith("4") for text in read.texts["ins"])
    assert "both may have to be kept" not in page
    assert "only in numbers: both" in comparison_page(explain("1 a", "2 a"), "a", "b")
