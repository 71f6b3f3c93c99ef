-- The parts of tables that must exist. `textsim check` compares the list with the catalog. Functions and
-- views are not among them: a call of a missing one fails, and `textsim db install` makes them anew. This file comes last.

-- The revisions whose clients this schema serves. Each step adds its own. A step that older clients cannot work with
-- removes theirs.
CREATE OR REPLACE FUNCTION textsim._served_revisions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{0001_schema,0002_leave_equal_documents}'::text[];

CREATE TABLE IF NOT EXISTS textsim.installed (
    kind text NOT NULL,  -- kind of the object, as pg_identify_object() says it
    name text NOT NULL,  -- name of the object
    hash text NOT NULL,  -- the MD5 hash of its definition
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE textsim.installed
    IS 'The tables of the schema and their parts, as they were installed.';

-- The tables of the schema and their parts as they are, without those of corpora and attached tables.
-- With these settings the server prints every definition alike. Comments and rights of tables may be changed freely.
CREATE OR REPLACE FUNCTION textsim._catalog() RETURNS SETOF textsim.installed
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
SET standard_conforming_strings = on SET intervalstyle = postgres SET bytea_output = hex SET jit = off AS $$
BEGIN
    RETURN QUERY
    WITH relation AS (
        SELECT c.oid, c.relkind, c.relpersistence, c.relrowsecurity FROM pg_class c
        WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'i', 'S', 'c')
            AND c.relname !~ '^alembic|_[0-9]+'  -- the relations of a corpus have its number
    ), object (class, id, place, definition) AS (
        SELECT 'pg_class'::regclass, r.oid, 0, concat_ws(' ', r.relpersistence, r.relrowsecurity,
            pg_get_indexdef(i.indexrelid), i.indisvalid AND i.indisready)
        FROM relation r LEFT JOIN pg_index i ON i.indexrelid = r.oid
        UNION ALL
        SELECT 'pg_class'::regclass, r.oid, a.attnum, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
            a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
        FROM relation r
        JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
        WHERE r.relkind = 'r'
        UNION ALL
        SELECT 'pg_constraint'::regclass, c.oid, 0, pg_get_constraintdef(c.oid)
        -- From PostgreSQL 18 on, NOT NULL is a constraint, too.
        FROM relation r JOIN pg_constraint c ON c.conrelid = r.oid AND c.contype IN ('p', 'u', 'f', 'c')
        UNION ALL
        SELECT 'pg_trigger'::regclass, t.oid, 0, concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled)
        FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid AND NOT t.tgisinternal
        UNION ALL
        SELECT 'pg_policy'::regclass, p.oid, 0, concat_ws(' ', p.polcmd, pg_get_expr(p.polqual, p.polrelid),
            pg_get_expr(p.polwithcheck, p.polrelid))
        FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
    )
    SELECT replace(n.type, 'table ', ''), n.identity, md5(o.definition)
    FROM object o CROSS JOIN LATERAL pg_identify_object(o.class, o.id, o.place) n;
END $$;

