"""The SQL functions; see sql/upgrade/."""

from textsim_db.db.schema import run_file

revision = "0002_functions"
down_revision = "0001_initial"


def upgrade() -> None:
    run_file("0002_functions.sql")


def downgrade() -> None:
    run_file("0002_functions.down.sql")
