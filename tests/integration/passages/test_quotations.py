"""Quotations: verdicts, places and differences, equal in memory, in a corpus and in SQL."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.results import Quotation
from textsim_db.text.distinctions import symbols
from textsim_db.text.tokens import normal_form

SOURCE = (
    "On Monday the council did not approve the new budget for schools. It said, on page 12, that 3,000 "
    "euros [of 9,000] were too many ... and that it can't decide."
)
AWKWARD = (
    *("a", "b", "B", "not", "Don't", "can", "can't", "12", "13", "3,000", "1.2.1", "the", "naïve"),
    *(
        "na\u0308ive",
        "ﬁne",
        "½",
        "狐が",
        "跳ぶ",
        "ไม่",
        "C++",
        "−5",
        "recom-\nmended",
        "Straße",
        "…",
        "...",
    ),
    *(
        "two",
        "III",
        "三",
        "kg",
        "g",
        "5%",
        "\x01",
        "3.5",
        "3-5",
        "3–5,",
        ".5",
        "<",
        ">",
        "A-",
        "a-,",
        "$5",
        "=",
        "+1",
    ),
    *("[it]", "[", "]", ". . .", "👍", "rose¹", "co\u00adop", "نه", "[...]", "(", "%", "x" * 40),
    *("[N]ot", "can[not]", "a[b][c]d", "[Ж]а", "[狐]が", "[1]a", "kg[...]", "[c++]x", "%[b]a"),
)


def in_sql(connection: Connection, text: str, key: str | None, **named: Any) -> tuple[Any, ...]:
    arguments = {"text": text, "key": key, **named}
    names = ", ".join(f"{name} => %({name})s" for name in arguments)
    query = f"SELECT verdict, key, share, pieces, differences FROM textsim.quote('c', {names})"
    row = connection.execute(query.encode(), arguments).fetchone()
    assert row is not None
    return tuple(row)


def as_in_sql(quotation: Quotation) -> tuple[Any, ...]:
    """Return a verdict without characters, which SQL does not have."""
    pieces = [dict(list(each._asdict().items())[:6]) for each in quotation.pieces]
    differences = [each._asdict() for each in quotation.differences]
    rows = json.loads(json.dumps([pieces, differences]))
    return (quotation.verdict, quotation.key, quotation.share, *rows)


def without_kinds(quotation: Quotation) -> tuple[Any, ...]:
    pieces = [piece._replace(kinds=()) for piece in quotation.pieces]
    differences = [each._replace(kinds=()) for each in quotation.differences]
    return (quotation.verdict, quotation.share, pieces, differences)


def altered(rng: random.Random, words: Sequence[str]) -> str:
    """Return a part of a text with some changes."""
    start = rng.randrange(len(words))
    quoted = list(words[start : start + rng.choice((4, 6, 12, 25, 60))])
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4, 8))):
        place = rng.randrange(len(quoted) + 1)
        cut = rng.choice((0, 0, 1, 1, 1, 5))
        quoted[place : place + cut] = rng.sample(AWKWARD, rng.choice((0, 1, 1, 2)))
    if rng.random() < 0.6:
        other = rng.randrange(min(start + len(quoted), len(words) - 1), len(words))
        quoted += [rng.choice(("...", "[…]", "[it]")), *words[other : other + rng.randrange(1, 9)]]
    return " ".join(quoted)


def brute_force(piece: list[str], document: list[str]) -> tuple[int, int, int]:
    """Return the fewest edits of a run, its end and its start, by comparing all runs."""

    def edits(run: list[str]) -> int:
        costs = list(range(len(run) + 1))
        for i, word in enumerate(piece, 1):
            diagonal, costs[0] = costs[0], i
            for j, other in enumerate(run, 1):
                replaced = diagonal + (word != other)
                diagonal = costs[j]
                costs[j] = min(replaced, costs[j] + 1, costs[j - 1] + 1)
        return costs[-1]

    runs = [(i, j) for i in range(len(document) + 1) for j in range(i, len(document) + 1)]
    fewest, end, start = min((edits(document[i:j]), j, -i) for i, j in runs)
    return fewest, end, -start


@pytest.mark.parametrize("settings", [{}, {"shingle": "char:5"}, {"stop_words": ("the", "a")}])
def test_memory_corpus_and_sql_agree(
    db: ts.Database, connection: Connection, seed: int, settings: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    corpus = db.create_corpus("c", guards=("words",), guard_words=("b", "fine"), **settings)
    texts = {"empty": "", "short": "a b"}
    for number in range(40):
        size = rng.choice((1, 5, 30, 100, 300))
        vocabulary = rng.sample(AWKWARD, rng.choice((2, 8, 30))) + [
            f"w{rng.randrange(10**6)}" for _ in range(rng.choice((0, 10, 300)))
        ]
        texts[f"d{number:02}"] = " ".join(rng.choice(vocabulary) for _ in range(size))
    corpus.add_many(list(texts.items())[:30])
    for key, text in list(texts.items())[30:]:
        connection.execute("SELECT textsim.add('c', %s, %s)", (key, text))  # words without ids
    found = dict.fromkeys(("exact", "pieces", "altered", "absent"), 0)
    for number in range(2000):
        if number >= 100 and min(found.values()) > 0:
            break
        key, other = rng.choice(list(texts)), rng.choice(list(texts))
        text = altered(rng, texts[other if rng.random() < 0.1 else key].split() or ["x"])
        least = rng.choice((1, 2, 4))
        try:
            quotation = corpus.quote(text, key, shortest=least)
        except ts.DocumentError:
            with pytest.raises(pg.InvalidParameterValue, match="the quotation has"):
                in_sql(connection, text, key, shortest=least)
            continue
        assert in_sql(connection, text, key, shortest=least) == as_in_sql(quotation), (text, key)
        found[quotation.verdict] += 1
        with_signs = corpus.quote(text, key, shortest=least, original=texts[key])
        in_database = in_sql(connection, text, key, shortest=least, original=texts[key])
        assert in_database == as_in_sql(with_signs), (text, texts[key])
        if not settings:
            in_memory = ts.quote(text, texts[key], least)
            # A corpus also names its guard words.
            assert without_kinds(in_memory) == without_kinds(with_signs)
            for piece in in_memory.pieces:
                if piece.in_document is not None:
                    quoted = normal_form(texts[key][piece.document_start : piece.document_end])
                    # A character such as "½" may make several words.
                    assert len(quoted.split()) >= piece.words_in_document
    assert min(found.values()) > 0, found


def test_a_place_is_the_run_with_the_fewest_edits(seed: int) -> None:
    """The earliest end of equals counts, then the latest start."""
    rng = random.Random(seed)
    placed = 0
    for _ in range(300):
        document = [f"w{rng.randrange(3)}" for _ in range(rng.randrange(1, 16))]
        piece = [f"w{rng.randrange(3)}" for _ in range(rng.randrange(4, 11))]
        edits, end, start = brute_force(piece, document)
        quotation = ts.quote(" ".join(piece), " ".join(document))
        if 10 * edits > 3 * len(piece):
            assert quotation == Quotation("absent")
            continue
        (place,) = quotation.pieces
        assert place.in_document == start
        assert place.words_in_document == end - start
        assert quotation.share == 1 - edits / len(piece)
        placed += 1
    assert placed > 20


@pytest.mark.parametrize(
    ("text", "verdict", "differences"),
    [
        ("the council DID not — approve", "exact", []),
        ("euros [of 9,000] were too many", "exact", []),
        ("were too many ... and that it", "exact", []),
        ("euros [of 9,000] ... and that it", "pieces", []),
        ("On Monday the council [sic] did not approve", "pieces", []),
        ("[sic] the council did not approve", "exact", []),
        ("On Monday the council ... on page 12", "pieces", []),
        ("On Monday the council [of elders] did not approve", "pieces", []),
        ("on page 12 ... On Monday the council", "absent", []),
        ("[T]he council did not approve", "exact", []),
        ("[o]n Monday the council [of elders] did not approve", "pieces", []),
        ("[T]he council did ... were too many[,] and that it", "pieces", []),
        ("the council did not approve[d] the", "altered", [("d", "", [])]),
        ("the council did approve the new budget", "altered", [("", "not", ["negations"])]),
        ("that 3,000 euros of 8,000 were too many", "altered", [("8", "9", ["numbers"])]),
        ("and that it can decide", "altered", [("decide", "t", ["negations"])]),
        ("council did not approve a new budget", "altered", [("a", "the", [])]),
        (
            "page 12, that three thousand euros of 9,000",
            "altered",
            [("three thousand", "3 000", ["numbers", "numerals"])],
        ),
        ("on page 12, that 3,000 dollars", "altered", [("dollars", "euros", ["units"])]),
        ("on page 12, that 3.000 euros", "exact", [(".", ",", ["symbols"])]),
        ("on page 12, that 3,000 euros %", "exact", [(", %", ",", ["symbols"])]),
        # A place begins and ends with words of the quotation; the words next to it are named.
        ("It said on page 13", "altered", [("13", "12", ["numbers"])]),
        ("They did never approve any new budgets", "absent", []),
    ],
)
def test_verdicts(text: str, verdict: str, differences: list[Any]) -> None:
    quotation = ts.quote(text, SOURCE)
    assert quotation.verdict == verdict
    assert [(d.quotation, d.document, [*d.kinds]) for d in quotation.differences] == differences


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("% of the rent, or <", None),
        ("of the rent, or", None),
        ("rent, or < x + y", None),
        ("was < 50 % of the", None),
        ("The fee was < 50", ("<", "< %")),
        ("50 % of the rent", ("%", "< %")),
        ("€ of the rent, or", ("€", "% <")),
    ],
)
def test_signs_beside_a_word_may_be_left_out(
    db: ts.Database, connection: Connection, text: str, signs: tuple[str, str] | None
) -> None:
    """Signs beside a number belong to it."""
    source = "The fee was < 50 % of the rent, or < x + y = z"
    db.create_corpus("c").add("a", source)
    quotation = db.corpus("c").quote(text, "a", original=source)
    assert quotation.verdict == "exact"
    assert [(d.quotation, d.document) for d in quotation.differences] == [signs] * bool(signs)
    assert in_sql(connection, text, "a", original=source) == as_in_sql(quotation)


def test_signs_beside_other_characters_are_equal_in_sql(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    """SQL's classes of characters know only ASCII."""
    db.create_corpus("c")
    rng = random.Random(seed)
    characters = [
        *"ab5 c++#%-.,:!()'\n",
        *"\u2026\u2014\u201c\u201d\u3002\u00a0\u2009\u2028\u00e9\u65e5\u20ac",
    ]
    texts = ["\u201cC++\u201d", "C++\u2014", "\u201c+ 5", "A-\u00a0b", "\u00a0- b"]
    texts += ["".join(rng.choices(characters, k=rng.randrange(1, 9))) for _ in range(500)]
    query = """
        SELECT array_to_string((textsim._signs_of(c, t)).signs, ' ')
        FROM textsim.corpus c CROSS JOIN unnest(%s::text[]) WITH ORDINALITY u (t, n) ORDER BY n
    """
    in_sql = [signs for (signs,) in connection.execute(query, [texts])]
    assert dict(zip(texts, in_sql, strict=True)) == {
        each: " ".join(symbols(each)) for each in texts
    }
    assert in_sql[:5] == ["", "", "+", "-", ""]


