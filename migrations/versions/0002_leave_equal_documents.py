"""index_pending leaves documents that equal their rows; see sql/upgrade/."""

from textsim_db.db import schema

revision = "0002_leave_equal_documents"
down_revision = "0001_schema"


def upgrade() -> None:
    schema.run_files("upgrade/0002_leave_equal_documents.sql")


def downgrade() -> None:
    schema.run_files("upgrade/0002_leave_equal_documents.down.sql")
