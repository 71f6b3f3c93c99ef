"""textsim db and check: addresses, the schema, and stored rows that are wrong."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

import textsim_db as ts
from tests.support.commands import Textsim, rows
from tests.support.connections import Connection
from textsim_db.cli import app
from textsim_db.corpus.database import URL_VARIABLE
from textsim_db.db.embedded_server import DATA_DIR_VARIABLE
from textsim_db.db.schema import head
from textsim_db.results import CorpusSummary


def test_check(news: Textsim, database_url: str) -> None:
    for command in (["check"], ["check", "news"]):
        result = news(*command)
        assert result.stdout == ""
        assert result.stderr == 'corpus "news": 4 documents, nothing wrong\n'
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE textsim.document_1 SET shingle_count = 77 WHERE key = 'd'")
    result = news("check", "--format", "jsonl", status=1)
    assert [(row["corpus"], row["kind"], row["subject"]) for row in rows(result)] == [
        ("news", "shingle count", "d")
    ]
    assert "shingle count" in news("check", status=1).stdout


def test_many_problems_are_grouped_and_the_remedy_fits_the_corpus(
    textsim: Textsim, db: ts.Database, connection: Connection
) -> None:
    plain, tabled = db.create_corpus("a plain one"), db.create_corpus("tabled")
    plain.add_many((f"d{i}", f"some words and the number {i}") for i in range(1500))
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    connection.execute("INSERT INTO t SELECT i, 'some words ' || i FROM generate_series(1, 5) i")
    tabled.attach("t", "id", "body")
    connection.execute("CALL textsim.index_pending('tabled')")
    for name in ("a plain one", "tabled"):
        found = connection.execute("SELECT id FROM textsim.corpus WHERE name = %s", [name])
        table = f"UPDATE textsim.document_{(found.fetchone() or [0])[0]} SET"
        connection.execute(f"{table} shingle_count = 77".encode())
        connection.execute(f"{table} guard = 5 WHERE key IN ('d1', 'd2', '3')".encode())
    result = textsim("check", status=1)
    lines = [line.split("   ") for line in result.stdout.splitlines()[2:]]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert sorted((row[0], row[1], row[2]) for row in cells) == [
        ("a plain one", "guard", "d1"),
        ("a plain one", "guard", "d2"),
        ("a plain one", "shingle count", "1,500, such as"),
        ("tabled", "guard", "3"),
        ("tabled", "shingle count", "5, such as"),
    ]
    remedies = {"a plain one": "rebuild 'a plain one'", "tabled": "reconcile tabled;"}
    assert all(row[-1].startswith(f"textsim {remedies[row[0]]}") for row in cells)
    assert "reconcile 'a plain one'" not in result.stdout
    assert result.stderr.endswith("textsim check --format jsonl lists each problem\n")
    assert len(rows(textsim("check", "--format", "jsonl", status=1))) == 1508
    textsim("rebuild", "a plain one")
    assert plain.check() == []


@pytest.mark.parametrize("command", [["corpus", "list"], ["status"], ["pending"], ["check"]])
def test_a_corpus_that_is_dropped_meanwhile(
    news: Textsim, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    news("corpus", "create", "gone")
    original = ts.Database.corpora

    def corpora(db: ts.Database) -> dict[str, CorpusSummary]:
        names = original(db)
        if "gone" in names:
            db.drop_corpus("gone")
        return names

    monkeypatch.setattr(ts.Database, "corpora", corpora)
    assert "gone" not in news(*command).output
    assert news("corpus", "list", "--format", "csv").stdout.count("\n") == 2


def test_url_before_and_after_the_command(database_url: str) -> None:
    runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
    for args in (
        ["--database-url", database_url, "db", "url"],
        ["db", "url", "--database-url", database_url],
        ["--database-url", "postgresql://other/one", "db", "url", "--database-url", database_url],
    ):
        result = runner.invoke(app, args)
        assert result.stdout.strip() == database_url


def test_no_database() -> None:
    runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
    result = runner.invoke(app, ["corpus", "list"])
    assert result.exit_code == 2
    assert result.stderr == (
        "error: no connection to the database: connection failed: connection to server at "
        '"127.0.0.1", port 1 failed: Connection refused. '
        "Is the server running on that host and accepting TCP/IP connections?\n"
        "the address comes from TEXTSIM_DATABASE_URL\n"
    )


def test_an_impossible_data_directory(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    runner = CliRunner(env={URL_VARIABLE: "", DATA_DIR_VARIABLE: str(blocked / "data")})
    result = runner.invoke(app, ["corpus", "list"])
    assert result.exit_code == 2
    assert result.stderr == (
        "error: the folder of the embedded PostgreSQL cannot be created: "
        f"{blocked}/data: Not a directory; set {DATA_DIR_VARIABLE} to another folder\n"
    )


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://x", "expected an address such as postgresql://"),
        ("postgresql://\ud800/x", "cannot be read"),
        ("postgresql://h/x?ports=1", "cannot be read"),
        ("postgresql://u:secret@h:p/x", "such as postgresql://user@host:5432/name"),
        ("postgresql://h/x?port=p", "such as postgresql://user@host:5432/name"),
        ("postgresql://h:٣/x", "such as postgresql://user@host:5432/name"),
        ("postgresql://u:secret@h:1,i:p/x", "such as postgresql://user@host:5432/name"),
        ("postgresql://u:p@secret@h/x", "special characters of a password written as %40"),
        ("postgresql://u:p@ss,w:secret@h/x", "special characters of a password written as %40"),
        ("postgresql://u:p@secret:secret@h/x", "special characters of a password written as %40"),
    ],
)
def test_not_an_address(address: str, message: str) -> None:
    result = CliRunner().invoke(app, ["corpus", "list", "--database-url", address])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.endswith("\nthe address comes from --database-url\n")
    assert result.stderr.count("\n") == 2
    assert "secret" not in result.stderr


def test_install_and_uninstall(empty_database_url: str) -> None:
    runner = CliRunner(env={URL_VARIABLE: empty_database_url})
    result = runner.invoke(app, ["corpus", "list"])
    assert result.exit_code == 2
    assert "textsim db install" in result.stderr
    for _ in range(2):
        result = runner.invoke(app, ["db", "install", "--no-warm"])
        assert (result.exit_code, result.stdout) == (0, "")
        assert head() in result.stderr
    assert runner.invoke(app, ["corpus", "list"]).exit_code == 0
    result = runner.invoke(app, ["db", "uninstall"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: this would remove the schema textsim in postgresql")
    assert ", with all corpora; " in result.stderr
    assert runner.invoke(app, ["db", "uninstall", "--yes"]).exit_code == 0
    assert runner.invoke(app, ["corpus", "list"]).exit_code == 2
