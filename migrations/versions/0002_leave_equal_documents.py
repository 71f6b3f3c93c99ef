"""index_pending leaves documents that equal their rows; see sql/upgrade/."""

from textsim_db.db import migrations

revision = "0002_leave_equal_documents"
down_revision = "0001_schema"


def upgrade() -> None:
    migrations.run_step(revision)


def downgrade() -> None:
    migrations.undo_step()
