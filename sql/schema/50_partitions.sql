-- The partitions of a corpus. Private: whatever creates or drops a corpus calls these.

-- Private functions

CREATE FUNCTION textsim._grant_like(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT a.grantee, a.privilege_type
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.oid = parent AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', entry.privilege_type, partition,
            CASE entry.grantee WHEN 0 THEN 'PUBLIC' ELSE entry.grantee::regrole::text END);
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim._grant_like(regclass, regclass)
    IS 'grant on a partition what is granted on its parent: partitions are read directly';

CREATE FUNCTION textsim._create_partitions(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
BEGIN
    -- The tables are created first and attached later: CREATE TABLE ... PARTITION OF would wait for every
    -- reader of every other corpus. Documents of up to about 1,500 words stay in their row, so that a
    -- look-up reads one page.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.document INCLUDING ALL) WITH (toast_tuple_target = 8160)',
        document_table);
    -- No condition uses these columns, and ANALYZE takes longest for their statistics.
    EXECUTE format(
        'ALTER TABLE textsim.%I ALTER word_ids SET STATISTICS 0, ALTER signature SET STATISTICS 0, '
        'ALTER normal_form SET STATISTICS 0', document_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', document_table, 'documents of one corpus');
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (id)', document_table || '_id', document_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (key)', document_table || '_key', document_table);
    -- Vacuumed sooner than by default: with a fifth of dead rows the index is twice as large.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.band INCLUDING ALL) '
        'WITH (autovacuum_vacuum_scale_factor = 0.05)', band_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', band_table, 'band rows of one corpus');
    -- A bucket is a hash seeded with its band, so that the index does not need the band.
    EXECUTE format(
        'CREATE INDEX %I ON textsim.%I (bucket, document_id)', band_table || '_bucket', band_table);
    EXECUTE format(
        'ALTER TABLE textsim.document ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        document_table, corpus_id);
    EXECUTE format(
        'ALTER TABLE textsim.band ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        band_table, corpus_id);
    PERFORM textsim._grant_like('textsim.document', format('textsim.%I', document_table)::regclass);
    PERFORM textsim._grant_like('textsim.band', format('textsim.%I', band_table)::regclass);
END $$;
COMMENT ON FUNCTION textsim._create_partitions(integer) IS 'create the partitions of a corpus';

CREATE FUNCTION textsim._drop_partitions(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
    holds_bands boolean;
    patience interval := current_setting('lock_timeout')::interval;
    start timestamptz := clock_timestamp();
BEGIN
    PERFORM textsim._refuse_views(corpus_id, false);
    -- DROP TABLE alone would lock the parents, and with them every other corpus, while it waits for the
    -- users of this corpus. Searches lock the band rows first, so that waiting for these is safe. A holder
    -- of another lock may wait for the band rows: then let go, and try again.
    LOOP
        holds_bands := false;
        BEGIN
            EXECUTE format('LOCK TABLE textsim.%I', band_table);
            holds_bands := true;
            EXECUTE format('LOCK TABLE textsim.%I NOWAIT', document_table);
            LOCK TABLE ONLY textsim.document, ONLY textsim.band NOWAIT;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            IF NOT holds_bands OR patience > '0' AND clock_timestamp() > start + patience THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.05 + random() * 0.05);
        END;
    END LOOP;
    EXECUTE format('DROP TABLE textsim.%I', document_table);
    EXECUTE format('DROP TABLE textsim.%I', band_table);
    -- A change that was logged while its table moved to a rebuilt corpus stays: it must be indexed.
    DELETE FROM textsim.pending p
    WHERE p.corpus_id = _drop_partitions.corpus_id
        AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = p.source_id);
END $$;
COMMENT ON FUNCTION textsim._drop_partitions(integer) IS 'drop the partitions of a corpus';