def test_what_an_ellipsis_leaves_out_is_shown() -> None:
    first, second = ts.quote("On Monday the council ... on page 12", SOURCE).pieces
    assert not first.left_out
    assert second.left_out == "did not approve the new budget for schools it said"
    assert second.kinds == ("negations",)
    assert SOURCE[second.document_start : second.document_end] == "on page 12"


def test_short_quotations_are_refused_or_found_unaltered() -> None:
    for text in ("", "…", "[...] ...", "the new budget"):
        with pytest.raises(ts.DocumentError, match=r"expected 4 to 500(; shortest|$)"):
            ts.quote(text, SOURCE)
    assert ts.quote("the new budget", SOURCE, shortest=3).verdict == "exact"
    assert ts.quote("the old budget", SOURCE, shortest=3).verdict == "absent"
    with pytest.raises(ts.DocumentError, match="501 words"):
        ts.quote("word " * 501, SOURCE)
    with pytest.raises(ts.DocumentError, match="NUL"):
        ts.quote("the new budget \x00 for", SOURCE)
    with pytest.raises(ts.ConfigurationError, match="shortest"):
        ts.quote("the new budget for", SOURCE, shortest=0)
    nothing: Any = None
    with pytest.raises(ts.DocumentError, match="the text is null"):
        ts.quote(nothing, SOURCE)
    for texts, sources in ((SOURCE, [SOURCE]), ([SOURCE], SOURCE)):
        with pytest.raises(ts.ConfigurationError, match="takes several"):
            ts.quotes(texts, sources)


