"""Judgements: kept through every change of the documents, and obeyed alike by Python and SQL."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.clients import Clients
from tests.support.connections import Connection
from tests.support.judgements import (
    Pair,
    expected_clusters,
    judged_groups,
    ordered,
    random_judgements,
)
from textsim_db.cluster import split_large_buckets
from textsim_db.files.judgement_files import read_judgements
from textsim_db.read import bucket_pairs
from textsim_db.results import Duplicate
from textsim_db.settings.named_values import Linkage, VerdictName


def random_corpus(db: ts.Database, rng: random.Random, name: str, scoped: bool) -> ts.Corpus:
    """Return a corpus with chains of small changes, copies, and documents without words."""
    recall = rng.choice([0.9, 1.0])
    corpus = db.create_corpus(name, shingle="word:1", threshold=0.5, recall=recall, scoped=scoped)
    texts = dict(documents(20, words=12, planted=0.5, seed=rng.randrange(10**6)))
    words = texts["doc-0000000"].split()
    for step in range(10):
        words[rng.randrange(len(words))] = f"new{step}"
        texts[f"chain {step}"] = " ".join(words)
    texts |= {f"copy {i}": texts["chain 3"].upper() for i in range(4)}
    texts |= {"empty": "", "void": "?!"}
    keys = list(texts)
    rng.shuffle(keys)
    if scoped:
        corpus.add_many((key, texts[key], rng.choice("xyy")) for key in keys)
    else:
        corpus.add_many((key, texts[key]) for key in keys)
    return corpus


def scopes_of(corpus: ts.Corpus, connection: Connection) -> dict[str, str | None]:
    query = "SELECT id FROM textsim.corpus WHERE name = %s"
    row = connection.execute(query, [corpus.name]).fetchone()
    assert row is not None
    rows = connection.execute(f"SELECT key, scope FROM textsim.document_{row[0]}".encode())
    return dict(rows.fetchall())


def judge_all(
    corpus: ts.Corpus, scopes: dict[str, Any], judgements: dict[Pair, VerdictName]
) -> None:
    """Record judgements, except those of documents of two scopes, which are dropped."""
    for (a, b), verdict in list(judgements.items()):
        if a in scopes and b in scopes and scopes[a] != scopes[b]:
            with pytest.raises(ts.ConfigurationError, match="have different scopes"):
                corpus.judge(a, b, verdict)
            del judgements[a, b]
        else:
            assert corpus.judge(b, a, verdict)


def check_obeyed(
    corpus: ts.Corpus,
    connection: Connection,
    judgements: dict[Pair, VerdictName],
    where: str,
    linkages: Iterable[Linkage],
    rng: random.Random,
) -> None:
    """Compare the clusters and duplicates of Python and SQL with the plain definition."""
    scopes = scopes_of(corpus, connection)
    pairs = {ordered(pair.a, pair.b): pair.similarity for pair in corpus.pairs()}
    keys = sorted(scopes)
    sizes = {key: len(corpus.normal_form(key).split()) for key in keys}
    orders = {"first": keys, "last": keys[::-1]}
    orders["longest"] = sorted(keys, key=lambda key: (-sizes[key], key))
    orders["shortest"] = sorted(keys, key=lambda key: (sizes[key], key))
    for linkage in linkages:
        at = f"{where}, {linkage}"
        found = list(corpus.clusters(linkage=linkage, judgements=True))
        assert found == expected_clusters(scopes, pairs, judgements, linkage, keys), at
        rows = connection.execute(
            "SELECT key, cluster, kept, weakest FROM textsim.clusters("
            "%s, linkage => %s, judgements => true)",
            [corpus.name, linkage],
        ).fetchall()
        listed = [(k, i, c.kept, c.weakest) for i, c in enumerate(found, 1) for k in c.keys]
        assert rows == listed, at
        for keep, order in rng.sample([*orders.items()], 2):
            places = {key: place for place, key in enumerate(order)}
            duplicates = corpus.duplicates(
                linkage=linkage, rank=places.__getitem__, judgements=True
            )
            removed = sorted(duplicates)
            # Only linkage kept depends on the rank.
            considered = order if linkage is Linkage.KEPT else keys
            clusters = expected_clusters(scopes, pairs, judgements, linkage, considered)
            assert {(d.key, d.kept) for d in removed} == {
                (key, first)
                for cluster in clusters
                for first in [min(cluster.keys, key=places.__getitem__)]
                for key in cluster.keys
                if key != first
            }, at
            for each in removed:
                value = pairs.get(ordered(each.key, each.kept), each.similarity)
                assert each.similarity == value, at
            rows = connection.execute(
                "SELECT key, kept, similarity FROM textsim.duplicates("
                "%s, %s, linkage => %s, judgements => true)",
                [corpus.name, keep, linkage],
            ).fetchall()
            assert sorted(rows) == removed, at


@pytest.mark.more
@pytest.mark.parametrize("scoped", [True, False])
def test_random_judgements_are_obeyed(
    db: ts.Database,
    connection: Connection,
    rng: random.Random,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    scoped: bool,
) -> None:
    """Also after an update, a removal and a rebuild, and with large buckets."""
    linkages = list(Linkage)
    for number in range(2):
        if number:
            monkeypatch.setattr(bucket_pairs, "CROWDED_BUCKET", 2)
            monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", 3)
            monkeypatch.setattr("textsim_db.cluster.linkages.MOST_RANKED", 5)
            monkeypatch.setattr("textsim_db.read.list_pairs.DOCUMENTS_OF_A_BATCH", 5)
            # With linkage single, large buckets yield only some links, and `weakest` may be lower.
            linkages.remove(Linkage.SINGLE)
        corpus = random_corpus(db, rng, f"c{number}", scoped)
        scopes = scopes_of(corpus, connection)
        near = [ordered(pair.a, pair.b) for pair in corpus.pairs()]
        judgements = random_judgements(rng, sorted(scopes), near, rng.choice([1, 5, 12, 25]))
        judge_all(corpus, scopes, judgements)
        where = f"--seed {seed}, corpus {number}"
        check_obeyed(corpus, connection, judgements, where, linkages, rng)
        contradictions = connection.execute(
            "SELECT a, b, chain FROM textsim.contradictions(%s)", [corpus.name]
        ).fetchall()
        assert [(a, b) for a, b, _ in contradictions] == judged_groups(judgements)[1]
        for a, b, chain in contradictions:
            assert (chain[0], chain[-1]) == (a, b)
            links = {judgements[ordered(*link)] for link in pairwise(chain)}
            assert links == {"same"}
        corpus.remove(rng.sample(sorted(scopes), 4))
        corpus.add("gone 1", "some words of a document that came later", "y" if scoped else None)
        check_obeyed(corpus, connection, judgements, f"{where}, changed", linkages, rng)
        corpus.rebuild(seed=number + 2)
        check_obeyed(corpus, connection, judgements, f"{where}, rebuilt", linkages, rng)
        assert {(j.a, j.b): j.verdict for j in corpus.judgements()} == judgements


def test_a_chain_leads_through_a_removed_document(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many({"a": "one two three", "b": "four five six", "c": "seven eight nine"})
    corpus._judge_many([("a", "b", "same"), ("b", "c", "same")])
    corpus.remove(["b"])
    for linkage in Linkage:
        (cluster,) = corpus.clusters(linkage=linkage, judgements=True)
        assert cluster.keys == ("a", "c")
        assert cluster.weakest == 1
    assert list(corpus.duplicates(judgements=True)) == [Duplicate("c", "a", 0.0)]
    assert list(corpus.clusters()) == []


def test_only_documents_of_the_language_and_before_their_expiry_count(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", language="auto", keep_for="1 day")
    texts = {
        "en": "the cat sat on the mat and the dog was in the house with all of them",
        "fr": "le chat est sur la table et le chien dans la maison avec tous les autres",
        "en 2": "this is another one of the texts that are written in the same language",
        "old": "these are words that have not been found by anyone for more than a day",
    }
    corpus.add_many(texts)
    corpus._judge_many([("en", key, "same") for key in ("fr", "en 2", "old")])
    connection.execute(
        "UPDATE textsim.document_1 SET expires_at = now() - interval '1 h' WHERE key = 'old'"
    )
    assert [c.keys for c in corpus.clusters(judgements=True)] == [("en", "en 2", "fr")]
    for linkage in Linkage:
        found = corpus.clusters(linkage=linkage, language="en", judgements=True)
        assert [c.keys for c in found] == [("en", "en 2")]
    query = "SELECT key FROM textsim.clusters('c', language => 'en', judgements => true)"
    assert connection.execute(query).fetchall() == [("en",), ("en 2",)]


def test_a_judgement_is_replaced_only_if_its_verdict_is_named(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    assert corpus.judge(1, "b", "same", "a note")
    assert not corpus.judge("b", "1", "same")
    assert not corpus.judge("b", "1", "same", "")
    with pytest.raises(ts.JudgementExists, match=r"'1', 'b'. was judged same by .*, with another"):
        corpus.judge("b", "1", "same", "other words")
    for replaces in (None, "unsure"):
        with pytest.raises(ts.JudgementExists, match=r"was judged same by .* name its verdict"):
            corpus.judge("1", "b", "different", replaces=replaces)
    assert corpus.judge("1", "b", "different", replaces="same")
    (judgement,) = corpus.judgements()
    assert judgement[:3] == ("1", "b", "different")
    assert judgement.note is None
    assert corpus.unjudge("b", "1")
    assert not corpus.unjudge("b", "1")
    with pytest.raises(ts.JudgementExists, match="is not judged"):
        corpus.judge("1", "b", "same", replaces="different")
    assert list(corpus.judgements()) == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("a", "a", "same"), ts.ConfigurationError, "it has the same key twice"),
        (("a", "b", "equal"), ts.ConfigurationError, "verdict is 'equal'; expected same"),
        (("a", "b", None), ts.ConfigurationError, "verdict is NULL"),
        (("a", "k" * 1001, "same"), ts.DocumentError, "1001 bytes long"),
        (("a", "b\0", "same"), ts.DocumentError, "the key has a NUL character"),
        (("a", "b", "same", "x\ud800"), ts.DocumentError, "the note has a lone surrogate"),
        (("a", "b", "same", "x" * 10_001), ts.DocumentError, "the note is 10001 bytes long"),
        (("a", "b", "same", 1), ts.DocumentError, "the note is of type int"),
    ],
)
def test_a_wrong_judgement_is_refused_with_all_others(
    corpus_db: ts.Database, arguments: Any, error: type[Exception], message: str
) -> None:
    corpus = corpus_db.create_corpus("c")
    with pytest.raises(error, match=message):
        corpus.judge(*arguments)
    with pytest.raises(error, match=f"^judgement 1: .*{message}"):
        corpus._judge_many([("x", "y", "same"), arguments])
    assert list(corpus.judgements()) == []


def test_judgements_are_columns_of_a_frame(db: ts.Database) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    corpus = db.create_corpus("c")
    corpus._judge_many([("a", "b", "same", "x"), ("b", "c", "same"), ("a", "c", "different")])
    table = pyarrow.table(corpus.judgements())
    assert table["verdict"].to_pylist() == ["same", "different", "same"]
    assert table["judged_at"].type == pyarrow.timestamp("us", "UTC")
    assert table["judged_at"].to_pylist() == [each.judged_at for each in corpus.judgements()]


def test_the_second_of_two_sessions_does_not_replace_the_judgement_of_the_first(
    db: ts.Database, make_client: Clients
) -> None:
    db.create_corpus("c")
    judge = "SELECT textsim.judge('c', 'a', 'b', %s)"
    first, second = make_client("first"), make_client("second")
    assert first.does(first.sql(judge, "same")) == [(True,)]
    second.waits(second.sql(judge, "different"))
    first.commit()
    with pytest.raises(psycopg.errors.RestrictViolation, match="was judged same by"):
        second.end()
    second.rollback()
    # Both have seen the verdict, and only one of them replaces it.
    replace = f"{judge[:-1]}, replaces => 'same')"
    assert first.does(first.sql(replace, "unsure")) == [(True,)]
    second.waits(second.sql(replace, "different"))
    first.commit()
    with pytest.raises(psycopg.errors.RestrictViolation, match="was judged unsure by"):
        second.end()


def test_judgements_go_with_their_corpus(db: ts.Database, connection: Connection) -> None:
    for _ in range(2):
        corpus = db.create_corpus("c")
        assert list(corpus.judgements()) == []
        corpus.judge("a", "b", "same")
        for seed in (2, 3):
            corpus.rebuild(seed=seed)
        assert len(list(corpus.judgements())) == 1
        db.drop_corpus(corpus.name)
    assert connection.execute("SELECT count(*) FROM textsim.judgement").fetchone() == (0,)


def test_a_judgement_says_who_judges_and_how_sure(db: ts.Database, tmp_path: Path) -> None:
    """An import restores an exported list, except the times."""
    corpus = db.create_corpus("c")
    assert corpus.judge("a", "b", "same", source="model 1", confidence=0.9)
    assert not corpus.judge("b", "a", "same")
    assert not corpus.judge("b", "a", "same", source="model 1", confidence=0.9)
    with pytest.raises(ts.JudgementExists, match="another note, source, confidence or text"):
        corpus.judge("a", "b", "same", confidence=0.8)
    assert corpus.judge("a", "b", "different", "a year", replaces="same", source="Ann")
    corpus.judge("c", "d", "unsure", confidence=0)
    judged = [(j.a, j.b, j.verdict, j.note, j.source, j.confidence) for j in corpus.judgements()]
    assert judged == [
        ("a", "b", "different", "a year", "Ann", None),
        ("c", "d", "unsure", None, None, 0.0),
    ]
    path = tmp_path / "judgements.jsonl"
    lines = [json.dumps(each._asdict(), default=str) for each in corpus.judgements()]
    path.write_text("\n".join(lines))
    again = db.create_corpus("again")
    assert again._judge_many([each[:6] for each in read_judgements(str(path))]) == 2
    assert [(*j[:4], *j[5:]) for j in again.judgements()] == [
        (*j[:4], *j[5:]) for j in corpus.judgements()
    ]
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ts.DatabaseError, match="judgement_confidence_check"):
            corpus.judge("e", "f", "same", confidence=wrong)
    with pytest.raises(ts.DatabaseError, match="judgement_source_check"):
        corpus.judge("e", "f", "same", source="x" * 201)
