-- Attaching tables. What needs the table's owner (the triggers) is done with the caller's rights;
-- what needs the schema's (its tables, the trigger functions) is done by functions that run with
-- the rights of the schema's owner, and go by the triggers, which only the table's owner can make.

CREATE FUNCTION textsim._wake() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    milliseconds bigint := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
    -- A commit with a notification waits for every other such commit of the server: so only one
    -- in twenty milliseconds has one. Workers poll; what is not notified is only found later.
    IF milliseconds - (SELECT last_value FROM textsim.last_notice) NOT BETWEEN 0 AND 20 THEN
        PERFORM setval('textsim.last_notice', milliseconds);
        NOTIFY textsim;
    END IF;
END
$$;
COMMENT ON FUNCTION textsim._wake() IS 'notify the workers, unless that was done just now';

CREATE FUNCTION textsim._enqueue(corpus_id integer, source_id integer, keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO textsim.pending (corpus_id, source_id, keys) VALUES (corpus_id, source_id, keys);
    IF current_setting('textsim.notify', true) = 'on' THEN
        PERFORM textsim._wake();
    END IF;
END
$$;
COMMENT ON FUNCTION textsim._enqueue(integer, integer, text[])
    IS 'log that rows of an attached table changed: these keys, or any if NULL';

-- The two bodies of trigger functions. Static SQL with the names written in, because planning
-- dynamic SQL would double the price of a single insert. They run with the rights of the schema's
-- owner, and who owns the table can make other triggers with them, on other tables. So nothing
-- here may run a function of theirs: values become text by concat(), which takes the output
-- function of their type where a cast could be one that users made; and "changed" must be a
-- transition table, not a temporary view.
CREATE FUNCTION textsim._queue_body(source textsim.source, by_row boolean) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN by_row THEN format($body$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (%1$s, %2$s, ARRAY[concat(NEW.%3$I)]);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (%1$s, %2$s, ARRAY[concat(OLD.%3$I)]);
$body$, source.corpus_id, source.id, source.key_column)
ELSE format($body$
BEGIN
    IF TG_OP IN ('INSERT', 'DELETE') THEN
        IF NOT EXISTS (
            SELECT FROM pg_trigger t WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME
                AND 'changed' IN (t.tgnewtable, t.tgoldtable))
        THEN
            IF EXISTS (
                SELECT FROM pg_trigger t WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME)
            THEN
                RAISE EXCEPTION 'trigger "%%" has no transition table', TG_NAME
                    USING ERRCODE = 'insufficient_privilege';
            END IF;
            RAISE EXCEPTION 'the table was attached after this transaction began; repeat it'
                USING ERRCODE = 'serialization_failure';
        END IF;
        -- One row of the log for so many keys: a tenth of what one for each would cost.
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        SELECT %1$s, %2$s, array_agg(part.key)
        FROM (
            SELECT concat(changed.%3$I) AS key, (row_number() OVER () - 1) / 10000 AS number
            FROM changed
            WHERE changed.%4$I IS NOT NULL
        ) part
        GROUP BY part.number;
$body$, source.corpus_id, source.id, source.key_column, source.text_column)
END || format($body$
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (%1$s, %2$s, ARRAY[concat(OLD.%3$I), concat(NEW.%3$I)]);
    ELSE
        INSERT INTO textsim.pending (corpus_id, source_id) VALUES (%1$s, %2$s);
    END IF;
    IF current_setting('textsim.notify', true) = 'on' THEN
        PERFORM textsim._wake();
    END IF;
    RETURN NULL;
END
$body$, source.corpus_id, source.id, source.key_column);
COMMENT ON FUNCTION textsim._queue_body(textsim.source, boolean)
    IS 'the trigger function of a table in mode queue, for rows or for statements';

CREATE FUNCTION textsim._inline_body(source textsim.source) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN format($body$
DECLARE
    c textsim.corpus;
    old_key text;
    new_key text;
BEGIN
    SELECT * INTO c FROM textsim.corpus WHERE id = %1$s;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'corpus %1$s is not there: it was rebuilt after this transaction began'
            USING ERRCODE = 'serialization_failure',
            HINT = 'Repeat the transaction. If it restores a data-only dump, use --disable-triggers.';
    END IF;
    IF TG_OP = 'TRUNCATE' THEN
        IF TG_RELID = (SELECT relation FROM textsim.source WHERE id = %2$s) THEN
            PERFORM textsim._take_all(c, %2$s);
        END IF;  -- or only a partition of it: a worker finds out which documents those were
        INSERT INTO textsim.pending (corpus_id, source_id) VALUES (%1$s, %2$s);
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        old_key := concat(OLD.%3$I);
    END IF;
    IF TG_OP = 'DELETE' THEN
        -- Without a document, a worker may just be indexing the row that goes: it looks again.
        IF NOT textsim._take(c, %2$s, old_key) THEN
            PERFORM textsim._enqueue(%1$s, %2$s, ARRAY[old_key]);
        END IF;
        RETURN NULL;
    END IF;
    new_key := concat(NEW.%3$I);
    IF old_key COLLATE "C" <> new_key THEN
        -- The keys of a statement may form a chain, in which the one that is left here is taken
        -- there: a worker looks at them again.
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (%1$s, %2$s, ARRAY[old_key, new_key]);
        PERFORM textsim._take(c, %2$s, old_key);
    END IF;
    IF NEW.%4$I IS NULL THEN
        IF NOT textsim._take(c, %2$s, new_key) AND TG_OP = 'UPDATE' THEN
            PERFORM textsim._enqueue(%1$s, %2$s, ARRAY[new_key]);
        END IF;
    ELSIF textsim._fault(new_key, concat(NEW.%4$I)) IS NOT NULL THEN
        -- A worker sets it aside and says so; this transaction must not fail for it.
        PERFORM textsim._enqueue(%1$s, %2$s, ARRAY[new_key]);
    ELSE
        PERFORM textsim._put(c, %2$s, new_key, concat(NEW.%4$I));
    END IF;
    RETURN NULL;
END
$body$, source.corpus_id, source.id, source.key_column, source.text_column);
COMMENT ON FUNCTION textsim._inline_body(textsim.source)
    IS 'the trigger function of a table in mode inline';

CREATE FUNCTION textsim._by_row(relation regclass, mode text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
-- Statements on a partitioned table do not show their rows, and partitions are written directly.
RETURN mode = 'inline' OR (
    SELECT c.relkind = 'p' OR c.relispartition FROM pg_class c WHERE c.oid = relation);
COMMENT ON FUNCTION textsim._by_row(regclass, text) IS 'whether a table has triggers for each row';

CREATE FUNCTION textsim._make_trigger_function(source textsim.source) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION textsim.%I() RETURNS trigger '
        'LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER '
        'SET search_path = pg_catalog, pg_temp AS %L',
        '_changes_' || source.id,
        CASE source.mode WHEN 'inline' THEN textsim._inline_body(source)
            ELSE textsim._queue_body(source, textsim._by_row(source.relation, source.mode)) END);
END
$$;
COMMENT ON FUNCTION textsim._make_trigger_function(textsim.source)
    IS 'write the trigger function of an attached table, or write it anew';

CREATE FUNCTION textsim._prepare_source(
    corpus text, relation regclass, key_column name, text_column name, mode text)
RETURNS textsim.source
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made textsim.source;
    trigger_function text;
    document_table regclass := format('textsim.%I', 'document_' || (textsim._corpus(corpus)).id);
    new_type regtype := (
        SELECT textsim._base_type(a.atttypid) FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attname = key_column AND NOT a.attisdropped);
BEGIN
    -- The role of the session, for here it is the schema's owner who is asking.
    IF NOT pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = relation), 'MEMBER')
    THEN
        RAISE EXCEPTION 'only the owner of table % may attach it', relation
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_roles r
        WHERE pg_has_role(session_user, r.oid, 'MEMBER')
            AND has_table_privilege(r.oid, document_table, 'INSERT'))
    THEN
        RAISE EXCEPTION 'no right to write to corpus "%"', corpus
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    -- A table that was attached before by the same key keeps its id, and so its documents: those
    -- whose rows are gone by now are removed. Keys of another column or type are not its keys.
    DELETE FROM textsim.source s
    WHERE s.corpus_id = (textsim._corpus(corpus)).id AND s.relation = _prepare_source.relation
        AND NOT s.active
        AND (s.key_column, s.key_type) <> (_prepare_source.key_column, new_type);
    INSERT INTO textsim.source AS s (corpus_id, relation, key_column, key_type, text_column, mode)
    VALUES ((textsim._corpus(corpus)).id, relation, key_column, new_type, text_column, mode)
    ON CONFLICT ON CONSTRAINT source_corpus_relation_key DO UPDATE
    SET text_column = excluded.text_column, mode = excluded.mode, attached_at = excluded.attached_at
    WHERE NOT s.active
    RETURNING * INTO made;
    IF made.id IS NULL THEN
        RAISE EXCEPTION 'table % is attached to corpus "%" already', relation, corpus
            USING ERRCODE = 'duplicate_object';
    END IF;
    trigger_function := '_changes_' || made.id;
    PERFORM textsim._make_trigger_function(made);
    EXECUTE format('COMMENT ON FUNCTION textsim.%I() IS %L',
        trigger_function, 'keeps an attached table indexed');
    -- Only for triggers of the table's owner: it writes with the rights of the schema's.
    EXECUTE format('REVOKE ALL ON FUNCTION textsim.%I() FROM PUBLIC', trigger_function);
    EXECUTE format('GRANT EXECUTE ON FUNCTION textsim.%I() TO %s', trigger_function,
        (SELECT relowner::regrole FROM pg_class WHERE oid = relation));
    RETURN made;