def test_quotes_name_the_source() -> None:
    sources = {"a": "Rain in the north on Monday.", "b": SOURCE, "c": SOURCE}
    texts = [
        "rain in the north ... Monday",
        "the council did not approve",
        "rain on the council house",
    ]
    verdicts = [(each.verdict, each.key) for each in ts.quotes(texts, sources)]
    assert verdicts == [("altered", "a"), ("exact", "b"), ("absent", None)]
    assert ts.quotes(texts[:1], list(sources.values()))[0].key == 0
    assert ts.quotes(texts[:1], [])[0].verdict == "absent"


def test_the_best_document_of_a_corpus(db: ts.Database, connection: Connection, seed: int) -> None:
    """The first key of equals counts; a run of as many unaltered words as a passage has is found."""
    rng = random.Random(seed)
    corpus = db.create_corpus("c", passages=5)
    texts = {
        f"d{number:02}": " ".join(f"w{rng.randrange(60)}" for _ in range(rng.randrange(10, 80)))
        for number in range(40)
    }
    corpus.add_many(texts.items())
    corpus.add_many([("e1", texts["d01"]), ("e2", SOURCE)])
    found = dict.fromkeys(("exact", "pieces", "altered", "absent"), 0)
    for number in range(2000):
        if number >= 60 and min(found["exact"], found["pieces"], found["altered"]) > 5:
            break
        words = texts[rng.choice(list(texts))].split()
        start = rng.randrange(len(words) - 5)
        quoted = words[start : start + rng.randrange(6, 20)]
        if rng.random() < 0.5:
            quoted[rng.randrange(len(quoted))] = rng.choice(("x", "w1"))
        if rng.random() < 0.3:
            quoted[5:7] = ["..."]
        text = " ".join(quoted)
        try:
            quotation = corpus.quote(text)
        except ts.DocumentError:
            with pytest.raises(pg.InvalidParameterValue):
                in_sql(connection, text, None)
            continue
        assert in_sql(connection, text, None) == as_in_sql(quotation), text
        everywhere = ts.quotes([text], texts)[0]
        if quotation.verdict != "absent":
            assert (quotation.verdict, quotation.key) == (everywhere.verdict, everywhere.key)
        else:
            assert all(piece.words < 5 for piece in everywhere.pieces) or everywhere.differences
        found[quotation.verdict] += 1
    assert min(found["exact"], found["pieces"], found["altered"]) > 5, found


