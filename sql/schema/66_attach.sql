-- Attaching tables. The caller creates the triggers, which needs the rights of the table's owner. Functions
-- with the rights of the schema's owner write textsim.source and the trigger functions. They trust the
-- triggers, because only the table's owner can create them.

-- A temporary index with the row filter of a table that is being attached as its condition.
-- The server parses the condition as that of an index on an empty temporary table. So it has immutable functions
-- and no subqueries, and the catalog has it in a form that means the same whoever reads it.
CREATE OR REPLACE FUNCTION textsim._filter_index(relation regclass, row_filter text) RETURNS regclass
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    one_statement refcursor;
BEGIN
    EXECUTE (
        SELECT format('CREATE TEMPORARY TABLE textsim_row_filter (%s) ON COMMIT DROP', string_agg(
            format('%I %s', a.attname, CASE WHEN t.oid < 16384 THEN format('pg_catalog.%I', t.typname)
                ELSE 'pg_catalog.text' END), ', '))
        FROM pg_attribute a JOIN pg_type t ON t.oid = textsim._base_type(a.atttypid)
        WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped);
    -- A cursor takes one statement only, so the text cannot end the statement and begin another.
    OPEN one_statement FOR EXECUTE format(E'SELECT FROM textsim_row_filter WHERE (%s\n)', row_filter);
    CLOSE one_statement;
    EXECUTE format(E'CREATE INDEX textsim_row_filter_index ON textsim_row_filter ((1)) WHERE (%s\n)', row_filter);
    RETURN 'pg_temp.textsim_row_filter_index'::regclass;
EXCEPTION WHEN syntax_error_or_access_rule_violation OR feature_not_supported OR data_exception
    OR invalid_cursor_definition
THEN
    PERFORM textsim._refuse_table(relation, format('its row filter is %L: %s', row_filter, SQLERRM));
END $$;

-- The condition of an index, which is the row filter of a table, with its columns; an error if it uses code of a user.
CREATE OR REPLACE FUNCTION textsim._read_filter(
    relation regclass, filter regclass, OUT condition text, OUT columns name[], OUT types text[])
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- The server notes no dependence on what it needs itself, such as the functions of pg_catalog.
    foreign_object text := (
        SELECT min(pg_describe_object(d.refclassid, d.refobjid, 0)) FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = filter AND d.refclassid <> 'pg_class'::regclass);
BEGIN
    IF foreign_object IS NOT NULL THEN
        PERFORM textsim._refuse_table(relation, format(
            'its row filter uses %s; expected functions, operators and types of PostgreSQL only', foreign_object));
    END IF;
    SELECT pg_get_expr(i.indpred, i.indrelid), coalesce(array_agg(a.attname ORDER BY a.attnum)
            FILTER (WHERE a.attnum IS NOT NULL), '{}'),
        coalesce(array_agg(format('pg_catalog.%I', t.typname) ORDER BY a.attnum)
            FILTER (WHERE a.attnum IS NOT NULL), '{}')
    INTO condition, columns, types
    FROM pg_index i
    LEFT JOIN (pg_attribute a JOIN pg_type t ON t.oid = a.atttypid AND t.oid < 16384)
        ON a.attrelid = i.indrelid AND EXISTS (
            SELECT FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = filter
                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum)
    WHERE i.indexrelid = filter
    GROUP BY i.indpred, i.indrelid;
END $$;

-- Store a table that is being attached, and create its trigger function.
CREATE OR REPLACE FUNCTION textsim._prepare_source(
    corpus text, relation regclass, key_columns name[], text_column name, mode text,
    scope_column name DEFAULT NULL, time_column name DEFAULT NULL, expires_column name DEFAULT NULL,
    filter_index regclass DEFAULT NULL)
