-- Rights. A role that only writes attached tables needs none. The functions that run with the
-- rights of the schema's owner are for writers.

REVOKE EXECUTE ON FUNCTION textsim._prepare_source(text, regclass, name, name, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._activate_source(integer, boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._release_source(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._note_shape(integer, text[], text[]) FROM PUBLIC;

CREATE FUNCTION textsim.grant_reader(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA textsim TO %s', role);
END
$$;
COMMENT ON FUNCTION textsim.grant_reader(regrole) IS 'let a role search every corpus, and no more';

CREATE FUNCTION textsim._grant_shared(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Not the ids, which are for the sequence alone to give.
    EXECUTE format('GRANT INSERT (hash, word) ON textsim.word TO %s', role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON textsim.pending TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE textsim.document_id TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION '
        'textsim._prepare_source(text, regclass, name, name, text), '
        'textsim._activate_source(integer, boolean), textsim._release_source(integer), '
        'textsim._note_shape(integer, text[], text[]) TO %s', role);
END
$$;
COMMENT ON FUNCTION textsim._grant_shared(regrole)
    IS 'let a role write what all corpora share, as every writer must';

CREATE FUNCTION textsim.grant_writer(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    part regclass;
BEGIN
    PERFORM textsim.grant_reader(role);
    PERFORM textsim._grant_shared(role);
    FOR part IN
        SELECT t.relid FROM pg_partition_tree('textsim.document') t
        UNION ALL SELECT t.relid FROM pg_partition_tree('textsim.band') t
    LOOP
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %s TO %s', part, role);
    END LOOP;
END
$$;
COMMENT ON FUNCTION textsim.grant_writer(regrole)
    IS 'let a role search, add and remove documents, attach tables of its own, and run workers';

CREATE FUNCTION textsim.grant_reader(role regrole, corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(corpus);
    -- Not the parents, through which all partitions can be read.
    shared text := (
        SELECT string_agg(r.oid::regclass::text, ', ')
        FROM pg_class r
        WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind IN ('r', 'v')
            AND NOT r.relispartition);
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    EXECUTE format('GRANT SELECT ON %s, textsim.%I, textsim.%I TO %s',
        shared, 'document_' || c.id, 'band_' || c.id, role);
END
$$;
COMMENT ON FUNCTION textsim.grant_reader(regrole, text)
    IS 'let a role search one corpus: of others it sees names, keys that are pending, and words';

CREATE FUNCTION textsim.grant_writer(role regrole, corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(corpus);
BEGIN
    PERFORM textsim.grant_reader(role, corpus);
    PERFORM textsim._grant_shared(role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON textsim.%I, textsim.%I TO %s',
        'document_' || c.id, 'band_' || c.id, role);
END
$$;
COMMENT ON FUNCTION textsim.grant_writer(regrole, text)
    IS 'let a role search and write one corpus, attach tables of its own to it, and run workers';

CREATE FUNCTION textsim.revoke_all(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA textsim FROM %s', role);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA textsim FROM %s', role);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA textsim FROM %s', role);
    EXECUTE format('REVOKE ALL ON SCHEMA textsim FROM %s', role);
END
$$;
COMMENT ON FUNCTION textsim.revoke_all(regrole) IS 'take back what grant_reader and grant_writer gave';
