-- Changes of attached tables that triggers do not see.

-- Private functions

-- TRUNCATE gives a table a new file, even if no trigger runs. Disabling a trigger changes its row in the
-- catalog, even if the trigger is enabled again at once. A crash of the server empties an unlogged table. A
-- renamed column may have another meaning. Each element begins with the oid of the relation.
CREATE FUNCTION textsim._shape(source textsim.source) RETURNS text[]
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
    ) e (element);
END;
COMMENT ON FUNCTION textsim._shape(textsim.source)
    IS 'the files of a table and its partitions, and the state of its triggers';

CREATE FUNCTION textsim._renamed_columns(source textsim.source)
RETURNS TABLE (column_name name, new_name name)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT n.column_name, a.attname
    FROM unnest(source.shape) e (element)
    CROSS JOIN LATERAL regexp_match(e.element, '^[0-9]+ column (.*) ([0-9]+)$') m (parts)
    JOIN unnest(textsim._columns(source)) n (column_name) ON n.column_name = m.parts[1]
    JOIN pg_attribute a
        ON a.attrelid = source.relation AND a.attnum = m.parts[2]::smallint AND NOT a.attisdropped
    WHERE NOT EXISTS (
        SELECT FROM pg_attribute x
        WHERE x.attrelid = source.relation AND x.attname = n.column_name AND NOT x.attisdropped);
END;
COMMENT ON FUNCTION textsim._renamed_columns(textsim.source)
    IS 'the columns of an attached table that are read and were renamed, with their new names, unless another column '
    'has the old name';

CREATE FUNCTION textsim._new_partitions(before text[], after text[]) RETURNS oid[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH added AS (
        SELECT split_part(e, ' ', 1)::oid AS relation FROM unnest(after) e WHERE e <> ALL (before)
    )
    SELECT CASE WHEN before <@ after AND NOT EXISTS (
            SELECT FROM added a JOIN unnest(before) e ON split_part(e, ' ', 1)::oid = a.relation)
        THEN array(SELECT DISTINCT a.relation FROM added a) END;
END;
COMMENT ON FUNCTION textsim._new_partitions(text[], text[])
    IS 'the partitions that a shape has gained; NULL if anything else changed';

CREATE FUNCTION textsim._note_shape(number integer, before text[], after text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE textsim.source s SET shape = after WHERE s.id = number AND s.shape = before;
END $$;
COMMENT ON FUNCTION textsim._note_shape(integer, text[], text[])
    IS 'store the shape of a table, if everything that triggers missed has been logged';

CREATE FUNCTION textsim._log_partition(source textsim.source, part regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('lock_timeout', '100ms', true);
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', part);
    IF row_security_active(part) THEN
        RAISE EXCEPTION 'row security hides rows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    EXECUTE format($query$
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        SELECT 'change', $1, $2, array_agg(r.key)
        FROM (
            SELECT %1$s AS key, (row_number() OVER () - 1) / 10000 AS number
            FROM ONLY %2$s t WHERE %3$s
        ) r
        GROUP BY r.number
        $query$, textsim._key_of(source, 't'), part, textsim._has_document(source, 't'))
    USING source.corpus_id, source.id;
-- If the partition is locked, dropped or not readable by this role, the whole table is compared.
EXCEPTION WHEN OTHERS THEN
    PERFORM textsim._enqueue_comparison(source.corpus_id, source.id);
END $$;
COMMENT ON FUNCTION textsim._log_partition(textsim.source, regclass) IS 'log the rows of a new partition';

CREATE FUNCTION textsim._compare_changed(number integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    source textsim.source;
    current_shape text[];
    partitions oid[];
BEGIN
    SELECT * INTO source FROM textsim.source s WHERE s.id = number AND s.active;
    current_shape := textsim._shape(source);
    IF source.id IS NULL OR source.shape = current_shape THEN
        RETURN false;
    END IF;
    partitions := textsim._new_partitions(source.shape, current_shape);
    IF partitions IS NULL THEN
        PERFORM textsim._enqueue_comparison(source.corpus_id, number);
    ELSE
        PERFORM textsim._log_partition(source, p.oid::regclass)
        FROM unnest(partitions) p (oid) JOIN pg_class c ON c.oid = p.oid AND c.relkind = 'r';
    END IF;
    -- This comes last, because until the end of this transaction the table cannot be detached.
    PERFORM textsim._note_shape(number, source.shape, current_shape);
    RETURN true;
END $$;
COMMENT ON FUNCTION textsim._compare_changed(integer)
    IS 'log the changes of an attached table that triggers may have missed; whether there are such '
    'changes';