RETURNS textsim.source
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
-- The settings of textsim._text_of: the server prints the constants of the row filter, and parses them again.
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres'
SET extra_float_digits = 1 SET bytea_output = 'hex' SET xmloption = 'content' SET quote_all_identifiers = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    source textsim.source;
    filter record;
    replaced integer;
    table_owner regrole := (SELECT r.relowner FROM pg_class r WHERE r.oid = relation);
    new_types regtype[] := array(
        SELECT textsim._base_type(a.atttypid)
        FROM unnest(key_columns) WITH ORDINALITY k (name, place)
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = k.name AND NOT a.attisdropped
        ORDER BY k.place);
    filter_function text;
BEGIN
    -- Check the role of the session, because the current role is the schema's owner here.
    IF NOT pg_has_role(session_user, table_owner, 'MEMBER') THEN
        RAISE EXCEPTION 'only the owner of table % may attach it', relation
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM textsim._check_writer(c.id, true);
    -- A table that was attached before with the same key keeps its id, and so its documents; the comparison
    -- removes documents without a row. With a key of other columns or types it gets a new id, and its earlier
    -- documents belong to no table any more.
    FOR replaced IN
        DELETE FROM textsim.source s
        WHERE s.corpus_id = c.id AND s.relation = _prepare_source.relation AND NOT s.active
            AND (s.key_columns, s.key_types) <> (_prepare_source.key_columns, new_types)
        RETURNING s.id
    LOOP
        EXECUTE format(
            'UPDATE textsim.%I SET source_id = NULL WHERE source_id = $1', 'document_' || c.id) USING replaced;
    END LOOP;
    SELECT * INTO filter FROM textsim._read_filter(relation, filter_index);
    INSERT INTO textsim.source AS s (
        corpus_id, relation, key_columns, key_types, text_column, scope_column, time_column, expires_column,
        row_filter, filter_columns, filter_types, mode, attached_as)
    VALUES (
        c.id, relation, key_columns, new_types, text_column, scope_column, time_column, expires_column,
        filter.condition, coalesce(filter.columns, '{}'), coalesce(filter.types, '{}'), mode, (
            SELECT ARRAY[n.nspname, r.relname]
            FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace WHERE r.oid = relation))
    ON CONFLICT ON CONSTRAINT source_corpus_relation_key DO UPDATE
    SET text_column = excluded.text_column, scope_column = excluded.scope_column,
        time_column = excluded.time_column, expires_column = excluded.expires_column,
        row_filter = excluded.row_filter, filter_columns = excluded.filter_columns,
        filter_types = excluded.filter_types, mode = excluded.mode, attached_at = excluded.attached_at,
        attached_as = excluded.attached_as
    WHERE NOT s.active
    RETURNING * INTO source;
    IF source.id IS NULL THEN
        RAISE EXCEPTION 'table % is attached to corpus "%" already; with replace it is attached anew', relation, corpus
            USING ERRCODE = 'duplicate_object';
    END IF;
    -- It takes the place of a dropped table of its name.
    UPDATE textsim.source s SET attached_as = '{}'
    WHERE s.corpus_id = c.id AND s.id <> source.id AND NOT s.active AND s.attached_as = source.attached_as;
    IF source.row_filter IS NOT NULL THEN
        -- It returns an empty text if the filter is true, NULL if not, or the error, without the values of the row: the
        -- log and workers report it.
        filter_function := format(
            'textsim.%I(%s)', '_filter_' || source.id, array_to_string(source.filter_types, ', '));
        PERFORM textsim._make_function(filter_function, format(
            'CREATE FUNCTION %s RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE '
            'SET search_path = pg_catalog, pg_temp %s AS %L', filter_function, textsim._text_settings(), format($body$
#variable_conflict use_column
BEGIN
    RETURN (SELECT CASE WHEN %s THEN '' END FROM (SELECT %s) row_of_table);
EXCEPTION
    WHEN insufficient_resources OR operator_intervention OR system_error OR syntax_error_or_access_rule_violation THEN
        RAISE;
    WHEN OTHERS THEN
        RETURN concat('its row filter cannot be computed: ', rtrim(substring(SQLERRM from '^[[:alpha:] ]*')), ' (', SQLSTATE, ')');
END
$body$, source.row_filter, (
            SELECT string_agg(format('$%s AS %I', f.place, f.name), ', ' ORDER BY f.place)
            FROM unnest(source.filter_columns) WITH ORDINALITY f (name, place)))));
    END IF;
    PERFORM textsim._make_trigger_function(source);
    -- Only the table's owner may use the function in triggers: it has the rights of the schema's owner.
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', textsim._trigger_function(source.id));
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s',
        textsim._trigger_function(source.id), table_owner);
    RETURN source;
