"""Passages: every shared run of words is found, in Python and in SQL, whoever wrote the documents."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.sketch.fingerprints import LEFT_OUT
from textsim_db.text.shingles import shingles
from textsim_db.text.tokens import normal_form

WORDS = 8
"""The words of the shortest passage."""

Run = tuple[str, int, int, int]


def create(db: ts.Database, name: str = "c", **settings: Any) -> ts.Corpus:
    return db.create_corpus(name, **({"passages": WORDS} | settings))


def random_words(rng: random.Random, most: int, vocabulary: int) -> list[str]:
    return [f"w{rng.randrange(vocabulary)}" for _ in range(rng.randrange(most))]


def related_texts(rng: random.Random, count: int) -> dict[str, str]:
    """Return texts that quote each other and themselves, of large and of small vocabularies."""
    words: list[list[str]] = []
    for _ in range(count):
        own = random_words(rng, 80, rng.choice((3, 30, 3000)))
        for _ in range(rng.randrange(3)):
            quoted = rng.choice(words or [own])
            start, place = rng.randrange(len(quoted) + 1), rng.randrange(len(own) + 1)
            own[place:place] = quoted[start : start + rng.choice((WORDS - 1, WORDS, 20))]
        words.append(own)
    return {f"d{i:03}": " ".join(own) for i, own in enumerate(words)}


def places(passages: Iterable[ts.Passage]) -> list[Run]:
    """Return keys and words, without the characters."""
    return [passage[:4] for passage in passages]


def place_of(run: Sequence[str], text: Sequence[str]) -> int | None:
    places = (i for i in range(len(text) - len(run) + 1) if text[i : i + len(run)] == run)
    return next(places, None)


def maximal_runs(
    text: list[str], document: list[str], least: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the words and the places of each run, by comparing all places."""
    last = (0, 0, 0)
    for start in range(len(document)):
        end = start
        while end < len(document) and place_of(document[start : end + 1], text) is not None:
            end += 1
        place = place_of(document[start:end], text)
        if end - start < least or place is None or end <= last[0] + last[2]:
            continue
        is_repeated = last[:2] == (end - start, place) and start < last[0] + last[2]
        last = (end - start, place, start)
        if not is_repeated:
            yield last


def expected(text: str, documents: dict[str, str], least: int = WORDS) -> list[Run]:
    runs = [
        (key, *run)
        for key, document in documents.items()
        for run in maximal_runs(text.split(), document.split(), least)
    ]
    return sorted(runs, key=lambda run: (-run[1], run[0], run[3]))


def from_sql(connection: Connection, text: str, *arguments: Any) -> list[Run]:
    places = ", ".join(["%s"] * (1 + len(arguments)))
    rows = connection.execute(
        f"SELECT * FROM textsim.passages('c', {places})".encode(), [text, *arguments]
    )
    return [tuple(row) for row in rows]


def has_many_places(text: str) -> bool:
    """Say whether the text has a run at more than ten places, of which SQL compares only ten."""
    words = text.split()
    windows = [tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)]
    return any(windows.count(window) > 10 for window in set(windows))


def test_every_maximal_run_is_found(db: ts.Database, connection: Connection, seed: int) -> None:
    documents = related_texts(random.Random(seed), 80)
    corpus = create(db)
    assert corpus.add_many(documents.items()).added == len(documents)
    compared = 0
    for least in (WORDS, 12):
        for key, text in documents.items():
            runs = expected(text, documents, least)
            assert places(corpus.passages(text, least)) == runs, (key, least)
            if not has_many_places(text):
                assert from_sql(connection, text, least) == runs, (key, least)
                compared += len(runs)
    assert compared > len(documents)
    assert corpus.check() == []


