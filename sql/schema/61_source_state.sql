-- The state of attached tables: what a role must have to index one, and what triggers do not see.

CREATE FUNCTION textsim._partitions(relation oid) RETURNS SETOF oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    -- pg_partition_tree() would lock each of them, and wait for a transaction that alters one.
    WITH RECURSIVE part (oid) AS (
        SELECT c.oid FROM pg_class c WHERE c.oid = relation
        UNION
        SELECT i.inhrelid FROM part p JOIN pg_inherits i ON i.inhparent = p.oid
        WHERE NOT i.inhdetachpending
    )
    SELECT part.oid FROM part;
END;
COMMENT ON FUNCTION textsim._partitions(oid)
    IS 'a table and its partitions of all levels; none if it was dropped';

CREATE FUNCTION textsim._unlogged(relation oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT 'it is unlogged: a crash of the server empties it, which no trigger sees' AS fault
    FROM textsim._partitions(relation) p (oid) JOIN pg_class c ON c.oid = p.oid
    WHERE c.relpersistence = 'u'
    LIMIT 1;
END;
COMMENT ON FUNCTION textsim._unlogged(oid) IS 'why an unlogged table cannot be kept indexed, or NULL';

CREATE FUNCTION textsim._trigger_function(source integer) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN to_regprocedure(format('textsim.%I()', '_changes_' || source));
COMMENT ON FUNCTION textsim._trigger_function(integer)
    IS 'the trigger function of an attached table; NULL if there is none';

-- TRUNCATE gives a table another file, also without a trigger. A trigger that was disabled, and
-- even one that was enabled again at once, is another version of its row in the catalog. A crash
-- of the server empties what is unlogged. Renamed columns may stand for other columns. Each element
-- begins with the number of the relation.
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
        WHERE a.attrelid = source.relation AND a.attname IN (source.key_column, source.text_column)
    ) e (element);
END;
COMMENT ON FUNCTION textsim._shape(textsim.source)
    IS 'files of a table and its partitions, and the state of its triggers';

