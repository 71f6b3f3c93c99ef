"""check finds damaged rows of every table, and the way out that it names mends them."""

from __future__ import annotations

import pytest

from tests.support.commands import Textsim
from tests.support.damage import check, damage, mend
from tests.support.sampling import sample

A = "(SELECT id FROM textsim.document_1 WHERE key = 'a')"


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
    "INSERT INTO textsim.word_1 (hash, word) VALUES (hashtextextended('nowhere', 0), 'nowhere')",
    "UPDATE textsim.source SET attached_at = now() - interval '1 year'",
]


@pytest.mark.parametrize("statement", INVISIBLE)
def test_what_cannot_be_found(textsim: Textsim, database_url: str, statement: str) -> None:
    damage(database_url, statement)
    assert check(textsim) == []