-- The objects of the schema that are missing or changed, and what mends them.
CREATE OR REPLACE FUNCTION textsim._wrong_objects() RETURNS TABLE (kind text, name text, detail text, remedy text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY
    SELECT i.kind, i.name, CASE WHEN c.hash IS NULL THEN 'it does not exist' ELSE 'it is not as it was installed' END,
        -- The files create what is missing. They replace no part of a table, and no relation.
        CASE WHEN c.hash IS NULL AND i.kind NOT IN ('column', 'constraint') THEN 'textsim db install'
            WHEN i.kind IN ('trigger', 'policy') THEN format('DROP %s %s; then: textsim db install', i.kind, i.name)
            ELSE 'alter it as textsim db sql creates it, or restore the database from a backup' END
    FROM textsim.installed i LEFT JOIN textsim._catalog() c ON c.kind = i.kind AND c.name = i.name
    WHERE c.hash IS DISTINCT FROM i.hash
        AND NOT EXISTS (  -- a part of a table that does not exist
            SELECT FROM textsim.installed t
            WHERE t.kind = 'table' AND to_regclass(t.name) IS NULL
                AND (starts_with(i.name, t.name || '.') OR i.name LIKE '% on ' || t.name))
    UNION ALL
    SELECT 'table', 'textsim.installed', 'it has no rows', 'textsim db install'
    WHERE NOT EXISTS (SELECT FROM textsim.installed)
    UNION ALL
    SELECT 'function', p.oid::regprocedure::text, 'everyone may call it with the rights of its owner', 'textsim db install'
    FROM pg_proc p
    WHERE p.pronamespace = 'textsim'::regnamespace AND p.prosecdef AND p.proname !~ '_[0-9]+$'
        AND has_function_privilege('public', p.oid, 'EXECUTE')
    ORDER BY 1, 2;
END $$;

-- The objects of a corpus that are missing or changed, and what mends them. Without a column, every statement fails.
CREATE OR REPLACE FUNCTION textsim._wrong_objects(c textsim.corpus)
RETURNS TABLE (kind text, name text, detail text, remedy text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
SET standard_conforming_strings = on SET jit = off AS $$
DECLARE
    is_tracked boolean := EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = c.id);
    missing constant text := 'it does not exist';
    changed constant text := 'it is not as it was created';
    callable constant text := 'everyone may call it with the rights of its owner';
BEGIN
    RETURN QUERY SELECT 'owner', o.object, 'it ' || o.problem, split_part(o.problem, 'as a superuser, ', 2)
        FROM textsim._owner_problems(c) o;
    RETURN QUERY
    WITH relation AS (
        SELECT r.kind, format('textsim.%I', r.name) AS name, r.statement, o.oid, o.relpersistence, o.relrowsecurity,
            pg_get_indexdef(i.indexrelid) AS index, i.indisvalid AND i.indisready AS is_valid
        FROM (
            SELECT * FROM textsim._corpus_relations(c)
            UNION ALL SELECT * FROM textsim._tracking_relations(c.id) WHERE is_tracked
        ) r
        LEFT JOIN pg_class o ON o.oid = to_regclass(format('textsim.%I', r.name))
        LEFT JOIN pg_index i ON i.indexrelid = o.oid
    )
    SELECT r.kind, r.name, w.detail, w.remedy
    FROM relation r CROSS JOIN LATERAL (VALUES
        -- The rows of a new band table are missing at the next check, and a rebuild adds them.
        (r.oid IS NULL, missing, CASE WHEN r.name ~ '[.](document|word)_[0-9]+$' THEN 'restore the database from a backup'
            ELSE r.statement END),
        (r.index <> r.statement, changed, format('DROP INDEX %s; %s', r.name, r.statement)),
        (NOT r.is_valid AND r.index = r.statement, 'it is not valid', 'REINDEX INDEX ' || r.name),
        (r.kind = 'table' AND r.relpersistence = 'u', 'it is unlogged: a crash of the server empties it',
            format('ALTER TABLE %s SET LOGGED', r.name)),
        (r.relrowsecurity, 'row security hides documents of it',
            format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', r.name))) w (is_wrong, detail, remedy)
    WHERE w.is_wrong;
    RETURN QUERY
    SELECT 'function', format('textsim._changes_%s()', s.id),
        CASE WHEN p.oid IS NULL THEN missing || ', so changes are missed' WHEN m.is_made THEN callable ELSE changed END,
        CASE WHEN m.is_made THEN format('REVOKE ALL ON FUNCTION textsim._changes_%s() FROM PUBLIC', s.id)
            ELSE format('SELECT textsim.detach(%L, %L); then attach it again: textsim attach', c.name, s.relation) END
    FROM textsim.source s LEFT JOIN pg_proc p ON p.oid = textsim._trigger_function(s.id)
    CROSS JOIN LATERAL (
        SELECT (p.prosrc = textsim._trigger_body(s) AND p.prosecdef
            AND p.proconfig @> '{"search_path=pg_catalog, pg_temp",TimeZone=UTC,DateStyle=ISO}') IS TRUE OFFSET 0
    ) m (is_made)
    WHERE s.corpus_id = c.id AND s.active AND EXISTS (SELECT FROM pg_class r WHERE r.oid = s.relation)
        AND (NOT m.is_made OR has_function_privilege('public', p.oid, 'EXECUTE'))
    UNION ALL
    SELECT 'trigger', format('textsim.%I.%I', g.relation, g.name),
        'it does not exist, is disabled or was changed, so changes are missed',
        format('DROP TRIGGER IF EXISTS %I ON textsim.%I; %s', g.name, g.relation, g.statement)
    FROM (
        SELECT t.relation, t.name, t.statement FROM textsim._passage_triggers(c) t WHERE c.passages IS NOT NULL
        UNION ALL SELECT t.relation, t.name, t.statement FROM textsim._tracking_triggers(c.id) t WHERE is_tracked
    ) g
    WHERE NOT EXISTS (
        SELECT FROM pg_trigger o
        WHERE o.tgrelid = to_regclass('textsim.' || g.relation) AND o.tgname = g.name AND o.tgenabled IN ('O', 'A')
            AND pg_get_triggerdef(o.oid) = g.statement);
END $$;

DO $do$
DECLARE
    closed regprocedure;
BEGIN
    -- The functions of corpora and attached tables are made from templates of these files.
    PERFORM textsim._make_functions(c.id) FROM textsim.corpus c;
    PERFORM textsim._make_trigger_function(s) FROM textsim.source s WHERE s.active;
    -- Every role may call the functions of the schema, which PostgreSQL allows unless the owner's default privileges forbid
    -- it. Tables are protected by their own rights. A function with the rights of the owner says itself who may call it.
    FOR closed IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND NOT p.prosecdef
            AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
    LOOP
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', closed);
    END LOOP;
END $do$;

-- If these files run again, they have altered no table, so the record stays.
INSERT INTO textsim.installed SELECT * FROM textsim._catalog() ON CONFLICT DO NOTHING;
