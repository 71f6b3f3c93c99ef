"""Stop words are removed alike in Python and SQL, from documents of every origin."""

from __future__ import annotations

import random

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import tables_of
from tests.support.sampling import sample
from textsim_db.measures import without_stop_words
from textsim_db.sketch import sketch_texts
from textsim_db.text.stop_words import are_stop_words, stop_words
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.tokens import leave_out, tokenize


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


def test_texts_without_stop_words_keep_all_other_words(rng: random.Random) -> None:
    texts = ["", "the", "a b the c", "漢字 the 漢", *(text for _, text in documents(300, 60))]
    words_to_remove = stop_words(rng.sample([w for text in texts for w in text.split()], 30))
    tokens = tokenize([to_bytes(text) for text in texts])
    remaining = leave_out(tokens, are_stop_words(tokens, words_to_remove))
    for i, text in enumerate(texts):
        expected = without_stop_words(text, words_to_remove)
        first, last = remaining.word_offsets[i : i + 2].tolist()
        words_of_text = [
            remaining.span(int(remaining.starts[k]), int(remaining.ends[k]))
            for k in range(first, last)
        ]
        assert words_of_text == expected
        assert remaining.span(*remaining.normal_offsets[i : i + 2].tolist()) == " ".join(expected)


@pytest.mark.parametrize("shingle", sample(["word:2", "char:5"], 2))
def test_stop_words_are_removed_from_documents_of_every_origin(
    db: ts.Database, rng: random.Random, shingle: str
) -> None:
    texts = dict(documents(200, 40, planted=0.5, seed=rng.randrange(10**6)))
    frequent = [word for _, word in zip(range(12), " ".join(texts.values()).split(), strict=False)]
    texts |= {"nothing": " ".join(frequent), "empty": ""}
    corpus = db.create_corpus("python", shingle=shingle, stop_words=[*frequent, "THE"])
    corpus.add_many(texts.items())
    plain = db.create_corpus("plain", shingle=shingle)
    plain.add_many((k, " ".join(without_stop_words(t, frequent))) for k, t in texts.items())
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(
            "SELECT textsim.create_corpus('sql', %s, stop_words => %s)",
            [shingle, [*frequent, "The"]],
        )
        with connection.cursor() as cursor:
            cursor.executemany("SELECT textsim.add('sql', %s, %s)", list(texts.items()))
        assert db.corpus("sql").config == corpus.config
        connection.execute("CREATE TABLE story (id text PRIMARY KEY, body text)")
        for name, mode in (("inline", "inline"), ("queue", "queue")):
            source_corpus = db.create_corpus(name, shingle=shingle, stop_words=[*frequent, "the"])
            source_corpus.attach("story", "id", "body", mode)
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO story VALUES (%s, %s)", list(texts.items()))
        db.worker().run(until_idle=True)
        rows = {
            name: connection.execute(
                "SELECT d.key, d.word_ids, d.normal_form, d.signature, d.shingle_count "
                f"FROM {tables_of(connection, name)[0]} d ORDER BY 1".encode()
            ).fetchall()
            for name in db.corpora()
        }
        for name in ("sql", "inline", "queue", "plain"):
            assert rows[name] == rows["python"], name
            assert db.corpus(name).check() == []
        assert corpus.check() == []
        assert list(db.corpus("queue").drift()) == []
        for text in rng.sample(sorted(texts.values()), 10):
            matches = corpus.query(text, 0.3)
            assert matches == plain.query(" ".join(without_stop_words(text, frequent)), 0.3)
            rows_of_sql = connection.execute(
                "SELECT * FROM textsim.matches('python', %s, 0.3)", [text]
            )
            assert rows_of_sql.fetchall() == [match[:2] for match in matches]
            signature = connection.execute("SELECT textsim.signature('python', %s)", [text])
            assert signature.fetchall() == [(corpus.signature(text).tolist(),)]
    assert sorted(corpus.pairs(0.5)) == sorted(plain.pairs(0.5))
    report = corpus.add_many(texts.items())
    assert report.unchanged == len(texts)
    corpus.rebuild(threshold=0.5)
    rebuilt = db.corpus("python")
    assert rebuilt.config.stop_words == corpus.config.stop_words
    assert rebuilt.check() == []


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
