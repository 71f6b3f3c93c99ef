-- A rebuilt corpus replaces the old corpus. Corpus.rebuild() calls these functions.

-- Raise an error: the corpus was replaced.
CREATE OR REPLACE FUNCTION textsim._refuse_write() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RAISE EXCEPTION 'the corpus was rebuilt while this transaction wrote to it; repeat the transaction'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;

-- The normal forms of the rebuilt corpus lack boilerplate, or are of another recipe. A judgement of the present text
-- gets the hash of its new form; another one stays stale.
CREATE OR REPLACE FUNCTION textsim._move_judgements(old integer, new integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    side text;
BEGIN
    FOREACH side IN ARRAY '{a,b}'::text[] LOOP
        EXECUTE format($query$
            UPDATE textsim.judgement j
            SET hash_%1$s = textsim._form_hash(coalesce(n.normal_form, textsim._normal_form_of_%3$s(n.word_ids), ''))
            FROM textsim.%4$I o JOIN textsim.%5$I n ON n.key = o.key
            WHERE j.origin = $1 AND o.key = j.%1$s AND j.hash_%1$s = textsim._form_hash(
                coalesce(o.normal_form, textsim._normal_form_of_%2$s(o.word_ids), ''))
            $query$, side, old, new, 'document_' || old, 'document_' || new)
        USING (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = old);
    END LOOP;
END $$;

-- Give a new corpus the name, attached tables, tracked clusters and pending changes of the old one.
CREATE OR REPLACE FUNCTION textsim._replace_corpus(old integer, new integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    old_name text := (SELECT c.name FROM textsim.corpus c WHERE c.id = old);
    new_name text := (SELECT c.name FROM textsim.corpus c WHERE c.id = new);
    moved textsim.source;
    is_other_recipe boolean := (
        SELECT count(DISTINCT c.recipe) = 2 FROM textsim.corpus c WHERE c.id IN (old, new));
BEGIN
    -- Grant the rights to this one corpus. _create_relations has granted the rights to all corpora.
    PERFORM textsim._grant_like(
        -- A corpus that has passages from now on gives the rights to its band rows on its fingerprints.
        coalesce(to_regclass(format('textsim.%I', kind || '_' || old)), format('textsim.%I', 'band_' || old)::regclass),
        to_regclass(format('textsim.%I', kind || '_' || new)))
    FROM unnest(ARRAY['word', 'document', 'band', 'passage']) kind;
    PERFORM textsim._grant_ids(new);
    -- A waiting writer has computed signatures for the old corpus. It must fail, or its documents are lost.
    EXECUTE format(
        'CREATE TRIGGER replaced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON textsim.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION textsim._refuse_write()', 'document_' || old);
    IF is_other_recipe OR EXISTS (SELECT FROM textsim.corpus c WHERE c.id = new AND c.boilerplate IS NOT NULL) THEN
        PERFORM textsim._move_judgements(old, new);
    END IF;
    UPDATE textsim.corpus c SET name = left(new_name, 190) || ' old' WHERE c.id = old;
    UPDATE textsim.corpus c
    SET name = old_name,
        origin = (SELECT textsim._origin(o) FROM textsim.corpus o WHERE o.id = old)
    WHERE c.id = new;
    FOR moved IN
        UPDATE textsim.source s SET corpus_id = new WHERE s.corpus_id = old RETURNING s.*
    LOOP
        -- Detached and dropped tables have no triggers.
        IF moved.active AND EXISTS (SELECT FROM pg_class r WHERE r.oid = moved.relation) THEN
            PERFORM textsim._make_trigger_function(moved);
            -- The stored words are normalised by the old recipe; the rows have the whole texts.
            IF is_other_recipe THEN
                PERFORM textsim._enqueue(new, moved.id);
            END IF;
        END IF;
    END LOOP;
    IF EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = old) THEN
        PERFORM textsim._move_tracking(old, new);
    END IF;
    -- A request that came during the rebuild waits for the next one, because this one may have copied its documents. The
    -- others go with the tables of the old corpus, which have the words until nobody reads them.
    UPDATE textsim.forgotten f SET corpus_id = new, rebuild = NULL
    WHERE f.corpus_id = old AND f.rebuild IS DISTINCT FROM new;
    UPDATE textsim.expiry_look l SET corpus_id = new WHERE l.corpus_id = old;
    -- A worker that leased a change for the old corpus cannot write it, so end the lease.
    UPDATE textsim.pending p SET corpus_id = new, lease_until = NULL WHERE p.corpus_id = old;
END $$;
