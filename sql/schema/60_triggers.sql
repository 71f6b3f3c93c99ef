-- Trigger functions log or index the changes of an attached table, with the rights of the schema's owner.
-- Triggers on the table run them.

-- Private functions

CREATE FUNCTION textsim._wake() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    milliseconds bigint := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
    -- Commits with a notification wait for each other on the whole server, so only one notification is sent
    -- in 20 milliseconds. Workers also poll, and find the other changes a little later.
    IF milliseconds - (SELECT last_value FROM textsim.last_notice) NOT BETWEEN 0 AND 20 THEN
        PERFORM setval('textsim.last_notice', milliseconds);
        NOTIFY textsim;
    END IF;
END $$;
COMMENT ON FUNCTION textsim._wake() IS 'notify the workers, at most once in 20 milliseconds';

CREATE FUNCTION textsim._enqueue(corpus_id integer, source_id integer, keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO textsim.pending (corpus_id, source_id, keys) VALUES (corpus_id, source_id, keys);
    IF current_setting('textsim.notify', true) = 'on' THEN
        PERFORM textsim._wake();
    END IF;
END $$;
COMMENT ON FUNCTION textsim._enqueue(integer, integer, text[])
    IS 'log that rows of an attached table changed: rows with these keys, or any row if keys is NULL';

CREATE FUNCTION textsim._index_change(
    corpus_id integer, source integer, operation text, changed_table oid,
    old_key text, new_key text, body text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus;
BEGIN
    SELECT * INTO c FROM textsim.corpus k WHERE k.id = corpus_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'corpus % no longer exists: it was rebuilt after this transaction began', corpus_id
            USING ERRCODE = 'serialization_failure',
            HINT = 'Repeat the transaction. If it restores a data-only dump, use --disable-triggers.';
    END IF;
    IF operation = 'TRUNCATE' THEN
        -- If only a partition was truncated, a worker removes the documents of its rows.
        IF changed_table = (SELECT s.relation FROM textsim.source s WHERE s.id = source) THEN
            PERFORM textsim._remove_documents_of(c, source);
        END IF;
        INSERT INTO textsim.pending (corpus_id, source_id) VALUES (c.id, source);
        RETURN;
    END IF;
    IF operation = 'DELETE' THEN
        -- If there is no document, a worker may be indexing the deleted row. The log makes it look again.
        IF NOT textsim._remove_document(c, source, old_key) THEN
            PERFORM textsim._enqueue(c.id, source, ARRAY[old_key]);
        END IF;
        RETURN;
    END IF;
    IF operation = 'UPDATE' AND old_key COLLATE "C" <> new_key THEN
        -- A statement may shift keys along a chain, so that another row has the old key now. The log makes a
        -- worker look at both keys again.
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (c.id, source, ARRAY[old_key, new_key]);
        PERFORM textsim._remove_document(c, source, old_key);
    END IF;
    IF body IS NULL THEN
        IF NOT textsim._remove_document(c, source, new_key) AND operation = 'UPDATE' THEN
            PERFORM textsim._enqueue(c.id, source, ARRAY[new_key]);
        END IF;
    ELSIF textsim._document_fault(new_key, body) IS NOT NULL THEN
        -- The user's transaction must not fail, so a worker sets the key aside with an error.
        PERFORM textsim._enqueue(c.id, source, ARRAY[new_key]);
    ELSE
        PERFORM textsim._write_or_raise(c, source, new_key, body);
    END IF;
END $$;
COMMENT ON FUNCTION textsim._index_change(integer, integer, text, oid, text, text, text)
    IS 'index a change of a table in mode inline; body is NULL if the row was deleted or has no text';

-- The bodies of trigger functions. They are static SQL that contains the names of columns, because planning
-- dynamic SQL would double the time of a single insert.
--
-- They run with the rights of the schema's owner, and the owner of the table can create other triggers with
-- them, on other tables. So they must not run a function of that owner. Values become text by concat(),
-- which calls the output function of the type, because a cast could be a function of that owner. They check
-- that "changed" is a transition table, because a temporary view of that name could call functions.
--
-- NEW is NULL in DELETE, OLD is NULL in INSERT, and both are NULL in TRUNCATE.
CREATE FUNCTION textsim._trigger_body(source textsim.source) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE source.mode WHEN 'queue' THEN format($body$
BEGIN
    IF TG_LEVEL = 'ROW' OR TG_OP = 'TRUNCATE' THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (%1$s, %2$s, CASE TG_OP
            WHEN 'INSERT' THEN ARRAY[concat(NEW.%3$I)]
            WHEN 'UPDATE' THEN ARRAY[concat(OLD.%3$I), concat(NEW.%3$I)]
            WHEN 'DELETE' THEN ARRAY[concat(OLD.%3$I)] END);
    ELSE
        IF NOT EXISTS (
            SELECT FROM pg_trigger t WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME
                AND 'changed' IN (t.tgnewtable, t.tgoldtable))
        THEN
            IF EXISTS (
                SELECT FROM pg_trigger t WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME)
            THEN
                RAISE EXCEPTION 'trigger "%%" has no transition table', TG_NAME
                    USING ERRCODE = 'insufficient_privilege',
                        HINT = 'Drop this trigger: only textsim.attach creates triggers that work.';
            END IF;
            RAISE EXCEPTION 'the table was attached after this transaction began'
                USING ERRCODE = 'serialization_failure', HINT = 'Repeat the transaction.';
        END IF;
        -- One log entry for up to 10,000 keys takes a tenth of the time of an entry for each key.
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        SELECT %1$s, %2$s, array_agg(part.key)
        FROM (
            SELECT concat(changed.%3$I) AS key, (row_number() OVER () - 1) / 10000 AS number
            FROM changed
            WHERE changed.%4$I IS NOT NULL
        ) part
        GROUP BY part.number;
    END IF;
    IF current_setting('textsim.notify', true) = 'on' THEN
        PERFORM textsim._wake();
    END IF;
    RETURN NULL;
END
$body$, source.corpus_id, source.id, source.key_column, source.text_column)
WHEN 'inline' THEN format($body$
BEGIN
    PERFORM textsim._index_change(%1$s, %2$s, TG_OP, TG_RELID, concat(OLD.%3$I), concat(NEW.%3$I),
        CASE WHEN NEW.%4$I IS NOT NULL THEN concat(NEW.%4$I) END);
    RETURN NULL;
END
$body$, source.corpus_id, source.id, source.key_column, source.text_column)
END;
COMMENT ON FUNCTION textsim._trigger_body(textsim.source)
    IS 'the body of the trigger function of an attached table';

CREATE FUNCTION textsim._make_trigger_function(source textsim.source) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION textsim.%I() RETURNS trigger '
        'LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER '
        'SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS %L',
        '_changes_' || source.id, textsim._trigger_body(source));
    EXECUTE format('COMMENT ON FUNCTION textsim.%I() IS %L',
        '_changes_' || source.id, 'keeps an attached table indexed');
END $$;
COMMENT ON FUNCTION textsim._make_trigger_function(textsim.source)
    IS 'create or replace the trigger function of an attached table';

CREATE FUNCTION textsim._trigger_function(source integer) RETURNS regprocedure
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN to_regprocedure(format('textsim.%I()', '_changes_' || source));
COMMENT ON FUNCTION textsim._trigger_function(integer)
    IS 'the trigger function of an attached table; NULL if it does not exist';

CREATE FUNCTION textsim._is_changed(relation regclass, column_name name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    -- Byte by byte: under some collations different texts are equal.
    SELECT format(CASE WHEN a.attcollation = 0
        THEN 'OLD.%1$I IS DISTINCT FROM NEW.%1$I'
        ELSE 'OLD.%1$I COLLATE pg_catalog."C" IS DISTINCT FROM NEW.%1$I' END, column_name)
    FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = column_name;
END;
COMMENT ON FUNCTION textsim._is_changed(regclass, name)
    IS 'a condition for the WHEN clause of a trigger: the update changes this column';

CREATE FUNCTION textsim._create_triggers(source textsim.source) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- Transition tables do not work here: partitions can be written directly, without their parent.
    by_row boolean := source.mode = 'inline' OR (
        SELECT c.relkind = 'p' OR c.relispartition FROM pg_class c WHERE c.oid = source.relation);
    trigger record;
BEGIN
    FOR trigger IN
        SELECT 'insert' AS event, source.relation,
            CASE WHEN by_row THEN 'FOR EACH ROW'
                ELSE 'REFERENCING NEW TABLE AS changed FOR EACH STATEMENT' END AS clause
        UNION ALL
        SELECT 'delete', source.relation,
            CASE WHEN by_row THEN 'FOR EACH ROW'
                ELSE 'REFERENCING OLD TABLE AS changed FOR EACH STATEMENT' END
        UNION ALL
        -- FOR EACH ROW, because its condition skips updates that do not change the text. Without OF, because
        -- another trigger may change the columns.
        SELECT 'update', source.relation, format('FOR EACH ROW WHEN (%s OR %s)',
            textsim._is_changed(source.relation, source.key_column),
            textsim._is_changed(source.relation, source.text_column))
        UNION ALL
        -- Partitions do not inherit triggers on TRUNCATE, and can be truncated directly.
        SELECT 'truncate', p.oid, 'FOR EACH STATEMENT' FROM textsim._partitions(source.relation) p (oid)
    LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s EXECUTE FUNCTION %s',
            format('textsim_%s_%s', source.id, trigger.event), trigger.event,
            trigger.relation::regclass, trigger.clause, textsim._trigger_function(source.id));
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim._create_triggers(textsim.source)
    IS 'create the triggers of a table that is being attached';
