"""A role cannot make triggers and functions run its code with the rights of another role."""

from __future__ import annotations

from contextlib import suppress
from typing import LiteralString

import psycopg
import pytest
from psycopg import errors as pg, sql

from tests.support.roles import FOX, Stage, as_role, new_stage, truncate_name
from tests.support.sampling import sample
from tests.support.servers import Server
from textsim_db.errors import SchemaError
from textsim_db.settings.named_values import ModeName

HOSTILE = [
    'x"; DROP TABLE textsim.corpus; --',
    "it's 100%s %I %1$I %(x)s {document}",
    "$$ $body$ \\ \n\t",
    "naïve 漢字 🙂 ﬁ",
    "select",
    "é" * 32,  # longer than a name can be: 63 bytes
]


def test_only_the_owner_of_a_table_may_use_its_trigger_function(stage: Stage) -> None:
    stage.run(stage.other, "CREATE TABLE other (id integer PRIMARY KEY, body text)")
    stage.run(
        stage.writer,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        f'GRANT ALL ON article TO "{stage.other}", "{stage.reader}"',
        "SELECT textsim.attach('news', 'article', 'id', 'body')",
        "CREATE TABLE more (id integer PRIMARY KEY, body text)",
        # attach() would create the triggers; this call alone does not.
        "SELECT textsim._prepare_source('news', 'more', '{id}', 'body', 'queue', NULL)",
    )
    call = "SELECT textsim._prepare_source('news', 'other', '{id}', 'body', 'queue', NULL)"
    with pytest.raises(pg.InsufficientPrivilege, match=r"only the owner of table .*other may at"):
        stage.run(stage.writer, call)
    execute = "FOR EACH ROW EXECUTE FUNCTION textsim._changes_{}()"
    create = f"CREATE TRIGGER t AFTER INSERT ON {{}} {execute}"
    with pytest.raises(pg.InsufficientPrivilege, match="permission denied"):
        stage.run(stage.writer, create.format("other", 2))
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="source 2 has no triggers"):
        stage.run(stage.writer, "SELECT textsim._activate_source(2, true)")
    with pytest.raises(pg.DependentObjectsStillExist):
        stage.run(stage.writer, "SELECT textsim._release_source(1)")
    stage.run(stage.owner, f"SELECT textsim.grant_reader('\"{stage.other}\"')")
    for role in (stage.reader, stage.other):
        with pytest.raises(pg.InsufficientPrivilege, match="_changes_1"):
            stage.run(role, create.format("article", 1))
    with pytest.raises(pg.InsufficientPrivilege, match="_changes_2"):
        stage.run(stage.other, create.format("other", 2))
    with pytest.raises(pg.InsufficientPrivilege, match=r"permission denied|must be owner"):
        stage.run(stage.other, "SELECT textsim.detach('news', 'article')")
    assert stage.run(stage.owner, "SELECT relation::text FROM textsim.sources") == [("article",)]
    stage.run(stage.writer, "SELECT textsim.detach('news', 'article')")


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_a_role_that_writes_the_table_needs_no_other_right(stage: Stage, mode: ModeName) -> None:
    stage.run(
        stage.writer,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        f'GRANT INSERT, UPDATE, DELETE, SELECT, TRUNCATE ON article TO "{stage.other}"',
    )
    with stage.connect(stage.writer) as db:
        db.corpus("news").attach("article", "id", "body", mode)
    assert stage.run(stage.other, "SELECT has_schema_privilege('textsim', 'USAGE')") == [(False,)]

    def change(statement: str, expected: list[str]) -> None:
        stage.run(stage.other, statement, values={"fox": FOX})
        if mode == "inline":
            assert stage.similar_keys() == expected
        stage.work(stage.writer)
        assert stage.similar_keys() == expected

    change("INSERT INTO article SELECT n, %(fox)s FROM generate_series(1, 3) n", ["1", "2", "3"])
    change("UPDATE article SET body = 'something else' WHERE id = 2", ["1", "3"])
    change("UPDATE article SET id = 4 WHERE id = 3", ["1", "4"])
    change("INSERT INTO article VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = 'x'", ["4"])
    change("DELETE FROM article WHERE id = 4", [])
    change("INSERT INTO article VALUES (5, %(fox)s)", ["5"])
    change("TRUNCATE article", [])
    with stage.connect(stage.owner) as db:
        assert db.corpus("news").check() == []


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_trigger_functions_run_no_code_of_the_table_owner(stage: Stage, mode: str) -> None:
    """The owner of an attached table may use its trigger function on any of its own tables."""
    body = "plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (current_user); RETURN 'x'; END $$"
    execute = "EXECUTE FUNCTION textsim._changes_1()"
    attempts = [
        *("INSERT INTO keys VALUES (row(1))", "INSERT INTO texts VALUES (1, row(1))"),
        *("INSERT INTO batches VALUES (row(1))", "INSERT INTO plain VALUES (1, 'x')"),
    ]
    stage.run(
        stage.writer,
        "CREATE TABLE ran (by text)",
        "GRANT INSERT ON ran TO PUBLIC",
        f"CREATE FUNCTION run() RETURNS text LANGUAGE {body}",
        "CREATE TYPE boxed AS (value integer)",
        f"CREATE FUNCTION unboxed(boxed) RETURNS text LANGUAGE {body}",
        "CREATE CAST (boxed AS text) WITH FUNCTION unboxed(boxed)",
        "CREATE DOMAIN boxed_again AS boxed",
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        f"SELECT textsim.attach('news', 'article', 'id', 'body', '{mode}')",
        "CREATE TABLE keys (id boxed, body text DEFAULT 'x')",
        f"CREATE TRIGGER t AFTER INSERT ON keys FOR EACH ROW {execute}",
        "CREATE TABLE texts (id integer, body boxed_again)",
        f"CREATE TRIGGER t BEFORE INSERT ON texts FOR EACH ROW {execute}",
        "CREATE TABLE batches (id boxed, body text DEFAULT 'x')",
        "CREATE TRIGGER t AFTER INSERT ON batches REFERENCING NEW TABLE AS changed "
        f"FOR EACH STATEMENT {execute}",
        "CREATE TABLE plain (id integer, body text)",
        f"CREATE TRIGGER t AFTER INSERT ON plain FOR EACH STATEMENT {execute}",
    )
    view = "CREATE TEMPORARY VIEW changed AS SELECT public.run() AS id, 'x'::text AS body"
    for statement in attempts:
        with suppress(pg.InsufficientPrivilege):
            stage.run(stage.writer, view, statement)
    assert stage.run(stage.writer, "SELECT * FROM ran") == []
    insert = "INSERT INTO article VALUES (1, 'x'), (2, 'y')"
    stage.run(stage.writer, view, insert, "DELETE FROM article")
    assert stage.run(stage.writer, "SELECT * FROM ran") == []
    query = "SELECT tgname FROM pg_trigger WHERE tgrelid = 'article'::regclass"
    triggers = stage.run(stage.writer, query)
    stage.run(
        stage.writer,
        f'GRANT SELECT ON article TO "{stage.owner}"',
        "INSERT INTO article VALUES (3, 'z')",
        *(f"DROP TRIGGER {name} ON article" for (name,) in triggers),
        "ALTER TABLE article ALTER body TYPE boxed USING row(1)",
    )
    with stage.connect(stage.owner) as db:
        worker = db.worker()
        worker.run(until_idle=True)
        assert "is of type" in str(worker.unusable)
    assert stage.run(stage.writer, "SELECT * FROM ran") == []


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("name", sample(HOSTILE, 3, "more"))
def test_tables_of_hostile_names_are_indexed(server: Server, name: str, mode: ModeName) -> None:
    with new_stage(server, writer=name, other=f"other {name}") as stage:
        other = stage.other
        name = truncate_name(name)
        key, text = (truncate_name(f"{letter}{name}") for letter in "kt")
        words = {"schema": name, "table": name, "key": key, "text": text}
        names = {word: sql.Identifier(value) for word, value in words.items()}
        names |= {"other": sql.Identifier(other)}

        def run(role: str, *statements: LiteralString) -> None:
            with psycopg.connect(as_role(stage.url, role), autocommit=True) as connection:
                for statement in statements:
                    connection.execute(sql.SQL(statement).format(**names, fox=FOX))

        with psycopg.connect(stage.url, autocommit=True) as connection:
            writer = sql.Identifier(stage.writer)
            create_schema = sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}")
            connection.execute(create_schema.format(names["schema"], writer))
        run(
            stage.writer,
            "CREATE TABLE {schema}.{table} ({key} text PRIMARY KEY, {text} text)",
            "GRANT USAGE ON SCHEMA {schema} TO {other}",
            "GRANT INSERT, SELECT, UPDATE, DELETE ON {schema}.{table} TO {other}",
        )
        table = sql.Identifier(words["schema"], words["table"]).as_string(None)
        with stage.connect(stage.writer) as db:
            db.corpus("news").attach(table, words["key"], words["text"], mode)
        run(
            other,
            "INSERT INTO {schema}.{table} VALUES ('1', {fox}), ('2', {fox}), ('3', {fox})",
            "UPDATE {schema}.{table} SET {text} = 'x' WHERE {key} = '2'",
            "UPDATE {schema}.{table} SET {key} = {key} || '%s' WHERE {key} = '3'",
            "DELETE FROM {schema}.{table} WHERE {key} = '2'",
        )
        stage.work(stage.writer)
        assert stage.similar_keys() == ["1", "3%s"]
        with stage.connect(stage.writer) as db:
            corpus = db.corpus("news")
            assert list(corpus.drift()) == []
            assert corpus.reconcile().written == 0
            corpus.detach(table)
            assert corpus.check() == []
        for role in (stage.writer, other):
            revoke = "SELECT textsim.revoke_all(quote_ident(%s)::regrole)"
            stage.run(stage.owner, revoke, values=[role])
        with pytest.raises(SchemaError, match="no right to use the schema textsim"):
            stage.connect(stage.writer)