CREATE FUNCTION textsim._new_partitions(before text[], after text[]) RETURNS oid[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH added AS (
        SELECT split_part(e, ' ', 1)::oid AS relation FROM unnest(after) e WHERE e <> ALL (before)
    ), known AS (
        SELECT split_part(e, ' ', 1)::oid AS relation FROM unnest(before) e
    )
    SELECT CASE WHEN before <@ after AND NOT EXISTS (SELECT FROM added JOIN known USING (relation))
        THEN array(SELECT DISTINCT a.relation FROM added a) END;
END;
COMMENT ON FUNCTION textsim._new_partitions(text[], text[])
    IS 'the partitions that are new in a shape; NULL if anything else differs';

CREATE FUNCTION textsim._note_shape(number integer, before text[], after text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE textsim.source s SET shape = after WHERE s.id = number AND s.shape = before;
END
$$;
COMMENT ON FUNCTION textsim._note_shape(integer, text[], text[])
    IS 'note the shape of a table for which everything that triggers missed was logged';

CREATE FUNCTION textsim._log_partition(source textsim.source, part regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM set_config('lock_timeout', '100ms', true);
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', part);
    IF row_security_active(part) THEN
        RAISE EXCEPTION 'row security hides rows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    EXECUTE format($query$
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        SELECT $1, $2, array_agg(r.key)
        FROM (
            SELECT concat(t.%1$I) AS key, (row_number() OVER () - 1) / 10000 AS number
            FROM ONLY %2$s t WHERE t.%3$I IS NOT NULL
        ) r
        GROUP BY r.number
        $query$, source.key_column, part, source.text_column)
    USING source.corpus_id, source.id;
-- It is locked, was dropped, or this role may not read it: the whole table is compared.
EXCEPTION WHEN OTHERS THEN
    INSERT INTO textsim.pending (corpus_id, source_id) VALUES (source.corpus_id, source.id);
END
$$;
COMMENT ON FUNCTION textsim._log_partition(textsim.source, regclass)
    IS 'log the rows of a new partition';

CREATE FUNCTION textsim._compare_changed(number integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
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
        INSERT INTO textsim.pending (corpus_id, source_id) VALUES (source.corpus_id, number);
    ELSE
        PERFORM textsim._log_partition(source, p.oid::regclass)
        FROM unnest(partitions) p (oid) JOIN pg_class c ON c.oid = p.oid AND c.relkind = 'r';
    END IF;
    -- Last, because nobody can detach the table until the end of this transaction from here on.
    PERFORM textsim._note_shape(number, source.shape, current_shape);
    RETURN true;
END
$$;
COMMENT ON FUNCTION textsim._compare_changed(integer)
    IS 'log what triggers may have missed of an attached table; whether there is anything';

CREATE FUNCTION textsim._foreign_code(relation oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT min(pg_describe_object(d.classid, d.objid, 0))
    FROM textsim._partitions(relation) part (oid)
    CROSS JOIN LATERAL (
        SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i WHERE i.indrelid = part.oid
        UNION ALL SELECT 'pg_constraint'::regclass, c.oid
        FROM pg_constraint c WHERE c.conrelid = part.oid
        UNION ALL SELECT 'pg_statistic_ext'::regclass, x.oid
        FROM pg_statistic_ext x WHERE x.stxrelid = part.oid
    ) expression (class, oid)
    JOIN pg_depend d ON d.classid = expression.class AND d.objid = expression.oid
    LEFT JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    LEFT JOIN pg_type t
        ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid AND t.typtype = 'd'
    JOIN pg_roles w ON w.oid = coalesce(f.proowner, o.oprowner, t.typowner)
    WHERE NOT w.rolsuper AND w.rolname <> current_user;
END;
COMMENT ON FUNCTION textsim._foreign_code(oid)
    IS 'an index, constraint or statistic with code of another role, which planning a query may run; or NULL';

CREATE FUNCTION textsim._table_fault(source textsim.source) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN coalesce(
    textsim._unfit(source.relation),
    format('its column "%s" ', source.key_column)
        || textsim._unfit_column(source.relation, source.key_column, true),
    format('its column "%s" ', source.text_column)
        || textsim._unfit_column(source.relation, source.text_column, false));
COMMENT ON FUNCTION textsim._table_fault(textsim.source)
    IS 'why nobody can index an attached table, or NULL';

CREATE FUNCTION textsim._source_fault(source textsim.source) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    table_row pg_class;
    fault text;
BEGIN
    SELECT * INTO table_row FROM pg_class c WHERE c.oid = source.relation;
    IF table_row.oid IS NULL THEN
        RETURN 'the table was dropped';
    END IF;
    fault := textsim._table_fault(source);
    IF fault IS NOT NULL THEN
        RETURN fault;
    END IF;
    IF row_security_active(source.relation) THEN
        RETURN 'row security hides rows of it from this role, which would take them for deleted; let '
            'a worker run as a role with BYPASSRLS, or as the owner';
    END IF;
    IF NOT has_schema_privilege(table_row.relnamespace, 'USAGE')
        OR NOT has_table_privilege(source.relation, 'SELECT') THEN
        RETURN 'this role may not read it (GRANT SELECT)';
    END IF;
    IF NOT has_table_privilege(
        to_regclass(format('textsim.%I', 'document_' || source.corpus_id)), 'INSERT') THEN
        RETURN 'this role may not write to its corpus (textsim.grant_writer)';
    END IF;
    -- It may be another table: that of one that is gone is dumped as its oid, which in another
    -- database is the oid of anything.
    IF NOT EXISTS (
        SELECT FROM pg_trigger t
        WHERE t.tgrelid = source.relation AND t.tgfoid = textsim._trigger_function(source.id))
    THEN
        RETURN 'it does not have the triggers that keep it indexed: detach it, and if it is the right '
            'table, attach it again';
    END IF;
    -- Planning a query computes what is constant in these expressions, with this role's rights.
    RETURN textsim._foreign_code(source.relation)
        || ' calls a function of another role, which would run with the rights of this one; let a '
        'worker run as the owner of that function';
END
$$;
COMMENT ON FUNCTION textsim._source_fault(textsim.source)
    IS 'why the current role cannot index an attached table, or NULL';

CREATE FUNCTION textsim._source_problems(source textsim.source) RETURNS SETOF text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT 'it was dropped, and its documents are still there' AS problem
    WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = source.relation)
    UNION ALL SELECT textsim._unlogged(source.relation)
    WHERE textsim._unlogged(source.relation) IS NOT NULL
    UNION ALL SELECT textsim._table_fault(source)
    WHERE textsim._table_fault(source) IS NOT NULL
        AND EXISTS (SELECT FROM pg_class c WHERE c.oid = source.relation)
    UNION ALL
    SELECT 'it has become a partition: changes through its parent are missed; detach and attach it'
        AS problem
    FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid
    WHERE c.oid = source.relation AND c.relispartition AND t.tgname = format('textsim_%s_insert', source.id)
        AND (t.tgtype & 1) = 0
    UNION ALL
    SELECT format('its column "%s" is not the one that was attached: changes are missed; detach and attach it',
        a.attname)
    FROM pg_attribute a
    JOIN pg_trigger t
        ON t.tgrelid = a.attrelid AND t.tgname = format('textsim_%s_update', source.id)
    WHERE a.attrelid = source.relation AND a.attname IN (source.key_column, source.text_column)
        AND NOT EXISTS (
            SELECT FROM pg_depend d
            WHERE d.classid = 'pg_trigger'::regclass AND d.objid = t.oid
                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
                AND d.refobjsubid = a.attnum)
    UNION ALL
    SELECT format('its trigger %I is missing: changes are missed; detach and attach it', w.name)
    FROM pg_class c
    CROSS JOIN LATERAL (
        SELECT format('textsim_%s_%s', source.id, event)
        FROM unnest(ARRAY['insert', 'update', 'delete', 'truncate']) event
    ) w (name)
    WHERE c.oid = source.relation AND NOT EXISTS (
        SELECT FROM pg_trigger t
        WHERE t.tgrelid = c.oid AND t.tgname = w.name
            AND t.tgfoid = textsim._trigger_function(source.id))
    UNION ALL
    SELECT format('its trigger %I is disabled: changes are missed until ALTER TABLE %s ENABLE TRIGGER %I',
        t.tgname, t.tgrelid::regclass, t.tgname)
    FROM textsim._partitions(source.relation) p (oid) JOIN pg_trigger t ON t.tgrelid = p.oid
    WHERE t.tgfoid = textsim._trigger_function(source.id) AND t.tgenabled NOT IN ('O', 'A')
    UNION ALL
    SELECT 'it changed as triggers do not see (a partition, TRUNCATE, a trigger that was disabled): '
        'textsim worker, textsim reconcile or textsim.index_pending compares it' AS problem
    WHERE source.shape <> textsim._shape(source)
        AND EXISTS (SELECT FROM pg_class c WHERE c.oid = source.relation)
        -- TRUNCATE with its trigger, for one, logs that the table is to be compared.
        AND NOT EXISTS (
            SELECT FROM textsim.pending p
            WHERE p.source_id = source.id AND p.keys IS NULL AND p.error IS NULL);
END;
COMMENT ON FUNCTION textsim._source_problems(textsim.source)
    IS 'what keeps an attached table from being kept indexed, whoever works for it';

CREATE FUNCTION textsim._unindexed(corpus_id integer) RETURNS SETOF regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT s.relation FROM textsim.source s
    WHERE s.corpus_id = _unindexed.corpus_id AND s.active AND EXISTS (
        SELECT FROM textsim.pending p
        WHERE p.source_id = s.id AND p.keys IS NULL AND p.error IS NULL);
END;
COMMENT ON FUNCTION textsim._unindexed(integer)
    IS 'the attached tables that are still to be compared with their documents';

CREATE FUNCTION textsim._warn_unindexed(c textsim.corpus) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    compared regclass;
BEGIN
    FOR compared IN SELECT textsim._unindexed(c.id) LOOP
        RAISE WARNING 'table % is not wholly indexed in corpus "%": what it holds may be missing',
            compared, c.name
            USING HINT = format('Run textsim worker, or: CALL textsim.index_pending(%L)', c.name);
    END LOOP;
END
$$;
COMMENT ON FUNCTION textsim._warn_unindexed(textsim.corpus)
    IS 'raise a warning for each attached table that is still to be compared with its documents';