def test_what_a_corpus_refuses(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", scoped=True, keep_for="1 hour")
    corpus.add("a", SOURCE, scope="mine")
    text = "the council did not approve"
    quotation = corpus.quote(text, "a", scope="mine", original=SOURCE)
    (piece,) = quotation.pieces
    assert SOURCE[piece.document_start : piece.document_end] == text
    with pytest.raises(ts.DocumentError, match="other words than document"):
        corpus.quote(text, "a", scope="mine", original="the council did not approve")
    refused: list[tuple[dict[str, Any], type[Exception], type[Exception]]] = [
        ({"key": "b", "scope": "mine"}, ts.DocumentNotFound, pg.NoDataFound),
        ({"key": "a", "scope": "other"}, ts.DocumentNotFound, pg.NoDataFound),
        ({"key": "a"}, ts.ConfigurationError, pg.InvalidParameterValue),
        ({"scope": "mine"}, ts.ConfigurationError, pg.ObjectNotInPrerequisiteState),
    ]
    for named, error, sql_error in refused:
        with pytest.raises(error):
            corpus.quote(text, **named)
        with pytest.raises(sql_error):
            in_sql(connection, text, **({"key": None} | named))
    connection.execute("UPDATE textsim.document_1 SET expires_at = now() - interval '1 second'")
    with pytest.raises(ts.DocumentNotFound):
        corpus.quote(text, "a", scope="mine")
    with pytest.raises(pg.NoDataFound):
        in_sql(connection, text, "a", scope="mine")
    db.create_corpus("d", passages=6)
    with pytest.raises(ts.DocumentError, match="6 words or more in a row"):
        db.corpus("d").quote(text)