END $$;

-- Mark a table as attached, if its triggers are in place; compare: log that all its rows must be indexed.
CREATE OR REPLACE FUNCTION textsim._activate_source(source integer, compare boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET jit = off AS $$
DECLARE
    activated textsim.source;
BEGIN
    PERFORM textsim._check_writer((SELECT s.corpus_id FROM textsim.source s WHERE s.id = source), true);
    UPDATE textsim.source s SET active = true, shape = textsim._shape(s)
    WHERE s.id = source AND NOT s.active AND (SELECT count(*) FROM textsim._trigger_events(s)) = (
        SELECT count(DISTINCT t.tgname) FROM pg_trigger t
        WHERE t.tgrelid = s.relation AND t.tgparentid = 0 AND t.tgenabled = 'O'
            AND t.tgfoid = textsim._trigger_function(s.id))
    RETURNING * INTO activated;
    IF activated.id IS NULL THEN
        RAISE EXCEPTION 'source % has no triggers', source
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Attach the table with textsim.attach, which creates the triggers.';
    END IF;
    IF compare THEN
        PERFORM textsim._enqueue(activated.corpus_id, activated.id);
    END IF;
END $$;

-- Mark a table without triggers as detached; its documents stay.
CREATE OR REPLACE FUNCTION textsim._release_source(number integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET jit = off AS $$
DECLARE
    function regproc;
BEGIN
    PERFORM textsim._check_writer((SELECT s.corpus_id FROM textsim.source s WHERE s.id = number), true);
    FOREACH function IN ARRAY ARRAY[
        to_regproc('textsim._changes_' || number), to_regproc('textsim._filter_' || number)]
    LOOP
        IF function IS NOT NULL THEN
            -- The server raises an error here while a trigger uses the function. A table that was a partition of a
            -- dropped table keeps its trigger on TRUNCATE.
            EXECUTE format('DROP FUNCTION %s %s', function, CASE WHEN NOT EXISTS (
                SELECT FROM textsim.source s JOIN pg_class r ON r.oid = s.relation WHERE s.id = number)
                THEN 'CASCADE' END);
        END IF;
    END LOOP;
    -- The name of a dropped table is kept: another table may have it, which nobody indexes.
    UPDATE textsim.source s SET active = false, attached_as = CASE
        WHEN EXISTS (SELECT FROM pg_class r WHERE r.oid = s.relation) THEN '{}' ELSE s.attached_as END
    WHERE s.id = number;
    -- The words of documents that were written inline may still need ids.
    UPDATE textsim.pending p SET kind = 'words', source_id = NULL
    FROM textsim.source s
    WHERE p.source_id = number AND p.kind = 'change' AND s.id = number AND s.mode = 'inline';
    DELETE FROM textsim.pending p WHERE p.source_id = number;
END $$;

CREATE OR REPLACE FUNCTION textsim._dropped_sources(corpus_id integer) RETURNS SETOF textsim.source
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT s.* FROM textsim.source s
    WHERE s.corpus_id = _dropped_sources.corpus_id AND s.active
        AND NOT EXISTS (SELECT FROM pg_class r WHERE r.oid = s.relation);
END;

-- Detach a dropped table, remove its documents, and return their number; NULL if there is no such table.
CREATE OR REPLACE FUNCTION textsim._release_dropped(number integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus;
    documents bigint;
BEGIN
    SELECT k.* INTO c FROM textsim.corpus k
    WHERE EXISTS (SELECT FROM textsim._dropped_sources(k.id) s WHERE s.id = number);
    IF FOUND THEN
        documents := textsim._remove_documents_of(c, number);
        PERFORM textsim._release_source(number);
    END IF;
    RETURN documents;
END $$;

-- Raise an error with this fault, unless the fault is NULL.
CREATE OR REPLACE FUNCTION textsim._refuse_table(relation regclass, fault text) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'table % cannot be attached: %', relation, fault
        USING ERRCODE = 'feature_not_supported';
END $$;

-- Lock a table with its partitions; while that fails, let waiting writers go first.
CREATE OR REPLACE FUNCTION textsim._lock_tree(relation regclass, against_readers boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- Shorter than deadlock_timeout (by default 1 s): we give way before the server ends a writer.
    patience text := '500ms';
    limit_before text := current_setting('lock_timeout');
    start timestamptz := clock_timestamp();
BEGIN
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', CASE
                WHEN limit_before::interval BETWEEN '1 us' AND patience::interval THEN limit_before
                ELSE patience END, true);
            -- LOCK locks the table first and then its partitions, in the same order as writers.
            EXECUTE format('LOCK TABLE %s IN %s MODE', relation,
                CASE WHEN against_readers THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END);
            PERFORM set_config('lock_timeout', limit_before, true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF limit_before::interval > '0' AND clock_timestamp() - start > limit_before::interval
            THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(random() * 0.1);
        END;
    END LOOP;
END $$;

-- Why a table does not fit a corpus, or NULL; a rebuild asks it of the new corpus.
CREATE OR REPLACE FUNCTION textsim._unfit(
    c textsim.corpus, relation regclass, mode text, key_columns name[], scope_column name)
RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN mode = 'inline' AND c.stop_words_by_language <> '{}' THEN
            format('corpus "%s" removes stop words by language, and only a worker identifies languages; use '
                'mode queue', c.name)
        WHEN NOT c.is_unique THEN NULL
        WHEN mode = 'queue' THEN
            format('corpus "%s" is unique, and in mode queue a row is committed before it is compared; use '
                'mode inline', c.name)
        -- A worker notices a renamed value later, and gives the documents their new scope.
        WHEN EXISTS (
                SELECT FROM pg_attribute a CROSS JOIN LATERAL textsim._types_in(a.atttypid) i JOIN pg_enum e ON e.enumtypid = i
                WHERE a.attrelid = relation AND a.attname = scope_column AND NOT a.attisdropped)
            THEN format('column "%s" has values of an enum, which can be renamed, and the corpus is unique: until a worker '
                'has given documents the new name as their scope, they would not be compared with new rows; use text',
                scope_column)
        WHEN r.relispartition
            THEN 'it is a partition, and the corpus is unique; attach the partitioned table'
        WHEN NOT (SELECT i.indimmediate FROM pg_index i WHERE i.indexrelid = textsim._key_index(r.oid, key_columns))
            THEN format('the constraint on its key "%s" is deferrable, and the corpus is unique: two rows '
                'could have the same key for a time', array_to_string(key_columns, '", "'))
    END
    FROM pg_class r
    WHERE r.oid = relation;
END;

-- The reason why this role cannot attach a table to a unique corpus, or NULL.
CREATE OR REPLACE FUNCTION textsim._hidden_rows_fault(c textsim.corpus, relation regclass) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN c.is_unique AND row_security_active(relation)
    THEN 'row security hides rows of it from this role, and the corpus is unique: all rows must be compared'
END;

-- Remove the documents of a table whose row has other words or another scope, or is gone; the keys of those of them that
-- were forced and still have their words.
CREATE OR REPLACE FUNCTION textsim._remove_changed(c textsim.corpus, source textsim.source) RETURNS text[]
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    ids integer[];
    forced text[];
BEGIN
    -- Writers wait for the lock of the corpus, so the rows are locked afterwards. Without locks the server compares them
    -- in parallel.
    EXECUTE format($query$
        SELECT array_agg(d.id), coalesce(array_agg(d.key) FILTER (WHERE d.forced AND r.has_words), '{}')
        FROM textsim.%1$I d LEFT JOIN LATERAL (
            SELECT textsim._form($1, concat(t.%3$I)) COLLATE "C"
                    = textsim._stored_form($1.id, d.word_ids, d.normal_form) AS has_words,
                %4$s AS scope, %5$s AS fault
            FROM %2$s t WHERE %6$s AND %7$s
        ) r ON true
        WHERE d.source_id = $2
            AND (r.has_words AND r.scope IS NOT DISTINCT FROM d.scope AND r.fault IS NULL) IS NOT TRUE
        $query$, 'document_' || c.id, source.relation, source.text_column, textsim._scope_of(source, 't'),
        textsim._row_fault(source, 't'), textsim._has_key(source, 't', 'd.key'), textsim._has_document(source, 't'))
    INTO ids, forced USING c, source.id;
    EXECUTE format(
        'SELECT count(*) FROM (SELECT FROM textsim.%I d WHERE d.id = ANY ($1) ORDER BY d.key FOR UPDATE) locked',
        'document_' || c.id) USING ids;
    PERFORM textsim._delete_locked(c, ids);
    RETURN forced;
END $$;

-- Index the rows of a table for a unique corpus; a text for each row that matches an earlier one, which force indexes.
-- A table that was attached before has documents. Those that equal their rows stay as they are. Forced ones come last:
-- the documents that they match stood beside them.
CREATE OR REPLACE FUNCTION textsim._index_existing(c textsim.corpus, source textsim.source, force boolean)
RETURNS text[]
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    forced text[];
    existing record;
    twin record;
    pairs text[] := '{}';
BEGIN
    PERFORM textsim._lock_unique(c.id, true);
    forced := textsim._remove_changed(c, source);
    FOR existing IN EXECUTE format(
        'SELECT %1$s AS key, concat(t.%2$I) AS body, %4$s AS scope, %5$s AS expires_at, %8$s AS fault FROM %3$s t '
        -- A look-up in the index of the keys, whose collation is the default; a join could read all for each row.
        'WHERE %6$s AND (SELECT d.source_id = $1 AND d.expires_at IS NOT DISTINCT FROM %5$s FROM textsim.%9$I d '
            'WHERE d.key = %1$s COLLATE pg_catalog."default") IS NOT TRUE ORDER BY %10$s%7$s',
        textsim._key_of(source, 't'), source.text_column, source.relation, textsim._scope_of(source, 't'),
        textsim._expiry_of(source, 't'), textsim._has_document(source, 't'), textsim._key_order(source, 't'),
        textsim._row_fault(source, 't'), 'document_' || c.id,
        CASE WHEN forced <> '{}' THEN textsim._key_of(source, 't') || ' = ANY ($2), ' END)
    USING source.id, forced
    LOOP
        PERFORM textsim._check_document(c, existing.key, existing.body, existing.scope, existing.fault);
        IF textsim._write_document(
            c, source.id, existing.key, existing.body, existing.scope, existing.expires_at,
            CASE WHEN existing.key = ANY (forced) THEN 'Infinity'::double precision ELSE 0 END) = 'twin'
        THEN
            SELECT t.* INTO twin FROM textsim._twins(c, existing.key, existing.body, existing.scope) t LIMIT 1;
            pairs := pairs || format('"%s" and "%s" (similarity %s)',
                left(existing.key, 100), left(twin.key, 100), twin.similarity);
            IF force THEN
                PERFORM textsim._write_document(
                    c, source.id, existing.key, existing.body, existing.scope, existing.expires_at,
                    unique_from => 'Infinity');
            END IF;
        END IF;
    END LOOP;
    RETURN pairs;
END $$;

CREATE OR REPLACE FUNCTION textsim.attach(
    corpus text, relation regclass, key_column name DEFAULT NULL, text_column name DEFAULT NULL, mode text DEFAULT NULL,
    existing text DEFAULT 'refuse', scope_column name DEFAULT NULL, time_column name DEFAULT NULL,
    expires_column name DEFAULT NULL, row_filter text DEFAULT NULL, key_columns name[] DEFAULT NULL,
    replace boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    source textsim.source;
    trigger record;
    pairs text[];
    report text;
    listed text;
    unindexed bigint;
BEGIN
    IF key_column IS NOT NULL AND key_columns IS NOT NULL THEN
        RAISE EXCEPTION 'key_column and key_columns are both given; leave one of them out'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    key_columns := coalesce(key_columns, ARRAY[key_column]);
    IF relation IS NULL OR text_column IS NULL OR key_columns = '{}' OR array_ndims(key_columns) > 1
        OR array_position(key_columns, NULL) IS NOT NULL
    THEN
        RAISE EXCEPTION 'the table, the key column or the text column is NULL or missing'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    mode := coalesce(mode, CASE WHEN c.is_unique THEN 'inline' ELSE 'queue' END);
    PERFORM textsim._check_choice('mode', mode, 'queue', 'inline'),
        textsim._check_choice('existing', existing, 'refuse', 'keep');
    PERFORM textsim._refuse_table(relation, coalesce(
        CASE
            WHEN NOT c.is_unique AND existing <> 'refuse' THEN
                format('corpus "%s" is not unique; leave out existing', c.name)
            WHEN c.scoped AND scope_column IS NULL THEN
                format('corpus "%s" is scoped; name the column of the scopes', c.name)
            WHEN NOT c.scoped AND scope_column IS NOT NULL THEN
                format('corpus "%s" is not scoped; leave out the column of scopes, or create a scoped corpus', c.name)
            WHEN time_column IS NOT NULL AND expires_column IS NOT NULL THEN
                'time_column and expires_column are both given; leave one of them out'
            WHEN c.keep_for IS NOT NULL AND time_column IS NULL AND expires_column IS NULL THEN
                format('documents of corpus "%s" expire; name the column of their times, or of the times when they '
                    'expire', c.name)
            WHEN c.keep_for IS NULL AND coalesce(time_column, expires_column) IS NOT NULL THEN
                format('documents of corpus "%s" never expire; leave out the column of times, or create a corpus with '
                    'keep_for', c.name)
        END,
        textsim._relation_fault(relation), textsim._unlogged_fault(relation)));
    IF replace AND EXISTS (
        SELECT FROM textsim.source s WHERE s.corpus_id = c.id AND s.relation = attach.relation AND s.active)
    THEN
        PERFORM textsim.detach(corpus, relation);
    END IF;
    PERFORM textsim._lock_tree(relation, false);
    PERFORM textsim._refuse_table(relation, coalesce(
        textsim._columns_fault(
            relation, key_columns, text_column, scope_column, coalesce(time_column, expires_column), '{}'),
        textsim._unfit(c, relation, mode, key_columns, scope_column), textsim._hidden_rows_fault(c, relation)));
    IF textsim._base_type((
        SELECT a.atttypid FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attname = coalesce(time_column, expires_column))) = 'timestamp'::regtype
    THEN
        RAISE WARNING 'column "%" of table % is a timestamp without time zone: its times are of UTC',
            coalesce(time_column, expires_column), relation
            USING HINT = 'If the application writes local times, make it timestamptz. SQLAlchemy does so for '
                'mapped_column(DateTime(timezone=True)), and not for Mapped[datetime] alone.';
    END IF;
    source := textsim._prepare_source(
        corpus, relation, key_columns, text_column, mode, scope_column, time_column, expires_column,
        textsim._filter_index(relation, row_filter));
    IF row_filter IS NOT NULL THEN
        DROP TABLE textsim_row_filter;
    END IF;
    PERFORM textsim._refuse_table(relation, 'its row filter has a ' || (
        SELECT min(format('column "%s" that ', f) || textsim._column_fault(relation, f, 'filter'))
        FROM unnest(source.filter_columns) f));
    FOR trigger IN
        SELECT e.name, e.timing, e.clause, r.oid::regclass AS relation
        FROM textsim._trigger_events(source) e
        -- Partitions do not inherit triggers on TRUNCATE, and can be truncated directly.
        JOIN textsim._partitions(source.relation) r (oid)
            ON r.oid = source.relation OR e.name = 'truncate'
    LOOP
        EXECUTE format('CREATE TRIGGER %I %s ON %s %s EXECUTE FUNCTION %s',
            textsim._trigger_name(source.id, trigger.name), trigger.timing, trigger.relation,
            trigger.clause, textsim._trigger_function(source.id));
    END LOOP;
    IF c.is_unique THEN
        PERFORM textsim._activate_source(source.id, false);
        pairs := textsim._index_existing(c, source, existing = 'keep');
        report := format(CASE cardinality(pairs)
            WHEN 1 THEN '%s row of table %s matches another row, or a document of unique corpus "%s"'
            ELSE '%s rows of table %s match other rows, or documents of unique corpus "%s"' END,
            cardinality(pairs), relation, c.name);
        listed := array_to_string(pairs[:10], ', ') || CASE WHEN cardinality(pairs) > 10 THEN ' ...' ELSE '' END;
        IF pairs <> '{}' AND existing = 'keep' THEN
            RAISE WARNING '%; they are kept', report
                USING DETAIL = listed, HINT = format('SELECT * FROM textsim.pairs(%L) lists them.', c.name);
        ELSIF pairs <> '{}' THEN
            RAISE EXCEPTION '%', report
                USING ERRCODE = 'unique_violation', CONSTRAINT = c.name, DETAIL = listed,
                    HINT = 'Remove these rows, or keep them: attach the table with existing => ''keep''.';
        END IF;
        RETURN;
    END IF;
    EXECUTE format(
        'SELECT count(*) FROM (SELECT FROM %s t WHERE %s LIMIT 100001) t',
        source.relation, textsim._has_document(source, 't')) INTO unindexed;
    -- An older snapshot or row security may hide rows. A table that was attached before has a shape, and may
    -- have documents without a row.
    PERFORM textsim._activate_source(source.id, unindexed > 0 OR source.shape <> '{}'
        OR row_security_active(source.relation)
        OR current_setting('transaction_isolation') <> 'read committed');
    IF unindexed > 0 THEN
        RAISE NOTICE 'not indexed yet: % of table %', CASE WHEN unindexed > 100000
            THEN 'more than 100000 rows' ELSE textsim._counted(unindexed, 'row') END, source.relation
            USING HINT = format('Run textsim worker, or: CALL textsim.index_pending(%L)', c.name);
    END IF;
END $$;
COMMENT ON FUNCTION textsim.attach(text, regclass, name, name, text, text, name, name, name, text, name[], boolean)
    IS 'Keeps a table indexed in a corpus: creates triggers that see every change of the columns. In mode queue a '
    'worker indexes changes; in mode inline the transaction that makes a change indexes it. Existing rows wait for a '
    'worker or index_pending(). Raises an error if the caller does not own the table, or if the key column may be NULL '
    'or is not unique. If the key has several columns, name them in key_columns instead of key_column, such as '
    'ARRAY[''day'', ''id'']; they must be unique together, and their values are joined as by join_key(). A unique '
    'corpus takes mode inline only, which is its default, and existing rows are indexed at once. A change that makes '
    'two documents match raises unique_violation. If existing rows match, attach raises unique_violation; if existing '
    'is keep, it keeps them with a warning, as if add() was called with force. A scoped corpus needs scope_column, '
    'whose value, as text, is the scope of the row''s document. No setting of a session changes that text: times are '
    'written in UTC, dates as 2026-11-25, and char(n) without its padding. A row whose scope is NULL is refused by a '
    'unique corpus, and set aside with an error by another. A corpus with keep_for needs one of two columns of type '
    'timestamptz, timestamp or date: a row counts until keep_for after the time in time_column, or until the time in '
    'expires_column. If the column is NULL, the row counts for ever. Times without a time zone are of UTC. The expired '
    'rows stay in the table. With row_filter, a condition such as status = ''published'', only the rows for which it '
    'is true have a document. It has the columns of the row, and immutable functions and operators of PostgreSQL. A '
    'column of another type than those of PostgreSQL is read as text. With replace, a table that is attached is '
    'attached anew as these arguments say, in one transaction; with the same key columns, documents that equal their '
    'rows stay as they are, forced ones too.';

CREATE OR REPLACE FUNCTION textsim.detach(corpus text, relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    source integer := (
        SELECT s.id FROM textsim.source s
        WHERE s.corpus_id = c.id AND s.relation = detach.relation AND s.active);
    trigger record;
BEGIN
    IF source IS NULL THEN
        RAISE EXCEPTION 'table % is not attached to corpus "%"%', relation, corpus, coalesce((
            SELECT format('; the attached tables with the oids %s were dropped: textsim worker, textsim '
                'reconcile or CALL textsim.index_pending(%L) removes their documents',
                string_agg(s.relation::oid::text, ', '), corpus)
            FROM textsim._dropped_sources(c.id) s
            HAVING count(*) > 0), '')
            USING ERRCODE = 'undefined_object',
                HINT = 'SELECT * FROM textsim.sources lists the attached tables.';
    END IF;
    IF EXISTS (SELECT FROM pg_class r WHERE r.oid = relation) THEN
        PERFORM textsim._lock_tree(relation, true);
    END IF;
    FOR trigger IN
        SELECT t.tgname, t.tgrelid::regclass AS relation FROM pg_trigger t
        WHERE t.tgfoid = textsim._trigger_function(source) AND t.tgparentid = 0
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', trigger.tgname, trigger.relation);
    END LOOP;
    PERFORM textsim._release_source(source);
END $$;
COMMENT ON FUNCTION textsim.detach(text, regclass)
    IS 'Stops keeping a table indexed: removes its triggers. Its documents stay in the corpus.';

CREATE OR REPLACE VIEW textsim.sources AS
SELECT c.name AS corpus, s.relation, s.key_columns, s.text_column, s.scope_column, s.time_column,
    s.expires_column, s.row_filter, s.mode, s.attached_at
FROM textsim.source s JOIN textsim.corpus c ON c.id = s.corpus_id
WHERE s.active;
COMMENT ON VIEW textsim.sources IS 'The attached tables of all corpora.';
COMMENT ON COLUMN textsim.sources.corpus IS 'the corpus that the table is attached to';
COMMENT ON COLUMN textsim.sources.relation IS 'the attached table';
COMMENT ON COLUMN textsim.sources.key_columns
    IS 'the columns of the documents'' keys, whose values are joined as by join_key()';
COMMENT ON COLUMN textsim.sources.text_column IS 'the column of the texts';
COMMENT ON COLUMN textsim.sources.scope_column
    IS 'the column of the documents'' scopes; NULL if the corpus is not scoped';
COMMENT ON COLUMN textsim.sources.time_column
    IS 'the column of the times from which the rows count for as long as the corpus keeps documents; or NULL';
COMMENT ON COLUMN textsim.sources.expires_column
    IS 'the column of the times from which the rows no longer count; or NULL';
COMMENT ON COLUMN textsim.sources.row_filter
    IS 'the condition on the rows that have a document; NULL: every row';
COMMENT ON COLUMN textsim.sources.mode
    IS 'queue: a worker indexes changes; inline: the transaction that makes a change indexes it';
COMMENT ON COLUMN textsim.sources.attached_at IS 'when the table was attached';
