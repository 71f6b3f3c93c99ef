"""Alembic from its command line, and an application that installs the schema in its own revision."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from alembic.config import Config

from textsim_db.db.addresses import sqlalchemy_url

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "upgrade.md"
ENVIRONMENT = """
from alembic import context
from sqlalchemy import NullPool, create_engine

engine = create_engine(context.config.attributes["url"], poolclass=NullPool)
with engine.begin() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
"""
AFTER = """
from alembic import op

revision = "7c8d"
down_revision = "5f3a"


def upgrade() -> None:
    op.execute("SELECT textsim.create_corpus('of the application')")


def downgrade() -> None:
    op.execute("SELECT textsim.drop_corpus('of the application')")
"""
TABLES = """
from alembic import op

revision = "1b2c"
down_revision = None


def upgrade() -> None:
    op.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")


def downgrade() -> None:
    op.execute("DROP TABLE article")
"""


def revision_of_page() -> str:
    """Return the revision that the page shows."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return block[1]


def own_alembic(folder: Path, address: str) -> Config:
    """An application whose second revision installs textsim-db, and whose third uses it."""
    (folder / "versions").mkdir()
    (folder / "env.py").write_text(ENVIRONMENT)
    (folder / "versions" / "tables.py").write_text(TABLES)
    (folder / "versions" / "textsim.py").write_text(revision_of_page())
    (folder / "versions" / "after.py").write_text(AFTER)
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.attributes["url"] = sqlalchemy_url(address)
    return config


def run_alembic(url: str, *command: str) -> str:
    """Run Alembic from its command line in the checkout, and return what it prints."""
    result = subprocess.run(
        [sys.executable, "-m", "alembic", *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TEXTSIM_DATABASE_URL": url, "PYTHONPATH": str(ROOT)},
    )
    if result.returncode:
        raise RuntimeError(result.stdout + result.stderr)
    return result.stdout
