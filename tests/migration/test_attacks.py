"""Attacks by roles with few rights: each test tries everything that the catalog lists."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from itertools import product

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.roles import FOX, Stage, as_role, rows_and_rights
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
    *("textsim._refuse_write()", "textsim._log_documents()"),
    "textsim._change_passage_rows()",
)
# Calls with valid values: they are refused for missing rights only.
VALID = [
    *("create_corpus('mine', 'word:2')", "drop_corpus('bare')"),
    "attach('news', 'article', 'id', 'body', 'queue')",
    *("attach('news', 'article', 'id', 'body', 'inline')", "detach('news', 'queue')"),
    *("add('news', 'new', 'a text')", "remove('news', 'a')"),
    "_prepare_source('news', 'article', '{id}', 'body', 'inline', NULL)",
    *("_activate_source(1, true)", "_release_source(1)", "judge('news', 'a', 'b', 'same')"),
    *("unjudge('news', 'a', 'c')", "_create_relations(1)", "_drop_relations(1)", "track('news')"),
    *("_drop_tracking(1)", "_log_ids(1, '{1}')", "_make_functions(1)", "_grant_ids(1)"),
    *("_enqueue(1, 1, NULL)", "_replace_corpus(1, 2)"),
]


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
            assert "search_path=pg_catalog, pg_temp" in settings, name
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


CHANGING = """
SELECT regexp_replace(c.relname, '[0-9]+', 'N'), string_agg(DISTINCT p.right, ', ' ORDER BY p.right)
FROM pg_class c CROSS JOIN LATERAL (
    SELECT r AS right FROM unnest('{INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) r
    WHERE c.relkind <> 'S' AND (has_table_privilege(%(role)s, c.oid, r) OR r IN ('INSERT', 'UPDATE')
        AND has_any_column_privilege(%(role)s, c.oid, r))
    UNION ALL SELECT r FROM unnest('{USAGE,UPDATE}'::text[]) r
    WHERE c.relkind = 'S' AND has_sequence_privilege(%(role)s, c.oid, r)) p
WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
GROUP BY 1
UNION ALL SELECT 'textsim', 'CREATE' WHERE has_schema_privilege(%(role)s, 'textsim', 'CREATE')
ORDER BY 1
"""
"""Each object that a role may change, and how."""


def test_a_reader_changes_nothing_and_a_writer_only_documents(stage: Stage) -> None:
    """Each function runs with the rights of its caller, except those of the last test."""
    attach(stage)
    stage.run(stage.owner, "SELECT textsim.create_corpus('bare')", "SELECT textsim.track('news')")
    for role in (stage.reader, stage.other):
        assert stage.run(stage.owner, CHANGING, values={"role": role}) == []
    rights = dict(stage.run(stage.owner, CHANGING, values={"role": stage.writer}))
    assert {rights.pop(name) for name in ("word", "word_N", "forgotten")} == {"INSERT"}
    assert {rights.pop(name) for name in [*rights] if name.endswith("_seq")} == {"USAGE"}
    assert set(rights.values()) == {"DELETE, INSERT, UPDATE"}
    assert {name.removesuffix("_N") for name in rights} == {
        *("band", "cluster", "cluster_alias", "cluster_event", "crowded", "document", "judgement"),
        *(
            "expiry_look",
            "match",
            "member",
            "merged_row",
            "node",
            "passage",
            "pending",
            "removed",
            "worker",
        ),
    }
    stage.run(stage.reader, "CREATE TABLE article (id integer PRIMARY KEY, body text)")
    assert stage.allowed(stage.reader, [f"SELECT textsim.{call}" for call in VALID]) == []


def test_a_writer_of_another_corpus_is_never_the_owner(stage: Stage, rng: random.Random) -> None:
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
        "text": ["'news'"],
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
            create = "CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION"
            statements = [f"{create} {function}()"]
        else:
            statements = [
                f"SELECT {function}({', '.join(arguments)})"
                for arguments in product(*(values[kind] for kind in types))
            ]
        chosen = rng.sample(statements, min(60, len(statements)))
        assert stage.allowed(stage.other, chosen) == [], function
        calls += len(chosen)
    assert calls > 60
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
def test_a_worker_runs_no_owner_function(stage: Stage, statements: list[str], what: str) -> None:
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
    before = rows_and_rights(stage)["textsim.word_1"]
    for role in (stage.writer, stage.owner):
        with stage.connect(role) as db:
            worker = db.worker()
            worker.run(until_idle=True)
            assert "row security hides rows of it from this role" in str(worker.unusable)
        assert stage.run(role, "SELECT * FROM secret") == []
    assert rows_and_rights(stage)["textsim.word_1"] == before
    with pytest.raises(pg.InsufficientPrivilege):
        stage.run(stage.reader, "SELECT * FROM secret")
    # A reader sees that something has changed before a role that may see the rows indexes them.
    assert stage.run(stage.reader, "SELECT keys FROM textsim.pending") == [(None,)]
    stage.work(stage.other)
    assert stage.run(stage.writer, "SELECT * FROM secret") == []
    words = (
        "SELECT string_agg(w.word, ' ' ORDER BY q.place) FROM textsim.document_1 d "
        "CROSS JOIN unnest(d.word_ids) WITH ORDINALITY q (id, place) "
        "JOIN textsim.word_1 w ON w.id = q.id WHERE d.key = '1'"
    )
    for role in (stage.reader, stage.writer):
        assert stage.run(role, words) == [(f"the secret plan {FOX}",)]
    # The index has the words alone: no case, no punctuation, no other column.
    everything = str([rows for name, rows in rows_and_rights(stage).items() if name != "rights"])
    assert "SECRET" not in everything
    assert "Plan:" not in everything


PLANT = """
CREATE TABLE ran (what text);
GRANT INSERT ON ran TO PUBLIC;
DO $plant$
DECLARE
    types constant text[] := '{varchar,text,name,int2,int4,int8,regclass,regnamespace,oid,bpchar,'
        'timestamptz,date,timestamp,uuid,jsonb,text[],name[],int4[],int8[],int2[],float4,float8,numeric,'
        'interval,regtype}';
    pair record;
    result text;
BEGIN
    FOR pair IN
        SELECT o AS name, l AS left_type, r AS right_type, row_number() OVER () AS number
        FROM unnest('{=,<>,&&,||,<,<=,>,>=,~,->>,->,@>,<@,+,-,*,/,%,<<,>>}'::text[]) o
        CROSS JOIN unnest(types) l CROSS JOIN unnest(types) r
        WHERE NOT EXISTS (
            SELECT FROM pg_operator p
            WHERE p.oprname = o AND p.oprleft = l::regtype AND p.oprright = r::regtype)
    LOOP
        BEGIN
            EXECUTE format('SELECT pg_typeof(NULL::%s OPERATOR(pg_catalog.%s) NULL::%s)::text',
                pair.left_type, pair.name, pair.right_type) INTO result;
            EXECUTE format(
                'CREATE FUNCTION public.planted_%s(a %s, b %s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN '
                'INSERT INTO public.ran VALUES (%L); RETURN a OPERATOR(pg_catalog.%s) b; END $$',
                pair.number, pair.left_type, pair.right_type, result,
                concat_ws(' ', pair.left_type, pair.name, pair.right_type), pair.name);
            EXECUTE format(
                'CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted_%s)',
                pair.name, pair.left_type, pair.right_type, pair.number);
        EXCEPTION WHEN undefined_function OR ambiguous_function OR invalid_function_definition
            OR duplicate_function THEN
        END;
    END LOOP;
    FOR pair IN
        SELECT f AS name, t AS left_type
        FROM unnest('{unnest,array_agg,cardinality,array_length,count,to_jsonb,concat,format}'::text[]) f
        CROSS JOIN unnest('{text[],int4[],int8[],int2[],text,int4,int8}'::text[]) t
    LOOP
        EXECUTE format(
            'CREATE FUNCTION public.%s(a %s) RETURNS text LANGUAGE plpgsql AS $$ BEGIN '
            'INSERT INTO public.ran VALUES (%L); RETURN NULL; END $$',
            pair.name, pair.left_type, pair.name);
    END LOOP;
END $plant$
"""
"""Operators and functions that fit some types exactly, for which pg_catalog has only those of others."""
WORK: dict[str, Callable[[ts.Database, ts.Corpus], object]] = {
    "attach": lambda _, c: c.attach("item", key="k", text="body"),
    "work": lambda db, _: db.worker().run(until_idle=True),
    "add": lambda _, c: c.add_many([("y1", f"{FOX} one"), ("y2", f"{FOX} two")]),
    "track": lambda _, c: c.track(),
    "update_clusters": lambda _, c: c.update_clusters(),
    "query": lambda _, c: (c.query(FOX), c.query_many([FOX, "other"]), c.nearest(FOX)),
    "lists": lambda _, c: (
        *(list(c.pairs()), list(c.clusters()), list(c.duplicates()), list(c.keys())),
        *(c.members(), c.cluster_events(), c.passages(FOX), c.regions(FOX), c.pending()),
        *(list(c.shared_passages()), list(c.judgements()), list(c.doubtful())),
    ),
    "quote": lambda _, c: c.quote(FOX),
    "judge": lambda _, c: (c.judge("y1", "y2", "different"), c.unjudge("y1", "y2")),
    "report": lambda db, c: (c.status(), c.statistics(), c.drift(), db.corpora(), db.sources()),
    "check": lambda _, c: c.check(),
    "merge": lambda _, c: c.merge("item"),
    "unmerge": lambda _, c: c.unmerge(since=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    "reconcile": lambda _, c: c.reconcile(),
    "work again": lambda db, _: db.worker().run(until_idle=True),
    "remove": lambda _, c: (c.remove(["y1"]), c.forget(["y2"])),
    "rebuild": lambda _, c: c.rebuild(threshold=0.7),
    "detach": lambda _, c: c.detach("item"),
}


SHADOWS = (
    "CREATE SCHEMA own",
    *(f"CREATE TABLE own.{name} (n int)" for name in ("text", "record", "bool")),
    "CREATE FUNCTION own.equal(a pg_catalog.text, b pg_catalog.text) RETURNS boolean "
    "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it ran'; END $$",
    "CREATE OPERATOR own.= "
    "(LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = own.equal)",
)
"""The path of a user may lead to these before pg_catalog."""


@pytest.mark.more
def test_nothing_in_public_runs_with_the_rights_of_another_role(stage: Stage) -> None:
    """A function or operator that fits exactly comes before one of pg_catalog that needs a cast."""
    with stage.connect(stage.owner) as db:
        db.create_corpus("c", shingle="word:2", threshold=0.6, passages=8, guards=("content",))
        stage.run(
            stage.owner,
            "CREATE TABLE item (k varchar(9) PRIMARY KEY, body varchar, at timestamp DEFAULT now())",
            f"INSERT INTO item SELECT n::text, '{FOX}' FROM generate_series(1, 5) n",
        )
        stage.run(stage.other, PLANT)
        for name, work in WORK.items():
            work(db, db.corpus("c"))
            assert stage.run(stage.other, "TABLE ran") == [], name
    stage.run(stage.owner, *SHADOWS, "SELECT textsim.attach('c', 'public.item', 'k', 'body')")
    for path in ("public", "own, pg_catalog, public"):
        stage.run(
            stage.owner,
            f"INSERT INTO item SELECT n::text, '{FOX}' FROM generate_series(6, 9) n "
            "ON CONFLICT DO NOTHING",
            f"SET search_path = {path}",
            "CALL textsim.index_pending('c')",
            "CALL textsim.merge('c')",
        )
    ts.install(as_role(stage.url, stage.owner))
    assert stage.run(stage.other, "TABLE ran") == []
