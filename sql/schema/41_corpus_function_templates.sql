-- The functions of a corpus: _search_N, _write_N and _remove_N. They name the tables of the corpus, so that
-- their statements are planned once in a session. An upgrade replaces them for each corpus.
--
-- Sequential scans are off, because a plan from the time when the tables were empty is used when they are
-- full.

-- Private functions

CREATE FUNCTION textsim._search_template() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $template$
CREATE OR REPLACE FUNCTION textsim._search_{id}(
    own_buckets integer[], own_values bigint[], own_form text, own_ids integer[], own_count integer,
    own_key text, threshold double precision, max_results integer, of_language text, of_scope text)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    candidates integer[] := array({candidates});
BEGIN
    IF candidates = '{}' THEN
        RETURN;
    END IF;
    -- The words of the text have no ids yet. Only word shingles up to 3 are compared by word ids, and only
    -- with documents that have them.
    IF own_ids IS NULL AND {unit} = 'word' AND {n} <= 3 AND EXISTS (
        SELECT FROM textsim.document_{id} d
        WHERE d.id = ANY (candidates) AND d.key IS DISTINCT FROM own_key AND d.word_ids IS NOT NULL)
    THEN
        own_ids := textsim._word_numbers(own_form);
        own_count := coalesce(
            own_count, textsim._count_shingles(own_form, own_values, {unit}, {n}));
    END IF;
    RETURN QUERY
        SELECT m.key, m.similarity
        FROM (
            SELECT d.key, textsim._similarity(
                own_ids,
                -- A subquery is computed once, for the first candidate that needs it.
                CASE WHEN s.shingles IS NOT NULL THEN (
                    SELECT textsim._compared_shingles(
                        CASE WHEN own_form IS NULL THEN own_ids END, own_form, {unit}, {n})) END,
                own_count, d.word_ids, s.shingles, d.shingle_count, {n}) AS similarity
            FROM textsim.document_{id} d
            CROSS JOIN LATERAL (
                SELECT textsim._compared_shingles(d.word_ids, d.normal_form, {unit}, {n}) AS shingles
                OFFSET 0  -- computed once
            ) s
            WHERE d.id = ANY (candidates) AND d.key IS DISTINCT FROM own_key
                AND (of_language IS NULL OR d.language = of_language)
                AND (of_scope IS NULL OR d.scope = of_scope){alive}
                AND (own_count IS NULL OR threshold <= least(d.shingle_count, own_count)::double precision
                    / greatest(d.shingle_count, own_count))
            OFFSET 0  -- computed once, not in WHERE and SELECT
        ) m
        WHERE m.similarity >= threshold
        ORDER BY m.similarity DESC, m.key COLLATE "C"
        LIMIT max_results;
END $$;
COMMENT ON FUNCTION textsim._search_{id}(
    integer[], bigint[], text, integer[], integer, text, double precision, integer, text, text)
    IS 'the documents of a corpus that are similar to the given signature and words, best first';
$template$;
COMMENT ON FUNCTION textsim._search_template()
    IS 'the search function of a corpus, with names in braces for its settings';

CREATE FUNCTION textsim._write_template() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $template$
CREATE OR REPLACE FUNCTION textsim._write_{id}(
    source integer, document_key text, form text, document_scope text, document_expires_at timestamptz,
    force boolean)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    stored textsim.document_{id};
    shingle_values bigint[];
    new_signature textsim.document_{id}.signature%TYPE;
    new_count integer;
    new_id bigint;
    new_buckets integer[];
    changed integer[];
    twins text[];
    waited_for text[];
