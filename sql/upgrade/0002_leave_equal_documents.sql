-- index_pending leaves documents that equal their rows, as a worker does. Default privileges take no function from a role.
-- A normal form takes less time in a new session, and up to version 17 in each transaction.

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

CREATE OR REPLACE FUNCTION textsim._served_revisions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{0001_schema,0002_leave_equal_documents}'::text[];

SELECT textsim._record_catalog();
