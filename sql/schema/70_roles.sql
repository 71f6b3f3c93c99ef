-- Rights. A role that only writes attached tables needs no rights here, and only writers may call the functions that run
-- with the rights of the schema's owner.

REVOKE EXECUTE ON FUNCTION textsim._prepare_source(
    text, regclass, name[], name, text, name, name, name, regclass) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._activate_source(integer, boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._release_source(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._note_shape(integer, text[], text[]) FROM PUBLIC;
-- Triggers call these, whatever the role may do.
REVOKE EXECUTE ON FUNCTION textsim._update_at_commit() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._log_judged() FROM PUBLIC;
-- Only the owner and superusers create corpora.
REVOKE EXECUTE ON FUNCTION textsim._make_function(text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._create_relations(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._create_tracking_relations(integer, integer) FROM PUBLIC;

-- Whether this role has a right on the documents of a corpus.
CREATE OR REPLACE FUNCTION textsim._may(privilege text, corpus_id integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN has_table_privilege(to_regclass('textsim.document_' || corpus_id), privilege);

DO $do$
DECLARE
    missing record;
BEGIN
    FOR missing IN
        SELECT p.* FROM (VALUES
            -- The shingles that a corpus has learned, and the keys of its log, tell of its texts.
            ('common', 'readers', $$FOR SELECT USING (textsim._may('SELECT', corpus_id))$$),
            ('boilerplate', 'readers', $$FOR SELECT USING (textsim._may('SELECT', corpus_id))$$),
            ('forgotten', 'readers', $$FOR SELECT USING (textsim._may('SELECT', corpus_id))$$),
            ('forgotten', 'writers', $$FOR INSERT WITH CHECK (textsim._may('DELETE', corpus_id))$$),
            ('expiry_look', 'readers', $$FOR SELECT USING (textsim._may('SELECT', corpus_id))$$),
            ('expiry_look', 'writers', $$USING (textsim._may('DELETE', corpus_id))$$),
            ('pending', 'readers', $$FOR SELECT USING (textsim._may('SELECT', corpus_id))$$),
            ('pending', 'writers', $$USING (textsim._may('INSERT', corpus_id))$$),
            -- Nobody judges under the name of another role.
            ('judgement', 'readers', $$FOR SELECT USING (textsim._has_right(origin, 'SELECT'))$$),
            ('judgement', 'writers_insert', $$FOR INSERT
                WITH CHECK (textsim._has_right(origin, 'INSERT') AND judged_by = current_user)$$),
            ('judgement', 'writers_update', $$FOR UPDATE USING (textsim._has_right(origin, 'UPDATE'))
                WITH CHECK (textsim._has_right(origin, 'UPDATE') AND judged_by = current_user)$$),
            ('judgement', 'writers_delete', $$FOR DELETE USING (textsim._has_right(origin, 'DELETE'))$$),
            -- An old row shows what the table shows. Nobody brings a row back that another role has made up.
            ('merged_row', 'readers', $$FOR SELECT USING (merged_by = current_user
                OR has_table_privilege(relation, 'SELECT') AND NOT row_security_active(relation))$$),
            ('merged_row', 'writers', $$USING (merged_by = current_user)
                WITH CHECK (merged_by = current_user AND textsim._has_right(origin, 'INSERT'))$$),
            ('merged_row', 'writers_delete', $$FOR DELETE USING (textsim._has_right(origin, 'DELETE'))$$))
            p (relation, name, definition)
        WHERE NOT EXISTS (
            SELECT FROM pg_policy o
            WHERE o.polrelid = to_regclass('textsim.' || p.relation) AND o.polname = p.name)
    LOOP
        EXECUTE format('ALTER TABLE textsim.%I ENABLE ROW LEVEL SECURITY', missing.relation);
        EXECUTE format('CREATE POLICY %I ON textsim.%I %s', missing.name, missing.relation, missing.definition);
    END LOOP;
END $do$;

-- Roles may have got their rights before these tables were there.
DO $do$ BEGIN
    PERFORM textsim._grant_like('textsim.pending', 'textsim.expiry_look'),
        textsim._grant_like('textsim.judgement', 'textsim.merged_row');
END $do$;

-- The tables of a corpus; NULL: of all corpora, and their patterns.
CREATE OR REPLACE FUNCTION textsim._tables_of(corpus_id integer) RETURNS regclass[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN array(
    SELECT r.oid::regclass FROM pg_class r
    WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind = 'r'
        AND r.relname ~ format('^(%s)%s$', textsim._corpus_patterns(), coalesce('_' || corpus_id, '(_[0-9]+)?'))
    ORDER BY r.oid);

-- The tables of these corpora; of all, with their patterns, if none is named.
CREATE OR REPLACE FUNCTION textsim._tables_to_grant(corpora text[]) RETURNS regclass[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN corpora = '{}' THEN textsim._tables_of(NULL) ELSE array(
    SELECT t FROM unnest(corpora) n CROSS JOIN LATERAL unnest(textsim._tables_of((textsim._corpus(n)).id)) t) END;

CREATE OR REPLACE FUNCTION textsim.grant_reader(role regrole, VARIADIC corpora text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM textsim._check_given('the role', role IS NOT NULL);
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    -- Without the patterns, because new corpora copy the rights of the patterns, and without the parent of all corpora's
    -- tables, which would count their rows.
    EXECUTE format('GRANT SELECT ON %s TO %s', (
        SELECT string_agg(r.oid::regclass::text, ', ' ORDER BY r.oid)
        FROM pg_class r
        WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind IN ('r', 'v') AND (corpora = '{}'
            OR r.oid <> ALL (textsim._tables_of(NULL) || 'textsim.corpus_table'::regclass)
            OR r.oid = ANY (textsim._tables_to_grant(corpora)))), role);
    PERFORM textsim._grant_ids(c.id) FROM textsim.corpus c;
END $$;
COMMENT ON FUNCTION textsim.grant_reader(regrole, text[])
    IS 'Lets a role search these corpora and read their judgements; if none is named, every corpus, including corpora that '
    'are created later. The role can also read what all corpora share: their names and settings.';

CREATE OR REPLACE FUNCTION textsim.grant_writer(role regrole, VARIADIC corpora text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
SET jit = off AS $$
DECLARE
    relations regclass[] := textsim._tables_to_grant(corpora);
BEGIN
    PERFORM textsim.grant_reader(role, VARIADIC corpora);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON textsim.pending, textsim.worker, textsim.judgement, textsim.merged_row, '
        'textsim.expiry_look, %s TO %s', (
        SELECT string_agg(r::text, ', ') FROM unnest(relations) r WHERE r::text !~ '^textsim.word'), role);
    -- Not the column id: only the sequence gives out ids.
    EXECUTE format('GRANT INSERT (corpus_id, documents) ON textsim.forgotten TO %s', role);
    EXECUTE format('GRANT INSERT (hash, word) ON %s TO %s', (
        SELECT string_agg(r::text, ', ') FROM unnest(relations) r WHERE r::text ~ '^textsim.word'), role);
    PERFORM textsim._grant_ids(c.id) FROM textsim.corpus c;
    EXECUTE format('GRANT EXECUTE ON FUNCTION '
        'textsim._prepare_source(text, regclass, name[], name, text, name, name, name, regclass), '
        'textsim._activate_source(integer, boolean), textsim._release_source(integer), '
        'textsim._note_shape(integer, text[], text[]) TO %s', role);
END $$;
COMMENT ON FUNCTION textsim.grant_writer(regrole, text[])
    IS 'Lets a role search and write these corpora, judge their documents, attach tables that it owns, and run workers; if '
    'none is named, every corpus, including corpora that are created later.';

CREATE OR REPLACE FUNCTION textsim.revoke_all(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    objects text;
BEGIN
    PERFORM textsim._check_given('the role', role IS NOT NULL);
    FOREACH objects IN ARRAY ARRAY['ALL FUNCTIONS IN SCHEMA textsim', 'ALL TABLES IN SCHEMA textsim',
        'ALL SEQUENCES IN SCHEMA textsim', 'SCHEMA textsim']
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', objects, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim.revoke_all(regrole)
    IS 'Takes back every right that grant_reader and grant_writer gave to a role.';

-- pg_dump keeps the owners of a corpus's tables, but not those of an extension's members.
CREATE OR REPLACE FUNCTION textsim.set_owner(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    object text;
BEGIN
    PERFORM textsim._check_given('the role', role IS NOT NULL);
    FOR object IN
        SELECT o.object FROM (
            SELECT 1, 'SCHEMA textsim'
            FROM pg_namespace n WHERE n.nspname = 'textsim' AND n.nspowner <> role
            UNION ALL
            SELECT 2, format('%s %s',
                CASE r.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, r.oid::regclass)
            FROM pg_class r
            WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind IN ('r', 'v', 'S')
                AND r.relowner <> role
                -- The sequence of a column goes with its table.
                AND NOT (r.relkind = 'S' AND EXISTS (
                    SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = r.oid AND d.deptype IN ('a', 'i')
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0))
            UNION ALL
            SELECT 3, format('ROUTINE %s', p.oid::regprocedure)
            FROM pg_proc p WHERE p.pronamespace = 'textsim'::regnamespace AND p.proowner <> role
        ) o (place, object)
        ORDER BY o.place, o.object
    LOOP
        EXECUTE format('ALTER %s OWNER TO %s', object, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim.set_owner(regrole)
    IS 'Makes a role the owner of the schema and of everything in it, which needs the rights of both owners. '
    'A superuser calls it after a restore, if the schema is an extension that another role has created.';
