-- index_pending leaves documents that equal their rows, as a worker does. Default privileges take no function from a role.
-- A normal form takes less time in a new session, and up to version 17 in each transaction. A search without a candidate
-- ends sooner, and one with word ids plans less.

-- The keys of those documents that do not equal their rows; all of them if a row or a document cannot be compared.
-- The words of all documents are looked up at once: this takes half of the time of making each equal to its row. Rows
-- that are changed meanwhile are in the log.
CREATE OR REPLACE FUNCTION textsim._unequal_keys(source textsim.source, keys text[]) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_nestloop = off SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = source.corpus_id);
    unequal text[];
BEGIN
    EXECUTE format($query$
        WITH stored AS MATERIALIZED (
            SELECT d.key, d.scope, d.expires_at, d.word_ids, d.normal_form FROM textsim.%1$I d
            WHERE d.key = ANY ($3) AND d.source_id = $2.id
        ), word AS MATERIALIZED (
            SELECT w.id, w.word FROM textsim.%2$I w
            WHERE w.id = ANY (array(SELECT DISTINCT i FROM stored s CROSS JOIN LATERAL unnest(s.word_ids) i))
        ), composed AS MATERIALIZED (
            SELECT s.key, string_agg(w.word, ' ' ORDER BY i.place) AS form
            FROM stored s CROSS JOIN LATERAL unnest(s.word_ids) WITH ORDINALITY i (id, place)
            JOIN word w ON w.id = i.id
            GROUP BY s.key
        )
        SELECT coalesce(array_agg(r.key), '{}')
        FROM textsim._rows_of($2, $3) r LEFT JOIN stored s ON s.key = r.key LEFT JOIN composed m ON m.key = r.key
        WHERE (s.key IS NOT NULL AND r.fault IS NULL AND r.scope IS NOT DISTINCT FROM s.scope
            AND r.expires_at IS NOT DISTINCT FROM s.expires_at
            AND textsim._form($1, r.body) COLLATE "C" = coalesce(s.normal_form, m.form, '')) IS NOT TRUE
        $query$, 'document_' || c.id, 'word_' || c.id)
    INTO unequal USING c, source, keys;
    RETURN unequal;
EXCEPTION
    WHEN insufficient_resources OR operator_intervention OR system_error OR transaction_rollback THEN
        RAISE;
    WHEN OTHERS THEN
        RETURN keys;
END $$;

