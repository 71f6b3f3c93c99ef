"""An invented second step of the schema, for tests of upgrades."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from scripts.freeze_schema import freeze
from textsim_db.db import schema

ROOT = Path(__file__).parents[2]
FIRST, SECOND = "0001_schema", "0002_made_up"
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

revision = "{SECOND}"
down_revision = "{FIRST}"


def upgrade() -> None:
    schema.run_files("upgrade/{SECOND}.sql")


def downgrade() -> None:
    schema.run_files("upgrade/{SECOND}.down.sql")
'''


@contextmanager
def second_step() -> Iterator[Path]:
    """Copy the files, freeze the schema as released, add a second step, and yield the copy."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("sql", "migrations"):
            shutil.copytree(ROOT / folder, root / folder)
        freeze(root)
        (root / "sql" / "upgrade" / f"{SECOND}.sql").write_text(UP)
        (root / "sql" / "upgrade" / f"{SECOND}.down.sql").write_text(DOWN)
        (root / "sql" / "schema" / "99_made_up.sql").write_text(UP)
        (root / "migrations" / "versions" / f"{SECOND}.py").write_text(REVISION)
        with mock.patch.object(schema, "resource", root.joinpath):
            schema.head.cache_clear()
            try:
                yield root
            finally:
                schema.head.cache_clear()
