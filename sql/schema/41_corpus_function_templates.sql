-- The functions of a corpus: _candidates_N, _write_N, _mates_N and _distinct_N, and two that read its dictionary. They name the
-- tables of the corpus, so that the statements of searches and of new documents are planned once in a session. An
-- upgrade replaces them for each corpus.
--
-- Each plan takes some 20 kB in every connection that uses the corpus, so these functions have few statements, and
-- _search() and _store_form(), whose statements are planned in each call, do the rest for all corpora.
--
-- Sequential scans are off, because a session that planned a statement while the tables were empty keeps the plan.

-- The documents with a guard; NULL if they are more than a hundred. Texts of one template share their buckets, and
-- differ in their guards. So those with the same guard may be far fewer, and only they are looked for in the buckets.
CREATE OR REPLACE FUNCTION textsim._mates(of_guard bigint) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
    mates integer[] := array(SELECT d.id FROM textsim.document d WHERE d.guard = of_guard LIMIT 101);
BEGIN
    RETURN CASE WHEN cardinality(mates) <= 100 THEN mates END;
END $$;

-- The function of a corpus that finds candidates, with names in braces for its settings: those that may be most similar
-- come first. threshold: NULL, the documents that nearest() compares, to return as many as most. In an exact corpus some
-- of them cannot reach its threshold: these are ordered by their likely similarity, and cut off after most and a small
-- part. of_siblings: instead of all, some documents with other guards than of_guard, those that share the most buckets.
-- with_rejected: for a writer, rejected documents, too.
CREATE OR REPLACE FUNCTION textsim._candidates_template() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $template$
CREATE OR REPLACE FUNCTION textsim._candidates_{id}(
    own_buckets integer[], own_count integer, own_key text, threshold double precision, of_language text,
    of_part bigint, of_guard bigint, own_form text, of_siblings boolean DEFAULT false,
    with_rejected boolean DEFAULT false, most integer DEFAULT NULL)
