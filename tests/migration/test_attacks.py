"""Attacks by roles with few rights: each test tries everything that the catalog lists."""

from __future__ import annotations

import random
from itertools import product

import psycopg
import pytest
from psycopg import errors as pg

from tests.support.catalog import expected_settings
from tests.support.roles import FOX, RELATIONS, Stage, as_role, rows_and_rights
from tests.support.sampling import sample

FUNCTIONS = """
SELECT p.oid::regprocedure::text, p.prosecdef, l.lanname, p.proconfig::text[],
    p.prosqlbody IS NOT NULL, p.prorettype = 'trigger'::regtype,
    array(SELECT format_type(a, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY q (a, i)
        ORDER BY i)
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'textsim'::regnamespace AND p.prokind = 'f' ORDER BY 1
"""
TRIGGER_FUNCTIONS = (
    *("textsim._refuse_write()", "textsim._log_documents()", "textsim._after_events()"),
    *("textsim._log_judged()", "textsim._change_passage_rows()"),
)
VALUES = {
    "text": ["'news'", "'a'", "'word:2'", "'inline'", "NULL"],
    "integer": ["1", "0"],
    "bigint": ["1"],
    "numeric": ["1"],
    "double precision": ["0.5"],
    "boolean": ["true"],
    "name": ["'id'", "'body'"],
    "oid": ["'text'::regtype"],
    "tid[]": ["'{\"(0,1)\"}'"],
    "name[]": ["'{former,changed}'"],
    "regclass": ["'article'", "'textsim.document'"],
    "regclass[]": ["'{article,textsim.document}'"],
    "regrole": ["current_user::regrole"],
    "text[]": ["'{a,b}'"],
    "anyarray": ["'{1,2}'::integer[]"],
    "integer[]": ["'{1,2}'"],
    "smallint[]": ["'{1,2}'"],
    "bigint[]": ["'{1,2}'"],
    "uuid[]": ["NULL", "'{00000000-0000-0000-0000-000000000001}'"],
    "double precision[]": ["'{0.5,1}'"],
    "timestamp with time zone": ["now()"],
    "anyelement": ["now()"],
    "interval": ["interval '1 day'"],
    "jsonb": ["'{}'", '\'{"a": "b"}\''],
    "textsim.corpus": ["(SELECT c FROM textsim.corpus c LIMIT 1)"],
    "textsim.source": ["(SELECT s FROM textsim.source s LIMIT 1)"],
    "textsim._listed_text[]": ["'{}'"],
    "textsim._sketched": [
        "NULL",
        "textsim._sketched((SELECT c FROM textsim.corpus c LIMIT 1), 'a b', NULL)",
    ],
}
RUN_A_QUERY = ("group_pairs", "_group_pairs", "_read_pairs")
"""Functions that run a query of the caller; no value of VALUES is a query."""
# Calls with valid values: they are refused for missing rights only.
VALID = [
    "create_corpus('mine', 'word:2')",
    "drop_corpus('bare')",
    "attach('news', 'article', 'id', 'body', 'queue')",
    "attach('news', 'article', 'id', 'body', 'inline')",
    "detach('news', 'queue')",
    "add('news', 'new', 'a text')",
    "remove('news', 'a')",
    "_prepare_source('news', 'article', '{id}', 'body', 'inline', NULL)",
    "_activate_source(1, true)",
    "_release_source(1)",
    "judge('news', 'a', 'b', 'same')",
    "unjudge('news', 'a', 'c')",
    "_create_relations(1)",
    "_drop_relations(1)",
    "track('news')",
    "_drop_tracking(1)",
    "_log_ids(1, '{1}')",
    "_make_functions(1)",
    "_grant_ids(1)",
    "_enqueue(1, 1, NULL)",
    "_replace_corpus(1, 2)",
]


def is_fault(error: psycopg.Error) -> bool:
    """Return whether the error is an internal error of the server, or the server was stopped."""
    return str(error.sqlstate).startswith(("XX", "57"))


def attach(stage: Stage) -> None:
    for mode in ("queue", "inline"):
        stage.run(
            stage.writer,
            f"CREATE TABLE {mode} (id integer PRIMARY KEY, body text)",
            f"SELECT textsim.attach('news', '{mode}', 'id', 'body', '{mode}')",
            f"INSERT INTO {mode} VALUES (1, '{FOX}')",
        )


