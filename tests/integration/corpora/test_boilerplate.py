"""Boilerplate is learned once by a rebuild, and left out of texts alike in Python, SQL and Spark."""

from __future__ import annotations

import random

import numpy as np
import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from tests.support.random_texts import FOOTER, HEADER, templated
from tests.support.sampling import sample
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch import sketch_texts
from textsim_db.sketch.learned_shingles import learn_boilerplate, words_of_shingles
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import tokenize


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_words_of_listed_shingles_are_marked(rng: random.Random, n: int) -> None:
    texts = [" ".join(rng.choices("abcd", k=rng.randrange(12))) for _ in range(200)]
    tokens = tokenize([text.encode() for text in texts])
    shingles = find_shingles(tokens, Shingle("word", n))
    texts_of = dict(zip(shingles.hashes.view(np.int64).tolist(), shingles.texts(), strict=True))
    chosen = tuple(sorted(rng.sample(sorted(texts_of), len(texts_of) // 4)))
    listed = {texts_of[value] for value in chosen}
    marked = words_of_shingles(tokens, n, chosen).tolist()
    expected = []
    for text in texts:
        words = text.split()
        is_listed = [
            " ".join(words[i : i + n]) in listed for i in range(max(1, len(words) - n + 1))
        ]
        expected += [any(is_listed[max(0, k - n + 1) : k + 1]) for k in range(len(words))]
    assert marked == expected


def test_copies_and_few_documents_are_no_boilerplate() -> None:
    copies = tokenize([b"one two three"] * 200 + [f"x{i} y{i}".encode() for i in range(200)])
    assert learn_boilerplate([copies], 3, 0.01) == ()
    few = tokenize([f"one two three {i}".encode() for i in range(50)])
    assert learn_boilerplate([few], 3, 0.01) == ()


@pytest.mark.parametrize(
    "settings", sample([{"recall": 1}, {}, {"shingle": "word:1"}], 3, "more"), ids=str
)
def test_a_rebuild_learns_boilerplate_and_every_writer_leaves_it_out(
    db: ts.Database, rng: random.Random, settings: dict[str, object]
) -> None:
    texts = templated(rng, 160) | {"nothing": " ".join(HEADER), "empty": ""}
    learned = db.create_corpus("learned", boilerplate=0.2, **settings)  # type: ignore[arg-type]
    learned.add_many(texts.items())
    assert learned.config.learns_boilerplate
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(
            "SELECT textsim.add('learned', k, t) FROM unnest(%s::text[], %s::text[]) u (k, t)",
            [["sql", "sql nothing"], [texts["0000a"] + " more", " ".join(FOOTER)]],
        )
    assert learned.rebuild()
    values = learned.config.boilerplate_values
    assert len(values) >= 56
    assert db.corpus("learned").config == learned.config
    assert learned.check() == []
    assert learned.statistics().empty == 3  # empty, nothing, sql nothing
    db.worker().run(until_idle=True)
    stored = _documents(db, "learned")
    # The same texts again are unchanged, from Python and from SQL.
    assert learned.add_many(texts.items()).unchanged == len(texts)
    with psycopg.connect(db.url, autocommit=True) as connection:
        for key, text in texts.items():
            connection.execute("SELECT textsim.add('learned', %s, %s)", [key, text])
            signature = connection.execute(
                "SELECT (textsim._sketched(c, textsim._form(c, %s), NULL)).signature "
                "FROM textsim._corpus('learned'::text) c",
                [text],
            ).fetchone()
            assert signature == (sketch_texts.signature(text, learned.config).tolist(),)
        assert _documents(db, "learned") == stored
        assert learned.pairs() is not None
        for number in range(5):
            text = texts[f"{number:04}a"]
            rows = connection.execute(
                "SELECT key, similarity FROM textsim.matches('learned', %s)", [text]
            ).fetchall()
            assert sorted(rows) == sorted((m.key, m.similarity) for m in learned.query(text))
    assert learned.check() == []
    # A second rebuild keeps what the first one learned, and leaves the words out only once.
    assert learned.rebuild(threshold=0.7, recall=0.9 if not settings.get("recall") else 1)
    assert learned.config.boilerplate_values == values
    assert [row[:2] for row in _documents(db, "learned")] == [row[:2] for row in stored]
    for name, value in (("boilerplate", 0.5), ("shingle", "word:4")):
        with pytest.raises(ts.ConfigurationError, match="has learned its boilerplate"):
            learned.rebuild(**{name: value})  # type: ignore[arg-type]


def test_documents_that_share_only_a_template_are_no_cluster(
    db: ts.Database, rng: random.Random
) -> None:
    texts = templated(rng, 300)
    corpus = db.create_corpus("c", threshold=0.4, recall=1)
    corpus.add_many(texts.items())
    assert len(list(corpus.clusters())) == 1
    corpus.rebuild(boilerplate=0.01)
    assert sorted(c.keys for c in corpus.clusters()) == [
        (f"{n:04}a", f"{n:04}b") for n in range(150)
    ]


def test_the_shingles_of_a_template_are_listed_with_the_clusters_they_hold(
    db: ts.Database, rng: random.Random
) -> None:
    texts = templated(rng, 120)
    corpus = db.create_corpus("c", threshold=0.4, recall=1)
    corpus.add_many([*texts.items(), *((f"copy{n}", texts["0000a"]) for n in range(5))])
    found = corpus.boilerplate(0.5, None)
    assert (found.documents, found.sampled, found.texts) == (125, 125, 120)
    expected = {" ".join(words[i : i + 3]) for words in (HEADER, FOOTER) for i in range(28)}
    assert {each.text for each in found.shingles} == expected
    assert {each.share for each in found.shingles} == {1.0}
    assert {each.clusters for each in found.shingles} == {None}
    assert all(len(each.keys) == 3 for each in found.shingles)
    held = corpus.boilerplate(0.5, 2, clusters=True).shingles
    assert [each.clusters for each in held] == [1, 1]
    corpus.track()
    corpus.update_clusters()
    assert corpus.boilerplate(0.5, 1).shingles[0].clusters is not None
    with pytest.raises(ts.ConfigurationError, match="share is 0; expected above 0"):
        corpus.boilerplate(0)


def test_a_cluster_that_a_template_holds_is_told_from_true_clusters(
    db: ts.Database, rng: random.Random
) -> None:
    texts = templated(rng, 120)
    others = [" ".join([f"v{rng.randrange(10**6)}" for _ in range(40)]) for _ in range(150)]
    news = {f"news{n}{side}": f"{text} {side}" for n, text in enumerate(others) for side in "ab"}
    corpus = db.create_corpus("c", threshold=0.4, recall=1)
    corpus.add_many([*texts.items(), *news.items()])
    # Documents outside the cluster, which have the header alone.
    quoted = rng.sample(others, 15)
    corpus.add_many((f"out{n}", " ".join([*HEADER, *quoted[n::5]])) for n in range(5))
    found = corpus.inspect_clusters()
    assert [each.cluster for each in found] == list(corpus.clusters())
    (held,) = [each for each in found if each.inspection.held_by_template]
    assert set(held.cluster.keys) == set(texts)
    assert not held.inspection.is_exact
    assert " ".join(HEADER[:3]) in held.inspection.template
    for cluster, inspection in found:
        if len(cluster.keys) == 2:
            assert inspection.is_exact
            assert inspection.least == cluster.weakest
            assert inspection.weakest_member == cluster.keys[0]
    assert corpus.inspect_clusters(fewest=100) == [held]


def test_the_least_similarity_is_that_of_all_pairs(db: ts.Database) -> None:
    words = [f"w{i}" for i in range(40)]
    chain = {f"{k}": " ".join(words[k * 4 : k * 4 + 20]) for k in range(6)}
    corpus = db.create_corpus("c", threshold=0.6, recall=1, shingle="word:1")
    corpus.add_many(chain.items())
    ((cluster, inspection),) = corpus.inspect_clusters()
    assert cluster.weakest == 16 / 24
    assert inspection.is_exact
    assert inspection.least == 0.0
    assert inspection.weakest_member == "0"


def test_sql_says_that_nothing_is_learned_yet(connection: Connection) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda d: notices.append(str(d.message_primary)))
    connection.execute("SELECT textsim.create_corpus('c', boilerplate => 0.01)")
    assert notices == ['corpus "c" has no documents to learn boilerplate from yet']


def _documents(db: ts.Database, name: str) -> list[tuple[object, ...]]:
    with psycopg.connect(db.url) as connection:
        document, _ = tables_of(connection, name)
        number = document.rpartition("_")[2]
        return connection.execute(
            f"SELECT key, textsim._stored_form({number}, word_ids, NULL), signature "
            f'FROM {document} ORDER BY key COLLATE "C"'.encode()
        ).fetchall()
