"""Large clusters of tracked corpora, and crowds of texts that all match, as filled-in templates do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from textsim_db.sync import build_clusters

MOST = 200
"""With how many earlier candidates a document is compared."""
TEMPLATE = " ".join(f"word{number}" for number in range(40))


def filled(numbers: range) -> Iterator[tuple[str, str]]:
    """Yield texts of which every two match."""
    for number in numbers:
        yield f"{number:05}", f"{TEMPLATE} {number} a{number} b{number}"


def tracked(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.7)
    corpus.track()
    return corpus


def matches_of(connection: Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM textsim.match_1").fetchone() or (0,)
    return int(count)


def check_one_cluster(corpus: ts.Corpus, keys: set[str], first: str) -> None:
    """Check that all documents are in one cluster, and that its first document represents it."""
    members = list(corpus.members())
    assert {member.key for member in members} == keys
    assert Counter(member.representative for member in members) == {first: len(keys)}
    assert corpus.check() == []


@pytest.mark.more
@pytest.mark.parametrize("is_bulk", [False, True])
def test_a_crowd_is_one_cluster_and_has_few_matches(
    db: ts.Database,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    is_bulk: bool,
) -> None:
    count = 350
    corpus = tracked(db)
    corpus.add_many(filled(range(count)))
    if is_bulk:
        monkeypatch.setattr(build_clusters, "LEAST_DOCUMENTS", 100)
    assert corpus.update_clusters() == count
    check_one_cluster(corpus, {key for key, _ in filled(range(count))}, "00000")
    crowded = [member.key for member in corpus.members() if member.crowded]
    assert crowded == [key for key, _ in filled(range(MOST + 1, count))]
    most = MOST * (MOST + 1) // 2 + MOST * (count - 1 - MOST)
    # Among the earliest candidates are some of those that share most buckets.
    assert matches_of(connection) == most if is_bulk else most / 2 < matches_of(connection) <= most
    assert corpus.status().crowded == count - 1 - MOST


@pytest.mark.more
def test_a_crowd_that_loses_matches_is_compared_again(
    db: ts.Database, connection: Connection
) -> None:
    count, removed = 330, 120
    corpus = tracked(db)
    corpus.add_many(filled(range(count)))
    corpus.update_clusters()
    for start in range(0, removed, 60):
        corpus.remove([key for key, _ in filled(range(start, start + 60))])
        corpus.update_clusters()
        left = range(start + 60, count)
        check_one_cluster(corpus, {key for key, _ in filled(left)}, f"{start + 60:05}")
    left = range(removed, count)
    most = len(left) * (len(left) - 1) // 2
    assert most / 2 < matches_of(connection) <= most
    corpus.remove([key for key, _ in filled(left)])
    corpus.update_clusters()
    assert matches_of(connection) == 0
    assert corpus.status().crowded == 0
    assert corpus.check() == []


def test_the_likest_text_is_found_in_a_crowd(db: ts.Database) -> None:
    """A document is compared with the texts that share most buckets with it."""
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.95)
    corpus.track()
    corpus.add_many(filled(range(400)))
    corpus.update_clusters()
    assert list(corpus.members()) == []
    long = " ".join(f"own{number}" for number in range(60))
    corpus.add_many([("one", f"{TEMPLATE} {long}"), ("other", f"{TEMPLATE} {long} more")])
    corpus.update_clusters()
    assert sorted(member.key for member in corpus.members()) == ["one", "other"]


def test_copies_of_a_text_do_not_hide_a_cluster(db: ts.Database) -> None:
    """A bucket has more documents than are read, but few different texts."""
    corpus = tracked(db)
    (_, text), *others = filled(range(4))
    corpus.add_many((f"copy {number}", text) for number in range(1200))
    corpus.update_clusters()
    corpus.add_many(others)
    corpus.update_clusters()
    members = list(corpus.members())
    assert len({member.cluster for member in members}) == 1
    assert len(members) == 1203
    assert {member.key for member in members if member.crowded} >= {key for key, _ in others}
    assert corpus.check() == []


@pytest.mark.more
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
