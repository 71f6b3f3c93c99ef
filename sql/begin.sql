-- textsim-db: the whole schema. Run it with: psql -X -v ON_ERROR_STOP=1 -f FILE
-- It creates the schema; after the steps of sql/upgrade, or for damaged functions, it brings an older schema up to date.
BEGIN;
SET LOCAL standard_conforming_strings = on;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
DO $do$
DECLARE
    revision text;
BEGIN
    IF to_regclass('textsim.alembic_version') IS NOT NULL THEN
        EXECUTE 'SELECT v.version_num FROM textsim.alembic_version v' INTO revision;
    END IF;
    IF revision <> ':revision' THEN
        RAISE EXCEPTION 'the schema is at revision %; this script needs :revision', revision
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Run the steps of sql/upgrade/ that follow its revision, or: textsim db install.';
    END IF;
END $do$;
