-- Making and dropping the partitions of a corpus. Private: called by the functions and clients
-- that create and drop corpora.

CREATE FUNCTION textsim._create_storage(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
BEGIN
    -- Created apart and attached: CREATE TABLE ... PARTITION OF would wait for every reader of
    -- every other corpus. Documents of up to some 1,500 words stay in their row, so that a
    -- look-up reads one page.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.document INCLUDING ALL) WITH (toast_tuple_target = 8160)',
        document_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', document_table, 'documents of one corpus');
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (id)', document_table || '_id', document_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (key)', document_table || '_key', document_table);
    EXECUTE format('CREATE TABLE textsim.%I (LIKE textsim.band INCLUDING ALL)', band_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', band_table, 'band rows of one corpus');
    EXECUTE format(
        'CREATE INDEX %I ON textsim.%I (band, bucket, document_id)',
        band_table || '_bucket', band_table);
    EXECUTE format(
        'ALTER TABLE textsim.document ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        document_table, corpus_id);
    EXECUTE format(
        'ALTER TABLE textsim.band ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        band_table, corpus_id);
END
$$;
COMMENT ON FUNCTION textsim._create_storage(integer) IS 'create the partitions of a corpus';

CREATE FUNCTION textsim._drop_storage(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('DROP TABLE textsim.%I', format('band_%s', corpus_id));
    EXECUTE format('DROP TABLE textsim.%I', format('document_%s', corpus_id));
END
$$;
COMMENT ON FUNCTION textsim._drop_storage(integer) IS 'drop the partitions of a corpus';
