-- Candidates by an indexed join, and matches verified exactly: what textsim_db.read.search does.
-- The queries name the partitions of a corpus directly, so that nothing of other corpora is planned or
-- locked. They look a bucket up without its band, because each bucket is a hash seeded with its band.
-- Documents are verified in word ids, which stand for words one to one, or in characters for char
-- shingles.

-- Private functions

CREATE FUNCTION textsim._normal_form_of(word_ids integer[]) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(string_agg(w.word, ' ' ORDER BY u.place), '')
    FROM unnest(word_ids) WITH ORDINALITY u (id, place) JOIN textsim.word w ON w.id = u.id;
END;
COMMENT ON FUNCTION textsim._normal_form_of(integer[]) IS 'the normal form that word ids stand for';

CREATE FUNCTION textsim._word_ids(form text) RETURNS text[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg(coalesce(w.id::text, '?' || u.word) ORDER BY u.place), '{}')
    FROM unnest(string_to_array(form, ' ')) WITH ORDINALITY u (word, place)
    LEFT JOIN textsim.word w
        ON w.hash = hashtextextended(u.word COLLATE "C", 0) AND w.word = u.word COLLATE "C";
END;
COMMENT ON FUNCTION textsim._word_ids(text)
    IS 'the word ids of a normal form as text; ?word if the dictionary does not have the word';

CREATE FUNCTION textsim._comparable(form text, unit text, n integer) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF unit = 'word' THEN
        RETURN textsim._shingles_of(textsim._word_ids(form), n, ' ');
    END IF;
    RETURN textsim._shingles_of_form(form, unit, n);
END $$;
COMMENT ON FUNCTION textsim._comparable(text, text, integer)
    IS 'the shingles of a normal form, comparable with the shingles that _stored() returns';

CREATE FUNCTION textsim._stored(word_ids integer[], normal_form text, unit text, n integer)
RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF word_ids IS NULL THEN
        RETURN textsim._comparable(normal_form, unit, n);
    END IF;
    IF unit = 'word' THEN
        RETURN textsim._shingles_of(word_ids::text[], n, ' ');
    END IF;
    RETURN textsim._shingles_of_form(textsim._normal_form_of(word_ids), unit, n);
END $$;
COMMENT ON FUNCTION textsim._stored(integer[], text, text, integer)
    IS 'the shingles of a stored document, in word ids or characters';

CREATE FUNCTION textsim._shared_bands(a integer[], b integer[], bands integer, rows integer)
RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN array(
    SELECT j FROM generate_series(0, bands - 1) j
    WHERE a[j * rows + 1:(j + 1) * rows] = b[j * rows + 1:(j + 1) * rows]
    ORDER BY j
);
COMMENT ON FUNCTION textsim._shared_bands(integer[], integer[], integer, integer)
    IS 'the numbers of the bands in which two signatures are equal';

CREATE FUNCTION textsim._matches(
    c textsim.corpus, signature integer[], comparable text[], shingle_count integer,
    without text, threshold double precision, max_results integer, language text)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY EXECUTE format($query$
        SELECT m.key, m.similarity
        FROM (
            SELECT d.key,
                textsim._jaccard(
                    $4, $5, textsim._stored(d.word_ids, d.normal_form, $6, $7), d.shingle_count) AS similarity
            FROM (
                SELECT DISTINCT b.document_id
                FROM textsim._buckets($1, $2, $3) q
                JOIN textsim.%I b ON b.bucket = q.bucket
            ) f
            JOIN textsim.%I d ON d.id = f.document_id
            WHERE d.key IS DISTINCT FROM $8 AND ($11 IS NULL OR d.language = $11)
            OFFSET 0  -- computed once, not in WHERE and SELECT
        ) m
        WHERE m.similarity >= $9
        ORDER BY m.similarity DESC, m.key COLLATE "C"
        LIMIT $10
        $query$, 'band_' || c.id, 'document_' || c.id)
    USING signature, c.bands, c.rows, comparable, shingle_count, c.unit, c.shingle_length, without,
        coalesce(textsim._check_threshold(threshold), c.threshold), max_results, language;