-- The next keys for the comparison of a table; last is NULL at the end; is_left after an error, of which it warns.
-- For a page of the table, returns the keys of rows without an equal document. For a page of documents, returns the
-- keys without a row.
CREATE OR REPLACE FUNCTION textsim._next_page(
    number integer, of_documents boolean, after text, OUT keys text[], OUT last text, OUT is_left boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    source textsim.source;
    has_document text;
BEGIN
    source := textsim._hold_source(number);
    has_document := textsim._has_document(source, 't');
    is_left := false;
    IF of_documents THEN
        EXECUTE format($query$
            SELECT array_agg(d.key) FILTER (WHERE NOT EXISTS (
                    SELECT FROM %1$s t
                    WHERE %2$s AND %3$s OFFSET 0)),
                max(d.key)
            FROM (
                SELECT d.key FROM textsim.%4$I d
                WHERE d.source_id = $1 AND ($2 IS NULL OR d.key > $2) ORDER BY d.key LIMIT 1000
            ) d
            $query$, source.relation, textsim._has_key(source, 't', 'd.key'), has_document,
            'document_' || source.corpus_id)
        INTO keys, last USING number, after;
    ELSE
        EXECUTE format($query$
            SELECT array_agg(t.key ORDER BY t.number), (array_agg(t.key ORDER BY t.number DESC))[1]
            FROM (
                SELECT %2$s AS key, row_number() OVER (ORDER BY %4$s) AS number FROM %1$s t
                WHERE %3$s %5$s ORDER BY %4$s LIMIT 1000
            ) t
            $query$, source.relation, textsim._key_of(source, 't'), has_document, textsim._key_order(source, 't'),
            CASE WHEN after IS NOT NULL THEN 'AND ' || textsim._is_after(source, 't', '$1') END)
        INTO keys, last USING after;
    END IF;
    keys := coalesce(keys, '{}');
    IF NOT of_documents THEN
        keys := textsim._unequal_keys(source, keys);
    END IF;
EXCEPTION
    WHEN insufficient_resources OR operator_intervention OR system_error THEN
        RAISE;
    WHEN OTHERS THEN
        PERFORM textsim._warn_left(number, SQLERRM);
        is_left := true;
END $$;

-- Let every role call the functions of the schema, which PostgreSQL does unless the owner's default privileges forbid it.
-- Tables are protected by their own rights. A function with the rights of the owner says itself who may call it.
CREATE OR REPLACE FUNCTION textsim._open_functions() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    closed regprocedure;
BEGIN
    FOR closed IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND NOT p.prosecdef
            AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
    LOOP
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', closed);
    END LOOP;
END $$;

-- Create or replace a function of a corpus or an attached table, which is dropped together with an extension.
-- An object of a corpus belongs to the owner of the schema, whose rights the trigger functions have.
CREATE OR REPLACE FUNCTION textsim._make_function(function text, definition text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
    -- As _open_functions does; a trigger function has the rights of the owner.
    IF EXISTS (
        SELECT FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = substring(function FROM '[.]([^(]+)')
            AND NOT p.prosecdef AND NOT has_function_privilege('public', p.oid, 'EXECUTE'))
    THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', function);
    END IF;
END $$;

-- Record the present objects as the installed ones; the last statement of an upgrade.
CREATE OR REPLACE FUNCTION textsim._record_catalog() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT textsim._open_functions();
    DELETE FROM textsim.installed;
    INSERT INTO textsim.installed SELECT * FROM textsim._catalog();
END;

-- Write the expressions of the Unicode tables into functions in PL/pgSQL, as sql/schema/20_unicode.sql has them.
-- A server reads an expression in SQL anew in each session, and up to version 17 in each transaction.
CREATE FUNCTION textsim._move_expressions() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    moved record;
BEGIN
    FOR moved IN
        SELECT p.proname AS name, pg_get_function_sqlbody(p.oid) AS code FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = ANY (
            '{_joined,_spaced_signs,_capped,_unfinished,_without_marks,_signed,_split,_split_signed,_symbols}')
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION textsim.%I(body text) RETURNS text '
            'LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS %L',
            moved.name, concat(
                E'\nBEGIN  -- a planner takes longer to read the expression than to search a text\n    ',
                regexp_replace(replace(moved.code, '\', '\\'), $r$'([^']*)'::text$r$, $r$E'\1'$r$, 'g'), E';\nEND '));
    END LOOP;
END $$;
DO $$ BEGIN PERFORM textsim._move_expressions(); END $$;
DROP FUNCTION textsim._move_expressions();

-- The documents of a corpus that are similar to the given buckets and words, best first. threshold: NULL, any similarity
-- above 0, as nearest() returns it. of_siblings: as in _candidates_N().
CREATE OR REPLACE FUNCTION textsim._search(
    c textsim.corpus, own_buckets integer[], own_values bigint[], own_form text, own_ids integer[], own_count integer,
    own_key text, threshold double precision, max_results integer, of_language text, of_part bigint,
    of_guard bigint DEFAULT NULL, of_siblings boolean DEFAULT false)
RETURNS TABLE (key text, similarity double precision, guard bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    d record;
    least_score CONSTANT double precision := coalesce(threshold, 1e-9);
    edge CONSTANT text := CASE c.unit WHEN 'word' THEN ' ' ELSE '' END;
    has_numbers CONSTANT boolean := c.unit = 'word' AND c.shingle_length <= 3;
    own_shingles text[];
    own_runs text[];
    body text;
    shared bigint;
    keys text[] := '{}';
    scores double precision[] := '{}';
    guards bigint[] := '{}';
    score double precision;
    last_score double precision;  -- of the last result, if there are as many as are wanted
    has_candidates boolean := true;
BEGIN
    -- Most texts have no candidate, and to plan the comparison takes as long as to sketch a text. So the band table is
    -- asked first; not for a stored document, which shares its buckets with itself, nor for nearest(), which may compare
    -- all documents.
    IF own_key IS NULL AND threshold IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM textsim.%I b WHERE b.bucket = ANY ($1))', 'band_' || c.id)
        INTO has_candidates USING own_buckets;
    END IF;
    IF NOT has_candidates THEN
        RETURN;
    END IF;
    own_count := coalesce(own_count, textsim._count_shingles(own_form, own_values, c.unit, c.shingle_length));
    -- Each document is compared when its row is fetched. Only word shingles up to 3 are compared by word ids, and only
    -- with documents that have them; the words of the text have no ids yet. To look for each shingle in a short text
    -- takes a quarter of the time of its shingles. A single shingle may be shorter than others, and begin one.
    FOR d IN EXECUTE format(
            CASE WHEN has_numbers THEN 'SELECT k.*, NULL::bigint AS shared' ELSE $query$
                WITH own AS MATERIALIZED (
                    SELECT o.shingles, array(SELECT $13 || s || $13 FROM unnest(o.shingles) s) AS runs
                    FROM (SELECT %2$s(textsim._stored_form($14, $15, $8), %3$s) AS shingles OFFSET 0) o)
                SELECT k.*, (
                    SELECT CASE WHEN $2 = 1 OR $2::bigint * length(f.body) > 300000
                        THEN (
                            SELECT count(DISTINCT s COLLATE "C")
                            FROM unnest((SELECT o.shingles FROM own o)) t JOIN %5$s s ON s COLLATE "C" = t COLLATE "C")
                        ELSE (
                            SELECT count(*) FROM unnest((SELECT o.runs FROM own o)) s
                            WHERE strpos(f.body COLLATE "C", s) > 0) END
                    FROM (
                        SELECT f.form, $13 || %4$s || $13 AS body
                        FROM (
                            SELECT coalesce(k.normal_form, textsim._normal_form_of_%1$s(k.word_ids)) AS form OFFSET 0
                        ) f OFFSET 0) f) AS shared
                $query$ END
            || ' FROM textsim._candidates_%1$s($1, $2, $3, $4, $5, $6, $7, $8, $9) k '
            'WHERE textsim._may_reach(k.shingle_count, $2, $10)',
            c.id, CASE c.unit WHEN 'char' THEN 'textsim._char_shingles' ELSE 'textsim._shingles_of_form' END,
            CASE c.unit WHEN 'char' THEN '$12' ELSE '$11, $12' END,
            CASE c.unit WHEN 'char' THEN 'textsim._without_spaces(f.form)' ELSE 'f.form' END,
            CASE c.unit WHEN 'char' THEN 'textsim._char_runs(f.form, $12)'
                ELSE 'unnest(textsim._shingles_of_form(f.form, $11, $12))' END)
        USING own_buckets, own_count, own_key, threshold, of_language, of_part, of_guard, own_form, of_siblings,
            least_score, c.unit, c.shingle_length, edge, c.id, own_ids
    LOOP
        EXIT WHEN d.most_similar < last_score;
        IF NOT has_numbers THEN
            shared := d.shared;
        ELSIF d.normal_form IS NULL THEN
            shared := textsim._count_shared_triples(coalesce(own_ids, d.own_numbers), d.word_ids, c.shingle_length);
        ELSE
            IF own_runs IS NULL THEN
                own_shingles := textsim._shingles_of_form(
                    textsim._stored_form(c.id, own_ids, own_form), c.unit, c.shingle_length);
                own_runs := array(SELECT edge || s || edge FROM unnest(own_shingles) s);
            END IF;
            body := edge || d.normal_form || edge;
            shared := CASE WHEN own_count = 1 OR own_count::bigint * length(body) > 300000
                THEN textsim._count_shared(
                    own_shingles, textsim._shingles_of_form(d.normal_form, c.unit, c.shingle_length))
                ELSE (SELECT count(*) FROM unnest(own_runs) s WHERE strpos(body COLLATE "C", s) > 0) END;
        END IF;
        score := textsim._ratio(shared, own_count, d.shingle_count);
        CONTINUE WHEN score < last_score OR NOT textsim._is_match(score, least_score);
        keys := keys || d.key;
        scores := scores || score;
        guards := guards || d.guard;
        IF cardinality(scores) >= max_results THEN
            last_score := (SELECT s FROM unnest(scores) s ORDER BY s DESC OFFSET max_results - 1 LIMIT 1);
        END IF;
    END LOOP;
    IF keys <> '{}' THEN
        RETURN QUERY
            SELECT m.key, m.similarity, m.guard FROM unnest(keys, scores, guards) m (key, similarity, guard)
            ORDER BY m.similarity DESC, m.key COLLATE "C"
            LIMIT max_results;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION textsim._served_revisions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{0001_schema,0002_leave_equal_documents}'::text[];

SELECT textsim._record_catalog();
