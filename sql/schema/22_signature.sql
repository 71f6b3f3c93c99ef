-- From shingles to signatures and buckets: what textsim_db.sketch computes, bit for bit.

-- Private functions

CREATE FUNCTION textsim._signature(shingles text[], a bigint[], b bigint[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shingle_values bigint[] := array(
        SELECT DISTINCT hashtextextended(s COLLATE "C", 0) & 2147483647 FROM unnest(shingles) s);
BEGIN
    IF cardinality(shingle_values) = 0 THEN
        RETURN '{}';
    END IF;
    RETURN array(
        SELECT (SELECT min((h.a * x + h.b) % 2147483647) FROM unnest(shingle_values) x)::integer
        FROM unnest(a, b) WITH ORDINALITY h (a, b, place)
        ORDER BY h.place);
END $$;
COMMENT ON FUNCTION textsim._signature(text[], bigint[], bigint[])
    IS 'the smallest (a * x + b) mod (2^31 - 1) over the shingle values x, for each a and b';

CREATE FUNCTION textsim._buckets(signature integer[], bands integer, rows integer)
RETURNS TABLE (band smallint, bucket bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 18
BEGIN ATOMIC
    SELECT j::smallint, hash_array_extended(signature[j * rows + 1:(j + 1) * rows], j)
    FROM generate_series(0, bands - 1) j
    WHERE cardinality(signature) > 0;
END;
COMMENT ON FUNCTION textsim._buckets(integer[], integer, integer)
    IS 'the bucket of a signature in each band';

CREATE FUNCTION textsim._jaccard(a text[], a_count integer, b text[], b_count integer)
RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT CASE WHEN count(*) = 0 THEN 0
        ELSE count(*) / (a_count + b_count - count(*))::double precision END
    FROM unnest(a) x JOIN unnest(b) y ON x COLLATE "C" = y COLLATE "C"
);
COMMENT ON FUNCTION textsim._jaccard(text[], integer, text[], integer)
    IS 'the Jaccard similarity of two arrays without duplicates, which stand for sets of these sizes';

-- Public functions

CREATE FUNCTION textsim.signature(corpus text, body text, language text DEFAULT NULL)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, body, textsim._check_language(c, language));
BEGIN
    RETURN textsim._signature(
        textsim._shingles_of_form(form, c.unit, c.shingle_length), c.a, c.b);
END $$;
COMMENT ON FUNCTION textsim.signature(text, text, text)
    IS 'the MinHash signature that a text has in a corpus; empty for a text without words';

CREATE FUNCTION textsim.buckets(corpus text, signature integer[])
RETURNS TABLE (band smallint, bucket bigint)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 18
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    IF cardinality(signature) NOT IN (0, c.num_hashes) THEN
        RAISE EXCEPTION 'the signature has % values; corpus "%" has %',
            cardinality(signature), corpus, c.num_hashes USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT q.band, q.bucket FROM textsim._buckets(signature, c.bands, c.rows) q;
END $$;
COMMENT ON FUNCTION textsim.buckets(text, integer[]) IS 'the bucket of a signature in each band';

CREATE FUNCTION textsim.estimate(a integer[], b integer[]) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF cardinality(a) <> cardinality(b) AND cardinality(a) > 0 AND cardinality(b) > 0 THEN
        RAISE EXCEPTION 'different signature lengths % and %', cardinality(a), cardinality(b)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Without words nothing is similar.
    RETURN coalesce((SELECT avg((x = y)::integer) FROM unnest(a, b) u (x, y)
        WHERE x IS NOT NULL AND y IS NOT NULL), 0);
END $$;
COMMENT ON FUNCTION textsim.estimate(integer[], integer[])
    IS 'the Jaccard similarity that two signatures suggest: the share of equal values';

CREATE FUNCTION textsim.jaccard(corpus text, a text, b text, language text DEFAULT NULL)
RETURNS double precision
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    checked text := textsim._check_language(c, language);
    x text[] := textsim._shingles_of_form(textsim._form(c, a, checked), c.unit, c.shingle_length);
    y text[] := textsim._shingles_of_form(textsim._form(c, b, checked), c.unit, c.shingle_length);
BEGIN
    RETURN textsim._jaccard(x, cardinality(x), y, cardinality(y));
END $$;
COMMENT ON FUNCTION textsim.jaccard(text, text, text, text)
    IS 'the exact Jaccard similarity of the shingles of two texts';
