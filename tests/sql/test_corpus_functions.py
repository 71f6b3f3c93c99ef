"""The functions of a corpus: made with it, gone with it, and planned once in a session."""

from __future__ import annotations

import random
from typing import Any, LiteralString

import pytest
from psycopg import errors as pg

import textsim_db as ts
from benchmarks.generate import documents
from tests.support import reference
from tests.support.catalog import expected_settings
from tests.support.connections import Connection, value

OF_CORPORA = r"""
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proconfig::text[],
    p.provolatile, p.proparallel, p.prosecdef, obj_description(p.oid, 'pg_proc'), p.proacl::text
FROM pg_proc p
WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname ~ '^_(search|write|remove)_\d+$'
ORDER BY 1
"""


def functions(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute(OF_CORPORA).fetchall()


def names(connection: Connection) -> list[str]:
    return [name.partition("(")[0] for name, *_ in functions(connection)]


def test_a_corpus_comes_and_goes_with_its_functions(
    db: ts.Database, connection: Connection
) -> None:
    objects = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'textsim'::regnamespace "
        r"AND relname ~ '_\d+(_|$)' ORDER BY 1"
    )
    assert names(connection) == []
    assert connection.execute(objects).fetchall() == []
    db.create_corpus("python")
    connection.execute("SELECT textsim.create_corpus('sql')")
    expected = [f"textsim._{what}_{i}" for what in ("remove", "search", "write") for i in (1, 2)]
    assert names(connection) == expected
    assert connection.execute(objects).fetchall() == [
        (f"{relation}_{i}{rest}",)
        for relation, rests in (
            ("band", ("", "_bucket")),
            ("document", ("", "_id", "_id_seq", "_key")),
        )
        for i in (1, 2)
        for rest in rests
    ]
    db.drop_corpus("python")
    assert names(connection) == expected[1::2]
    connection.execute("SELECT textsim.drop_corpus('sql')")
    assert names(connection) == []
    assert connection.execute(objects).fetchall() == []


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shingle": "char:5", "threshold": 0.55, "num_hashes": 64, "seed": 9},
        {"shingle": "word:1", "bands": 20, "rows": 5, "language": "auto"},
    ],
    ids=str,
)
def test_the_same_functions_by_python_and_sql(
    db: ts.Database, connection: Connection, settings: dict[str, Any]
) -> None:
    db.create_corpus("python", **settings)
    arguments = "".join(f", {name} => %s" for name in settings)
    connection.execute(
        f"SELECT textsim.create_corpus('sql'{arguments})".encode(), [*settings.values()]
    )
    found = functions(connection)
    assert len(found) == 6
    for (name, text, *facts), (other_name, other_text, *other_facts) in zip(
        found[::2], found[1::2], strict=True
    ):
        assert other_name == name.replace("_1(", "_2(")
        assert other_text == text.replace("_1", "_2").replace("VALUES (1,", "VALUES (2,").replace(
            "), 1), new_count", "), 2), new_count"
        )
        assert other_facts == facts


