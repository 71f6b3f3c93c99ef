-- Rejected texts. A rejected text is stored as a document under a key of its own, which keeps its twins out of a unique
-- corpus and counts nowhere else. So it has buckets, a guard, a scope and an expiry, and check, rebuild and remove work
-- on it.

-- Why a document was rejected; NULL if it was not.
CREATE OR REPLACE FUNCTION textsim._rejection(c textsim.corpus, document_key text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    reason text;
BEGIN
    EXECUTE format('SELECT d.rejected FROM textsim.%I d WHERE d.key = $1', 'document_' || c.id)
    INTO reason USING document_key;
    RETURN reason;
END $$;

CREATE OR REPLACE FUNCTION textsim.reject(corpus text, key text, reason text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._required_unique(corpus);
    old record;
    locked integer[];
    rejected_key text;
    document record;
BEGIN
    PERFORM textsim._check_given('the key', key IS NOT NULL), textsim._check_given('the reason', reason IS NOT NULL);
    -- The buckets before the document, as any writer: a writer of this key may have looked for twins of its text already.
    LOOP
        EXECUTE format(
            'SELECT d.id, d.part, textsim._buckets_to_lock('
            '$2, textsim._stored_buckets($2, d.signature, d.part), d.shingle_count, d.guard) AS buckets '
            'FROM textsim.%I d WHERE d.key = $1%s%s', 'document_' || c.id, textsim._alive(c, 'd'),
            CASE WHEN locked IS NOT NULL THEN ' FOR UPDATE' ELSE '' END)
        INTO old USING key, c;
        IF old.id IS NULL THEN
            RAISE EXCEPTION 'corpus "%" has no document %', c.name, quote_literal(left(key, 100))
                USING ERRCODE = 'no_data_found', HINT = 'To reject a text that is not stored, add it first.';
        END IF;
        EXIT WHEN old.buckets = locked;
        PERFORM textsim._lock_buckets(c.id, old.buckets, ARRAY[old.part]);
        locked := old.buckets;
    END LOOP;
    PERFORM textsim._required_unique(corpus);  -- a rebuild may have ended it, and removed what was rejected
    -- Another text of this key may have been rejected before.
    EXECUTE format($query$
        SELECT k.key
        FROM generate_series(1, 1000000) n
        CROSS JOIN LATERAL (SELECT 'rejected' || coalesce(' ' || nullif(n, 1), '') || ': ' || $1 AS key) k
        WHERE NOT EXISTS (SELECT FROM textsim.%I d WHERE d.key = k.key)
        LIMIT 1
        $query$, 'document_' || c.id)
    INTO rejected_key USING key;
    EXECUTE format($query$
        INSERT INTO textsim.%1$I AS n (
            id, shingle_count, expires_at, key, language, scope, guard, word_ids, signature, fingerprints, normal_form,
            rejected)
        SELECT nextval('textsim.%1$I_id_seq'), d.shingle_count, $2, $3, d.language, d.scope, d.guard, d.word_ids,
            d.signature, d.fingerprints, d.normal_form, $4
        FROM textsim.%1$I d WHERE d.id = $1
        RETURNING n.id, n.word_ids IS NULL AS waits, textsim._stored_buckets($5, n.signature, n.part) AS buckets,
            textsim._in_part(n.fingerprints, n.part) AS fingerprints
        $query$, 'document_' || c.id)
    INTO document USING old.id, textsim._new_expiry(c), rejected_key, reason, c;
    EXECUTE format('INSERT INTO textsim.%I (bucket, document_id) SELECT unnest($1), $2', 'band_' || c.id)
    USING document.buckets, document.id;
    IF c.passages IS NOT NULL THEN
        EXECUTE format('INSERT INTO textsim.%I (fingerprint, document_id) SELECT unnest($1), $2', 'passage_' || c.id)
        USING document.fingerprints, document.id;
    END IF;
    IF document.waits THEN
        INSERT INTO textsim.pending (kind, corpus_id, keys) VALUES ('words', c.id, ARRAY[rejected_key]);
    END IF;
    PERFORM textsim._delete_locked(c, ARRAY[old.id]);
    RETURN rejected_key;
END $$;
COMMENT ON FUNCTION textsim.reject(text, text, text)
    IS 'Rejects the text of a document of a unique corpus: the document counts nowhere any more, and keeps its twins out, as '
    'the outcome rejected of add_unique() says, with the reason. Returns the key that it has from now on, such as "rejected: '
    'a"; the old key is free. remove() of the new key ends the rejection, and forget() of the old or the new key deletes '
    'it. In a corpus with keep_for it lasts for that time. A row of an attached table stays: delete it after this '
    'call. Raises no_data_found if no document has the key, and an error if the corpus is not unique.';

CREATE OR REPLACE FUNCTION textsim.rejected(corpus text, OUT key text, OUT reason text, INOUT scope text DEFAULT NULL)
RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT d.key, d.rejected, d.scope FROM textsim.%I d '
        'WHERE d.rejected IS NOT NULL AND ($1 IS NULL OR d.part = $1)%s ORDER BY d.key COLLATE "C"',
        'document_' || c.id, textsim._unexpired(c, 'd'))
    USING CASE WHEN scope IS NOT NULL THEN textsim._part_of(c, scope) END;
END $$;
COMMENT ON FUNCTION textsim.rejected(text, text)
    IS 'Returns the rejected documents of a corpus, or of one scope, in the order of their keys: the key, the reason, and the '
    'scope in a scoped corpus.';
