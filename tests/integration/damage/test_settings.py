"""check finds changed settings of a corpus, and the way out that it names mends them."""

from __future__ import annotations

import pytest

from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.damage import check, damage, follow, mend

SETTINGS = {
    "unit": "'char'",
    "shingle_length": "4",
    "threshold": "0.7",
    "recall": "0.5",
    "num_hashes": "127",
    "bands": "17",
    "rows": "6",
    "seed": "2",
    "recipe": "2",
    "stop_words": "'{the,dog}'",
    "language": "'auto'",
    "stop_words_by_language": None,
    "is_unique": "true",
    "unique_from": "0.95, is_unique = true",
    "scoped": "true",
    "keep_for": "interval '1 day'",
    "boilerplate": "0.5",
    "passages": "13",
    "common_passages": "true, passages = 13",
    "guards": "'{numbers}'",
    "guard_words": "'{draft}', guards = '{words}'",
    "guard_fillers": "'{my}', guards = '{content}'",
    "base": "base + 1",
    "golden_signature": "golden_signature || 1",
    "golden_buckets": "golden_buckets || 1",
}


@pytest.mark.more
def test_a_changed_setting_is_found(
    textsim: Textsim, connection: Connection, database_url: str
) -> None:
    corpora = b"SELECT * FROM textsim.corpus ORDER BY id"
    before = connection.execute(corpora).fetchall()
    for setting, value in SETTINGS.items():
        change = f"{setting} = {value}"
        if value is None:
            change = (
                """language = 'auto', stop_words = '{}', stop_words_by_language = '{"en": ["a"]}'"""
            )
        damage(database_url, f"UPDATE textsim.corpus SET {change} WHERE name = 'news'")
        place = f"setting {setting}"
        remedies = {each.remedy for each in check(textsim) if each.subject == place}
        assert remedies, place
        for remedy in remedies:
            follow(remedy, database_url)
        assert connection.execute(corpora).fetchall() == before, place
    assert check(textsim) == []


def test_all_settings_are_damaged(connection: Connection) -> None:
    columns = connection.execute(
        "SELECT jsonb_object_keys(textsim._settings(c)) FROM textsim.corpus c WHERE id = 1"
    ).fetchall()
    assert {name for (name,) in columns} == set(SETTINGS)


def test_a_lost_record_of_the_settings(textsim: Textsim, database_url: str) -> None:
    damage(database_url, "UPDATE textsim.corpus SET created_with = '{}' WHERE id = 1")
    mend(textsim, database_url, "setting created_with")