BEGIN
    {lock}
    WHILE new_id IS NULL LOOP
        SELECT d.* INTO stored FROM textsim.document_{id} d WHERE d.key = document_key FOR UPDATE;
        IF stored.id IS NOT NULL THEN
            IF {is_unique} AND source IS NULL AND textsim._is_attached(stored.source_id) THEN
                PERFORM textsim._refuse_attached({id}, ARRAY[document_key]);
            END IF;
            IF source <> stored.source_id AND textsim._is_attached(stored.source_id){counts} THEN
                IF {is_unique} THEN
                    PERFORM textsim._raise_taken_key({id}, stored.source_id, document_key);
                END IF;
                -- The caller's transaction must not fail, so a worker sets the key aside with an error.
                INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
                VALUES ('change', {id}, source, ARRAY[document_key]);
                RETURN 'unchanged';
            END IF;
            IF form COLLATE "C" = coalesce(stored.normal_form, textsim._normal_form_of(stored.word_ids))
                AND document_scope COLLATE "C" IS NOT DISTINCT FROM stored.scope
            THEN
                {extend}
                IF source IS NOT NULL AND source IS DISTINCT FROM stored.source_id THEN
                    UPDATE textsim.document_{id} SET source_id = source WHERE id = stored.id;
                END IF;
                RETURN 'unchanged';
            END IF;
        END IF;
        IF new_signature IS NULL THEN
            {sketch}
        END IF;
        {keep_out}
        -- The language stays NULL until the worker that gives word ids identifies it. A text without words
        -- needs no worker.
        IF stored.id IS NULL THEN
            INSERT INTO textsim.document_{id} (
                id, shingle_count, expires_at, source_id, forced, key, language, scope, word_ids, signature,
                normal_form)
            VALUES (
                textsim._checked_id(nextval('textsim.document_{id}_id_seq'), {id}), new_count,
                document_expires_at, source, {forced}, document_key, CASE form WHEN '' THEN {empty_language} END,
                document_scope, CASE form WHEN '' THEN '{}'::integer[] END, new_signature, nullif(form, ''))
            ON CONFLICT (key) DO NOTHING
            RETURNING id INTO new_id;  -- NULL if another transaction has just added the key
        ELSE
            UPDATE textsim.document_{id}
            SET shingle_count = new_count, expires_at = document_expires_at, signature = new_signature,
                word_ids = CASE form WHEN '' THEN '{}'::integer[] END, normal_form = nullif(form, ''),
                language = CASE form WHEN '' THEN {empty_language} END, scope = document_scope,
                source_id = coalesce(source, source_id), forced = {forced}
            WHERE id = stored.id
            RETURNING id INTO new_id;
        END IF;
    END LOOP;
    IF stored.id IS NULL THEN
        changed := new_buckets;
    ELSE
        changed := textsim._changed_buckets(textsim._in_scope(
            textsim._buckets(stored.signature, {bands}, {rows}), stored.scope), new_buckets);
        DELETE FROM textsim.band_{id} WHERE bucket = ANY (changed) AND document_id = new_id;
    END IF;
    INSERT INTO textsim.band_{id} (bucket, document_id)
    SELECT b, new_id FROM unnest(new_buckets) b
    WHERE b IN (SELECT c FROM unnest(changed) c);  -- hashed; = ANY would compare each with all
    RETURN 'written';
END $$;
COMMENT ON FUNCTION textsim._write_{id}(integer, text, text, text, timestamptz, boolean)
    IS 'add or replace a document of a corpus. Returns written; unchanged, if it has these words and this scope already; or twin, if the corpus is unique and other documents match it. Then nothing is written, unless force is true';
$template$;
COMMENT ON FUNCTION textsim._write_template()
    IS 'the write function of a corpus, with names in braces for its settings';

