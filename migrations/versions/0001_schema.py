"""Create the schema from sql/schema/; sql/remove.sql removes it."""

from textsim_db.db import schema

revision = "0001_schema"
down_revision = None


def upgrade() -> None:
    schema.run_files("upgrade/0001_schema/*.sql")


def downgrade() -> None:
    schema.run_files("remove.sql")
