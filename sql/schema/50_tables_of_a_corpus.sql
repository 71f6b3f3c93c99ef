-- The relations and functions of a corpus. Creating and dropping a corpus call these functions.

-- The names of the patterns of the tables of corpora, as a regular expression.
CREATE OR REPLACE FUNCTION textsim._corpus_patterns() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'word|document|band|passage|node|match|crowded|member|cluster|cluster_alias|cluster_event|removed';

-- Grant on a relation the rights that are granted on a pattern.
CREATE OR REPLACE FUNCTION textsim._grant_like(pattern regclass, relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT a.privilege_type,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
        FROM pg_class c
        CROSS JOIN LATERAL (
            SELECT x.privilege_type, x.grantee FROM aclexplode(c.relacl) x
            UNION ALL
            SELECT format('%s (%I)', x.privilege_type, k.attname), x.grantee
            FROM pg_attribute k CROSS JOIN aclexplode(k.attacl) x WHERE k.attrelid = c.oid
        ) a
        WHERE c.oid = pattern AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', entry.privilege_type, relation, entry.role);
    END LOOP;
END $$;

-- Let the roles that may insert documents into a corpus use its sequences, and readers see its count of refused twins.
CREATE OR REPLACE FUNCTION textsim._grant_ids(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT s.oid::regclass AS sequence,
            CASE a.privilege_type WHEN 'INSERT' THEN 'USAGE' ELSE 'SELECT' END AS privilege,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        JOIN pg_class s ON s.oid IN (
            to_regclass(format('textsim.document_%s_id_seq', corpus_id)),
            to_regclass(format('textsim.node_%s_id_seq', corpus_id)),
            to_regclass(format('textsim.twin_%s_seq', corpus_id)),
            'textsim.cluster_id_seq'::regclass)
        WHERE c.oid = to_regclass('textsim.document_' || corpus_id) AND a.grantee <> c.relowner
            AND (a.privilege_type = 'INSERT' OR a.privilege_type = 'SELECT' AND s.relname ~ '^twin')
    LOOP
        EXECUTE format('GRANT %s ON SEQUENCE %s TO %s', entry.privilege, entry.sequence, entry.role);
    END LOOP;
END $$;

-- Count twins that a unique corpus has kept out, also if their transaction is rolled back then. No writer waits for
-- another one.
CREATE OR REPLACE FUNCTION textsim._count_twins(corpus_id integer, twins integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM nextval(to_regclass(format('textsim.twin_%s_seq', corpus_id))) FROM generate_series(1, twins);
END $$;

-- The columns of a corpus that never change; a rebuild makes another corpus.
CREATE OR REPLACE FUNCTION textsim._settings(c textsim.corpus) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
-- Numbers are written with all their digits, and intervals in one style, whatever the caller has set.
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 SET intervalstyle = postgres AS $$
BEGIN
    RETURN to_jsonb(c) - '{id,name,origin,created_at,created_with}'::text[];
END $$;

-- The tables, indexes and sequences of a corpus, with the statements that create them; check compares the definitions.
-- The definitions of indexes are written as the server prints them. The entries of the indexes on buckets and on
-- fingerprints are distinct, so to look for equal ones would only take time. Fingerprints take the most bytes, so their
-- pages are filled more than by default.
CREATE OR REPLACE FUNCTION textsim._corpus_relations(c textsim.corpus)
RETURNS TABLE (kind text, name text, statement text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 6 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document text := 'document_' || c.id;
BEGIN
    RETURN QUERY
        SELECT 'table', format('%s_%s', t.pattern, c.id), format(
            'CREATE TABLE textsim.%I (LIKE textsim.%I INCLUDING ALL) INHERITS (textsim.corpus_table)%s%s',
            format('%s_%s', t.pattern, c.id), t.pattern, t.options, t.changes)
        FROM (VALUES
            ('word', '', format('; ALTER TABLE textsim.%I ALTER id ADD GENERATED ALWAYS AS IDENTITY', 'word_' || c.id)),
            -- Two documents of up to about 900 words fit into a page. Longer word arrays are stored out of line.
            ('document', ' WITH (toast_tuple_target = 4080)', concat(
                CASE WHEN c.bands IS NULL THEN
                    format('; ALTER TABLE textsim.%I ALTER signature TYPE integer[]', document) END,
                CASE WHEN c.unit = 'char' THEN format(
                    '; ALTER TABLE textsim.%I ADD CONSTRAINT document_no_word_ids CHECK (word_ids IS NULL)', document) END,
                CASE WHEN c.scoped THEN format('; ALTER TABLE textsim.%I ALTER scope SET NOT NULL', document) END)),
            -- Vacuum sooner than by default: with one dead row in five, the index is twice as large.
            ('band', ' WITH (autovacuum_vacuum_scale_factor = 0.05)', ''),
            ('passage', ' WITH (autovacuum_vacuum_scale_factor = 0.05)', '')) t (pattern, options, changes)
        WHERE t.pattern <> 'passage' OR c.passages IS NOT NULL;
    RETURN QUERY
        SELECT 'index', format('%s_%s_%s', i.pattern, c.id, i.suffix), format(
            'CREATE %sINDEX %I ON textsim.%I USING btree (%s)', i.uniqueness,
            format('%s_%s_%s', i.pattern, c.id, i.suffix), format('%s_%s', i.pattern, c.id), i.columns)
        FROM (VALUES
            ('word', 'id', 'UNIQUE ', 'id', true), ('word', 'hash', 'UNIQUE ', 'hash', true),
            ('document', 'id', 'UNIQUE ', 'id', true), ('document', 'key', 'UNIQUE ', 'key', true),
            ('document', 'expires', '', 'expires_at', c.keep_for IS NOT NULL),
            ('document', 'guard', '', 'guard', c.guards <> '{}'), ('document', 'part', '', 'part', c.scoped),
            ('band', 'bucket', '', 'bucket, document_id) WITH (deduplicate_items=off', true),
            ('passage', 'fingerprint', '', 'fingerprint, document_id) WITH (deduplicate_items=off, fillfactor=''95''',
                c.passages IS NOT NULL)) i (pattern, suffix, uniqueness, columns, exists)
        WHERE i.exists;
    RETURN QUERY SELECT 'sequence', document || '_id_seq', format(
        'CREATE SEQUENCE textsim.%I AS integer OWNED BY textsim.%I.id', document || '_id_seq', document);
    RETURN QUERY SELECT 'sequence', s.name, format('CREATE SEQUENCE textsim.%I OWNED BY textsim.%I.id', s.name, document)
        FROM (SELECT format('twin_%s_seq', c.id) AS name) s WHERE c.is_unique;
END $$;

-- Some servers that speak PostgreSQL's protocol accept advisory locks and do nothing.
CREATE OR REPLACE FUNCTION textsim._check_advisory_locks() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    class integer := hashtext('textsim-db locks');
BEGIN
    PERFORM pg_advisory_xact_lock(class, pg_backend_pid());
    IF NOT EXISTS (
        SELECT FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() AND l.granted
            AND l.classid::bigint = class::bigint & 4294967295 AND l.objid::bigint = pg_backend_pid())
    THEN
        RAISE EXCEPTION 'this server does not keep advisory locks, and a unique corpus would store twins'
            USING ERRCODE = 'feature_not_supported', HINT = 'Use a server of PostgreSQL.';
    END IF;
END $$;

-- Create a table, an index or a sequence of a corpus; a table with the rights that another relation gives.
CREATE OR REPLACE FUNCTION textsim._create_relation(kind text, name text, statement text, rights_of text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    relation text := format('textsim.%I', name);
BEGIN
    EXECUTE statement;
    IF kind <> 'index' THEN
        EXECUTE format('COMMENT ON %s %s IS %L', kind, relation, 'Belongs to one corpus.');
    END IF;
    IF kind = 'table' THEN
        PERFORM textsim._grant_like(rights_of::regclass, relation::regclass);
    END IF;
END $$;

-- Create the tables, the sequence and the functions of a corpus, and record its settings.
CREATE OR REPLACE FUNCTION textsim._create_relations(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = corpus_id);
    trigger text;
BEGIN
    IF c.is_unique THEN
        PERFORM textsim._check_advisory_locks();
    END IF;
    PERFORM textsim._create_relation(r.kind, r.name, r.statement, 'textsim.' || split_part(r.name, '_', 1))
    FROM textsim._corpus_relations(c) r;
    -- No condition uses these columns, or a unique index says enough of them. Their statistics would take most of the
    -- time of ANALYZE, and texts in them would outlive the texts of the documents.
    EXECUTE format(
        'ALTER TABLE textsim.%I ALTER word_ids SET STATISTICS 0, ALTER signature SET STATISTICS 0, '
        'ALTER fingerprints SET STATISTICS 0, ALTER normal_form SET STATISTICS 0, ALTER key SET STATISTICS 0, '
        'ALTER scope SET STATISTICS 0, ALTER guard SET STATISTICS 0', 'document_' || corpus_id);
    EXECUTE format('ALTER TABLE textsim.%I ALTER word SET STATISTICS 0', 'word_' || corpus_id);
    FOR trigger IN SELECT t.statement FROM textsim._passage_triggers(c) t LOOP
        EXECUTE trigger;
    END LOOP;
    PERFORM textsim._grant_ids(corpus_id);
    PERFORM textsim._make_functions(corpus_id);
    UPDATE textsim.corpus k
    SET created_with = textsim._settings(k) || jsonb_build_object('guard_lists', textsim._guard_lists())
    WHERE k.id = corpus_id;
END $$;

-- Wait for all readers and writers of a corpus, and for an update of its clusters, and keep new ones out.
CREATE OR REPLACE FUNCTION textsim._lock_relations(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    holds_bands boolean;
    patience interval := current_setting('lock_timeout')::interval;
    start timestamptz := clock_timestamp();
BEGIN
    -- Searches lock the band table first, so waiting for it is safe. A writer locks the document table first, and
    -- may wait for our lock on the band table, or at its commit for the lock of the clusters. So these locks do not
    -- wait: if one fails, all locks are released and tried again.
    LOOP
        holds_bands := false;
        BEGIN
            EXECUTE format('LOCK TABLE textsim.%I', format('band_%s', corpus_id));
            holds_bands := true;
            IF to_regclass('textsim.passage_' || corpus_id) IS NOT NULL THEN
                EXECUTE format('LOCK TABLE textsim.%I NOWAIT', 'passage_' || corpus_id);
            END IF;
            EXECUTE format('LOCK TABLE textsim.%I NOWAIT', format('document_%s', corpus_id));
            EXIT WHEN textsim._lock_clusters(corpus_id, false);
            RAISE EXCEPTION 'could not obtain the lock of the clusters of corpus %', corpus_id
                USING ERRCODE = 'lock_not_available';
        EXCEPTION WHEN lock_not_available THEN
            IF NOT holds_bands OR patience > '0' AND clock_timestamp() > start + patience THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.05 + random() * 0.05);
        END;
    END LOOP;
END $$;

-- Raise an error if a view reads the tables of a corpus, which a rebuild or a drop removes.
CREATE OR REPLACE FUNCTION textsim._refuse_views(corpus_id integer) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    reader pg_class;
BEGIN
    SELECT v.* INTO reader
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid = ANY (textsim._tables_of(corpus_id)::oid[])
    ORDER BY v.oid LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'view % reads the tables of the corpus; drop the view first: DROP %VIEW %',
            reader.oid::regclass, CASE reader.relkind WHEN 'm' THEN 'MATERIALIZED ' ELSE '' END, reader.oid::regclass
            USING ERRCODE = 'dependent_objects_still_exist',
                HINT = 'A view of the functions, such as textsim.neighbours(), follows a rebuild.';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION textsim._drop_relations(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    kind text;
BEGIN
    PERFORM textsim._refuse_views(corpus_id);
    PERFORM textsim._lock_relations(corpus_id);
    PERFORM textsim._drop_tracking(corpus_id);
    EXECUTE (SELECT 'DROP TABLE ' || string_agg(t::text, ', ') FROM unnest(textsim._tables_of(corpus_id)) t);
    FOREACH kind IN ARRAY ARRAY['candidates', 'write', 'mates', 'distinct', 'normal_form_of', 'word_numbers'] LOOP
        EXECUTE format('DROP FUNCTION textsim.%I', format('_%s_%s', kind, corpus_id));
    END LOOP;
    -- Keep the changes of a table that has moved to a rebuilt corpus: they must be indexed there.
    DELETE FROM textsim.pending p
    WHERE p.corpus_id = _drop_relations.corpus_id
        AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = p.source_id);
END $$;