CREATE FUNCTION textsim._remove_template() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $template$
CREATE OR REPLACE FUNCTION textsim._remove_{id}(source integer, document_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    removed textsim.document_{id};
BEGIN
    DELETE FROM textsim.document_{id} d
    WHERE d.key = document_key
        AND (source IS NULL AND NOT {is_unique} OR d.source_id IS NULL OR d.source_id = source
            OR NOT textsim._is_attached(d.source_id))
    RETURNING d.* INTO removed;
    DELETE FROM textsim.band_{id} b
    WHERE b.bucket = ANY (
            textsim._in_scope(textsim._buckets(removed.signature, {bands}, {rows}), removed.scope))
        AND b.document_id = removed.id;
    RETURN removed.id IS NOT NULL;
END $$;
COMMENT ON FUNCTION textsim._remove_{id}(integer, text)
    IS 'remove a document of a corpus, unless it belongs to another attached table; whether it was removed';
$template$;
COMMENT ON FUNCTION textsim._remove_template()
    IS 'the remove function of a corpus, with names in braces for its settings';

CREATE FUNCTION textsim._checked_id(number bigint, corpus_id integer) RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF number > 2147483647 THEN
        RAISE EXCEPTION 'corpus "%" has given out all its % ids of documents',
            (SELECT c.name FROM textsim.corpus c WHERE c.id = corpus_id), 2147483647
            USING ERRCODE = 'sequence_generator_limit_exceeded',
                HINT = 'Run textsim rebuild: it gives the documents new ids without gaps.';
    END IF;
    RETURN number;
END $$;
COMMENT ON FUNCTION textsim._checked_id(bigint, integer)
    IS 'the id of a new document; an error if the corpus has no more ids';

CREATE FUNCTION textsim._candidates_part(is_exact boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN is_exact THEN $part$
        SELECT f.document_id
        FROM (
            SELECT b.document_id, count(*) AS shared
            FROM unnest(own_buckets) q (bucket)
            CROSS JOIN LATERAL (
                SELECT r.document_id FROM textsim.band_{id} r WHERE r.bucket = q.bucket
                OFFSET 0  -- looked up bucket by bucket, whatever the size of the table was
            ) b
            GROUP BY b.document_id
            HAVING count(*) >= textsim._least_needed_rows(own_count, threshold)
        ) f
        JOIN textsim.document_{id} d ON d.id = f.document_id
        WHERE textsim._is_candidate(f.shared, d.shingle_count, own_count, threshold)$part$
    ELSE $part$
        SELECT DISTINCT b.document_id FROM textsim.band_{id} b WHERE b.bucket = ANY (own_buckets)$part$
END;
COMMENT ON FUNCTION textsim._candidates_part(boolean)
    IS 'the query for candidates in the search template; in an exact corpus, as many shared buckets are '
    'needed as the sizes of both documents require';

CREATE FUNCTION textsim._sketch_part(is_exact boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'shingle_values := textsim._shingle_values(form, {unit}, {n});' || CASE WHEN is_exact THEN $part$
            shingle_values := textsim._distinct_values(form, shingle_values, {unit}, {n});
            new_signature := textsim._smallest_values({id}, shingle_values, {threshold});
            new_count := cardinality(shingle_values);$part$
    ELSE $part$
            new_signature := textsim._sketch(shingle_values, {num_hashes}, {base});
            new_count := textsim._count_shingles(form, shingle_values, {unit}, {n});$part$
    END || $part$
            new_buckets := textsim._in_scope(
                textsim._buckets(new_signature, {bands}, {rows}), document_scope);$part$;
COMMENT ON FUNCTION textsim._sketch_part(boolean)
    IS 'the statements for signature, number of shingles and buckets in the write template';

-- The locks come before the first look at a table. Else a rebuild, which holds the lock of the corpus, could
-- wait for the writer that waits for this lock. And who holds bucket locks waits for documents, so no writer
-- locks a document first.
CREATE FUNCTION textsim._lock_part(is_unique boolean, is_exact boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN is_unique THEN '{sketch}
    PERFORM textsim._lock_buckets({id}, ' || CASE WHEN is_exact
        THEN 'new_buckets[1:textsim._count_locks(new_count, {threshold})]' ELSE 'new_buckets' END
        || ', ARRAY[document_scope]);'
    ELSE '' END;
COMMENT ON FUNCTION textsim._lock_part(boolean, boolean)
    IS 'the statements that lock buckets in the write template of a unique corpus';

CREATE FUNCTION textsim._keep_out_part(is_unique boolean, condition text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN is_unique THEN replace($part$
        -- A later statement than the locks: its snapshot has what their last holders have written.
        LOOP
            twins := array(
                SELECT m.key FROM textsim._search_{id}(new_buckets, shingle_values, form, NULL,
                    new_count, document_key, {threshold}, NULL, NULL, document_scope) m);
            EXIT WHEN twins = '{}' OR twins <@ waited_for;
            -- Another transaction may be removing or changing a twin. When it has ended, look again.
            PERFORM FROM textsim.document_{id} d WHERE d.key = ANY (twins) ORDER BY d.key FOR SHARE;
            waited_for := twins;
        END LOOP;
        IF twins <> '{}' AND force IS NOT TRUE{condition} THEN
            RETURN 'twin';
        END IF;$part$, '{condition}', condition)
    ELSE '' END;
COMMENT ON FUNCTION textsim._keep_out_part(boolean, text)
    IS 'the statements that look for twins in the write template of a unique corpus; condition: what else must '
    'hold for twins to keep the document out';

-- An unchanged document of a unique corpus is compared again before it counts for longer: a transaction with a later
-- clock may have seen it expired, and have added a twin. A twin beside which it stood already keeps nothing out:
-- one of the two was forced.
CREATE FUNCTION textsim._extend_part(is_unique boolean, keep_for interval) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN keep_for IS NULL THEN '' ELSE
    'IF stored.expires_at IS DISTINCT FROM document_expires_at THEN' || textsim._keep_out_part(is_unique, $part$
            AND NOT (true{counts} AND (stored.forced OR NOT EXISTS (
                SELECT FROM textsim.document_{id} d WHERE d.key = ANY (twins) AND NOT d.forced)))$part$) || $part$
                    UPDATE textsim.document_{id} SET expires_at = document_expires_at, forced = forced OR force IS TRUE AND {forced}
                    WHERE id = stored.id;
                END IF;$part$
    END;
COMMENT ON FUNCTION textsim._extend_part(boolean, interval)
    IS 'the statements that give an unchanged document its new expiry in the write template; empty if the documents '
    'of the corpus never expire';

CREATE FUNCTION textsim._filled(template text, c textsim.corpus) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
    value text;
BEGIN
    FOR name, value IN
        SELECT * FROM (VALUES
            ('candidates', textsim._candidates_part(c.bands IS NULL)),
            ('lock', textsim._lock_part(c.is_unique, c.bands IS NULL)),
            ('keep_out', textsim._keep_out_part(c.is_unique, '')),
            ('extend', textsim._extend_part(c.is_unique, c.keep_for)),
            ('alive', textsim._alive(c, 'd')), ('counts', textsim._alive(c, 'stored')),
            ('sketch', textsim._sketch_part(c.bands IS NULL)),
            ('forced', CASE WHEN c.is_unique THEN 'twins <> ''{}''' ELSE 'false' END),
            ('is_unique', c.is_unique::text),
            ('id', c.id::text), ('unit', quote_literal(c.unit)), ('n', c.shingle_length::text),
            ('threshold', format('%L::double precision', c.threshold)),
            ('num_hashes', c.num_hashes::text), ('base', c.base::text), 
            ('bands', coalesce(c.bands::text, 'NULL')), ('rows', coalesce(c.rows::text, 'NULL')),
            ('empty_language', CASE c.language WHEN 'auto' THEN '''und''' ELSE 'NULL' END)
        ) v
    LOOP
        template := replace(template, '{' || name || '}', value);
    END LOOP;
    RETURN template;
END $$;
COMMENT ON FUNCTION textsim._filled(text, textsim.corpus)
    IS 'a template in which the settings of a corpus replace the names in braces';

CREATE FUNCTION textsim._make_function(function text, definition text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION textsim._make_function(text, text)
    IS 'create or replace a function of a corpus or an attached table; if the schema is an extension, the function '
    'is dropped together with it';

CREATE FUNCTION textsim._corpus_functions(c textsim.corpus)
RETURNS TABLE (name text, statement text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY VALUES
        ('_search_' || c.id, textsim._filled(textsim._search_template(), c)),
        ('_write_' || c.id, textsim._filled(textsim._write_template(), c)),
        ('_remove_' || c.id, textsim._filled(textsim._remove_template(), c));
END $$;
COMMENT ON FUNCTION textsim._corpus_functions(textsim.corpus)
    IS 'the functions of a corpus, with the statements that create them; check compares the bodies';

CREATE FUNCTION textsim._make_functions(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = corpus_id);
BEGIN
    PERFORM textsim._make_function(format('textsim.%I', f.name), f.statement)
    FROM textsim._corpus_functions(c) f;
END $$;
COMMENT ON FUNCTION textsim._make_functions(integer)
    IS 'create or replace the functions of a corpus';
