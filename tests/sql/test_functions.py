"""The SQL functions equal Python's results, raise clear errors, and declare what they must."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any, LiteralString

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support import reference
from tests.support.catalog import expected_settings
from tests.support.connections import Connection
from tests.support.parity import create_corpora, differences
from tests.support.random_texts import ALPHABET, JAMO, MARKS, random_text
from tests.support.real_corpora import records
from tests.support.sampling import sample
from textsim_db.sketch.sketch_texts import GOLDEN_TEXT
from textsim_db.text.tokens import normal_form

PUBLIC = {
    "immutable strict": (
        "containment cosine_similarity estimate join_key key_part levenshtein_words "
        "normal_form shingles words"
    ),
    "stable": (
        "buckets candidates candidates_of cluster_events cluster_of common_runs containing "
        "contradictions jaccard judgements match_pairs matches members members_of nearest "
        "neighbours passages passages_of signature"
    ),
    "volatile": (
        "add add_unique attach candidate_pairs clusters create_corpus create_members_view "
        "create_view detach drop_corpus duplicates expire grant_reader grant_writer "
        "group_pairs index_pending judge lock_corpus pairs remove revoke_all set_owner "
        "shared_passages track twins_of unjudge untrack update_clusters"
    ),
    "stable strict": ("scopes status"),
}
"""The public functions by their properties. The reference of SQL has their arguments."""
DEFINERS = {
    *("_prepare_source", "_activate_source", "_release_source", "_note_shape"),
    "_update_at_commit",
}
COMMITTING = {
    "_check_no_transaction",
    "_give_word_ids",
    "_index_keys",
    "expire",
    "index_pending",
    "update_clusters",
}
"""Procedures that commit; a procedure with a SET clause may not commit, so these have none."""


def query_one(connection: Connection, query: LiteralString, *parameters: object) -> Any:
    row = connection.execute(query, parameters).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.both_servers
@pytest.mark.parametrize(
    "name",
    ["random", *sample(["arxiv", "licences", "languages", "scripture", "articles"], 2)],
)
def test_texts_have_equal_buckets_in_sql_and_python(
    db: ts.Database, connection: Connection, rng: random.Random, seed: int, name: str
) -> None:
    if name == "random":
        texts = [GOLDEN_TEXT, "", " ", *(random_text(rng) for _ in range(300))]
    else:
        texts = [record["text"][:3000] for record in rng.sample(records(name), 60)]
    corpora = create_corpora(db)
    assert list(differences(connection, corpora, texts)) == [], f"--seed {seed}"


@pytest.mark.more
def test_searches_return_all_matches_by_default(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    corpus = db.create_corpus("c")
    (_, text), *_ = documents(1, words=30, planted=0, seed=seed)
    corpus.add_many((str(i), text) for i in range(4_000))
    connection.execute("CREATE TABLE post (id int PRIMARY KEY, tenant int)")
    connection.execute(
        "INSERT INTO post SELECT i, CASE i WHEN 3000 THEN 9 ELSE 1 END FROM generate_series(0, 3999) i"
    )
    for search, value in (("matches", text), ("neighbours", "3")):
        others = 4_000 - (search == "neighbours")
        count = f"SELECT count(*) FROM textsim.{search}('c', %s"
        assert connection.execute(f"{count})".encode(), [value]).fetchone() == (others,)
        found = connection.execute(
            f"SELECT m.key FROM textsim.{search}('c', %s) m JOIN post p ON p.id = m.key::int "
            "WHERE p.tenant = 9".encode(),
            [value],
        ).fetchall()
        assert found == [("3000",)]
        limited = f"{count}, max_results => 11)".encode()
        assert connection.execute(limited, [value]).fetchone() == (11,)
    assert len(corpus.query(text)) == 4_000
    assert len(corpus.query_many([text])[0]) == 4_000
    assert len(corpus.neighbours("3")) == 3_999


@pytest.mark.both_servers
@pytest.mark.parametrize("shingle", sample(["word:3", "char:5", "word:1"], 3))
def test_searches_in_sql_equal_those_in_python(
    db: ts.Database, connection: Connection, shingle: str
) -> None:
    corpus = db.create_corpus("c", shingle=shingle)
    texts = dict(documents(150, words=30, planted=0.5, seed=3))
    texts |= {"empty": "", "short": "word", "Zoë": "漢字 word กิ่ง"}
    corpus.add_many(texts.items())
    for key, text in list(texts.items())[:25]:
        assert connection.execute(
            "SELECT * FROM textsim.candidates('c', %s)", [text]
        ).fetchall() == (list(map(tuple, corpus.candidates(text))))
        expected = [match[:2] for match in corpus.query(text, threshold=0.3)]
        matches = connection.execute(
            "SELECT * FROM textsim.matches('c', %s, 0.3)", [text]
        ).fetchall()
        assert matches == expected
        neighbours = [match[:2] for match in corpus.neighbours(key, threshold=0.3, max_results=3)]
        query = "SELECT * FROM textsim.neighbours('c', %s, 0.3, 3)"
        assert connection.execute(query, [key]).fetchall() == neighbours
    assert len(list(corpus.pairs(0.3))) > 10
    pairs = connection.execute("SELECT * FROM textsim.pairs('c', 0.3)").fetchall()
    assert sorted(pairs) == sorted(map(tuple, corpus.pairs(0.3)))
    candidate_pairs = connection.execute(
        "SELECT a, b, shared FROM textsim.candidate_pairs('c')"
    ).fetchall()
    assert len(candidate_pairs) == len({row[:2] for row in candidate_pairs}) >= len(pairs)
    for a, b, shared in candidate_pairs[:20]:
        assert a < b
        assert shared == len({*corpus.buckets(texts[a])} & {*corpus.buckets(texts[b])})
    in_both_orders = sorted(
        [*candidate_pairs, *((b, a, shared) for a, b, shared in candidate_pairs)]
    )
    connection.execute("SELECT textsim.create_view('c', 'v')")
    assert sorted(connection.execute("SELECT a, b, shared FROM v").fetchall()) == in_both_orders
    query = "SELECT p.* FROM textsim.candidates_of('c', %s) p"
    for key in texts:
        expected = [pair[1:] for pair in in_both_orders if pair[0] == key]
        assert sorted(connection.execute(query, [key]).fetchall()) == expected


WRONG_SEARCHES = [
    ("max_results => -1", "max_results is -1; expected 1 or more, or NULL for all"),
    ("max_results => 0", "max_results is 0; expected 1 or more, or NULL for all"),
    ("threshold => 1.5", "threshold is 1.5; expected above 0, at most 1"),
    ("threshold => 'NaN'", "threshold is NaN; expected above 0, at most 1"),
    ("language => 'en'", 'corpus "empty" does not identify languages'),
]


def test_arguments_of_a_search_are_checked_before_it_looks_for_candidates(
    connection: Connection,
) -> None:
    connection.execute("SELECT textsim.create_corpus('empty')")
    calls = ("matches('empty', 'some words'", "matches('empty', NULL", "neighbours('empty', 'a'")
    for (argument, message), call in product(WRONG_SEARCHES, calls):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
            connection.execute(f"SELECT * FROM textsim.{call}, {argument})".encode())


# Each public function that changes something, and the arguments that may not be NULL.
CHANGES = {
    "add": ("'c', 'a', 'b'", {0: "name of the corpus", 1: "the key", 2: "the text"}),
    "add_unique": ("'u', 'a', 'b'", {0: "name of the corpus", 1: "the key", 2: "the text"}),
    "remove": ("'c', 'a'", {0: "name of the corpus", 1: "the key"}),
    "lock_corpus": ("'u'", {0: "name of the corpus"}),
    "create_corpus": (
        "'new', 'word:3', 0.8, 0.95, 128, 1, NULL, NULL, '{}', NULL, false",
        {
            0: "name of the corpus",
            1: "shingle",
            2: "threshold",
            3: "recall",
            4: "num_hashes",
            5: "seed",
            8: "stop_words",
            10: "is_unique",
        },
    ),
    "drop_corpus": ("'c'", {0: "name of the corpus"}),
    "create_view": ("'c', 'v'", {0: "name of the corpus", 1: "name of the view"}),
    "attach": (
        "'c', 't', 'id', 'body', NULL, 'refuse'",
        {
            0: "name of the corpus",
            1: "table",
            2: "table",
            3: "table",
            5: "existing",
        },
    ),
    "detach": ("'c', 't'", {0: "name of the corpus", 1: "not attached"}),
    "create_members_view": ("'c', 'v'", {0: "name of the corpus", 1: "name of the view"}),
    "judge": (
        "'c', 'a', 'b', 'same'",
        {0: "name of the corpus", 1: "a key is NULL", 2: "a key is NULL", 3: "verdict is NULL"},
    ),
    "unjudge": ("'c', 'a', 'b'", {0: "name of the corpus", 1: "a key is NULL", 2: "a key is NULL"}),
    "track": ("'c', 'kept'", {0: "name of the corpus", 1: "linkage"}),
    "untrack": ("'c'", {0: "name of the corpus"}),
    "grant_reader": ("current_user::regrole", {0: "the role"}),
    "grant_reader ": ("current_user::regrole, 'c'", {0: "the role", 1: "name of the corpus"}),
    "grant_writer": ("current_user::regrole", {0: "the role"}),
    "grant_writer ": ("current_user::regrole, 'c'", {0: "the role", 1: "name of the corpus"}),
    "revoke_all": ("current_user::regrole", {0: "the role"}),
    "set_owner": ("current_user::regrole", {0: "the role"}),
}


@pytest.mark.both_servers
def test_a_null_argument_of_a_change_is_refused(connection: Connection) -> None:
    """A change that silently does nothing, or something else, is worse than an error."""
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.create_corpus('c')")
    connection.execute("SELECT textsim.create_corpus('u', is_unique => true)")
    for function, (text, required) in CHANGES.items():
        arguments = text.split(", ")
        for place, named in required.items():
            changed = [*arguments[:place], "NULL", *arguments[place + 1 :]]
            call = f"SELECT textsim.{function.strip()}({', '.join(changed)})"
            with pytest.raises(psycopg.Error, match=named) as error:
                connection.execute(call.encode())
            # invalid parameter, undefined object
            assert error.value.sqlstate in ("22023", "42704"), call


def test_every_change_is_tried_with_null() -> None:
    volatile = set(PUBLIC["volatile"].split())
    searches = {"pairs", "candidate_pairs", "clusters", "duplicates", "group_pairs"}
    searches |= {"twins_of", "index_pending", "expire", "update_clusters", "shared_passages"}
    assert volatile - searches == {name.strip() for name in CHANGES}


def test_stop_words_without_null(connection: Connection) -> None:
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="stop_words or one of them is NULL"
    ):
        connection.execute("SELECT textsim.create_corpus('c', stop_words => '{the,NULL}')")


def test_a_search_for_a_row_that_is_not_indexed_returns_no_rows(
    db: ts.Database, connection: Connection
) -> None:
    """A LATERAL join may meet a row that is not indexed yet, or has no key or text."""
    texts = {"a": "one two three four", "b": "One, two, three, four!"}
    corpus = db.create_corpus("c")
    corpus.add_many(texts.items())
    connection.execute("CREATE TABLE mine (key text, body text)")
    connection.execute(
        "INSERT INTO mine VALUES ('a', 'one two three four'), ('new', ''), (NULL, NULL)"
    )
    for function, rows in (
        ("neighbours('c', m.key)", [("a", "b")]),
        ("candidates_of('c', m.key)", [("a", "b")]),
        ("matches('c', m.body)", [("a", "a"), ("a", "b")]),
        ("candidates('c', m.body)", [("a", "a"), ("a", "b")]),
    ):
        query = f"SELECT m.key, f.* FROM mine m CROSS JOIN LATERAL textsim.{function} f"
        key_pairs = [row[:2] for row in connection.execute(query.encode()).fetchall()]
        assert key_pairs == rows, function
    for function in (
        "pairs(NULL)",
        "clusters(NULL)",
        "duplicates(NULL)",
        "candidate_pairs(NULL)",
        "candidates_of(NULL, 'a')",
    ):
        assert connection.execute(f"SELECT * FROM textsim.{function}".encode()).fetchall() == []
    with pytest.raises(ts.DocumentNotFound):
        corpus.neighbours("new")


@pytest.mark.both_servers
def test_functions_of_texts_handle_empty_and_null_arguments(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c", shingle="word:1")
    assert query_one(connection, "SELECT textsim.shingles('a b a b', 'word', 2)") == ["a b", "b a"]
    assert query_one(connection, "SELECT textsim.shingles('ab', 'char', 5)") == ["ab"]
    assert query_one(connection, "SELECT textsim.words('')") == []
    assert query_one(connection, "SELECT textsim.normal_form(NULL)") is None
    assert query_one(connection, "SELECT textsim.jaccard('c', 'a b c', 'B, c; d')") == 0.5
    assert query_one(connection, "SELECT textsim.jaccard('c', '', '')") == 0
    assert query_one(connection, "SELECT textsim.estimate('{1,2,3,4}', '{1,2,0,4}')") == 0.75
    assert query_one(connection, "SELECT textsim.estimate('{}', '{1}')") == 0
    assert query_one(connection, "SELECT textsim.signature('c', '...')") == []
    assert query_one(connection, "SELECT count(*) FROM textsim.buckets('c', '{}')") == 0
    assert query_one(connection, "SELECT count(*) FROM textsim.matches('c', '')") == 0
    assert query_one(connection, "SELECT count(*) FROM textsim.matches('c', NULL)") == 0
    assert (
        query_one(connection, "SELECT count(*) FROM textsim.matches(NULL, 'a', language => 'en')")
        == 0
    )
    assert (
        query_one(
            connection, "SELECT count(*) FROM textsim.neighbours(NULL, 'a', language => 'en')"
        )
        == 0
    )
    db.create_corpus("stopped", stop_words=["the"])
    for corpus, body in (("c", None), ("stopped", None), (None, "a")):
        assert query_one(connection, "SELECT textsim.signature(%s, %s)", corpus, body) is None
        assert query_one(connection, "SELECT textsim.jaccard(%s, 'a', %s)", corpus, body) is None


@pytest.mark.parametrize("marks", sample(["\u0301\u0316", "\u0316\uff9e", "\u0344\u0316"], 3))
def test_millions_of_marks_take_linear_time(shared_connection: Connection, marks: str) -> None:
    half = 2_000_000
    for text in ("a" + marks * half, "a" + marks[0] * half + marks[1] * half):
        form = query_one(shared_connection, "SELECT textsim.normal_form(%s)", text)
        assert form == reference.normal_form(text[:31])


@pytest.mark.parametrize(
    "alphabet",
    sample([ALPHABET, JAMO + MARKS, JAMO, "\u1161", "ﷺ", "漢\u0301", "a é-"], 7),
)
def test_texts_of_several_pieces_have_the_same_normal_form_in_sql(
    shared_connection: Connection, alphabet: str, rng: random.Random
) -> None:
    # A piece has 65,536 bytes: separators, marks and syllables lie across the edges of pieces.
    for _ in range(2):
        text = "".join(rng.choices(alphabet, k=150_000)) + "é"
        assert query_one(shared_connection, "SELECT textsim.normal_form(%s)", text) == normal_form(
            text
        )
    for text in ("-" * 150_000, "é" + "-" * 150_000, "-" * 150_000 + "é"):
        assert query_one(shared_connection, "SELECT textsim.normal_form(%s)", text) == normal_form(
            text
        )


@pytest.fixture(scope="module")
def two_corpora(shared_db: ts.Database) -> Iterator[None]:
    """The corpora "c" and "auto", which identifies languages; each has a document."""
    for name, language in (("c", None), ("auto", "auto")):
        shared_db.create_corpus(name, language=language).add("a", "one two three")
    yield
    for name in ("c", "auto"):
        shared_db.drop_corpus(name)


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("textsim.matches('none', 'a')", 'corpus "none" does not exist'),
        ("textsim.signature('none', 'a')", 'corpus "none" does not exist'),
        ("textsim.candidate_pairs('none')", 'corpus "none" does not exist'),
        ("textsim.shingles('a', 'line', 1)", 'unit is "line"; expected "word" or "char"'),
        ("textsim.shingles('a', 'word', 0)", "shingle length is 0; expected 1 to 1000"),
        ("textsim.estimate('{1}', '{1,2}')", "different signature lengths 1 and 2"),
        (
            "textsim.buckets('c', '{1,2}')",
            'the signature has 2 values; signatures of corpus "c" have 128',
        ),
        ("textsim.matches('c', 'a', 1.5)", "threshold is 1.5; expected above 0, at most 1"),
        ("textsim.pairs('c', 0)", "threshold is 0; expected above 0, at most 1"),
        ("textsim.clusters('c', 0)", "threshold is 0; expected above 0, at most 1"),
        ("textsim.clusters('none')", 'corpus "none" does not exist'),
        (
            "textsim.clusters('c', linkage => 'average')",
            "linkage is 'average'; expected one of single, complete, kept",
        ),
        (
            "textsim.duplicates('c', linkage => NULL)",
            "linkage is NULL; expected one of single, complete, kept",
        ),
        (
            "textsim.duplicates('c', 'best')",
            "keep is 'best'; expected first, last, longest or shortest",
        ),
        (
            "textsim.duplicates('c', NULL)",
            "keep is NULL; expected first, last, longest or shortest",
        ),
        ("textsim.judgements('none')", 'corpus "none" does not exist'),
        ("textsim.contradictions(NULL)", "the name of the corpus is NULL"),
        (
            "textsim.judge('c', 'a', 'b', 'equal')",
            "verdict is 'equal'; expected same, different or unsure",
        ),
        (
            "textsim.judge('c', 'a', 'b', 'same', NULL, '')",
            "replaces is ''; expected same, different or unsure",
        ),
        (
            "textsim.judge('c', 'a', 'a', 'same')",
            "the pair ('a', 'a') names no two documents: it has the same key twice",
        ),
        (
            "textsim.unjudge('c', repeat('a', 1001), '')",
            f"the pair ('{'a' * 100}', '') names no two documents: a key is longer than 1,000 bytes",
        ),
        ("textsim.candidates_of('none', 'a')", 'corpus "none" does not exist'),
        ("textsim.create_view('none', 'v')", 'corpus "none" does not exist'),
        *(
            (
                f"textsim.create_view('c', {name})",
                f"the name of the view is {name}; expected name or schema.name, in a schema of your own",
            )
            for name in ("NULL", "'a.b.c'", "'textsim.v'", "'pg_temp.v'")
        ),
        *(
            (f"textsim.{function}('{corpus}', {rest}language => '{code}')", message)
            for function, rest in (
                ("signature", "'a', "),
                ("jaccard", "'a', 'b', "),
                ("candidates", "'a', "),
                ("matches", "'a', "),
                ("neighbours", "'a', "),
                ("pairs", ""),
            )
            for corpus, code, message in (
                (
                    "c",
                    "de",
                    'corpus "c" does not identify languages',
                ),
                ("auto", "DE", 'language is "DE"; expected a code of ISO 639, such as "en"'),
                ("auto", "", 'language is ""; expected a code of ISO 639, such as "en"'),
            )
        ),
    ],
)
@pytest.mark.usefixtures("two_corpora")
def test_wrong_arguments_are_refused_with_a_message(
    shared_connection: Connection, call: LiteralString, message: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        shared_connection.execute("SELECT * FROM " + call)
    assert caught.value.diag.message_primary == message


SETTINGS: list[dict[str, Any]] = [
    {},
    {"shingle": "char:5", "threshold": 0.5, "recall": 0.99},
    {"num_hashes": 4096, "threshold": 0.05, "recall": 0.5, "seed": 2**63 - 1},
    {"num_hashes": 2, "threshold": 0.95, "recall": 0.9, "seed": 0},
    {"num_hashes": 200, "bands": 20, "rows": 10, "seed": 2**40 + 77},
    {"recall": 1.0},
    {"threshold": 1.0, "recall": 1.0},
    {"shingle": "word:1", "threshold": 1e-9, "recall": 1.0, "num_hashes": 2},
    {"shingle": "char:5", "threshold": 0.55, "recall": 1.0, "seed": 9},
    {"threshold": 1.0, "bands": 18, "rows": 7},
    {"bands": 64, "rows": 2},
    {"bands": 64, "rows": 2, "threshold": 0.999},
    {"threshold": 0.5, "recall": 0.9999999999999999, "num_hashes": 256},
    {"num_hashes": 4096, "bands": 1, "rows": 20, "threshold": 0.3},
    {"num_hashes": 4096, "bands": 2048, "rows": 2, "threshold": 0.99},
]


@pytest.mark.both_servers
def test_a_corpus_created_by_sql_equals_one_created_by_python(
    db: ts.Database, connection: Connection
) -> None:
    columns = (
        "unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe, base, "
        "golden_signature, golden_buckets"
    )
    for settings in SETTINGS:
        db.create_corpus("python", **settings)
        arguments = "".join(f", {name} => %s" for name in settings)
        connection.execute(
            f"SELECT textsim.create_corpus('sql'{arguments})".encode(), [*settings.values()]
        )
        rows = connection.execute(f"SELECT {columns} FROM textsim.corpus".encode()).fetchall()
        assert rows[0] == rows[1], settings
        corpus = db.corpus("sql")
        corpus.add("a", "one two three four")
        assert corpus.check() == [], settings
        connection.execute("SELECT textsim.drop_corpus('sql')")
        assert db.corpora() == ["python"]
        db.drop_corpus("python")


WRONG_SETTINGS: list[tuple[LiteralString, str]] = [
    ("''", "the name of the corpus is ''"),
    ("NULL", "the name of the corpus is NULL"),
    ("'textsim temporary data'", 'names that begin with "textsim temporary " are reserved'),
    ("'c'", 'corpus "c" exists already'),
    ("'d', 'word'", "shingle is 'word'; expected"),
    ("'d', 'word:0'", "shingle is 'word:0'; expected"),
    ("'d', threshold => 1.5", "threshold is '1.5'; expected above 0, at most 1"),
    ("'d', threshold => 'nan'", "threshold is 'NaN'; expected above 0, at most 1"),
    ("'d', recall => 1.1", "recall is '1.1'; expected above 0, at most 1"),
    ("'d', recall => 0", "recall is '0'; expected above 0, at most 1"),
    ("'d', num_hashes => 1", "num_hashes is '1'; expected 2 to 4096"),
    ("'d', seed => -1", "seed is '-1'; expected 0 or more"),
    ("'d', bands => 3", "bands and rows go together"),
    ("'d', bands => 128, rows => 1", "rows is 1; expected 2 or more"),
    ("'d', threshold => 0.2", "no bands of 128 hashes reach recall 0.95 at threshold 0.2"),
    ("'d', bands => 30, rows => 30", "30 bands of 30 rows cannot be made of 128 hashes"),
    ("'d', threshold => 1e-9, bands => 1, rows => 128", "find nothing at threshold 1e-09"),
]


def test_a_corpus_with_impossible_settings_is_refused(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c")
    for arguments, message in WRONG_SETTINGS:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(f"SELECT textsim.create_corpus({arguments})")
        assert message in str(caught.value.diag.message_primary)
    assert db.corpora() == ["c"]


def test_a_corpus_of_another_recipe_is_refused(db: ts.Database, connection: Connection) -> None:
    db.create_corpus("c")
    connection.execute("UPDATE textsim.corpus SET recipe = 3")
    with pytest.raises(
        psycopg.Error, match="was built by recipe 3; these functions compute recipe 2"
    ):
        connection.execute("SELECT * FROM textsim.matches('c', 'a')")


@pytest.mark.both_servers
def test_the_catalog_declares_every_function(shared_connection: Connection) -> None:
    rows = shared_connection.execute(
        """
        SELECT p.proname, p.oid::regprocedure::text,
            CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
                || CASE WHEN p.proisstrict THEN ' strict' ELSE '' END,
            p.proparallel, l.lanname, p.proconfig, p.prosqlbody IS NOT NULL, p.prosecdef,
            obj_description(p.oid, 'pg_proc')
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'textsim'::regnamespace
        """
    ).fetchall()
    declared = {(name, kind) for kind, names in PUBLIC.items() for name in names.split()}
    assert {(row[0], row[2]) for row in rows if not row[0].startswith("_")} == declared
    for name, function, volatility, parallel, language, settings, parsed, definer, comment in rows:
        assert comment, name
        assert definer == (name in DEFINERS), name
        assert parallel == ("u" if volatility.startswith("volatile") else "s"), name
        # The names in a body that was parsed at creation are fixed; any other body needs a search path.
        if not parsed and name not in COMMITTING:
            assert language == "plpgsql", name
            assert settings == expected_settings(function), name


@pytest.mark.both_servers
def test_a_hostile_search_path_changes_nothing(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    corpus.add("a", "one two three")
    connection.execute(
        """
        CREATE SCHEMA hostile;
        CREATE FUNCTION hostile.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
        CREATE FUNCTION hostile.hashtextextended(text, bigint) RETURNS bigint
            LANGUAGE sql AS $$ SELECT 0::bigint $$;
        CREATE FUNCTION hostile.unnest(text[]) RETURNS SETOF text LANGUAGE sql AS $$ SELECT 'x' $$;
        SET search_path = hostile, pg_catalog
        """
    )
    query = "SELECT * FROM textsim.matches('c', 'One, two, three')"
    assert connection.execute(query).fetchall() == [("a", 1.0)]
