"""check and doctor find damaged objects of the schema and of a corpus, and the way out mends them.

Objects come from the record of the installation and from the templates of a corpus, so that a new object
is damaged, too.
"""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.damage import Finding, check, damage, doctor, follow, mend
from tests.support.sampling import sample
from textsim_db.read import check_catalog


def test_nothing_is_wrong_at_first(textsim: Textsim) -> None:
    assert check(textsim) == []
    assert [each for each in doctor(textsim) if "no worker is connected" not in each.subject] == []


# Objects of the schema.

DAMAGES = {
    "table": ["ALTER TABLE {} SET UNLOGGED", "ALTER TABLE {} RENAME TO other_name"],
    "column": ["ALTER TABLE {table} RENAME COLUMN {part} TO other_name"],
    "constraint": ["ALTER TABLE {table} DROP CONSTRAINT {part} CASCADE"],
    "index": ["DROP INDEX {} CASCADE"],
    "sequence": ["DROP SEQUENCE {} CASCADE"],
    "composite type": ["DROP TYPE {} CASCADE"],
    "view": ["CREATE OR REPLACE VIEW {} AS SELECT * FROM {} LIMIT 0"],
    "function": ["ALTER ROUTINE {} SET search_path = public", "DROP ROUTINE {} CASCADE"],
    "procedure": ["ALTER ROUTINE {} SET search_path = public", "DROP ROUTINE {} CASCADE"],
    "trigger": ["ALTER TABLE {table} DISABLE TRIGGER {part}", "DROP TRIGGER {part} ON {table}"],
    "policy": [
        "ALTER POLICY {part} ON {table} RENAME TO other_name",
        "DROP POLICY {part} ON {table}",
    ],
}
NOT_DONE = (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InvalidTableDefinition)


@pytest.mark.more
def test_every_object_of_the_schema_is_watched(connection: Connection) -> None:
    objects = connection.execute("SELECT kind, name FROM textsim.installed").fetchall()
    assert {kind for kind, _ in objects} == DAMAGES.keys()
    missed = []
    for kind, name in objects:
        if "_catalog()" in name or "_wrong_objects" in name or "textsim.installed" in name:
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
    "CREATE OR REPLACE FUNCTION textsim._wake() RETURNS void LANGUAGE sql AS ''",
    "GRANT EXECUTE ON FUNCTION textsim._release_source TO PUBLIC",
    "DROP TABLE textsim.common",
    "DELETE FROM textsim.installed",
    "ALTER SEQUENCE textsim.word_id_seq RESTART WITH 3",
    "ALTER SEQUENCE textsim.corpus_id_seq RESTART",
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


def test_parts_of_tables_are_not_made_up(textsim: Textsim, database_url: str) -> None:
    damage(database_url, "ALTER TABLE textsim.corpus DROP COLUMN origin CASCADE")
    (found,) = [each for each in check(textsim) if each.subject == "column textsim.corpus.origin"]
    assert "restore the database from a backup" in found.remedy


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
        connection.execute(sql.SQL("DROP FUNCTION {}").format(sql.Identifier("textsim", name)))
    assert {f"function textsim.{name}" for name in names} <= {
        each.subject for each in check(textsim)
    }
    mend(textsim, database_url, "function textsim._connected_nodes_1")
    connection.execute("SELECT textsim.untrack('news')")
    query = "SELECT proname FROM pg_proc WHERE proname = ANY (%s)"
    assert connection.execute(query, [names]).fetchall() == []


CHANGES = {
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
        "ALTER TABLE textsim.document_1 DISABLE TRIGGER passage_delete",
    ],
    "sequence textsim.document_1_id_seq": ["SELECT setval('textsim.document_1_id_seq', 2)"],
    "table textsim.document_1": [
        "ALTER TABLE textsim.document_1 SET UNLOGGED",
        "ALTER TABLE textsim.document_1 ENABLE ROW LEVEL SECURITY",
    ],
    "column textsim.document_1.key": ["ALTER TABLE textsim.document_1 ALTER key DROP NOT NULL"],
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
