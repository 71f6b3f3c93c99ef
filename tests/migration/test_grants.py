"""Granting rights on all corpora or one, and revoking them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from psycopg import errors as pg
from typer.testing import CliRunner

import textsim_db as ts
from tests.support.roles import FOX, RIGHTS, Stage, as_role, rows_and_rights
from textsim_db.cli import app
from textsim_db.corpus.database import URL_VARIABLE
from textsim_db.errors import SchemaError


def test_only_the_owner_of_the_schema_grants_and_revokes_rights(stage: Stage) -> None:
    stage.run(stage.writer, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    stage.run(stage.writer, "SELECT textsim.attach('news', 'article', 'id', 'body')")
    before = rows_and_rights(stage)
    for function in ("grant_reader", "grant_writer", "revoke_all"):
        call = f"SELECT textsim.{function}(quote_ident(%s)::regrole)"
        for role in (stage.other, stage.reader, stage.writer):
            for target in (stage.other, stage.reader, stage.writer, stage.owner):
                # If a role may grant nothing, the function fails or warns, as GRANT does.
                with suppress(pg.InsufficientPrivilege):
                    stage.run(role, call, values=[target])
        assert rows_and_rights(stage) == before, function


def test_rights_on_one_corpus_give_no_access_to_another(stage: Stage) -> None:
    """The role can neither read nor change another corpus, by SQL or by Python."""
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
    corpus_id = stage.run(stage.owner, "SELECT id FROM textsim.corpus WHERE name = 'secret'")[0][0]
    stage.run(stage.writer, "CREATE TABLE mine (id integer PRIMARY KEY, body text)")
    statements = [
        *("SELECT * FROM textsim.document", "SELECT * FROM textsim.band"),
        *("SELECT textsim.add('secret', 'new', 'text')", "SELECT textsim.remove('secret', 's')"),
        "SELECT textsim.judge('secret', 's', 't', 'same')",
        "SELECT textsim.unjudge('secret', 's', 't')",
        "SELECT textsim.attach('secret', 'mine', 'id', 'body')",
        f"SELECT nextval('textsim.document_{corpus_id}_id_seq')",
        f"SELECT setval('textsim.document_{corpus_id}_id_seq', 1)",
        f"SELECT textsim._write_{corpus_id}(NULL, NULL, 'new', 'text', NULL, NULL, 0, NULL)",
        f"SELECT textsim._remove_document(c, NULL, 's') FROM textsim.corpus c WHERE c.id = {corpus_id}",
        f"SELECT textsim._make_functions({corpus_id})",
        "SELECT textsim._prepare_source('secret', 'mine', '{id}', 'body', 'inline', NULL)",
    ]
    for role in (stage.writer, stage.other):
        assert stage.allowed(role, statements) == []
        with stage.connect(role) as db:
            assert [match.key for match in db.corpus("news").query(FOX)] == stage.similar_keys()
            hidden = db.corpus("secret")
            for call in (
                lambda hidden=hidden: hidden.query(secret),
                lambda hidden=hidden: hidden.explain("s", "t"),
                lambda hidden=hidden: list(hidden.pairs()),
                lambda hidden=hidden: hidden.statistics(),
                lambda hidden=hidden: hidden.check(),
                lambda hidden=hidden: hidden.add("new", "text"),
            ):
                with pytest.raises(ts.DatabaseError, match="permission denied"):
                    call()
    assert stage.allowed(stage.other, ["SELECT textsim.add('news', 'x', 'text')"]) == []
    # A writer takes ids of its corpus and cannot reset the sequence; a reader takes no ids.
    sequence = "'textsim.document_1_id_seq'"
    ids = [f"SELECT nextval({sequence})", f"SELECT setval({sequence}, 1)"]
    assert stage.allowed(stage.writer, ids) == ids[:1]
    assert stage.allowed(stage.other, ids) == []
    listed = "SELECT a, b, similarity FROM textsim.pairs('news', 0.5)"
    assert stage.run(stage.other, listed) == stage.run(stage.owner, listed) != []
    grouped = "SELECT key, cluster FROM textsim.clusters('news', 0.5)"
    assert stage.run(stage.other, grouped) == stage.run(stage.owner, grouped) != []
    stage.run(
        stage.writer,
        "SELECT textsim.add('news', 'by hand', 'some words of a text')",
        "SELECT textsim.attach('news', 'mine', 'id', 'body')",
        "INSERT INTO mine VALUES (1, 'some words of a row')",
    )
    stage.work(stage.writer)
    with stage.connect(stage.owner) as db:
        corpus = db.corpus("secret")
        # The worker has skipped the corpus that it may not write.
        assert (corpus.status().as_text, corpus.pending()) == (1, [])
        db.worker().run(until_idle=True)
        assert (corpus.status().as_text, corpus.check()) == (0, [])
        db.corpus("news").rebuild(seed=5)
    with stage.connect(stage.writer) as db:
        for key, word in (("by hand", "text"), ("1", "row")):
            matches = db.corpus("news").query(f"some words of a {word}")
            assert [match.key for match in matches] == [key]
        assert db.corpus("news").add("again", "a text after the rebuild").added == 1


def test_no_relation_tells_of_another_corpus(stage: Stage) -> None:
    """The test reads every relation of the catalog, also those that are added later."""
    texts = ("secretword", "secretkey", "secretscope", "secretnote", "secretrow")
    word, key, scope, note, row = texts
    with stage.connect(stage.owner) as db:
        hidden = db.create_corpus("hidden", scoped=True, passages=8, keep_for="1 day", recall=1)
        hidden.add_many(
            [(key, f"a text with the {word} of {word}s", scope), ("k", "a text", scope)]
        )
        hidden.track()
        hidden.judge(key, "other", "same", note)
        hidden.forget(["k"], later=True)
    stage.run(
        stage.owner,
        "CREATE TABLE hidden (id text PRIMARY KEY, body text, tenant text, at timestamptz)",
        "SELECT textsim.attach('hidden', 'hidden', 'id', 'body', 'queue', scope_column => 'tenant', "
        "time_column => 'at')",
        f"INSERT INTO hidden VALUES ('{row}', 'a {word}', repeat('{scope}', 99), now())",
        "SELECT textsim.add('hidden', 'waits', 'a secretword', 'secretscope')",
        "ANALYZE",
    )
    with stage.connect(stage.owner) as db:
        db.worker().run(until_idle=True)
    stage.run(stage.owner, f"INSERT INTO hidden VALUES ('{row}2', 'a {word}', '{scope}', now())")
    stage.run(stage.owner, f"SELECT textsim.revoke_all('\"{stage.writer}\"')")
    relations = (
        "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'v', 'm') "
        "AND (c.relnamespace = 'textsim'::regnamespace OR c.relname = 'pg_stats') "
        "AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1"
    )
    shown: dict[str, str] = {}
    grants = ((stage.other, "grant_reader"), (stage.writer, "grant_writer"), (stage.owner, ""))
    for role, grant in grants:
        if grant:
            stage.run(stage.owner, f"SELECT textsim.{grant}('\"{role}\"', 'news')")
        readable = [name for (name,) in stage.run(role, relations)]
        assert "textsim.pending" in readable
        shown[role] = str([stage.run(role, f"SELECT t::text FROM {name} t") for name in readable])
    for text in texts:
        assert text in shown[stage.owner], text
        assert text not in shown[stage.other] + shown[stage.writer], text


def test_commands_over_all_corpora_skip_those_the_role_may_not_read(stage: Stage) -> None:
    with stage.connect(stage.owner) as db:
        db.create_corpus("a secret").add("s", "a text that is nobody's business")
        db.create_corpus("secret too")
    stage.run(stage.owner, f"SELECT textsim.grant_reader('\"{stage.other}\"', 'news')")
    runner = CliRunner(env={URL_VARIABLE: as_role(stage.url, stage.other)})
    for command in (["corpus", "list"], ["status"], ["check"]):
        result = runner.invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert "news" in result.output
        for name in ("a secret", "secret too"):
            assert f'skipped: this role may not read the corpus "{name}"' in result.stderr
            assert name not in result.stdout
    for command in (["status", "a secret"], ["check", "a secret"]):
        result = runner.invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 2
        assert "permission denied" in result.stderr
    # All roles see the pending changes; only writers change them.
    assert runner.invoke(app, ["pending"]).exit_code == 0
    result = runner.invoke(app, ["pending", "--retry"])
    assert (result.exit_code, "permission denied" in result.stderr) == (2, True)


def test_only_the_owner_of_the_schema_creates_temporary_corpora(stage: Stage) -> None:
    for role, status in ((stage.writer, 2), (stage.owner, 0)):
        runner = CliRunner(env={URL_VARIABLE: as_role(stage.url, role)})
        result = runner.invoke(app, ["rebuild", "news", "--seed", "7"], catch_exceptions=False)
        assert result.exit_code == status, result.output
        for message in ("permission denied", "only the owner of the schema creates, tracks"):
            assert (message in result.stderr) == (role == stage.writer)


def test_revoke_all_revokes_every_right(stage: Stage) -> None:
    stage.run(stage.writer, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    stage.run(stage.writer, "SELECT textsim.attach('news', 'article', 'id', 'body')")
    for role in (stage.reader, stage.writer):
        stage.run(stage.owner, f"SELECT textsim.revoke_all('\"{role}\"')")
        rights = " ".join(str(row[2]) for row in stage.run(stage.owner, RIGHTS))
        assert stage.owner in rights
        assert f"{role}=" not in rights
        with pytest.raises(SchemaError, match="no right to use the schema textsim"):
            stage.connect(role)
        with pytest.raises(pg.InsufficientPrivilege):
            stage.run(role, "SELECT * FROM textsim.corpus")
    with stage.connect(stage.owner) as db:
        db.create_corpus("later")
    rights = " ".join(str(row[2]) for row in stage.run(stage.owner, RIGHTS))
    assert f"{stage.writer}=" not in rights
    # The table of the role stays attached.
    stage.run(stage.writer, "INSERT INTO article VALUES (1, %s)", values=[FOX])
    stage.run(stage.writer, f'GRANT SELECT ON article TO "{stage.owner}"')
    stage.work(stage.owner)
    assert stage.similar_keys() == ["1"]


def test_whoever_may_search_reads_tracked_clusters_and_writers_update_them(stage: Stage) -> None:
    texts = [(f"k{number}", FOX) for number in range(3)]
    with stage.connect(stage.owner) as db:
        db.corpus("news").add_many(texts)
        secret = db.create_corpus("secret")
        secret.add_many(texts)
        secret.track()
        stage.run(stage.owner, f"SELECT textsim.grant_reader('{stage.other}', 'secret')")
        db.corpus("news").track()
        corpus_id = stage.run(stage.owner, "SELECT id FROM textsim.corpus WHERE name = 'secret'")[
            0
        ][0]
    for role in (stage.reader, stage.other):
        assert stage.allowed(role, ["SELECT textsim.untrack('secret')"]) == []
        with stage.connect(role) as db, pytest.raises(ts.DatabaseError, match="permission denied"):
            db.corpus("secret").update_clusters()
    stage.run(stage.writer, "CALL textsim.update_clusters()")
    assert stage.allowed(stage.writer, ["SELECT textsim.untrack('news')"]) == []
    for name, readers in (("news", [stage.reader]), ("secret", [stage.reader, stage.other])):
        query = f"SELECT key, cluster FROM textsim.members('{name}')"
        expected = stage.run(stage.owner, query)
        assert len(expected) >= 3
        for role in readers:
            assert sorted(stage.run(role, query)) == sorted(expected)
            assert len(stage.run(role, f"SELECT * FROM textsim._match_pairs('{name}')")) >= 3
    hidden = [
        "SELECT * FROM textsim.members('news')",
        "SELECT * FROM textsim.members('news', 'k1')",
        f"SELECT nextval('textsim.node_{corpus_id}_id_seq')",
        f"DELETE FROM textsim.member_{corpus_id}",
    ]
    assert stage.allowed(stage.other, hidden) == []
    # A writer of one corpus needs no rights on the tables of others.
    stage.run(stage.owner, f"SELECT textsim.grant_writer('{stage.other}', 'secret')")
    stage.run(
        stage.other, "SELECT textsim.remove('secret', 'k0')", "CALL textsim.update_clusters()"
    )
    query = "SELECT count(*) FROM textsim.members('secret')"
    assert stage.run(stage.other, query) == [(2,)]
