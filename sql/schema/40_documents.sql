-- SQL writes and removes documents in the caller's transaction, with signature and band rows, so searches find them at
-- once. The words stay in normal_form until a worker gives them ids, because two transactions that add the same words to
-- the dictionary would wait for each other. A corpus of characters has no dictionary, so its documents keep their normal
-- forms.

-- Why a document cannot be stored, or NULL.
CREATE OR REPLACE FUNCTION textsim._document_fault(c textsim.corpus, key text, body text, scope text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN key IS NULL THEN 'the key is NULL'
    WHEN body IS NULL THEN 'the text is NULL'
    WHEN octet_length(key) > 1000 THEN
        format('the key is %s bytes long; at most 1000 are possible', octet_length(key))
    WHEN octet_length(body) > 134217728 THEN
        format('the text is %s bytes long; at most 134217728 can be indexed', octet_length(body))
    ELSE textsim._scope_fault(c, scope)
END;

-- Raise an error if a document cannot be stored; row_fault: what is wrong with its row.
CREATE OR REPLACE FUNCTION textsim._check_document(
    c textsim.corpus, key text, body text, scope text, row_fault text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    fault text := coalesce(row_fault, textsim._document_fault(c, key, body, scope));
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'document "%": %', left(key, 100), fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION textsim._is_attached(source integer) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM textsim.source s WHERE s.id = source AND s.active);
END $$;

-- The document that has a key, before it is written. The outcome is written, if it is new; twin, if others keep it out;
-- NULL, if it was stored before.
DO $do$ BEGIN
    CREATE TYPE textsim._stored AS (
        id integer, source_id integer, expires_at timestamptz, part bigint, word_ids integer[], normal_form text,
        signature integer[], forced boolean, outcome text);
EXCEPTION WHEN duplicate_object THEN
END $do$;

-- A condition: the document d waits for a worker, which gives its words ids, and identifies its language.
CREATE OR REPLACE FUNCTION textsim._waits(c textsim.corpus) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN c.unit = 'word' THEN 'd.word_ids IS NULL' WHEN c.language IS NOT NULL THEN 'd.language IS NULL'
    ELSE 'false' END;

-- Add or replace a document, given by its normal form. The outcome is written; unchanged, if it has these words and
-- this part already; or twin, if a twin as similar as unique_from keeps it out.
CREATE OR REPLACE FUNCTION textsim._store_form(
    c textsim.corpus, source integer, key text, form text, scope text, expires_at timestamptz,
    unique_from double precision DEFAULT 0)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    part bigint := textsim._part(scope);
    stored textsim._stored;
    sketched textsim._sketched;
    twins text[] := '{}';
    best double precision;
    has_unforced boolean;
    counts boolean;
    old_buckets integer[];
    changed integer[];
BEGIN
    -- The locks come before the first look at a table. Else a rebuild, which holds the lock of the corpus, could
    -- wait for the writer that waits for this lock. And who holds bucket locks waits for documents, so no writer
    -- locks a document first.
    IF c.is_unique THEN
        sketched := textsim._sketched(c, form, part);
        PERFORM textsim._lock_buckets(
            c.id, textsim._buckets_to_lock(c, sketched.buckets, sketched.shingle_count, sketched.guard), ARRAY[part]);
    END IF;
    LOOP
        EXECUTE format('SELECT * FROM textsim.%I($1, $2, $3, $4, $5, $6, $7, $8)', '_write_' || c.id)
        INTO stored USING c, source, key, form, scope, expires_at, unique_from, sketched;
        IF stored.outcome IS NOT NULL THEN
            RETURN stored.outcome;
        END IF;
        EXIT WHEN stored.id IS NOT NULL;
    END LOOP;
    -- From here on, the document is replaced. These statements are planned in each call.
    IF c.is_unique AND source IS NULL AND textsim._is_attached(stored.source_id) THEN
        PERFORM textsim._refuse_attached(c.id, ARRAY[key]);
    END IF;
    counts := c.keep_for IS NULL OR stored.expires_at IS NULL OR stored.expires_at > now();
    IF source <> stored.source_id AND textsim._is_attached(stored.source_id) AND counts THEN
        IF c.is_unique THEN
            RAISE EXCEPTION 'unique corpus "%" has document "%" from table % already', c.name, left(key, 100),
                (SELECT s.relation FROM textsim.source s WHERE s.id = stored.source_id)
                USING ERRCODE = 'unique_violation', CONSTRAINT = c.name,
                    HINT = 'The tables of a unique corpus need different keys.';
        END IF;
        -- The caller's transaction must not fail, so a worker sets the key aside with an error.
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        VALUES ('change', c.id, source, ARRAY[key]);
        RETURN 'unchanged';
    END IF;
    IF form COLLATE "C" = textsim._stored_form(c.id, stored.word_ids, stored.normal_form)
        AND part IS NOT DISTINCT FROM stored.part
    THEN
        IF c.keep_for IS NOT NULL AND stored.expires_at IS DISTINCT FROM expires_at THEN
            -- A transaction with a later clock may have seen it expired, and have added a twin. A twin that
            -- stood beside it already does not keep it out, because one of the two was forced.
            IF c.is_unique THEN
                SELECT a.twins, a.best INTO twins, best
                FROM textsim._awaited_twins(c, key, form, sketched) a;
                EXECUTE format('SELECT EXISTS (SELECT FROM textsim.%I d WHERE d.key = ANY ($1) AND NOT d.forced)',
                    'document_' || c.id) INTO has_unforced USING twins;
                IF textsim._is_match(best, unique_from) AND NOT (counts AND (stored.forced OR NOT has_unforced)) THEN
                    RETURN 'twin';
                END IF;
            END IF;
            EXECUTE format('UPDATE textsim.%I SET expires_at = $1, forced = forced OR $2 WHERE id = $3',
                'document_' || c.id)
            USING expires_at, unique_from > 0 AND twins <> '{}', stored.id;
        END IF;
        IF source IS NOT NULL AND source IS DISTINCT FROM stored.source_id THEN
            EXECUTE format('UPDATE textsim.%I SET source_id = $1 WHERE id = $2', 'document_' || c.id)
            USING source, stored.id;
        END IF;
        RETURN 'unchanged';
    END IF;
    IF c.is_unique THEN
        SELECT a.twins, a.best INTO twins, best FROM textsim._awaited_twins(c, key, form, sketched) a;
        IF textsim._is_match(best, unique_from) THEN
            RETURN 'twin';
        END IF;
    ELSE
        sketched := textsim._sketched(c, form, part);
    END IF;
    EXECUTE format($query$
        UPDATE textsim.%I
        SET shingle_count = $2, expires_at = $3, source_id = coalesce($4, source_id), forced = $9,
            cluster_size = NULL, language = $5, scope = $6, guard = $11,
            word_ids = $12, signature = $7, fingerprints = $10,
            normal_form = CASE WHEN $12 IS NULL THEN $8 END
        WHERE id = $1
        $query$, 'document_' || c.id)
    USING stored.id, sketched.shingle_count, expires_at, source,
        CASE WHEN form = '' AND c.language = 'auto' THEN 'und' END,  -- a text without words needs no worker
        scope, sketched.signature, form, twins <> '{}', textsim._fingerprints(c, form), sketched.guard,
        CASE WHEN form = '' AND c.unit = 'word' THEN '{}'::integer[] END;
    old_buckets := textsim._stored_buckets(c, stored.signature, stored.part);
    -- Those that the two have a different number of times.
    changed := array(
        (SELECT unnest(old_buckets) EXCEPT ALL SELECT unnest(sketched.buckets))
        UNION (SELECT unnest(sketched.buckets) EXCEPT ALL SELECT unnest(old_buckets)));
    EXECUTE format('DELETE FROM textsim.%I WHERE bucket = ANY ($1) AND document_id = $2', 'band_' || c.id)
    USING changed, stored.id;
    EXECUTE format($query$
        INSERT INTO textsim.%I (bucket, document_id)
        SELECT b, $2 FROM unnest($1) b
        WHERE b IN (SELECT x FROM unnest($3) x)  -- hashed; = ANY would compare each with all
        $query$, 'band_' || c.id)
    USING sketched.buckets, stored.id, changed;
    RETURN 'written';
END $$;

-- Add or replace a document as _store_form() does, and log that it waits for a worker, if it does.
CREATE OR REPLACE FUNCTION textsim._write_document(
    c textsim.corpus, source integer, key text, body text, scope text, expires_at timestamptz,
    unique_from double precision DEFAULT 0)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    form text := textsim._form(c, body);
    outcome text := textsim._store_form(c, source, key, form, scope, expires_at, unique_from);
BEGIN
    -- A text without words needs no worker.
    IF outcome = 'written' AND form <> '' AND (c.unit = 'word' OR c.language IS NOT NULL) THEN
        INSERT INTO textsim.pending (kind, corpus_id, keys) VALUES ('words', c.id, ARRAY[key]);
    END IF;
    RETURN outcome;
END $$;

-- Remove a document, unless it belongs to another attached table; whether it was removed.
CREATE OR REPLACE FUNCTION textsim._remove_document(c textsim.corpus, source integer, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    removed record;
BEGIN
    EXECUTE format(
        'DELETE FROM textsim.%I d WHERE d.key = $1%s RETURNING d.id, d.signature::integer[] AS signature, d.part',
        'document_' || c.id, CASE WHEN source IS NOT NULL OR c.is_unique
            THEN ' AND (d.source_id IS NULL OR d.source_id = $2 OR NOT textsim._is_attached(d.source_id))' ELSE '' END)
    INTO removed USING key, source;
    IF removed.id IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('DELETE FROM textsim.%I WHERE bucket = ANY ($1) AND document_id = $2', 'band_' || c.id)
    USING textsim._stored_buckets(c, removed.signature, removed.part), removed.id;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION textsim._remove_documents_of(c textsim.corpus, source integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    removed bigint;
BEGIN
    -- Lock the documents in a statement of its own. Another transaction may be writing one of them, and the
    -- DELETE must begin after that transaction has ended, to see its band rows.
    EXECUTE format(
        'SELECT count(*) FROM ('
        'SELECT FROM textsim.%I d WHERE d.source_id = $1 ORDER BY d.key FOR UPDATE) locked',
        'document_' || c.id) USING source;
    EXECUTE format(
        'DELETE FROM textsim.%I b USING textsim.%I d WHERE d.source_id = $1 AND b.document_id = d.id',
        'band_' || c.id, 'document_' || c.id) USING source;
    EXECUTE format('DELETE FROM textsim.%I d WHERE d.source_id = $1', 'document_' || c.id)
    USING source;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

-- Delete documents with their band rows; the caller has locked the documents in an earlier statement.
CREATE OR REPLACE FUNCTION textsim._delete_locked(c textsim.corpus, ids integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
BEGIN
    -- It begins after the documents were locked, so its snapshot has the band rows of the last writer. Sorted
    -- band rows are found in one pass of the index.
    EXECUTE format($query$
        WITH gone AS (DELETE FROM textsim.%I d WHERE d.id = ANY ($1) RETURNING d.id, d.signature, d.part),
        band_row AS MATERIALIZED (
            SELECT %s # textsim._part_bits(g.part) AS bucket, g.id FROM gone g CROSS JOIN %s s (value) ORDER BY 1, 2)
        DELETE FROM textsim.%I b USING band_row r WHERE b.bucket = r.bucket AND b.document_id = r.id
        $query$, 'document_' || c.id,
        CASE WHEN c.bands IS NULL THEN 's.value' ELSE 'textsim._bucket(g.signature, $3, s.value)' END,
        CASE WHEN c.bands IS NULL THEN 'unnest(g.signature)' ELSE 'generate_series(0, $2 - 1)' END,
        'band_' || c.id) USING ids, c.bands, c.rows;
END $$;

CREATE OR REPLACE FUNCTION textsim._remove_documents(corpus_id integer, keys text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = corpus_id);
    ids integer[];
    locked_keys text[];
BEGIN
    -- If the corpus was rebuilt meanwhile, its tables are missing, and this statement raises undefined_table.
    EXECUTE format($query$
        SELECT array_agg(l.id), array_agg(l.key) FROM (
            SELECT d.id, d.key FROM textsim.%I d WHERE d.key = ANY ($1) ORDER BY d.key FOR UPDATE
        ) l
        $query$, 'document_' || corpus_id) INTO ids, locked_keys USING keys;
    IF c.is_unique AND ids IS NOT NULL THEN
        PERFORM textsim._refuse_attached(corpus_id, locked_keys);
    END IF;
    PERFORM textsim._delete_locked(c, ids);
    RETURN coalesce(cardinality(ids), 0);
END $$;

-- Remove up to a thousand expired documents that no other transaction has locked, and return their number. A worker
-- removes those that had expired at an earlier look, which was this long ago; 0: all that have expired. A look at a time
-- that is still to come was by a clock that was ahead. So were all looks, perhaps, if the clock has jumped.
CREATE OR REPLACE FUNCTION textsim._expire(
    corpus text, after interval DEFAULT '0', has_jumped boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The expired documents are read from their index, whatever the statistics are.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    before timestamptz := now();
    ids integer[];
BEGIN
    IF after > '0' THEN
        -- Without an earlier look, nothing is removed now.
        before := (
            SELECT l.at FROM textsim.expiry_look l WHERE l.corpus_id = c.id AND l.at <= now() AND NOT has_jumped);
        IF before + after > now() THEN
            RETURN 0;
        END IF;
    END IF;
    -- A document that another transaction writes is left to the next call, so that nobody waits.
    EXECUTE format($query$
        SELECT coalesce(array_agg(l.id), '{}') FROM (
            SELECT d.id FROM textsim.%I d WHERE d.expires_at <= $1
            ORDER BY d.expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED
        ) l
        $query$, 'document_' || c.id) INTO ids USING before;
    PERFORM textsim._delete_locked(c, ids);
    IF after > '0' AND cardinality(ids) < 1000 THEN
        INSERT INTO textsim.expiry_look (corpus_id, at) VALUES (c.id, now())
        ON CONFLICT ON CONSTRAINT expiry_look_pkey DO UPDATE SET at = excluded.at;
    END IF;
    RETURN cardinality(ids);
END $$;

CREATE OR REPLACE FUNCTION textsim._check_expires(corpus text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF (textsim._corpus(corpus)).keep_for IS NULL THEN
        RAISE EXCEPTION 'corpus "%" keeps its documents for ever', corpus
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Create a corpus with keep_for, such as keep_for => ''30 days''.';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION textsim.add(
    corpus text, key text, text text, scope text DEFAULT NULL, force boolean DEFAULT false,
    unique_from double precision DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 100000 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    PERFORM textsim._part_of(c, scope), textsim._check_document(c, key, text, scope);
    RETURN textsim._write_or_raise(
        c, NULL, key, text, scope, textsim._new_expiry(c), textsim._raised(unique_from, force));
END $$;
COMMENT ON FUNCTION textsim.add(text, text, text, text, boolean, double precision)
    IS 'Adds a document, or replaces the document with this key, in the transaction of the caller; '
    'searches find it at once. Returns false if the words and the scope have not changed. In a scoped corpus, '
    'scope is required; another scope than before moves the document. In a corpus with keep_for, the document '
    'counts from now on for that time, also if it has not changed; a twin that is refused renews no other document. '
    'Raises an error if the key or the text is NULL, the key longer than 1,000 bytes, or the text longer than 128 '
    'MiB. If the corpus is unique and another document matches, raises unique_violation, with the '
    'name of the corpus as that of the constraint. Documents that were judged different keep each other in. With '
    'force the document is stored all the same, unless another has exactly the same shingles. unique_from raises the '
    'similarity from which a match is a twin, for this call; Infinity stores even a copy. A document that is stored so '
    'stands in the way of later documents as any other does.';

CREATE OR REPLACE FUNCTION textsim.remove(corpus text, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    is_removed boolean;
BEGIN
    PERFORM textsim._check_given('the key', key IS NOT NULL);
    is_removed := textsim._remove_document(c, NULL, key);
    IF c.is_unique AND NOT is_removed THEN
        PERFORM textsim._refuse_attached(c.id, ARRAY[key]);
    END IF;
    RETURN is_removed;
END $$;
COMMENT ON FUNCTION textsim.remove(text, text)
    IS 'Removes a document from a corpus. Returns false if no document has this key. Raises an error if the '
    'key is NULL.';

-- A procedure with a SET clause cannot commit, so this one runs with the caller's search_path. It qualifies each
-- function, and uses no operators, because the search_path could replace them.
CREATE OR REPLACE PROCEDURE textsim.expire(corpus text)
LANGUAGE plpgsql AS $$
DECLARE
    removed pg_catalog.int8;
BEGIN
    CALL textsim._check_no_transaction('expire');
    PERFORM textsim._check_expires(corpus);
    LOOP
        removed := textsim._expire(corpus);
        COMMIT;
        EXIT WHEN pg_catalog.int8eq(removed, 0);
    END LOOP;
END $$;
COMMENT ON PROCEDURE textsim.expire(text)
    IS 'Removes the documents of a corpus whose time is over, by the clock of this moment. Searches do not find them in '
    'any case; a worker removes them an hour later. It commits after each thousand documents, so call it outside a transaction block. Raises '
    'an error if the corpus has no keep_for.';
