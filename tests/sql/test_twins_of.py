"""textsim.twins_of: which texts of a list have a twin, as add_many of Python decides it."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.reference import similarity
from tests.support.sampling import sample
from tests.support.sources import stored_forms
from textsim_db.base import run_ahead

COMMON = "one two three four five six seven eight nine ten"
RED, BLUE, OTHER = f"{COMMON} red", f"{COMMON} blue", "nothing that any other text in here contains"
SETTINGS: dict[str, dict[str, Any]] = {
    "exact": {"recall": 1.0},
    "bands": {"num_hashes": 64, "bands": 32, "rows": 2},
}
Twins = list[tuple[str, str, float]]


@pytest.fixture(params=["exact", pytest.param("bands", marks=pytest.mark.more)])
def corpus(db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    return db.create_corpus(
        "c", shingle="word:2", threshold=0.7, is_unique=True, **SETTINGS[request.param]
    )


@pytest.fixture
def table(corpus: ts.Corpus, connection: Connection) -> None:
    """A table that is attached to the corpus, and one with rows to insert."""
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute("CREATE TABLE staging (id text PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")


def twins_of(connection: Connection, texts: dict[str, str], corpus: str = "c") -> Twins:
    return connection.execute(
        "SELECT * FROM textsim.twins_of(%s, %s, %s)", [corpus, list(texts), list(texts.values())]
    ).fetchall()


def test_the_most_similar_document_stands(corpus: ts.Corpus, connection: Connection) -> None:
    """Ties go to a stored document, and among these to the smallest key."""
    for key in ("B", "a"):
        corpus.remove([key])
        connection.execute(
            "SELECT textsim.add('c', %s, %s, unique_from => 'Infinity')", [key, BLUE]
        )
    assert twins_of(connection, {"n": RED}) == [("n", "B", 9 / 11)]
    assert twins_of(connection, {"n": BLUE, "m": BLUE}) == [("n", "B", 1.0), ("m", "B", 1.0)]
    connection.execute("SELECT textsim.remove('c', 'B'), textsim.remove('c', 'a')")
    longer = f"{COMMON} {COMMON.upper()} eleven twelve"
    assert twins_of(connection, {"x": longer, "y": f"{longer} red", "z": f"{longer} red"}) == [
        ("y", "x", 12 / 13),
        ("z", "x", 12 / 13),
    ]


def test_a_stored_key_is_not_compared_with_itself(
    corpus: ts.Corpus, connection: Connection
) -> None:
    corpus.add("a", RED)
    corpus.add("b", OTHER)
    assert twins_of(connection, {"a": BLUE}) == []
    assert twins_of(connection, {"b": BLUE}) == [("b", "a", 9 / 11)]
    # The document of a stands until the caller has replaced it, in whichever order that happens.
    assert twins_of(connection, {"a": OTHER, "x": BLUE}) == [("a", "b", 1.0), ("x", "a", 9 / 11)]
    assert twins_of(connection, {"a": "new words", "x": BLUE}) == [("x", "a", 9 / 11)]


def test_a_text_that_changes_nothing_stays_in(corpus: ts.Corpus, connection: Connection) -> None:
    """Its document may have twins, if it was forced."""
    corpus.add("a", RED)
    connection.execute("SELECT textsim.add('c', 'b', %s, force => true)", [BLUE])
    assert twins_of(connection, {"b": BLUE.upper(), "n": BLUE}) == [("n", "b", 1.0)]


def test_texts_without_words_and_empty_lists_have_no_twins(
    corpus: ts.Corpus, connection: Connection
) -> None:
    corpus.add("a", "")
    assert twins_of(connection, {"b": "", "c": "!?", "d": ""}) == []
    assert twins_of(connection, {}) == []
    assert connection.execute("SELECT * FROM textsim.twins_of('c', NULL, NULL)").fetchall() == []


WRONG_LISTS: list[tuple[list[str | None] | None, list[str | None], str]] = [
    (["a"], ["x", "y"], "text 2 of the list: the key is NULL"),
    (["a", "b"], ["x"], "text 2 of the list: the text is NULL"),
    (None, ["x"], "text 1 of the list: the key is NULL"),
    (["a", "b"], [None, "y"], "text 1 of the list: the text is NULL"),
    (["a", "k" * 1001], ["x", "y"], "text 2 of the list: the key is 1001 bytes long"),
    (["a", "b", "a"], ["x", "y", "z"], 'texts 1 and 3 of the list have the same key "a"'),
]


def test_a_wrong_list_is_refused(corpus: ts.Corpus, connection: Connection) -> None:
    for keys, texts, message in WRONG_LISTS:
        with pytest.raises(pg.InvalidParameterValue, match=message):
            connection.execute("SELECT textsim.twins_of('c', %s, %s::text[])", [keys, texts])


def random_text_of(rng: random.Random) -> str:
    """Return a text of one of few families, so that many match."""
    family = rng.randrange(6)
    words = [f"f{family}w{i}" for i in range(12)]
    for _ in range(rng.randrange(3)):
        words[rng.randrange(12)] = rng.choice("xyz")
    return rng.choice(["", " ".join(words), " ".join(words), " ".join(words[: rng.randint(1, 12)])])


@pytest.mark.parametrize(
    ("settings", "shingle"),
    [("exact", "word:3"), ("bands", "char:4"), ("exact", "word:1"), ("bands", "word:4")],
)
def test_add_many_and_it_decide_as_brute_force(
    db: ts.Database,
    connection: Connection,
    rng: random.Random,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    shingle: str,
    settings: str,
) -> None:
    """New texts and stored texts that do not change; some pairs were judged different."""
    batch = rng.choice((5, 5000))
    monkeypatch.setattr(run_ahead, "BATCH_DOCUMENTS", batch)
    unit, n = shingle.split(":")
    corpora = [
        db.create_corpus(name, shingle=shingle, threshold=0.6, is_unique=True, **SETTINGS[settings])
        for name in ("c", "d")
    ]
    left_out = 0
    standing: dict[str, str] = {}
    different: set[frozenset[str]] = set()
    for number in range(8):
        texts = {f"{number} {rng.randrange(100)}": random_text_of(rng) for _ in range(14)}
        before = stored_forms(connection)
        texts |= {key: str(before[key]) for key in rng.sample(sorted(before), min(2, len(before)))}
        items = rng.sample(list(texts.items()), len(texts))
        for a, b in [rng.sample(sorted({*standing, *texts}), 2) for _ in range(3)]:
            different.add(frozenset((a, b)))
            for each in corpora:
                each.judge(a, b, "different")
        best: dict[str, float] = {}
        for key, text in items:
            values = [
                value
                for other, known in standing.items()
                if key not in standing and frozenset((key, other)) not in different
                if (value := similarity(text, known, unit, int(n))) >= 0.6
            ]
            if values:
                best[key] = max(values)
            else:
                standing[key] = text
        report = corpora[1].add_many(items)
        expected = [tuple(twin) for twin in report.twins]
        assert {key: value for key, _, value in expected} == best, f"--seed {seed}, list {number}"
        found = twins_of(connection, dict(items))
        where = f"--seed {seed}, list {number}"
        assert [(key, s) for key, _, s in found] == [(key, s) for key, _, s in expected], where
        # Of equal matches a stored document counts first, such as one of an earlier batch.
        assert batch == 5 or found == expected, where
        names = {twin.key for twin in report.twins}
        added = corpora[0].add_many([item for item in items if item[0] not in names])
        assert added.twins == [], f"--seed {seed}, list {number}"
        left_out += len(report.twins)
    assert left_out > 5


FORMS = {
    "with": """
        WITH twin AS MATERIALIZED (
            SELECT t.key
            FROM (SELECT array_agg(id) AS keys, array_agg(body) AS bodies FROM staging) s
            CROSS JOIN LATERAL textsim.twins_of('c', s.keys, s.bodies) t
        )
        INSERT INTO t SELECT s.* FROM staging s WHERE s.id NOT IN (SELECT key FROM twin)
        ORDER BY random()
    """,
    "not exists": """
        INSERT INTO t SELECT s.* FROM staging s WHERE NOT EXISTS (
            SELECT FROM textsim.twins_of('c',
                (SELECT array_agg(id ORDER BY id) FROM staging),
                (SELECT array_agg(body ORDER BY id) FROM staging)) t
            WHERE t.key = s.id)
    """,
    "not in": """
        INSERT INTO t SELECT s.* FROM staging s WHERE s.id NOT IN (
            SELECT t.key FROM textsim.twins_of('c',
                (SELECT array_agg(id ORDER BY id) FROM staging),
                (SELECT array_agg(body ORDER BY id) FROM staging)) t)
    """,
    "left join": """
        INSERT INTO t SELECT s.* FROM staging s
        LEFT JOIN textsim.twins_of('c',
            (SELECT array_agg(id ORDER BY id) FROM staging),
            (SELECT array_agg(body ORDER BY id) FROM staging)) t ON t.key = s.id
        WHERE t.key IS NULL
    """,
}
PLANNERS = ("", "enable_hashjoin", "enable_hashjoin, enable_mergejoin", "enable_material")
# The statistics of the last transaction may still be there.
CALLS = "SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions WHERE funcname = %s"


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("is_analyzed", sample([True, False], 2))
def test_each_plan_calls_it_once(
    corpus: ts.Corpus, connection: Connection, is_analyzed: bool
) -> None:
    connection.execute("SET track_functions = 'all'")
    connection.execute("INSERT INTO t VALUES ('stands', %s)", [RED])
    connection.execute(
        "INSERT INTO staging SELECT n::text, 'words of ' || n || ' and of ' || n * n "
        "FROM generate_series(1, 40) n UNION ALL SELECT 'twin', %s",
        [BLUE],
    )
    if is_analyzed:
        connection.execute("ANALYZE staging, t")
    for (name, form), planner in product(FORMS.items(), PLANNERS):
        with connection.transaction(force_rollback=True):
            for setting in filter(None, planner.split(", ")):
                connection.execute(f"SET LOCAL {setting} = off".encode())
            before = value(connection, CALLS, ["twins_of"])
            assert connection.execute(form.encode()).rowcount == 40, (name, planner)
            assert value(connection, CALLS, ["twins_of"]) - before == 1, (name, planner)


def test_texts_that_match_the_first_are_not_compared_with_each_other(
    corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("SET track_functions = 'all'")
    texts = {str(number): f"{COMMON} {number}" for number in range(400)}
    with connection.transaction():
        before = value(connection, CALLS, ["_count_shared"])
        twins = twins_of(connection, texts)
        calls = value(connection, CALLS, ["_count_shared"]) - before
    assert [key for key, _, _ in twins] == list(texts)[1:]
    assert {standing for _, standing, _ in twins} == {"0"}
    assert calls == 399


def test_texts_that_share_few_rows_of_an_exact_corpus_are_not_compared(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c", shingle="word:2", threshold=0.7, recall=1, is_unique=True)
    connection.execute("SET track_functions = 'all'")
    texts = {
        str(number): "one two three " + " ".join(f"{word}{number}" for word in "abcdefgh")
        for number in range(40)
    }
    with connection.transaction():
        before = value(connection, CALLS, ["_count_shared"])
        assert twins_of(connection, texts) == []
        assert value(connection, CALLS, ["_count_shared"]) == before


LOCKS = """
SELECT mode FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid()
    AND classid = hashtext('textsim-db unique corpus')::bigint::oid
"""


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("texts", [2, 5, 110])
def test_the_insert_takes_no_stronger_lock_than_the_list(
    corpus: ts.Corpus, connection: Connection, texts: int
) -> None:
    """Else two sessions that hold the lock of the corpus shared would wait for each other."""
    listed = {str(number): f"{number} {number} and {number * number}" for number in range(texts)}

    def is_corpus_locked() -> bool:
        return ("ExclusiveLock",) in connection.execute(LOCKS).fetchall()

    with connection.transaction():
        connection.execute("SET LOCAL textsim.max_bucket_locks = 200")
        assert twins_of(connection, listed) == []
        was_locked = is_corpus_locked()
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", list(listed.items()))
        assert is_corpus_locked() == was_locked
        assert was_locked or texts < 110
        assert not was_locked or texts > 2
