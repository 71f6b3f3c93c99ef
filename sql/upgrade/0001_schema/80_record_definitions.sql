-- The record of the installation: the definition of every object of the schema. `textsim doctor` compares the
-- record with the catalog. This file comes last, and a later step of the schema ends with
-- `SELECT textsim._record_catalog()`.

CREATE TABLE textsim.installed (
    kind text NOT NULL,
    name text NOT NULL,
    definition text NOT NULL,
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE textsim.installed
    IS 'The definitions of the objects of the schema, as they were installed.';
COMMENT ON COLUMN textsim.installed.kind
    IS 'kind of the object: table, view, type, sequence, column, constraint, index, trigger, policy or function';
COMMENT ON COLUMN textsim.installed.name IS 'name of the object';
COMMENT ON COLUMN textsim.installed.definition
    IS 'its definition; of a function or a view, the MD5 hash of the definition';

-- Private functions

-- With this search_path all names are qualified. Comments and rights of tables may be changed freely. Objects of
-- corpora and of attached tables have numbers in their names; check compares those with their templates.
CREATE FUNCTION textsim._catalog() RETURNS SETOF textsim.installed
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH relation AS (
        SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity FROM pg_class c
        WHERE c.relnamespace = 'textsim'::regnamespace AND c.relname <> 'alembic_version'
            AND c.relname !~ '_[0-9]+'  -- the tables of corpora have their numbers
    )
    SELECT CASE r.relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' ELSE 'table' END,
        format('textsim.%I', r.relname),
        concat_ws(' ', CASE WHEN r.relkind = 'r' THEN
                CASE r.relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' END END,
            CASE WHEN r.relrowsecurity THEN 'with row security' END,
            CASE r.relkind WHEN 'v' THEN md5(pg_get_viewdef(r.oid)) END,
            CASE r.relkind WHEN 'S' THEN (
                SELECT format('%s from %s to %s', format_type(s.seqtypid, NULL), s.seqmin, s.seqmax)
                FROM pg_sequence s WHERE s.seqrelid = r.oid) END)
    FROM relation r WHERE r.relkind IN ('r', 'v', 'S', 'c')
    UNION ALL
    SELECT 'column', format('textsim.%I.%I', r.relname, a.attname),
        concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
            CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' END,
            'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid))
    FROM relation r
    JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
    WHERE r.relkind = 'r'
    UNION ALL
    SELECT 'constraint', format('textsim.%I.%I', r.relname, c.conname), pg_get_constraintdef(c.oid)
    FROM relation r JOIN pg_constraint c ON c.conrelid = r.oid
    -- From PostgreSQL 18 on, NOT NULL is a constraint, too.
    WHERE c.contype IN ('p', 'u', 'f', 'c')
    UNION ALL
    SELECT 'index', format('textsim.%I', x.relname),
        pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid AND i.indisready THEN '' ELSE ' (invalid)' END
    FROM relation r
    JOIN pg_index i ON i.indrelid = r.oid
    JOIN pg_class x ON x.oid = i.indexrelid
    WHERE r.relkind = 'r'
    UNION ALL
    SELECT 'trigger', format('textsim.%I.%I', r.relname, t.tgname),
        pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'O' THEN '' ELSE ' (not enabled)' END
    FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid
    WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'policy', format('textsim.%I.%I', r.relname, p.polname),
        concat_ws(' ', 'FOR ' || p.polcmd::text, 'USING ' || pg_get_expr(p.polqual, p.polrelid),
            'WITH CHECK ' || pg_get_expr(p.polwithcheck, p.polrelid))
    FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
    UNION ALL
    SELECT 'function', format('textsim.%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid)),
        md5(concat_ws(' ', p.prosrc, pg_get_function_sqlbody(p.oid), p.prokind, p.provolatile,
            p.proisstrict, p.proparallel, p.prosecdef, p.proconfig::text, pg_get_function_result(p.oid),
            pg_get_function_arguments(p.oid),
            -- After a restore without rights, everyone may call the functions with the owner's rights.
            p.prosecdef AND has_function_privilege('public', p.oid, 'EXECUTE')))
    FROM pg_proc p
    WHERE p.pronamespace = 'textsim'::regnamespace
        AND p.proname !~ '^_(candidates|write|changes|filter)_[0-9]+$';
END $$;
COMMENT ON FUNCTION textsim._catalog()
    IS 'the objects of the schema with their present definitions, without those of corpora and attached tables';

CREATE FUNCTION textsim._record_catalog() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    DELETE FROM textsim.installed;
    INSERT INTO textsim.installed SELECT * FROM textsim._catalog();
END;
COMMENT ON FUNCTION textsim._record_catalog()
    IS 'record the present definitions as the installed ones; the last statement of an upgrade';

INSERT INTO textsim.installed SELECT * FROM textsim._catalog() ON CONFLICT DO NOTHING;
