"""Documents with two equal buckets; with the default settings one document in 28 million has them."""

from __future__ import annotations

import random

import pytest

import textsim_db as ts
from tests.support.connections import Connection, value

pytestmark = pytest.mark.both_servers

FIRST, SECOND, SINGLE = (f"some words and {number}" for number in (5592, 9978, 9999))
"""Two texts that have a bucket twice, and one text whose buckets all differ, in the corpus below."""


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    """A corpus in which one document in some 2,048 has two equal buckets."""
    return db.create_corpus("c", shingle="word:1", num_hashes=4096, bands=2048, rows=2)


def problems(corpus: ts.Corpus) -> set[tuple[str, str]]:
    return {(problem.kind, problem.subject) for problem in corpus.check()}


def count_band_rows(connection: Connection) -> dict[str, tuple[int, int]]:
    """Return the numbers of band rows and of distinct buckets of each document."""
    rows = connection.execute(
        "SELECT d.key, count(*), count(DISTINCT b.bucket) FROM textsim.band_1 b "
        "JOIN textsim.document_1 d ON d.id = b.document_id GROUP BY 1"
    ).fetchall()
    return {key: (band_rows, buckets) for key, band_rows, buckets in rows}


@pytest.mark.parametrize("way", ["python", "sql"])
def test_documents_with_equal_buckets_are_written_replaced_and_removed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, way: str
) -> None:
    def write(text: str) -> None:
        if way == "python":
            corpus.add("k", text)
        else:
            connection.execute("SELECT textsim.add('c', 'k', %s)", [text])

    for text in (FIRST, SINGLE, SECOND, FIRST, "", FIRST, SECOND, SINGLE, FIRST):
        write(text)
        assert corpus.check() == []
        if text:
            band_rows, buckets = count_band_rows(connection)["k"]
            assert band_rows == 2048
            assert (buckets < 2048) == (text != SINGLE)
        assert [match.key for match in corpus.query(text)] == ["k"] * bool(text)
    if way == "python":
        corpus.remove(["k"])
    else:
        connection.execute("SELECT textsim.remove('c', 'k')")
    assert count_band_rows(connection) == {}
    db.worker().run(until_idle=True)
    assert corpus.check() == []


@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        ("DELETE FROM textsim.band_1 WHERE ctid = ({one_equal})", {"missing band row"}),
        ("DELETE FROM textsim.band_1 WHERE {is_equal}", {"missing band row"}),
        (
            "INSERT INTO textsim.band_1 SELECT * FROM textsim.band_1 WHERE {is_equal}",
            {"extra band row"},
        ),
        (
            "UPDATE textsim.band_1 SET bucket = bucket # 1 WHERE ctid = ({one_equal})",
            {"missing band row", "extra band row"},
        ),
    ],
)
def test_check_counts_equal_band_rows(
    corpus: ts.Corpus, connection: Connection, damage: str, kinds: set[str]
) -> None:
    corpus.add_many([("k", FIRST), ("other", SINGLE)])
    assert corpus.check() == []
    equal = (
        "SELECT bucket, document_id FROM textsim.band_1 GROUP BY 1, 2 HAVING count(*) > 1 LIMIT 1"
    )
    is_equal = f"(bucket, document_id) = ({equal})"
    one_equal = f"SELECT min(ctid) FROM textsim.band_1 WHERE {is_equal}"
    connection.execute(damage.format(is_equal=is_equal, one_equal=one_equal).encode())
    assert problems(corpus) == {(kind, "k") for kind in kinds}


