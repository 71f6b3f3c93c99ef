-- Documents written and removed by SQL, in the caller's transaction. Signature and band rows are written at
-- once, so searches find the document. Its words stay in normal_form until a worker gives them ids, because
-- two transactions that add the same words to the dictionary would wait for each other.

-- Private functions

CREATE FUNCTION textsim._document_fault(key text, body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN key IS NULL THEN 'the key is NULL'
    WHEN body IS NULL THEN 'the text is NULL'
    WHEN octet_length(key) > 1000 THEN
        format('the key is %s bytes long; at most 1000 are possible', octet_length(key))
    WHEN octet_length(body) > 134217728 THEN
        format('the text is %s bytes long; at most 134217728 can be indexed', octet_length(body))
END;
COMMENT ON FUNCTION textsim._document_fault(text, text)
    IS 'the reason why a document cannot be stored, or NULL';

CREATE FUNCTION textsim._check_document(c textsim.corpus, key text, body text, scope text) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fault text := coalesce(textsim._document_fault(key, body), textsim._scope_fault(c, scope));
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'document "%": %', left(key, 100), fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION textsim._check_document(textsim.corpus, text, text, text)
    IS 'raise an error if a document cannot be stored';

CREATE FUNCTION textsim._is_attached(source integer) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM textsim.source s WHERE s.id = source AND s.active);
END $$;
COMMENT ON FUNCTION textsim._is_attached(integer)
    IS 'whether a table with this source id is attached';

CREATE FUNCTION textsim._changed_buckets(old_buckets integer[], new_buckets integer[])
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN array(
        (SELECT unnest(old_buckets) EXCEPT ALL SELECT unnest(new_buckets))
        UNION
        (SELECT unnest(new_buckets) EXCEPT ALL SELECT unnest(old_buckets)));
END $$;
COMMENT ON FUNCTION textsim._changed_buckets(integer[], integer[])
    IS 'the buckets whose number of occurrences differs between two arrays';

CREATE FUNCTION textsim._store_form(
    c textsim.corpus, source integer, key text, form text, scope text, expires_at timestamptz,
    force boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    outcome text;
BEGIN
    EXECUTE format('SELECT textsim.%I($1, $2, $3, $4, $5, $6)', '_write_' || c.id)
    INTO outcome USING source, key, form, scope, expires_at, force;
    RETURN outcome;
END $$;
COMMENT ON FUNCTION textsim._store_form(textsim.corpus, integer, text, text, text, timestamptz, boolean)
    IS 'add or replace a document, given by its normal form: the work of _write_N';

CREATE FUNCTION textsim._write_document(
    c textsim.corpus, source integer, key text, body text, scope text, expires_at timestamptz,
    force boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    form text := textsim._form(c, body);
    outcome text := textsim._store_form(c, source, key, form, scope, expires_at, force);
BEGIN
    -- A text without words needs no worker.
    IF outcome = 'written' AND form <> '' THEN
        INSERT INTO textsim.pending (kind, corpus_id, keys) VALUES ('words', c.id, ARRAY[key]);
    END IF;
    RETURN outcome;
END $$;
COMMENT ON FUNCTION textsim._write_document(
    textsim.corpus, integer, text, text, text, timestamptz, boolean)
    IS 'add or replace a document, and log that its words need ids; the arguments and the result are those of '
    '_write_N';

CREATE FUNCTION textsim._remove_document(c textsim.corpus, source integer, key text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_removed boolean;
BEGIN
    EXECUTE format('SELECT textsim.%I($1, $2)', '_remove_' || c.id)
    INTO is_removed USING source, key;
    RETURN is_removed;
END $$;
COMMENT ON FUNCTION textsim._remove_document(textsim.corpus, integer, text)
    IS 'remove a document, unless it belongs to another attached table; whether it was removed';

CREATE FUNCTION textsim._remove_documents_of(c textsim.corpus, source integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
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
COMMENT ON FUNCTION textsim._remove_documents_of(textsim.corpus, integer)
    IS 'remove all documents of an attached table, and return their number';

CREATE FUNCTION textsim._expire(corpus text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The expired documents are read from their index, whatever the statistics are.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    ids integer[];
BEGIN
    -- The DELETE must begin after the lock: its snapshot then has the band rows of the last writer. A document
    -- that another transaction writes is left to the next call, so that nobody waits.
    EXECUTE format($query$
        SELECT array_agg(l.id) FROM (
            SELECT d.id FROM textsim.%I d WHERE d.expires_at <= now()
            ORDER BY d.expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED
        ) l
        $query$, 'document_' || c.id) INTO ids;
    EXECUTE format($query$
        WITH gone AS (DELETE FROM textsim.%I d WHERE d.id = ANY ($1) RETURNING d.id, d.signature, d.scope)
        DELETE FROM textsim.%I b
        USING gone g CROSS JOIN LATERAL unnest(
            textsim._in_scope(textsim._buckets(g.signature, $2, $3), g.scope)) q (bucket)
        WHERE b.bucket = q.bucket AND b.document_id = g.id
        $query$, 'document_' || c.id, 'band_' || c.id) USING ids, c.bands, c.rows;
    RETURN coalesce(cardinality(ids), 0);
END $$;
COMMENT ON FUNCTION textsim._expire(text)
    IS 'remove up to a thousand expired documents that no other transaction has locked, and return their number';

CREATE FUNCTION textsim._check_expires(corpus text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (textsim._required_corpus(corpus)).keep_for IS NULL THEN
        RAISE EXCEPTION 'corpus "%" keeps its documents for ever', corpus
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Create a corpus with keep_for, such as keep_for => ''30 days''.';
    END IF;
END $$;
COMMENT ON FUNCTION textsim._check_expires(text) IS 'raise an error unless documents of a corpus expire';

-- Public functions

CREATE FUNCTION textsim.add(
    corpus text, key text, text text, scope text DEFAULT NULL, force boolean DEFAULT false)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
BEGIN
    PERFORM textsim._check_scope(c, scope), textsim._check_document(c, key, text, scope);
    RETURN textsim._write_or_raise(c, NULL, key, text, scope, textsim._new_expiry(c), force);
END $$;
COMMENT ON FUNCTION textsim.add(text, text, text, text, boolean)
    IS 'Adds a document, or replaces the document with this key, in the transaction of the caller; '
    'searches find it at once. Returns false if the words and the scope have not changed. In a scoped corpus, '
    'scope is required; another scope than before moves the document. In a corpus with keep_for, the document '
    'counts from now on for that time, also if it has not changed. Raises an error if '
    'the key or the text is NULL, the key longer than 1,000 bytes, or the text longer than 128 '
    'MiB. If the corpus is unique and another document matches, raises unique_violation, with the '
    'name of the corpus as that of the constraint. With force the document is stored all the same. It stands in '
    'the way of later documents as any other does.';

CREATE FUNCTION textsim.remove(corpus text, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
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
CREATE PROCEDURE textsim.expire(corpus text)
LANGUAGE plpgsql AS $$
DECLARE
    removed pg_catalog.int8;
BEGIN
    PERFORM textsim._check_expires(corpus);
    LOOP
        removed := textsim._expire(corpus);
        COMMIT;
        EXIT WHEN pg_catalog.int8eq(removed, 0);
    END LOOP;
END $$;
COMMENT ON PROCEDURE textsim.expire(text)
    IS 'Removes the documents of a corpus whose time is over. Searches do not find them in any case; a worker '
    'removes them too. It commits after each thousand documents, so call it outside a transaction block. Raises '
    'an error if the corpus has no keep_for.';
