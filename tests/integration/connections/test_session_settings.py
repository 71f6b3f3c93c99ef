"""Scopes, keys and filtered values of rows do not depend on the settings of the session that writes."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import sqlalchemy
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from textsim_db.db.addresses import sqlalchemy_url

SETTINGS = {
    "DateStyle": ("ISO, MDY", "German, DMY", "SQL, DMY", "Postgres, MDY"),
    "TimeZone": ("UTC", "Asia/Tokyo", "America/New_York"),
    "IntervalStyle": ("postgres", "postgres_verbose", "iso_8601", "sql_standard"),
    "extra_float_digits": ("1", "0", "-15", "3"),
    "bytea_output": ("hex", "escape"),
    "search_path": ("public", "pg_catalog", "pg_temp, public"),
    "enable_seqscan": ("on", "off"),
}
TIMES = ("2026-11-02 01:30:00.5+00", "1999-12-31 23:30:00+00", "2026-02-11 00:00:00+00")
DAYS = ("2026-11-02", "0044-03-15 BC", "infinity")
NUMBERS = ("0.30000000000000004", "0.3", "1e300", "-7.25")
# type: the values of the scope column, and a row filter. The values have different texts.
TYPES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "date": (DAYS, "v > '1.2.2000'"),
    "timestamp": (tuple(time[:-3] for time in TIMES), "v < '2100-01-01'"),
    "timestamptz": (TIMES, "v > '2000-01-01+00'"),
    "timetz": (("01:30:00+03", "23:00:00-05"), None),
    "interval": (("1 day -02:03:04", "-3 mons", "14 mons"), "v > '-1 year'"),
    "float8": (NUMBERS, "v > 0.3"),
    "float4": (("0.3", "0.30000004", "12345678"), "v::text <> '0.3'"),
    "numeric": (("1.0", "1.00", "17"), "v > 0.3"),
    "bytea": (("\\x00ff", "\\x41", "\\x5c"), "v::text <> '\\x41'"),
    "char(5)": (("a", "ab"), "v <> 'ab'"),
    "text": (("a", "a ", ""), "v <> ''"),
    "uuid": (("1b4e28ba-2fa1-11d2-883f-0016d3cca427",), None),
    "json": (('{"a": 1}', '{"a":1}'), "(v->>'a')::int > 0"),
    "jsonb": (('{"a": 0.5, "b": "x"}',), None),
    "point": (("(0.1,0.30000000000000004)", "(1,2)"), None),
    "inet": (("10.0.0.1/8", "::1"), None),
    "float8[]": (("{0.30000000000000004,1}", "{0.3,1}"), "v[1] > 0.3"),
    "tstzrange": (("[2026-11-02 01:30+00,)", "empty"), None),
    "day": (DAYS[:2], None),
    "pair": (("(0.30000000000000004,2026-11-02)", "(,1999-12-31)"), None),
}
WITH_EQUAL_KEYS = ("date", "timestamp", "timestamptz", "text", "uuid")
SETUP = """
CREATE SCHEMA s; CREATE DOMAIN public.day AS date; CREATE TYPE public.pair AS (number float8, day date);
"""


def set_at_random(connection: Connection, rng: random.Random) -> None:
    for name, values in SETTINGS.items():
        setting = [name, rng.choice(values)]
        connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", setting)


def scopes(connection: Connection, corpus: ts.Corpus) -> dict[str, str]:
    documents, _ = tables_of(connection, corpus.name)
    return dict(connection.execute(f"SELECT key, scope FROM {documents}".encode()).fetchall())


@pytest.mark.more
@pytest.mark.parametrize("part", range(3))
def test_scopes_keys_and_filters_are_the_same_whoever_writes(
    db: ts.Database, database_url: str, connection: Connection, rng: random.Random, part: int
) -> None:
    connection.execute(SETUP)
    made: dict[str, Any] = {"shingle": "word:1", "threshold": 0.9, "recall": 1.0, "scoped": True}
    corpora = {
        name: db.create_corpus(name, is_unique=name == "inline", **made)
        for name in ("inline", "worker", "pending")
    }
    kinds = list(TYPES)[part::3]
    for number, kind in enumerate(kinds):
        keys = "kind, v, id" if kind in WITH_EQUAL_KEYS else "kind, id"
        for name in corpora:
            table = f"s.{name}_{number}"
            connection.execute(
                f"CREATE TABLE {table} (kind text DEFAULT '{kind}', id int, v public.{kind}, body text, "
                f"PRIMARY KEY ({keys}))".replace(
                    "public.", "public." * (kind in ("day", "pair"))
                ).encode()
            )
            set_at_random(connection, rng)
            connection.execute(
                "SELECT textsim.attach(%s, %s, key_columns => %s, text_column => 'body', "
                "scope_column => 'v', row_filter => %s)",
                [name, table, f"{{{keys}}}", TYPES[kind][1]],
            )
    for number, kind in enumerate(kinds):
        for row in range(3 * len(TYPES[kind][0])):
            literal = TYPES[kind][0][row % len(TYPES[kind][0])]
            body = " ".join(f"w{rng.randrange(10**9)}" for _ in range(5))
            for name in corpora:
                set_at_random(connection, rng)
                insert = f"INSERT INTO s.{name}_{number} (id, v, body) VALUES (%s, %s, %s)".encode()
                connection.execute(insert, [row, literal, body])
                if name == "inline" and any(
                    key.startswith(f"{kind}/") and key.endswith(f"/{row}")
                    for key in scopes(connection, corpora[name])
                ):
                    set_at_random(connection, rng)
                    with pytest.raises(pg.UniqueViolation):
                        connection.execute(insert, [100 + row, literal, body])
    set_at_random(connection, rng)
    connection.execute("CALL textsim.index_pending('pending')")
    options = " ".join(
        f"-c {name}={rng.choice(values).replace(' ', '')}"
        for name, values in SETTINGS.items()
        if name != "search_path"
    )
    engine = sqlalchemy.create_engine(
        sqlalchemy_url(database_url), connect_args={"options": options}
    )
    with ts.connect(engine) as other:
        other.worker().run(until_idle=True)
        expected = scopes(connection, corpora["inline"])
        for name, corpus in corpora.items():
            assert scopes(connection, corpus) == expected, (name, options)
            assert list(other.corpus(name).drift()) == []
            assert other.corpus(name).check() == []
            assert other.corpus(name).pending() == []
    for kind in kinds:
        literals, filter_ = TYPES[kind]
        of_kind = {s for key, s in expected.items() if key.startswith(f"{kind}/")}
        assert of_kind, kind
        assert filter_ is not None or len(of_kind) == len(literals), kind
    engine.dispose()


REFUSED = {
    "money": "of type money, whose text depends on the setting lc_monetary",
    "money[]": "of type money",
    "prices": "of type money",
}


def test_a_type_whose_text_can_change_is_refused(db: ts.Database, connection: Connection) -> None:
    connection.execute(
        "CREATE TYPE prices AS (id int, price money); CREATE TYPE mood AS ENUM ('sad')"
    )
    for name in ("c", "u"):
        db.create_corpus(name, scoped=True, is_unique=name == "u")
    refused = [("c", kind, reason) for kind, reason in REFUSED.items()]
    for number, (corpus, kind, reason) in enumerate(
        [*refused, ("u", "mood[]", "values of an enum")]
    ):
        connection.execute(
            f"CREATE TABLE t{number} (id int PRIMARY KEY, v {kind}, body text)".encode()
        )
        with pytest.raises(ts.ConfigurationError, match=re.escape(reason)):
            db.corpus(corpus).attach(f"t{number}", "id", "body", scope="v")
    with pytest.raises(ts.ConfigurationError, match="of type money"):
        db.create_corpus("plain").attach("t0", "id", "body", row_filter="v IS NOT NULL")


@pytest.mark.parametrize("by_sql", [False, True])
def test_a_renamed_value_of_an_enum_is_noticed(
    db: ts.Database, connection: Connection, by_sql: bool
) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, v mood[], body text)")
    corpus = db.create_corpus("c", scoped=True)
    corpus.attach("t", "id", "body", scope="v", row_filter="v <> '{none}'")

    def index() -> dict[str, str]:
        if by_sql:
            connection.execute("CALL textsim.index_pending('c')")
        else:
            db.worker().run(until_idle=True)
        return scopes(connection, corpus)

    connection.execute(
        "INSERT INTO t VALUES (1, '{sad}', 'one two three'), (2, '{glad}', 'one two')"
    )
    assert index() == {"1": "{sad}", "2": "{glad}"}
    connection.execute("ALTER TYPE mood RENAME VALUE 'glad' TO 'content'")
    assert index() == {"1": "{sad}", "2": "{content}"}
    connection.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'none'")
    index()
    assert corpus.check() == []


def test_an_update_to_an_equal_value_with_another_text_changes_the_scope(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", scoped=True)
    for kind, before, after in (
        ("numeric", "1.0", "1.00"),
        ("float8", "0", "-0"),
        ("interval", "24:00:00", "1 day"),
        ("json", '{"a": 1}', '{"a":1}'),
        ("varchar(3)", "a", "a "),
    ):
        connection.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {kind}, body text)".encode())
        corpus.attach("t", "id", "body", "inline", scope="v")
        connection.execute("INSERT INTO t VALUES (1, %s, 'one two three')", [before])
        assert scopes(connection, corpus) == {"1": before}, kind
        connection.execute("UPDATE t SET v = %s", [after])
        assert scopes(connection, corpus) == {"1": after}, kind
        connection.execute("DROP TABLE t")
        connection.execute("CALL textsim.index_pending('c')")
