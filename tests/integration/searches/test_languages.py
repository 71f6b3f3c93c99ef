"""Languages are identified and limit searches, and stop words are left out."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections import Counter
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from tests.support.real_corpora import records
from tests.support.sampling import sample
from textsim_db.errors import RecipeError
from textsim_db.measures import without_stop_words
from textsim_db.settings.named_values import Mode
from textsim_db.sketch import sketch_texts
from textsim_db.text import languages
from textsim_db.text.languages import READ_BYTES, UNDETERMINED, identify
from textsim_db.text.stop_words import stop_words, stop_words_by_language
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import normal_form, tokenize

TEXTS = {
    "en": "The weather in the north of the country was so bad that nobody went out of the house.",
    "de": "Das Wetter im Norden des Landes war so schlecht, dass niemand aus dem Haus ging.",
    "fr": "Le temps dans le nord du pays était si mauvais que personne ne sortait de la maison.",
    "ru": "Погода на севере страны была такой плохой, что никто не выходил из дома.",
    "ja": "国の北部の天気はとても悪かったので、誰も家から出ませんでした。",
}


def stories(rng: random.Random) -> dict[str, str]:
    """Return three near-duplicates in each of five languages, and two texts without words."""
    texts = {}
    for code, text in TEXTS.items():
        units = [text] if code == "ja" else text.split()
        for number in range(3):
            words = list(units)
            words[rng.randrange(len(words))] += f" {number}"
            texts[f"{code}{number}"] = " ".join(words)
    return texts | {"empty": "", "signs": "... --- !!!"}


def identify_texts(*texts: str) -> list[str]:
    return identify(tokenize([to_bytes(text) for text in texts]))


def stored_columns(
    connection: psycopg.Connection[Any], corpus: str, columns: str
) -> dict[str, Any]:
    documents, _ = tables_of(connection, corpus)
    rows = connection.execute(
        f"SELECT d.key, {columns} FROM {documents} d, textsim.corpus c WHERE c.name = %s".encode(),
        [corpus],
    )
    return {key: values[0] if len(values) == 1 else values for key, *values in rows}


@pytest.mark.parametrize(
    "name",
    [
        "generated",
        pytest.param("scripture", marks=pytest.mark.more),
        pytest.param("languages", marks=pytest.mark.long),
    ],
)
def test_languages_are_identified_like_the_library_does(name: str, rng: random.Random) -> None:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    library = LanguageIdentifier.from_model_file(MODEL_FILE)
    if name == "generated":
        letters = "".join(map(chr, range(0x20, 0x3000))) + "".join(TEXTS.values())
        texts = ["".join(rng.choices(letters, k=rng.randrange(300))) for _ in range(400)]
    else:
        texts = [document["text"] for document in records(name)]
    # The library converts a text to NFC; a normal form need not be NFC.
    forms = [form for form in map(normal_form, texts) if unicodedata.is_normalized("NFC", form)]
    forms = [form for form in forms if form and len(form.encode()) <= READ_BYTES]
    assert len(forms) > 200
    for form, identified in zip(forms, identify_texts(*forms), strict=True):
        is_persian = languages._NOT_OF_ARABIC.search(form)
        ranked = library.rank(form.translate(languages._YEH_AND_KAF) if is_persian else form)
        if identified != ranked[0][0]:
            # Two languages are equally likely: the library adds in single precision and another order.
            best, scores = ranked[0][1], dict(ranked)
            assert best - scores.get(identified, best) < 1e-5 * abs(best), form


def test_texts_without_words_are_undetermined_and_long_texts_are_cut() -> None:
    assert identify_texts(*TEXTS.values()) == list(TEXTS)
    assert identify_texts("", "...", "1", "12 34", "a") == [UNDETERMINED] * 5
    long = f"{TEXTS['en']} " * 300
    assert len(long) > READ_BYTES
    assert identify_texts(long + TEXTS["ru"] * 3000) == ["en"]
    assert identify_texts() == []


def identified(texts: list[str]) -> list[set[str]]:
    return [{language.code for language in found} for found in ts.identify_languages(texts)]


def test_a_text_has_its_languages_with_a_confidence() -> None:
    assert [found[0].code for found in ts.identify_languages(TEXTS.values())] == list(TEXTS)
    pages = {code: f"{text} " * 5 for code, text in TEXTS.items()}
    assert identified([*pages.values()]) == [{code} for code in TEXTS]
    (mixed,) = ts.identify_languages([pages["en"] + pages["de"] + pages["en"]])
    assert [language.code for language in mixed] == ["en", "de"]
    assert mixed[0].confidence == pytest.approx(2 / 3, abs=0.1)
    assert sum(language.confidence for language in mixed) <= 1 + 1e-9
    # The languages of a long text are found beyond what a corpus reads.
    assert identified([pages["fr"] * (READ_BYTES // 200) + pages["ru"] * 100]) == [{"fr", "ru"}]
    assert ts.identify_languages([]) == []
    too_short = ["", "...", "1", "a", "ok", "12 34"]
    assert ts.identify_languages(too_short) == [[]] * len(too_short)
    alone = ts.identify_languages([pages["ja"]])
    assert ts.identify_languages([*too_short, pages["ja"]]) == [[]] * len(too_short) + alone
    with pytest.raises(ts.DocumentError, match="NUL"):
        ts.identify_languages(["a\0b"])


def test_most_sentences_and_pages_of_several_languages_are_identified(rng: random.Random) -> None:
    codes = set(languages._model()[0])
    sentences: dict[str, list[str]] = {}
    for record in records("languages"):
        if record["language"] in codes:
            sentences.setdefault(record["language"], []).append(record["text"])
    single = [(text, code) for code, texts in sentences.items() for text in texts]
    found = ts.identify_languages(text for text, _ in single)
    sure = [(f[0], code) for f, (_, code) in zip(found, single, strict=True) if f]
    right = sum(language.code == code for language, code in sure) / len(single)
    confidence = sum(language.confidence for language, _ in sure) / len(sure)
    assert right > 0.94
    assert abs(confidence - right) < 0.03  # the confidence is the share that is right
    for number, least in ((1, 0.9), (2, 0.85), (3, 0.75)):
        pages, expected = [], []
        for _ in range(300):
            chosen = rng.sample(sorted(sentences), number)
            pages.append(" ".join(t for code in chosen for t in rng.sample(sentences[code], 5)))
            expected.append(set(chosen))
        equal = sum(a == b for a, b in zip(identified(pages), expected, strict=True))
        assert equal / len(pages) > least, number


def test_a_normal_form_has_the_language_of_its_text(db: ts.Database, rng: random.Random) -> None:
    corpus = db.create_corpus("c")
    texts = stories(rng)
    corpus.add_many(texts)
    confidences = ts.identify_languages([corpus.normal_form(key) for key in texts])
    assert confidences == ts.identify_languages(list(texts.values()))


def test_adding_without_the_library_is_refused(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = db.create_corpus("c", language="auto")
    corpus.add("a", TEXTS["en"])
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setattr(languages, "_model", languages._model.__wrapped__)
    with pytest.raises(ts.ConfigurationError, match=r"pip install -e '\.\[languages\]'"):
        corpus.add("b", TEXTS["de"])
    # Stored documents can still be searched.
    assert [match.key for match in db.corpus("c").query(TEXTS["en"], language="en")] == ["a"]


@pytest.mark.parametrize("stop_words", sample(["auto", []], 2))
def test_a_worker_without_the_library_skips_tables_that_need_it(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch, stop_words: Any
) -> None:
    plain = db.create_corpus("plain")
    corpus = db.create_corpus("c", language="auto", stop_words=stop_words)
    with psycopg.connect(db.url, autocommit=True) as connection:
        for name, attached_corpus in (("story", corpus), ("other", plain)):
            connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, body text)".encode())
            attached_corpus.attach(name, "id", "body")
        if not stop_words:
            connection.execute("SELECT textsim.add('c', 'by hand', %s)", [TEXTS["de"]])
        for name in ("story", "other"):
            statement = f"INSERT INTO {name} VALUES ('a', %s)"
            connection.execute(statement.encode(), [TEXTS["en"]])
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "py3langid.langid", None)
        patch.setattr(languages, "_model", languages._model.__wrapped__)
        worker = db.worker()
        worker.run(until_idle=True)
        assert "pip install -e '.[languages]'" in worker.unusable["public.story"]
        assert "a" in plain
        if stop_words:
            with pytest.raises(RecipeError, match="textsim-db"):
                db.corpus("c")
    assert corpus.pending() == []
    db.worker().run(until_idle=True)
    assert sorted(match.key for match in corpus.query(TEXTS["en"])) == ["a"]
    assert corpus.status()[1:4] == (0, None, 0)
    assert corpus.check() == []


@pytest.mark.parametrize(
    "settings",
    sample(
        [
            {"language": "auto", "stop_words": ["in", "The", "и"]},
            {"language": "auto"},
            {},
            {"shingle": "char:5", "stop_words": ["the", "w7", "short"]},
        ],
        2,
    ),
    ids=str,
)
def test_documents_of_every_origin_are_stored_as_the_same_rows(
    db: ts.Database, connection: Connection, rng: random.Random, settings: dict[str, Any]
) -> None:
    """Documents come from Python, from SQL, or from a table in either mode."""
    texts = stories(rng) | {
        "mixed": "Быстрая ЛИСА, 素早い狐が跳ぶ, สุนัข ½ ﬁne e\u0301",
        "short": "short",
        "long": " ".join(f"w{i}" for i in range(2000)),
    }
    rows = (
        "SELECT d.key, textsim._stored_form(c.id, d.word_ids, NULL), d.signature, d.shingle_count, "
        "d.normal_form, d.language, "
        "array(SELECT b.bucket FROM {1} b WHERE b.document_id = d.id ORDER BY b.bucket) "
        "FROM {0} d, textsim.corpus c WHERE c.name = %s ORDER BY d.key"
    )
    rows_by_way = {}
    for way in ("python", "add", "add over another", "queue", "inline", "inline over another"):
        table = way.replace(" ", "_")
        if way == "add":
            named = "".join(f", {name} => %s" for name in settings)
            create = f"SELECT textsim.create_corpus('add'{named})"
            connection.execute(create.encode(), [*settings.values()])
            assert db.corpus("add").config == db.corpus("python").config
        else:
            db.create_corpus(way, **settings)
        corpus = db.corpus(way)
        if way == "python":
            corpus.add_many(texts.items())
        elif way.startswith("add"):
            for key, text in texts.items():
                if way != "add":
                    corpus.add(key, f"{text} and what was there before it")
                connection.execute("SELECT textsim.add(%s, %s, %s)", [way, key, text])
        else:
            connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
            corpus.attach(table, "id", "body", Mode(way.partition(" ")[0]))
            for key, text in texts.items():
                insert = f"INSERT INTO {table} VALUES (%s, %s)".encode()
                connection.execute(insert, [key, text + " more" * (way[-1] == "r")])
            connection.execute(
                f"UPDATE {table} SET body = t.body FROM unnest(%s::text[], %s::text[]) t (id, body) "
                f"WHERE t.id = {table}.id".encode(),
                [list(texts), list(texts.values())],
            )
        db.worker().run(until_idle=True)
        rows_by_way[way] = connection.execute(
            rows.format(*tables_of(connection, way)).encode(), [way]
        ).fetchall()
        assert corpus.check() == []
        assert len(rows_by_way[way]) == len(texts)
    for way, stored_rows in rows_by_way.items():
        assert stored_rows == rows_by_way["python"], way


def test_the_language_is_stored_and_waits_for_a_worker(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    texts = stories(rng)
    corpus = db.create_corpus("c", language="auto")
    for key, text in texts.items():
        connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
    waiting = stored_columns(connection, "c", "d.language")
    assert {code for key, code in waiting.items() if key not in ("empty", "signs")} == {None}
    assert corpus.check() == []
    db.worker().run(until_idle=True)
    expected = {key: UNDETERMINED if key in ("empty", "signs") else key[:2] for key in texts}
    assert stored_columns(connection, "c", "d.language") == expected
    assert corpus.add_many(texts.items()).unchanged == len(texts)
    # A document that SQL changes waits for a worker again.
    connection.execute("SELECT textsim.add('c', 'en0', %s)", [TEXTS["fr"]])
    assert stored_columns(connection, "c", "d.language")["en0"] is None
    # The text is the same; the call adds its word ids.
    assert corpus.add("en0", TEXTS["fr"]).unchanged == 1
    corpus.rebuild(threshold=0.5)
    assert stored_columns(connection, "c", "d.language") == {**expected, "en0": "fr"}
    assert corpus.config.language == "auto"
    documents, _ = tables_of(connection, "c")
    connection.execute(f"UPDATE {documents} SET language = NULL WHERE key = 'de1'".encode())
    assert {problem.kind for problem in corpus.check()} == {"language"}


@pytest.mark.parametrize("shingle", sample(["word:2", "char:5"], 2))
def test_stop_words_follow_the_language_of_each_document(
    db: ts.Database, rng: random.Random, shingle: str
) -> None:
    texts = stories(rng) | {"eo0": "saluton al la mondo kaj al ĉiuj homoj de la tero"}
    languages_by_key = dict(zip(texts, identify_texts(*texts.values()), strict=True))
    stop_words_by_code = dict(stop_words_by_language())
    corpus = db.create_corpus("follow", shingle=shingle, stop_words="auto")
    assert corpus.config.language == "auto"
    corpus.add_many(texts.items())
    plain = db.create_corpus("plain", shingle=shingle)
    plain.add_many(
        (key, " ".join(without_stop_words(text, stop_words_by_code.get(languages_by_key[key], ()))))
        for key, text in texts.items()
    )
    assert "im" in stop_words_by_code["de"]
    assert "im" not in without_stop_words(texts["de0"], stop_words_by_code["de"])
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE story (id text PRIMARY KEY, body text)")
        queue = db.create_corpus("queue", shingle=shingle, stop_words="auto")
        queue.attach("story", "id", "body")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO story VALUES (%s, %s)", list(texts.items()))
        db.worker().run(until_idle=True)
        form = "textsim._stored_form(c.id, d.word_ids, NULL)"
        columns = f"{form}, d.signature, d.shingle_count"
        for name in ("follow", "queue"):
            assert stored_columns(connection, name, "d.language") == languages_by_key
            assert stored_columns(connection, name, columns) == stored_columns(
                connection, "plain", columns
            )
            assert db.corpus(name).check() == []
        assert list(queue.drift()) == []
        documents_of_follow, _ = tables_of(connection, "follow")
        for key in ("de0", "en1", "ja2"):
            expected = [match for match in plain.neighbours(key, 0.3) if match.key[:2] == key[:2]]
            assert corpus.neighbours(key, 0.3, language=languages_by_key[key]) == expected
            matches = corpus.query(texts[key], 0.3, language=languages_by_key[key])
            assert matches == [m for m in corpus.query(texts[key], 0.3) if m.key[:2] == key[:2]]
            rows = connection.execute(
                "SELECT key, similarity FROM textsim.matches('follow', %s, 0.3, language => %s)",
                [texts[key], languages_by_key[key]],
            )
            assert rows.fetchall() == [match[:2] for match in matches]
            rows = connection.execute(
                "SELECT textsim.jaccard('follow', %(text)s, %(text)s, d.language), "
                "(textsim._sketched(c, textsim._form(c, %(text)s, d.language), NULL)).signature "
                f"= d.signature::integer[] FROM {documents_of_follow} d, textsim.corpus c "
                "WHERE c.name = 'follow' AND d.key = %(key)s".encode(),
                {"text": texts[key], "key": key},
            )
            assert rows.fetchall() == [(1.0, True)]
        for statement in (
            "SELECT textsim.add('follow', 'new', 'some text')",
            "SELECT textsim.jaccard('follow', 'some text', 'some text')",
            "SELECT key, similarity FROM textsim.matches('follow', 'some text')",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot identify"):
                connection.execute(statement)
    with pytest.raises(ts.ConfigurationError, match="removes stop words by language"):
        corpus.attach("story", "id", "body", "inline")
    assert sum(queue.statistics().similarities) == sum(plain.statistics().similarities)
    corpus.rebuild(threshold=0.5)
    assert db.corpus("follow").check() == []
    assert db.corpus("follow").config.stop_words_by_language == tuple(
        sorted(stop_words_by_code.items())
    )
    assert db.create_corpus(
        "follow", shingle=shingle, threshold=0.5, stop_words="auto", exist_ok=True
    )
    with pytest.raises(ts.CorpusExists, match=r"stop words by language is \d+ lists of \d+ words"):
        db.create_corpus("follow", shingle=shingle, threshold=0.5, exist_ok=True)


def test_a_language_limits_every_search(db: ts.Database, rng: random.Random) -> None:
    texts = stories(rng)
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.3, language="auto")
    banding = corpus.config.banding
    assert banding is not None
    corpus.add_many(texts.items())
    # A text in two languages, so that the limit changes the matches.
    both = f"{TEXTS['en']} {TEXTS['de']}"
    corpus.add("en-both", both + 3 * TEXTS["en"])
    corpus.add("de-both", both + 3 * TEXTS["de"])
    keys = {code: {key for key in texts if key[:2] == code} for code in TEXTS}
    keys["en"].add("en-both")
    keys["de"].add("de-both")
    for code in ("en", "de", "ja"):
        all_matches = corpus.query(both, 0.1)
        expected = [match for match in all_matches if match.key in keys[code]]
        assert corpus.query(both, 0.1, language=code) == expected
        assert corpus.query_many([both], 0.1, language=code) == [expected]
        candidate_keys = {candidate.key for candidate in corpus.candidates(both, language=code)}
        assert candidate_keys == {c.key for c in corpus.candidates(both) if c.key in keys[code]}
        expected = [m for m in corpus.neighbours("en-both", 0.1) if m.key in keys[code]]
        assert corpus.neighbours("en-both", 0.1, language=code) == expected
        pairs_of_language = {p for p in corpus.pairs() if p.a in keys[code] and p.b in keys[code]}
        assert set(corpus.pairs(language=code)) == pairs_of_language
        assert {k for c in corpus.clusters(language=code) for k in c.keys} <= keys[code]
        assert {d.key for d in corpus.duplicates(language=code)} <= keys[code]
        with db.engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT * FROM textsim.pairs('c', 0.3, %s)", (code,))
            assert {tuple(row) for row in rows} == pairs_of_language
        statistics = corpus.statistics(language=code)
        assert statistics.documents == len(keys[code])
        assert statistics.languages == {code: len(keys[code])}
        assert sum(size * n for size, n in statistics.buckets) == banding.bands * len(keys[code])
    assert any(p.a[:2] != p.b[:2] for p in corpus.pairs(0.3))
    expected_counts = Counter(
        {code: len(pairs_of_language) for code, pairs_of_language in keys.items()}
    )
    assert Counter(corpus.statistics().languages) == expected_counts | Counter({UNDETERMINED: 2})
    assert corpus.query(TEXTS["en"], language="sv") == []
    wrong_codes: list[Any] = ["english", "EN", "", 5]
    for code in wrong_codes:
        with pytest.raises(ts.ConfigurationError, match="expected a code of ISO 639"):
            corpus.query("text", language=code)
    with pytest.raises(ts.ConfigurationError, match="language is 'de'; expected \"auto\" or none"):
        db.create_corpus("d", language="de")
    with pytest.raises(ts.ConfigurationError, match="are not identified"):
        db.create_corpus("d").query("text", language="en")


def test_lists_of_stop_words_are_normalised() -> None:
    assert stop_words(["The", "don't", "A", "a"]) == ("a", "don", "t", "the")
    assert stop_words([]) == ()
    assert {"the", "of", "and"} <= set(stop_words("en"))
    assert "und" in stop_words("de")
    with pytest.raises(
        ts.ConfigurationError, match='there are no stop words for "xx"; give words, or'
    ):
        stop_words("xx")
    with pytest.raises(ts.ConfigurationError, match="a stop word is 5; expected a str"):
        stop_words([5])  # type: ignore[list-item]


def test_the_list_of_stop_words_is_a_setting(db: ts.Database) -> None:
    corpus = db.create_corpus("c", stop_words="en")
    assert db.create_corpus("c", stop_words="en", exist_ok=True).config == corpus.config
    with pytest.raises(ts.CorpusExists, match=r"stop words is \d+ words .* there, not none"):
        db.create_corpus("c", exist_ok=True)
    with pytest.raises(ts.CorpusExists, match=r"stop words is .* there, not 1 words \(x\)"):
        db.create_corpus("c", stop_words=["x"], exist_ok=True)
    assert sketch_texts.signature("the of and", corpus.config).tolist() == []
    assert corpus.query("the of and") == []
    golden_text = sketch_texts.GOLDEN_TEXT
    without_words = db.create_corpus("nothing", stop_words=[golden_text])
    assert db.corpus("nothing").config == without_words.config
