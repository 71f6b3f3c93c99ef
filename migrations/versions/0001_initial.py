"""The first schema; see sql/upgrade/."""

from textsim_db.db.schema import run_file

revision = "0001_initial"
down_revision = None


def upgrade() -> None:
    run_file("0001_initial.sql")


def downgrade() -> None:
    run_file("0001_initial.down.sql")
