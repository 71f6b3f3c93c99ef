"""Build the newest schema; a database of the first release has this revision, and gets the steps."""

from textsim_db.db import migrations

revision = "0001_schema"
down_revision = None


def upgrade() -> None:
    migrations.create()


def downgrade() -> None:
    migrations.remove()
