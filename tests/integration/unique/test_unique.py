"""Unique corpora in Python: what is added and left out, what the reports say, and attached tables."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg.errors import UniqueViolation

import textsim_db as ts
from tests.support.clients import Clients
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.sampling import sample
from textsim_db.results import AddReport, ChangeReport, Twin

TEXT = "the quick brown fox jumps over the lazy dog and runs into the dark green forest"
NEAR = TEXT + " again"
OTHER = "rain is expected in the north while the south stays dry and warm until sunday"
THRESHOLD = 0.6


def unique_corpus(db: ts.Database, **settings: Any) -> ts.Corpus:
    return db.create_corpus(
        "c", **({"threshold": THRESHOLD, "recall": 1, "is_unique": True} | settings)
    )


@pytest.fixture(
    params=sample([{}, {"recall": 0.95}, {"shingle": "char:5"}], 3), ids=["exact", "bands", "char"]
)
def titles(request: pytest.FixtureRequest, db: ts.Database) -> ts.Corpus:
    return unique_corpus(db, **request.param)


def test_add_raises_an_error_with_the_matches(titles: ts.Corpus) -> None:
    assert titles.add("a", TEXT) == AddReport(added=1)
    with pytest.raises(ts.DuplicateError) as caught:
        titles.add("b", NEAR)
    assert caught.value.key == "b"
    assert [match.key for match in caught.value.matches] == ["a"]
    assert 'document "b" was not added: it is a twin of document "a"' in str(caught.value)
    assert "b" not in titles
    assert titles.check() == []


def test_add_unique_needs_a_unique_corpus(db: ts.Database) -> None:
    corpus = db.create_corpus("plain")
    with pytest.raises(ts.ConfigurationError, match="textsim rebuild plain --unique"):
        corpus.add_unique("a", TEXT)


def test_a_text_can_move_to_another_key_in_one_call(db: ts.Database) -> None:
    titles = unique_corpus(db)
    titles.add_many({"a": TEXT, "b": OTHER})
    # The text of "a" moves to "b" after "a" has got a new one. "b" in front of "a" would be a twin.
    moved = [("a", "whisk two eggs with sugar and fold in the sifted flour"), ("b", TEXT)]
    assert titles.add_many(reversed(moved)).twins == [Twin("b", "a", 1.0)]
    titles.add("a", TEXT)
    assert titles.add_many(moved) == AddReport(replaced=2)


def test_rows_that_bypass_the_triggers_are_set_aside_if_they_are_twins(
    db: ts.Database, connection: Connection
) -> None:
    titles = unique_corpus(db)
    connection.execute("CREATE TABLE title (id int PRIMARY KEY, body text)")
    titles.attach("title", "id", "body", "inline")
    connection.execute("INSERT INTO title VALUES (1, %s), (2, %s)", [TEXT, OTHER])
    connection.execute("SET session_replication_role = replica")
    connection.execute("INSERT INTO title VALUES (3, %s), (4, 'four')", [NEAR])
    connection.execute("UPDATE title SET body = %s WHERE id = 2", [NEAR])
    report = titles.reconcile()
    assert (report.added, [refusal.key for refusal in report.refused]) == (1, ["2", "3"])
    reason = (
        'the text matches document "1" with similarity 0.933, and the corpus keeps near-duplicates'
    )
    assert all(failure.error.startswith(reason) for failure in titles.pending())
    assert [match.key for match in titles.query(OTHER)] == ["2"]
    assert list(titles.pairs()) == []


TITLE = sa.table("title", sa.column("id"), sa.column("body"))


@pytest.fixture
def rows_of_titles(db: ts.Database, connection: Connection) -> ts.Corpus:
    connection.execute("CREATE TABLE title (id int PRIMARY KEY, body text)")
    connection.execute("INSERT INTO title VALUES (1, %s), (2, %s)", [TEXT, OTHER])
    return db.create_corpus("c", threshold=0.6, recall=1, is_unique=True)


def test_attach_indexes_the_rows_and_keeps_near_duplicates_out(
    db: ts.Database, rows_of_titles: ts.Corpus
) -> None:
    report = rows_of_titles.attach("title", "id", "body")
    assert report == ChangeReport(added=2)
    assert rows_of_titles.status()[:4] == (2, 0, None, 0)
    with db.engine.connect() as connection, pytest.raises(sa.exc.IntegrityError) as caught:
        connection.execute(sa.insert(TITLE).values(id=3, body=NEAR))
    diagnostic = caught.value.orig.diag  # type: ignore[union-attr]
    assert (diagnostic.constraint_name, diagnostic.table_name) == ("c", "title")
    assert "Key (1) has similarity 0.93" in diagnostic.message_detail
    assert [match.key for match in rows_of_titles.add_unique("x", NEAR).matches] == ["1"]


def test_a_corpus_with_a_table_may_stop_to_be_unique(
    rows_of_titles: ts.Corpus, connection: Connection
) -> None:
    rows_of_titles.attach("title", "id", "body")
    assert not rows_of_titles.rebuild(is_unique=False)
    connection.execute("INSERT INTO title VALUES (3, %s)", [NEAR])
    assert len(list(rows_of_titles.pairs())) == 1


def test_the_command_attaches_to_a_unique_corpus(textsim: Textsim, connection: Connection) -> None:
    connection.execute("CREATE TABLE title (id int PRIMARY KEY, text text)")
    connection.execute("INSERT INTO title VALUES (1, %s), (2, %s)", [TEXT, NEAR])
    textsim("corpus", "create", "c", "--unique", "--recall", "1")
    result = textsim("attach", "c", "title", status=2)
    assert "1 row of table public.title matches another row" in result.stderr
    assert "because" not in result.stderr
    result = textsim("attach", "c", "title", "--existing", "keep")
    assert "2 added" in result.stderr
    assert '"2" and "1"' in result.stderr
    assert "changed rows are found at once" in result.stderr
    with pytest.raises(UniqueViolation):
        connection.execute("INSERT INTO title VALUES (3, %s)", [NEAR])


def test_a_table_that_is_attached_anew_keeps_the_documents_that_equal_their_rows(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    others = rng.choice([{}, {"recall": 0.95, "guards": ["numbers"]}])
    corpus = unique_corpus(db, scoped=True, keep_for="9 days", **others)
    connection.execute(
        "CREATE TABLE note (id int PRIMARY KEY, body text, tenant text DEFAULT 'a', team text, "
        "day date DEFAULT '2999-01-01', live boolean DEFAULT true)"
    )
    texts = [f"{TEXT} {OTHER[:place]}" for place in range(0, len(OTHER), 4)] + [OTHER, "", "Straße"]
    for number in range(60):
        row = [number, rng.choice(texts), rng.choice("xy")]
        connection.execute("INSERT INTO note (id, body, team) VALUES (%s, %s, %s)", row)
    columns: dict[str, Any] = {"table": "note", "key": "id", "text": "body", "expires": "day"}
    corpus.attach(**columns, scope="tenant", existing="keep", row_filter="live")

    def documents() -> dict[str, tuple[Any, ...]]:
        query = "SELECT key, scope, forced, xmin::text, ctid::text FROM textsim.document_1"
        return {key: row for key, *row in connection.execute(query).fetchall()}

    before = documents()
    assert sum(is_forced for _, is_forced, *_ in before.values()) > 20
    changes = ["body = 'other words ' || id", "day = '2998-12-31'", "live = false"]
    changed = {str(key): changes[key % 3] for key in rng.sample(range(60), 20)}
    corpus.detach("note")
    for key, change in changed.items():
        connection.execute(f"UPDATE note SET {change} WHERE id = {key}".encode())
    connection.execute("DELETE FROM note WHERE id = 0")
    connection.execute("INSERT INTO note (id, body, team) VALUES (60, 'one more text', 'x')")
    corpus.attach(**columns, scope="tenant", row_filter="live")
    after = documents()
    equal = before.keys() - changed.keys() - {"0"}
    assert {key: after[key] for key in equal} == {key: before[key] for key in equal}
    gone = {key for key, change in changed.items() if "live" in change} | {"0"}
    assert after.keys() == before.keys() - gone | {"60"}
    corpus.attach(**columns, scope="team", row_filter="live", replace=True)  # forced ones stay
    assert {scope for scope, *_ in documents().values()} == {"x", "y"}
    with pytest.raises(ts.ConfigurationError, match='corpus "c" already; with replace'):
        corpus.attach(**columns, scope="tenant")
    statement = "INSERT INTO note (id, body, team) VALUES (61, 'one more text', 'y')"
    connection.execute(statement)
    with pytest.raises(ts.ConfigurationError, match=r'rows of table public.note match.*"61" and'):
        corpus.attach(**columns, scope="tenant", row_filter="live", replace=True)
    assert {scope for scope, *_ in documents().values()} == {"x", "y"}
    assert list(corpus.check()) == []


def test_no_twin_gets_in_while_a_table_is_attached_anew(
    rows_of_titles: ts.Corpus, make_client: Clients
) -> None:
    rows_of_titles.attach("title", "id", "body")
    attach = (
        "SELECT textsim.attach('c', 'title', 'id', 'body', row_filter => 'id > 0', replace => true)"
    )
    owner, writer = make_client("owner"), make_client("writer")
    owner.does(owner.sql(attach))
    writer.waits(writer.sql("INSERT INTO title VALUES (3, %s)", NEAR))
    owner.commit()
    with pytest.raises(UniqueViolation):
        writer.end()
