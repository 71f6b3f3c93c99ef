"""Create the schema from sql/schema/; sql/remove.sql removes it."""

from textsim_db.db import schema

revision = schema.first_revision()
down_revision = None


def upgrade() -> None:
    schema.run_files("schema/*.sql")


def downgrade() -> None:
    schema.run_files("remove.sql")
