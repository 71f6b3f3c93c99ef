"""An invented later step of the schema, for tests of upgrades.

It changes a table, and the functions of all corpora and attached tables.
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
UP = """
ALTER TABLE textsim.source ADD COLUMN made_up integer NOT NULL DEFAULT 7;
COMMENT ON COLUMN textsim.source.made_up IS 'a column that a step adds';
CREATE FUNCTION textsim.made_up() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 7;
COMMENT ON FUNCTION textsim.made_up() IS 'a function that a step adds';
CREATE TABLE textsim.made_up (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text NOT NULL);
COMMENT ON TABLE textsim.made_up IS 'a table that a step adds';
-- The step changes templates, so it creates the functions of all corpora and attached tables again.
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('textsim._served_revisions'::regproc), '{', '{9000_made_up,');
    EXECUTE replace(pg_get_functiondef('textsim._write_template'::regproc),
        'No row is returned if', 'No row comes back if');
    EXECUTE replace(pg_get_functiondef('textsim._trigger_body'::regproc),
        'RETURN NULL;', 'RETURN NULL; -- new');
END $do$;
SELECT textsim._make_functions(c.id) FROM textsim.corpus c;
SELECT textsim._make_trigger_function(s) FROM textsim.source s WHERE s.active;
SELECT textsim._record_catalog();
"""
DOWN = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('textsim._served_revisions'::regproc), '{9000_made_up,', '{');
    EXECUTE replace(pg_get_functiondef('textsim._write_template'::regproc),
        'No row comes back if', 'No row is returned if');
    EXECUTE replace(pg_get_functiondef('textsim._trigger_body'::regproc),
        'RETURN NULL; -- new', 'RETURN NULL;');
END $do$;
SELECT textsim._make_functions(c.id) FROM textsim.corpus c;
SELECT textsim._make_trigger_function(s) FROM textsim.source s WHERE s.active;
DROP TABLE textsim.made_up;
DROP FUNCTION textsim.made_up();
ALTER TABLE textsim.source DROP COLUMN made_up;
SELECT textsim._record_catalog();
"""
REVISION = f'''
"""A made-up step."""

from textsim_db.db import schema

revision = "{MADE_UP}"
down_revision = "{LAST}"


def upgrade() -> None:
    schema.run_files("upgrade/{MADE_UP}.sql")


def downgrade() -> None:
    schema.run_files("upgrade/{MADE_UP}.down.sql")
'''


@contextmanager
def later_step() -> Iterator[Path]:
    """Copy the files, add the step, and yield the copy, which is in use meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("sql", "migrations"):
            shutil.copytree(ROOT / folder, root / folder)
        steps = root / "sql" / "upgrade"
        steps.mkdir(exist_ok=True)
        (steps / f"{MADE_UP}.sql").write_text(UP)
        (steps / f"{MADE_UP}.down.sql").write_text(DOWN)
        (root / "sql" / "schema" / "99_made_up.sql").write_text(UP)
        (root / "migrations" / "versions" / f"{MADE_UP}.py").write_text(REVISION)
        with mock.patch.object(schema, "resource", root.joinpath):
            schema.revisions.cache_clear()
            try:
                yield root
            finally:
                schema.revisions.cache_clear()
