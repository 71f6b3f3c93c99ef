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
    c textsim.corpus, source integer, key text, form text, scope text, keeps_twins boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    outcome text;
BEGIN
    EXECUTE format('SELECT textsim.%I($1, $2, $3, $4, $5)', '_write_' || c.id)
    INTO outcome USING source, key, form, scope, keeps_twins;
    RETURN outcome;
END $$;
COMMENT ON FUNCTION textsim._store_form(textsim.corpus, integer, text, text, text, boolean)
    IS 'add or replace a document, given by its normal form: the work of _write_N';

CREATE FUNCTION textsim._write_document(
    c textsim.corpus, source integer, key text, body text, scope text, keeps_twins boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    form text := textsim._form(c, body);
    outcome text := textsim._store_form(c, source, key, form, scope, keeps_twins);
BEGIN
    -- A text without words needs no worker.
    IF outcome = 'written' AND form <> '' THEN
        INSERT INTO textsim.pending (kind, corpus_id, keys) VALUES ('words', c.id, ARRAY[key]);
    END IF;
    RETURN outcome;
END $$;
COMMENT ON FUNCTION textsim._write_document(textsim.corpus, integer, text, text, text, boolean)
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

-- Public functions

CREATE FUNCTION textsim.add(corpus text, key text, text text, scope text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
BEGIN
    PERFORM textsim._check_scope(c, scope), textsim._check_document(c, key, text, scope);
    RETURN textsim._write_or_raise(c, NULL, key, text, scope);
END $$;
COMMENT ON FUNCTION textsim.add(text, text, text, text)
    IS 'Adds a document, or replaces the document with this key, in the transaction of the caller; '
    'searches find it at once. Returns false if the words and the scope have not changed. In a scoped corpus, '
    'scope is required; another scope than before moves the document. Raises an error if '
    'the key or the text is NULL, the key longer than 1,000 bytes, or the text longer than 128 '
    'MiB. If the corpus is unique and another document matches, raises unique_violation, with the '
    'name of the corpus as that of the constraint.';

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
