-- The relations and functions of a corpus. Creating and dropping a corpus call these functions.

-- Private functions

CREATE FUNCTION textsim._grant_like(pattern regclass, relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT a.privilege_type,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.oid = pattern AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', entry.privilege_type, relation, entry.role);
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim._grant_like(regclass, regclass)
    IS 'grant on a relation the rights that are granted on a pattern';

CREATE FUNCTION textsim._grant_ids(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role text;
BEGIN
    FOR role IN
        SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.oid = to_regclass('textsim.document_' || corpus_id)
            AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT'
    LOOP
        EXECUTE format(
            'GRANT USAGE ON SEQUENCE textsim.%I TO %s', format('document_%s_id_seq', corpus_id), role);
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim._grant_ids(integer)
    IS 'let the roles that may insert documents into a corpus use its sequence of ids';

CREATE FUNCTION textsim._create_relations(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
    id_sequence text := format('document_%s_id_seq', corpus_id);
BEGIN
    -- Two documents of up to about 900 words fit into a page. Longer word arrays are stored out of line.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.document INCLUDING ALL) INHERITS (textsim.corpus_table) '
        'WITH (toast_tuple_target = 4080)', document_table);
    IF (SELECT c.bands IS NULL FROM textsim.corpus c WHERE c.id = corpus_id) THEN
        EXECUTE format('ALTER TABLE textsim.%I ALTER signature TYPE integer[]', document_table);
    END IF;
    -- No condition uses these columns, and their statistics would take most of the time of ANALYZE.
    EXECUTE format(
        'ALTER TABLE textsim.%I ALTER word_ids SET STATISTICS 0, ALTER signature SET STATISTICS 0, '
        'ALTER normal_form SET STATISTICS 0', document_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', document_table, 'The documents of one corpus.');
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (id)', document_table || '_id', document_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (key)', document_table || '_key', document_table);
    EXECUTE format('CREATE SEQUENCE textsim.%I OWNED BY textsim.%I.id', id_sequence, document_table);
    EXECUTE format('COMMENT ON SEQUENCE textsim.%I IS %L', id_sequence, 'ids of the documents of one corpus');
    -- Vacuum sooner than by default: with one dead row in five, the index is twice as large.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.band INCLUDING ALL) INHERITS (textsim.corpus_table) '
        'WITH (autovacuum_vacuum_scale_factor = 0.05)', band_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', band_table, 'The band rows of one corpus.');
    EXECUTE format(
        'CREATE INDEX %I ON textsim.%I (bucket, document_id)', band_table || '_bucket', band_table);
    PERFORM textsim._grant_like('textsim.document', format('textsim.%I', document_table)::regclass);
    PERFORM textsim._grant_like('textsim.band', format('textsim.%I', band_table)::regclass);
    PERFORM textsim._grant_ids(corpus_id);
    PERFORM textsim._make_functions(corpus_id);
END $$;
COMMENT ON FUNCTION textsim._create_relations(integer)
    IS 'create the tables, the sequence and the functions of a corpus';

CREATE FUNCTION textsim._drop_relations(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
    kind text;
    holds_bands boolean;
    patience interval := current_setting('lock_timeout')::interval;
    start timestamptz := clock_timestamp();
BEGIN
    PERFORM textsim._refuse_views(corpus_id, false);
    -- Searches lock the band table first, so waiting for it is safe. A writer locks the document table first,
    -- and may wait for our lock on the band table. So the lock on documents does not wait: if it fails, both
    -- locks are released and tried again.
    LOOP
        holds_bands := false;
        BEGIN
            EXECUTE format('LOCK TABLE textsim.%I', band_table);
            holds_bands := true;
            EXECUTE format('LOCK TABLE textsim.%I NOWAIT', document_table);
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            IF NOT holds_bands OR patience > '0' AND clock_timestamp() > start + patience THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.05 + random() * 0.05);
        END;
    END LOOP;
    EXECUTE format('DROP TABLE textsim.%I, textsim.%I', band_table, document_table);
    FOREACH kind IN ARRAY ARRAY['search', 'write', 'remove'] LOOP
        EXECUTE format('DROP FUNCTION textsim.%I', format('_%s_%s', kind, corpus_id));
    END LOOP;
    -- Keep the changes of a table that has moved to a rebuilt corpus: they must be indexed there.
    DELETE FROM textsim.pending p
    WHERE p.corpus_id = _drop_relations.corpus_id
        AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = p.source_id);
END $$;
COMMENT ON FUNCTION textsim._drop_relations(integer)
    IS 'drop the tables, the sequence and the functions of a corpus';
