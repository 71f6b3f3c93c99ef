"""Rows of attached tables of which no document can be made: each is set aside, and stops no other."""

from __future__ import annotations

import random

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sources import (
    MODES,
    Mender,
    mending,
    run_reconcile,
    run_worker,
    stored_forms,
    text_of,
)
from textsim_db.settings.named_values import ModeName

FILTERS = {
    "(meta ->> 'score')::int > 3": ['{"score": "n/a"}', '{"score": "99999999999"}'],
    "100 / (meta ->> 'score')::int > 3": ['{"score": "0"}', '{"score": ""}'],
    "code ~ (meta ->> 'pattern')": ['{"pattern": "("}', '{"pattern": "a{2,1}"}'],
    "(meta ->> 'on')::boolean AND substr(code, 1, (meta ->> 'n')::int) <> 'x'": [
        '{"on": "perhaps"}',
        '{"on": "true", "n": "-1"}',
    ],
    "jsonb_array_length(meta) = 0": ["{}", '"a text"'],
    "repeat(code, (meta ->> 'times')::int) <> ''": ['{"times": "2000000000"}'],
}
"""Row filters, with values of the column meta for which each raises an error."""
GOOD = '{"score": 9, "pattern": ".", "on": true, "n": 1, "times": 2}'
LATE: dict[str, dict[str, str | None]] = {
    "expires": {"date": "5874897-12-31", "timestamptz": None, "timestamp": None},
    "time": dict.fromkeys(["date", "timestamptz", "timestamp"], "294276-12-31"),
}
"""By the column of times: its types, with a time that is too late for a document."""


@pytest.mark.sampled
@mending
@pytest.mark.parametrize("mode", MODES)
def test_rows_that_raise_are_set_aside(
    db: ts.Database, connection: Connection, rng: random.Random, mode: ModeName, mend: Mender
) -> None:
    row_filter = rng.choice(list(FILTERS))
    column = rng.choice(list(LATE))
    type_, late = rng.choice(list(LATE[column].items()))
    good = "[]" if "array" in row_filter else GOOD
    corpus = db.create_corpus("c", shingle="word:2", keep_for="30 days")
    connection.execute(
        "CREATE TABLE t (id int PRIMARY KEY, body text, code text DEFAULT 'abc', "
        f"meta jsonb, moment {type_})".encode()
    )
    bad: set[str] = set()

    def write_some() -> None:
        for _ in range(rng.randrange(1, 12)):
            number = rng.randrange(40)
            meta, moment = good, "infinity"
            kind = rng.choice(["good", "good", "meta", "moment"])
            if kind == "meta":
                meta = rng.choice(FILTERS[row_filter])
            if kind == "moment" and late is not None:
                moment = late
            is_bad = kind == "meta" or moment != "infinity"
            (bad.add if is_bad else bad.discard)(str(number))
            connection.execute(
                "INSERT INTO t (id, body, meta, moment) VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO "
                "UPDATE SET body = excluded.body, meta = excluded.meta, moment = excluded.moment",
                [number, text_of(rng.randrange(9)), meta, moment],
            )

    write_some()
    corpus.attach(
        "t",
        "id",
        "body",
        mode,
        row_filter=row_filter,
        time="moment" if column == "time" else None,
        expires="moment" if column == "expires" else None,
    )
    for _ in range(rng.randrange(4)):
        write_some()
        if rng.random() < 0.5:
            mend(db, corpus, connection)
    if rng.random() < 0.3:  # a whole table is compared
        connection.execute("ALTER TABLE t DISABLE TRIGGER USER")
        write_some()
        connection.execute("ALTER TABLE t ENABLE TRIGGER USER")
    assert [p for p in corpus.check() if p.kind not in ("attached table", "missing document")] == []
    mend(db, corpus, connection)
    mend(db, corpus, connection)
    stored = {str(n) for (n,) in connection.execute("SELECT id FROM t")}
    assert stored_forms(connection).keys() == stored - bad
    assert {failure.key for failure in corpus.pending()} == bad
    if mend is not run_reconcile:  # which leaves the log to a worker
        assert corpus.status().pending == 0
    assert corpus.check() == []
    assert list(corpus.drift()) == []
    connection.execute("UPDATE t SET meta = %s, moment = 'infinity'", [good])
    corpus.pending(retry=True)
    mend(db, corpus, connection)
    run_worker(db, corpus, connection)
    assert stored_forms(connection).keys() == stored
    assert corpus.pending() == []


