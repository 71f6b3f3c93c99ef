-- Putting a rebuilt corpus in the place of the old one. Private: Corpus.rebuild() calls these.

-- Private functions

CREATE FUNCTION textsim._refuse_write() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'the corpus was rebuilt while this was being written; repeat the transaction'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;
COMMENT ON FUNCTION textsim._refuse_write() IS 'refuses a write to a corpus that was replaced';

CREATE FUNCTION textsim._replace_corpus(old integer, new integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_name text := (SELECT c.name FROM textsim.corpus c WHERE c.id = old);
    new_name text := (SELECT c.name FROM textsim.corpus c WHERE c.id = new);
    moved textsim.source;
BEGIN
    -- Rights to single corpora: _create_relations has granted the rights to all corpora.
    PERFORM textsim._grant_like(
        format('textsim.%I', part || '_' || old)::regclass,
        format('textsim.%I', part || '_' || new)::regclass)
    FROM unnest(ARRAY['document', 'band']) part;
    PERFORM textsim._grant_ids(new);
    -- A writer that waits has computed old signatures: it must fail, or its documents would be lost.
    EXECUTE format(
        'CREATE TRIGGER replaced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON textsim.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION textsim._refuse_write()', 'document_' || old);
    UPDATE textsim.corpus c SET name = left(new_name, 190) || ' old' WHERE c.id = old;
    UPDATE textsim.corpus c
    SET name = old_name,
        origin = (SELECT coalesce(o.origin, o.id) FROM textsim.corpus o WHERE o.id = old)
    WHERE c.id = new;
    FOR moved IN
        UPDATE textsim.source s SET corpus_id = new WHERE s.corpus_id = old RETURNING s.*
    LOOP
        -- A table that was detached or dropped has no triggers.
        IF moved.active AND EXISTS (SELECT FROM pg_class r WHERE r.oid = moved.relation) THEN
            PERFORM textsim._make_trigger_function(moved);
        END IF;
    END LOOP;
    -- A worker that leased a change cannot write it any more: another one may lease it at once.
    UPDATE textsim.pending p SET corpus_id = new, lease_until = NULL WHERE p.corpus_id = old;
END $$;
COMMENT ON FUNCTION textsim._replace_corpus(integer, integer)
    IS 'give a corpus the name, the attached tables and the pending changes of another';
