-- Trigger functions log or index the changes of an attached table, with the rights of the schema's owner.
-- Triggers on the table run them.

-- Log that the rows of an attached table with these keys changed; without keys, that the table must be compared.
CREATE OR REPLACE FUNCTION textsim._enqueue(corpus_id integer, source_id integer, keys text[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
    VALUES (CASE WHEN keys IS NULL THEN 'compare' ELSE 'change' END, corpus_id, source_id, keys);
END $$;

-- Forget that rows were set aside, because their writer indexes them. A worker that has locked an entry looks again itself.
CREATE OR REPLACE FUNCTION textsim._forget_failures(source integer, row_keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
BEGIN
    DELETE FROM textsim.pending p
    WHERE p.id IN (
        SELECT f.id FROM textsim.pending f
        WHERE f.kind = 'failed' AND f.keys[1] = ANY (row_keys) AND f.source_id = source
        FOR UPDATE SKIP LOCKED);
END $$;

-- Let workers look again at the rows of a truncated table that were set aside: most have no row now.
CREATE OR REPLACE FUNCTION textsim._retry_rows(corpus_id integer, source integer) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
BEGIN ATOMIC
    UPDATE textsim.pending SET kind = 'change', error = NULL, tries = 0
    WHERE id IN (
        SELECT f.id FROM textsim.pending f
        WHERE f.corpus_id = _retry_rows.corpus_id AND f.kind = 'failed' AND f.source_id = source AND f.keys IS NOT NULL
        FOR UPDATE SKIP LOCKED);
END;

-- Remove the document of a row that has left its key. If there is none, a worker may be indexing the row, and the log
-- makes it look again.
CREATE OR REPLACE FUNCTION textsim._remove_or_enqueue(c textsim.corpus, source integer, key text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF NOT textsim._remove_document(c, source, key) THEN
        PERFORM textsim._enqueue(c.id, source, ARRAY[key]);
    END IF;
END $$;

-- Remove the document of the old key of a row whose key changed. A statement may shift keys along a chain, such as
-- id + 1, so that another row has the old key now. Its trigger may have run: then its document stays.
CREATE OR REPLACE FUNCTION textsim._leave_key(c textsim.corpus, source_id integer, old_key text, new_key text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    source textsim.source := (SELECT s FROM textsim.source s WHERE s.id = source_id);
    now_there record;
    is_written boolean;
BEGIN
    -- A version whose transaction ended before all that run now is the document of the old row.
    EXECUTE format(
        'SELECT age(d.xmin) <= age(pg_snapshot_xmin(pg_current_snapshot())::xid) FROM textsim.%I d WHERE d.key = $1',
        'document_' || c.id)
    INTO is_written USING old_key;
    IF is_written AND textsim._source_fault(source) IS NOT NULL THEN
        -- The owner of the schema must not read the table, so a worker looks at both keys again.
        PERFORM textsim._enqueue(c.id, source_id, ARRAY[old_key, new_key]);
        PERFORM textsim._remove_document(c, source_id, old_key);
        RETURN;
    END IF;
    IF is_written THEN
        SELECT * INTO now_there FROM textsim._rows_of(source, ARRAY[old_key]);
        IF now_there.body IS NOT NULL THEN
            EXECUTE format(
                'SELECT EXISTS (SELECT FROM textsim.%I d WHERE d.key = $1 AND d.part IS NOT DISTINCT FROM $2 '
                'AND textsim._stored_form($3, d.word_ids, d.normal_form) COLLATE "C" = $4)', 'document_' || c.id)
            INTO is_written
            USING old_key, textsim._part(now_there.scope), c.id, textsim._form(c, now_there.body);
            IF NOT is_written THEN
                PERFORM textsim._remove_document(c, source_id, old_key);
            END IF;
            RETURN;
        END IF;
    END IF;
    PERFORM textsim._remove_or_enqueue(c, source_id, old_key);
END $$;

-- Index a change of a table in mode inline. old_key is NULL if the old row had no document, and body if the new one has
-- none; fault says why there can be none.
CREATE OR REPLACE FUNCTION textsim._index_change(
    corpus_id integer, source integer, operation text, changed_table oid, old_key text, new_key text, body text,
    scope text, expires_at timestamptz, fault text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = corpus_id);
BEGIN
    IF c.id IS NULL THEN
        RAISE EXCEPTION 'corpus % no longer exists: it was rebuilt after this transaction began', corpus_id
            USING ERRCODE = 'serialization_failure',
            HINT = 'Repeat the transaction. If it restores a data-only dump, use --disable-triggers.';
    END IF;
    IF operation = 'TRUNCATE' THEN
        -- If only a partition was truncated, a worker removes the documents of its rows.
        IF changed_table = (SELECT s.relation FROM textsim.source s WHERE s.id = source) THEN
            PERFORM textsim._remove_documents_of(c, source);
        END IF;
        PERFORM textsim._enqueue(c.id, source), textsim._retry_rows(c.id, source);
        RETURN;
    END IF;
    PERFORM textsim._forget_failures(source, ARRAY[old_key, new_key]);
    IF operation = 'DELETE' THEN
        PERFORM textsim._remove_or_enqueue(c, source, old_key);
        RETURN;
    END IF;
    IF textsim._other_build(c) IS NOT NULL THEN
        -- Until the corpus is rebuilt, its changes wait. A unique corpus refuses them: it cannot compare them.
        IF c.is_unique THEN
            PERFORM textsim._corpus(c.name);
        END IF;
        PERFORM textsim._enqueue(c.id, source, array_remove(ARRAY[old_key, new_key], NULL));
        RETURN;
    END IF;
    IF operation = 'UPDATE' AND old_key COLLATE "C" <> new_key THEN
        PERFORM textsim._leave_key(c, source, old_key, new_key);
        -- The row that had the new key has left it. A document with the same words would not be written again.
        PERFORM textsim._remove_document(c, source, new_key);
    END IF;
    IF body IS NULL AND old_key COLLATE "C" = new_key THEN
        PERFORM textsim._remove_or_enqueue(c, source, new_key);
    ELSIF body IS NULL THEN
        PERFORM textsim._remove_document(c, source, new_key);
    ELSIF c.is_unique THEN
        PERFORM textsim._check_document(c, new_key, body, scope, fault);
        PERFORM textsim._write_or_raise(c, source, new_key, body, scope, expires_at);
    ELSIF coalesce(fault, textsim._document_fault(c, new_key, body, scope)) IS NOT NULL THEN
        -- The user's transaction must not fail, so a worker sets the key aside with an error.
        PERFORM textsim._enqueue(c.id, source, ARRAY[new_key]);
    ELSE
        PERFORM textsim._write_document(c, source, new_key, body, scope, expires_at);
    END IF;
END $$;

-- Raise an error unless a trigger has transition tables of these names.
CREATE OR REPLACE FUNCTION textsim._check_transition_table(
    relation oid, trigger_name name, names name[] DEFAULT '{changed}')
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    has_table boolean := (
        SELECT names <@ ARRAY[t.tgnewtable, t.tgoldtable] FROM pg_trigger t
        WHERE t.tgrelid = relation AND t.tgname = trigger_name);
BEGIN
    IF has_table THEN
        RETURN;
    END IF;
    IF has_table IS NOT NULL THEN
        RAISE EXCEPTION 'trigger "%" has no transition table', trigger_name
            USING ERRCODE = 'insufficient_privilege',
                HINT = 'Drop this trigger: only textsim.attach creates triggers that work.';
    END IF;
    RAISE EXCEPTION 'the table was attached after this transaction began'
        USING ERRCODE = 'serialization_failure', HINT = 'Repeat the transaction.';
END $$;

-- Whether a table is attached as this source, or is a partition of it; a warning if it is not.
-- A dump of one table has its triggers, and in the database that restores it their functions may belong to another
-- table.
CREATE OR REPLACE FUNCTION textsim._is_own_trigger(source integer, relation oid, trigger_name name) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM textsim.source s
        WHERE s.id = source AND (s.relation = _is_own_trigger.relation
            OR s.relation IN (SELECT a FROM pg_partition_ancestors(_is_own_trigger.relation) a)))
    THEN
        RETURN true;
    END IF;
    RAISE WARNING 'table % is not attached, and its trigger "%" does nothing: its function belongs to another table',
        relation::regclass, trigger_name
        USING HINT = format('DROP TRIGGER %I ON %s; then attach the table if it is to be indexed.',
            trigger_name, relation::regclass);
    RETURN false;
END $$;

-- The bodies of trigger functions. They are static SQL that contains the names of columns, because planning
-- dynamic SQL would double the time of a single insert.
--
-- They run with the rights of the schema's owner, and the owner of the table can create other triggers with
-- them, on other tables. So they must not run a function of that owner. Values become text by concat(),
-- which calls the output function of the type, because a cast could be a function of that owner. They check
-- that "changed" and "former" are transition tables, because a temporary view of that name could call
-- functions.
--
-- NEW is NULL in DELETE, OLD is NULL in INSERT, and both are NULL in TRUNCATE.

-- An expression: the scope that a row of an attached table gives its document.
CREATE OR REPLACE FUNCTION textsim._scope_of(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN coalesce(textsim._text_expression(source.relation, version, source.scope_column), 'NULL::pg_catalog.text');

-- The columns of an attached table that are read.
CREATE OR REPLACE FUNCTION textsim._columns(source textsim.source) RETURNS name[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array(
    SELECT c.name
    FROM unnest(source.key_columns || ARRAY[source.text_column, source.scope_column, source.time_column,
        source.expires_column] || source.filter_columns) WITH ORDINALITY c (name, place)
    WHERE c.name IS NOT NULL GROUP BY c.name ORDER BY min(c.place));

-- An expression in the body of a trigger function: the hash of the columns of a row that are read.
CREATE OR REPLACE FUNCTION textsim._content_hash(source textsim.source, version text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT string_agg(format('hashtextextended(concat(%1$s.%2$I IS NULL, %1$s.%2$I) COLLATE "C", ',
        version, c.name), '') || 'seed'
        || repeat(')', count(*)::integer)
    FROM unnest(textsim._columns(source)) c (name));

-- A time or date, without a time zone of UTC, and some seconds; infinity if there is no such time.
-- In the settings of this function, concat() writes a time with or without a zone and a date in a form that
-- becomes a time of UTC. A handler of errors begins a subtransaction, which a parallel worker must not do.
CREATE OR REPLACE FUNCTION textsim._moment(value anyelement, kept double precision) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
SET datestyle = 'ISO' SET jit = off AS $$
BEGIN
    RETURN concat(value)::timestamptz + make_interval(secs => kept);
EXCEPTION WHEN data_exception THEN
    RETURN 'infinity';
END $$;

-- An expression: when the document of a row of an attached table expires; NULL: never.
CREATE OR REPLACE FUNCTION textsim._expiry_of(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN source.expires_column IS NOT NULL THEN format('textsim._moment(%s.%I, 0)', version, source.expires_column)
    WHEN source.time_column IS NOT NULL THEN format(
        'textsim._moment(%s.%I, %s)', version, source.time_column,
        (SELECT extract(epoch FROM c.keep_for) FROM textsim.corpus c WHERE c.id = source.corpus_id))
    ELSE 'NULL::pg_catalog.timestamptz' END;

-- An expression: what the function _filter_N says of a row of an attached table; NULL if it has no row filter.
-- The columns pass through texts, so that no cast of a user runs. A type that is not PostgreSQL's own is read
-- as text.
CREATE OR REPLACE FUNCTION textsim._filter_of(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE WHEN source.row_filter IS NOT NULL THEN (
    SELECT format('textsim.%I(%s)', '_filter_' || source.id, string_agg(format(
        '(%s)::%s', textsim._text_expression(source.relation, version, c.name), c.type), ', ' ORDER BY c.place))
    FROM unnest(source.filter_columns, source.filter_types) WITH ORDINALITY c (name, type, place)) END;

-- A condition: a row has a text and passes the row filter, or this cannot be said and it is set aside.
CREATE OR REPLACE FUNCTION textsim._may_have_document(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN format('%s.%I IS NOT NULL', version, source.text_column)
    || coalesce(' AND ' || textsim._filter_of(source, version) || ' IS NOT NULL', '');

-- A condition: a row may have a document, and has not expired.
CREATE OR REPLACE FUNCTION textsim._has_document(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN textsim._may_have_document(source, version)
    || CASE WHEN coalesce(source.time_column, source.expires_column) IS NULL THEN ''
        ELSE format(' AND coalesce(%s > pg_catalog.now(), true)', textsim._expiry_of(source, version)) END;

-- An expression for the reason why a row that _has_document() accepts can have no document, or NULL.
CREATE OR REPLACE FUNCTION textsim._row_fault(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (
    SELECT format('coalesce(%s)', string_agg(f.fault, ', '))
    FROM (VALUES ('nullif(' || textsim._filter_of(source, version) || ', '''')'), ((
        SELECT format('CASE WHEN %3$s = ''infinity'' AND pg_catalog.concat(%1$s.%2$I) <> ''infinity'' THEN '
            'pg_catalog.concat(''its time is out of range: '', %1$s.%2$I) END',
            version, c.name, textsim._expiry_of(source, version))
        FROM coalesce(source.time_column, source.expires_column) c (name)
        WHERE c.name IS NOT NULL)), ('NULL::pg_catalog.text')) f (fault));

-- The body of the trigger function of an attached table.
CREATE OR REPLACE FUNCTION textsim._trigger_body(source textsim.source) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET quote_all_identifiers = off
RETURN CASE WHEN source.mode = 'queue' THEN format($body$
DECLARE
    seed bigint := hashint8extended((random() * 9007199254740992)::int8, 0);
BEGIN
    IF NOT textsim._is_own_trigger(%2$s, TG_RELID, TG_NAME) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO textsim.pending (kind, corpus_id, source_id) VALUES ('compare', %1$s, %2$s);
        PERFORM textsim._retry_rows(%1$s, %2$s);
    ELSIF TG_LEVEL = 'ROW' THEN
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        VALUES ('change', %1$s, %2$s, CASE TG_OP
            WHEN 'INSERT' THEN ARRAY[%7$s]
            WHEN 'UPDATE' THEN ARRAY[%3$s, %7$s]
            WHEN 'DELETE' THEN ARRAY[%3$s] END);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM textsim._check_transition_table(TG_RELID, TG_NAME, '{former,changed}');
        -- Each key whose text, scope or time differs before and after the statement; NULL and no row are no text.
        -- Hashes are compared, because a join would hold all texts, and most updates change other columns.
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        SELECT 'change', %1$s, %2$s, array_agg(entry.key)
        FROM (
            SELECT version.key, (row_number() OVER () - 1) / 10000 AS number
            FROM (
                SELECT %8$s AS key, %5$s AS content_hash
                FROM former WHERE former.%4$I IS NOT NULL
                UNION ALL
                SELECT %9$s, %6$s
                FROM changed WHERE changed.%4$I IS NOT NULL
            ) version
            GROUP BY version.key
            HAVING count(*) = 1 OR min(version.content_hash) <> max(version.content_hash)
        ) entry
        GROUP BY entry.number;
    ELSE
        PERFORM textsim._check_transition_table(TG_RELID, TG_NAME);
        -- One log entry for up to 10,000 keys takes a tenth of the time of an entry for each key.
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        SELECT 'change', %1$s, %2$s, array_agg(entry.key)
        FROM (
            SELECT %9$s AS key, (row_number() OVER () - 1) / 10000 AS number
            FROM changed
            WHERE changed.%4$I IS NOT NULL
        ) entry
        GROUP BY entry.number;
    END IF;
    RETURN NULL;
END
$body$, source.corpus_id, source.id, textsim._key_of(source, 'OLD'), source.text_column,
    textsim._content_hash(source, 'former'), textsim._content_hash(source, 'changed'),
    textsim._key_of(source, 'NEW'), textsim._key_of(source, 'former'), textsim._key_of(source, 'changed'))
ELSE format($body$
BEGIN
    IF NOT textsim._is_own_trigger(%2$s, TG_RELID, TG_NAME) THEN
        RETURN NULL;
    END IF;
    PERFORM textsim._index_change(%1$s, %2$s, TG_OP, TG_RELID, CASE WHEN %10$s THEN %3$s END, %8$s,
        CASE WHEN %6$s THEN concat(NEW.%4$I) END, %5$s, %7$s, %9$s);
    RETURN NULL;
END
$body$, source.corpus_id, source.id, textsim._key_of(source, 'OLD'), source.text_column,
    textsim._scope_of(source, 'NEW'), textsim._has_document(source, 'NEW'),
    textsim._expiry_of(source, 'NEW'), textsim._key_of(source, 'NEW'), textsim._row_fault(source, 'NEW'),
    textsim._may_have_document(source, 'OLD'))
END;

CREATE OR REPLACE FUNCTION textsim._make_trigger_function(source textsim.source) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    function text := format('textsim.%I()', '_changes_' || source.id);
BEGIN
    PERFORM textsim._make_function(function, format(
        'CREATE OR REPLACE FUNCTION %s RETURNS trigger '
        'LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER '
        'SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan %s AS %L',
        function, textsim._text_settings(), textsim._trigger_body(source)));
END $$;

CREATE OR REPLACE FUNCTION textsim._trigger_function(source integer) RETURNS regprocedure
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN to_regprocedure(format('textsim.%I()', '_changes_' || source));

-- The triggers that an attached table must have: the end of the name, the time and the clause.
CREATE OR REPLACE FUNCTION textsim._trigger_events(source textsim.source)
RETURNS TABLE (name text, timing text, clause text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 4 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- Transition tables do not work here: partitions can be written directly, without their parent.
    by_row boolean := source.mode = 'inline' OR (
        SELECT c.relkind = 'p' OR c.relispartition FROM pg_class c WHERE c.oid = source.relation);
    -- Equal values may have different texts, such as 1.0 and 1.00, and some types have no equality. So bytes are
    -- compared. The function is that of the operator *<>, which pg_dump would write as a comparison of columns.
    is_changed text := (
        SELECT format('pg_catalog.record_image_ne(ROW(%s), ROW(%s))',
            string_agg(format('OLD.%I', c.name), ', ' ORDER BY c.place),
            string_agg(format('NEW.%I', c.name), ', ' ORDER BY c.place))
        FROM unnest(textsim._columns(source)) WITH ORDINALITY c (name, place));
BEGIN
    RETURN QUERY VALUES
        ('insert', 'AFTER INSERT', CASE WHEN by_row THEN 'FOR EACH ROW'
            ELSE 'REFERENCING NEW TABLE AS changed FOR EACH STATEMENT' END),
        ('delete', 'AFTER DELETE', CASE WHEN by_row THEN 'FOR EACH ROW'
            ELSE 'REFERENCING OLD TABLE AS changed FOR EACH STATEMENT' END),
        -- Without OF, because another trigger may change the columns.
        ('update', 'AFTER UPDATE', CASE WHEN by_row THEN format('FOR EACH ROW WHEN (%s)', is_changed)
            ELSE 'REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT' END),
        ('truncate', 'AFTER TRUNCATE', 'FOR EACH STATEMENT');
    IF NOT by_row THEN
        -- It never runs. Without it, the columns could be dropped, and then all writes would fail.
        RETURN QUERY VALUES ('columns',
            'AFTER UPDATE OF ' || (
                SELECT string_agg(quote_ident(c.name), ', ') FROM unnest(textsim._columns(source)) c (name)),
            'FOR EACH STATEMENT WHEN (false)');
    END IF;
END $$;

-- The name of a trigger of an attached table; event is a name of textsim._trigger_events.
-- Triggers of one event run in the order of their names, and an underscore sorts before lower-case letters. If a
-- user's AFTER trigger changes the same row again, our trigger indexes that change too. Our trigger for the first
-- change must have run before, because it has the first text.
CREATE OR REPLACE FUNCTION textsim._trigger_name(source integer, event text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN format('_textsim_%s_%s', source, event);
