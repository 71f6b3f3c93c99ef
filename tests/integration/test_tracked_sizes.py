"""Large clusters and large loads of tracked corpora."""

from __future__ import annotations

from collections import Counter

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from tests.support.tracked import compare

pytestmark = pytest.mark.more

LINKAGES = pytest.mark.parametrize("linkage", ["kept", "single"])


@LINKAGES
def test_many_copies_of_one_text(db: ts.Database, linkage: str) -> None:
    count = 20_000
    corpus = db.create_corpus("c")
    corpus.track(linkage)
    text = "the same text again and again, word by word"
    corpus.add_many((str(number), text) for number in range(count))
    assert corpus.update_clusters() == count
    corpus.add("near", f"{text} by word")
    corpus.remove(["0"])
    corpus.update_clusters()
    members = list(corpus.members())
    assert len({member.cluster for member in members}) == 1
    assert len(members) == count
    assert len({member.representative for member in members}) == 1
    assert Counter(member.similarity for member in members)[1.0] == count - 1
    corpus.remove(str(number) for number in range(count))
    corpus.update_clusters()
    assert list(corpus.members()) == []
    assert corpus.check() == []


@LINKAGES
def test_a_long_chain_is_cut_and_mended(
    db: ts.Database, connection: Connection, linkage: str
) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.8, recall=1.0)
    corpus.track(linkage)
    texts = {f"{start:04}": " ".join(f"w{start + i}" for i in range(20)) for start in range(1000)}
    corpus.add_many(texts.items())
    corpus.update_clusters()
    clusters = compare(connection, corpus, linkage, 0.8)
    corpus.remove(["0499", "0500"])
    corpus.update_clusters()
    compare(connection, corpus, linkage, 0.8)
    corpus.add_many((key, texts[key]) for key in ("0499", "0500"))
    corpus.update_clusters()
    mended = compare(connection, corpus, linkage, 0.8)
    if linkage == "single":
        assert clusters.keys() == mended.keys() == {1}


@pytest.mark.parametrize(
    ("linkage", "way"),
    [
        *(("kept", "sql"), ("single", "sql"), ("complete", "sql")),
        *(("kept", "python"), ("single", "worker")),
    ],
)
def test_many_documents_that_are_loaded_at_once(
    db: ts.Database, connection: Connection, linkage: str, way: str
) -> None:
    corpus = db.create_corpus("c")
    corpus.track(linkage)
    corpus.add_many(documents(10_000, words=60, planted=0.3, seed=1))
    if way == "sql":
        connection.execute("CALL textsim.update_clusters('c')")
    elif way == "worker":
        db.worker().run(until_idle=True)
    else:
        assert corpus.update_clusters() == 10_000
    clusters = compare(connection, corpus, linkage, corpus.config.threshold)
    assert len(clusters) > 500
    assert corpus.check() == []


def test_a_worker_joins_large_tables_as_others_do(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    corpus.track()
    corpus.add("first", "a text of its own")
    corpus.update_clusters()
    connection.execute("CREATE TABLE seen (hashjoin text, mergejoin text)")
    connection.execute("""
        CREATE FUNCTION note_joins() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO public.seen
            SELECT current_setting('enable_hashjoin'), current_setting('enable_mergejoin');
            RETURN NULL;
        END $$;
        CREATE TRIGGER note_joins AFTER INSERT ON textsim.member_1
        FOR EACH STATEMENT EXECUTE FUNCTION note_joins()
    """)
    for count in (10_000, 10):  # all clusters are computed, and then some are updated
        texts = documents(count, words=20, planted=0.5, seed=count)
        corpus.add_many((f"{count} {key}", text) for key, text in texts)
        db.worker().run(until_idle=True)
    joins = connection.execute("SELECT hashjoin, mergejoin FROM seen").fetchall()
    assert len(joins) >= 2
    assert set(joins) == {("on", "on")}
