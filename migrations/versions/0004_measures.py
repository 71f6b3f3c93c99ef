"""Measures of two texts in SQL; see sql/upgrade/."""

from textsim_db.db.schema import run_file

revision = "0004_measures"
down_revision = "0003_sources"


def upgrade() -> None:
    run_file("0004_measures.sql")


def downgrade() -> None:
    run_file("0004_measures.down.sql")
