"""The servers that the tests run on, and one database for each test.

Tests that use a database run on the newest embedded PostgreSQL. `--postgres` chooses another version,
and `--postgres-image` names an image for Docker. TEXTSIM_TEST_DATABASE_URL names any other server; its
role must be allowed to create databases.

`--more` runs what a plain run leaves out: the tests marked more, and on the older server the tests
marked both_servers. `--all` runs both. Tests marked long run only with `--long`, which `make soak` uses.
"""

from __future__ import annotations

import atexit
import gc
import os
import platform
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import hypothesis
import numba
import psycopg
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

import textsim_db
from tests.support.aio import run
from tests.support.clients import Clients, open_clients
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.proxy import Proxy, open_proxy
from tests.support.sampling import mark_repetitions
from tests.support.servers import (
    EMBEDDED_VERSIONS,
    URL_VARIABLE,
    Server,
    embedded_version,
    hold_lock,
    new_folder,
    run_container,
    start_embedded,
)
from textsim_db.base import numba_compiler
from textsim_db.base.interpreter import SECONDS_VARIABLE, interpreter
from textsim_db.cli import app, warm
from textsim_db.corpus.database import URL_VARIABLE as DATABASE_URL_VARIABLE
from textsim_db.db import embedded_server
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import Linkage
from textsim_db.text import tokens

