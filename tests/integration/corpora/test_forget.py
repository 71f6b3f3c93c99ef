"""No file of the database has anything of a forgotten document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.proxy import Proxy, cut_commit
from tests.support.sampling import sample
from tests.support.waiting import wait_for
from textsim_db.results import ForgetReport
from textsim_db.write import rebuild
from textsim_db.write.remove_documents import KEPT_TABLES

SECRET = ("zyxsecretword", "qwvhiddenname", "kjhprivatenumber")
KEY, NOTE = "person-4711-key", "anoteaboutaperson"
TEXT = f"the complaint of {SECRET[0]} {SECRET[1]} with the number {SECRET[2]} came on monday"


def traces(connection: Connection, texts: tuple[str, ...] = (*SECRET, KEY, NOTE)) -> set[str]:
    """Return the texts that a file of the database has, each with the relation of the file."""
    connection.execute("CHECKPOINT")
    folder = value(
        connection,
        "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database "
        "WHERE datname = current_database()",
    )
    names = dict(connection.execute("SELECT relfilenode::text, relname FROM pg_class").fetchall())
    return {
        f"{text} in {names.get(re.split('[._]', file.name)[0], file.name)}"
        for file in Path(str(folder)).iterdir()
        for text in texts
        if text.encode() in file.read_bytes()
    }


def check_traces(
    connection: Connection, report: ForgetReport, left: set[str] | None = None
) -> None:
    """Assert that only some texts are left, at once, or after the statements that had to wait."""

    def are_gone() -> bool:
        for statement in report.to_run:
            connection.execute(statement.encode())
        return {line.partition(" ")[0] for line in traces(connection)} == (left or set())

    connection.execute("ANALYZE")
    if report.to_run:  # a transaction, also of another database, may read removed rows
        wait_for(are_gone)
    assert are_gone()


def is_emptied(connection: Connection) -> bool:
    """Vacuum the table; return whether no transaction, also of another database, kept its rows."""
    connection.execute("VACUUM (FULL, ANALYZE) ticket")
    return not any(" in ticket" in line for line in traces(connection))


@pytest.fixture
def corpus(db: ts.Database, connection: Connection) -> ts.Corpus:
    """A corpus with scopes, passages, expiry, tracked clusters, judgements and an attached table."""
    corpus = db.create_corpus("c", scoped=True, passages=8, keep_for="30 days")
    connection.execute(
        "CREATE TABLE ticket (id text PRIMARY KEY, body text, tenant text, at timestamptz)"
    )
    corpus.attach("ticket", "id", "body", scope="tenant", time="at")
    corpus.track()
    corpus.add_many((f"k{i}", f"text number {i} of the many others {i}", "a") for i in range(300))
    corpus.add(KEY, TEXT, "a")
    corpus.add("copy", TEXT.replace("monday", "tuesday"), "a")
    corpus.judge(KEY, "k1", "different", NOTE)
    db.worker().run(until_idle=True)
    connection.execute("SELECT textsim.add('c', %s, %s, 'a')", [f"{KEY}-waiting", TEXT])
    connection.execute("ANALYZE")
    assert {line.partition(" ")[0] for line in traces(connection)} == {*SECRET, KEY, NOTE}
    return corpus


def test_no_file_has_a_forgotten_text(corpus: ts.Corpus, connection: Connection) -> None:
    report = corpus.forget([KEY, f"{KEY}-waiting", "copy"])
    assert (report.documents, report.judgements, report.has_words) == (3, 1, False)
    assert report.events > 0
    assert report.log_entries > 0
    check_traces(connection, report)
    assert corpus.check() == []
    assert len(corpus) == 300


def test_no_file_has_the_text_of_a_dropped_corpus(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    corpus.detach("ticket")
    db.drop_corpus(corpus.name)
    statements = [f"VACUUM (FULL) {table}" for table in KEPT_TABLES]
    check_traces(connection, ForgetReport(to_run=statements))


@pytest.mark.parametrize(
    "end", sample(["deleted row", "removed", "replaced", "expired"], 4, "more")
)
def test_what_is_left_of_removed_documents_is_forgotten(
    corpus: ts.Corpus, connection: Connection, db: ts.Database, end: str
) -> None:
    keys = [KEY, f"{KEY}-waiting", "copy"]
    match end:
        case "removed":
            corpus.remove(keys)
        case "replaced":
            corpus.add_many((key, "another text", "a") for key in keys)
        case "expired":
            connection.execute("UPDATE textsim.document_1 SET expires_at = now() - interval '1 s'")
        case "deleted row":
            corpus.remove(keys)
            connection.execute("INSERT INTO ticket VALUES (%s, %s, 'a', now())", [KEY, TEXT])
            db.worker().run(until_idle=True)
            connection.execute("DELETE FROM ticket")
            wait_for(lambda: is_emptied(connection))
    db.worker().run(until_idle=True)
    is_expired = end == "expired"
    report = corpus.forget(all_expired=is_expired, all_removed=not is_expired)
    check_traces(connection, report, {KEY, NOTE} if end == "replaced" else set())
    assert corpus.check() == []
    assert len(corpus) == {"expired": 0, "replaced": 303}.get(end, 300)


@pytest.mark.parametrize("choice", [{"keys": [f"{KEY}-1"]}, {"scope": "b"}, {"all_removed": True}])
def test_the_old_rows_of_a_merge_are_forgotten(
    corpus: ts.Corpus, connection: Connection, db: ts.Database, choice: dict[str, Any]
) -> None:
    corpus.remove([KEY, f"{KEY}-waiting", "copy"])
    insert = "INSERT INTO ticket VALUES (%s, %s, %s, now())"
    for number in range(2):
        connection.execute(insert, [f"{KEY}-{number}", TEXT, "b"])
        connection.execute(insert, [f"other-{number}", "a text of another person", "d"])
    db.worker().run(until_idle=True)
    assert corpus.merge("ticket").merged == 2
    connection.execute("DELETE FROM ticket WHERE tenant = 'b'")
    db.worker().run(until_idle=True)
    assert TEXT in str(connection.execute("SELECT old_row FROM textsim.merged_row").fetchall())
    connection.execute("ANALYZE textsim.merged_row")
    report = corpus.forget(**choice)
    scopes = connection.execute("SELECT old_row ->> 'tenant' FROM textsim.merged_row").fetchall()
    assert scopes == ([] if "all_removed" in choice else [("d",)])
    # A transaction, also of another database, may read removed rows.
    for statement in report.to_run:
        connection.execute(statement.encode())
    assert not [line for line in traces(connection) if re.search(" in (merged_row|pg_stat)", line)]


def test_a_standing_row_is_refused(
    corpus: ts.Corpus, connection: Connection, db: ts.Database
) -> None:
    connection.execute("INSERT INTO ticket VALUES ('r', 'a row of the table', 'b', now())")
    choices: tuple[dict[str, Any], ...] = ({"keys": ["k1", "r"]}, {"scope": "b"})
    for choice in choices:
        if "scope" in choice:
            db.worker().run(until_idle=True)
        with pytest.raises(ts.ConfigurationError, match=r"rows of 1 of these documents.*'r'"):
            corpus.forget(**choice)
    # A table that cannot have a key does not keep its document.
    connection.execute(
        "CREATE TABLE numbered (id int PRIMARY KEY, body text, tenant text, at date)"
    )
    corpus.attach("numbered", "id", "body", scope="tenant", time="at")
    connection.execute("INSERT INTO numbered VALUES (7, 'a row of numbers', 'b', now())")
    with pytest.raises(ts.ConfigurationError, match=r"rows of 1 of these documents.*'7'"):
        corpus.forget(["k1", "k2", "7", "99999999999"])
    assert "k1" in corpus
    assert corpus.forget(["k1", "99999999999"], later=True).documents == 1
    connection.execute("DELETE FROM ticket; DELETE FROM numbered")
    assert corpus.forget(scope="b").documents == 1


def test_not_one_choice_is_refused(corpus: ts.Corpus) -> None:
    several: list[dict[str, Any]] = [{}, {"keys": ["k1"], "scope": "a"}]
    for choices in (*several, {"all_expired": True, "all_removed": True}):
        with pytest.raises(ts.ConfigurationError, match="expected one of keys"):
            corpus.forget(**choices)


@pytest.mark.parametrize("when", ["after", "before"])
def test_the_report_counts_what_a_lost_commit_removed(
    corpus: ts.Corpus, proxy: Proxy, when: str
) -> None:
    with ts.connect(proxy.url) as proxied_db:
        same = proxied_db.corpus(corpus.name)
        proxy.cut = cut_commit(1, when)
        assert same.forget(["k1"], later=True).documents == 1
    assert proxy.cuts == 1


def test_requests_share_a_rebuild(corpus: ts.Corpus, connection: Connection) -> None:
    waiting = "SELECT documents, rebuild FROM textsim.forgotten ORDER BY id"
    for key in ("k1", "k2"):
        assert corpus.forget([key], later=True).has_words
    assert connection.execute(waiting).fetchall() == [(1, None), (1, None)]
    corpus.rebuild()
    assert connection.execute(waiting).fetchall() == []


def test_a_request_during_a_rebuild_waits_for_the_next(
    corpus: ts.Corpus, connection: Connection
) -> None:
    """The rebuild may have copied the document before."""
    requested: list[int] = []

    def request(done: int, _: int) -> None:
        if not requested:
            requested.append(done)
            connection.execute("SELECT textsim.forget('c', ARRAY[%s::text])", [KEY])

    corpus.forget(["copy"], later=True)
    corpus.rebuild(request)
    assert requested
    documents = connection.execute("SELECT documents, rebuild FROM textsim.forgotten").fetchall()
    assert documents == [(1, None)]
    check_traces(connection, corpus.forget([f"{KEY}-waiting"]))
    assert corpus.check() == []


def test_a_request_stays_listed_while_a_transaction_reads_the_replaced_corpus(
    corpus: ts.Corpus,
    connection: Connection,
    db: ts.Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebuild, "DROP_PATIENCE", "100ms")
    monkeypatch.setattr(rebuild, "OLDER_SECONDS", 0.1)
    listed = "SELECT corpus_id, documents FROM textsim.forgotten"
    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT count(*) FROM textsim.word_1")
        report = corpus.forget([KEY, f"{KEY}-waiting", "copy"])
        assert report.has_words
        for _ in range(2):
            assert connection.execute(listed).fetchall() == [(1, 3)]
            (note,) = corpus.status().notes
            assert "words of forgotten documents (3) are left in word_1" in note
            (problem,) = corpus.check()
            assert (problem.kind, problem.detail) == ("forgotten words", note)
            worker = db.worker()
            worker.run(until_idle=True)
            assert "lock timeout" in worker.unusable["replaced tables of corpus c"]
    worker = db.worker()
    worker.run(until_idle=True)
    assert worker.unusable == {}
    assert connection.execute(listed).fetchall() == []
    assert corpus.status().notes == []
    assert corpus.check() == []
    check_traces(connection, report)
    corpus.forget(["k1"], later=True)
    assert corpus.status().notes == [
        "words of forgotten documents (1) go with the next rebuild: textsim rebuild"
    ]