END $$;
COMMENT ON FUNCTION textsim._matches(
    textsim.corpus, integer[], text[], integer, text, double precision, integer, text)
    IS 'the documents similar to a set of shingles with this signature, best first';

CREATE FUNCTION textsim._neighbours(
    corpus text, document_key text, threshold double precision, max_results integer, language text)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    own_ids integer[];
    own_form text;
    own_signature integer[];
    own_count integer;
BEGIN
    IF c.id IS NULL OR document_key IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    EXECUTE format(
        'SELECT d.word_ids, d.normal_form, d.signature, d.shingle_count FROM textsim.%I d '
        'WHERE d.key = $1', 'document_' || c.id)
    INTO own_ids, own_form, own_signature, own_count USING document_key;
    -- A row of a LATERAL join that is not indexed yet must not end the whole statement.
    IF own_signature IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT * FROM textsim._matches(
        c, own_signature, textsim._stored(own_ids, own_form, c.unit, c.shingle_length), own_count,
        document_key, threshold, max_results, textsim._check_language(c, language));
END $$;
COMMENT ON FUNCTION textsim._neighbours(text, text, double precision, integer, text)
    IS 'what neighbours() returns; plpgsql takes no parameter and column of the same name';

-- Public functions

CREATE FUNCTION textsim.candidates(corpus text, body text, language text DEFAULT NULL)
RETURNS TABLE (key text, bands integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, body, textsim._check_language(c, language));
BEGIN
    IF c.id IS NULL OR form IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY EXECUTE format($query$
        SELECT d.key, f.bands::integer
        FROM (
            SELECT b.document_id, count(*) AS bands
            FROM textsim._buckets($1, $2, $3) q
            JOIN textsim.%I b ON b.bucket = q.bucket
            GROUP BY b.document_id
        ) f
        JOIN textsim.%I d ON d.id = f.document_id
        WHERE $4 IS NULL OR d.language = $4
        ORDER BY f.bands DESC, d.key COLLATE "C"
        $query$, 'band_' || c.id, 'document_' || c.id)
    USING textsim._signature(
            textsim._shingles_of_form(form, c.unit, c.shingle_length), c.a, c.b),
        c.bands, c.rows, language;
END $$;
COMMENT ON FUNCTION textsim.candidates(text, text, text)
    IS 'the documents that share a bucket with a text, most buckets first; nothing is verified';

CREATE FUNCTION textsim.matches(
    corpus text, body text,
    threshold double precision DEFAULT NULL, max_results integer DEFAULT 10,
    language text DEFAULT NULL)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, body, textsim._check_language(c, language));
    shingles text[] := textsim._shingles_of_form(form, c.unit, c.shingle_length);
BEGIN
    IF c.id IS NULL OR form IS NULL OR form = '' THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY SELECT * FROM textsim._matches(
        c, textsim._signature(shingles, c.a, c.b),
        textsim._comparable(form, c.unit, c.shingle_length), cardinality(shingles),
        NULL, threshold, max_results, language);
END $$;
COMMENT ON FUNCTION textsim.matches(text, text, double precision, integer, text)
    IS 'the documents similar to a text, verified exactly, best first; threshold of the corpus if NULL';

CREATE FUNCTION textsim.neighbours(
    corpus text, key text,
    threshold double precision DEFAULT NULL, max_results integer DEFAULT 10,
    language text DEFAULT NULL)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10
BEGIN ATOMIC
    SELECT n.key, n.similarity FROM textsim._neighbours($1, $2, $3, $4, $5) n;
END;
COMMENT ON FUNCTION textsim.neighbours(text, text, double precision, integer, text)
    IS 'the documents similar to an indexed one, itself left out, best first; none if it is not indexed';