hypothesis.settings.register_profile(
    "textsim",
    deadline=None,
    database=None,
    print_blob=True,
    # A busy machine draws examples slowly.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("textsim")

# A shell starts background jobs with SIGINT ignored, and the processes of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

FOLDER = pytest.StashKey[Path]()
SEED = pytest.StashKey[int]()
UNCOMPILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("textsim-db")
    group.addoption(
        "--postgres",
        type=int,
        action="append",
        choices=EMBEDDED_VERSIONS,
        help="run on this version of the embedded PostgreSQL; may be repeated (default: the newest)",
    )
    group.addoption("--postgres-image", help="run on this image, such as postgres:18, with Docker")
    group.addoption(
        "--more", action="store_true", help="run only what a run without this option leaves out"
    )
    group.addoption("--all", action="store_true", help="run what --more runs as well")
    group.addoption("--long", action="store_true", help="run tests marked long as well")
    group.addoption("--seed", type=int, help="seed of the random tests (default: random, printed)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    from_controller = _from_controller(config)
    seed = from_controller.get("textsim_seed", config.getoption("--seed"))
    config.stash[SEED] = random.randrange(2**32) if seed is None else seed
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(config.stash[SEED])
    if from_controller:
        config.stash[FOLDER] = Path(from_controller["textsim_folder"])
    else:
        config.stash[FOLDER] = new_folder("ts-")
        mark = numba_compiler.mark_file()
        config.stash[UNCOMPILED] = mark is not None and not any(mark.parent.glob("*.nbc"))
        # However the run ends, no server outlives it.
        atexit.register(_clean, config.stash[FOLDER])
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.pop(DATABASE_URL_VARIABLE, None)
    # Tests, and the commands that they start, run the kernels as they are when they are compiled.
    os.environ[SECONDS_VARIABLE], interpreter.seconds = "0", 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that the options do not ask for."""
    mark_repetitions(items)
    items[:] = [item for item in items if _is_asked_for(item)]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_collection_finish() -> None:
    """Keep the objects of all modules out of garbage collections: each would visit them for 0.3 s."""
    gc.collect()
    gc.freeze()


def _is_asked_for(item: pytest.Item) -> bool:
    if item.get_closest_marker("long"):
        return bool(item.config.getoption("--long"))
    is_more = item.get_closest_marker("more") is not None
    option = item.config.getoption
    return bool(option("--all")) or is_more == bool(option("--more"))


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels(request: pytest.FixtureRequest) -> None:
    """Compile the kernel that every command begins with: a command that compiles it prints so.

    If no kernel is compiled, each process of pytest-xdist compiles its share of all kernels. Otherwise
    each process would compile nearly all kernels, which takes it over a minute.
    """
    worker = _from_controller(request.config)
    if worker.get("textsim_uncompiled"):
        first, processes = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        with (
            open_server(request.config, _server_names(request.config)[-1]) as server,
            server.clone() as address,
            textsim_db.connect(address) as database,
        ):
            if first % 2:
                _read_documents_of_sql(database, address)
            for use in list(warm._uses())[first::processes]:
                use(database)
    tokens.words("a text")


def _read_documents_of_sql(database: textsim_db.Database, address: str) -> None:
    """Compile what reads documents. SQL writes them, because writing needs as many other kernels."""
    text = "SELECT textsim.add(%s, i::text, repeat('one of two words ', 30) || i %% 9) "
    for recall in (0.95, 1):
        with (
            warm.temporary_corpus(database, CorpusSettings(recall=recall)) as corpus,
            psycopg.connect(address, autocommit=True) as connection,
        ):
            connection.execute(text + "FROM generate_series(1, 300) i", [corpus.name])
            connection.execute("CALL textsim.index_pending(%s)", [corpus.name])
            list(corpus.pairs())
            for linkage in Linkage:
                list(corpus.clusters(linkage=linkage))
            list(corpus.duplicates())
            corpus.measure_recall()
            corpus.statistics()


@pytest.fixture(scope="session", autouse=True)
def command_read_once() -> Iterator[None]:
    """Read the signatures of all commands once: it takes longer than a short command runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many snippets of the docs were run (tests/docs)."""
    reports = [
        report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)
    ]
    counts = [n for report in reports for name, n in report.user_properties if name == "snippets"]
    if counts:
        terminalreporter.write_line(f"docs: {len(counts)} pages, {sum(counts)} snippets run")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the folder and the seed to the workers of pytest-xdist."""
    node.workerinput["textsim_folder"] = str(node.config.stash[FOLDER])
    node.workerinput["textsim_seed"] = node.config.stash[SEED]
    node.workerinput["textsim_uncompiled"] = node.config.stash[UNCOMPILED]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers of the run; the workers of pytest-xdist have ended by now."""
    if FOLDER in config.stash and not _from_controller(config):
        _clean(config.stash[FOLDER])


def _clean(folder: Path) -> None:
    if not folder.exists():
        return
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for version in EMBEDDED_VERSIONS:
            stack.callback(embedded_server.stop, folder, version)
        url = os.environ.get(URL_VARIABLE)
        if url and (folder / "used").exists():
            stack.callback(Server(url, _prefix(folder)).drop_all)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"servers: {', '.join(_describe(config, name) for name in _server_names(config))}",
        f"python {platform.python_version()}, numba {numba.__version__}, "
        f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__}), libpq {psycopg.pq.version()}",
        f"random: --seed {config.stash[SEED]}",
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        names = _server_names(metafunc.config)
        servers: list[Any] = [*names]
        if not metafunc.config.getoption("--postgres"):
            is_both = metafunc.definition.get_closest_marker("both_servers")
            older = names[:-1] if is_both else []
            servers = [*(pytest.param(name, marks=pytest.mark.more) for name in older), names[-1]]
        metafunc.parametrize("server", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server of this test; every test that uses a database runs once on each server."""
    with open_server(request.config, request.param) as server:
        yield server


@contextmanager
def open_server(config: pytest.Config, name: str) -> Iterator[Server]:
    """Start or join a server of the run that has the template."""
    folder = config.stash[FOLDER]
    with ExitStack() as stack:
        if name == "url":
            url = os.environ[URL_VARIABLE]
        elif name.isdigit():
            url = ""
        else:
            url = stack.enter_context(run_container(name))
        with hold_lock(folder / "used"):
            if not url:
                url = start_embedded(folder, int(name))
            server = Server(url, _prefix(folder))
            server.make_template()
        yield server


@pytest.fixture
def database_url(server: Server) -> Iterator[str]:
    """The address of a database that only this test uses, with the schema."""
    with server.clone() as address:
        yield address


@pytest.fixture
def empty_database_url(server: Server) -> Iterator[str]:
    """The address of a database that only this test uses, without the schema."""
    with server.database("ENCODING 'UTF8' TEMPLATE template0") as address:
        yield address


@pytest.fixture
def db(database_url: str) -> Iterator[textsim_db.Database]:
    with textsim_db.connect(database_url) as database:
        yield database


@pytest.fixture(scope="module")
def shared_database_url(server: Server) -> Iterator[str]:
    """The address of a database that the tests of a module share; no test changes it for the next."""
    with server.clone() as address:
        yield address


@pytest.fixture(scope="module")
def shared_db(shared_database_url: str) -> Iterator[textsim_db.Database]:
    with textsim_db.connect(shared_database_url) as database:
        yield database


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """A connection of psycopg's to the test's database; each statement is a transaction."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def shared_connection(shared_database_url: str) -> Iterator[Connection]:
    """A read-only connection to the database that a module shares."""
    with psycopg.connect(
        shared_database_url, autocommit=True, options="-c default_transaction_read_only=on"
    ) as connection:
        yield connection


@pytest.fixture
def corpus_db(request: pytest.FixtureRequest, server: Server) -> Iterator[textsim_db.Database]:
    """The database of the corpus: a test that asks for a database has its own, the others share one."""
    if "database_url" in request.fixturenames:
        yield request.getfixturevalue("db")
        return
    database: textsim_db.Database = request.getfixturevalue("shared_db")
    yield database
    for name in database.corpora():
        database.drop_corpus(name)


@pytest.fixture
def corpus(corpus_db: textsim_db.Database) -> textsim_db.Corpus:
    """An empty corpus, for tests that depend on no setting."""
    return corpus_db.create_corpus("c", shingle="word:2", threshold=0.7, num_hashes=16)


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    """A proxy before the test's database that cuts connections on request."""
    with open_proxy(database_url) as proxy:
        yield proxy


@pytest.fixture
def make_client(database_url: str) -> Iterator[Clients]:
    """A function that makes clients; the test decides the order of their steps."""
    with open_clients(database_url) as make:
        yield make


@pytest.fixture
def textsim(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Textsim:
    """Run a command in this process, in an empty folder and on the test's database."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):  # Rich reads these
        monkeypatch.delenv(name, raising=False)
    runner = CliRunner(env={DATABASE_URL_VARIABLE: database_url})

    def run(*args: str, status: int | None = 0, input: str | None = None) -> Result:  # noqa: A002
        result = runner.invoke(app, args, input=input, catch_exceptions=False)
        assert status in (None, result.exit_code), result.output
        return result

    return run


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of the run; printed in the header, set by --seed."""
    return request.config.stash[SEED]


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that depend on the seed and the test, not on the tests before it."""
    return random.Random(f"{seed} {request.node.nodeid}")


def _from_controller(config: pytest.Config) -> dict[str, Any]:
    """Return the values from pytest-xdist's controller; empty in the controller itself."""
    return getattr(config, "workerinput", {})


def _server_names(config: pytest.Config) -> list[str]:
    if image := config.getoption("--postgres-image"):
        return [image]
    if os.environ.get(URL_VARIABLE):
        return ["url"]
    return [str(v) for v in config.getoption("--postgres") or EMBEDDED_VERSIONS]


def _describe(config: pytest.Config, name: str) -> str:
    if name == "url":
        version = Server(os.environ[URL_VARIABLE], "").version()
        return f"PostgreSQL {version} ({URL_VARIABLE})"
    return embedded_version(int(name)).strip() if name.isdigit() else name


def _prefix(folder: Path) -> str:
    return f"{folder.name.lower().replace('-', '_')}_"
