"""${message}; see sql/upgrade/."""

from textsim_db.db import schema

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    schema.run_files("upgrade/${up_revision}.sql")


def downgrade() -> None:
    schema.run_files("upgrade/${up_revision}.down.sql")