def test_a_pair_with_several_equal_buckets_is_listed_once(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    """SQL and Python list the same pairs."""
    texts = {"a": FIRST, "b": FIRST, "c": SECOND, "d": SINGLE, "e": f"{FIRST} more"}
    corpus.add_many(texts.items())
    candidates = "SELECT * FROM textsim.candidates('c', %s)"
    for key, text in texts.items():
        expected = [tuple(candidate) for candidate in corpus.candidates(text)]
        assert len(expected) == len({name for name, _ in expected}) == len(texts)
        assert connection.execute(candidates, [text]).fetchall() == expected
        query = "SELECT key FROM textsim.neighbours('c', %s, 0.1)"
        assert len(connection.execute(query, [key]).fetchall()) == len(texts) - 1
    pairs = sorted((pair.a, pair.b, pair.similarity) for pair in corpus.pairs(0.1))
    assert len(pairs) == 10
    assert sorted(connection.execute("SELECT * FROM textsim.pairs('c', 0.1)").fetchall()) == pairs
    listed = connection.execute("SELECT a, b FROM textsim.candidate_pairs('c')").fetchall()
    assert sorted(listed) == [pair[:2] for pair in pairs]
    corpus.rebuild(seed=2)
    assert corpus.check() == []
    corpus.rebuild(seed=1)
    assert corpus.check() == []
    assert sorted((pair.a, pair.b, pair.similarity) for pair in corpus.pairs(0.1)) == pairs


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ([], [], []),
        ([], [1, 2], [1, 2]),
        ([1, 2], [], [1, 2]),
        ([1, 2, 3], [3, 1, 2], []),
        ([1, 2, 3], [1, 5, 3], [2, 5]),
        ([7, 7, 3], [7, 3, 4], [7, 4]),
        ([7, 3, 4], [7, 7, 3], [7, 4]),
        ([7, 7, 3], [7, 3, 7], []),
        ([7, 7], [7, 7, 7], [7]),
        ([-(2**31), 2**31 - 1], [2**31 - 1, 0], [-(2**31), 0]),
    ],
)
def test_buckets_whose_count_changes_are_listed_once(
    shared_connection: Connection, old: list[int], new: list[int], changed: list[int]
) -> None:
    """A bucket changes if the old and the new buckets contain it a different number of times."""
    query = "SELECT textsim._changed_buckets(%s::integer[], %s::integer[])"
    assert sorted(value(shared_connection, query, [old, new])) == sorted(changed)


def ids(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT key, id FROM textsim.document_1").fetchall())


def band_rows(connection: Connection) -> list[tuple[int, int]]:
    return connection.execute(
        "SELECT document_id, bucket FROM textsim.band_1 ORDER BY 1, 2"
    ).fetchall()


EQUAL_BUCKETS = """
CREATE OR REPLACE FUNCTION textsim._bucket(signature smallint[], rows integer, band integer)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ((hash_array_extended(signature[band * rows + 1:(band + 1) * rows], band) << 32) >> 32)::integer
    % 3
"""


def test_writes_by_sql_keep_band_rows_right_with_only_three_buckets(
    db: ts.Database, connection: Connection
) -> None:
    """With only three buckets, every document has some bucket several times."""
    db.create_corpus("c", shingle="word:1", bands=8, rows=2, num_hashes=16)
    connection.execute(EQUAL_BUCKETS.encode())
    buckets = (
        "SELECT unnest(textsim._buckets(signature, 8, 2)) FROM textsim.document_1 WHERE key = %s"
    )

    def check(keys: set[str]) -> None:
        expected = sorted(
            (number, bucket)
            for key, number in ids(connection).items()
            for (bucket,) in connection.execute(buckets, [key]).fetchall()
        )
        assert band_rows(connection) == expected
        assert ids(connection).keys() == keys

    rng = random.Random(4)
    keys: set[str] = set()
    for number in range(60):
        key = f"k{rng.randrange(6)}"
        if rng.random() < 0.25:
            connection.execute("SELECT textsim.remove('c', %s)", [key])
            keys.discard(key)
        else:
            text = " ".join(rng.choices("abcdef", k=rng.randrange(4))) + f" {number % 4}"
            connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
            keys.add(key)
        check(keys)
    # Every two documents share several buckets; each pair is listed once.
    pairs = connection.execute("SELECT a, b FROM textsim.candidate_pairs('c')").fetchall()
    assert len(pairs) == len(set(pairs))
    candidates = connection.execute("SELECT key FROM textsim.candidates('c', 'a b c')").fetchall()
    assert len(candidates) == len(set(candidates))
