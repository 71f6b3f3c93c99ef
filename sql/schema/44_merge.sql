-- Merges that can be undone: all rows of a cluster but one leave the user's table by a statement of the user's, and a log
-- keeps what they were. All of it has the rights of the caller.

-- A statement that locks the row with a key, and returns the text of each column, for _locked_row.
-- key: an expression. It takes some milliseconds to write, so a batch does so once.
CREATE OR REPLACE FUNCTION textsim._lock_statement(source textsim.source, key text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN (
        SELECT format('SELECT jsonb_object(ARRAY[%s], ARRAY[%s]) FROM %s t WHERE %s FOR UPDATE',
            string_agg(quote_literal(a.attname), ', '), string_agg(format('textsim._text_of(t.%I)', a.attname), ', '),
            source.relation, textsim._has_key(source, 't', key))
        FROM pg_attribute a
        WHERE a.attrelid = source.relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '');
END $$;

-- The row with a key, which is locked by the statement of _lock_statement; NULL without one.
CREATE OR REPLACE FUNCTION textsim._locked_row(lock text, key text) RETURNS jsonb
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lc_monetary = 'C' SET jit = off
AS $$
DECLARE
    row_texts jsonb;
BEGIN
    EXECUTE lock INTO row_texts USING key;
    RETURN row_texts;
END $$;

-- Run a statement for one row, and return how many rows it changed. Its names, and those in triggers, are the caller's, but
-- no setting of the session changes what the text of a column means.
CREATE OR REPLACE FUNCTION textsim._execute_as(caller_path text, statement text, key text, kept text, old_row jsonb)
RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET array_nulls = on
SET xmloption = 'content' SET lc_monetary = 'C' SET jit = off AS $$
DECLARE
    changed bigint;
BEGIN
    PERFORM set_config('search_path', caller_path, true);
    EXECUTE statement USING key, kept, old_row;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed OPERATOR(pg_catalog.>) 1 THEN
        RAISE EXCEPTION 'the statement changed % rows for the key "%"; expected one', changed, key
            USING ERRCODE = 'cardinality_violation',
                HINT = 'The key of the row is $1, and that of the row that is kept is $2.';
    END IF;
    RETURN changed;
END $$;

-- Whether a statement has only marked a row: a column that it changed still has its value. Other columns may have changed.
CREATE OR REPLACE FUNCTION textsim._is_marked(relation oid, key text, locked_row jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT EXISTS (
        SELECT FROM textsim.merged_row m
        WHERE m.key = $2 AND m.relation = $1 AND (m.new_row = $3 OR EXISTS (
            SELECT FROM jsonb_each(m.new_row) n
            WHERE n.value IS DISTINCT FROM m.old_row -> n.key AND n.value = $3 -> n.key)));
END;

-- Why two rows are no duplicates now, or NULL. Their texts are compared anew, because they may have changed since.
-- lock and read: the statements of _lock_statement and _rows_statement. locked_row: that of the key. A row that was not
-- there when it was to be locked may have come since, and go again.
CREATE OR REPLACE FUNCTION textsim._why_apart(
    source textsim.source, lock text, read text, key text, locked_row jsonb, other_key text, threshold double precision,
    OUT reason text, OUT similarity double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = source.corpus_id);
    other_row jsonb := textsim._locked_row(lock, other_key);
    found record;
    a record;
    b record;
BEGIN
    FOR found IN EXECUTE format('SELECT r.*, textsim._form($2, r.body) AS form FROM (%s) r', read)
        USING ARRAY[key, other_key], c
    LOOP
        IF found.key = key THEN
            a := found;
        ELSE
            b := found;
        END IF;
    END LOOP;
    reason := CASE WHEN locked_row IS NULL OR a.body IS NULL THEN 'its row is gone'
        WHEN other_row IS NULL OR b.body IS NULL OR textsim._is_marked(source.relation, other_key, other_row)
            THEN 'the row to keep is gone'
        ELSE coalesce(a.fault, b.fault, CASE WHEN a.scope IS DISTINCT FROM b.scope THEN 'the scopes differ' END) END;
    IF reason IS NULL THEN
        c.unique_from := coalesce(threshold, c.threshold);
        similarity := textsim._jaccard(c, a.form, b.form);
        IF textsim._merges(c, key, a.form, other_key, b.form, similarity,
                textsim._guard(c.guards, c.guard_words, c.guard_fillers, a.form),
                textsim._guard(c.guards, c.guard_words, c.guard_fillers, b.form)) IS NOT TRUE
            AND NOT (textsim._unequal_keys(source, ARRAY[key, other_key]) = '{}' AND EXISTS (
                SELECT FROM textsim._same_pairs(c.name, NULL, NULL) s
                WHERE s.a = least(key COLLATE "C", other_key) AND s.b = greatest(key COLLATE "C", other_key))) THEN
            reason := 'it is no duplicate now';
        END IF;
    END IF;
END $$;

-- The attached table to merge; an error if there are several, or if a row that merge() deletes takes other rows with it.
CREATE OR REPLACE FUNCTION textsim._source_to_merge(corpus text, relation regclass, statement text)
RETURNS textsim.source LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    sources textsim.source[] := array(
        SELECT s FROM textsim.source s
        WHERE s.corpus_id = c.id AND s.active AND s.relation = coalesce(_source_to_merge.relation, s.relation));
    referring text := (
        SELECT string_agg(DISTINCT f.conrelid::regclass::text, ', ') FROM pg_constraint f
        WHERE f.confrelid IN (SELECT textsim._partitions((sources[1]).relation))
            AND f.contype = 'f' AND f.confdeltype IN ('c', 'n', 'd'));
BEGIN
    IF cardinality(sources) <> 1 THEN
        RAISE EXCEPTION '% attached tables of corpus "%" are to be merged; expected one', cardinality(sources), c.name
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name an attached table as relation.';
    ELSIF referring IS NOT NULL AND statement IS NULL THEN
        RAISE EXCEPTION 'to delete a row of % changes rows of %, which unmerge does not bring back',
            (sources[1]).relation, referring USING ERRCODE = 'dependent_objects_still_exist',
            HINT = 'Let those rows refer to the row that is kept first, and pass the DELETE as statement.';
    END IF;
    RETURN sources[1];
END $$;

-- The duplicates of an attached table, up to a hundred in an array; each ten arrays a message for who waits.
CREATE OR REPLACE FUNCTION textsim._duplicates_to_merge(
    corpus text, source textsim.source, keep text, threshold double precision, scope text)
RETURNS TABLE (keys text[], kept text[], message text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY EXECUTE format($query$
        SELECT array_agg(d.key ORDER BY d.place), array_agg(d.kept ORDER BY d.place),
            CASE WHEN d.place / 100 %% 10 = 9 THEN format('%%s of %%s duplicates are processed', max(d.place) + 1, d.total) END
        FROM (
            SELECT u.key, u.kept, row_number() OVER (ORDER BY u.key COLLATE "C") - 1 AS place, count(*) OVER () AS total
            FROM textsim.duplicates($1, $2, $3, scope => $5, judgements => true) u
            JOIN textsim.%1$I a ON a.key = u.key AND a.source_id = $4
            JOIN textsim.%1$I b ON b.key = u.kept AND b.source_id = $4
        ) d
        GROUP BY d.place / 100, d.total ORDER BY 1
        $query$, 'document_' || source.corpus_id)
    USING corpus, keep, threshold, source.id, scope;
END $$;

-- How many rows merge() would take, and of the three texts that are kept in the place of most: these rows, and its beginning.
CREATE OR REPLACE FUNCTION textsim._texts_to_merge(
    corpus text, relation regclass, statement text, keep text, threshold double precision, scope text)
RETURNS TABLE (rows bigint, copies bigint, body text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 3 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    source textsim.source := textsim._source_to_merge(corpus, relation, statement);
BEGIN
    RETURN QUERY
        SELECT o.rows, o.copies, left(r.body, 60)
        FROM (
            SELECT k.key, count(*) AS copies, sum(count(*)) OVER ()::bigint AS rows
            FROM textsim._duplicates_to_merge(corpus, source, keep, threshold, scope) d CROSS JOIN unnest(d.kept) k (key)
            GROUP BY k.key ORDER BY copies DESC, k.key COLLATE "C" LIMIT 3
        ) o
        CROSS JOIN LATERAL textsim._rows_of(source, ARRAY[o.key]) r
        ORDER BY o.copies DESC, o.key COLLATE "C";
END $$;

-- Merge rows, each into the row that is kept in its place, and log them; left_alone has the reason by key.
CREATE OR REPLACE FUNCTION textsim._merge_batch(
    source textsim.source, keys text[], kept text[], statement text, threshold double precision, caller_path text,
    INOUT run bigint, OUT merged bigint, OUT left_alone jsonb)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_variable
DECLARE
    corpus_origin integer := (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = source.corpus_id);
    lock text := textsim._lock_statement(source, '$1');
    read text := textsim._rows_statement(source);
    entry textsim.merged_row;
    apart record;
BEGIN
    merged := 0;
    left_alone := '{}';
    statement := coalesce(statement, format('DELETE FROM %s t WHERE %s', source.relation, textsim._has_key(source, 't', '$1')));
    -- In one order, so that two merges wait for each other. The statements after this see what was committed before it.
    EXECUTE format('SELECT FROM unnest($1) q (key) CROSS JOIN LATERAL (%s) r', textsim._lock_statement(source, 'q.key'))
    USING array(SELECT DISTINCT k COLLATE "C" FROM unnest(keys || kept) k ORDER BY 1);
    FOR entry.key, entry.kept IN SELECT p.key, p.kept FROM unnest(keys, kept) p (key, kept) LOOP
        entry.old_row := textsim._locked_row(lock, entry.key);
        CONTINUE WHEN textsim._is_marked(source.relation, entry.key, entry.old_row);  -- by an earlier run
        apart := textsim._why_apart(source, lock, read, entry.key, entry.old_row, entry.kept, threshold);
        BEGIN
            SET CONSTRAINTS ALL IMMEDIATE;  -- one that failed at the commit would undo the whole batch, in each call
            IF apart.reason IS NULL THEN
                IF textsim._execute_as(caller_path, statement, entry.key, entry.kept, entry.old_row) = 0 THEN
                    RAISE EXCEPTION 'the statement changed no row';
                ELSIF textsim._locked_row(lock, entry.kept) IS NULL THEN
                    RAISE EXCEPTION 'the row to keep would be gone, too';
                END IF;
            END IF;
        EXCEPTION WHEN integrity_constraint_violation OR raise_exception THEN
            apart.reason := SQLERRM;
        END;
        IF apart.reason IS NOT NULL THEN
            left_alone := left_alone || jsonb_build_object(entry.key, apart.reason);
            CONTINUE;
        END IF;
        INSERT INTO textsim.merged_row (origin, relation, run, key, kept, similarity, old_row, new_row)
        VALUES (corpus_origin, source.relation, coalesce(run, 0), entry.key, entry.kept, apart.similarity, entry.old_row,
            textsim._locked_row(lock, entry.key))
        RETURNING * INTO entry;
        IF run IS NULL THEN
            run := entry.id;
            UPDATE textsim.merged_row m SET run = entry.id WHERE m.id = entry.id;
        END IF;
        merged := merged + 1;
    END LOOP;
END $$;

-- Bring a row back, and judge it different from the row that was kept and from its other copies; returns the outcome.
-- lock and row_condition: as _rows_to_unmerge returns them.
CREATE OR REPLACE FUNCTION textsim._unmerge_row(
    c textsim.corpus, entry textsim.merged_row, lock text, row_condition text, is_judged boolean, caller_path text)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    statement text;
    missing text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class t WHERE t.oid = entry.relation) THEN
        RETURN 'its table is gone';
    ELSIF textsim._locked_row(lock, entry.key) IS DISTINCT FROM entry.new_row THEN
        RETURN CASE WHEN entry.new_row IS NULL THEN 'its key has another row now' ELSE 'its row has changed since' END;
    END IF;
    SELECT min(o.key) INTO missing FROM jsonb_each(entry.old_row) o
    WHERE o.value <> 'null' AND o.key NOT IN (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = entry.relation);
    IF missing IS NOT NULL THEN
        RETURN format('its table has no column "%s" now', missing);
    END IF;
    -- First, so that a unique corpus lets the row in.
    PERFORM textsim.judge(c.name, entry.key, o.key, 'different', replaces => (
        SELECT nullif(j.verdict, 'different') FROM textsim.judgement j
        WHERE j.origin = entry.origin AND j.a = least(entry.key COLLATE "C", o.key)
            AND j.b = greatest(entry.key COLLATE "C", o.key)))
    FROM (
        SELECT entry.kept AS key UNION SELECT m.key FROM textsim.merged_row m
        WHERE m.kept = entry.kept AND m.relation = entry.relation AND m.key <> entry.key
    ) o
    WHERE is_judged;
    SELECT format(CASE WHEN entry.new_row IS NULL THEN 'INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE SELECT %3$s'
            ELSE 'UPDATE %1$s t SET (%2$s) = (SELECT %3$s) WHERE %4$s' END, entry.relation,
        string_agg(quote_ident(a.attname), ', '),
        string_agg(format('($3 OPERATOR(pg_catalog.->>) %L)::%s', a.attname, format_type(a.atttypid, a.atttypmod)), ', '),
        row_condition)
    INTO statement
    FROM pg_attribute a
    WHERE a.attrelid = entry.relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        AND entry.old_row ? a.attname AND (entry.new_row IS NULL OR a.attidentity <> 'a');
    IF textsim._execute_as(caller_path, statement, entry.key, entry.kept, entry.old_row) = 0 THEN
        RAISE EXCEPTION 'a trigger or row security keeps it out' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    DELETE FROM textsim.merged_row m WHERE m.id = entry.id;
    RETURN 'restored';
EXCEPTION WHEN integrity_constraint_violation OR raise_exception OR data_exception THEN  -- a type has changed
    RETURN SQLERRM;
END $$;

-- The entries of rows to bring back, which are locked, the last one first; a statement that locks the row of a key, $1, and
-- a condition that finds it; and the pairs that would be judged if all these rows of its cluster are.
CREATE OR REPLACE FUNCTION textsim._rows_to_unmerge(
    c textsim.corpus, key text, kept text, run bigint, since timestamptz)
RETURNS TABLE (entry textsim.merged_row, lock text, row_condition text, pairs bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_variable
DECLARE
    ids bigint[] := array(
        SELECT m.id FROM textsim.merged_row m
        WHERE m.origin = textsim._origin(c) AND m.merged_by = current_user AND (key IS NULL OR m.key = key)
            AND (kept IS NULL OR m.kept = kept) AND (run IS NULL OR m.run = run) AND (since IS NULL OR m.merged_at >= since)
        ORDER BY m.id DESC FOR UPDATE);
BEGIN
    RETURN QUERY
        WITH cluster AS MATERIALIZED (
            SELECT e.relation, e.kept, count(*) * (
                SELECT count(*) FROM textsim.merged_row m WHERE m.kept = e.kept AND m.relation = e.relation) AS pairs
            FROM textsim.merged_row e WHERE e.id = ANY (ids)
            GROUP BY e.relation, e.kept
        ), source AS MATERIALIZED (
            SELECT s.relation, textsim._lock_statement(s, '$1') AS lock, textsim._has_key(s, 't', '$1') AS row_condition
            FROM textsim.source s WHERE s.corpus_id = c.id AND s.relation IN (SELECT l.relation FROM cluster l)
        )
        SELECT m, s.lock, s.row_condition, l.pairs
        FROM textsim.merged_row m
        JOIN cluster l ON l.relation = m.relation AND l.kept = m.kept
        LEFT JOIN source s ON s.relation = m.relation
        WHERE m.id = ANY (ids)
        ORDER BY m.id DESC;
END $$;

CREATE OR REPLACE PROCEDURE textsim.merge(
    corpus text, relation regclass DEFAULT NULL, statement text DEFAULT NULL, keep text DEFAULT 'first',
    threshold double precision DEFAULT NULL, scope text DEFAULT NULL, INOUT run bigint DEFAULT NULL, INOUT merged bigint DEFAULT 0,
    INOUT left_alone jsonb DEFAULT '{}')
LANGUAGE plpgsql AS $$
DECLARE
    source textsim.source;
    batch pg_catalog.record;
    result pg_catalog.record;
BEGIN
    CALL textsim._check_no_transaction('merge');
    source := textsim._source_to_merge(corpus, relation, statement);
    FOR batch IN SELECT * FROM textsim._duplicates_to_merge(corpus, source, keep, threshold, scope) LOOP
        SELECT * INTO result FROM textsim._merge_batch(source, batch.keys, batch.kept, statement, threshold,
            pg_catalog.current_setting('search_path'), run);
        COMMIT;
        run := result.run;
        merged := pg_catalog.int8pl(merged, result.merged);
        left_alone := pg_catalog.jsonb_concat(left_alone, result.left_alone);
        IF batch.message IS NOT NULL THEN
            RAISE NOTICE '%', batch.message;
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE textsim.merge(text, regclass, text, text, double precision, text, bigint, bigint, jsonb)
    IS 'Takes the duplicates out of an attached table, so that one row of each cluster stays, and logs the whole rows in '
    'textsim.merged_row, from which unmerge() brings them back. They are those of duplicates() with keep, threshold, scope '
    'and judgements => true; keep first is by bytes, so of the keys 2 and 10 it keeps 10. relation names the table if '
    'several are attached. statement deletes or marks a row: $1 is its key, $2 that of the kept row, $3 the row as jsonb; by '
    'default it is deleted. It must not change the key: unmerge() would insert the old row beside the changed one. Each row '
    'is locked and compared again; '
    'left_alone has the keys of rows that are no duplicates now, or that a constraint or trigger keeps, with the reasons. It commits '
    'after a hundred rows, and raises a notice after a thousand, so call it outside a transaction block, and again after an interruption. Returns the number of '
    'the run, and how many rows it merged. Without a statement, raises dependent_objects_still_exist if '
    'a foreign key changes rows that refer to a deleted row.';

CREATE OR REPLACE FUNCTION textsim.unmerge(
    corpus text, key text DEFAULT NULL, kept text DEFAULT NULL, run bigint DEFAULT NULL, since timestamptz DEFAULT NULL,
    mergeable boolean DEFAULT false)
RETURNS TABLE (key text, kept_key text, outcome text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10
BEGIN ATOMIC
    SELECT textsim._check_given('key, kept, run or since', coalesce($2, $3, $4::text, $5::text) IS NOT NULL),
        textsim._check_given('mergeable', $6 IS NOT NULL);
    SELECT (r.entry).key, (r.entry).kept, CASE WHEN o.outcome = 'restored' AND NOT $6 AND r.pairs > 10000
        THEN 'restored, but not judged: too many pairs' ELSE o.outcome END
    FROM textsim._corpus($1) c
    CROSS JOIN LATERAL textsim._rows_to_unmerge(c, $2, $3, $4, $5) r
    CROSS JOIN LATERAL (SELECT textsim._unmerge_row(
        c, r.entry, r.lock, r.row_condition, NOT $6 AND r.pairs <= 10000, current_setting('search_path'))) o (outcome);
END;
COMMENT ON FUNCTION textsim.unmerge(text, text, text, bigint, timestamptz, boolean)
    IS 'Brings back rows that this role has merged: the row of a key, those whose kept row has the key kept, those of a run, '
    'those since a time, or those that meet several of these. Returns each key, that of the kept row, and the outcome: '
    'restored, or why not. A row that comes back is judged different from the kept row and its other copies, so that they '
    'stay apart; with mergeable, nothing is judged, and the next merge takes it again. Rows of a cluster '
    'that needs more than 10,000 judgements come back without them, as the outcome says.';
