-- Which documents are matches, and which of them are merged. textsim_db.compare.match_rule decides the same.

-- Each list of matches asks this function. Copies are matches by any rule, so they may be listed without it.
CREATE OR REPLACE FUNCTION textsim._is_match(similarity double precision, threshold double precision) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN similarity >= threshold;

-- Whether documents of a and b shingles can be as similar; it only saves work, and decides nothing.
CREATE OR REPLACE FUNCTION textsim._may_reach(a integer, b integer, threshold double precision) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(a, b)::double precision / greatest(a, b) >= threshold;

-- Whether two documents with these guards may be merged. A guard is NULL in a corpus without guards.
CREATE OR REPLACE FUNCTION textsim._have_equal_guards(guard bigint, other_guard bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN guard IS NOT DISTINCT FROM other_guard;

-- The similarity from which two documents of a corpus are twins.
CREATE OR REPLACE FUNCTION textsim._unique_from(c textsim.corpus) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(c.unique_from, c.threshold);

-- Whether the documents of two keys are twins: they are similar enough, their guards are equal, and nobody judged them
-- different. Each way to keep twins out asks this function.
CREATE OR REPLACE FUNCTION textsim._merges(
    c textsim.corpus, key text, other_key text, similarity double precision, guard bigint, other_guard bigint)
RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    RETURN textsim._is_match(similarity, textsim._unique_from(c)) AND textsim._have_equal_guards(guard, other_guard)
        AND NOT EXISTS (
        SELECT FROM textsim.judgement j
        WHERE j.origin = coalesce(c.origin, c.id) AND j.verdict = 'different'
            AND j.a = least(key COLLATE "C", other_key) AND j.b = greatest(key COLLATE "C", other_key));
END $$;
