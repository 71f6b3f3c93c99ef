"""The normal form and its shingles against the slow reference, over all of Unicode."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import unicodedataplus
from hypothesis import example, given, strategies as st

from tests.fuzz.text_checks import check_reference
from tests.support import collision, reference
from tests.support.random_texts import ALPHABET, CODE_POINTS, JAMO, MARKS, random_text
from textsim_db import DocumentError
from textsim_db.read.stored_documents import compose_forms
from textsim_db.settings.named_values import Shingle
from textsim_db.text.nfkc import PIECE_BYTES, join_broken_words, prepare_pieces, tables
from textsim_db.text.shingles import find_shingles, shingles
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import normal_form, tokenize, words
from textsim_db.text.word_places import place_words

ROOT = Path(__file__).parents[2]
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
tricky_text = st.text(st.sampled_from(ALPHABET))


@given(st.one_of(any_text, tricky_text))
@example("")
@example(" \n\t")
@example("\u0301")
@example("ΟΔΥΣΣΕΥΣ ΣΑΣ")
@example("İSTANBUL ISPARTA")
@example("a\u0315\u0300\u05ae\u0062")
@example("J\u030c H\u0331 T\u0308")  # the letters compose with the mark in lower case only
@example("か\u3099\u0301漢\u0301a")
def test_the_normal_form_equals_the_reference(text: str) -> None:
    assert normal_form(text) == reference.normal_form(text)
    assert words(text) == reference.words(text)


@pytest.mark.parametrize("share", [16, pytest.param(1, marks=pytest.mark.long)])
def test_every_code_point_alone_equals_the_reference(seed: int, share: int) -> None:
    """One of 16 code points, which the seed chooses, or all."""
    # A line break composes with nothing, so the code points do not affect each other.
    chosen = CODE_POINTS[seed % share :: share]
    chosen_texts = [f"{chr(point)}\n{chr(point)}-5" for point in chosen]
    assert_tokens(["\n".join(chosen_texts[i::512]) for i in range(512)])


@pytest.mark.more
def test_every_assigned_code_point_equals_the_reference_alone_and_between_letters() -> None:
    assigned = [c for c in map(chr, CODE_POINTS) if reference.is_assigned(c)]
    assigned = [c for c in assigned if unicodedataplus.category(c) != "Co"]
    for text in ("{0}\n{0}-5", "e{0}漢{0}\u0323q"):
        chosen_texts = [text.format(c) for c in assigned]
        assert_tokens(["\n".join(chosen_texts[i::256]) for i in range(256)])


def test_long_runs_of_a_character_equal_the_reference() -> None:
    for run, length in product("a\u0301漢\u0378İﷺ-\U0001f98aé", (1, 15, 16, 17, 1000, 4097)):
        assert normal_form(run * length) == reference.normal_form(run * length), (run, length)


@pytest.mark.parametrize("before", ["", " ", "a", "漢", "カ", "\u0378", "a\u0378", "\u1100", "ﷺ"])
@pytest.mark.parametrize("marks", ["\u0316", "\u0301\u0316", "\u0903", "\uff9e\u0301", "\u0f81"])
@pytest.mark.parametrize("length", [29, 30, 31, 32, 1000])
def test_marks_past_the_thirtieth_in_a_run_are_cut(before: str, marks: str, length: int) -> None:
    run = (marks * length)[:length]
    kept = run[:30]
    assert normal_form(before + run + "z") == reference.normal_form(before + kept + "z")
    assert normal_form(f"{before}{run}z{run}") == normal_form(f"{before}{kept}z{kept}")
    assert normal_form(f"{before}{run}\u0378{run}") == normal_form(f"{before}{kept} {kept}")


@pytest.mark.parametrize("alphabet", [ALPHABET, JAMO, JAMO + MARKS, "\u1161", "ﷺ", "\u0301\u0316"])
def test_pieces_normalised_apart_equal_the_whole_text(alphabet: str, rng: random.Random) -> None:
    table = tables()
    for piece_bytes in (1, 5, 100):
        text = "".join(rng.choices(alphabet, k=1500))
        data = np.frombuffer(text.encode(), np.uint8)
        none = np.empty(0, np.int64)
        joined = join_broken_words(data, table, none)
        ready, cuts = prepare_pieces(joined, table, piece_bytes, none)
        pieces = [ready[a:b].tobytes().decode() for a, b in pairwise(cuts.tolist())]
        assert "".join(pieces) == reference.prepared(text)
        normal = [unicodedata.normalize("NFKC", piece) for piece in pieces]
        assert "".join(normal) == unicodedata.normalize("NFKC", "".join(pieces))
        # Places where a piece may end are at most 34 characters apart.
        assert max(map(len, pieces)) <= piece_bytes + 34
        assert all(len(piece.encode()) >= piece_bytes for piece in pieces[:-1])


@pytest.mark.parametrize("alphabet", [ALPHABET, JAMO + MARKS, "a漢\u0301"])
def test_texts_of_several_pieces_equal_the_reference(alphabet: str, rng: random.Random) -> None:
    text = "".join(rng.choices(alphabet, k=60_000))
    assert len(text.encode()) > PIECE_BYTES
    assert normal_form(text) == reference.normal_form(text)


@pytest.mark.parametrize("rare", [ALPHABET, JAMO + MARKS, "…", "\u0301", "½\xa0", "ｶﾞ", "é\u0323"])
@pytest.mark.parametrize("common", ["abc ", "é漢ö ", "a\u0301"])
def test_texts_that_nfkc_changes_little(rare: str, common: str, rng: random.Random) -> None:
    # Spans of some 64 bytes that NFKC does not change are copied without it.
    for share in (0.001, 0.01, 0.1):
        characters = rng.choices([common, rare], [1 - share, share], k=4000)
        text = "".join(rng.choice(character) for character in characters)
        assert normal_form(text) == reference.normal_form(text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0316\uff9e", "\u0344\u0316"])
def test_millions_of_marks_take_linear_time(marks: str) -> None:
    half = 2_000_000
    alternating, halves = "a" + marks * half, "a" + marks[0] * half + marks[1] * half
    assert normal_form(alternating) == reference.normal_form(alternating[:31])
    assert normal_form(halves) == reference.normal_form(halves[:31])


@pytest.mark.parametrize("others", ["", "é", "漢\u0301"])
@pytest.mark.parametrize("letters", ["a", "aZ09" * 9])
def test_ascii_texts_of_every_length(others: str, letters: str, rng: random.Random) -> None:
    # The kernel scans 64 bytes at a time and copies 8 or 16, so lengths around these matter.
    characters = [*map(chr, range(1, 128)), *letters * 20, *others * 3]
    texts = ["".join(rng.choices(characters, k=length)) for length in range(260) for _ in range(2)]
    ends = product(range(4), range(62, 68), " -x")
    texts += [f"{' ' * i}{'A' * length}{end}" for i, length, end in ends]
    assert_tokens(texts)


@pytest.mark.parametrize("shingle", ["word:1", "word:2", "word:3", "char:24"])
def test_different_shingles_with_one_value_are_both_kept(shingle: str) -> None:
    first, second = collision.FIRST, collision.SECOND
    text = f"{first} a b {second} a b {first} a b"
    distinct_shingles = find_shingles(tokenize([to_bytes(text)]), Shingle.parse(shingle))
    expected = reference.shingles(text, *Shingle.parse(shingle))
    assert distinct_shingles.texts() == expected
    values = distinct_shingles.hashes.astype(np.int64).tolist()
    assert values == reference.shingle_values(text, *Shingle.parse(shingle))
    assert len(set(values)) < len(values) == len(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ab\0c", "NUL character at character 3"),
        ("ab\ud800", r"lone surrogate U\+D800 at character 3"),
        ("\udfff", r"lone surrogate U\+DFFF at character 1"),
        (b"bytes", "of type bytes; expected str"),
        (None, "the text is null"),
    ],
)
@pytest.mark.parametrize("function", [normal_form, words, lambda text: shingles(text, "word:3")])
def test_texts_that_cannot_be_stored_are_refused(text: str, message: str, function: object) -> None:
    assert callable(function)
    with pytest.raises(DocumentError, match=message):
        function(text)


@pytest.mark.more
@pytest.mark.skipif(
    not unicodedataplus.unidata_version.startswith("16."),
    reason=f"needs unicodedataplus of Unicode 16; installed is {unicodedataplus.unidata_version}",
)
@pytest.mark.parametrize(
    ("script", "written"),
    [
        ("make_unicode_tables.py", "textsim_db/text/unicode_runs.bin"),
        ("make_unicode_sql.py", "sql/schema/20_unicode.sql"),
    ],
)
def test_the_unicode_tables_equal_the_output_of_their_script(script: str, written: str) -> None:
    output = subprocess.run(
        [sys.executable, ROOT / "scripts" / script],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    ).stdout
    assert output == (ROOT / written).read_bytes()


def assert_tokens(texts: list[str]) -> None:
    data = [to_bytes(text) for text in texts]
    tokens = tokenize(data)
    for i, text in enumerate(texts):
        check_reference(text, data[i], tokens, i)


def parts(text: str) -> list[str]:
    """Return the characters of each word."""
    _, places = place_words(text)
    return [text[i:j] for i, j in zip(places.starts, places.ends, strict=True)]


def test_words_have_their_own_spelling() -> None:
    assert parts("The tenant's  “GARDEN”,\nnaïve!") == ["The", "tenant", "s", "GARDEN", "naïve"]
    assert parts("漢字 and ｶﾞ。") == ["漢", "字", "and", "ｶﾞ"]
    assert parts("½ cup of x½") == ["½", "½", "cup", "of", "x", "½", "½"]
    broken = ["com-\n mittee", "Mon\u00adday", "\u0645\u06cc\u200c\u062e", "C++", "−5"]
    assert parts(" (".join(broken)) == broken
    assert parts("漢\u0e33") == ["漢\u0e33", "\u0e33"]  # a mark of the first word, and a word
    assert parts("") == parts(" ?! —") == []


def test_every_word_of_random_texts_has_a_place(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        text = " ".join(random_text(rng) for _ in range(rng.randrange(1, 3)))
        expected, places = place_words(text)
        assert expected == words(text)
        assert len(places.starts) == len(places.ends) == len(expected), ascii(text)
        assert (places.starts < places.ends).all(), ascii(text)
        assert (places.ends <= len(text)).all(), ascii(text)
        before = 0
        for number, (start, end) in enumerate(zip(places.starts, places.ends, strict=True)):
            own = words(text[start:end])
            assert expected[number] in own, ascii((text, start, end))
            # One character can make several words, or a mark of one word and the next word.
            is_one_made_of_several = len(unicodedata.normalize("NFKC", text[start:before])) > 1
            assert start >= before or is_one_made_of_several, ascii((text, start, end))
            before = end


def test_a_form_is_its_words_joined_by_spaces(rng: random.Random) -> None:
    texts = {i: rng.choice(["a", "naïve", "漢", "word"]) * (i % 3 + 1) for i in range(1, 50)}
    documents = [rng.choices(range(1, 50), k=rng.randrange(30)) for _ in range(100)]
    requested_ids: list[list[int]] = []

    def texts_of(ids: list[int]) -> dict[int, str]:
        requested_ids.append(sorted(ids))
        return texts

    word_ids = np.array([i for document in documents for i in document], np.int32)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    forms = compose_forms(word_ids, offsets, texts_of)
    expected = [" ".join(texts[i] for i in document) for document in documents]
    assert [form.decode() for form in forms] == expected
    assert requested_ids == [np.unique(word_ids).tolist()]


def test_unknown_ids_become_empty_words() -> None:
    ids, offsets = np.array([3, -7, 2**31 - 1], np.int32), np.array([0, 0, 3, 3])
    assert compose_forms(ids, offsets, lambda _: {3: "a"}) == [b"", b"a  ", b""]
    assert compose_forms(ids[:0], offsets[:1], lambda _: {}) == []
