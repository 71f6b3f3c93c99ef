-- Documents written and removed by SQL, in the caller's transaction: signature and band rows at
-- once, so that the document is found from then on. Its words stay in normal_form until a worker
-- gives them ids: the dictionary is never written here, where two transactions that add the same
-- words would wait for each other.

CREATE FUNCTION textsim._fault(key text, body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN key IS NULL THEN 'the key is NULL'
    WHEN body IS NULL THEN 'the text is NULL'
    WHEN octet_length(key) > 1000 THEN
        format('the key is %s bytes long; at most 1000 are possible', octet_length(key))
    WHEN octet_length(body) > 134217728 THEN
        format('the text is %s bytes long; at most 134217728 can be indexed', octet_length(body))
END;
COMMENT ON FUNCTION textsim._fault(text, text) IS 'why a document cannot be stored, or NULL';

CREATE FUNCTION textsim._known(name text) RETURNS textsim.corpus
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF name IS NULL THEN
        RAISE EXCEPTION 'the name of the corpus is NULL' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN textsim._corpus(name);
END
$$;
COMMENT ON FUNCTION textsim._known(text) IS 'the corpus of a name, for what must not pass over NULL';

CREATE FUNCTION textsim._is_live(source integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (SELECT FROM textsim.source s WHERE s.id = source AND s.active);
COMMENT ON FUNCTION textsim._is_live(integer) IS 'whether a table is attached under this number';

CREATE FUNCTION textsim._put(
    c textsim.corpus, source integer, document_key text, body text, was_there boolean DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    form text := textsim._form(c, body);
    shingles text[];
    fresh integer[];
    document_table text := 'document_' || c.id;
    band_table text := 'band_' || c.id;
    word_ids integer[] := CASE WHEN form = '' THEN '{}'::integer[] END;
    -- Others are identified by the worker that gives their words ids.
    language text := CASE WHEN form = '' AND c.language = 'auto' THEN 'und' END;
    old record;
    document_id bigint;
BEGIN
    LOOP
        EXECUTE format($query$
            SELECT d.id, d.source_id, d.signature, d.word_ids, d.normal_form
            FROM textsim.%I d WHERE d.key = $1 FOR UPDATE
            $query$, document_table)
        INTO old USING document_key;
        IF NOT was_there AND old.id IS NOT NULL THEN
            RAISE EXCEPTION 'another transaction has just added document "%"', document_key
                USING ERRCODE = 'unique_violation';
        END IF;
        IF source <> old.source_id AND textsim._is_live(old.source_id) THEN
            -- A worker sets it aside and says so; this transaction must not fail for it.
            INSERT INTO textsim.pending (corpus_id, source_id, keys)
            VALUES (c.id, source, ARRAY[document_key]);
            RETURN false;
        END IF;
        IF form COLLATE "C" = coalesce(old.normal_form, textsim._normal_form_of(old.word_ids)) THEN
            IF source IS NOT NULL AND source IS DISTINCT FROM old.source_id THEN
                EXECUTE format('UPDATE textsim.%I SET source_id = $1 WHERE id = $2', document_table)
                USING source, old.id;
            END IF;
            RETURN false;
        END IF;
        IF fresh IS NULL THEN
            shingles := textsim._shingles_of_form(form, c.unit, c.shingle_length);
            fresh := textsim._signature(shingles, c.a, c.b);
        END IF;
        IF old.id IS NULL THEN
            EXECUTE format($query$
                INSERT INTO textsim.%I (
                    corpus_id, shingle_count, id, source_id, key, word_ids, signature,
                    normal_form, language)
                VALUES ($1, $2, nextval('textsim.document_id'), $3, $4, $5, $6, $7, $8)
                ON CONFLICT (key) DO NOTHING RETURNING id
                $query$, document_table)
            INTO document_id
            USING c.id, cardinality(shingles), source, document_key, word_ids, fresh,
                nullif(form, ''), language;
            EXIT WHEN document_id IS NOT NULL;
            CONTINUE;  -- another transaction has just added it
        END IF;
        document_id := old.id;
        EXECUTE format($query$
            UPDATE textsim.%I SET shingle_count = $1, source_id = coalesce($2, source_id),
                word_ids = $3, signature = $4, normal_form = $5, language = $6
            WHERE id = $7
            $query$, document_table)
        USING cardinality(shingles), source, word_ids, fresh, nullif(form, ''), language,
            document_id;
        -- Only the band rows that differ.
        EXECUTE format($query$
            DELETE FROM textsim.%I b
            USING (
                SELECT * FROM textsim._buckets($1, $3, $4)
                EXCEPT SELECT * FROM textsim._buckets($2, $3, $4)
            ) gone
            WHERE b.band = gone.band AND b.bucket = gone.bucket AND b.document_id = $5
            $query$, band_table)
        USING old.signature, fresh, c.bands, c.rows, document_id;
        EXIT;
    END LOOP;
    EXECUTE format($query$
        INSERT INTO textsim.%I (corpus_id, band, bucket, document_id)
        SELECT $1, q.band, q.bucket, $2
        FROM (
            SELECT * FROM textsim._buckets($3, $5, $6)
            EXCEPT SELECT * FROM textsim._buckets($4, $5, $6)
        ) q
        $query$, band_table)
    USING c.id, document_id, fresh, old.signature, c.bands, c.rows;
    IF was_there IS NULL AND word_ids IS NULL THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (c.id, source, ARRAY[document_key]);
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION textsim._put(textsim.corpus, integer, text, text, boolean)
    IS 'add or replace a document; false if its words are what they were. was_there: whether the caller has locked the document, logs the words, and reads the text again after a unique_violation';

CREATE FUNCTION textsim._take(c textsim.corpus, source integer, document_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old record;
BEGIN
    EXECUTE format($query$
        DELETE FROM textsim.%I d
        WHERE d.key = $1
            AND ($2 IS NULL OR d.source_id IS NULL OR d.source_id = $2
                OR NOT textsim._is_live(d.source_id))
        RETURNING d.id, d.signature
        $query$, 'document_' || c.id)
    INTO old USING document_key, source;
    IF old.id IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format($query$
        DELETE FROM textsim.%I b USING textsim._buckets($1, $2, $3) gone
        WHERE b.band = gone.band AND b.bucket = gone.bucket AND b.document_id = $4
        $query$, 'band_' || c.id)
    USING old.signature, c.bands, c.rows, old.id;
    RETURN true;
END
$$;
COMMENT ON FUNCTION textsim._take(textsim.corpus, integer, text)
    IS 'remove a document, unless it is of another attached table; whether there was one';

CREATE FUNCTION textsim._take_all(c textsim.corpus, source integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    -- First of all the documents: whoever is writing one of them has written band rows that a
    -- statement begun before that would not see.
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
END
$$;
COMMENT ON FUNCTION textsim._take_all(textsim.corpus, integer)
    IS 'remove all documents of an attached table, and return how many there were';

CREATE FUNCTION textsim.add(corpus text, key text, body text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fault text := textsim._fault(key, body);
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'document "%": %', left(key, 100), fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN textsim._put(textsim._known(corpus), NULL, key, body);
END
$$;
COMMENT ON FUNCTION textsim.add(text, text, text)
    IS 'index a document, replacing the one with its key; false where its words are what they were';

CREATE FUNCTION textsim.remove(corpus text, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN textsim._take(textsim._known(corpus), NULL, key);
END
$$;
COMMENT ON FUNCTION textsim.remove(text, text) IS 'forget a document; whether there was one';
