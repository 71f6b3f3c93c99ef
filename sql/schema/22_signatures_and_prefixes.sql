-- From shingles to signatures and buckets. textsim_db.sketch computes the same, bit for bit.

-- The 64-bit value of each run of n units, such as words; one run of all units if there are fewer than n.
CREATE OR REPLACE FUNCTION textsim._run_values(units text[], n integer) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT array(
            SELECT hash_array_extended(w.hashes[i:i + n - 1], 0)
            FROM generate_series(1, greatest(cardinality(w.hashes) - n + 1, 1)) i)
        FROM (
            SELECT array(SELECT hashtextextended(u.unit COLLATE "C", 0) FROM unnest(units) u (unit)) AS hashes
            OFFSET 0  -- computed once, not for each slice
        ) w);
END $$;

-- The 64-bit values of the shingles of a normal form; equal word shingles are repeated.
CREATE OR REPLACE FUNCTION textsim._shingle_values(form text, unit text, n integer) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF form = '' THEN
        RETURN '{}';
    END IF;
    IF unit = 'char' OR n = 1 THEN
        RETURN array(
            SELECT hashtextextended(s COLLATE "C", 0)
            FROM unnest(CASE unit WHEN 'char' THEN textsim._shingles_in_any_order(form, unit, n)
                ELSE string_to_array(form, ' ') END) s);
    END IF;
    RETURN textsim._run_values(string_to_array(form, ' '), n);
END $$;