def test_runs_of_long_documents_are_found(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    """SQL compares of a long document only the words around parts of the text."""
    rng = random.Random(seed)
    texts = [[f"w{rng.randrange(300)}" for _ in range(rng.randrange(10, 90))] for _ in range(20)]
    documents = {}
    for number in range(30):
        words = [f"w{rng.randrange(300)}" for _ in range(rng.randrange(490, 800))]
        for place in (0, len(words), rng.randrange(len(words)), rng.randrange(len(words))):
            quoted = rng.choice(texts)
            start = rng.randrange(len(quoted))
            words[place:place] = quoted[start : start + rng.randrange(WORDS - 1, 40)]
        documents[f"d{number:02}"] = " ".join(words)
    corpus = create(db)
    corpus.add_many(documents.items())
    compared = 0
    for least in (WORDS, 9, 21):
        for text in [*map(" ".join, texts), *islice(documents.values(), 5)]:
            runs = places(corpus.passages(text, least))
            assert from_sql(connection, text, least) == runs, (text, least)
            compared += len(runs)
    assert compared > len(documents)


def test_a_passage_survives_another_form(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    corpus.add("a", "Before it, one two three four five six seven eight nine. After it.")
    text = "ONE;\n\ntwo (three) four\nFIVE — six. Seven... EIGHT\tnine"
    assert places(corpus.passages(text)) == [("a", 9, 0, 2)]
    assert from_sql(connection, text) == [("a", 9, 0, 2)]
    assert corpus.passages("one two three four five six seven") == []
    assert corpus.passages("") == []
    assert from_sql(connection, "") == []


def test_passages_have_their_characters(db: ts.Database, seed: int) -> None:
    rng = random.Random(seed)
    corpus = create(db, stop_words=["the", "of"])
    words = ["The", "naïve", "ﬁne", "of", "漢", "ｶﾞ", "don't", "ÉTÉ", *"abcdefgh"]
    found = 0
    for number in range(40):
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
    assert found > 30
    with pytest.raises(ts.DocumentError, match="this is another text"):
        corpus.characters(passage, "another text")
    (other, *_) = [*corpus.passages_of("a"), ts.Passage("a", 9, 0, 0)]
    assert (other.start, other.end) == (None, None)


def random_spelling(rng: random.Random, words: list[str]) -> str:
    return "".join(
        rng.choice((str.upper, str.lower, str))(word) + rng.choice((" ", "\n", ", ", " — “"))
        for word in words
    )


def test_periodic_texts_take_linear_time(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    corpus.add("long", "again " * 100_000)
    assert places(corpus.passages("again " * 200)) == [("long", 200, 0, 0)]
    assert len(corpus.passages("again " * 50_000)) == 1
    ((key, words, in_text, in_document),) = from_sql(connection, "again " * 200)
    assert (key, in_text, in_document) == ("long", 0, 0)
    assert words >= WORDS


def test_words_of_spaceless_scripts_are_characters(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    corpus.add("a", "漢字仮名交じり文の例文です")
    assert places(corpus.passages("この仮名交じり文の例文は")) == [("a", 9, 2, 2)]
    assert from_sql(connection, "この仮名交じり文の例文は") == [("a", 9, 2, 2)]


def test_passages_of_characters(db: ts.Database, connection: Connection, seed: int) -> None:
    rng = random.Random(seed)
    documents = related_texts(rng, 30) | {"漢": "漢字仮名交じり文の例文です、ほんとうに"}
    corpus = create(db, shingle="char:5", passages=20)
    for place, item in enumerate(documents.items()):
        if place % 3:
            corpus.add(*item)
        else:
            connection.execute("SELECT textsim.add('c', %s, %s)", item)
    forms = {key: corpus.normal_form(key) for key in documents}
    compared = 0
    for key, text in documents.items():
        runs = [
            (other, *run)
            for other, form in forms.items()
            for run in maximal_runs(list(forms[key]), list(form), 20)
        ]
        runs.sort(key=lambda run: (-run[1], run[0], run[3]))
        found = corpus.passages(text)
        assert places(found) == runs, key
        for passage in found:
            _, length, start, _ = passage[:4]
            own = normal_form(text[passage.start : passage.end])
            assert own == forms[key][start : start + length].strip(), (text, passage)
        windows = [forms[key][i : i + 20] for i in range(len(forms[key]) - 19)]
        if not any(windows.count(window) > 10 for window in set(windows)):
            assert from_sql(connection, text) == runs, key
            compared += len(runs)
    assert compared > len(documents)
    assert corpus.check() == []
    connection.execute("CALL textsim.index_pending('c')")
    assert corpus.check() == []


def test_documents_that_contain_a_text_are_found(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    documents = related_texts(random.Random(seed), 60)
    corpus = create(db, shingle="word:2")
    corpus.add_many(documents.items())
    found = 0
    for key, text in documents.items():
        own = set(shingles(text, "word:2"))
        runs = expected(text, documents)
        shares = {
            other: len(own & set(shingles(document, "word:2"))) / max(len(own), 1)
            for other, document in documents.items()
        }
        # A document may share a fingerprint by a shorter run.
        matches = [match[:2] for match in corpus.containing(text, 0.3)]
        assert {run[0] for run in runs if shares[run[0]] >= 0.3} <= dict(matches).keys()
        assert matches == sorted(matches, key=lambda match: (-match[1], match[0]))
        assert all(shares[other] == share >= 0.3 for other, share in matches)
        query = "SELECT * FROM textsim.containing('c', %s, 0.3)"
        assert connection.execute(query, [text]).fetchall() == matches
        (many,) = corpus.query_many([text], 0.3, measure="containment")
        assert [match[:2] for match in many] == matches
        others = [match for match in matches if match[0] != key]
        neighbours = corpus.neighbours(key, 0.3, measure="containment")
        assert [match[:2] for match in neighbours] == others
        passages = places(corpus.passages_of(key))
        assert passages == [run for run in runs if run[0] != key]
        query = "SELECT * FROM textsim.passages_of('c', %s)"
        if not has_many_places(text):
            assert connection.execute(query, [key]).fetchall() == passages
        found += len(others)
    assert found > 10


def test_a_text_shorter_than_a_passage_is_named(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = create(db)
    corpus.add("a", "one two three four five six seven eight nine")
    assert len(corpus.containing("one two three four five six seven eight", 0.5)) == 1
    assert not caplog.records
    assert corpus.containing("one two three", 0.5) == []
    assert "the text has 3 words" in caplog.text
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    query = "SELECT * FROM textsim.containing('c', 'one two three', 0.5)"
    assert connection.execute(query).fetchall() == []
    assert notices[0].startswith("the text has 3 words")


def test_a_run_of_many_documents_is_named_and_not_followed(
    db: ts.Database, connection: Connection
) -> None:
    header = "this header of ten words is in each of them"
    quotation = "one two three four five six seven eight nine"
    corpus = create(db)
    corpus.add_many((f"{n:02}", f"{header} and body{n} number{n}") for n in range(20))
    corpus.add("quoted", f"it said {quotation} again")
    text = f"Before. {header} between w1 w2 w3 {quotation} after"
    assert len(corpus.passages(text)) == 21
    assert corpus.passages(text).common == []
    found = corpus.passages(text, max_documents=10)
    assert places(found) == [("quoted", 9, 15, 2)]
    (run,) = found.common
    assert run.documents == 20
    assert run.in_text >= 1
    assert run.in_text + run.words <= 11
    assert corpus.passages(text, max_documents=20).common == []
    for limit in (10, 20):
        (record,) = corpus.contamination([("q", text)], max_documents=limit)
        alone = corpus.passages(text, max_documents=limit)
        assert record.common == alone.common
        assert record.documents == sorted({passage.key for passage in alone})
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    query = "SELECT * FROM textsim.passages('c', %s, max_documents => 10)"
    assert connection.execute(query, [text]).fetchall() == places(found)
    assert notices == [
        "a part of the text is in more than 10 documents, which are not all compared"
    ]


HEADER = "this header of ten words is in each of them"


def test_all_pairs_of_a_crowd_need_not_be_compared(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    header = "this header of ten words is in each of them"
    quotation = "one two three four five six seven eight nine"
    corpus = create(db)
    corpus.add_many((f"{n:02}", header) for n in range(20))
    corpus.add_many([("a", f"it said {quotation} again"), ("b", f"they say {quotation}")])
    assert len(list(corpus.shared_passages())) == 20 * 19 // 2 + 1
    assert not caplog.records
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    query = "SELECT * FROM textsim.shared_passages('c', max_documents => %s)"
    pair = ts.SharedPassage("a", "b", 9, 2, 2)
    assert list(corpus.shared_passages(max_documents=19)) == [pair]
    assert connection.execute(query, [19]).fetchall() == [pair]
    assert notices[0] in caplog.text
    assert "more than 19 documents" in notices[0]
    assert len(list(corpus.shared_passages(max_documents=20))) == 191
    assert len(connection.execute(query, [20]).fetchall()) == 191
    assert len(notices) == len(caplog.records) == 1
    with pytest.raises(ts.ConfigurationError, match="max_documents is 0"):
        list(corpus.shared_passages(max_documents=0))
    with pytest.raises(pg.InvalidParameterValue, match="max_documents is 0"):
        connection.execute(query, [0])


def with_header(count: int) -> Iterator[tuple[str, str]]:
    return ((f"{n:04}", f"{HEADER} and body{n} number{n} " + f"w{n} " * 3) for n in range(count))


def test_a_run_that_thousands_have_is_left_out(db: ts.Database, connection: Connection) -> None:
    """The classes are learned by the first load, and are the same in SQL and in Python."""
    corpus = create(db, threshold=0.9)
    corpus.add_many(with_header(1200))
    common = corpus.config.common_of_passages
    assert common is not None
    assert max(common.classes) == LEFT_OUT
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    found = corpus.passages(f"Before. {HEADER}, after")
    assert found == []
    assert found.common == [ts.CommonRun(10, 1, 1024)]
    (record,) = corpus.contamination([("q", f"Before. {HEADER}, after")])
    assert record == ("q", 12, 0.0, [], [], found.common)
    assert from_sql(connection, f"Before. {HEADER}, after") == []
    assert notices == [
        'a part of the text is in very many documents of corpus "c", which are not searched for it'
    ]
    # A run that is common only in part is found, with all its words.
    text = f"{HEADER} and body7 number7 w7"
    assert corpus.passages(text)[0][:4] == from_sql(connection, text)[0] == ("0007", 14, 0, 0)
    connection.execute("SELECT textsim.add('c', 'new', %s)", [text])
    corpus.add("newer", text)
    stored = connection.execute(
        "SELECT fingerprints FROM textsim.document_2 WHERE key IN ('new', 'newer')"
    ).fetchall()
    assert stored[0] == stored[1] != ([],)
    assert corpus.check() == []
    assert corpus.passages_of("0007")[0] == ts.Passage("new", 14, 0, 0)
    assert db.corpus("c").config.common_of_passages.values.tolist() == common.values.tolist()


def test_sql_leaves_out_the_same_classes(connection: Connection) -> None:
    for commonness in range(16):
        query = "SELECT textsim._choose(ARRAY[7::bigint], ARRAY[%s]::smallint[], 1)"
        row = connection.execute(query, [commonness]).fetchone()
        assert row == ([7 if commonness < LEFT_OUT else None],), commonness


def test_a_corpus_may_store_common_passages(db: ts.Database, connection: Connection) -> None:
    corpus = create(db, common_passages=True)
    corpus.add_many(with_header(1100))
    found = corpus.passages(HEADER)
    assert len(found) == len(from_sql(connection, HEADER)) == 1100
    assert found.common == []
    corpus.rebuild(common_passages=False)
    assert places(corpus.passages(HEADER)) == from_sql(connection, HEADER) == []
    assert corpus.check() == []
    with pytest.raises(ts.ConfigurationError, match="common_passages needs passages"):
        create(db, "wrong", passages=None, common_passages=True)
    with pytest.raises(pg.InvalidParameterValue, match="common_passages needs passages"):
        connection.execute("SELECT textsim.create_corpus('wrong', common_passages => true)")


def test_classes_do_not_change_what_is_found(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    rng = random.Random(seed)
    phrases = [" ".join(f"p{rng.randrange(50)}" for _ in range(9)) for _ in range(8)]
    documents = {
        f"d{i:03}": " ".join(
            rng.choice(phrases) if rng.random() < 0.4 else f"w{rng.randrange(4000)} x{i}"
            for _ in range(12)
        )
        for i in range(400)
    }
    learned = create(db)
    learned.add_many(documents.items())
    common = learned.config.common_of_passages
    assert common is not None
    assert len(common.values) > 30
    plain = create(db, "plain")
    plain.add_many(list(documents.items())[:50])  # too few to learn from
    plain.add_many(documents.items())
    assert plain.config.common_of_passages is None
    for text in list(documents.values())[:40]:
        found = learned.passages(text)
        assert found == plain.passages(text)
        assert places(found) == from_sql(connection, text)
    assert learned.check() == plain.check() == []


def test_a_search_sees_the_passages_of_a_rebuild(db: ts.Database) -> None:
    text = "one two three four five six seven eight nine"
    corpus = db.create_corpus("c")
    corpus.add("a", text)
    other = db.corpus("c")
    assert other.config.passages is None
    corpus.rebuild(passages=9)
    assert places(other.passages(text)) == [("a", 9, 0, 0)]
    corpus.rebuild(passages=6)
    assert places(other.passages(text, 6)) == [("a", 9, 0, 0)]
    stale = db.corpus("c")
    corpus.rebuild(passages=8)
    assert stale.passages("seven one two three four five six seven") == []


def test_all_shared_passages_are_listed(db: ts.Database, connection: Connection, seed: int) -> None:
    documents = related_texts(random.Random(seed), 60)
    documents = {key: text for key, text in documents.items() if not has_many_places(text)}
    corpus = create(db)
    for place, item in enumerate(documents.items()):
        if place % 3:
            corpus.add(*item)
        else:  # its words have no ids
            connection.execute("SELECT textsim.add('c', %s, %s)", item)
    keys = sorted(documents)
    runs = [
        (a, b, *run)
        for i, a in enumerate(keys)
        for b in keys[i + 1 :]
        for run in maximal_runs(documents[a].split(), documents[b].split(), WORDS)
    ]
    assert len(runs) > 10
    assert sorted(tuple(passage) for passage in corpus.shared_passages()) == sorted(runs)
    query = "SELECT * FROM textsim.shared_passages('c')"
    assert sorted(connection.execute(query).fetchall()) == sorted(runs)


def test_shared_passages_are_of_one_scope_and_not_expired(
    db: ts.Database, connection: Connection
) -> None:
    text = "one two three four five six seven eight nine"
    corpus = create(db, scoped=True, keep_for="1 hour")
    for key, scope in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")):
        corpus.add(key, text, scope=scope)
    connection.execute(
        "UPDATE textsim.document_1 SET expires_at = now() - interval '1 second' WHERE key = 'd'"
    )
    found = [ts.SharedPassage("a", "c", 9, 0, 0)]
    assert list(corpus.shared_passages()) == found
    assert connection.execute("SELECT * FROM textsim.shared_passages('c')").fetchall() == found
    assert connection.execute("SELECT key FROM textsim.passages_of('c', 'a')").fetchall() == [
        ("c",)
    ]
    assert connection.execute("SELECT key FROM textsim.passages_of('c', 'd')").fetchall() == []


WAYS = (
    "add",
    "add_many",
    "sql",
    "sql with ids",
    "update",
    "sql update",
    "rebuild",
    "other passages",
)


def write(
    db: ts.Database, connection: Connection, way: str, documents: dict[str, str]
) -> ts.Corpus:
    """Store documents in one way; return the corpus."""
    if way == "other passages":
        corpus = db.create_corpus("c")
        corpus.add_many(documents.items())
        corpus.rebuild(passages=WORDS)
        return corpus
    corpus = create(db)
    if "update" in way:
        corpus.add_many((key, f"other words of {key} " * 5) for key in documents)
    if way == "add":
        for key, text in documents.items():
            corpus.add(key, text)
    elif way.startswith("sql"):
        for item in documents.items():
            connection.execute("SELECT textsim.add('c', %s, %s)", item)
        if way == "sql with ids":
            connection.execute("CALL textsim.index_pending('c')")
    else:
        corpus.add_many(documents.items())
    if way == "rebuild":
        corpus.rebuild(threshold=0.7)
    return corpus


@pytest.mark.parametrize("way", WAYS)
def test_documents_have_passages_whatever_way_they_came(
    db: ts.Database, connection: Connection, way: str, seed: int
) -> None:
    documents = related_texts(random.Random(seed), 20)
    corpus = write(db, connection, way, documents)
    for text in documents.values():
        assert places(corpus.passages(text)) == expected(text, documents)
    assert corpus.check() == []
    corpus.remove(list(documents)[::2])
    connection.execute("SELECT textsim.remove('c', %s)", [list(documents)[1]])
    assert corpus.check() == []
    left = dict(list(documents.items())[3::2])
    for text in documents.values():
        assert places(corpus.passages(text)) == expected(text, left)


def test_an_attached_table_has_passages(db: ts.Database, connection: Connection) -> None:
    text = "one two three four five six seven eight nine"
    corpus = create(db)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute("INSERT INTO t VALUES ('a', %s)", [text])
    corpus.attach("t", "id", "body", mode="inline")
    db.worker().run(until_idle=True)
    assert places(corpus.passages(text)) == [("a", 9, 0, 0)]
    connection.execute("INSERT INTO t VALUES ('b', %s)", [f"and {text}"])
    assert places(corpus.passages(text)) == [("a", 9, 0, 0), ("b", 9, 0, 1)]
    passage = corpus.passages(text)[1]
    assert corpus.characters(passage) == (4, 4 + len(text))
    connection.execute("UPDATE t SET body = 'other words' WHERE id = 'a'")
    connection.execute("DELETE FROM t WHERE id = 'b'")
    with pytest.raises(ts.DocumentNotFound, match='no attached table of corpus "c" has "b"'):
        corpus.characters(passage)
    assert corpus.passages(text) == []
    assert corpus.check() == []


def test_an_attached_table_teaches_what_is_common(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(with_header(1100)))
    corpus.attach("t", "id", "body")
    assert corpus.config.common_of_passages is not None
    assert corpus.passages(HEADER) == []
    assert from_sql(connection, HEADER) == []
    assert [run.words for run in corpus.passages(HEADER).common] == [10]
    connection.execute("UPDATE t SET body = body || ' more' WHERE id < '0010'")
    db.worker().run(until_idle=True)
    assert corpus.check() == []


def test_passages_of_a_scope(db: ts.Database, connection: Connection) -> None:
    text = "one two three four five six seven eight nine"
    corpus = create(db, scoped=True)
    corpus.add_many([("a", text, "x"), ("b", text, "y")])
    assert places(corpus.passages(text, scope="x")) == [("a", 9, 0, 0)]
    assert from_sql(connection, text, None, None, "y") == [("b", 9, 0, 0)]
    corpus.add("a", text, scope="y")
    assert corpus.passages(text, scope="x") == []
    assert [p.key for p in corpus.passages(text, scope="y")] == ["a", "b"]
    assert corpus.check() == []


def test_an_expired_document_has_no_passages(db: ts.Database, connection: Connection) -> None:
    text = "one two three four five six seven eight nine"
    corpus = create(db, keep_for="1 hour")
    corpus.add("a", text)
    assert len(corpus.passages(text)) == len(from_sql(connection, text)) == 1
    connection.execute("UPDATE textsim.document_1 SET expires_at = now() - interval '1 second'")
    assert places(corpus.passages(text)) == from_sql(connection, text) == []
    assert corpus.expire() == 1
    assert corpus.check() == []


def test_a_test_set_of_any_size_is_compared_record_by_record(db: ts.Database) -> None:
    corpus = create(db)
    corpus.add("a", "one two three four five six seven eight nine")
    read = 0

    def records() -> Iterator[tuple[str, str]]:
        nonlocal read
        for read in range(1, 10**9):
            yield (
                f"q{read}",
                f"{'other words ' * (read % 3)}one two three four five six seven eight",
            )

    found = corpus.contamination(records())
    for number, record in enumerate(islice(found, 500), 1):
        assert (record.key, record.documents) == (f"q{number}", ["a"])
        assert record.coverage == 8 / record.words
        assert read <= number + 1
    found.close()


def test_wrong_arguments_are_refused(db: ts.Database, connection: Connection) -> None:
    for passages in (3, 101):
        with pytest.raises(ts.ConfigurationError, match="expected 4 to 100"):
            create(db, "wrong", passages=passages)
        with pytest.raises(pg.InvalidParameterValue, match="expected 4 to 100"):
            connection.execute("SELECT textsim.create_corpus('wrong', passages => %s)", [passages])
    corpus, without = create(db), db.create_corpus("without")
    with pytest.raises(ts.ConfigurationError, match=f"of {WORDS} words or more, and not of 7"):
        corpus.passages("a text", 7)
    with pytest.raises(pg.InvalidParameterValue, match=f"of {WORDS} words or more, and not of 7"):
        from_sql(connection, "a text", 7)
    with pytest.raises(ts.ConfigurationError, match="has no passages"):
        without.passages("a text")
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="has no passages"):
        connection.execute("SELECT * FROM textsim.passages('without', 'a text')")


def test_check_finds_wrong_fingerprints(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    corpus.add_many((key, f"{key} two three four five six seven eight nine") for key in "abc")
    connection.execute(
        "DELETE FROM textsim.passage_1 WHERE document_id = "
        "(SELECT id FROM textsim.document_1 WHERE key = 'a')"
    )
    assert {(p.kind, p.subject) for p in corpus.check()} == {("missing fingerprint", "a")}
    connection.execute("UPDATE textsim.document_1 SET fingerprints = '{1}' WHERE key = 'b'")
    problems = {(p.kind, p.subject) for p in corpus.check()}
    assert problems == {("missing fingerprint", "a"), ("fingerprints", "b")}
    corpus.rebuild(threshold=0.7)
    assert corpus.check() == []
    with psycopg.connect(db.url) as other:
        other.execute("DROP TRIGGER passage_update ON textsim.document_2")
    assert {p.kind for p in corpus.check()} == {"trigger"}
