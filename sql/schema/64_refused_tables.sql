-- Reasons why a table cannot be attached or indexed. A fault is a text with the reason, or NULL.

-- A table and its partitions at all levels; no rows if the table was dropped.
CREATE OR REPLACE FUNCTION textsim._partitions(relation oid) RETURNS SETOF oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    -- pg_partition_tree() would lock each partition, and wait for a transaction that alters a partition.
    WITH RECURSIVE partition (oid) AS (
        SELECT c.oid FROM pg_class c WHERE c.oid = relation
        UNION
        SELECT i.inhrelid FROM partition p JOIN pg_inherits i ON i.inhparent = p.oid
        WHERE NOT i.inhdetachpending
    )
    SELECT p.oid FROM partition p;
END;

-- A type, and the types of its elements, bounds and fields.
-- An array, a range, a domain or a row has the texts of the types in it.
CREATE OR REPLACE FUNCTION textsim._types_in(type oid) RETURNS SETOF oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    WITH RECURSIVE inner_type (oid) AS (
        SELECT type
        UNION
        SELECT n.oid FROM inner_type i JOIN pg_type t ON t.oid = i.oid
        CROSS JOIN LATERAL (
            SELECT t.typbasetype UNION ALL SELECT t.typelem
            UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
            UNION ALL SELECT a.atttypid FROM pg_attribute a
            WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        ) n (oid)
        WHERE n.oid <> 0
    )
    SELECT i.oid FROM inner_type i;
END;

