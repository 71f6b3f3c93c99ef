-- Rights. A role that only writes attached tables needs no rights here. Only writers may call the functions
-- that run with the rights of the schema's owner.

REVOKE EXECUTE ON FUNCTION textsim._prepare_source(text, regclass, name, name, text, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._activate_source(integer, boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._release_source(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._note_shape(integer, text[], text[]) FROM PUBLIC;

-- Private functions

CREATE FUNCTION textsim._grant_writing(role regrole, relations regclass[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON textsim.pending, textsim.worker, %s TO %s',
        array_to_string(relations, ', '), role);
    -- Not the column id: only the sequence gives out ids.
    EXECUTE format('GRANT INSERT (hash, word) ON textsim.word TO %s', role);
    PERFORM textsim._grant_ids(c.id) FROM textsim.corpus c;
    EXECUTE format('GRANT EXECUTE ON FUNCTION '
        'textsim._prepare_source(text, regclass, name, name, text, text), '
        'textsim._activate_source(integer, boolean), textsim._release_source(integer), '
        'textsim._note_shape(integer, text[], text[]) TO %s', role);
END $$;
COMMENT ON FUNCTION textsim._grant_writing(regrole, regclass[])
    IS 'let a role write these tables of corpora, and the tables that all corpora share';

CREATE FUNCTION textsim._corpus_tables() RETURNS regclass[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN array(
        SELECT r.oid::regclass FROM pg_class r
        WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind = 'r'
            AND r.relname ~ '^(document|band)(_[0-9]+)?$');
END $$;
COMMENT ON FUNCTION textsim._corpus_tables()
    IS 'the document and band tables of all corpora, and their patterns';

-- Public functions

CREATE FUNCTION textsim.grant_reader(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA textsim TO %s', role);
END $$;
COMMENT ON FUNCTION textsim.grant_reader(regrole)
    IS 'Lets a role search every corpus, including corpora that are created later.';

CREATE FUNCTION textsim.grant_reader(role regrole, corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
    -- Without the patterns, because new corpora copy the rights of the patterns.
    shared text := (
        SELECT string_agg(r.oid::regclass::text, ', ')
        FROM pg_class r
        WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind IN ('r', 'v')
            AND r.oid <> ALL (textsim._corpus_tables()));
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    EXECUTE format('GRANT SELECT ON %s, textsim.%I, textsim.%I TO %s',
        shared, 'document_' || c.id, 'band_' || c.id, role);
END $$;
COMMENT ON FUNCTION textsim.grant_reader(regrole, text)
    IS 'Lets a role search one corpus. The role can also read what all corpora share: their names, '
    'the dictionary and the pending keys.';

CREATE FUNCTION textsim.grant_writer(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM textsim.grant_reader(role);
    PERFORM textsim._grant_writing(role, textsim._corpus_tables());
END $$;
COMMENT ON FUNCTION textsim.grant_writer(regrole)
    IS 'Lets a role search and write every corpus, attach tables that it owns, and run workers.';

CREATE FUNCTION textsim.grant_writer(role regrole, corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
BEGIN
    PERFORM textsim.grant_reader(role, corpus);
    PERFORM textsim._grant_writing(role, ARRAY[
        format('textsim.%I', 'document_' || c.id), format('textsim.%I', 'band_' || c.id)]::regclass[]);
END $$;
COMMENT ON FUNCTION textsim.grant_writer(regrole, text)
    IS 'Lets a role search and write one corpus, attach tables that it owns, and run workers.';

CREATE FUNCTION textsim.revoke_all(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    objects text;
BEGIN
    FOREACH objects IN ARRAY ARRAY['ALL FUNCTIONS IN SCHEMA textsim', 'ALL TABLES IN SCHEMA textsim',
        'ALL SEQUENCES IN SCHEMA textsim', 'SCHEMA textsim']
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', objects, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim.revoke_all(regrole)
    IS 'Takes back every right that grant_reader and grant_writer gave to a role.';