RETURNS TABLE (
    key text, word_ids integer[], normal_form text, shingle_count integer, guard bigint, own_numbers integer[],
    most_similar double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_nestloop = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    mates integer[] := {mates};
    compares_all boolean :=
        CASE WHEN threshold IS NULL THEN textsim._compares_all({id}, of_part, {is_exact}) ELSE false END;
BEGIN
    {siblings}RETURN QUERY
        WITH met AS MATERIALIZED ({met})
        SELECT r.key, r.word_ids, r.normal_form, r.shingle_count, r.guard, {own_numbers}, r.ranking
        FROM (
            SELECT d.*, {ranking} AS ranking, row_number() OVER (ORDER BY {ranking} DESC, d.key COLLATE "C") AS place
            FROM (
                SELECT e.*, m.shared, {most_shared} AS most_shared
                FROM (
                    SELECT *
                    FROM textsim.document_{id} d
                    WHERE d.id = ANY (array(
                        SELECT m.document_id FROM met m
                        UNION ALL
                        SELECT a.id FROM textsim.document_{id} a WHERE compares_all{of_part}))
                ) e
                LEFT JOIN met m ON m.document_id = e.id
                OFFSET 0  -- computed once, not in each of its uses
            ) d
            WHERE d.key IS DISTINCT FROM own_key{is_candidate}
                AND (of_language IS NULL OR d.language = of_language)
                AND (of_part IS NULL OR d.part = of_part) AND (of_guard IS NULL OR d.guard = of_guard){unexpired}
                AND (with_rejected OR d.rejected IS NULL)
        ) r{is_wanted}
        ORDER BY r.place;
END $$;
$template$;

-- The function of a corpus that adds documents, with names in braces for its settings.
CREATE OR REPLACE FUNCTION textsim._write_template() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $template$
CREATE OR REPLACE FUNCTION textsim._write_{id}(
    c textsim.corpus, source integer, document_key text, form text, document_scope text,
    document_expires_at timestamptz, unique_from double precision, sketched textsim._sketched)
RETURNS textsim._stored
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    stored textsim._stored;
    twins text[] := '{}';
    best double precision;
    own_fingerprints integer[];
BEGIN
    SELECT d.id, d.source_id, d.expires_at, d.part, d.word_ids, d.normal_form, d.signature,
        d.forced, NULL INTO stored
    FROM textsim.document_{id} d WHERE d.key = document_key FOR UPDATE;
    IF FOUND THEN
        RETURN stored;
    END IF;
    {keep_out}
    -- No row is returned if another transaction has just added the key.
    INSERT INTO textsim.document_{id} (
        id, shingle_count, expires_at, source_id, forced, key, language, scope, guard, word_ids, signature,
        fingerprints, normal_form)
    VALUES (
        nextval('textsim.document_{id}_id_seq'), sketched.shingle_count, document_expires_at, source, {forced},
        document_key, CASE WHEN form = '' AND c.language = 'auto' THEN 'und' END, document_scope, sketched.guard,
        CASE WHEN form = '' AND c.unit = 'word' THEN '{}'::integer[] END, sketched.signature, {fingerprints},
        CASE WHEN form <> '' OR c.unit = 'char' THEN form END)
    ON CONFLICT (key) DO NOTHING
    RETURNING id, 'written', fingerprints INTO stored.id, stored.outcome, own_fingerprints;
    {fingerprint_rows}
    INSERT INTO textsim.band_{id} (bucket, document_id)
    SELECT b, stored.id FROM unnest(sketched.buckets) b WHERE stored.id IS NOT NULL;
    RETURN stored;
END $$;
$template$;

-- A template in which the settings of a corpus replace the names in braces.
-- met: the documents with equal buckets. is_candidate: in an exact corpus they share as many buckets as the sizes
-- of both documents require. keep_out: the look for twins of a unique corpus, whose text is sketched before it is
-- locked; a text without candidates, as most are, needs no function that is called by a dynamic statement.
CREATE OR REPLACE FUNCTION textsim._filled(template text, c textsim.corpus) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
-- The threshold is written with all its digits, whatever the caller has set.
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
DECLARE
    name text;
    value text;
BEGIN
    FOR name, value IN
        SELECT * FROM (VALUES
            -- Three documents are compared as siblings of a new one, of up to nine in each of its buckets.
            ('siblings', CASE WHEN c.guards = '{}' THEN '' ELSE $part$IF of_siblings THEN
        RETURN QUERY
            WITH met AS MATERIALIZED (
                SELECT b.document_id, count(*) AS shared
                FROM unnest(own_buckets) q (bucket)
                CROSS JOIN LATERAL (
                    SELECT r.document_id FROM textsim.band_{id} r
                    WHERE r.bucket = q.bucket LIMIT 9) b
                GROUP BY b.document_id)
            SELECT d.key, d.word_ids, d.normal_form, d.shingle_count, d.guard, {own_numbers}, NULL::double precision
            FROM met m JOIN textsim.document_{id} d ON d.id = m.document_id
            WHERE d.id = ANY (array(SELECT m.document_id FROM met m))
                AND NOT textsim._have_equal_guards(d.guard, of_guard) AND (of_part IS NULL OR d.part = of_part){alive}
            ORDER BY m.shared DESC, d.id LIMIT 3;
        RETURN;
    END IF;
    $part$ END),
            -- Word shingles of up to 3 words are compared by word ids. Here the look-up is planned once, and done once
            -- for a text that has candidates.
            ('own_numbers', CASE WHEN c.unit = 'word' AND c.shingle_length <= 3
                THEN '(SELECT textsim._word_numbers_{id}(own_form))' ELSE 'NULL::integer[]' END),
            ('mates', CASE WHEN c.guards = '{}' THEN 'NULL'
                ELSE 'CASE WHEN NOT of_siblings THEN textsim._mates_{id}(of_guard) END' END),
            ('met', CASE WHEN c.bands IS NULL THEN $part$
            SELECT b.document_id, count(*) AS shared
            FROM unnest(own_buckets) q (bucket)
            CROSS JOIN LATERAL ({band_rows}
                OFFSET 0  -- looked up bucket by bucket, whatever the size of the table was
            ) b
            GROUP BY b.document_id
            HAVING count(*) >= textsim._least_needed_rows(own_count, threshold)$part$
                ELSE 'SELECT DISTINCT f.document_id, NULL::bigint AS shared FROM ({band_rows}) f' END),
            ('is_candidate', CASE WHEN c.bands IS NULL THEN ' AND (threshold IS NULL OR {most_similar} >= threshold)'
                ELSE '' END),
            ('is_wanted', CASE WHEN c.bands IS NULL THEN format('
        WHERE most IS NULL OR r.place - textsim._few_documents(true) <= most OR r.ranking >= %L', c.threshold)
                ELSE '' END),
            ('ranking', CASE WHEN c.bands IS NULL THEN format(
                'CASE WHEN threshold IS NULL AND {most_similar} < %L THEN least({most_similar}, {likely_similarity}) '
                'ELSE {most_similar} END', c.threshold) ELSE '{most_similar}' END),
            -- As if as many of all its shingles were shared as of its rows.
            ('likely_similarity', format('CASE WHEN d.shared > 0 THEN 1 / ((own_count + d.shingle_count) / least(own_count, '
                'd.shared * d.shingle_count / textsim._count_rows(d.shingle_count, %L)::double precision) - 1) ELSE 0 END',
                c.threshold)),
            ('most_similar', 'd.most_shared / nullif(own_count + d.shingle_count - d.most_shared, 0)::double precision'),
            -- Past the last row of one document, only its own other shingles can be shared.
            ('most_shared', format('least(own_count, e.shingle_count%s)', CASE WHEN c.bands IS NULL THEN format(
                ', coalesce(m.shared, 0) + greatest(own_count - cardinality(own_buckets), '
                'e.shingle_count - textsim._count_rows(e.shingle_count, %L))', c.threshold) END)),
            ('of_part', CASE WHEN c.scoped THEN ' AND a.part = of_part' ELSE '' END),
            ('band_rows', CASE WHEN c.guards = '{}' THEN $part$
                SELECT r.document_id FROM textsim.band_{id} r WHERE {has_bucket}$part$ ELSE $part$
                SELECT r.document_id FROM textsim.band_{id} r WHERE {has_bucket} AND mates IS NULL
                UNION ALL
                SELECT r.document_id FROM textsim.band_{id} r
                WHERE {has_bucket} AND r.document_id = ANY (mates)$part$ END),
            ('has_bucket', CASE WHEN c.bands IS NULL THEN 'r.bucket = q.bucket'
                ELSE 'r.bucket = ANY (own_buckets)' END),
            ('keep_out', CASE WHEN c.is_unique THEN $part$IF EXISTS (
        SELECT FROM textsim._candidates_{id}(
            sketched.buckets, sketched.shingle_count, document_key, c.threshold, NULL, sketched.part,
            sketched.guard, NULL, with_rejected => true))
    THEN
        SELECT a.twins, a.best INTO twins, best
        FROM textsim._awaited_twins(c, document_key, form, sketched) a;
        IF textsim._is_match(best, unique_from) THEN
            stored.outcome := 'twin';
            RETURN stored;
        END IF;
    END IF;$part$ ELSE 'sketched := textsim._sketched(c, form, textsim._part(document_scope));' END),
            ('fingerprint_rows', CASE WHEN c.passages IS NULL THEN '' ELSE
                $part$INSERT INTO textsim.passage_{id} (fingerprint, document_id)
    SELECT f, stored.id FROM unnest(textsim._in_part(own_fingerprints, sketched.part)) f
    WHERE stored.id IS NOT NULL;$part$ END),
            ('fingerprints', CASE WHEN c.passages IS NULL THEN 'NULL' ELSE 'textsim._fingerprints(c, form)' END),
            ('forced', CASE WHEN c.is_unique THEN 'twins <> ''{}''' ELSE 'false' END),
            ('alive', textsim._alive(c, 'd')),
            ('matches_by_numbers', textsim._matches_among(c, true)),
            ('matches_by_texts', textsim._matches_among(c, false)),
            ('is_exact', (c.bands IS NULL)::text),
            ('unexpired', textsim._unexpired(c, 'd')),
            ('id', c.id::text)
        ) v
    LOOP
        template := replace(template, '{' || name || '}', value);
    END LOOP;
    RETURN template;
END $$;

-- Create or replace a function of a corpus or an attached table, which is dropped together with an extension.
-- An object of a corpus belongs to the owner of the schema, whose rights the trigger functions have.
CREATE OR REPLACE FUNCTION textsim._make_function(function text, definition text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off SET jit = off AS $$
BEGIN
    BEGIN
        EXECUTE definition;
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        -- ALTER EXTENSION UPDATE refuses to replace a function that is not a member of the extension. A member
        -- is not dumped, and these functions must be.
        EXECUTE format('ALTER EXTENSION textsim ADD FUNCTION %s', function);
        EXECUTE definition;
        EXECUTE format('ALTER EXTENSION textsim DROP FUNCTION %s', function);
    END;
    IF EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'textsim') THEN
        EXECUTE format('ALTER FUNCTION %s DEPENDS ON EXTENSION textsim', function);
    END IF;
    -- As the last file does for all functions; a trigger function has the rights of the owner.
    IF EXISTS (
        SELECT FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = substring(function FROM '[.]([^(]+)')
            AND NOT p.prosecdef AND NOT has_function_privilege('public', p.oid, 'EXECUTE'))
    THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', function);
    END IF;
END $$;

-- Functions over the patterns of tables, made functions of a corpus over its tables: the statement of each.
CREATE OR REPLACE FUNCTION textsim._functions_like(functions text[], corpus_id integer)
RETURNS TABLE (name text, statement text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 25 SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off SET jit = off AS $$
BEGIN
    RETURN QUERY
        SELECT format('%s_%s', p.proname, corpus_id),
            regexp_replace(
                replace(
                    regexp_replace(pg_get_functiondef(p.oid), format(E'\\mtextsim\\.(%s)\\M', textsim._corpus_patterns()),
                        E'textsim.\\1_' || corpus_id, 'g'),
                    'textsim.node_id_seq', format('textsim.node_%s_id_seq', corpus_id)),
                format(E'\\m(%s|_mates)\\(', array_to_string(functions, '|')), format(E'\\1_%s(', corpus_id), 'g')
        FROM pg_proc p WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = ANY (functions);
END $$;

CREATE OR REPLACE FUNCTION textsim._make_functions(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = corpus_id);
BEGIN
    PERFORM textsim._make_function(format('textsim.%I', f.name), f.statement)
    FROM (
        VALUES ('_candidates_' || c.id, textsim._filled(textsim._candidates_template(), c)),
            ('_write_' || c.id, textsim._filled(textsim._write_template(), c)),
            ('_distinct_' || c.id, textsim._filled(textsim._distinct_template(), c))
        UNION ALL SELECT * FROM textsim._functions_like('{_normal_form_of,_word_numbers,_mates}', c.id)
    ) f (name, statement);
    IF EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = _make_functions.corpus_id) THEN
        PERFORM textsim._make_tracking_functions(corpus_id);
    END IF;
END $$;
