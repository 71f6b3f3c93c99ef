"""Tables that are attached to unique corpora, by Python and the command."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from psycopg.errors import UniqueViolation

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection

TEXT = "the quick brown fox jumps over the lazy dog and runs into the dark green forest"
NEAR = TEXT + " again"
OTHER = "rain is expected in the north while the south stays dry and warm until sunday"
TITLE = sa.table("title", sa.column("id"), sa.column("body"))


@pytest.fixture
def titles(db: ts.Database, connection: Connection) -> ts.Corpus:
    connection.execute("CREATE TABLE title (id int PRIMARY KEY, body text)")
    connection.execute("INSERT INTO title VALUES (1, %s), (2, %s)", [TEXT, OTHER])
    return db.create_corpus("c", threshold=0.6, recall=1, is_unique=True)


def test_attach_indexes_the_rows_and_keeps_near_duplicates_out(
    db: ts.Database, titles: ts.Corpus
) -> None:
    report = titles.attach("title", "id", "body")
    assert report == ts.ChangeReport(added=2)
    assert titles.status()[:4] == (2, 0, None, 0)
    with db.engine.connect() as connection, pytest.raises(sa.exc.IntegrityError) as caught:
        connection.execute(sa.insert(TITLE).values(id=3, body=NEAR))
    diagnostic = caught.value.orig.diag  # type: ignore[union-attr]
    assert (diagnostic.constraint_name, diagnostic.table_name) == ("c", "title")
    assert "Key (1) has similarity 0.93" in diagnostic.message_detail
    assert [match.key for match in titles.add_unique("x", NEAR)] == ["1"]


def test_rows_that_match_are_refused_or_kept(
    titles: ts.Corpus, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    connection.execute("INSERT INTO title VALUES (3, %s)", [NEAR])
    with pytest.raises(
        ts.ConfigurationError, match=r'rows of table public.title match .*"3" and "1"'
    ):
        titles.attach("title", "id", "body")
    assert titles.status().indexed == 0
    assert titles.attach("title", "id", "body", existing="keep") == ts.ChangeReport(added=3)
    assert '"3" and "1" (similarity 0.93' in caplog.text
    assert titles.check() == []
    assert len(titles.add_unique("x", TEXT)) == 2


def test_a_corpus_with_a_table_may_stop_to_be_unique(
    titles: ts.Corpus, connection: Connection
) -> None:
    titles.attach("title", "id", "body")
    assert not titles.rebuild(is_unique=False)
    connection.execute("INSERT INTO title VALUES (3, %s)", [NEAR])
    assert len(list(titles.pairs())) == 1


def test_an_attached_table_may_make_its_corpus_unique(
    db: ts.Database, connection: Connection
) -> None:
    connection.execute("CREATE TABLE title (id int PRIMARY KEY, body text)")
    corpus = db.create_corpus("c", threshold=0.6)
    corpus.attach("title", "id", "body", "inline")
    connection.execute("INSERT INTO title VALUES (1, %s), (2, %s)", [TEXT, NEAR])
    with pytest.raises(ts.ConfigurationError, match='"1" and "2"'):
        corpus.rebuild(is_unique=True)
    connection.execute("DELETE FROM title WHERE id = 2")
    assert corpus.rebuild(is_unique=True)
    with db.engine.connect() as other, pytest.raises(sa.exc.IntegrityError):
        other.execute(sa.insert(TITLE).values(id=3, body=NEAR))


def test_the_command_attaches_to_a_unique_corpus(textsim: Textsim, connection: Connection) -> None:
    connection.execute("CREATE TABLE title (id int PRIMARY KEY, text text)")
    connection.execute("INSERT INTO title VALUES (1, %s), (2, %s)", [TEXT, NEAR])
    textsim("corpus", "create", "c", "--unique", "--recall", "1")
    result = textsim("attach", "c", "title", status=2)
    assert "1 rows of table public.title match" in result.stderr
    assert "because" not in result.stderr
    result = textsim("attach", "c", "title", "--existing", "keep")
    assert "2 added" in result.stderr
    assert '"2" and "1"' in result.stderr
    assert "changed rows are found at once" in result.stderr
    with pytest.raises(UniqueViolation):
        connection.execute("INSERT INTO title VALUES (3, %s)", [NEAR])