-- The lists of a whole corpus are VOLATILE because a rebuild may replace the corpus while they wait.
CREATE FUNCTION textsim.candidate_pairs(corpus text)
RETURNS TABLE (a text, b text, bands integer)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._lock_corpus(corpus);
BEGIN
    IF c.id IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY EXECUTE format($query$
        SELECT least(d.key COLLATE "C", e.key), greatest(d.key COLLATE "C", e.key), p.bands
        FROM (
            SELECT x.document_id AS x, y.document_id AS y, count(*)::integer AS bands
            FROM textsim.%1$I x
            JOIN textsim.%1$I y ON y.bucket = x.bucket AND x.document_id < y.document_id
            GROUP BY x.document_id, y.document_id
        ) p
        JOIN textsim.%2$I d ON d.id = p.x
        JOIN textsim.%2$I e ON e.id = p.y
        $query$, 'band_' || c.id, 'document_' || c.id);
END $$;
COMMENT ON FUNCTION textsim.candidate_pairs(text)
    IS 'the pairs of documents that share a bucket, a < b, and how many buckets; nothing is verified';

-- Not the same function with a default: a NULL in a LATERAL join must not list the whole corpus.
CREATE FUNCTION textsim.candidate_pairs(corpus text, key text)
RETURNS TABLE (a text, b text, bands integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    IF c.id IS NULL OR key IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY EXECUTE format($query$
        SELECT $1, e.key, p.bands
        FROM (
            SELECT y.document_id, count(*)::integer AS bands
            FROM textsim.%2$I d
            CROSS JOIN LATERAL textsim._buckets(d.signature, $2, $3) q
            JOIN textsim.%1$I y ON y.bucket = q.bucket AND y.document_id <> d.id
            WHERE d.key = $1
            GROUP BY y.document_id
        ) p
        JOIN textsim.%2$I e ON e.id = p.document_id
        $query$, 'band_' || c.id, 'document_' || c.id)
    USING key, c.bands, c.rows;
END $$;
COMMENT ON FUNCTION textsim.candidate_pairs(text, text)
    IS 'the pairs of one document, which is a, with all that share a bucket; nothing is verified';

CREATE FUNCTION textsim.pairs(
    corpus text, threshold double precision DEFAULT NULL, language text DEFAULT NULL)
RETURNS TABLE (a text, b text, similarity double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._lock_corpus(corpus);
BEGIN
    IF c.id IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY EXECUTE format($query$
        SELECT least(m.a COLLATE "C", m.b), greatest(m.a COLLATE "C", m.b), m.similarity
        FROM (
            SELECT d.key AS a, e.key AS b,
                textsim._jaccard(
                    textsim._stored(d.word_ids, d.normal_form, $1, $2), d.shingle_count,
                    textsim._stored(e.word_ids, e.normal_form, $1, $2), e.shingle_count)
                    AS similarity
            FROM (
                SELECT DISTINCT x.document_id AS x, y.document_id AS y
                FROM textsim.%1$I x
                JOIN textsim.%1$I y ON y.bucket = x.bucket AND x.document_id < y.document_id
            ) p
            JOIN textsim.%2$I d ON d.id = p.x
            JOIN textsim.%2$I e ON e.id = p.y
            WHERE $4 IS NULL OR d.language = $4 AND e.language = $4
            OFFSET 0  -- computed once, not in WHERE and SELECT
        ) m
        WHERE m.similarity >= $3
        $query$, 'band_' || c.id, 'document_' || c.id)
    USING c.unit, c.shingle_length, coalesce(textsim._check_threshold(threshold), c.threshold),
        textsim._check_language(c, language);
END $$;
COMMENT ON FUNCTION textsim.pairs(text, double precision, text)
    IS 'the pairs of similar documents, a < b, each verified exactly; threshold of the corpus if NULL';
