"""check and doctor find changed settings of a corpus, and the way out that they name mends them."""

from __future__ import annotations

import pytest

from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.damage import check, damage, doctor, mend

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