def test_every_function_fixes_where_names_are_looked_up(stage: Stage) -> None:
    """A function has a search path with temporary objects last, or was parsed when it was created."""
    attach(stage)
    functions = stage.run(stage.owner, FUNCTIONS)
    assert sum(row[1] for row in functions) >= 5
    for name, definer, language, settings, parsed, _, _ in functions:
        if definer or language != "sql":
            assert settings == expected_settings(name), name
        else:
            assert parsed, name
        assert language in ("sql", "plpgsql"), name


def test_only_writers_may_call_functions_that_run_as_the_owner(stage: Stage) -> None:
    attach(stage)
    functions = stage.run(stage.owner, FUNCTIONS)
    permitted_roles = dict(
        stage.run(
            stage.owner,
            "SELECT f, array(SELECT r FROM unnest(%s::text[]) r "
            "WHERE has_function_privilege(r, f, 'EXECUTE')) FROM unnest(%s::text[]) f",
            values=[[stage.other, stage.reader, stage.writer], [row[0] for row in functions]],
        )
    )
    for name, definer, _, _, _, is_trigger, _ in functions:
        if definer:
            is_source = "_source" in name or "_note_shape" in name or "_changes_" in name
            assert permitted_roles[name] == ([stage.writer] if is_source else []), name
        elif is_trigger:
            assert name in TRIGGER_FUNCTIONS


