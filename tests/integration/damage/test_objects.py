"""check finds damaged objects of the schema and of a corpus, and the way out mends them.

Objects come from the record of the installation and from the templates of a corpus, so that a new object
is damaged, too.
"""

from __future__ import annotations

import random

import psycopg
import pytest
from psycopg import sql

from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.damage import check, damage, follow, mend
from tests.support.sampling import sample


def test_nothing_is_wrong_at_first(textsim: Textsim) -> None:
    assert check(textsim) == []


# Objects of the schema.

DAMAGES = {
    "table": ["ALTER TABLE {} SET UNLOGGED", "ALTER TABLE {} RENAME TO other_name"],
    "column": ["ALTER TABLE {table} RENAME COLUMN {part} TO other_name"],
    "constraint": ["ALTER TABLE {table} DROP CONSTRAINT {part} CASCADE"],
    "index": ["DROP INDEX {} CASCADE"],
    "sequence": ["DROP SEQUENCE {} CASCADE"],
    "composite type": ["DROP TYPE {} CASCADE"],
    "trigger": ["ALTER TABLE {table} DISABLE TRIGGER {part}", "DROP TRIGGER {part} ON {table}"],
    "policy": [
        "ALTER POLICY {part} ON {table} RENAME TO other_name",
        "DROP POLICY {part} ON {table}",
    ],
}
NOT_DONE = (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InvalidTableDefinition)


@pytest.mark.more
def test_every_object_of_the_schema_is_watched(connection: Connection, rng: random.Random) -> None:
    objects = connection.execute("SELECT kind, name FROM textsim.installed").fetchall()
    assert {kind for kind, _ in objects} == DAMAGES.keys()
    missed = []
    for kind, name in rng.sample(objects, 40):
        if "textsim.installed" in name:
            continue
        part, _, table = name.rpartition(" on ")
        if kind == "column":
            table, _, part = name.rpartition(".")
        for damage_ in DAMAGES[kind]:
            statement = damage_.replace("{}", name).format(table=table, part=part)
            connection.execute("BEGIN")
            try:
                connection.execute(statement.encode())
                wrong = connection.execute("SELECT kind, name FROM textsim._wrong_objects()")
                if (kind, name) not in wrong.fetchall():
                    missed.append(statement)
            except NOT_DONE:
                pass
            finally:
                connection.execute("ROLLBACK")
    assert missed == []


def test_settings_of_a_session_are_no_damage(connection: Connection) -> None:
    connection.execute("SELECT textsim.track('news')")
    for setting, value in (
        ("quote_all_identifiers", "on"),
        ("intervalstyle", "sql_standard"),
        ("datestyle", "German"),
        ("search_path", "textsim, public"),
        ("standard_conforming_strings", "off"),
        ("bytea_output", "escape"),
    ):
        connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
        for call in ("_wrong_objects()", "corpus c, LATERAL textsim._wrong_objects(c)"):
            assert connection.execute(f"SELECT * FROM textsim.{call}".encode()).fetchall() == []


WRONG_SCHEMAS = [
    "DROP FUNCTION textsim._catalog() CASCADE",
    "GRANT EXECUTE ON FUNCTION textsim._release_source TO PUBLIC",
    "DROP TABLE textsim.common",
    "DELETE FROM textsim.installed",
    "ALTER SEQUENCE textsim.corpus_id_seq RESTART",
]


@pytest.mark.parametrize("statement", sample(WRONG_SCHEMAS, 8, "more"))
def test_the_way_out_mends_the_schema(textsim: Textsim, database_url: str, statement: str) -> None:
    damage(database_url, statement)
    findings = check(textsim)
    assert findings
    for remedy in dict.fromkeys(each.remedy for each in findings):
        follow(remedy, database_url)
    assert check(textsim) == []


def test_parts_of_tables_are_not_made_up(textsim: Textsim, database_url: str) -> None:
    damage(database_url, "ALTER TABLE textsim.corpus DROP COLUMN origin CASCADE")
    (found,) = [each for each in check(textsim) if each.subject == "column textsim.corpus.origin"]
    assert "restore the database from a backup" in found.remedy


# Objects of a corpus.


OBJECTS = """
SELECT r.kind, r.name FROM textsim._corpus_relations(c) r
UNION ALL SELECT r.kind, r.name FROM textsim._tracking_relations(c.id) r
"""


def test_every_object_of_a_corpus_is_watched(connection: Connection) -> None:
    connection.execute("SELECT textsim.track('news')")
    of_corpus = "SELECT o.* FROM textsim.corpus c, LATERAL ({}) o WHERE c.name = 'news'"
    objects = connection.execute(of_corpus.format(OBJECTS).encode()).fetchall()
    assert {"document_1", "band_1", "member_1"} <= {name for _, name in objects}
    wrong = of_corpus.format("SELECT name FROM textsim._wrong_objects(c)").encode()
    for kind, name in objects:
        with connection.transaction(force_rollback=True):
            dropped = sql.Identifier("textsim", name)
            connection.execute(sql.SQL("DROP {} {} CASCADE").format(sql.SQL(kind), dropped))
            found = [each for (each,) in connection.execute(wrong).fetchall()]
        assert f"textsim.{name}" in [each.partition("(")[0] for each in found], (kind, name, found)


CHANGES = {
    "table textsim.band_1": ["DROP TABLE textsim.band_1"],
    "function textsim._changes_1()": [
        "CREATE OR REPLACE FUNCTION textsim._changes_1() RETURNS trigger LANGUAGE plpgsql "
        "SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL;END'",
        "ALTER FUNCTION textsim._changes_1() RESET datestyle",
        "GRANT EXECUTE ON FUNCTION textsim._changes_1() TO PUBLIC",
    ],
    "index textsim.band_1_bucket": [
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'textsim.band_1_bucket'::regclass",
        "DROP INDEX textsim.band_1_bucket; CREATE INDEX band_1_bucket ON textsim.band_1 (bucket)",
    ],
    "trigger textsim.document_1.passage_delete": [
        "ALTER TABLE textsim.document_1 DISABLE TRIGGER passage_delete"
    ],
    "sequence textsim.document_1_id_seq": ["SELECT setval('textsim.document_1_id_seq', 2)"],
    "table textsim.document_1": [
        "ALTER TABLE textsim.document_1 SET UNLOGGED",
        "ALTER TABLE textsim.document_1 ENABLE ROW LEVEL SECURITY",
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
    mend(textsim, database_url, place)


def test_a_restore_without_privileges_is_mended_without_attaching(
    textsim: Textsim, database_url: str
) -> None:
    for number in (1, 2):
        damage(database_url, f"GRANT EXECUTE ON FUNCTION textsim._changes_{number}() TO PUBLIC")
    assert [each.remedy for each in check(textsim)] == [
        f"REVOKE ALL ON FUNCTION textsim._changes_{number}() FROM PUBLIC" for number in (1, 2)
    ]
