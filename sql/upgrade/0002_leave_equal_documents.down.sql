-- The next keys for the comparison of a table; last is NULL at the end; is_left after an error, of which it warns.
-- For a page of the table, returns all its keys. For a page of documents, returns the keys without a row.
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
EXCEPTION
    WHEN insufficient_resources OR operator_intervention OR system_error THEN
        RAISE;
    WHEN OTHERS THEN
        PERFORM textsim._warn_left(number, SQLERRM);
        is_left := true;
END $$;

DROP FUNCTION textsim._unequal_keys(textsim.source, text[]);

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
END $$;

-- Record the present objects as the installed ones; the last statement of an upgrade.
CREATE OR REPLACE FUNCTION textsim._record_catalog() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    DELETE FROM textsim.installed;
    INSERT INTO textsim.installed SELECT * FROM textsim._catalog();
END;

DROP FUNCTION textsim._open_functions();

-- Write the expressions of the Unicode tables into functions in SQL again.
CREATE FUNCTION textsim._move_expressions() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    moved record;
BEGIN
    FOR moved IN
        SELECT p.proname AS name, substring(p.prosrc FROM '    (RETURN .*);') AS code FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = ANY (
            '{_joined,_spaced_signs,_capped,_unfinished,_without_marks,_signed,_split,_split_signed,_symbols}')
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION textsim.%I(body text) RETURNS text '
            'LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE %s', moved.name, moved.code);
    END LOOP;
END $$;
DO $$ BEGIN PERFORM textsim._move_expressions(); END $$;
DROP FUNCTION textsim._move_expressions();

CREATE OR REPLACE FUNCTION textsim._served_revisions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{0001_schema}'::text[];

SELECT textsim._record_catalog();
