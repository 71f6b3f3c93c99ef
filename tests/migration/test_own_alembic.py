"""An application installs and upgrades the schema in revisions of its own Alembic."""

from __future__ import annotations

from pathlib import Path

import alembic.command

import textsim_db as ts
from tests.support.own_alembic import own_alembic


def test_an_application_installs_the_schema_in_a_revision(
    tmp_path: Path, empty_database_url: str
) -> None:
    application = own_alembic(tmp_path, empty_database_url)
    alembic.command.upgrade(application, "head")
    with ts.connect(empty_database_url) as db:
        db.create_corpus("news").attach("article", "id", "body")
    alembic.command.downgrade(application, "1b2c")
    with ts.connect(empty_database_url) as db:
        assert db.corpora() == ["news"]
    alembic.command.upgrade(application, "head")
    with ts.connect(empty_database_url) as db:
        assert db.corpora() == ["news", "of the application"]
