"""Attached tables, and documents written by SQL; see sql/upgrade/."""

from textsim_db.db.schema import run_file

revision = "0003_sources"
down_revision = "0002_functions"


def upgrade() -> None:
    run_file("0003_sources.sql")


def downgrade() -> None:
    run_file("0003_sources.down.sql")