-- The smallest value in each bin after some rounds of hashing, without the empty bins.
CREATE OR REPLACE FUNCTION textsim._bins(shingle_values bigint[], num_hashes integer, base bigint, rounds integer)
RETURNS TABLE (bin bigint, value bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT ((h.hash & 4294967295) * num_hashes) >> 32, min((h.round << 32) + (h.hash >> 32))
    FROM (
        SELECT r.round, hashint8extended(x, base + r.round) AS hash
        FROM unnest(shingle_values) x CROSS JOIN generate_series(0, rounds - 1::bigint) r (round)
        OFFSET 0  -- computed once, not twice
    ) h
    GROUP BY 1;
END;

-- The signature of shingle values: the low 16 bits of the value in each of num_hashes bins.
-- Dahlgaard, Knudsen and Thorup, Fast Similarity Sketching, FOCS 2017. Rounds end when no bin is empty.
-- Further rounds change nothing, so several rounds are computed at once.
CREATE OR REPLACE FUNCTION textsim._sketch(shingle_values bigint[], num_hashes integer, base bigint) RETURNS smallint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- After this number of rounds, at most one text in eight still has an empty bin.
    rounds integer := least(num_hashes,
        ceil(num_hashes * (ln(num_hashes) + 2) / greatest(cardinality(shingle_values), 1)));
    sketch smallint[];
BEGIN
    IF cardinality(shingle_values) = 0 THEN
        RETURN '{}';
    END IF;
    LOOP
        sketch := array(
            SELECT ((b.value << 48) >> 48)::smallint
            FROM textsim._bins(shingle_values, num_hashes, base, rounds) b ORDER BY b.bin);
        IF cardinality(sketch) = num_hashes THEN
            RETURN sketch;
        END IF;
        EXIT WHEN rounds = num_hashes;
        rounds := least(num_hashes, 2 * rounds);
    END LOOP;
    -- A bin that is still empty takes the smallest hash with its own seed.
    RETURN array(
        SELECT ((coalesce(b.value, (
                SELECT min(hashint8extended(x, base + num_hashes + k) >> 32)
                FROM unnest(shingle_values) x)) << 48) >> 48)::smallint
        FROM generate_series(0, num_hashes - 1) k
        LEFT JOIN textsim._bins(shingle_values, num_hashes, base, num_hashes) b ON b.bin = k
        ORDER BY k);
END $$;

CREATE OR REPLACE FUNCTION textsim._bucket(signature smallint[], rows integer, band integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ((hash_array_extended(signature[band * rows + 1:(band + 1) * rows], band) << 32) >> 32)::integer;

-- The buckets of a signature, in the order of the bands; an empty array for an empty signature.
CREATE OR REPLACE FUNCTION textsim._buckets(signature smallint[], bands integer, rows integer) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN array(
        SELECT textsim._bucket(signature, rows, j) FROM generate_series(0, bands - 1) j
        WHERE signature <> '{}' ORDER BY j);
END $$;

-- The buckets of a signature of an exact corpus: its values.
-- The overload for an exact corpus, so that the same statements serve both.
CREATE OR REPLACE FUNCTION textsim._buckets(signature integer[], bands integer, rows integer) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN signature;

-- The bits of a part that buckets are mixed with and locks have: the low 32; 0 in a corpus without scopes.
CREATE OR REPLACE FUNCTION textsim._part_bits(part bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(((part << 32) >> 32)::integer, 0);

-- Buckets as a part stores and locks them.
CREATE OR REPLACE FUNCTION textsim._in_part(buckets integer[], part bigint) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bits integer := textsim._part_bits(part);
BEGIN
    IF part IS NULL THEN
        RETURN buckets;
    END IF;
    RETURN array(SELECT b.bucket # bits FROM unnest(buckets) WITH ORDINALITY b (bucket, place) ORDER BY b.place);
END $$;

-- The number of distinct shingles of a normal form; shingle_values comes from _shingle_values().
CREATE OR REPLACE FUNCTION textsim._count_shingles(form text, shingle_values bigint[], unit text, n integer)
RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    words text[];
BEGIN
    -- If all values are distinct, all shingles are. Shingles of characters are always distinct here.
    IF unit = 'char' OR cardinality(shingle_values) = (
        SELECT count(*) FROM (SELECT DISTINCT unnest(shingle_values)) value)
    THEN
        RETURN cardinality(shingle_values);
    END IF;
    IF n > 3 THEN
        RETURN cardinality(textsim._shingles_of_form(form, unit, n));
    END IF;
    words := string_to_array(form, ' ');
    RETURN (
        SELECT count(*)
        FROM (
            SELECT DISTINCT t.x COLLATE "C", t.y COLLATE "C", t.z COLLATE "C"
            FROM (
                SELECT w.x, w.y, w.z
                FROM unnest(words, CASE WHEN n > 1 THEN words[2:] END, CASE WHEN n > 2 THEN words[3:] END)
                    w (x, y, z)
                LIMIT greatest(cardinality(words) - n + 1, 1)
            ) t
        ) shingle);
END $$;

-- One value for each distinct shingle of a normal form; the values are those of _shingle_values().
CREATE OR REPLACE FUNCTION textsim._distinct_values(form text, shingle_values bigint[], unit text, n integer)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    distinct_values bigint[];
BEGIN
    IF unit = 'char' THEN
        RETURN shingle_values;  -- one for each distinct shingle already
    END IF;
    distinct_values := array(SELECT DISTINCT unnest(shingle_values));
    IF cardinality(distinct_values) = cardinality(shingle_values)
        OR cardinality(distinct_values) = textsim._count_shingles(form, shingle_values, unit, n)
    THEN
        RETURN distinct_values;
    END IF;
    -- Different shingles have the same value: it counts once for each.
    RETURN array(
        SELECT s.value
        FROM (
            SELECT DISTINCT w.words[i:i + n - 1] COLLATE "C" AS shingle, shingle_values[i] AS value
            FROM (SELECT string_to_array(form, ' ') AS words OFFSET 0) w
            CROSS JOIN generate_subscripts(shingle_values, 1) i
        ) s);
END $$;

-- Prefixes of sets in one order, in which similar sets must have elements in common: Chaudhuri, Ganti and
-- Kaushik, A Primitive Operator for Similarity Joins in Data Cleaning, ICDE 2006; two longer, so that three
-- are shared: Wang, Li and Feng, Can We Beat the Prefix Filtering?, SIGMOD 2012.

-- How many shingles two sets share at least if they reach the threshold and the larger has n: the smallest integer o
-- with o / n >= threshold, in doubles: the product may be rounded up or down. A planner that knows n computes the
-- quotients, so nullif() must hide a division by zero.
CREATE OR REPLACE FUNCTION textsim._overlap(n integer, threshold double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ceil(threshold * n) - CASE
    WHEN (ceil(threshold * n) - 1) / nullif(n, 0) >= threshold THEN 1
    WHEN ceil(threshold * n) / nullif(n, 0) >= threshold THEN 0
    ELSE -1 END)::integer;

-- How many rows a document of n shingles has in an exact corpus.
CREATE OR REPLACE FUNCTION textsim._count_rows(n integer, threshold double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(n, n + 3 - textsim._overlap(n, threshold));

-- How many rows two documents of a and b shingles share in an exact corpus if they are similar, at most 3.
CREATE OR REPLACE FUNCTION textsim._needed_rows(a integer, b integer, threshold double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN a + b <= 2 OR 1::double precision / (a + b - 1) >= threshold THEN 1
    WHEN a + b <= 4 OR 2::double precision / (a + b - 2) >= threshold THEN 2
    ELSE 3
END;

-- How many rows a document shares at least with any candidate; 1 for bands, which have no threshold here.
CREATE OR REPLACE FUNCTION textsim._least_needed_rows(shingles integer, threshold double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN threshold IS NULL THEN 1
    ELSE textsim._needed_rows(
        shingles, greatest(1, floor(threshold * shingles))::integer, threshold) END;

-- The Jaccard similarity of two sets, from the number of shared members and the sizes.
CREATE OR REPLACE FUNCTION textsim._ratio(shared bigint, a_count integer, b_count integer) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN shared = 0 THEN 0 ELSE shared / (a_count + b_count - shared)::double precision END;

-- Whether documents of a and b shingles share enough buckets; one is enough for bands, which have no threshold here.
CREATE OR REPLACE FUNCTION textsim._is_candidate(
    shared bigint, a integer, b integer, threshold double precision)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
-- Past the last row of one document, only its own other shingles can be shared, and the larger document has
-- more of these: Xiao, Wang, Lin and Yu, Efficient Similarity Joins for Near Duplicate Detection, WWW 2008.
RETURN threshold IS NULL OR textsim._ratio(
    least(a, b, shared + greatest(a, b) - textsim._count_rows(greatest(a, b), threshold)), a, b)
    >= threshold;

-- The signature in an exact corpus: the low halves of the smallest values in order, with common shingles last.
CREATE OR REPLACE FUNCTION textsim._smallest_values(
    corpus_id integer, shingle_values bigint[], threshold double precision)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off  -- a plan from the time when no value was common is used when many are
AS $$
DECLARE
    rows integer := textsim._count_rows(cardinality(shingle_values), threshold);
    smallest integer[] := array(
        SELECT ((s.x << 32) >> 32)::integer
        FROM (SELECT x FROM unnest(shingle_values) x ORDER BY x) s
        -- Looked up one by one, and only until there are enough.
        WHERE (SELECT k.class FROM textsim.common k
            WHERE k.corpus_id = _smallest_values.corpus_id AND NOT k.of_passages AND k.value = s.x) IS NULL
        LIMIT rows);
BEGIN
    IF cardinality(smallest) = rows THEN
        RETURN smallest;
    END IF;
    RETURN array(
        SELECT ((x << 32) >> 32)::integer FROM unnest(shingle_values) x
        ORDER BY coalesce((SELECT k.class FROM textsim.common k
            WHERE k.corpus_id = _smallest_values.corpus_id AND NOT k.of_passages AND k.value = x), 0), x
        LIMIT rows);
END $$;

-- The shingle values of a normal form; one for each distinct shingle in an exact corpus.
CREATE OR REPLACE FUNCTION textsim._query_values(c textsim.corpus, form text) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shingle_values bigint[] := textsim._shingle_values(form, c.unit, c.shingle_length);
BEGIN
    RETURN CASE WHEN c.bands IS NULL
        THEN textsim._distinct_values(form, shingle_values, c.unit, c.shingle_length)
        ELSE shingle_values END;
END $$;

-- The signature of the values of a query; a higher threshold needs fewer of an exact corpus.
CREATE OR REPLACE FUNCTION textsim._signature(
    c textsim.corpus, shingle_values bigint[], threshold double precision DEFAULT NULL)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF c.bands IS NULL AND shingle_values IS NOT NULL THEN
        RETURN textsim._smallest_values(c.id, shingle_values, coalesce(threshold, c.threshold));
    END IF;
    RETURN textsim._sketch(shingle_values, c.num_hashes, c.base);
END $$;

-- A text as its corpus would store it. In an exact corpus the shingle values are distinct, and the buckets its prefix.
DO $do$ BEGIN
    CREATE TYPE textsim._sketched AS (
        shingle_values bigint[], shingle_count integer, signature integer[], buckets integer[], part bigint,
        guard bigint);
EXCEPTION WHEN duplicate_object THEN
END $do$;

-- The buckets of a signature, as the band rows of a document of this part have them.
CREATE OR REPLACE FUNCTION textsim._stored_buckets(c textsim.corpus, signature integer[], part bigint) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN textsim._in_part(CASE WHEN c.bands IS NULL THEN signature
        ELSE textsim._buckets(signature::smallint[], c.bands, c.rows) END, part);
END $$;

-- A normal form as its corpus would store it in a part.
CREATE OR REPLACE FUNCTION textsim._sketched(c textsim.corpus, form text, part bigint) RETURNS textsim._sketched
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    s textsim._sketched;
BEGIN
    s.shingle_values := textsim._query_values(c, form);
    s.shingle_count := CASE WHEN c.bands IS NULL THEN cardinality(s.shingle_values)
        ELSE textsim._count_shingles(form, s.shingle_values, c.unit, c.shingle_length) END;
    s.signature := textsim._signature(c, s.shingle_values);
    s.buckets := textsim._stored_buckets(c, s.signature, part);
    s.part := part;
    s.guard := textsim._guard(c.guards, c.guard_words, c.guard_fillers, form);
    RETURN s;
END $$;

CREATE OR REPLACE FUNCTION textsim._count_shared(a text[], b text[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT count(*) FROM unnest(a) x JOIN unnest(b) y ON x COLLATE "C" = y COLLATE "C");
END $$;

-- The Jaccard similarity of two normal forms.
CREATE OR REPLACE FUNCTION textsim._jaccard(c textsim.corpus, form text, other_form text) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    a text[] := textsim._shingles_in_any_order(form, c.unit, c.shingle_length);
    b text[] := textsim._shingles_in_any_order(other_form, c.unit, c.shingle_length);
BEGIN
    RETURN textsim._ratio(textsim._count_shared(a, b), cardinality(a), cardinality(b));
END $$;

CREATE OR REPLACE FUNCTION textsim.jaccard(corpus text, a text, b text, language text DEFAULT NULL)
RETURNS double precision
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    checked text := textsim._check_language(c, language);
BEGIN
    RETURN textsim._jaccard(c, textsim._form(c, a, checked), textsim._form(c, b, checked));
END $$;
COMMENT ON FUNCTION textsim.jaccard(text, text, text, text)
    IS 'Returns the exact Jaccard similarity of two texts, 0 to 1: the shingles that both have, '
    'divided by the shingles that either has. The corpus gives the settings. language is an '
    'ISO 639 code, for corpora that identify languages. It is required if the stop words of the corpus depend on the '
    'language.';