END
$$;
COMMENT ON FUNCTION textsim._prepare_source(text, regclass, name, name, text)
    IS 'note a table that is being attached, and make its trigger function';

CREATE FUNCTION textsim._activate_source(source integer, compare boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    activated textsim.source;
BEGIN
    UPDATE textsim.source s SET active = true, shape = textsim._shape(s)
    WHERE s.id = source AND NOT s.active AND 4 = (
        SELECT count(DISTINCT t.tgname) FROM pg_trigger t
        WHERE t.tgrelid = s.relation AND t.tgparentid = 0 AND t.tgenabled = 'O'
            AND t.tgfoid = to_regprocedure(format('textsim.%I()', '_changes_' || s.id)))
    RETURNING * INTO activated;
    IF activated.id IS NULL THEN
        RAISE EXCEPTION 'source % has no triggers', source
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF compare THEN
        PERFORM textsim._enqueue(activated.corpus_id, activated.id, NULL);
    END IF;
END
$$;
COMMENT ON FUNCTION textsim._activate_source(integer, boolean)
    IS 'note that the triggers of a table are in place, and have all its rows indexed if asked to';

CREATE FUNCTION textsim._release_source(number integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Refused by the server as long as a trigger is there.
    EXECUTE format('DROP FUNCTION IF EXISTS textsim.%I()', '_changes_' || number);
    UPDATE textsim.source s SET active = false WHERE s.id = number;
    -- The words of documents that were written inline may still wait for ids.
    UPDATE textsim.pending p SET source_id = NULL
    FROM textsim.source s
    WHERE p.source_id = number AND p.keys IS NOT NULL AND p.error IS NULL
        AND s.id = number AND s.mode = 'inline';
    DELETE FROM textsim.pending p WHERE p.source_id = number;
END
$$;
COMMENT ON FUNCTION textsim._release_source(integer)
    IS 'forget a table whose triggers are gone, but not its documents';

CREATE FUNCTION textsim._release_dropped(corpus_id integer)
RETURNS TABLE (relation oid, documents bigint)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus;
    dropped textsim.source;
BEGIN
    SELECT * INTO c FROM textsim.corpus WHERE id = corpus_id;
    FOR dropped IN
        SELECT * FROM textsim.source s
        WHERE s.corpus_id = c.id AND s.active
            AND NOT EXISTS (SELECT FROM pg_class r WHERE r.oid = s.relation)
    LOOP
        relation := dropped.relation;
        documents := textsim._take_all(c, dropped.id);
        PERFORM textsim._release_source(dropped.id);
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION textsim._release_dropped(integer)
    IS 'detach the tables of a corpus that were dropped, remove their documents, and return how many';

CREATE FUNCTION textsim._unfit(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN c.relkind IN ('v', 'm') THEN 'it is a view: attach the table behind it'
        WHEN c.relkind = 'f' THEN 'it is a foreign table, whose changes are made elsewhere'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'it is not a table'
        WHEN c.relpersistence = 't' THEN 'it is a temporary table, which workers cannot see'
        WHEN c.relnamespace IN ('pg_catalog'::regnamespace, 'textsim'::regnamespace)
            THEN 'it belongs to the system'
        WHEN NOT c.relispartition AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
            OR c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
            THEN 'it takes part in inheritance; expected a plain or a partitioned table'
    END
    FROM pg_class c
    WHERE c.oid = relation;
END;
COMMENT ON FUNCTION textsim._unfit(regclass) IS 'why a relation cannot be attached, or NULL';

CREATE FUNCTION textsim._base_type(type oid) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE based (oid, base) AS (
        SELECT t.oid, t.typbasetype FROM pg_type t WHERE t.oid = type
        UNION ALL
        SELECT t.oid, t.typbasetype FROM based b JOIN pg_type t ON t.oid = b.base
    )
    SELECT b.oid FROM based b WHERE b.base = 0;
END;
COMMENT ON FUNCTION textsim._base_type(oid) IS 'the type that a domain is made of, or the type itself';

CREATE FUNCTION textsim._unfit_column(relation regclass, column_name name, is_key boolean)
RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE
        WHEN a.attnum IS NULL THEN 'does not exist'
        WHEN a.attgenerated = 'v' THEN 'is generated when it is read, which triggers cannot see'
        WHEN NOT is_key THEN CASE WHEN textsim._base_type(a.atttypid) NOT IN (
                'text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
            THEN format('is of type %s; expected text', format_type(a.atttypid, a.atttypmod)) END
        WHEN textsim._base_type(a.atttypid) NOT IN (
                'smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'uuid'::regtype,
                'text'::regtype, 'varchar'::regtype)
            THEN format('is of type %s; expected an integer, uuid, text or varchar',
                format_type(a.atttypid, a.atttypmod))
        WHEN NOT a.attnotnull AND NOT EXISTS (
                SELECT FROM pg_type t WHERE t.oid = a.atttypid AND t.typnotnull)
            THEN 'may be NULL; expected NOT NULL'
        WHEN NOT EXISTS (
                SELECT FROM pg_index i
                WHERE i.indrelid = relation AND i.indisunique AND i.indisvalid
                    AND i.indpred IS NULL AND i.indexprs IS NULL
                    AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
            THEN 'is not unique by itself; expected a primary key or a unique index on it alone'
    END
    FROM (VALUES (relation, column_name)) given (relation, name)
    LEFT JOIN pg_attribute a ON a.attrelid = given.relation AND a.attname = given.name
        AND a.attnum > 0 AND NOT a.attisdropped;
END;
COMMENT ON FUNCTION textsim._unfit_column(regclass, name, boolean)
    IS 'why a column cannot give the keys or the texts, or NULL';

CREATE FUNCTION textsim._check_owner(relation regclass, deed text) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = relation), 'USAGE') THEN
        RAISE EXCEPTION 'only the owner of table % may % it', relation, deed
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$$;
COMMENT ON FUNCTION textsim._check_owner(regclass, text)
    IS 'an error unless the caller has the rights of the table''s owner';

CREATE FUNCTION textsim._lock_tree(relation regclass, against_readers boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Less than deadlock_timeout, 1 s by default: the writer that waits for this goes on.
    patience text := '500ms';
    limit_before text := current_setting('lock_timeout');
    start timestamptz := clock_timestamp();
BEGIN
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', CASE
                WHEN limit_before::interval BETWEEN '1 us' AND patience::interval THEN limit_before
                ELSE patience END, true);
            -- The table first and then its partitions, in the order in which writers take them.
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
END
$$;
COMMENT ON FUNCTION textsim._lock_tree(regclass, boolean)
    IS 'lock a table with its partitions, and let writers pass until that works';

CREATE FUNCTION textsim._changed(relation regclass, column_name name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    -- Byte by byte: under some collations different texts are equal.
    SELECT format(CASE WHEN a.attcollation = 0
        THEN 'OLD.%1$I IS DISTINCT FROM NEW.%1$I'
        ELSE 'OLD.%1$I COLLATE pg_catalog."C" IS DISTINCT FROM NEW.%1$I' END, column_name)
    FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = column_name;
END;
COMMENT ON FUNCTION textsim._changed(regclass, name) IS 'the condition that an update changed a column';

CREATE FUNCTION textsim.attach(
    corpus text, relation regclass, key_column name, text_column name, mode text DEFAULT 'queue')
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(corpus);
    fault text;
    source textsim.source;
    row_or_statement text;
    part regclass;
    rows_left bigint;
BEGIN
    IF relation IS NULL OR key_column IS NULL OR text_column IS NULL THEN
        RAISE EXCEPTION 'the table, the key column or the text column is NULL'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF mode IS NULL OR mode NOT IN ('queue', 'inline') THEN
        RAISE EXCEPTION 'mode is "%"; expected "queue" or "inline"', mode
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF mode = 'inline' AND c.stop_words_by_language <> '{}' THEN
        RAISE EXCEPTION 'table % cannot be attached inline: corpus "%" leaves out the stop words of '
            'each text''s language, which only a worker identifies', relation, corpus
            USING ERRCODE = 'feature_not_supported', HINT = 'Attach it in mode queue.';
    END IF;
    fault := coalesce(textsim._unfit(relation), textsim._unlogged(relation));
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot be attached: %', relation, fault
            USING ERRCODE = 'feature_not_supported';
    END IF;
    PERFORM textsim._check_owner(relation, 'attach');
    PERFORM textsim._lock_tree(relation, false);
    fault := coalesce(
        format('column "%s" ', key_column) || textsim._unfit_column(relation, key_column, true),
        format('column "%s" ', text_column) || textsim._unfit_column(relation, text_column, false));
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot be attached: %', relation, fault
            USING ERRCODE = 'feature_not_supported';
    END IF;
    source := textsim._prepare_source(corpus, relation, key_column, text_column, mode);
    row_or_statement := CASE WHEN textsim._by_row(relation, mode) THEN 'ROW' ELSE 'STATEMENT' END;
    EXECUTE format(
        'CREATE TRIGGER %I AFTER INSERT ON %s %s FOR EACH %s EXECUTE FUNCTION textsim.%I()',
        format('textsim_%s_insert', source.id), relation,
        CASE row_or_statement WHEN 'STATEMENT' THEN 'REFERENCING NEW TABLE AS changed' ELSE '' END,
        row_or_statement, '_changes_' || source.id);
    EXECUTE format(
        'CREATE TRIGGER %I AFTER DELETE ON %s %s FOR EACH %s EXECUTE FUNCTION textsim.%I()',
        format('textsim_%s_delete', source.id), relation,
        CASE row_or_statement WHEN 'STATEMENT' THEN 'REFERENCING OLD TABLE AS changed' ELSE '' END,
        row_or_statement, '_changes_' || source.id);
    -- For each row, because its condition costs nothing where the text is left alone, and not
    -- OF the columns, because another trigger may change them.
    EXECUTE format(
        'CREATE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (%s OR %s) '
        'EXECUTE FUNCTION textsim.%I()',
        format('textsim_%s_update', source.id), relation,
        textsim._changed(relation, key_column), textsim._changed(relation, text_column),
        '_changes_' || source.id);
    -- Triggers on TRUNCATE are not handed down, and partitions are truncated directly.
    FOR part IN
        SELECT relation
        UNION SELECT t.relid FROM pg_partition_tree(relation) t WHERE t.relid IS NOT NULL
    LOOP
        EXECUTE format(
            'CREATE TRIGGER %I AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION textsim.%I()',
            format('textsim_%s_truncate', source.id), part, '_changes_' || source.id);
    END LOOP;
    EXECUTE format(
        'SELECT count(*) FROM (SELECT FROM %s t WHERE t.%I IS NOT NULL LIMIT 100001) t',
        relation, text_column) INTO rows_left;
    -- An older snapshot and row security may hide rows. A table that was attached before has a
    -- shape, and may have documents whose rows are gone.
    PERFORM textsim._activate_source(source.id, rows_left > 0 OR source.shape <> '{}'
        OR row_security_active(relation)
        OR current_setting('transaction_isolation') <> 'read committed');
    IF rows_left > 0 THEN
        RAISE NOTICE '% of table % are not indexed yet', CASE WHEN rows_left > 100000
            THEN 'more than 100000 rows' ELSE rows_left || ' rows' END, relation
            USING HINT = format('Run textsim worker, or: CALL textsim.index_pending(%L)', corpus);
    END IF;
END
$$;
COMMENT ON FUNCTION textsim.attach(text, regclass, name, name, text)
    IS 'keep a table indexed: mode queue by workers, inline in the transaction that writes a row';

CREATE FUNCTION textsim.detach(corpus text, relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(corpus);
    source integer;
    made record;
BEGIN
    SELECT s.id INTO source FROM textsim.source s
    WHERE s.corpus_id = c.id AND s.relation = detach.relation AND s.active;
    IF source IS NULL THEN
        RAISE EXCEPTION 'table % is not attached to corpus "%"%', relation, corpus, coalesce((
            SELECT format('; attached are %s, which were dropped: textsim worker, textsim reconcile or '
                'CALL textsim.index_pending(%L) removes their documents',
                string_agg(s.relation::oid::text, ', '), corpus)
            FROM textsim.source s
            WHERE s.corpus_id = c.id AND s.active
                AND NOT EXISTS (SELECT FROM pg_class r WHERE r.oid = s.relation)), '')
            USING ERRCODE = 'undefined_object';
    END IF;
    PERFORM textsim._check_owner(relation, 'detach');
    IF EXISTS (SELECT FROM pg_class r WHERE r.oid = relation) THEN
        PERFORM textsim._lock_tree(relation, true);
    END IF;
    FOR made IN
        SELECT t.tgname, t.tgrelid::regclass AS relation FROM pg_trigger t
        WHERE t.tgfoid = to_regprocedure(format('textsim.%I()', '_changes_' || source))
            AND t.tgparentid = 0
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', made.tgname, made.relation);
    END LOOP;
    PERFORM textsim._release_source(source);
END
$$;
COMMENT ON FUNCTION textsim.detach(text, regclass)
    IS 'stop keeping a table indexed; its documents stay in the corpus';

CREATE VIEW textsim.sources AS
SELECT c.name AS corpus, s.relation, s.key_column, s.text_column, s.mode, s.attached_at
FROM textsim.source s JOIN textsim.corpus c ON c.id = s.corpus_id
WHERE s.active;
COMMENT ON VIEW textsim.sources IS 'the attached tables';
COMMENT ON COLUMN textsim.sources.corpus IS 'where the rows are indexed';
COMMENT ON COLUMN textsim.sources.relation IS 'the attached table';
COMMENT ON COLUMN textsim.sources.key_column IS 'the column that gives the keys of the documents';
COMMENT ON COLUMN textsim.sources.text_column IS 'the column that gives the texts';
COMMENT ON COLUMN textsim.sources.mode
    IS 'queue: a worker indexes what changed; inline: the transaction that changes it does';
COMMENT ON COLUMN textsim.sources.attached_at IS 'when the table was attached';
