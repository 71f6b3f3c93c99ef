"""What readers, writers and those without any rights can do, and what they cannot.

The schema belongs to a role that is no superuser, as it does on managed services.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql
from typer.testing import CliRunner

import textsim_db as ts
from tests.support.roles import (
    FOX,
    RELATIONS,
    RIGHTS,
    TEXTS,
    Stage,
    as_role,
    contents,
    cut,
    new_stage,
)
from tests.support.servers import Server
from textsim_db.cli import app
from textsim_db.database import URL_VARIABLE

pytestmark = pytest.mark.one_server

HOSTILE = [
    'x"; DROP TABLE textsim.corpus; --',
    "it's 100%s %I %1$I %(x)s {document}",
    "$$ $body$ \\ \n\t",
    "naïve 漢字 🙂 ﬁ",
    "select",
    "é" * 32,  # cut to the 63 bytes that a name can have
]


def test_a_reader_searches(stage: Stage) -> None:
    text = TEXTS[0][1]
    with stage.connect(stage.reader) as db, stage.connect(stage.owner) as owners:
        assert db.corpora() == ["news"]
        corpus, expected = db.corpus("news"), owners.corpus("news")
        assert [match.key for match in corpus.query(text, 0.5)] == ["a", "b"]
        assert corpus.query(text, 0.5) == expected.query(text, 0.5)
        assert corpus.candidates(text) == expected.candidates(text)
        assert corpus.neighbours("a", 0.5) == expected.neighbours("a", 0.5) != []
        assert list(corpus.pairs(0.5)) == list(expected.pairs(0.5)) != []
        assert list(corpus.clusters(0.5)) == list(expected.clusters(0.5)) != []
        assert corpus.check() == []
        assert len(corpus) == 3
        assert "a" in corpus
        assert corpus.status() == expected.status()
        assert corpus.failures() == []
    for statement in (
        "SELECT * FROM textsim.matches('news', 'one two three four five six', 0.5)",
        "SELECT * FROM textsim.candidates('news', 'one two three four five six')",
        "SELECT * FROM textsim.neighbours('news', 'a', 0.5)",
        "SELECT * FROM textsim.candidate_pairs('news')",
        "SELECT * FROM textsim.pairs('news', 0.5)",
        "SELECT textsim.jaccard('news', 'one two three four', 'one two three five')",
        "SELECT textsim.signature('news', 'one two three')",
    ):
        assert stage.run(stage.reader, statement) == stage.run(stage.owner, statement) != []
    assert stage.run(stage.reader, "SELECT * FROM textsim.sources") == []
    assert stage.run(stage.reader, "SELECT indexed FROM textsim.status('news')") == [(3,)]


def test_a_reader_changes_nothing(stage: Stage) -> None:
    with stage.connect(stage.owner) as db:
        db.create_corpus("later").add_many(TEXTS)
    stage.run(stage.reader, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    before = contents(stage)
    statements = []
    for name, kind, column in stage.run(stage.owner, RELATIONS):
        if kind == "S":
            statements += [f"SELECT nextval('{name}')", f"SELECT setval('{name}', 99)"]
        elif kind != "v":
            statements += [
                f"INSERT INTO {name} ({column}) VALUES (DEFAULT)",
                f"UPDATE {name} SET {column} = DEFAULT",
                f"DELETE FROM {name}",
                f"TRUNCATE {name}",
                f"SELECT * FROM {name} FOR UPDATE",
                f"BEGIN; LOCK TABLE {name} IN ROW EXCLUSIVE MODE",
                f"CREATE TRIGGER t BEFORE INSERT ON {name} FOR EACH ROW "
                "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            ]
    assert any("textsim.band_2" in statement for statement in statements)
    statements += [
        "SELECT textsim.add('news', 'd', 'some text')",
        "SELECT textsim.remove('news', 'a')",
        "SELECT textsim.attach('news', 'article', 'id', 'body')",
        "SELECT textsim._prepare_source('news', 'article', 'id', 'body', 'queue')",
        "SELECT textsim._activate_source(1, true)",
        "SELECT textsim._release_source(1)",
        "SELECT textsim._enqueue(1, NULL, NULL)",
        "SELECT textsim._wake()",
        "SELECT textsim._create_storage(9)",
        "SELECT textsim._drop_storage(1)",
        "CREATE TABLE textsim.made ()",
        "CREATE FUNCTION textsim.made() RETURNS integer LANGUAGE sql RETURN 1",
        "DROP TABLE textsim.corpus",
        "DROP SCHEMA textsim CASCADE",
    ]
    assert stage.allowed(stage.reader, statements) == []
    with stage.connect(stage.reader) as db:
        corpus = db.corpus("news")
        refused: list[Callable[[], object]] = [
            lambda: db.create_corpus("mine"),
            lambda: db.drop_corpus("news"),
            lambda: corpus.add("d", "some text"),
            lambda: corpus.remove(["a"]),
            lambda: corpus.attach("article", "id", "body"),
            lambda: corpus.retry_failures(),
            lambda: db.worker().run(until_idle=True),
        ]
        for call in refused:
            with pytest.raises(ts.TextsimError, match="permission denied"):
                call()
    assert contents(stage) == before


@pytest.mark.parametrize("function", ["grant_reader", "grant_writer", "revoke_all"])
def test_rights_are_given_by_the_owner_only(stage: Stage, function: str) -> None:
    stage.run(stage.writer, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    stage.run(stage.writer, "SELECT textsim.attach('news', 'article', 'id', 'body')")
    before = contents(stage)
    for role in (stage.other, stage.reader, stage.writer):
        for target in (stage.other, stage.reader, stage.writer, stage.owner):
            # Where nothing could be granted the server fails or warns, as GRANT does.
            with suppress(pg.InsufficientPrivilege):
                stage.run(
                    role, f"SELECT textsim.{function}(quote_ident(%s)::regrole)", values=[target]
                )
    assert contents(stage) == before


def test_a_writer_writes(stage: Stage) -> None:
    with stage.connect(stage.writer) as db:
        corpus = db.corpus("news")
        corpus.add("d", FOX)
        assert corpus.add_many([("e", FOX + " again"), ("d", FOX + " today")]).replaced == 1
        assert corpus.remove(["a"]) == 1
        assert db.worker().run(until_idle=True).written == 0
    assert stage.run(stage.writer, "SELECT textsim.add('news', 'f', %s)", values=[FOX]) == [(True,)]
    assert stage.run(stage.writer, "SELECT textsim.remove('news', 'b')") == [(True,)]
    stage.work(stage.writer)
    assert stage.found() == ["d", "e", "f"]
    with stage.connect(stage.owner) as db:
        db.create_corpus("later")
        assert db.corpus("news").check() == []
    with stage.connect(stage.writer) as db:
        assert db.corpus("later").add("a", FOX).added == 1


def test_a_writer_leaves_corpora_and_tables_of_others_alone(stage: Stage) -> None:
    stage.run(
        stage.other,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        f'GRANT ALL ON article TO "{stage.writer}"',
    )
    stage.run(stage.writer, "CREATE TABLE own (id integer PRIMARY KEY, body text)")
    before = contents(stage)
    with stage.connect(stage.writer) as db:
        with pytest.raises(ts.DatabaseError, match="permission denied"):
            db.create_corpus("mine")
        with pytest.raises(ts.DatabaseError, match="permission denied"):
            db.drop_corpus("news")
        with pytest.raises(ts.ConfigurationError, match="only the owner of table"):
            db.corpus("news").attach("article", "id", "body")
    statements = [
        "SELECT textsim._create_storage(9)",
        "SELECT textsim._drop_storage(1)",
        "TRUNCATE textsim.document",
        "TRUNCATE textsim.document_1",
        "UPDATE textsim.word SET word = 'x'",
        "DELETE FROM textsim.word",
        "UPDATE textsim.source SET active = true",
        "UPDATE textsim.alembic_version SET version_num = '0'",
    ]
    assert stage.allowed(stage.writer, statements) == []
    assert {**contents(stage), "textsim.corpus_id_seq": []} == {
        **before,
        "textsim.corpus_id_seq": [],  # numbers that were taken for nothing are gone
    }


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("INSERT INTO textsim.pending (corpus_id) VALUES (1)", "pending_check"),
        ("INSERT INTO textsim.pending (corpus_id, keys) VALUES (1, '{a,NULL}')", "keys_check"),
        ("INSERT INTO textsim.pending (corpus_id, keys) VALUES (1, '{{a},{b}}')", "keys_check"),
        ("INSERT INTO textsim.pending (corpus_id, keys) VALUES (1, '{{a,NULL}}')", "keys_check"),
        ("INSERT INTO textsim.pending (corpus_id, keys) VALUES (-1, '{a}')", "pending_check"),
        (
            "INSERT INTO textsim.pending (corpus_id, keys, tries) VALUES (1, '{a}', 2147483647)",
            "pending_check",
        ),
        ("UPDATE textsim.pending SET keys = NULL", "pending_check"),
        ("UPDATE textsim.pending SET tries = -5", "pending_check"),
        (
            "INSERT INTO textsim.word (hash, word) VALUES (hashtextextended('dog', 0), 'cat')",
            "word_hash_check",
        ),
    ],
)
def test_a_writer_of_one_corpus_does_not_stop_those_of_others(
    stage: Stage, statement: str, constraint: str
) -> None:
    stage.run(
        stage.owner,
        f"SELECT textsim.revoke_all('\"{stage.writer}\"')",
        f"SELECT textsim.grant_writer('\"{stage.writer}\"', 'news')",
    )
    stage.run(stage.writer, "SELECT textsim.add('news', 'd', %s)", values=[FOX])
    with pytest.raises(pg.CheckViolation, match=constraint):
        stage.run(stage.writer, statement)
    stage.work(stage.owner)
    assert stage.found() == ["d"]


def test_only_the_owner_of_the_table_uses_its_trigger_function(stage: Stage) -> None:
    stage.run(stage.other, "CREATE TABLE other (id integer PRIMARY KEY, body text)")
    stage.run(
        stage.writer,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        f'GRANT ALL ON article TO "{stage.other}", "{stage.reader}"',
        "SELECT textsim.attach('news', 'article', 'id', 'body')",
        "CREATE TABLE more (id integer PRIMARY KEY, body text)",
        # Not through attach(), which would make the triggers.
        "SELECT textsim._prepare_source('news', 'more', 'id', 'body', 'queue')",
    )
    with pytest.raises(
        pg.InsufficientPrivilege, match=r"only the owner of table .*other may attach"
    ):
        stage.run(
            stage.writer, "SELECT textsim._prepare_source('news', 'other', 'id', 'body', 'queue')"
        )
    create = (
        "CREATE TRIGGER t AFTER INSERT ON {} FOR EACH ROW EXECUTE FUNCTION textsim._changes_{}()"
    )
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
    with pytest.raises(pg.InsufficientPrivilege, match="only the owner of table"):
        stage.run(stage.other, "SELECT textsim.detach('news', 'article')")
    assert stage.run(stage.owner, "SELECT relation::text FROM textsim.sources") == [("article",)]
    stage.run(stage.writer, "SELECT textsim.detach('news', 'article')")


def test_rights_of_one_corpus(stage: Stage) -> None:
    """Of other corpora such a role cannot read a text, by no way in, and change nothing."""
    secret = "a text that is nobody's business but that of those who may"
    with stage.connect(stage.owner) as db:
        db.create_corpus("secret").add_many([("s", secret), ("t", f"{secret} read it")])
    stage.run(
        stage.owner,
        f"SELECT textsim.revoke_all('\"{stage.writer}\"')",
        f"SELECT textsim.grant_writer('\"{stage.writer}\"', 'news')",
        f"SELECT textsim.grant_reader('\"{stage.other}\"', 'news')",
        "SELECT textsim.add('secret', 'w', 'words that wait for their ids')",
    )
    number = stage.run(stage.owner, "SELECT id FROM textsim.corpus WHERE name = 'secret'")[0][0]
    stage.run(stage.writer, "CREATE TABLE mine (id integer PRIMARY KEY, body text)")
    statements = [
        "SELECT * FROM textsim.document",
        "SELECT * FROM textsim.band",
        f"SELECT * FROM textsim.document_{number}",
        f"SELECT * FROM textsim.band_{number}",
        f"SELECT * FROM textsim.matches('secret', $${secret}$$)",
        f"SELECT * FROM textsim.candidates('secret', $${secret}$$)",
        "SELECT * FROM textsim.neighbours('secret', 's')",
        "SELECT * FROM textsim.pairs('secret')",
        "SELECT * FROM textsim.candidate_pairs('secret')",
        "SELECT textsim.add('secret', 'new', 'text')",
        "SELECT textsim.remove('secret', 's')",
        "SELECT textsim.attach('secret', 'mine', 'id', 'body')",
        "SELECT textsim._prepare_source('secret', 'mine', 'id', 'body', 'inline')",
    ]
    for role in (stage.writer, stage.other):
        assert stage.allowed(role, statements) == []
        with stage.connect(role) as db:
            assert [match.key for match in db.corpus("news").query(FOX)] == stage.found()
            hidden = db.corpus("secret")
            for call in (
                lambda hidden=hidden: hidden.query(secret),
                lambda hidden=hidden: hidden.neighbours("s"),
                lambda hidden=hidden: hidden.explain("s", "t"),
                lambda hidden=hidden: list(hidden.pairs()),
                lambda hidden=hidden: hidden.statistics(),
                lambda hidden=hidden: hidden.check(),
                lambda hidden=hidden: hidden.add("new", "text"),
            ):
                with pytest.raises(ts.DatabaseError, match="permission denied"):
                    call()
    assert stage.allowed(stage.other, ["SELECT textsim.add('news', 'x', 'text')"]) == []
    listed = "SELECT a, b, bands FROM textsim.candidate_pairs('news')"
    assert stage.run(stage.other, listed) == stage.run(stage.owner, listed) != []
    assert stage.run(stage.other, listed.replace("'news'", "'news', 'a'")) != []
    assert stage.allowed(stage.other, ["SELECT textsim.create_view('secret', 'hidden')"]) == []
    stage.run(stage.other, "SELECT textsim.create_view('news', 'seen')")
    assert len(stage.run(stage.other, "SELECT * FROM seen")) == 2 * len(
        stage.run(stage.other, listed)
    )
    # The owner of the schema may not replace a view of another role.
    with stage.connect(stage.owner) as db, pytest.raises(ts.ConfigurationError, match="DROP VIEW"):
        db.corpus("news").rebuild(seed=4)
    stage.run(stage.other, "DROP VIEW seen")
    stage.run(
        stage.writer,
        "SELECT textsim.add('news', 'by hand', 'some words of a text')",
        "SELECT textsim.attach('news', 'mine', 'id', 'body')",
        "INSERT INTO mine VALUES (1, 'some words of a row')",
    )
    stage.work(stage.writer)
    with stage.connect(stage.owner) as db:
        corpus = db.corpus("secret")
        # That worker has left alone what it may not write.
        assert (corpus.status().pending, corpus.failures()) == (1, [])
        db.worker().run(until_idle=True)
        assert (corpus.status().pending, corpus.check()) == (0, [])
        db.corpus("news").rebuild(seed=5)
    with stage.connect(stage.writer) as db:
        for key, what in (("by hand", "text"), ("1", "row")):
            found = db.corpus("news").query(f"some words of a {what}")
            assert [match.key for match in found] == [key]
        assert db.corpus("news").add("again", "a text after the rebuild").added == 1


def test_commands_over_all_corpora_leave_out_what_may_not_be_read(stage: Stage) -> None:
    with stage.connect(stage.owner) as db:
        db.create_corpus("a secret").add("s", "a text that is nobody's business")
        db.create_corpus("secret too")
    stage.run(stage.owner, f"SELECT textsim.grant_reader('\"{stage.other}\"', 'news')")
    runner = CliRunner(env={URL_VARIABLE: as_role(stage.url, stage.other)})
    for command in (["corpus", "list"], ["status"], ["check"], ["db", "check"]):
        result = runner.invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert "news" in result.output
        for name in ("a secret", "secret too"):
            assert f'left out: this role may not read the corpus "{name}"' in result.stderr
            assert name not in result.stdout
    for command in (["status", "a secret"], ["check", "a secret"]):
        result = runner.invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 2
        assert "permission denied" in result.stderr
    # What is pending is common to all; only writers change it.
    assert runner.invoke(app, ["pending"]).exit_code == 0
    result = runner.invoke(app, ["pending", "--retry"])
    assert (result.exit_code, "permission denied" in result.stderr) == (2, True)


def test_who_makes_a_corpus_for_a_while_owns_the_schema(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"text": "some text"}\n')
    for role, status in ((stage.writer, 2), (stage.owner, 0)):
        runner = CliRunner(env={URL_VARIABLE: as_role(stage.url, role)})
        for command in (
            ["dedupe", str(file), "-o", str(tmp_path / "out.jsonl")],
            ["rebuild", "news", "--seed", "7"],
        ):
            result = runner.invoke(app, command, catch_exceptions=False)
            assert result.exit_code == status, result.output
            assert ("permission denied" in result.stderr) == (role == stage.writer)


def test_what_a_writer_of_one_corpus_can_do_to_others(stage: Stage) -> None:
    """As the README says: it is not nothing."""
    with stage.connect(stage.owner) as db:
        db.create_corpus("other", stop_words=("whatever",))
    stage.run(
        stage.owner,
        f"SELECT textsim.revoke_all('\"{stage.writer}\"')",
        f"SELECT textsim.grant_writer('\"{stage.writer}\"', 'news')",
        "CREATE TABLE private (id integer PRIMARY KEY, body text)",
        "SELECT textsim.attach('other', 'private', 'id', 'body')",
        "INSERT INTO private VALUES (77, 'a text')",
    )
    seen = "SELECT relation::text, key_column, text_column FROM textsim.sources"
    assert stage.run(stage.writer, seen) == [("private", "id", "body")]
    stop_words = "SELECT stop_words FROM textsim.corpus WHERE name = 'other'"
    assert stage.run(stage.writer, stop_words) == [(["whatever"],)]
    assert stage.run(stage.writer, "DELETE FROM textsim.pending RETURNING keys") != []
    for denied in (
        "INSERT INTO textsim.word OVERRIDING SYSTEM VALUE VALUES (1, 2000000000, 'other')",
        "SELECT nextval('textsim.word_id_seq')",
        "UPDATE textsim.word SET word = 'other'",
    ):
        with pytest.raises(pg.InsufficientPrivilege):
            stage.run(stage.writer, denied)
    with stage.connect(stage.owner) as db:
        db.worker().run(until_idle=True)
        corpus = db.corpus("other")
        assert len(corpus) == 0
        assert corpus.reconcile().added == 1


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_who_only_writes_the_table_needs_no_rights(stage: Stage, mode: str) -> None:
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
            assert stage.found() == expected
        stage.work(stage.writer)
        assert stage.found() == expected

    change("INSERT INTO article SELECT n, %(fox)s FROM generate_series(1, 3) n", ["1", "2", "3"])
    change("UPDATE article SET body = 'something else' WHERE id = 2", ["1", "3"])
    change("UPDATE article SET id = 4 WHERE id = 3", ["1", "4"])
    change("INSERT INTO article VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = 'x'", ["4"])
    change("DELETE FROM article WHERE id = 4", [])
    change("INSERT INTO article VALUES (5, %(fox)s)", ["5"])
    change("TRUNCATE article", [])
    with stage.connect(stage.owner) as db:
        assert db.corpus("news").check() == []


def test_revoke_all_takes_everything_back(stage: Stage) -> None:
    stage.run(stage.writer, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    stage.run(stage.writer, "SELECT textsim.attach('news', 'article', 'id', 'body')")
    for role in (stage.reader, stage.writer):
        stage.run(stage.owner, f"SELECT textsim.revoke_all('\"{role}\"')")
        rights = " ".join(str(row[2]) for row in stage.run(stage.owner, RIGHTS))
        assert stage.owner in rights
        assert f"{role}=" not in rights
        with pytest.raises(ts.SchemaError, match="no right to use the schema textsim"):
            stage.connect(role)
        with pytest.raises(pg.InsufficientPrivilege):
            stage.run(role, "SELECT * FROM textsim.corpus")
    with stage.connect(stage.owner) as db:
        db.create_corpus("later")
    rights = " ".join(str(row[2]) for row in stage.run(stage.owner, RIGHTS))
    assert f"{stage.writer}=" not in rights
    # Its table stays attached.
    stage.run(stage.writer, "INSERT INTO article VALUES (1, %s)", values=[FOX])
    stage.run(stage.writer, f'GRANT SELECT ON article TO "{stage.owner}"')
    stage.work(stage.owner)
    assert stage.found() == ["1"]


def test_objects_of_others_are_never_used(stage: Stage) -> None:
    """Functions, operators and tables that would be taken, if the search path were the caller's."""
    body = (
        "LANGUAGE plpgsql AS $$ BEGIN INSERT INTO hostile.intruded VALUES ('{}'); RETURN {}; END $$"
    )
    statements = [
        "CREATE TABLE hostile.intruded (by text)",
        "GRANT ALL ON hostile.intruded TO PUBLIC",
    ]
    for name, arguments, result, value in [
        ("format", "text, VARIADIC text[]", "text", "''"),
        ("format", "text, text", "text", "''"),
        ("format", "text, name", "text", "''"),
        ("format", "text, integer", "text", "''"),
        ("to_regprocedure", "text", "regprocedure", "NULL"),
        ("current_setting", "text, boolean", "text", "'on'"),
        ("pg_has_role", "oid, text", "boolean", "true"),
        ("octet_length", "text", "integer", "0"),
        ("cardinality", "integer[]", "integer", "0"),
        ("nextval", "regclass", "bigint", "1"),
        ("array_agg", "text", "text[]", "NULL"),
        ("left_equals", "text, text", "boolean", "true"),
        ("left_equals", "integer, integer", "boolean", "true"),
        ("left_equals", "oid, oid", "boolean", "true"),
        ("left_equals", "name, text", "boolean", "true"),
        ("joined", "text, integer", "text", "''"),
        ("joined", "text, text", "text", "''"),
    ]:
        statements.append(
            f"CREATE FUNCTION hostile.{name}({arguments}) RETURNS {result} {body.format(name, value)}"
        )
    for left, right in [("text", "text"), ("integer", "integer"), ("oid", "oid"), ("name", "text")]:
        statements += [
            f"CREATE OPERATOR hostile.{operator} "
            f"(FUNCTION = hostile.left_equals, LEFTARG = {left}, RIGHTARG = {right})"
            for operator in ("=", "<>")
        ]
    statements += [
        f"CREATE OPERATOR hostile.|| (FUNCTION = hostile.joined, LEFTARG = text, RIGHTARG = {right})"
        for right in ("text", "integer")
    ]
    stage.run(stage.owner, "CREATE SCHEMA hostile", "GRANT ALL ON SCHEMA hostile TO PUBLIC")
    stage.run(stage.other, *statements)
    temporary = [
        f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {original} LIMIT 0"
        for name, original in [
            ("corpus", "textsim.corpus"),
            ("source", "textsim.source"),
            ("pending", "textsim.pending"),
            ("pg_trigger", "pg_catalog.pg_trigger"),
            ("pg_class", "pg_catalog.pg_class"),
            ("pg_index", "pg_catalog.pg_index"),
        ]
    ]
    path = "SET search_path = pg_temp, hostile, public, pg_catalog"
    for mode in ("queue", "inline"):
        stage.run(
            stage.writer,
            *temporary,
            f"CREATE TABLE {mode} (id integer PRIMARY KEY, body text)",
            path,
            f"SELECT textsim.attach('news', '{mode}', 'id', 'body', '{mode}')",
            "SET textsim.notify = on",
            f"INSERT INTO {mode} VALUES (1, '{FOX}'), (2, 'x')",
            f"UPDATE {mode} SET body = 'y' WHERE id OPERATOR(pg_catalog.=) 2",
            f"DELETE FROM {mode} WHERE id OPERATOR(pg_catalog.=) 2",
            "SELECT textsim.add('news', 'd', 'some text')",
            "SELECT textsim.remove('news', 'd')",
            "SELECT * FROM textsim.matches('news', 'one two three four five six', 0.5)",
            "SELECT * FROM textsim.pairs('news', 0.5)",
            "SELECT * FROM textsim.status('news')",
        )
        stage.work(stage.writer)
        assert stage.found() == ["1"]
        stage.run(
            stage.writer,
            *temporary,
            path,
            f"SELECT textsim.detach('news', '{mode}')",
            f"DROP TABLE public.{mode}",
            "SELECT textsim.remove('news', '1')",
        )
    stage.run(
        stage.owner,
        path,
        f"SELECT textsim.grant_writer('\"{stage.other}\"')",
        f"SELECT textsim.revoke_all('\"{stage.other}\"')",
    )
    assert stage.run(stage.other, "SELECT * FROM hostile.intruded") == []
    stage.run(stage.writer, path, "SELECT format('%s', 'x'::text)")
    assert stage.run(stage.other, "SELECT * FROM hostile.intruded") == [("format",)]


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_trigger_functions_run_nothing_of_the_table_owner(stage: Stage, mode: str) -> None:
    """Who owns an attached table can make any trigger with its function, on any table."""
    body = "plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (current_user); RETURN 'x'; END $$"
    execute = "EXECUTE FUNCTION textsim._changes_1()"
    attempts = [
        "INSERT INTO keys VALUES (row(1))",
        "INSERT INTO texts VALUES (1, row(1))",
        "INSERT INTO batches VALUES (row(1))",
        "INSERT INTO plain VALUES (1, 'x')",
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
    stage.run(
        stage.writer, view, "INSERT INTO article VALUES (1, 'x'), (2, 'y')", "DELETE FROM article"
    )
    assert stage.run(stage.writer, "SELECT * FROM ran") == []
    triggers = stage.run(
        stage.writer, "SELECT tgname FROM pg_trigger WHERE tgrelid = 'article'::regclass"
    )
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


@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(server: Server, name: str, mode: str) -> None:
    with new_stage(server, writer=name, other=f"other {name}") as stage:
        other = stage.other
        name = cut(name)
        words = {"schema": name, "table": name, "key": cut(f"k{name}"), "text": cut(f"t{name}")}
        names = {word: sql.Identifier(value) for word, value in words.items()}
        names |= {"other": sql.Identifier(other)}

        def run(role: str, *statements: LiteralString) -> None:
            with psycopg.connect(as_role(stage.url, role), autocommit=True) as connection:
                for statement in statements:
                    connection.execute(sql.SQL(statement).format(**names, fox=FOX))

        with psycopg.connect(stage.url, autocommit=True) as connection:
            writer = sql.Identifier(stage.writer)
            made = sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}").format(names["schema"], writer)
            connection.execute(made)
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
        assert stage.found() == ["1", "3%s"]
        with stage.connect(stage.writer) as db:
            corpus = db.corpus("news")
            assert list(corpus.drift()) == []
            assert corpus.reconcile().written == 0
            corpus.detach(table)
            assert corpus.check() == []
        for role in (stage.writer, other):
            stage.run(
                stage.owner, "SELECT textsim.revoke_all(quote_ident(%s)::regrole)", values=[role]
            )
        with pytest.raises(ts.SchemaError, match="no right to use the schema textsim"):
            stage.connect(stage.writer)
