-- pg_dump skips the objects of an extension, except the rows of these tables and the state of these sequences.
-- Tables that CREATE EXTENSION itself fills are not among them, such as Alembic's, nor the running workers. The
-- tables, sequences and functions of a corpus do not belong to the extension, so pg_dump includes them anyway.
DO $$
DECLARE
    relation regclass;
BEGIN
    FOR relation IN
        SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
        JOIN pg_catalog.pg_extension e
            ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
        WHERE e.extname = 'textsim' AND d.deptype = 'e' AND c.relkind IN ('r', 'S')
            AND c.relname NOT IN (
                'alembic_version', 'installed', 'worker', 'corpus_table')
            AND c.relname !~ ('^(' || textsim._corpus_patterns() || ')$')
    LOOP
        PERFORM pg_catalog.pg_extension_config_dump(relation, '');
    END LOOP;
END
$$;
