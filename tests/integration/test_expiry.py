"""Documents that expire: past their time they count nowhere, at once, and are removed later."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.clients import Clients
from tests.support.connections import Connection, value
from tests.support.expiry import DAY, OTHER, TEXT, create, expire, expiries, table_of
from tests.support.scopes import Document, random_documents, true_pairs
from textsim_db.results import AddReport, Pair
from textsim_db.settings.check_values import check_duration
from textsim_db.write import load_batches, prepare_batches, write_batch


@pytest.mark.parametrize(
    ("recall", "scope"), [(1.0, None), pytest.param(0.95, "x", marks=pytest.mark.more)]
)
def test_an_expired_document_counts_nowhere(
    db: ts.Database, connection: Connection, recall: float, scope: str | None
) -> None:
    corpus = create(db, recall=recall, scoped=scope is not None)
    texts = {"a": TEXT, "b": TEXT, "c": TEXT, "d": OTHER}
    for key, text in texts.items():
        corpus.add(key, text, scope=scope)
    expire(connection, corpus, "b")
    before = expiries(connection, corpus)
    for _ in range(2):
        pair = Pair("a", "c", 1.0)
        assert list(corpus.pairs()) == [pair]
        assert [cluster.keys for cluster in corpus.clusters()] == [("a", "c")]
        assert [each.key for each in corpus.duplicates()] == ["c"]
        assert [match.key for match in corpus.query(TEXT, scope=scope)] == ["a", "c"]
        (many,) = corpus.query_many([TEXT], scope=scope)
        assert [match.key for match in many] == ["a", "c"]
        assert [match.key for match in corpus.neighbours("a")] == ["c"]
        assert sorted(each.key for each in corpus.candidates(TEXT, scope=scope)) == ["a", "c"]
        rows: dict[str, list[tuple[str, ...]]] = {
            "SELECT a, b FROM textsim.pairs('c')": [("a", "c")],
            "SELECT key FROM textsim.clusters('c') ORDER BY 1": [("a",), ("c",)],
            "SELECT key FROM textsim.duplicates('c')": [("c",)],
            "SELECT key FROM textsim.matches('c', %(text)s, scope => %(scope)s)": [("a",), ("c",)],
            "SELECT key FROM textsim.candidates('c', %(text)s, scope => %(scope)s) ORDER BY 1": [
                ("a",),
                ("c",),
            ],
            "SELECT key FROM textsim.neighbours('c', 'a')": [("c",)],
            "SELECT key FROM textsim.neighbours('c', 'b')": [],
        }
        for query, expected in rows.items():
            found = connection.execute(query.encode(), {"text": TEXT, "scope": scope}).fetchall()
            assert found == expected, query
        assert "b" not in corpus
        with pytest.raises(ts.DocumentNotFound):
            corpus.neighbours("b")
        assert len(corpus) == corpus.status().indexed == corpus.statistics().documents == 3
        assert value(connection, "SELECT indexed FROM textsim.status('c')") == 3
        assert corpus.check() == []
        corpus.rebuild(seed=7)
        assert expiries(connection, corpus) == before
    ways: list[Callable[[], object]] = [
        corpus.expire,
        lambda: connection.execute("CALL textsim.expire('c')"),
        lambda: db.worker(expire_after=0).run(until_idle=True),
    ]
    for remove in ways:
        remove()
        assert expiries(connection, corpus).keys() == texts.keys() - {"b"}
        assert corpus.add("b", TEXT, scope=scope).added == 1
        assert len(list(corpus.pairs())) == 3
        expire(connection, corpus, "b")


def test_python_reads_a_time_as_the_server_does(db: ts.Database, connection: Connection) -> None:
    connection.execute("SET intervalstyle = iso_8601")
    for written, duration in {
        "30 days": 30 * DAY,
        "1 day 12 hours": 1.5 * DAY,
        "1 month": 30 * DAY,
        "1 year": 365.25 * DAY,
        "90 seconds": timedelta(seconds=90),
        "2 weeks": 14 * DAY,
    }.items():
        assert check_duration(written, "keep_for") == duration
        create = "SELECT textsim.create_corpus(%s, keep_for => %s::text::interval)"
        connection.execute(create, [written, written])
        corpus = db.create_corpus(written, keep_for=written, exist_ok=True)
        assert corpus.config.keep_for == duration
        assert corpus.check() == [], written
        with pytest.raises(ts.CorpusExists, match="keep for is"):
            db.create_corpus(written, keep_for="3 days", exist_ok=True)


def test_other_times_are_refused(db: ts.Database, connection: Connection) -> None:
    for keep_for in ("0 days", "-1 day", "2000 years", "", "soon", "5", "1 fortnight"):
        with pytest.raises(ts.ConfigurationError, match="keep_for is"):
            create(db, keep_for=keep_for)
        if keep_for[:1] in ("0", "-", "2"):
            with pytest.raises(pg.InvalidParameterValue, match="keep_for is"):
                connection.execute("SELECT textsim.create_corpus('c', keep_for => %s)", [keep_for])


def test_a_day_has_24_hours_in_every_time_zone(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    connection.execute("SET timezone = 'Europe/Berlin'")
    connection.execute("SELECT textsim.add('c', 'sql', %s)", [TEXT])
    corpus.add("python", OTHER)
    table = table_of(connection, corpus)
    hours = f"SELECT round(extract(epoch FROM expires_at - now()) / 3600) FROM {table}"
    assert {int(row[0]) for row in connection.execute(hours.encode())} == {720}


def test_documents_are_extended_without_a_change_of_their_words(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create(db)
    assert corpus.add("python", TEXT).added == 1
    assert value(connection, "SELECT textsim.add('c', 'sql', %s)", [OTHER])
    for _ in range(2):
        expire(connection, corpus, "python", "sql")
        before = expiries(connection, corpus)
        assert corpus.add("python", TEXT) == AddReport(unchanged=1)
        assert not value(connection, "SELECT textsim.add('c', 'sql', %s)", [OTHER])
        after = expiries(connection, corpus)
        assert all(after[key] > before[key] + 29 * DAY for key in before)
        assert len(corpus) == 2
        assert corpus.check() == []
        connection.execute("CALL textsim.index_pending('c')")


def test_a_refused_twin_renews_nothing_and_the_key_of_the_other_does(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create(db, is_unique=True)
    corpus.add("a", TEXT)
    before = expiries(connection, corpus)
    assert corpus.add_unique("b", TEXT).matches[0].key == "a"
    with pytest.raises(pg.UniqueViolation):
        connection.execute("SELECT textsim.add('c', 'b', %s)", [TEXT])
    assert expiries(connection, corpus) == before
    page = Path(__file__).parents[2] / "docs" / "how-to" / "expire-documents.md"
    (function,) = re.findall(r"CREATE FUNCTION hear.*?;", page.read_text("utf-8"), re.DOTALL)
    connection.execute(function.replace("'chat'", "'c'").encode())
    assert value(connection, "SELECT hear('b', %s)", [TEXT]) is False
    after = expiries(connection, corpus)
    assert after.keys() == {"a"}
    assert after["a"] > before["a"]
    assert value(connection, "SELECT hear('b', %s)", [OTHER]) is True
    assert expiries(connection, corpus).keys() == {"a", "b"}


def test_a_corpus_without_expiry_pays_nothing(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    corpus.add("a", TEXT)
    assert expiries(connection, corpus) == {"a": None}
    query = "SELECT prosrc FROM pg_proc WHERE proname ~ '^_(candidates|write)_[0-9]+$'"
    bodies = connection.execute(query.encode()).fetchall()
    assert len(bodies) == 2
    assert not any("expires_at >" in body for (body,) in bodies)
    assert value(connection, "SELECT to_regclass('textsim.document_1_expires')") is None
    with pytest.raises(ts.ConfigurationError, match="keeps its documents for ever"):
        corpus.expire()
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="keeps its documents for ever"):
        connection.execute("CALL textsim.expire('c')")


def test_removal_reads_the_index_only(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    corpus.add_many((str(i), f"{TEXT} {i}") for i in range(3000))
    expire(connection, corpus, "7")
    table = table_of(connection, corpus)
    scans = (
        "SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_xact_user_tables "
        "WHERE format('%%I.%%I', schemaname, relname) = %s"
    )
    with connection.transaction():
        assert value(connection, "SELECT textsim._expire('c')") == 1
        assert value(connection, scans, [table]) == 0
    assert corpus.check() == []


def test_measured_recall_leaves_expired_documents_out(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = create(db)
    documents = random_documents(rng.randrange(2**32), 100)
    corpus.add_many(document[:2] for document in documents)
    expire(connection, corpus, *(str(key) for key in range(50)))
    report = corpus.measure_recall(sample=100)
    alive = [Document(key, text, "") for key, text, _ in documents if int(key) >= 50]
    assert (report.documents, report.sampled) == (50, 50)
    assert report.pairs == report.candidate_pairs == len(true_pairs(alive))


# Unique corpora.


@pytest.mark.both_servers
@pytest.mark.parametrize("by_sql", [False, True], ids=["python", "sql"])
def test_an_expired_document_keeps_nothing_out(
    db: ts.Database, connection: Connection, by_sql: bool
) -> None:
    corpus = create(db, is_unique=True)

    def add(key: str, text: str) -> list[str]:
        if by_sql:
            query = "SELECT key FROM textsim.add_unique('c', %s, %s) WHERE outcome = 'twin'"
            return [row[0] for row in connection.execute(query, [key, text])]
        return [match.key for match in corpus.add_unique(key, text).matches]

    twins = "SELECT key, standing FROM textsim.twins_of('c', %s, %s)"
    assert add("a", TEXT) == []
    assert add("b", TEXT) == ["a"]
    expire(connection, corpus, "a")
    assert connection.execute(twins, [["b"], [TEXT]]).fetchall() == []
    assert add("b", TEXT) == []
    # The expired document does not come back: another one stands in its place.
    assert connection.execute(twins, [["a"], [TEXT]]).fetchall() == [("a", "b")]
    assert add("a", TEXT) == ["b"]
    assert "a" not in corpus
    assert corpus.check() == []
    expire(connection, corpus, "b")
    assert add("a", TEXT) == []
    assert list(corpus.pairs()) == []
    assert corpus.expire() == 1
    assert "a" in corpus
    assert corpus.check() == []
    assert corpus.rebuild()
    assert corpus.check() == []


def test_a_corpus_with_expired_twins_can_become_unique(
    db: ts.Database, connection: Connection
) -> None:
    corpus = create(db)
    corpus.add_many({"a": TEXT, "b": TEXT, "c": OTHER})
    with pytest.raises(ts.ConfigurationError, match="cannot be unique"):
        corpus.rebuild(is_unique=True)
    expire(connection, corpus, "a")
    assert corpus.rebuild(is_unique=True)
    assert corpus.add_unique("d", TEXT).matches[0].key == "b"
    assert corpus.check() == []


def add_in_sql(connection: Connection, corpus: ts.Corpus) -> str:
    try:
        connection.execute("SELECT textsim.add('c', 'old', %s)", [TEXT])
    except pg.UniqueViolation:
        return "twin"
    return "stored"


def add_in_python(connection: Connection, corpus: ts.Corpus) -> str:
    store = corpus._current.store
    batch = prepare_batches.prepare([("old", TEXT)], store.corpus.config)
    batch = load_batches.with_word_ids(batch, store)
    written = write_batch.write(connection.cursor(binary=True), store, batch)
    return "twin" if written.twins else "stored"


@pytest.mark.parametrize("add", [add_in_sql, add_in_python])
def test_a_transaction_with_an_earlier_clock_meets_the_twin_of_a_later_one(
    db: ts.Database,
    connection: Connection,
    make_client: Clients,
    add: Callable[[Connection, ts.Corpus], str],
) -> None:
    corpus = create(db, is_unique=True)
    corpus.add("old", TEXT)
    early, late = make_client("early"), make_client("late")
    early.does(early.sql("SELECT now()"))
    connection.execute(
        f"UPDATE {table_of(connection, corpus)} SET expires_at = clock_timestamp()".encode()
    )
    # The document counts for the early client, and no longer for the late one.
    assert early.does(early.sql("SELECT count(*) FROM textsim.matches('c', %s)", TEXT)) == [(1,)]
    late.does(late.sql("SELECT textsim.add('c', 'new', %s)", TEXT))
    # The early client may not let it live again: it waits for the late client, and meets its twin.
    early.waits(lambda: add(early.connection, corpus))
    late.commit()
    assert early.end() == "twin"
    early.rollback()
    assert [match.key for match in corpus.query(TEXT)] == ["new"]
    assert corpus.check() == []


def test_removal_waits_for_nobody_and_leaves_no_band_rows(
    db: ts.Database, connection: Connection, make_client: Clients
) -> None:
    corpus = create(db)
    corpus.add_many({"a": TEXT, "b": OTHER})
    expire(connection, corpus, "a", "b")
    writer = make_client("writer")
    writer.does(writer.sql("SELECT textsim.add('c', 'a', %s)", TEXT + " again"))
    assert corpus.expire() == 1
    writer.commit()
    assert corpus.expire() == 0
    assert [match.key for match in corpus.query(TEXT)] == ["a"]
    assert corpus.check() == []