@pytest.mark.parametrize("mode", MODES)
def test_the_error_of_a_row_goes_when_its_writer_mends_it(
    db: ts.Database, connection: Connection, mode: ModeName
) -> None:
    corpus = db.create_corpus("c")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text, score text)")
    corpus.attach("t", "id", "body", mode, row_filter="score::int > 3")
    for mended in (
        "UPDATE t SET score = '4' WHERE id = 1; UPDATE t SET score = '0' WHERE id = 2; "
        "UPDATE t SET id = 3, score = '4' WHERE id = 4; UPDATE t SET body = NULL WHERE id = 5; "
        "DELETE FROM t WHERE id = 6",
        "TRUNCATE t",
    ):
        connection.execute("TRUNCATE t")
        connection.execute(
            "INSERT INTO t SELECT i, 'one two three ' || i, 'n/a' FROM generate_series(1, 6) i "
            "WHERE i <> 3"
        )
        run_worker(db, corpus, connection)
        assert len(corpus.pending()) == 5
        connection.execute(mended.encode())
        if mode == "queue":
            run_worker(db, corpus, connection)
        assert corpus.pending() == [], mended
    run_worker(db, corpus, connection)
    assert (corpus.pending(), corpus.check()) == ([], [])


@pytest.mark.parametrize("mode", MODES)
def test_no_report_of_such_a_row_holds_its_text(
    db: ts.Database, connection: Connection, caplog: pytest.LogCaptureFixture, mode: ModeName
) -> None:
    corpus = db.create_corpus("c")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    for row_filter in (
        "body::int > 3",
        "'a' ~ body",
        "body::jsonb <> '1'",
        "body::bigint::int > 3",
    ):
        corpus.attach("t", "id", "body", mode, row_filter=row_filter)
        texts = "secret words (", "9999999999777"
        for text in texts:
            connection.execute("INSERT INTO t VALUES (1, %s)", [text])
            run_worker(db, corpus, connection)
            reports = connection.execute(
                "SELECT p::text FROM textsim.pending p UNION ALL SELECT w::text FROM textsim.worker w"
            ).fetchall()
            shown = f"{reports} {corpus.pending()} {caplog.text}"
            assert not [word for word in ("secret", "words", texts[1]) if word in shown], shown
            connection.execute("DELETE FROM t")
        corpus.detach("t")


def test_a_unique_corpus_refuses_a_row_that_raises(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", is_unique=True)
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text, score text)")
    corpus.attach("t", "id", "body", row_filter="score::int > 3")
    connection.execute("INSERT INTO t VALUES (1, 'one two three four', '4')")
    with pytest.raises(
        pg.InvalidParameterValue, match='document "2": its row filter cannot be comp'
    ):
        connection.execute("INSERT INTO t VALUES (2, 'five six seven eight', 'n/a')")
    assert value(connection, "SELECT count(*) FROM t") == 1


def test_a_key_of_another_type_in_the_log_stops_no_other_key(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    connection.execute("INSERT INTO t VALUES (1, 'one two three four')")
    connection.execute("UPDATE textsim.pending SET keys = keys || '{x}'")
    for _ in range(3):
        run_worker(db, corpus, connection)
        connection.execute("UPDATE textsim.pending SET lease_until = NULL")
    assert stored_forms(connection).keys() == {"1"}
    assert [failure.key for failure in corpus.pending()] == ["x"]
