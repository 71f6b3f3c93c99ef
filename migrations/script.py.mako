"""${message}; see sql/upgrade/."""

from textsim_db.db.schema import run_file

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    run_file("${up_revision}.sql")


def downgrade() -> None:
    run_file("${up_revision}.down.sql")