def test_they_carry_the_settings(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", "word:2", threshold=0.625, num_hashes=77, seed=5)
    config = corpus.config
    found = {name.partition("(")[0][9:]: text for name, text, *_ in functions(connection)}
    for text in found.values():
        assert "{" not in text.replace("'{}'", "")
        assert f", {config.bands}, {config.rows})" in text
    assert f"{config.num_hashes}, {reference.base(5)})" in found["write_1"]
    assert "coalesce(threshold, '0.625'::double precision)" in found["search_1"]


def test_what_they_state(db: ts.Database, connection: Connection) -> None:
    db.create_corpus("c")
    volatility = {"search": ("s", "s"), "write": ("v", "u"), "remove": ("v", "u")}
    for name, _, settings, volatile, parallel, definer, comment, rights in functions(connection):
        assert settings == expected_settings(name)
        assert (volatile, parallel) == volatility[name.split("_")[1]]
        assert not definer
        assert comment
        assert rights is None  # what they read and write is refused, not their call


def test_making_them_anew_changes_nothing(db: ts.Database, connection: Connection) -> None:
    for shingle in ("word:3", "char:4"):
        db.create_corpus(shingle, shingle).add("a", "one two three four five")
    before = functions(connection)
    connection.execute("SELECT textsim._make_functions(c.id) FROM textsim.corpus c")
    assert functions(connection) == before
    for what in ("search", "write", "remove"):
        connection.execute(f"DROP FUNCTION textsim._{what}_1".encode())
    connection.execute("SELECT textsim._make_functions(1)")
    assert functions(connection) == before
    assert value(connection, "SELECT textsim.add('word:3', 'b', 'one two three four five')")
    query = "SELECT key FROM textsim.matches('word:3', 'one two three four five')"
    assert connection.execute(query).fetchall() == [("a",), ("b",)]


def test_a_rebuilt_corpus_has_functions_of_its_own(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    corpus.add("a", "one two three four five")
    corpus.rebuild(shingle="word:2", threshold=0.5)
    assert [name.rpartition("_")[2] for name in names(connection)] == ["2"] * 3
    text = {name.partition("(")[0]: text for name, text, *_ in functions(connection)}
    assert "'0.5'::double precision" in text["textsim._search_2"]
    query = "SELECT key FROM textsim.matches('c', 'one two three')"
    assert connection.execute(query).fetchall() == [("a",)]


SCANS = """
SELECT sum(seq_scan), sum(idx_scan) FROM pg_stat_xact_user_tables
WHERE schemaname = 'textsim' AND relname IN ('document_1', 'band_1')
"""
"""Of the session's own transaction, in which they are counted at once."""


@pytest.mark.parametrize("mode", ["by function", "inline"])
def test_plans_of_an_empty_corpus_are_right_for_a_full_one(
    db: ts.Database, connection: Connection, mode: str
) -> None:
    """A session searches and writes while the tables are empty, and then fills them."""
    corpus = db.create_corpus("c", num_hashes=32)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    if mode == "inline":
        corpus.attach("t", "id", "body", "inline")
        write, remove = "INSERT INTO t VALUES (%s, %s)", "DELETE FROM t WHERE id = %s"
    else:
        write, remove = "SELECT textsim.add('c', %s, %s)", "SELECT textsim.remove('c', %s)"
    searches = (
        "SELECT * FROM textsim.matches('c', %s)",
        "SELECT * FROM textsim.neighbours('c', %s)",
    )
    # All plans are made for any values, and while there are no rows.
    connection.execute("SET plan_cache_mode = force_generic_plan")

    def run(query: LiteralString, *values: str) -> None:
        connection.execute(query, values, prepare=True)

    for _ in range(2):
        run(write, "first", "one two three")
        for query in searches:
            run(query, "first")
        run(remove, "first")
    texts = dict(documents(5000, words=8, planted=0.3, seed=1))
    with connection.transaction():
        for number, (key, text) in enumerate(texts.items()):
            run(write, key, text)
            if number % 10 == 0:
                run(searches[0], text)
                run(searches[1], key)
                run(remove, key)
        sequential, indexed = connection.execute(SCANS).fetchall()[0]
    assert (sequential, indexed > 10_000) == (0, True)
    assert len(corpus) == 4500
    db.worker().run(until_idle=True)
    assert corpus.check() == []


# Ids.


def ids(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT key, id FROM textsim.document_1").fetchall())


def test_updates_keep_ids(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many([("a", "one two three"), ("b", "four five six")])
    connection.execute("SELECT textsim.add('c', 'd', 'seven eight nine')")
    before = ids(connection)
    assert before == {"a": 1, "b": 2, "d": 3}
    corpus.add_many([("a", "another text of Python's"), ("d", "")])
    connection.execute("SELECT textsim.add('c', 'b', 'another text of SQL''s')")
    db.worker().run(until_idle=True)
    assert ids(connection) == before
    assert corpus.check() == []
    corpus.remove(["a"])
    corpus.add("a", "one two three")
    assert ids(connection) == before | {"a": 4}
    corpus.rebuild(seed=3)
    query = "SELECT id FROM textsim.document_2 ORDER BY id"
    assert connection.execute(query).fetchall() == [(1,), (2,), (3,)]


def test_running_out_of_ids(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("my corpus")
    corpus.add("a", "one two three")
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483646)")
    assert value(connection, "SELECT textsim.add('my corpus', 'last', 'four five six')")
    for number in range(2):
        with pytest.raises(pg.SequenceGeneratorLimitExceeded) as refused:
            connection.execute("SELECT textsim.add('my corpus', 'b', 'one two three')")
        assert refused.value.diag.message_primary == (
            'corpus "my corpus" has given out all its 2147483647 ids of documents'
        )
        assert refused.value.diag.message_hint == "textsim rebuild numbers the documents anew."
        with pytest.raises(ts.DatabaseError, match="has given out all 2,147,483,647 ids") as error:
            corpus.add_many([(f"{number}", "one two three"), ("b", "one two three")])
        assert "textsim rebuild 'my corpus'" in str(error.value)
    # What is there can still be changed.
    assert corpus.add("last", "seven eight nine").replaced == 1
    assert connection.execute("SELECT textsim.add('my corpus', 'a', 'ten')").fetchone() == (True,)
    assert corpus.check() == []
    corpus.rebuild(seed=2)
    assert corpus.add("b", "one two three").added == 1
    query = "SELECT key, id FROM textsim.document_2 ORDER BY id"
    assert [id for _, id in connection.execute(query).fetchall()] == [1, 2, 3]  # noqa: A001
    db.worker().run(until_idle=True)
    assert corpus.check() == []


def test_a_batch_that_does_not_fit_writes_nothing(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483640)")
    with pytest.raises(ts.DatabaseError, match="has given out all"):
        corpus.add_many((f"{i}", f"text {i}") for i in range(10))
    assert len(corpus) == 0
    assert corpus.check() == []
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483637)")
    assert corpus.add_many((f"{i}", f"text {i}") for i in range(10)).added == 10
    assert max(ids(connection).values()) == 2147483647
    assert [match.key for match in corpus.query("text 7", 1.0)] == ["7"]
    assert corpus.check() == []
    assert len(list(corpus.pairs(0.1))) == 0


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_rows_of_an_attached_table_when_ids_have_run_out(
    db: ts.Database, connection: Connection, mode: str
) -> None:
    corpus = db.create_corpus("c")
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body", mode)
    insert = "INSERT INTO t VALUES (1, 'one two three')"
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483647)")
    if mode == "inline":
        with pytest.raises(pg.SequenceGeneratorLimitExceeded, match="textsim rebuild"):
            connection.execute(insert)
    else:
        connection.execute(insert)
        for _ in range(9):  # tried again, until it is set aside
            db.worker().run(until_idle=True)
            connection.execute("UPDATE textsim.pending SET lease_until = NULL")
        (failure,) = corpus.failures()
        assert "has given out all" in failure.error
        assert "textsim rebuild" in failure.error
    corpus.rebuild()
    if mode == "inline":
        connection.execute(insert)
    else:
        corpus.retry_failures()
    db.worker().run(until_idle=True)
    assert [match.key for match in corpus.query("one two three")] == ["1"]
    assert corpus.failures() == []
    assert corpus.check() == []


# Equal buckets of one document.


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
def test_changed_buckets(
    shared_connection: Connection, old: list[int], new: list[int], changed: list[int]
) -> None:
    """Buckets that do not occur as often in the one as in the other, each once."""
    query = "SELECT textsim._changed_buckets(%s::integer[], %s::integer[])"
    assert sorted(value(shared_connection, query, [old, new])) == sorted(changed)


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


def test_writes_of_equal_buckets(db: ts.Database, connection: Connection) -> None:
    """With three buckets in all, every document has some of them several times."""
    db.create_corpus("c", "word:1", bands=8, rows=2, num_hashes=16)
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
    # Every two documents share a bucket, and each is listed once.
    pairs = connection.execute("SELECT a, b FROM textsim.candidate_pairs('c')").fetchall()
    assert len(pairs) == len(set(pairs))
    found = connection.execute("SELECT key FROM textsim.candidates('c', 'a b c')").fetchall()
    assert len(found) == len(set(found))


# The exact similarity, by word ids or by texts.

SIMILARITY = """
SELECT textsim._similarity(%s::integer[], %s, %s::integer,
    %s::integer[], %s, %s::integer, 'word', %s::integer)
"""


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_similarity_by_ids_equals_that_by_texts(
    db: ts.Database, connection: Connection, rng: random.Random, n: int
) -> None:
    """Of documents of few words, of repeated and of unknown words, with ids and without."""
    stored = db.create_corpus("c", "word:1")
    stored.add("known", "a b c")
    texts = ["", "a", "x", "a a", "a b", "x y", "a b a", "b x a", "a a a a", "a b a b", "x a x a"]
    texts += [" ".join(rng.choices("abcxyz", k=rng.randrange(1, 12))) for _ in range(25)]
    numbers = "SELECT textsim._word_numbers(%s)"
    counts = """
        SELECT textsim._count_shingles(form, textsim._shingle_values(form, 'word', n), 'word', n)
        FROM (VALUES (%s::text, %s::integer)) v (form, n)
    """
    rows = []
    for text in texts:
        word_numbers = value(connection, numbers, [text])
        assert [word > 0 for word in word_numbers] == [word in "abc" for word in text.split()]
        count = value(connection, counts, [text, n])
        assert count == len(reference.shingles(text, "word", n))
        rows.append((text, word_numbers, count))
    for a, a_ids, a_count in rows:
        for b, b_ids, b_count in rows:
            if {"x", "y", "z"} & {*a.split()} and {"x", "y", "z"} & {*b.split()}:
                continue  # of two documents, one is stored: all its words have ids
            expected = reference.jaccard(
                {*reference.shingles(a, "word", n)}, {*reference.shingles(b, "word", n)}
            )
            for left in ((a_ids, None, a_count), (None, a, a_count), (a_ids, a, a_count)):
                for right in ((b_ids, None, b_count), (None, b, b_count)):
                    if left[1] is None and min(a_ids, default=1) < 0:
                        continue  # a number below 0 stands for no word
                    if right[1] is None and min(b_ids, default=1) < 0:
                        continue
                    found = value(connection, SIMILARITY, [*left, *right, n])
                    assert found == pytest.approx(expected, abs=1e-15), (a, b, left, right)


@pytest.mark.parametrize("shingle", ["word:1", "word:2", "word:3", "word:4", "char:3"])
def test_searches_among_documents_that_wait_for_ids(
    db: ts.Database, connection: Connection, shingle: str
) -> None:
    """The same matches and similarities, whether the words of a document have ids or not."""
    texts = {
        "none": "",
        "one": "alpha",
        "two": "alpha beta",
        "repeated": "alpha alpha alpha alpha",
        "three": "alpha beta gamma",
        "four": "alpha beta gamma delta",
        "many": "alpha beta gamma delta epsilon zeta eta theta",
        "changed": "alpha beta gamma delta epsilon zeta eta iota",
    }
    settings: dict[str, Any] = {"shingle": shingle, "threshold": 0.3, "bands": 256, "rows": 2}
    settings["num_hashes"] = 512
    ready = db.create_corpus("ready", **settings)
    ready.add_many(list(texts.items())[::2])
    db.create_corpus("waiting", **settings)
    db.create_corpus("mixed", **settings).add_many(list(texts.items())[::2])
    for key, text in texts.items():
        for name in ("waiting", "mixed"):
            connection.execute("SELECT textsim.add(%s, %s, %s)", [name, key, text])
    ready.add_many(texts.items())
    asked = [*texts.values(), "unknown", "unknown words alpha beta gamma", "zeta zeta unknown"]

    def answers(name: str) -> list[Any]:
        found = [
            connection.execute(
                "SELECT * FROM textsim.matches(%s, %s, 0.05)", [name, text]
            ).fetchall()
            for text in asked
        ]
        found += [
            connection.execute(
                "SELECT * FROM textsim.neighbours(%s, %s, 0.05)", [name, key]
            ).fetchall()
            for key in texts
        ]
        pairs = connection.execute("SELECT * FROM textsim.pairs(%s, 0.05)", [name]).fetchall()
        return [*found, sorted(pairs)]

    expected = answers("ready")
    assert sum(map(len, expected)) > 20
    assert answers("waiting") == answers("mixed") == expected
    for text, found in zip(asked, expected[: len(asked)], strict=True):
        assert found == [match[:2] for match in ready.query(text, 0.05, 10)]
    db.worker().run(until_idle=True)
    assert answers("waiting") == answers("mixed") == expected
