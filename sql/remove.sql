-- Removes everything in the schema except the schema itself and Alembic's table. Fails if an object of a
-- user depends on the schema, such as a view that calls textsim.jaccard.
DO $$
DECLARE
    statement text;
BEGIN
    -- The triggers on attached tables go with their functions. Policies, generated columns and a check call functions.
    FOR statement IN
        SELECT format('DROP FUNCTION %s CASCADE', p.oid::regprocedure) FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.prorettype = 'trigger'::regtype
        UNION ALL
        SELECT format('DROP POLICY %I ON %s', p.polname, c.oid::regclass)
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = 'textsim'::regnamespace
        UNION ALL
        SELECT format('ALTER TABLE %s ALTER %I DROP EXPRESSION', a.attrelid::regclass, a.attname)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind = 'r' AND a.attgenerated <> ''
            AND a.attinhcount = 0
        UNION ALL
        SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', 'textsim.corpus', 'corpus_guards_check')
        WHERE EXISTS (SELECT FROM pg_constraint k
            WHERE k.conrelid = to_regclass('textsim.corpus') AND k.conname = 'corpus_guards_check')
    LOOP
        EXECUTE statement;
    END LOOP;
    -- Drop all objects of a kind in one statement, because they depend on each other.
    FOR statement IN
        SELECT format('DROP %s %s', kind, string_agg(name, ', '))
        FROM (
            SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE'
                    ELSE 'TABLE' END,
                CASE c.relkind WHEN 'v' THEN 1 WHEN 'S' THEN 4 WHEN 'c' THEN 5 ELSE 3 END,
                c.oid::regclass::text
            FROM pg_class c
            WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S', 'c')
                AND NOT c.relispartition AND c.relname <> 'alembic_version'
                -- The sequences of columns go with their tables.
                AND NOT (c.relkind = 'S' AND EXISTS (
                    SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                        AND d.objid = c.oid AND d.deptype IN ('a', 'i')))
            UNION ALL
            SELECT 'ROUTINE', 2, p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'textsim'::regnamespace
        ) object (kind, place, name)
        GROUP BY kind, place
        ORDER BY place
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;
