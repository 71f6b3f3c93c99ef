"""The objects that a superuser creates belong to the owner of the schema: the application goes on."""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from tests.support.roles import FOX, TEXTS, Stage
from tests.support.steps import later_step
from textsim_db.db import schema
from textsim_db.db.engine import open_engine

# Functions that run with the rights of their owner need the rights of all tables.
OTHER_OWNER = b"""
SELECT o.owner::regrole::text, count(*)
FROM pg_catalog.pg_namespace n
CROSS JOIN LATERAL (
    SELECT r.relowner FROM pg_catalog.pg_class r
    WHERE r.relnamespace = n.oid AND r.relkind IN ('r', 'v', 'S')
    UNION ALL
    SELECT p.proowner FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid
) o (owner)
WHERE n.nspname = 'textsim' AND o.owner <> n.nspowner
GROUP BY 1
"""


def test_objects_belong_to_the_owner_whoever_makes_them(stage: Stage) -> None:
    stage.run(
        stage.writer,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        "SELECT textsim.attach('news', 'article', 'id', 'body')",
        "CREATE TABLE memo (id integer PRIMARY KEY, body text, tenant text, until date)",
    )
    with ts.connect(stage.url) as db, psycopg.connect(stage.url, autocommit=True) as superuser:
        for call in (
            "create_corpus('u', is_unique => true, scoped => true, keep_for => '1 day', passages => 9)",
            "attach('u', 'memo', 'id', 'body', scope_column => 'tenant', expires_column => 'until')",
            "track('u', mode => 'inline')",
            "track('news')",
        ):
            superuser.execute(f"SELECT textsim.{call}".encode())
        db.corpus("news").rebuild(threshold=0.7, passages=5)
        made = db.create_corpus("made", recall=1, boilerplate=0.9)
        made.add_many(TEXTS)
        made.rebuild()
        ts.install(stage.url)
        assert superuser.execute(OTHER_OWNER).fetchall() == []
    stage.run(
        stage.writer,
        f"INSERT INTO article VALUES (1, '{FOX}')",
        f"INSERT INTO memo VALUES (1, '{FOX}', 'a', NULL)",
    )
    stage.work(stage.writer)
    assert stage.similar_keys() == ["1"]
    with stage.connect(stage.owner) as db:
        assert [db.corpus(name).check() for name in ("news", "u", "made")] == [[], [], []]


def test_an_upgrade_by_a_superuser_keeps_the_owner(stage: Stage) -> None:
    engine = open_engine(stage.url)
    with later_step():
        schema.upgrade(engine)
    engine.dispose()
    with psycopg.connect(stage.url) as superuser:
        assert superuser.execute(OTHER_OWNER).fetchall() == []


@pytest.mark.parametrize("object_", ["TABLE textsim.document_1", "FUNCTION textsim._changes_1()"])
def test_an_object_of_another_owner_is_seen(stage: Stage, object_: str) -> None:
    stage.run(
        stage.writer,
        "CREATE TABLE article (id integer PRIMARY KEY, body text)",
        "SELECT textsim.attach('news', 'article', 'id', 'body')",
    )
    with psycopg.connect(stage.url, autocommit=True) as superuser:
        superuser.execute(f"ALTER {object_} OWNER TO CURRENT_USER".encode())
        with stage.connect(stage.reader) as db:
            (problem,) = db.corpus("news").status().problems
            assert f"{object_.split()[1]} belongs to " in problem
            values = {m.name: m.value for m in db.metrics() if m.labels.get("corpus") == "news"}
            assert values["textsim_table_problems"] == 1
        with ts.connect(stage.url) as db:
            (found,) = db.corpus("news").check()
            assert found.kind == "owner"
            superuser.execute(found.remedy.encode())
            assert db.corpus("news").check() == []
