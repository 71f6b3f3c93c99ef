-- Forgetting documents: what a corpus keeps of their keys goes at once, and their words go with the next rebuild.

-- The keys that a request names: those of a list, of a part, of expired documents, or of no document any more.
CREATE OR REPLACE FUNCTION textsim._keys_to_forget(
    c textsim.corpus, keys text[], part bigint, all_expired boolean, all_removed boolean) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    removed text := '';
BEGIN
    IF (keys IS NOT NULL)::integer + (part IS NOT NULL)::integer + all_expired::integer + all_removed::integer
        IS DISTINCT FROM 1
    THEN
        RAISE EXCEPTION 'expected one of keys, a scope, all_expired and all_removed'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF all_expired THEN
        PERFORM textsim._check_expires(c.name);
    END IF;
    IF keys IS NOT NULL THEN
        -- With those that rejected documents had before.
        EXECUTE format('SELECT $1 || array(SELECT d.key FROM textsim.%I d WHERE d.rejected IS NOT NULL '
            'AND regexp_replace(d.key, ''^rejected( [0-9]+)?: '', '''') = ANY ($1))', 'document_' || c.id)
        INTO keys USING keys;
        RETURN keys;
    END IF;
    IF to_regclass('textsim.removed_' || c.id) IS NOT NULL THEN
        removed := format(' UNION SELECT r.key FROM textsim.%I r', 'removed_' || c.id);
    END IF;
    -- A worker may have removed expired documents before.
    EXECUTE format($query$
        SELECT array(
            SELECT d.key COLLATE "C" FROM textsim.%1$I d WHERE d.part = $1 OR $3 AND d.expires_at <= now()
            UNION ALL
            SELECT k.key FROM (
                SELECT j.a COLLATE "C" AS key FROM textsim.judgement j WHERE j.origin = $2
                UNION SELECT j.b FROM textsim.judgement j WHERE j.origin = $2%2$s
            ) k
            WHERE ($3 OR $4) AND NOT EXISTS (SELECT FROM textsim.%1$I d WHERE d.key = k.key))
        $query$, 'document_' || c.id, removed)
    INTO keys USING part, textsim._origin(c), all_expired, all_removed;
    RETURN keys;
END $$;

-- The keys of which a table has rows with documents. A key that its columns cannot hold has none.
CREATE OR REPLACE FUNCTION textsim._standing_keys(source textsim.source, keys text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    half integer := cardinality(keys) / 2;
BEGIN
    RETURN array(
        SELECT r.key FROM textsim._rows_of(source, keys) r
        WHERE r.body IS NOT NULL AND (r.expires_at > now()) IS NOT FALSE ORDER BY r.key COLLATE "C");
EXCEPTION WHEN data_exception THEN
    RETURN CASE WHEN half = 0 THEN '{}'
        ELSE textsim._standing_keys(source, keys[:half]) || textsim._standing_keys(source, keys[half + 1:]) END;
END $$;

-- Take keys out of the log, and delete the entries that name no other.
CREATE OR REPLACE FUNCTION textsim._forget_in_log(c textsim.corpus, forgotten text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    entries bigint;
BEGIN
    WITH changed AS (
        DELETE FROM textsim.pending p WHERE p.corpus_id = c.id AND p.keys && forgotten
        RETURNING p.kind, p.source_id, p.keys, p.created_at, p.lease_until, p.tries, p.error
    ), added AS (
        INSERT INTO textsim.pending (
            kind, corpus_id, source_id, keys, created_at, lease_until, tries, error)
        SELECT o.kind, c.id, o.source_id, o.keys, o.created_at, o.lease_until, o.tries, o.error
        FROM (
            SELECT e.kind, e.source_id, e.created_at, e.lease_until, e.tries, e.error,
                array(SELECT k FROM unnest(e.keys) k WHERE k <> ALL (forgotten)) AS keys
            FROM changed e
        ) o
        WHERE o.keys <> '{}'
    )
    SELECT count(*) INTO entries FROM changed;
    RETURN entries;
END $$;

-- Delete the judgements of keys, also from the log of a tracked corpus.
CREATE OR REPLACE FUNCTION textsim._forget_judgements(c textsim.corpus, forgotten text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    corpus_origin integer := textsim._origin(c);
    judgements bigint;
BEGIN
    DELETE FROM textsim.judgement j
    WHERE j.origin = corpus_origin AND (j.a = ANY (forgotten) OR j.b = ANY (forgotten));
    GET DIAGNOSTICS judgements = ROW_COUNT;
    -- Another session may judge such a pair again at this moment.
    UPDATE textsim.pending p
    SET judged_keys = (SELECT array_agg(k) FROM unnest(p.judged_keys) k WHERE k <> ALL (forgotten))
    WHERE p.corpus_id = c.id AND p.judged_keys && forgotten AND NOT EXISTS (
        SELECT FROM textsim.judgement j
        WHERE j.origin = corpus_origin AND j.a = p.judged_keys[1] AND j.b = p.judged_keys[2]);
    RETURN judgements;
END $$;

CREATE OR REPLACE FUNCTION textsim.forget(
    corpus text, keys text[] DEFAULT NULL, scope text DEFAULT NULL, all_expired boolean DEFAULT false,
    all_removed boolean DEFAULT false, OUT documents bigint, OUT judgements bigint, OUT events bigint,
    OUT log_entries bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    forgotten text[];
    ids integer[];
    source textsim.source;
    standing text[];
    lock_documents constant text := 'SELECT array_agg(l.id) FROM '
        '(SELECT d.id FROM textsim.%I d WHERE d.key = ANY ($1) ORDER BY d.key FOR UPDATE) l';
BEGIN
    IF c.is_unique THEN
        -- A writer may have looked for twins already, and rely on a judgement that goes here.
        PERFORM textsim._lock_unique(c.id, true);
    END IF;
    forgotten := textsim._keys_to_forget(
        c, keys, CASE WHEN scope IS NOT NULL THEN textsim._part_of(c, scope) END, all_expired, all_removed);
    -- As other writers do: first the table, then the documents, then the log.
    EXECUTE format('LOCK TABLE textsim.%I IN ROW EXCLUSIVE MODE', 'document_' || c.id);
    EXECUTE format(lock_documents, 'document_' || c.id) INTO ids USING forgotten;
    -- A statement sees what was committed before it. So a row or a document that another session adds meanwhile keeps
    -- its entry of the log, or is seen by the statements after this one.
    log_entries := textsim._forget_in_log(c, forgotten);
    FOR source IN SELECT s.* FROM textsim.source s WHERE s.corpus_id = c.id AND s.active LOOP
        standing := textsim._standing_keys(source, forgotten);
        IF standing <> '{}' THEN  -- they would be indexed again
            RAISE EXCEPTION 'table % has rows of % of these documents, such as the row with the key %',
                source.relation, cardinality(standing), quote_literal(left(standing[1], 100))
                USING ERRCODE = 'object_in_use', HINT = 'Delete the rows first; then forget the documents.';
        END IF;
    END LOOP;
    DELETE FROM textsim.merged_row m
    WHERE m.origin = textsim._origin(c)
        AND (m.key = ANY (forgotten) OR m.kept = ANY (forgotten) OR all_removed AND m.new_row IS NULL
            -- The kept row may be gone, and its document with it.
            OR m.old_row ->> (SELECT s.scope_column FROM textsim.source s
                WHERE s.corpus_id = c.id AND s.relation = m.relation) = forget.scope);
    -- While the documents stand, so that the log names those whose clusters the judgements had changed.
    judgements := textsim._forget_judgements(c, forgotten);
    EXECUTE format(lock_documents, 'document_' || c.id) INTO ids USING forgotten;
    PERFORM textsim._delete_locked(c, ids);
    -- The size of a cluster still counts the record, which nobody can name any more.
    EXECUTE format(
        'UPDATE textsim.%I d SET counted_keys = array(SELECT unnest(d.counted_keys) EXCEPT SELECT unnest($1)) '
        'WHERE d.counted_keys && $1', 'document_' || c.id)
    USING array(SELECT textsim._part(k) FROM unnest(forgotten) k);
    documents := coalesce(cardinality(ids), 0);
    events := 0;
    IF textsim._is_tracked(corpus) THEN
        EXECUTE format(
            'DELETE FROM textsim.%I e USING textsim.%I r WHERE e.document_id = r.document_id AND r.key = ANY ($1)',
            'cluster_event_' || c.id, 'removed_' || c.id) USING forgotten;
        GET DIAGNOSTICS events = ROW_COUNT;
        EXECUTE format('DELETE FROM textsim.%I r WHERE r.key = ANY ($1)', 'removed_' || c.id) USING forgotten;
    END IF;
    INSERT INTO textsim.forgotten (corpus_id, documents) VALUES (c.id, forget.documents);
END $$;
COMMENT ON FUNCTION textsim.forget(text, text[], text, boolean, boolean)
    IS 'Removes documents, with the judgements, notes, merged rows, events and log entries that have their keys, and '
    'returns how many of each. Give keys; or scope, for all documents of a scope; or all_removed, for all keys that have '
    'no document any more, also those of rows that merge() has deleted, which unmerge() then cannot bring back; or '
    'all_expired, for these and all expired documents. The words of the documents stay in the files of the corpus until '
    'it is rebuilt: textsim.forgotten has a row for each request that waits for that. textsim forget, and '
    'Corpus.forget() in Python, rebuild it at once. Raises an error if a row with one of the keys still stands in an '
    'attached table. In a unique corpus it waits for all writers, and they wait for it.';