def test_a_reader_changes_nothing_by_any_function(stage: Stage, rng: random.Random) -> None:
    """The test calls every function of the catalog, so it covers functions that are added later."""
    attach(stage)
    stage.run(stage.owner, "SELECT textsim.create_corpus('bare')")
    stage.run(stage.reader, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    before = rows_and_rights(stage)
    called = 0
    with psycopg.connect(as_role(stage.url, stage.reader), autocommit=True) as connection:
        connection.execute("SET statement_timeout = '20s'")
        for name, _, _, _, _, is_trigger, types in stage.run(stage.owner, FUNCTIONS):
            function = name[: name.index("(")]
            if is_trigger:
                statements = [
                    f"CREATE TRIGGER t BEFORE INSERT ON article FOR EACH ROW "
                    f"EXECUTE FUNCTION {function}()"
                ]
            else:
                assert set(types) <= VALUES.keys(), f"{name}: give values for its types"
                possible = list(product(*(VALUES[kind] for kind in types)))
                chosen = rng.sample(possible, min(40, len(possible)))
                casts = [f"::{kind}" for kind in types]
                variadic = "VARIADIC " if function == "textsim.join_key" else ""
                statements = [
                    f"SELECT * FROM {function}({variadic}"
                    + ", ".join(v + c for v, c in zip(values, casts, strict=True))
                    + ")"
                    for values in chosen
                ]
            for statement in statements:
                called += 1
                try:
                    connection.execute(statement.encode())
                except psycopg.Error as error:
                    if function.removeprefix("textsim.") in RUN_A_QUERY:
                        continue
                    assert not isinstance(error, pg.SyntaxError | pg.UndefinedFunction), statement  # noqa: PT017
                    assert not is_fault(error), statement  # noqa: PT017
        # A reader may create views, and a corpus with views cannot be dropped.
        views = (
            "SELECT format('DROP VIEW %%I.%%I', schemaname, viewname) FROM pg_views "
            "WHERE viewowner = %s"
        )
        for (statement,) in connection.execute(views, [stage.reader]).fetchall():
            connection.execute(statement.encode())
        for call in VALID:
            with pytest.raises(pg.InsufficientPrivilege):
                connection.execute(f"SELECT textsim.{call}".encode())
    assert called > 200
    assert rows_and_rights(stage) == before


def test_a_reader_changes_nothing_by_any_statement(stage: Stage) -> None:
    attach(stage)
    stage.run(stage.reader, "CREATE TABLE own (LIKE textsim.band)")
    before = rows_and_rights(stage)
    statements = [
        "CREATE TABLE textsim.made ()",
        "CREATE VIEW textsim.made AS SELECT 1",
        "CREATE SEQUENCE textsim.made",
        "CREATE TYPE textsim.made AS (x integer)",
        "CREATE DOMAIN textsim.made AS text",
        "CREATE OPERATOR textsim.=== (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text)",
        'CREATE COLLATION textsim.made FROM pg_catalog."C"',
        "ALTER SCHEMA textsim RENAME TO other",
        "COMMENT ON SCHEMA textsim IS 'x'",
        "ALTER FUNCTION textsim.add(text, text, text) SECURITY DEFINER",
        "ALTER FUNCTION textsim._activate_source(integer, boolean) RESET ALL",
        "DROP FUNCTION textsim.jaccard(text, text, text, text)",
        "CREATE OR REPLACE FUNCTION textsim._wake() RETURNS void LANGUAGE sql AS ''",
        "ALTER TABLE own SET SCHEMA textsim",
    ]
    for name, kind, column in stage.run(stage.owner, RELATIONS):
        if kind == "S":
            statements += [
                f"SELECT nextval('{name}')",
                f"SELECT setval('{name}', 99)",
                f"ALTER SEQUENCE {name} RESTART",
            ]
            continue
        statements += [
            f"INSERT INTO {name} SELECT * FROM {name}",
            f"INSERT INTO {name} DEFAULT VALUES",
            f"DELETE FROM {name} WHERE false",
            f"COPY {name} FROM STDIN",
            f"ALTER TABLE {name} OWNER TO CURRENT_USER",
            f"DROP TABLE {name}" if kind != "v" else f"DROP VIEW {name}",
            f"GRANT SELECT ON {name} TO PUBLIC",
            f"COMMENT ON {'VIEW' if kind == 'v' else 'TABLE'} {name} IS 'x'",
            f"CREATE RULE made AS ON INSERT TO {name} DO INSTEAD NOTHING",
        ]
        if kind != "v":
            statements += [
                *([f"UPDATE {name} SET {column} = DEFAULT"] if column else []),
                f"SELECT * FROM {name} FOR UPDATE",
                f"CREATE TRIGGER t BEFORE INSERT ON {name} FOR EACH ROW "
                "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
                f"TRUNCATE {name}",
                f"CREATE INDEX ON {name} ((1))",
                f"CREATE STATISTICS made ON tableoid, ctid FROM {name}",
                f"CREATE POLICY made ON {name}",
                f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
                f"ALTER TABLE {name} DISABLE TRIGGER ALL",
                f"ALTER TABLE {name} REPLICA IDENTITY FULL",
                f"CREATE TABLE child () INHERITS ({name})",
                f"CREATE TABLE child PARTITION OF {name} DEFAULT",
                f"ALTER TABLE {name} ATTACH PARTITION own DEFAULT",
                f"MERGE INTO {name} USING (SELECT 1) s ON false WHEN NOT MATCHED THEN "
                "INSERT DEFAULT VALUES",
                f"REINDEX TABLE {name}",
                f"CLUSTER {name}",
            ]
            statements += [
                f"BEGIN; LOCK TABLE {name} IN {mode} MODE"
                for mode in (
                    "ROW SHARE",
                    "ROW EXCLUSIVE",
                    "SHARE UPDATE EXCLUSIVE",
                    "SHARE",
                    "SHARE ROW EXCLUSIVE",
                    "EXCLUSIVE",
                    "ACCESS EXCLUSIVE",
                )
            ]
    done = []
    with psycopg.connect(as_role(stage.url, stage.reader), autocommit=True) as connection:
        for statement in statements:
            try:
                connection.execute(statement.encode())
            except pg.InsufficientPrivilege:
                pass
            except psycopg.Error as error:  # refused before the server checks rights
                assert not isinstance(error, pg.UndefinedTable), statement  # noqa: PT017
                assert not is_fault(error), statement  # noqa: PT017
            else:
                done.append(statement)
            if statement.startswith("BEGIN"):
                connection.execute("ROLLBACK")
    # If a role may grant nothing, GRANT only warns; the rights are compared below.
    assert [s for s in done if not s.startswith("GRANT")] == []
    assert rows_and_rights(stage) == before


CALLS = [
    "_prepare_source('news', '{table}', ARRAY['x\"; DROP TABLE textsim.word; --'], 'b', 'queue', NULL)",
    "_prepare_source('news', '{table}', ARRAY['%s %I $body$'], 'b''); DROP', 'inline', NULL)",
    "_prepare_source('news', '{table}', '{{id}}', 'body', 'x'') ; DROP', NULL)",
    "_prepare_source('news', 'textsim.document', '{{key}}', 'normal_form', 'inline', NULL)",
    "_prepare_source('news', 'textsim.corpus', '{{name}}', 'name', 'queue', NULL)",
    "_prepare_source('news', 'pg_catalog.pg_class', '{{relname}}', 'relname', 'inline', NULL)",
    "_prepare_source('news', '{table}', '{{id}}', 'body', 'queue', 'x\"; DROP TABLE textsim.word; --')",
    "_prepare_source('nothing', '{table}', '{{id}}', 'body', 'queue', NULL)",
    "_activate_source(1, true)",
    "_activate_source(-1, true)",
    "_release_source(1)",
    "_release_source(-1)",
    "_release_source(2147483647)",
]


def test_functions_that_run_as_the_owner_give_a_writer_no_more_rights(stage: Stage) -> None:
    attach(stage)
    stage.run(stage.other, "CREATE TABLE others (id integer PRIMARY KEY, body text)")
    stage.run(stage.writer, "CREATE TABLE mine (id integer PRIMARY KEY, body text)")
    before = rows_and_rights(stage)
    for call, table in product(CALLS, ("others", "mine")):
        try:
            stage.run(stage.writer, f"SELECT textsim.{call.format(table=table)}")
        except psycopg.Error as error:
            assert not isinstance(error, pg.SyntaxError), call  # noqa: PT017
            assert not is_fault(error), call  # noqa: PT017
        assert stage.run(stage.owner, "SELECT count(*) FROM textsim.sources") == [(2,)], call
    after = rows_and_rights(stage)
    changed = {name for name in before if before[name] != after[name]}
    # The calls leave at most rows of tables that are not attached, and their unused trigger functions.
    assert changed <= {"rights", "textsim.source", "textsim.source_id_seq"}
    new = [right for right in after["rights"] if right not in before["rights"]]
    assert all(kind == "function" and "_changes_" in name for kind, name, _ in new)


def test_the_writer_of_another_corpus_does_nothing_as_the_owner(stage: Stage) -> None:
    """The test calls every function of the catalog with the owner's rights, also those added later."""
    attach(stage)
    rights = f"'\"{stage.other}\"'"
    stage.run(
        stage.owner,
        "SELECT textsim.create_corpus('theirs')",
        f"SELECT textsim.grant_writer({rights}, 'theirs')",
    )
    stage.run(stage.other, "CREATE TABLE mine (id integer PRIMARY KEY, body text)")
    stage.run(stage.writer, "SELECT textsim.detach('news', 'inline')", "DROP TABLE queue")
    (shape,) = stage.run(stage.owner, "SELECT shape::text FROM textsim.source WHERE active")[0]
    values = {
        "integer": ["1", "2"],  # a source whose table was dropped, and a detached one
        "text": ["'news'", "'queue'", "'inline'"],
        "text[]": ["'{}'", f"'{shape}'"],
        "name": ["'id'", "'body'", "NULL"],
        "name[]": ["'{id}'"],
        "regclass": ["'mine'", "'inline'", "NULL"],
        "boolean": ["true", "false"],
    }
    before = rows_and_rights(stage)
    calls = 0
    for name, definer, _, _, _, is_trigger, types in stage.run(stage.owner, FUNCTIONS):
        function = name[: name.index("(")]
        if not definer:
            continue
        if is_trigger:
            statements = [
                f"CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {function}()"
            ]
        else:
            statements = [
                f"SELECT {function}({', '.join(arguments)})"
                for arguments in product(*(values[kind] for kind in types))
            ]
        assert stage.allowed(stage.other, statements[:400]) == [], function
        calls += len(statements[:400])
    assert calls > 400
    assert rows_and_rights(stage) == before


def test_what_a_corpus_has_learned_is_read_by_its_readers_only(stage: Stage) -> None:
    stage.run(
        stage.owner,
        "SELECT textsim.create_corpus('exact', recall => 1, boilerplate => 0.5)",
        "INSERT INTO textsim.common SELECT id, 7, 1 FROM textsim.corpus WHERE name = 'exact'",
        "INSERT INTO textsim.boilerplate SELECT id, '{7}' FROM textsim.corpus WHERE name = 'exact'",
        f"SELECT textsim.grant_reader('\"{stage.other}\"', 'news')",
    )
    for table in ("common", "boilerplate"):
        for role, rows in ((stage.other, 0), (stage.reader, 1), (stage.writer, 1)):
            read = f"SELECT count(*) FROM textsim.{table}"
            assert stage.run(role, read) == [(rows,)], (table, role)


@pytest.mark.parametrize(
    ("statements", "what"),
    sample(
        [
            (["CREATE INDEX bad ON article (id) WHERE run(1) > 0"], "index bad"),
            (["CREATE INDEX bad ON article ((id + run(1)))"], "index bad"),
            (["CREATE INDEX bad ON article ((id + (1::boxed)))"], "index bad"),
            (["CREATE INDEX bad ON article ((1 OPERATOR(public.%) id))"], "index bad"),
            (["CREATE STATISTICS bad ON (id + run(1)), body FROM article"], "statistics object"),
            (["ALTER TABLE article ADD CONSTRAINT bad CHECK (run(1) > 0)"], "constraint bad"),
            (
                [
                    "DROP TABLE article",
                    "CREATE TABLE article (id integer PRIMARY KEY, body text) PARTITION BY RANGE (id)",
                    "CREATE TABLE part PARTITION OF article (CONSTRAINT bad CHECK (run(1) > 0)) DEFAULT",
                ],
                "constraint bad",
            ),
        ],
        3,
    ),
)
def test_a_worker_runs_no_function_of_the_table_owner(
    stage: Stage, statements: list[str], what: str
) -> None:
    """Planning a query evaluates constants in a table's indexes, with the rights of the reader."""
    stage.run(
        stage.writer,
        "CREATE TABLE ran (by text)",
        "GRANT INSERT ON ran TO PUBLIC",
        "CREATE FUNCTION note() RETURNS void LANGUAGE sql VOLATILE "
        "AS 'INSERT INTO public.ran VALUES (current_user)'",
        "CREATE FUNCTION run(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE "
        "AS 'BEGIN PERFORM public.note(); RETURN 5; END'",
        "CREATE FUNCTION run(integer, integer) RETURNS integer LANGUAGE sql IMMUTABLE "
        "AS 'SELECT public.run(1)'",
        "CREATE OPERATOR public.% (FUNCTION = run, LEFTARG = integer, RIGHTARG = integer)",
        "CREATE DOMAIN boxed AS integer CHECK (run(VALUE) > 0)",
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        *statements,
        "SELECT textsim.attach('news', 'article', 'id', 'body')",
        f'GRANT SELECT ON article TO "{stage.owner}"',
        f"INSERT INTO article VALUES (1, '{FOX}')",
        "DELETE FROM ran",
    )
    with stage.connect(stage.owner) as db:
        worker = db.worker()
        worker.run(until_idle=True)
        assert what in str(worker.unusable).replace("public.", "")
        assert "calls a function of another role" in str(worker.unusable)
    assert stage.run(stage.writer, "SELECT * FROM ran") == []
    assert stage.similar_keys() == []
    # A worker with the rights of the function's owner indexes the table.
    stage.work(stage.writer)
    assert stage.similar_keys() == ["1"]


def test_every_reader_sees_the_words_of_a_table_with_row_security(stage: Stage) -> None:
    """Row security of a table does not protect the index: every reader sees its words.

    A worker reads a table with the rights of its role, and refuses a table whose rows it cannot all see.
    """
    stage.run(
        stage.other,
        "CREATE TABLE secret (id integer PRIMARY KEY, body text)",
        f"INSERT INTO secret VALUES (1, 'The SECRET Plan: {FOX}!')",
        "ALTER TABLE secret ENABLE ROW LEVEL SECURITY",
        f'GRANT SELECT ON secret TO "{stage.writer}", "{stage.owner}"',
    )
    stage.run(stage.owner, f"SELECT textsim.grant_writer('\"{stage.other}\"')")
    stage.run(stage.other, "SELECT textsim.attach('news', 'secret', 'id', 'body')")
    before = rows_and_rights(stage)["textsim.word"]
    for role in (stage.writer, stage.owner):
        with stage.connect(role) as db:
            worker = db.worker()
            worker.run(until_idle=True)
            assert "row security hides rows of it from this role" in str(worker.unusable)
        assert stage.run(role, "SELECT * FROM secret") == []
    assert rows_and_rights(stage)["textsim.word"] == before
    with pytest.raises(pg.InsufficientPrivilege):
        stage.run(stage.reader, "SELECT * FROM secret")
    # A reader sees that something has changed before a role that may see the rows indexes them.
    assert stage.run(stage.reader, "SELECT keys FROM textsim.pending") == [(None,)]
    stage.work(stage.other)
    assert stage.run(stage.writer, "SELECT * FROM secret") == []
    words = (
        "SELECT string_agg(w.word, ' ' ORDER BY q.place) FROM textsim.document_1 d "
        "CROSS JOIN unnest(d.word_ids) WITH ORDINALITY q (id, place) "
        "JOIN textsim.word w ON w.id = q.id WHERE d.key = '1'"
    )
    for role in (stage.reader, stage.writer):
        assert stage.run(role, words) == [(f"the secret plan {FOX}",)]
    # The index has the words alone: no case, no punctuation, no other column.
    everything = str([rows for name, rows in rows_and_rights(stage).items() if name != "rights"])
    assert "SECRET" not in everything
    assert "Plan:" not in everything
