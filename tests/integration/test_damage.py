"""check and doctor find damage that was done by hand, and the way out that they name mends it.

Objects come from the record of the installation and from the templates of a corpus, so that a new object
is damaged, too. Damage of rows goes through the columns of every table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.servers import Server, database_of
from textsim_db.integrity import check_catalog, statements

FOX = "a quick brown fox jumps over the lazy dog near the river bank on day"
A = "(SELECT id FROM textsim.document_1 WHERE key = 'a')"


@pytest.fixture(scope="module")
def intact_url(server: Server) -> Iterator[str]:
    """A database with two corpora and two attached tables, which tests clone."""
    with server.clone() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE post (id integer PRIMARY KEY, body text)")
            connection.execute("CREATE TABLE offer (id integer PRIMARY KEY, body text)")
        with ts.connect(url) as db:
            news = db.create_corpus("news", stop_words=["the"], passages=8)
            news.add("a", f"{FOX} zero")
            news.attach("post", "id", "body")
            unique = db.create_corpus("unique", threshold=0.6, recall=1, is_unique=True, passages=4)
            unique.attach("offer", "id", "body")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "INSERT INTO post SELECT i, %s || i * i FROM generate_series(1, 9) i",
                    [f"{FOX} "],
                )
                connection.execute(
                    "INSERT INTO offer SELECT i, 'offer ' || i || ' is ' || md5(i::text) || ' and '"
                    " || md5((-i)::text) FROM generate_series(1, 9) i"
                )
            db.worker().run(until_idle=True)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("INSERT INTO offer VALUES (10, 'a late offer of a blue chair')")
        yield url


@pytest.fixture
def database_url(server: Server, intact_url: str) -> Iterator[str]:
    with server.clone(database_of(intact_url)) as url:
        yield url


class Finding(NamedTuple):
    """A printed finding: the subject with its kind, and the way out."""

    subject: str
    remedy: str


def check(textsim: Textsim) -> list[Finding]:
    result = textsim("check", "--format", "jsonl", status=None)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == bool(rows), result.output
    return [Finding(f"{row['kind']} {row['subject']}", row["remedy"]) for row in rows]


def doctor(textsim: Textsim) -> list[Finding]:
    result = textsim("doctor", "--json", status=None)
    found = json.loads(result.stdout)
    findings = [each for section in found.values() if isinstance(section, list) for each in section]
    faults = [each for each in findings if each["level"] == "fault"]
    assert result.exit_code == bool(faults)
    return [Finding(each["fact"], each["remedy"]) for each in faults]


def follow(remedy: str, url: str) -> None:
    """Do what a finding says: SQL and commands, separated by semicolons."""
    for part in re.split(r"; (?:then:? )?", remedy):
        if re.fullmatch(r"attach .*again.*", part):
            reattach(url)
        elif part.startswith("add documents of no table again"):
            continue
        elif part.startswith("textsim "):
            with ts.connect(url) as db:
                run_command(db, url, *part.split()[1:])
        else:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(part.encode())


def run_command(db: ts.Database, url: str, *command: str) -> None:
    match command:
        case ("db", "install"):
            ts.install(url)
        case ("rebuild", name):
            db.corpus(name).rebuild()
        case ("reconcile", name):
            db.corpus(name).reconcile()
        case ("detach", name, table):
            db.corpus(name).detach(table)
        case ("check",):
            pass
        case _:
            raise AssertionError(command)


def reattach(url: str) -> None:
    """Attach both tables as they were, if they are not attached."""
    with psycopg.connect(url, autocommit=True) as connection:
        for corpus, table, mode in (("news", "post", "queue"), ("unique", "offer", "inline")):
            row = connection.execute(
                "SELECT FROM textsim.sources WHERE relation = %s::regclass", [table]
            ).fetchone()
            if row is None:
                connection.execute(
                    "SELECT textsim.attach(%s, %s, 'id', 'body', %s)", [corpus, table, mode]
                )
    with ts.connect(url) as db:
        db.worker().run(until_idle=True)


def damage(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        # Each place of damage may be protected.
        connection.execute("SET session_replication_role = replica")
        cursor = connection.execute(statement.encode())
        assert cursor.rowcount != 0, statement


def test_nothing_is_wrong_at_first(textsim: Textsim) -> None:
    assert check(textsim) == []
    assert [each for each in doctor(textsim) if "no worker is connected" not in each.subject] == []


# Objects of the schema.


def _wrong(connection: Connection) -> set[tuple[str, str]]:
    rows = connection.execute(statements.WRONG_OBJECTS.encode()).fetchall()
    return {(kind, name) for kind, name, *_ in rows}


DAMAGES_OF_KIND = {
    "table": ["ALTER TABLE {} SET UNLOGGED", "ALTER TABLE {} ENABLE ROW LEVEL SECURITY"],
    "view": ["DROP VIEW {}", "CREATE OR REPLACE VIEW {} AS SELECT * FROM {} LIMIT 0"],
    "sequence": ["ALTER SEQUENCE {} MAXVALUE 12345678"],
    "index": ["DROP INDEX {} CASCADE"],
    "type": ["DROP TYPE {} CASCADE"],
    "function": ["DROP ROUTINE {} CASCADE", "ALTER ROUTINE {} SET search_path = public"],
}
NOT_DONE = (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InvalidTableDefinition)


def _damages(kind: str, name: str) -> list[str]:
    table, _, part = name.rpartition(".")
    if kind == "column":
        return [
            f"ALTER TABLE {table} DROP COLUMN {part} CASCADE",
            f"ALTER TABLE {table} RENAME COLUMN {part} TO other_name",
        ]
    if kind == "constraint":
        return [f"ALTER TABLE {table} DROP CONSTRAINT {part} CASCADE"]
    if name == "textsim.judgement":
        return [f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY"]
    if kind == "function":  # the arguments are without defaults
        return [text.format(name) for text in DAMAGES_OF_KIND[kind]]
    if kind in ("trigger", "policy"):
        return [f"DROP {kind} {part} ON {table}"]
    return [text.replace("{}", name) for text in DAMAGES_OF_KIND[kind]]


@pytest.mark.more
def test_every_object_of_the_schema_is_watched(connection: Connection) -> None:
    objects = connection.execute(
        "SELECT kind, name FROM textsim.installed ORDER BY 1, 2"
    ).fetchall()
    assert {kind for kind, _ in objects} == {
        *DAMAGES_OF_KIND,
        *("column", "constraint", "trigger", "policy"),
    }
    missed = []
    for kind, name in objects:
        if name == "textsim._catalog()" or name.startswith("textsim.installed"):
            continue
        for statement in _damages(kind, name):
            connection.execute("BEGIN")
            try:
                connection.execute(statement.encode())
                if (kind, name) not in _wrong(connection):
                    missed.append(statement)
            except NOT_DONE:
                pass
            finally:
                connection.execute("ROLLBACK")
    assert missed == []


WRONG_SCHEMAS = [
    "DROP FUNCTION textsim._catalog() CASCADE",
    "CREATE OR REPLACE FUNCTION textsim._catalog() RETURNS SETOF textsim.installed "
    "LANGUAGE sql AS 'SELECT * FROM textsim.installed LIMIT 0'",
    "DROP FUNCTION textsim.matches",
    "CREATE OR REPLACE FUNCTION textsim._wake() RETURNS void LANGUAGE sql AS ''",
    "ALTER FUNCTION textsim._enqueue SECURITY DEFINER",
    "GRANT EXECUTE ON FUNCTION textsim._release_source TO PUBLIC",
    "DROP VIEW textsim.sources",
    "DROP INDEX textsim.pending_corpus",
    "DROP SEQUENCE textsim.last_notice",
    "ALTER TABLE textsim.word DROP CONSTRAINT word_hash_check",
    "ALTER TABLE textsim.word DROP CONSTRAINT word_hash_key CASCADE",
    "ALTER TABLE textsim.corpus ALTER COLUMN seed DROP NOT NULL",
    "ALTER TABLE textsim.pending ALTER COLUMN tries DROP DEFAULT",
    "ALTER TABLE textsim.source SET UNLOGGED",
    "ALTER TABLE textsim.word ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE textsim.judgement DISABLE ROW LEVEL SECURITY",
    "DROP POLICY readers ON textsim.judgement",
    "DROP TRIGGER update_at_commit ON textsim.pending",
    "DROP TABLE textsim.common",
    "ALTER SEQUENCE textsim.word_id_seq RESTART WITH 3",
    "ALTER SEQUENCE textsim.corpus_id_seq RESTART",
    "ALTER SEQUENCE textsim.source_id_seq RESTART",
]


@pytest.mark.parametrize("statement", sample(WRONG_SCHEMAS, 7, "more"))
def test_the_way_out_mends_the_schema(textsim: Textsim, database_url: str, statement: str) -> None:
    damage(database_url, statement)
    assert any(each.remedy for each in doctor(textsim)), "doctor finds it"
    findings = check(textsim)
    assert findings
    for remedy in dict.fromkeys(each.remedy for each in findings):
        follow(remedy, database_url)
    assert check(textsim) == []


def test_columns_and_records_are_not_made_up(textsim: Textsim, database_url: str) -> None:
    damage(database_url, "ALTER TABLE textsim.corpus DROP COLUMN origin CASCADE")
    assert [each for each in check(textsim) if "column textsim.corpus.origin" in each.subject] == [
        Finding("column textsim.corpus.origin", check_catalog.FROM_BACKUP)
    ]


# Objects of a corpus.


def _objects(connection: Connection, corpus: str) -> list[tuple[str, str]]:
    """Return the kinds and names of the objects of a corpus; a rebuild changes their number."""
    return connection.execute(
        "SELECT 'function', f.name FROM textsim.corpus c, textsim._corpus_functions(c) f "
        "WHERE c.name = %(name)s UNION ALL "
        "SELECT r.kind, r.name FROM textsim.corpus c, textsim._corpus_relations(c) r "
        "WHERE c.name = %(name)s",
        {"name": corpus},
    ).fetchall()


@pytest.mark.parametrize("number", sample(range(10), 4, "more"))
def test_every_object_of_a_corpus_is_watched(
    connection: Connection, textsim: Textsim, database_url: str, number: int
) -> None:
    for corpus in ("news", "unique"):
        objects = _objects(connection, corpus)
        assert len(objects) == 10
        kind, name = objects[number]
        connection.execute(
            sql.SQL("DROP {} {} CASCADE").format(sql.SQL(kind), sql.Identifier("textsim", name))
        )
        place = f"{kind} textsim.{name}"
        assert [each for each in doctor(textsim) if place in each.subject]
        if kind == "table" and name.startswith("document"):
            assert Finding(place, check_catalog.FROM_BACKUP) in check(textsim)
        else:
            mend(textsim, database_url, place)


def test_every_function_of_a_tracked_corpus_is_watched(
    connection: Connection, textsim: Textsim, database_url: str
) -> None:
    connection.execute("SELECT textsim.track('news')")
    connection.execute("CALL textsim.update_clusters('news')")
    names = [
        name
        for (name,) in connection.execute(
            "SELECT f.name FROM textsim.corpus c, textsim._tracking_functions(c.id) f "
            "WHERE c.name = 'news'"
        )
    ]
    assert "_find_matches_1" in names
    for name in names:
        connection.execute(
            sql.SQL("ALTER FUNCTION {} VOLATILE COST 7").format(sql.Identifier("textsim", name))
        )
    connection.execute("ALTER FUNCTION textsim._find_matches_1 SET enable_hashjoin = off")
    connection.execute("DROP FUNCTION textsim._update_batch_1")
    places = {each.subject for each in check(textsim)}
    assert {"function textsim._find_matches_1", "function textsim._update_batch_1"} <= places
    mend(textsim, database_url, "function textsim._connected_nodes_1")
    connection.execute("SELECT textsim.untrack('news')")
    query = "SELECT proname FROM pg_proc WHERE proname = ANY (%s)"
    assert connection.execute(query, [names]).fetchall() == []


CHANGES = {
    "function textsim._candidates_1": [
        "CREATE OR REPLACE FUNCTION textsim._candidates_1(own_buckets integer[], own_count integer, "
        "own_key text, threshold double precision, of_language text, of_scope text) "
        "RETURNS TABLE (key text, word_ids integer[], normal_form text, shingle_count integer) "
        "LANGUAGE sql AS 'SELECT NULL::text, NULL::integer[], NULL::text, 1 LIMIT 0'",
        "ALTER FUNCTION textsim._candidates_1 RESET enable_seqscan",
        "ALTER FUNCTION textsim._candidates_1 VOLATILE",
    ],
    "function textsim._write_2": [
        "CREATE OR REPLACE FUNCTION textsim._write_2(c textsim.corpus, source integer, "
        "document_key text, form text, document_scope text, document_expires_at timestamptz, "
        "force boolean, sketched textsim._sketched) RETURNS textsim._stored "
        "LANGUAGE plpgsql AS 'BEGIN RETURN NULL;END'",
    ],
    "function textsim._changes_1()": [
        "CREATE OR REPLACE FUNCTION textsim._changes_1() RETURNS trigger LANGUAGE plpgsql "
        "SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL;END'",
        "ALTER FUNCTION textsim._changes_1() SECURITY INVOKER",
        "GRANT EXECUTE ON FUNCTION textsim._changes_1() TO PUBLIC",
        "DROP FUNCTION textsim._changes_1() CASCADE",
    ],
    "index textsim.band_1_bucket": [
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'textsim.band_1_bucket'::regclass",
        "DROP INDEX textsim.band_1_bucket; CREATE INDEX band_1_bucket ON textsim.band_1 (bucket)",
    ],
    "index textsim.document_1_key": [
        "DROP INDEX textsim.document_1_key; CREATE INDEX document_1_key ON textsim.document_1 (key)",
    ],
    "index textsim.passage_1_fingerprint": [
        "DROP INDEX textsim.passage_1_fingerprint; "
        "CREATE INDEX passage_1_fingerprint ON textsim.passage_1 (fingerprint)",
    ],
    "table textsim.passage_1": ["ALTER TABLE textsim.passage_1 SET UNLOGGED"],
    "trigger textsim.document_1.passage_delete": [
        "DROP TRIGGER passage_delete ON textsim.document_1",
        "ALTER TABLE textsim.document_1 DISABLE TRIGGER passage_delete",
        "DROP TRIGGER passage_delete ON textsim.document_1; CREATE TRIGGER passage_delete AFTER DELETE "
        "ON textsim.document_1 REFERENCING OLD TABLE AS old_documents FOR EACH STATEMENT EXECUTE "
        "FUNCTION textsim._change_passage_rows('2')",
    ],
    "sequence textsim.document_1_id_seq": ["SELECT setval('textsim.document_1_id_seq', 2)"],
    "table textsim.document_1": [
        "ALTER TABLE textsim.document_1 SET UNLOGGED",
        "ALTER TABLE textsim.document_1 ENABLE ROW LEVEL SECURITY",
    ],
    "column textsim.document_1.key": ["ALTER TABLE textsim.document_1 ALTER key DROP NOT NULL"],
    "constraint textsim.document_1.document_check": [
        "ALTER TABLE textsim.document_1 DROP CONSTRAINT document_check"
    ],
}


@pytest.mark.parametrize(
    ("place", "statement"),
    sample([(place, each) for place, all_ in CHANGES.items() for each in all_], 7, "more"),
)
def test_the_way_out_mends_a_corpus(
    textsim: Textsim, database_url: str, place: str, statement: str
) -> None:
    for part in statement.split("; "):
        damage(database_url, part)
    assert any(place in each.subject for each in doctor(textsim))
    mend(textsim, database_url, place)


def mend(textsim: Textsim, url: str, place: str) -> None:
    """Check that a place is named, and follow the ways out until nothing is wrong."""
    findings = check(textsim)
    assert place in [each.subject for each in findings]
    for _ in range(3):
        for remedy in dict.fromkeys(each.remedy for each in findings):
            follow(remedy, url)
        findings = check(textsim)
        if not findings:
            return
    raise AssertionError(findings)


# Settings of a corpus.

SETTINGS = {
    "unit": "'char'",
    "shingle_length": "4",
    "threshold": "0.7",
    "recall": "0.5",
    "num_hashes": "127",
    "bands": "17",
    "rows": "6",
    "seed": "2",
    "recipe": "3",
    "stop_words": "'{the,dog}'",
    "language": "'auto'",
    "stop_words_by_language": None,
    "is_unique": "true",
    "scoped": "true",
    "keep_for": "interval '1 day'",
    "boilerplate": "0.5",
    "passages": "13",
    "common_passages": "true, passages = 13",
    "boilerplate_values": "'{1}', boilerplate = 0.5",
    "base": "base + 1",
    "golden_signature": "golden_signature || 1",
    "golden_buckets": "golden_buckets || 1",
}


@pytest.mark.more
def test_a_changed_setting_is_found(
    textsim: Textsim, connection: Connection, database_url: str
) -> None:
    """A way out is followed when it comes for the first time; a rebuild gives the corpus another id."""
    followed: set[str] = set()
    for setting, value in SETTINGS.items():
        change = f"{setting} = {value}"
        if value is None:
            change = (
                """language = 'auto', stop_words = '{}', stop_words_by_language = '{"en": ["a"]}'"""
            )
        ((columns,),) = connection.execute(
            "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute "
            "WHERE attrelid = 'textsim.corpus'::regclass AND attnum > 0 AND attname <> 'id'"
        ).fetchall()
        connection.execute("DROP TABLE IF EXISTS kept; CREATE TABLE kept AS TABLE textsim.corpus")
        damage(database_url, f"UPDATE textsim.corpus SET {change} WHERE name = 'news'")
        place = f"setting {setting}"
        assert [each for each in doctor(textsim) if place in each.subject], place
        remedies = {each.remedy for each in check(textsim) if each.subject == place}
        assert remedies, place
        if remedies <= followed:
            damage(
                database_url,
                f"UPDATE textsim.corpus c SET ({columns}) = "
                f"(SELECT {columns} FROM kept k WHERE k.id = c.id) WHERE name = 'news'",
            )
        else:
            mend(textsim, database_url, place)
            followed |= remedies


def test_all_settings_are_damaged(connection: Connection) -> None:
    columns = connection.execute(
        "SELECT jsonb_object_keys(textsim._settings(c)) FROM textsim.corpus c WHERE id = 1"
    ).fetchall()
    assert {name for (name,) in columns} == set(SETTINGS)


def test_a_lost_record_of_the_settings(textsim: Textsim, database_url: str) -> None:
    damage(database_url, "UPDATE textsim.corpus SET created_with = '{}' WHERE id = 1")
    mend(textsim, database_url, "setting created_with")


# Rows of the other tables.


def without(corpus: int, condition: str) -> str:
    """Return a statement that deletes documents with the rows that lead to them."""
    return (
        f"WITH gone AS (DELETE FROM textsim.document_{corpus} WHERE {condition} RETURNING id), "
        f"of_passages AS (DELETE FROM textsim.passage_{corpus} "
        "WHERE document_id IN (SELECT id FROM gone)) "
        f"DELETE FROM textsim.band_{corpus} WHERE document_id IN (SELECT id FROM gone)"
    )


ROWS = [
    ("DELETE FROM textsim.source WHERE id = 1", "function textsim._changes_1()"),
    ("UPDATE textsim.source SET active = false WHERE id = 1", "function textsim._changes_1()"),
    ("UPDATE textsim.source SET corpus_id = 2 WHERE id = 1", "function textsim._changes_1()"),
    (
        "UPDATE textsim.source SET key_columns = '{body}' WHERE id = 1",
        "function textsim._changes_1()",
    ),
    ("UPDATE textsim.source SET text_column = 'id' WHERE id = 1", "function textsim._changes_1()"),
    ("UPDATE textsim.source SET mode = 'inline' WHERE id = 1", "function textsim._changes_1()"),
    ("UPDATE textsim.source SET key_types = '{text}' WHERE id = 1", "attached table post"),
    (
        "UPDATE textsim.source SET relation = 'pg_class'::regclass WHERE id = 1",
        "attached table pg_class",
    ),
    (
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) VALUES ('change', 1, 77, '{1}')",
        "log textsim.pending",
    ),
    (
        "INSERT INTO textsim.pending (kind, corpus_id, keys) VALUES ('words', 77, '{1}')",
        "log textsim.pending",
    ),
    (
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys, lease_until) "
        "VALUES ('change', 1, 1, '{1}', now() + interval '1 year')",
        "log textsim.pending",
    ),
    ("DELETE FROM textsim.corpus WHERE id = 2", "table textsim.band_2"),
    ("UPDATE textsim.document_1 SET source_id = 77 WHERE source_id = 1", "unknown table source 77"),
    ("UPDATE textsim.document_1 SET source_id = 2 WHERE key = '3'", "unknown table source 2"),
    ("UPDATE textsim.document_1 SET source_id = NULL WHERE key = '3'", "missing document 3"),
    ("UPDATE textsim.document_1 SET source_id = 1 WHERE key = 'a'", "surplus document a"),
    ("UPDATE textsim.document_1 SET key = 'other' WHERE key = '3'", "missing document 3"),
    (without(1, "key = '3'"), "missing document 3"),
    (without(2, "key = '3'"), "missing document 3"),
    (without(1, "source_id = 1"), "missing document 1"),
    ("UPDATE post SET body = NULL WHERE id = 3", "surplus document 3"),
    ("DELETE FROM post WHERE id = 3", "surplus document 3"),
    (f"UPDATE textsim.document_1 SET id = 4711 WHERE id = {A}", "missing band row a"),
    ("UPDATE textsim.document_1 SET shingle_count = 1 WHERE key = 'a'", "shingle count a"),
    (
        "UPDATE textsim.document_1 SET signature[3] = signature[3] # 1 WHERE key = 'a'",
        "signature a",
    ),
    (
        "UPDATE textsim.document_2 SET signature[1] = signature[1] # 1 WHERE key = '1'",
        "signature 1",
    ),
    ("UPDATE textsim.document_1 SET word_ids = word_ids || 4711 WHERE key = '3'", "unknown word 3"),
    ("UPDATE textsim.document_2 SET normal_form = 'no' WHERE key = '10'", "signature 10"),
    (f"DELETE FROM textsim.band_1 WHERE document_id = {A}", "missing band row a"),
    ("UPDATE textsim.band_1 SET document_id = 99999", "orphan document 99999"),
    ("UPDATE textsim.band_2 SET bucket = bucket + 1", "missing band row 1"),
    (f"DELETE FROM textsim.passage_1 WHERE document_id = {A}", "missing fingerprint a"),
    ("INSERT INTO textsim.passage_1 TABLE textsim.passage_1", "extra fingerprint a"),
    ("UPDATE textsim.passage_2 SET document_id = 99999", "orphan document 99999"),
    ("UPDATE textsim.document_1 SET fingerprints = '{1}' WHERE key = 'a'", "fingerprints a"),
    ("UPDATE textsim.document_2 SET fingerprints = NULL WHERE key = '10'", "fingerprints 10"),
]


@pytest.mark.parametrize(("statement", "place"), sample(ROWS, 8, "more"))
def test_damaged_rows_are_found_and_mended(
    textsim: Textsim, database_url: str, statement: str, place: str
) -> None:
    damage(database_url, statement)
    if place.startswith(("table", "attached table")):
        assert place in [each.subject for each in check(textsim)]  # a backup or attach mends it
    else:
        mend(textsim, database_url, place)


# Each has no trace: nothing else in the database tells the true value.
INVISIBLE = [
    "UPDATE textsim.corpus SET name = 'olds' WHERE id = 1",
    "UPDATE textsim.document_1 SET key = 'b' WHERE key = 'a'",
    without(1, "key = 'a'"),
    "INSERT INTO textsim.word (hash, word) VALUES (hashtextextended('nowhere', 0), 'nowhere')",
    "UPDATE textsim.source SET attached_at = now() - interval '1 year'",
]


@pytest.mark.parametrize("statement", INVISIBLE)
def test_what_cannot_be_found(textsim: Textsim, database_url: str, statement: str) -> None:
    damage(database_url, statement)
    assert check(textsim) == []
