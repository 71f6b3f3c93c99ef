-- Changes of attached tables that triggers do not see: replication, attached partitions, a disabled trigger. If the
-- shape of a table differs from the shape in textsim.source, the table is compared with its documents. A detached table
-- keeps its row and id there, so its documents are recognised when it is attached again.

-- The files of a table and its partitions, the state of its triggers, and the values of its enums.
-- TRUNCATE gives a table a new file, even if no trigger runs. Disabling a trigger changes its row in the
-- catalog, even if the trigger is enabled again at once. A crash of the server empties an unlogged table. A
-- renamed column may have another meaning, and a renamed value of an enum has another text. Each element begins with the
-- oid of the relation.
CREATE OR REPLACE FUNCTION textsim._shape(source textsim.source) RETURNS text[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg(e.element ORDER BY e.element COLLATE "C"), '{}')
    FROM (
        SELECT concat_ws(' ', c.oid, 'file', pg_relation_filenode(c.oid),
            CASE WHEN c.relpersistence = 'u' THEN concat_ws(' ', pg_relation_size(c.oid) = 0,
                extract(epoch FROM pg_postmaster_start_time())) END)
        FROM textsim._partitions(source.relation) p (oid) JOIN pg_class c ON c.oid = p.oid
        UNION ALL
        SELECT concat_ws(' ', t.tgrelid, 'trigger', t.oid, t.xmin, t.ctid, t.tgenabled)
        FROM textsim._partitions(source.relation) p (oid) JOIN pg_trigger t ON t.tgrelid = p.oid
        WHERE t.tgfoid = textsim._trigger_function(source.id)
        UNION ALL
        SELECT concat_ws(' ', a.attrelid, 'column', a.attname, a.attnum) FROM pg_attribute a
        WHERE a.attrelid = source.relation AND a.attname = ANY (textsim._columns(source))
        UNION ALL
        SELECT DISTINCT concat_ws(' ', a.attrelid, 'value', e.oid, e.enumlabel)
        FROM pg_attribute a CROSS JOIN LATERAL textsim._types_in(a.atttypid) i JOIN pg_enum e ON e.enumtypid = i
        WHERE a.attrelid = source.relation AND a.attname = ANY (textsim._columns(source)) AND a.atttypid >= 16384
    ) e (element);
END;

-- The renamed columns of a table that are read, with their new names, unless another column has the old name.
CREATE OR REPLACE FUNCTION textsim._renamed_columns(source textsim.source)
RETURNS TABLE (column_name name, new_name name)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT n.column_name, a.attname
    FROM unnest(source.shape) e (element)
    CROSS JOIN LATERAL regexp_match(e.element, '^[0-9]+ column (.*) ([0-9]+)$') m (groups)
    JOIN unnest(textsim._columns(source)) n (column_name) ON n.column_name = m.groups[1]
    JOIN pg_attribute a
        ON a.attrelid = source.relation AND a.attnum = m.groups[2]::smallint AND NOT a.attisdropped
    WHERE NOT EXISTS (
        SELECT FROM pg_attribute x
        WHERE x.attrelid = source.relation AND x.attname = n.column_name AND NOT x.attisdropped);
END;

-- The partitions that a shape has gained, and whether it has lost any; added is NULL if anything else changed.
CREATE OR REPLACE FUNCTION textsim._changed_partitions(
    before text[], after text[], OUT added oid[], OUT has_fewer boolean)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH old (element, relation) AS (SELECT e, split_part(e, ' ', 1)::oid FROM unnest(before) e),
    new (element, relation) AS (SELECT e, split_part(e, ' ', 1)::oid FROM unnest(after) e)
    SELECT CASE WHEN NOT EXISTS (
            SELECT FROM old FULL JOIN new USING (element)
            WHERE (old.relation IS NULL OR new.relation IS NULL)
                AND coalesce(old.relation, new.relation) IN (SELECT o.relation FROM old o)
                AND coalesce(old.relation, new.relation) IN (SELECT n.relation FROM new n))
            THEN array(
                SELECT DISTINCT n.relation FROM new n WHERE n.relation NOT IN (SELECT o.relation FROM old o)) END,
        EXISTS (SELECT FROM old o WHERE o.relation NOT IN (SELECT n.relation FROM new n));
END;

-- Store the shape of a table, if everything that triggers missed has been logged.
CREATE OR REPLACE FUNCTION textsim._note_shape(number integer, before text[], after text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET jit = off AS $$
BEGIN
    PERFORM textsim._check_writer((SELECT s.corpus_id FROM textsim.source s WHERE s.id = number), true);
    UPDATE textsim.source s SET shape = after WHERE s.id = number AND s.shape = before;
END $$;

-- Log the keys that a query returns, which reads an attached table or one of its partitions.
CREATE OR REPLACE FUNCTION textsim._log_keys(source textsim.source, relation regclass, query text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM set_config('lock_timeout', '100ms', true);
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', relation);
    IF row_security_active(relation) THEN
        RAISE EXCEPTION 'row security hides rows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    EXECUTE format($query$
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        SELECT 'change', $1, $2, array_agg(r.key)
        FROM (SELECT q.key, (row_number() OVER () - 1) / 10000 AS number FROM (%s) q (key)) r
        GROUP BY r.number
        $query$, query)
    USING source.corpus_id, source.id;
-- If the table is locked, dropped or not readable by this role, a worker compares the whole attached table.
EXCEPTION WHEN OTHERS THEN
    PERFORM textsim._enqueue(source.corpus_id, source.id);
END $$;

-- Log the changes of an attached table that triggers may have missed; whether there are such changes.
CREATE OR REPLACE FUNCTION textsim._compare_changed(number integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    source textsim.source;
    current_shape text[];
    changed record;
BEGIN
    SELECT * INTO source FROM textsim.source s WHERE s.id = number AND s.active;
    current_shape := textsim._shape(source);
    IF source.id IS NULL OR source.shape = current_shape THEN
        RETURN false;
    END IF;
    changed := textsim._changed_partitions(source.shape, current_shape);
    IF changed.added IS NULL THEN
        PERFORM textsim._enqueue(source.corpus_id, number);
    ELSE
        PERFORM textsim._log_keys(source, p.oid::regclass, format('SELECT %s FROM ONLY %s t WHERE %s',
            textsim._key_of(source, 't'), p.oid::regclass, textsim._has_document(source, 't')))
        FROM unnest(changed.added) p (oid) JOIN pg_class c ON c.oid = p.oid AND c.relkind = 'r';
        IF changed.has_fewer THEN
            PERFORM textsim._log_keys(source, source.relation, format(
                'SELECT d.key FROM textsim.%I d WHERE d.source_id = %s%s AND NOT EXISTS (SELECT FROM %s t WHERE %s AND %s)',
                'document_' || c.id, number, textsim._alive(c, 'd'), source.relation,
                textsim._has_key(source, 't', 'd.key'), textsim._has_document(source, 't')))
            FROM textsim.corpus c WHERE c.id = source.corpus_id;
        END IF;
    END IF;
    -- This comes last, because until the end of this transaction the table cannot be detached.
    PERFORM textsim._note_shape(number, source.shape, current_shape);
    RETURN true;
END $$;
