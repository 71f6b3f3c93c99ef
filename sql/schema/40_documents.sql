-- Documents written and removed by SQL, in the caller's transaction: signature and band rows at once,
-- so that searches find the document from then on. Its words stay in normal_form until a worker gives
-- them ids. These functions never write the dictionary, where two transactions that add the same words
-- would wait for each other.

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
COMMENT ON FUNCTION textsim._document_fault(text, text) IS 'why a document cannot be stored, or NULL';

CREATE FUNCTION textsim._is_attached(source integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (SELECT FROM textsim.source s WHERE s.id = source AND s.active);
COMMENT ON FUNCTION textsim._is_attached(integer) IS 'whether a table is attached under this number';

CREATE FUNCTION textsim._replace_bands(
    c textsim.corpus, document_id bigint, old_signature integer[], new_signature integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_buckets bigint[] := array(
        SELECT q.bucket FROM textsim._buckets(old_signature, c.bands, c.rows) q ORDER BY q.band);
    new_buckets bigint[] := array(
        SELECT q.bucket FROM textsim._buckets(new_signature, c.bands, c.rows) q ORDER BY q.band);
BEGIN
    IF old_buckets <> '{}' THEN
        EXECUTE format($query$
            DELETE FROM textsim.%I b
            WHERE b.document_id = $1 AND b.bucket = ANY ($2) AND b.bucket <> ALL ($3)
            $query$, 'band_' || c.id)
        USING document_id, old_buckets, new_buckets;
    END IF;
    IF new_buckets <> '{}' THEN
        EXECUTE format($query$
            INSERT INTO textsim.%I (corpus_id, band, bucket, document_id)
            SELECT $1, (q.place - 1)::smallint, q.bucket, $2
            FROM unnest($3) WITH ORDINALITY q (bucket, place)
            WHERE q.bucket <> ALL ($4)
            $query$, 'band_' || c.id)
        USING c.id, document_id, new_buckets, old_buckets;
    END IF;
END $$;
COMMENT ON FUNCTION textsim._replace_bands(textsim.corpus, bigint, integer[], integer[])
    IS 'write the band rows of a document that differ; a signature is NULL if there is no document';

CREATE FUNCTION textsim._document(c textsim.corpus, source integer, key text, form text)
RETURNS textsim.document
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shingles text[] := textsim._shingles_of_form(form, c.unit, c.shingle_length);
    document textsim.document;
BEGIN
    document.corpus_id := c.id;
    document.source_id := source;
    document.key := key;
    document.shingle_count := cardinality(shingles);
    document.signature := textsim._signature(shingles, c.a, c.b);
    document.normal_form := nullif(form, '');
    IF form = '' THEN
        document.word_ids := '{}';
        -- The worker that gives words their ids identifies the language of every other document.
        document.language := CASE WHEN c.language = 'auto' THEN 'und' END;
    END IF;
    RETURN document;
END $$;
COMMENT ON FUNCTION textsim._document(textsim.corpus, integer, text, text)
    IS 'a document as it is stored before a worker gives its words ids, without the number';

CREATE FUNCTION textsim._write_document(
    c textsim.corpus, source integer, document_key text, body text, is_stored boolean DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    form text := textsim._form(c, body);
    document_table text := 'document_' || c.id;
    stored textsim.document;
    document textsim.document;
    written_rows bigint := 0;
BEGIN
    WHILE written_rows = 0 LOOP
        EXECUTE format('SELECT d.* FROM textsim.%I d WHERE d.key = $1 FOR UPDATE', document_table)
        INTO stored USING document_key;
        IF NOT is_stored AND stored.id IS NOT NULL THEN
            RAISE EXCEPTION 'another transaction has just added document "%"', document_key
                USING ERRCODE = 'unique_violation';
        END IF;
        IF source <> stored.source_id AND textsim._is_attached(stored.source_id) THEN
            -- A worker sets the key aside with an error; this transaction must not fail for it.
            INSERT INTO textsim.pending (corpus_id, source_id, keys)
            VALUES (c.id, source, ARRAY[document_key]);
            RETURN false;
        END IF;
        IF form COLLATE "C" = coalesce(stored.normal_form, textsim._normal_form_of(stored.word_ids)) THEN
            IF source IS NOT NULL AND source IS DISTINCT FROM stored.source_id THEN
                EXECUTE format('UPDATE textsim.%I SET source_id = $1 WHERE id = $2', document_table)
                USING source, stored.id;
            END IF;
            RETURN false;
        END IF;
        IF document.key IS NULL THEN
            document := textsim._document(c, source, document_key, form);
        END IF;
        IF stored.id IS NULL THEN
            document.id := nextval('textsim.document_id');
            EXECUTE format(
                'INSERT INTO textsim.%I SELECT ($1).* ON CONFLICT (key) DO NOTHING', document_table)
            USING document;
        ELSE
            document.id := stored.id;
            EXECUTE format($query$
                UPDATE textsim.%I
                SET shingle_count = ($1).shingle_count, signature = ($1).signature,
                    word_ids = ($1).word_ids, normal_form = ($1).normal_form,
                    language = ($1).language, source_id = coalesce(($1).source_id, source_id)
                WHERE id = ($1).id
                $query$, document_table)
            USING document;
        END IF;
        -- None if another transaction has just added the key.
        GET DIAGNOSTICS written_rows = ROW_COUNT;
    END LOOP;
    PERFORM textsim._replace_bands(c, document.id, stored.signature, document.signature);
    IF is_stored IS NULL AND document.word_ids IS NULL THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (c.id, source, ARRAY[document_key]);
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION textsim._write_document(textsim.corpus, integer, text, text, boolean)
    IS 'add or replace a document; false if its words stay the same. is_stored: NULL, or what a caller saw that has locked the documents: this caller logs the words, and reads the text again after a unique_violation';

CREATE FUNCTION textsim._remove_document(c textsim.corpus, source integer, document_key text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document record;
BEGIN
    EXECUTE format($query$
        DELETE FROM textsim.%I d
        WHERE d.key = $1
            AND ($2 IS NULL OR d.source_id IS NULL OR d.source_id = $2
                OR NOT textsim._is_attached(d.source_id))
        RETURNING d.id, d.signature
        $query$, 'document_' || c.id)
    INTO document USING document_key, source;
    IF document.id IS NULL THEN
        RETURN false;
    END IF;
    PERFORM textsim._replace_bands(c, document.id, document.signature, NULL);
    RETURN true;
END $$;
COMMENT ON FUNCTION textsim._remove_document(textsim.corpus, integer, text)
    IS 'remove a document, unless it is of another attached table; whether there was one';

CREATE FUNCTION textsim._remove_documents_of(c textsim.corpus, source integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    -- The documents are locked first: another transaction may be writing one of them, and a statement
    -- that began before it ended would not see its band rows.
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
    IS 'remove all documents of an attached table, and return how many there were';

-- Public functions

CREATE FUNCTION textsim.add(corpus text, key text, body text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fault text := textsim._document_fault(key, body);
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'document "%": %', left(key, 100), fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN textsim._write_document(textsim._required_corpus(corpus), NULL, key, body);
END $$;
COMMENT ON FUNCTION textsim.add(text, text, text)
    IS 'index a document, replacing the one with its key; false if its words stay the same';

CREATE FUNCTION textsim.remove(corpus text, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN textsim._remove_document(textsim._required_corpus(corpus), NULL, key);
END $$;
COMMENT ON FUNCTION textsim.remove(text, text) IS 'forget a document; whether there was one';
