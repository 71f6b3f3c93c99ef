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

-- The hash by which a judgement remembers a normal form.
CREATE OR REPLACE FUNCTION textsim._form_hash(form text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(convert_to(form, 'UTF8')), 1, 16), 'hex')::uuid;

-- The same of the document with a key; NULL without one. A rebuilt corpus takes part from its last transaction on.
CREATE OR REPLACE FUNCTION textsim._document_hash(corpus_origin integer, document_key text) RETURNS uuid
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    id integer := (SELECT max(c.id) FROM textsim.corpus c WHERE textsim._origin(c) = corpus_origin);
    hash uuid;
BEGIN
    EXECUTE format(
        'SELECT textsim._form_hash(coalesce(d.normal_form, textsim._normal_form_of_%s(d.word_ids), '''')) '
        'FROM textsim.%I d WHERE d.key = $1', id, 'document_' || id)
    INTO hash USING document_key;
    RETURN hash;
END $$;

-- Whether the hashes of the texts of a judgement are others than those it remembers; NULL for a text that is gone.
CREATE OR REPLACE FUNCTION textsim._has_changed(judged textsim.judgement, hash_a uuid, hash_b uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce((judged).hash_a <> hash_a, false) OR coalesce((judged).hash_b <> hash_b, false);

-- Whether a text of a judgement has changed. A stale judgement is shown, and not obeyed: all that obeys judgements asks
-- this function, _obeyed_judgements() or textsim_db.compare.match_rule. form_a and form_b: normal forms that are not
-- stored yet.
CREATE OR REPLACE FUNCTION textsim._is_stale(
    judged textsim.judgement, form_a text DEFAULT NULL, form_b text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN textsim._has_changed(judged,
        CASE WHEN judged.hash_a IS NOT NULL THEN coalesce(
            textsim._form_hash(form_a), textsim._document_hash(judged.origin, judged.a)) END,
        CASE WHEN judged.hash_b IS NOT NULL THEN coalesce(
            textsim._form_hash(form_b), textsim._document_hash(judged.origin, judged.b)) END);
END $$;

-- Whether the documents of two keys are twins: they are similar enough, their guards are equal, and nobody judged them
-- different. Each way to keep twins out asks this function. A form is NULL if it is that of the stored document.
CREATE OR REPLACE FUNCTION textsim._merges(
    c textsim.corpus, key text, form text, other_key text, other_form text, similarity double precision,
    guard bigint, other_guard bigint)
RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    RETURN textsim._is_match(similarity, textsim._unique_from(c)) AND textsim._have_equal_guards(guard, other_guard)
        AND NOT EXISTS (
        SELECT FROM textsim.judgement j
        WHERE j.origin = textsim._origin(c) AND j.verdict = 'different'
            AND j.a = least(key COLLATE "C", other_key) AND j.b = greatest(key COLLATE "C", other_key)
            AND NOT CASE WHEN j.a = key THEN textsim._is_stale(j, form, other_form)
                ELSE textsim._is_stale(j, other_form, form) END);
END $$;