CREATE OR REPLACE FUNCTION textsim._relation_fault(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN c.relkind IN ('v', 'm') THEN 'it is a view: attach the table behind it'
        WHEN c.relkind = 'f' THEN 'it is a foreign table: triggers do not see changes on its own server'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'it is not a table'
        WHEN c.relpersistence = 't' THEN 'it is a temporary table, which other sessions cannot read'
        WHEN c.relnamespace IN ('pg_catalog'::regnamespace, 'textsim'::regnamespace)
            THEN 'it belongs to the system'
        WHEN NOT c.relispartition AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
            OR c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
            THEN 'it takes part in inheritance; expected a plain or a partitioned table'
    END
    FROM pg_class c
    WHERE c.oid = relation;
END;

CREATE OR REPLACE FUNCTION textsim._unlogged_fault(relation oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT 'it is unlogged: a crash of the server empties it, and no trigger sees that; use '
        'ALTER TABLE ... SET LOGGED' AS fault
    FROM textsim._partitions(relation) p (oid) JOIN pg_class c ON c.oid = p.oid
    WHERE c.relpersistence = 'u'
    LIMIT 1;
END;

-- The reason why a column cannot serve as key, text, scope, time or filter, or NULL.
CREATE OR REPLACE FUNCTION textsim._column_fault(relation regclass, column_name name, purpose text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN a.attnum IS NULL THEN 'does not exist'
        WHEN a.attgenerated = 'v' THEN 'is a virtual generated column; expected a stored column'
        WHEN purpose IN ('scope', 'filter') THEN CASE WHEN 'money'::regtype IN (SELECT textsim._types_in(a.atttypid))
            THEN 'has values of type money, whose text depends on the setting lc_monetary; use numeric' END
        WHEN purpose = 'time' THEN CASE WHEN textsim._base_type(a.atttypid) NOT IN (
                'timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype)
            THEN format('is of type %s; expected timestamptz, timestamp or date',
                format_type(a.atttypid, a.atttypmod)) END
        WHEN purpose = 'text' THEN CASE WHEN textsim._base_type(a.atttypid) NOT IN (
                'text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
            THEN format('is of type %s; expected text', format_type(a.atttypid, a.atttypmod)) END
        WHEN textsim._base_type(a.atttypid) NOT IN (
                'smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'uuid'::regtype,
                'text'::regtype, 'varchar'::regtype,
                'date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype)
            THEN format('is of type %s; expected an integer, uuid, text, varchar, date, timestamp or timestamptz',
                format_type(a.atttypid, a.atttypmod))
        WHEN NOT a.attnotnull AND NOT EXISTS (
                SELECT FROM pg_type t WHERE t.oid = a.atttypid AND t.typnotnull)
            THEN 'may be NULL; expected a primary key, or NOT NULL with a unique index'
    END
    FROM (VALUES (1)) one_row
    LEFT JOIN pg_attribute a ON a.attrelid = relation AND a.attname = column_name
        AND a.attnum > 0 AND NOT a.attisdropped;
END;

-- The first column that cannot serve as it should, with the reason, or NULL.
CREATE OR REPLACE FUNCTION textsim._columns_fault(
    relation regclass, key_columns name[], text_column name, scope_column name, time_column name, filter_columns name[])
RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(
    (SELECT min(format('column "%s" ', k) || textsim._column_fault(relation, k, 'key')) FROM unnest(key_columns) k),
    CASE WHEN textsim._key_index(relation, key_columns) IS NULL THEN format(CASE WHEN cardinality(key_columns) = 1
        THEN 'column "%s" is not unique by itself; expected a primary key or a unique index on it alone; '
            'if the key has several columns, name them in key_columns'
        ELSE 'columns "%s" are not unique together; expected a primary key or a unique index on exactly these columns' END,
        array_to_string(key_columns, '", "')) END,
    format('column "%s" ', text_column) || textsim._column_fault(relation, text_column, 'text'),
    format('column "%s" ', scope_column) || textsim._column_fault(relation, scope_column, 'scope'),
    format('column "%s" ', time_column) || textsim._column_fault(relation, time_column, 'time'),
    (SELECT min(format('column "%s" ', f) || textsim._column_fault(relation, f, 'filter'))
        FROM unnest(filter_columns) f));

-- The reason why no role can index an attached table, or NULL.
-- The same checks as in attach: the table may have been altered since.
CREATE OR REPLACE FUNCTION textsim._table_fault(source textsim.source) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN coalesce(textsim._relation_fault(source.relation),
        'its ' || textsim._columns_fault(
            source.relation, source.key_columns, source.text_column, source.scope_column,
            coalesce(source.time_column, source.expires_column), source.filter_columns),
        (SELECT textsim._unfit(c, source.relation, source.mode, source.key_columns, source.scope_column)
            FROM textsim.corpus c WHERE c.id = source.corpus_id));
END $$;

-- An index, constraint or statistic with code of another role, which planning a query may run; or NULL.
CREATE OR REPLACE FUNCTION textsim._foreign_code(relation oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT min(pg_describe_object(d.classid, d.objid, 0))
    FROM textsim._partitions(relation) p (oid)
    CROSS JOIN LATERAL (
        SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i WHERE i.indrelid = p.oid
        UNION ALL SELECT 'pg_constraint'::regclass, c.oid
        FROM pg_constraint c WHERE c.conrelid = p.oid
        UNION ALL SELECT 'pg_statistic_ext'::regclass, x.oid
        FROM pg_statistic_ext x WHERE x.stxrelid = p.oid
    ) expression (class, oid)
    JOIN pg_depend d ON d.classid = expression.class AND d.objid = expression.oid
    -- Joins would read these three tables whole.
    JOIN pg_roles w ON w.oid = CASE d.refclassid
        WHEN 'pg_proc'::regclass THEN (SELECT f.proowner FROM pg_proc f WHERE f.oid = d.refobjid)
        WHEN 'pg_operator'::regclass THEN (SELECT o.oprowner FROM pg_operator o WHERE o.oid = d.refobjid)
        WHEN 'pg_type'::regclass
            THEN (SELECT t.typowner FROM pg_type t WHERE t.oid = d.refobjid AND t.typtype = 'd')
    END
    WHERE NOT w.rolsuper AND w.rolname <> current_user;
END;

-- Which role to take for a worker of a table with row security.
CREATE OR REPLACE FUNCTION textsim._who_sees_all_rows(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN 'run the worker as ' || CASE WHEN (SELECT c.relforcerowsecurity FROM pg_class c WHERE c.oid = relation)
    THEN 'a superuser, or as a role with BYPASSRLS: its owner does not see them either (FORCE ROW LEVEL SECURITY)'
    ELSE 'the owner of the table, or as a role with BYPASSRLS' END;

-- The reason why the current role cannot index an attached table, or NULL.
CREATE OR REPLACE FUNCTION textsim._source_fault(source textsim.source) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = source.relation)
        THEN 'the table was dropped'
    WHEN textsim._table_fault(source) IS NOT NULL THEN textsim._table_fault(source)
    WHEN row_security_active(source.relation)
        THEN 'row security hides rows of it from this role, and their documents would be removed; '
            || textsim._who_sees_all_rows(source.relation)
    WHEN NOT has_table_privilege(source.relation, 'SELECT') OR NOT has_schema_privilege(
            (SELECT c.relnamespace FROM pg_class c WHERE c.oid = source.relation), 'USAGE')
        THEN 'this role may not read it (GRANT SELECT)'
    WHEN NOT has_table_privilege(to_regclass('textsim.document_' || source.corpus_id), 'INSERT')
        THEN 'this role may not write to its corpus (textsim.grant_writer)'
    -- It may be another table: a dump can contain the oid of a dropped table, and in the restored database
    -- that may be the oid of any table.
    WHEN NOT EXISTS (
            SELECT FROM pg_trigger t
            WHERE t.tgrelid = source.relation AND t.tgfoid = textsim._trigger_function(source.id))
        THEN 'it does not have the triggers that keep it indexed: detach it, and if it is the right '
            'table, attach it again'
    -- Planning a query computes the constants in these expressions with the rights of this role.
    ELSE textsim._foreign_code(source.relation)
        || ' calls a function of another role, which would run with the rights of this role; run a '
        'worker as the owner of that function'
END;
