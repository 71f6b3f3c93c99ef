-- textsim-db: the whole schema. It creates the schema; after the steps of sql/upgrade, or for damaged functions, it brings
-- an older schema up to date.

-- The last statement of the script restores what the next ones set: a migration may go on with other work.
DO $do$
BEGIN
    PERFORM pg_catalog.set_config('textsim.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config(
        'textsim.client_min_messages', pg_catalog.current_setting('client_min_messages'), true);
END $do$;
SET LOCAL standard_conforming_strings = on;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
DO $do$
DECLARE
    revision text;
BEGIN
    IF current_setting('search_path') OPERATOR(pg_catalog.<>) 'pg_catalog, pg_temp' THEN
        RAISE EXCEPTION 'the script needs one transaction'
            USING ERRCODE = 'no_active_sql_transaction',
                HINT = 'textsim db sql prints it with a transaction of its own.';
    END IF;
    IF to_regclass('textsim.alembic_version') IS NOT NULL THEN
        EXECUTE 'SELECT v.version_num FROM textsim.alembic_version v' INTO revision;
    END IF;
    IF revision <> ':revision' THEN
        RAISE EXCEPTION 'the schema is at revision %; this script needs :revision', revision
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Run the steps of sql/upgrade/ that follow its revision, or: textsim db install.';
    END IF;
END $do$;
