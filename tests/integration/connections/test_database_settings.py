"""Under any setting of the database everything works, and no check finds a fault."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.roles import new_role
from tests.support.servers import SYSTEM_PROGRAMS, UTF8, Server, database_of, run_server

SETTINGS: dict[LiteralString, str] = {
    "quote_all_identifiers": "on",
    "standard_conforming_strings": "off",
    "IntervalStyle": "iso_8601",
    "DateStyle": "German",
    "TimeZone": "Asia/Tokyo",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "search_path": "nowhere",
    "client_encoding": "LATIN1",
    "array_nulls": "off",
    "check_function_bodies": "off",
    "transform_null_equals": "on",
    "plan_cache_mode": "force_generic_plan",
    "row_security": "off",
    "session_replication_role": "local",
    "backslash_quote": "off",
    "escape_string_warning": "off",
    "jit_above_cost": "0",
}
TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen \\1 '"


def make(url: str, name: str, role: str) -> None:
    """Create a corpus, track it, attach tables to it, let a role write, and index rows."""
    with psycopg.connect(url, autocommit=True) as connection, ts.connect(url) as db:
        db.create_corpus(name, passages=13, scoped=True, keep_for="30 days")
        connection.execute(
            "SELECT textsim.create_corpus(%s, keep_for => '1 month')", [f"{name} in SQL"]
        )
        connection.execute(
            f"CREATE TABLE public.{name} (id int, day date, at timestamptz, body text, "
            "PRIMARY KEY (id, day))".encode()
        )
        connection.execute(
            "SELECT textsim.attach(%s, %s, key_columns => '{day,id}', text_column => 'body', "
            "time_column => 'at', row_filter => $$body <> '\\x' AND at > '2020-01-01+00'$$)",
            [f"{name} in SQL", f"public.{name}"],
        )
        db.corpus(name).attach(
            f"public.{name}",
            key_columns=["id", "day"],
            text="body",
            mode="inline",
            scope="day",
            time="at",
        )
        connection.execute("SELECT textsim.track(%s)", [f"{name} in SQL"])
        db.corpus(name).track()
        connection.execute(
            "SELECT textsim.grant_writer(%s, %s)", [sql.Identifier(role).as_string(), name]
        )
        connection.execute(
            f"INSERT INTO public.{name} SELECT g, '2026-11-26', pg_catalog.now(), %s || g "
            "FROM pg_catalog.generate_series(1, 3) g".encode(),
            [TEXT],
        )
        connection.execute("CALL textsim.index_pending(%s)", [f"{name} in SQL"])
        db.worker().run(until_idle=True)
        for corpus in (db.corpus(name), db.corpus(f"{name} in SQL")):
            assert len(list(corpus.pairs())) == 3
            assert [len(cluster.keys) for cluster in corpus.clusters()] == [3]
        connection.execute(f"DELETE FROM public.{name} WHERE id OPERATOR(pg_catalog.=) 3".encode())


def check(url: str, textsim: Textsim) -> None:
    with ts.connect(url) as db:
        db.worker().run(until_idle=True)
        for corpus in map(db.corpus, db.corpora()):
            assert corpus.check() == []
            assert corpus.status().problems == []
            assert len(corpus) == 2
    textsim("--database-url", url, "doctor")


def set_all(server: Server, url: str, settings: Mapping[LiteralString, str]) -> None:
    for name, setting in settings.items():
        change = sql.SQL("ALTER DATABASE {} SET {} = {}").format(
            sql.Identifier(database_of(url)), sql.Identifier(name), sql.Literal(setting)
        )
        with suppress(psycopg.errors.UndefinedObject):  # an older server has no such setting
            server.execute(change)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SETTINGS, marks=pytest.mark.more),
        pytest.param({"IntervalStyle": "sql_standard"}, marks=pytest.mark.long),
        *(pytest.param({n: s}, marks=pytest.mark.long) for n, s in SETTINGS.items()),
    ],
    ids=lambda settings: next(iter(settings)) if len(settings) == 1 else "all",
)
def test_settings_of_the_database_change_nothing(
    server: Server, textsim: Textsim, settings: dict[LiteralString, str]
) -> None:
    """All at once; one alone, in a long run, says which one it was."""
    with new_role(server, f'{server.new_name()} "role') as role, server.database(UTF8) as url:
        set_all(server, url, settings)
        ts.install(url)
        make(url, "first", role)
        check(url, textsim)
        # Each setting reads the objects that the other one made.
        server.execute(
            sql.SQL("ALTER DATABASE {} RESET ALL").format(sql.Identifier(database_of(url)))
        )
        check(url, textsim)
        make(url, "second", role)
        set_all(server, url, settings)
        check(url, textsim)
        ts.install(url)
        check(url, textsim)


LOCALES = (
    "LOCALE 'tr_TR.UTF-8'",
    "LOCALE 'C'",
    "LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LOCALE 'C'",
)


@pytest.fixture(scope="module")
def system_server() -> Iterator[Server]:
    """A server of the operating system: the embedded servers have no ICU."""
    if not SYSTEM_PROGRAMS:
        pytest.skip("the programs of a PostgreSQL are not installed")
    with tempfile.TemporaryDirectory(prefix="ts-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        with run_server(SYSTEM_PROGRAMS[-1], Path(name)) as url:
            yield Server(url, "locale_")


@pytest.mark.more
@pytest.mark.parametrize("locale", LOCALES)
def test_the_locale_of_the_database_changes_nothing(
    system_server: Server, textsim: Textsim, locale: str
) -> None:
    with new_role(system_server, f'{system_server.new_name()} "role') as role, ExitStack() as stack:
        try:
            url = stack.enter_context(system_server.database(f"{UTF8} {locale}"))
        except (psycopg.errors.WrongObjectType, psycopg.errors.FeatureNotSupported) as error:
            pytest.skip(f"this server has no {locale}: {error}")
        ts.install(url)
        make(url, "insert", role)
        check(url, textsim)
