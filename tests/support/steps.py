"""An invented later release of the schema, for tests of upgrades.

Its step changes a table. Its files have a new table, and change the functions of corpora and sources.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from textsim_db.db import schema

ROOT = Path(__file__).parents[2]
LAST, MADE_UP = schema.head(), "9000_made_up"
NEWER = f"""
UPDATE textsim.alembic_version SET version_num = '{MADE_UP}';
CREATE OR REPLACE FUNCTION textsim._served_revisions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN '{{{MADE_UP}}}'::text[];
"""
"""Makes a schema a newer one that does not serve this version."""
STEP = """
SELECT textsim._begin_step('source');
ALTER TABLE textsim.source ADD COLUMN made_up integer;
ALTER TABLE textsim.source ALTER made_up SET DEFAULT 7;
UPDATE textsim.source SET made_up = 7;
ALTER TABLE textsim.source ALTER made_up SET NOT NULL;
ALTER TABLE textsim.corpus ADD COLUMN made_up boolean;
ALTER TABLE textsim.corpus ALTER made_up SET DEFAULT false;
UPDATE textsim.corpus SET made_up = false;
ALTER TABLE textsim.corpus ALTER made_up SET NOT NULL;
DROP FUNCTION IF EXISTS textsim.create_corpus;
"""
FILE = """
COMMENT ON COLUMN textsim.source.made_up IS 'a column that a step adds';
CREATE OR REPLACE FUNCTION textsim.made_up() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 7;
COMMENT ON FUNCTION textsim.made_up() IS 'a function that a release adds';
CREATE TABLE IF NOT EXISTS textsim.made_up (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text NOT NULL);
COMMENT ON TABLE textsim.made_up IS 'a table that a release adds';
"""
AFTER_COLUMNS = "    CONSTRAINT source_corpus_relation_key"
AFTER_SETTINGS = "    CHECK (bands * rows <= num_hashes),"
CHANGES = [
    ("10_tables", AFTER_COLUMNS, f"    made_up integer NOT NULL DEFAULT 7,\n{AFTER_COLUMNS}"),
    ("10_tables", AFTER_SETTINGS, f"    made_up boolean NOT NULL DEFAULT false,\n{AFTER_SETTINGS}"),
    ("41_corpus_function_templates", "No row is returned if", "No row comes back if"),
    ("63_triggers", "    RETURN NULL;\n", "    RETURN NULL; -- new\n"),
    ("80_expected_objects", "RETURN '{", f"RETURN '{{{MADE_UP},"),
]
"""The texts of the files of the schema that the release changes."""
REVISION = f'''
"""A made-up step."""

from textsim_db.db import migrations

revision = "{MADE_UP}"
down_revision = "{LAST}"


def upgrade() -> None:
    migrations.run_step(revision)


def downgrade() -> None:
    migrations.undo_step()
'''


@contextmanager
def later_step(*more_changes: tuple[str, str, str]) -> Iterator[Path]:
    """Copy the files, add the step, and yield the copy, which is in use meanwhile."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for folder in ("sql", "migrations"):
            shutil.copytree(ROOT / folder, root / folder)
        (root / "sql" / "upgrade" / f"{MADE_UP}.sql").write_text(STEP)
        (root / "sql" / "schema" / "79_made_up.sql").write_text(FILE)
        for name, old, new in (*CHANGES, *more_changes):
            file = root / "sql" / "schema" / f"{name}.sql"
            text = file.read_text("utf-8")
            assert old in text
            file.write_text(text.replace(old, new), "utf-8")
        (root / "migrations" / "versions" / f"{MADE_UP}.py").write_text(REVISION)
        with mock.patch.object(schema, "resource", root.joinpath):
            schema.revisions.cache_clear()
            try:
                yield root
            finally:
                schema.revisions.cache_clear()
