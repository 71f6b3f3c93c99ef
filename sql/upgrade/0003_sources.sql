-- Documents written and removed by SQL, in the caller's transaction: signature and band rows at
-- once, so that the document is found from then on. Its words stay in normal_form until a worker
-- gives them ids: the dictionary is never written here, where two transactions that add the same
-- words would wait for each other.

CREATE FUNCTION textsim._fault(key text, body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN key IS NULL THEN 'the key is NULL'
    WHEN body IS NULL THEN 'the text is NULL'
    WHEN octet_length(key) > 1000 THEN
        format('the key is %s bytes long; at most 1000 are possible', octet_length(key))
    WHEN octet_length(body) > 134217728 THEN
        format('the text is %s bytes long; at most 134217728 can be indexed', octet_length(body))
END;
COMMENT ON FUNCTION textsim._fault(text, text) IS 'why a document cannot be stored, or NULL';

CREATE FUNCTION textsim._known(name text) RETURNS textsim.corpus
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF name IS NULL THEN
        RAISE EXCEPTION 'the name of the corpus is NULL' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN textsim._corpus(name);
END
$$;
COMMENT ON FUNCTION textsim._known(text) IS 'the corpus of a name, for what must not pass over NULL';

CREATE FUNCTION textsim._is_live(source integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (SELECT FROM textsim.source s WHERE s.id = source);
COMMENT ON FUNCTION textsim._is_live(integer) IS 'whether a table is attached under this number';

CREATE FUNCTION textsim._put(c textsim.corpus, source integer, document_key text, body text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    form text := textsim._form(c, body);
    shingles text[] := textsim._shingles_of_form(form, c.unit, c.shingle_length);
    fresh integer[] := textsim._signature(shingles, c.a, c.b);
    document_table text := 'document_' || c.id;
    band_table text := 'band_' || c.id;
    word_ids integer[] := CASE WHEN form = '' THEN '{}'::integer[] END;
    -- Others are identified by the worker that gives their words ids.
    language text := CASE WHEN form = '' AND c.language = 'auto' THEN 'und' END;
    old record;
    document_id bigint;
BEGIN
    LOOP
        EXECUTE format($query$
            SELECT d.id, d.source_id, d.signature, d.word_ids, d.normal_form
            FROM textsim.%I d WHERE d.key = $1 FOR UPDATE
            $query$, document_table)
        INTO old USING document_key;
        IF old.id IS NULL THEN
            EXECUTE format($query$
                INSERT INTO textsim.%I (
                    corpus_id, shingle_count, id, source_id, key, word_ids, signature,
                    normal_form, language)
                VALUES ($1, $2, nextval('textsim.document_id'), $3, $4, $5, $6, $7, $8)
                ON CONFLICT (key) DO NOTHING RETURNING id
                $query$, document_table)
            INTO document_id
            USING c.id, cardinality(shingles), source, document_key, word_ids, fresh,
                nullif(form, ''), language;
            EXIT WHEN document_id IS NOT NULL;
            CONTINUE;  -- another transaction has just added it
        END IF;
        IF source <> old.source_id AND textsim._is_live(old.source_id) THEN
            -- A worker sets it aside and says so; this transaction must not fail for it.
            INSERT INTO textsim.pending (corpus_id, source_id, keys)
            VALUES (c.id, source, ARRAY[document_key]);
            RETURN false;
        END IF;
        IF old.signature = fresh AND form COLLATE "C"
            = coalesce(old.normal_form, textsim._normal_form_of(old.word_ids)) THEN
            IF source IS NOT NULL AND source IS DISTINCT FROM old.source_id THEN
                EXECUTE format('UPDATE textsim.%I SET source_id = $1 WHERE id = $2', document_table)
                USING source, old.id;
            END IF;
            RETURN false;
        END IF;
        document_id := old.id;
        EXECUTE format($query$
            UPDATE textsim.%I SET shingle_count = $1, source_id = coalesce($2, source_id),
                word_ids = $3, signature = $4, normal_form = $5, language = $6
            WHERE id = $7
            $query$, document_table)
        USING cardinality(shingles), source, word_ids, fresh, nullif(form, ''), language,
            document_id;
        -- Only the band rows that differ.
        EXECUTE format($query$
            DELETE FROM textsim.%I b
            USING (
                SELECT * FROM textsim._buckets($1, $3, $4)
                EXCEPT SELECT * FROM textsim._buckets($2, $3, $4)
            ) gone
            WHERE b.band = gone.band AND b.bucket = gone.bucket AND b.document_id = $5
            $query$, band_table)
        USING old.signature, fresh, c.bands, c.rows, document_id;
        EXIT;
    END LOOP;
    EXECUTE format($query$
        INSERT INTO textsim.%I (corpus_id, band, bucket, document_id)
        SELECT $1, q.band, q.bucket, $2
        FROM (
            SELECT * FROM textsim._buckets($3, $5, $6)
            EXCEPT SELECT * FROM textsim._buckets($4, $5, $6)
        ) q
        $query$, band_table)
    USING c.id, document_id, fresh, old.signature, c.bands, c.rows;
    IF word_ids IS NULL THEN
        INSERT INTO textsim.pending (corpus_id, source_id, keys)
        VALUES (c.id, source, ARRAY[document_key]);
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION textsim._put(textsim.corpus, integer, text, text)
    IS 'add or replace a document; false where its words are what they were';

CREATE FUNCTION textsim._take(c textsim.corpus, source integer, document_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old record;
BEGIN
    EXECUTE format($query$
        DELETE FROM textsim.%I d
        WHERE d.key = $1
            AND ($2 IS NULL OR d.source_id IS NULL OR d.source_id = $2
                OR NOT textsim._is_live(d.source_id))
        RETURNING d.id, d.signature
        $query$, 'document_' || c.id)
    INTO old USING document_key, source;
    IF old.id IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format($query$
        DELETE FROM textsim.%I b USING textsim._buckets($1, $2, $3) gone
        WHERE b.band = gone.band AND b.bucket = gone.bucket AND b.document_id = $4
        $query$, 'band_' || c.id)
    USING old.signature, c.bands, c.rows, old.id;
    RETURN true;
END
$$;
COMMENT ON FUNCTION textsim._take(textsim.corpus, integer, text)
    IS 'remove a document, unless it is of another attached table; whether there was one';

CREATE FUNCTION textsim._take_all(c textsim.corpus, source integer) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- First of all the documents: whoever is writing one of them has written band rows that a
    -- statement begun before that would not see.
    EXECUTE format(
        'SELECT count(*) FROM ('
        'SELECT FROM textsim.%I d WHERE d.source_id = $1 ORDER BY d.key FOR UPDATE) locked',
        'document_' || c.id) USING source;
    EXECUTE format(
        'DELETE FROM textsim.%I b USING textsim.%I d WHERE d.source_id = $1 AND b.document_id = d.id',
        'band_' || c.id, 'document_' || c.id) USING source;
    EXECUTE format('DELETE FROM textsim.%I d WHERE d.source_id = $1', 'document_' || c.id)
    USING source;
END
$$;
COMMENT ON FUNCTION textsim._take_all(textsim.corpus, integer)
    IS 'remove all documents of an attached table';

CREATE FUNCTION textsim.add(corpus text, key text, body text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fault text := textsim._fault(key, body);
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'document "%": %', left(key, 100), fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN textsim._put(textsim._known(corpus), NULL, key, body);
END
$$;
COMMENT ON FUNCTION textsim.add(text, text, text)
    IS 'index a document, replacing the one with its key; false where its words are what they were';

CREATE FUNCTION textsim.remove(corpus text, key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN textsim._take(textsim._known(corpus), NULL, key);
END
$$;
COMMENT ON FUNCTION textsim.remove(text, text) IS 'forget a document; whether there was one';
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
        RAISE EXCEPTION 'the corpus was rebuilt after this transaction began; repeat it'
            USING ERRCODE = 'serialization_failure';
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
        PERFORM textsim._take(c, %2$s, old_key);
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
        PERFORM textsim._take(c, %2$s, new_key);
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
    -- What somebody prepared and could not finish, for want of the triggers, is in nobody's way.
    PERFORM textsim._release_source(s.id) FROM textsim.source s
    WHERE s.relation = _prepare_source.relation AND NOT s.active;
    INSERT INTO textsim.source (corpus_id, relation, key_column, text_column, mode)
    VALUES ((textsim._corpus(corpus)).id, relation, key_column, text_column, mode)
    ON CONFLICT ON CONSTRAINT source_corpus_relation_key DO NOTHING
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

CREATE FUNCTION textsim._activate_source(source integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    activated textsim.source;
BEGIN
    UPDATE textsim.source s SET active = true
    WHERE s.id = source AND NOT s.active AND 4 = (
        SELECT count(DISTINCT t.tgname) FROM pg_trigger t
        WHERE t.tgrelid = s.relation AND t.tgparentid = 0 AND t.tgenabled = 'O'
            AND t.tgfoid = to_regprocedure(format('textsim.%I()', '_changes_' || s.id)))
    RETURNING * INTO activated;
    IF activated.id IS NULL THEN
        RAISE EXCEPTION 'source % has no triggers', source
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    PERFORM textsim._enqueue(activated.corpus_id, activated.id, NULL);
END
$$;
COMMENT ON FUNCTION textsim._activate_source(integer)
    IS 'have a table indexed whose triggers are in place';

CREATE FUNCTION textsim._release_source(number integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Refused by the server as long as a trigger is there.
    EXECUTE format('DROP FUNCTION IF EXISTS textsim.%I()', '_changes_' || number);
    DELETE FROM textsim.source s WHERE s.id = number;
    DELETE FROM textsim.pending p WHERE p.source_id = number;
END
$$;
COMMENT ON FUNCTION textsim._release_source(integer)
    IS 'forget a table whose triggers are gone, but not its documents';

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
    fault := textsim._unfit(relation);
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot be attached: %', relation, fault
            USING ERRCODE = 'feature_not_supported';
    END IF;
    PERFORM textsim._check_owner(relation, 'attach');
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
    PERFORM textsim._activate_source(source.id);
    IF mode = 'inline' THEN
        -- A small table at once; what this leaves is for a worker, as all the rest is.
        EXECUTE format($query$
            SELECT count(textsim._put($1, $2, t.key, t.body))
            FROM (
                SELECT t.%1$I::text AS key, t.%2$I::text AS body FROM %3$s t
                WHERE t.%2$I IS NOT NULL LIMIT 1000
            ) t
            WHERE textsim._fault(t.key, t.body) IS NULL
            $query$, key_column, text_column, relation)
        USING c, source.id;
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
    WHERE s.corpus_id = c.id AND s.relation = detach.relation;
    IF source IS NULL THEN
        RAISE EXCEPTION 'table % is not attached to corpus "%"', relation, corpus
            USING ERRCODE = 'undefined_object';
    END IF;
    PERFORM textsim._check_owner(relation, 'detach');
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

CREATE FUNCTION textsim.status(corpus text)
RETURNS TABLE (indexed bigint, pending bigint, oldest_pending timestamptz, failed bigint)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    EXECUTE format('SELECT count(*) FROM textsim.%I', 'document_' || c.id) INTO indexed;
    SELECT coalesce(sum(coalesce(cardinality(p.keys), 1)) FILTER (WHERE p.error IS NULL), 0),
        min(p.created_at) FILTER (WHERE p.error IS NULL),
        count(*) FILTER (WHERE p.error IS NOT NULL)
    INTO pending, oldest_pending, failed
    FROM textsim.pending p
    LEFT JOIN textsim.source s ON s.id = p.source_id
    -- Some may have been logged while the corpus was rebuilt.
    WHERE coalesce(s.corpus_id, p.corpus_id) = c.id;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION textsim.status(text)
    IS 'documents indexed, changes pending, since when, and documents set aside with an error';
-- Rights. A role that only writes attached tables needs none. The functions that run with the
-- rights of the schema's owner are for writers.

REVOKE EXECUTE ON FUNCTION textsim._prepare_source(text, regclass, name, name, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._activate_source(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION textsim._release_source(integer) FROM PUBLIC;

CREATE FUNCTION textsim.grant_reader(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA textsim TO %s', role);
END
$$;
COMMENT ON FUNCTION textsim.grant_reader(regrole) IS 'let a role search every corpus, and no more';

CREATE FUNCTION textsim._grant_shared(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Not the ids, which are for the sequence alone to give.
    EXECUTE format('GRANT INSERT (hash, word) ON textsim.word TO %s', role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON textsim.pending TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE textsim.document_id TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION '
        'textsim._prepare_source(text, regclass, name, name, text), '
        'textsim._activate_source(integer), textsim._release_source(integer) TO %s', role);
END
$$;
COMMENT ON FUNCTION textsim._grant_shared(regrole)
    IS 'let a role write what all corpora share, as every writer must';

CREATE FUNCTION textsim.grant_writer(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    part regclass;
BEGIN
    PERFORM textsim.grant_reader(role);
    PERFORM textsim._grant_shared(role);
    FOR part IN
        SELECT t.relid FROM pg_partition_tree('textsim.document') t
        UNION ALL SELECT t.relid FROM pg_partition_tree('textsim.band') t
    LOOP
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %s TO %s', part, role);
    END LOOP;
END
$$;
COMMENT ON FUNCTION textsim.grant_writer(regrole)
    IS 'let a role search, add and remove documents, attach tables of its own, and run workers';

CREATE FUNCTION textsim.grant_reader(role regrole, corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(corpus);
    -- Not the parents, through which all partitions can be read.
    shared text := (
        SELECT string_agg(r.oid::regclass::text, ', ')
        FROM pg_class r
        WHERE r.relnamespace = 'textsim'::regnamespace AND r.relkind IN ('r', 'v')
            AND NOT r.relispartition);
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA textsim TO %s', role);
    EXECUTE format('GRANT SELECT ON %s, textsim.%I, textsim.%I TO %s',
        shared, 'document_' || c.id, 'band_' || c.id, role);
END
$$;
COMMENT ON FUNCTION textsim.grant_reader(regrole, text)
    IS 'let a role search one corpus: of others it sees names, keys that are pending, and words';

CREATE FUNCTION textsim.grant_writer(role regrole, corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(corpus);
BEGIN
    PERFORM textsim.grant_reader(role, corpus);
    PERFORM textsim._grant_shared(role);
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON textsim.%I, textsim.%I TO %s',
        'document_' || c.id, 'band_' || c.id, role);
END
$$;
COMMENT ON FUNCTION textsim.grant_writer(regrole, text)
    IS 'let a role search and write one corpus, attach tables of its own to it, and run workers';

CREATE FUNCTION textsim.revoke_all(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA textsim FROM %s', role);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA textsim FROM %s', role);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA textsim FROM %s', role);
    EXECUTE format('REVOKE ALL ON SCHEMA textsim FROM %s', role);
END
$$;
COMMENT ON FUNCTION textsim.revoke_all(regrole) IS 'take back what grant_reader and grant_writer gave';
-- Corpora from SQL: what Database.create_corpus and drop_corpus do, with the same result.

CREATE FUNCTION textsim._wrapped(value numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN mod(value, 18446744073709551616)
    - CASE WHEN mod(value, 18446744073709551616) < 9223372036854775808 THEN 0
        ELSE 18446744073709551616 END;
COMMENT ON FUNCTION textsim._wrapped(numeric) IS 'a number modulo 2^64, as a signed integer';

CREATE FUNCTION textsim._unsigned(value bigint) RETURNS numeric
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN value::numeric + CASE WHEN value < 0 THEN 18446744073709551616 ELSE 0 END;
COMMENT ON FUNCTION textsim._unsigned(bigint) IS 'a signed integer as a number modulo 2^64';

CREATE FUNCTION textsim._draw(seed bigint, number integer) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Shifts of negative numbers bring in ones: & takes them away again.
    z bigint := textsim._wrapped(seed::numeric + number * 11400714819323198485);
BEGIN
    z := textsim._wrapped(
        textsim._unsigned(z # ((z >> 30) & 17179869183)) * 13787848793156543929);
    z := textsim._wrapped(
        textsim._unsigned(z # ((z >> 27) & 137438953471)) * 10723151780598845931);
    RETURN textsim._unsigned(z # ((z >> 31) & 8589934591));
END
$$;
COMMENT ON FUNCTION textsim._draw(bigint, integer)
    IS 'a number of the sequence of splitmix64 (Steele, Lea and Flood, 2014), from 1';

CREATE FUNCTION textsim._found(threshold double precision, bands integer, rows integer)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- The server refuses powers that are too small to be told from 0.
    shared double precision := CASE WHEN rows * ln(threshold) < -700 THEN 0
        ELSE threshold ^ rows::double precision END;
    missed double precision := 1 - shared;
BEGIN
    IF threshold = 1 THEN
        RETURN 1;
    END IF;
    -- Rounding would make it 1, which it is for copies only.
    RETURN least(0.9999999999999999::double precision,
        1 - CASE WHEN bands * ln(missed) < -700 THEN 0 ELSE missed ^ bands::double precision END);
END
$$;
COMMENT ON FUNCTION textsim._found(double precision, integer, integer)
    IS 'the probability that a pair of this similarity shares a bucket: 1 - (1 - s^rows)^bands';

CREATE FUNCTION textsim._chosen_rows(
    threshold double precision, recall double precision, num_hashes integer)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT max(r) FROM generate_series(1, num_hashes) r
    WHERE (recall < 1 OR threshold = 1)
        AND textsim._found(threshold, num_hashes / r, r) >= recall
);
COMMENT ON FUNCTION textsim._chosen_rows(double precision, double precision, integer)
    IS 'the most rows a band that keep the recall at the threshold; NULL where none do';

CREATE FUNCTION textsim._settings_fault(
    name text, shingle text, threshold double precision, recall double precision,
    num_hashes integer, seed bigint, bands integer, rows integer)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN name IS NULL OR btrim(name) = '' OR octet_length(name) > 200 THEN
        format('the name of the corpus is %L; expected 1 to 200 bytes', left(name, 40))
    WHEN shingle IS NULL OR shingle !~ '^(word|char):[0-9]{1,4}$'
            OR split_part(shingle, ':', 2)::integer NOT BETWEEN 1 AND 1000 THEN
        format('shingle is %L; expected "word:N" or "char:N", N from 1 to 1000', shingle)
    WHEN threshold IS NULL OR NOT (threshold > 0 AND threshold <= 1) THEN
        format('threshold is %L; expected above 0, at most 1', threshold)
    WHEN recall IS NULL OR NOT (recall > 0 AND recall <= 1) THEN
        format('recall is %L; expected above 0, at most 1', recall)
    WHEN num_hashes IS NULL OR num_hashes NOT BETWEEN 1 AND 4096 THEN
        format('num_hashes is %L; expected 1 to 4096', num_hashes)
    WHEN seed IS NULL OR seed < 0 THEN format('seed is %L; expected 0 or more', seed)
    WHEN (bands IS NULL) <> (rows IS NULL) THEN
        'bands and rows go together; one of them is missing'
    WHEN bands < 1 OR rows < 1 OR bands::bigint * rows > num_hashes THEN
        format('%s bands of %s rows cannot be made of %s hashes', bands, rows, num_hashes)
    WHEN bands IS NULL AND textsim._chosen_rows(threshold, recall, num_hashes) IS NULL THEN
        format('no bands of %s hashes reach recall %s at threshold %s: use more hashes or a lower '
            'recall', num_hashes, recall, threshold)
    WHEN bands IS NOT NULL AND textsim._found(threshold, bands, rows) = 0 THEN
        format('%s bands of %s rows find nothing at threshold %s: use fewer rows or a higher '
            'threshold', bands, rows, threshold)
END;
COMMENT ON FUNCTION textsim._settings_fault(
    text, text, double precision, double precision, integer, bigint, integer, integer)
    IS 'why a corpus cannot be made with these settings, or NULL';

CREATE FUNCTION textsim.create_corpus(
    name text, shingle text DEFAULT 'word:3', threshold double precision DEFAULT 0.8,
    recall double precision DEFAULT 0.95, num_hashes integer DEFAULT 128, seed bigint DEFAULT 1,
    bands integer DEFAULT NULL, rows integer DEFAULT NULL, stop_words text[] DEFAULT '{}',
    language text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fault text := textsim._settings_fault(
        name, shingle, threshold, recall, num_hashes, seed, bands, rows);
    unit text := split_part(shingle, ':', 1);
    n integer;
    a bigint[];
    b bigint[];
    made textsim.corpus;
    golden integer[];
    corpus_id integer;
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION '%', fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF language <> 'auto' THEN
        RAISE EXCEPTION 'language is "%"; expected "auto" or NULL', language
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    n := split_part(shingle, ':', 2);
    IF bands IS NULL THEN
        rows := textsim._chosen_rows(threshold, recall, num_hashes);
        bands := num_hashes / rows;
    ELSE
        recall := textsim._found(threshold, bands, rows);
    END IF;
    a := array(
        SELECT 1 + mod(textsim._draw(seed, 2 * i - 1), 2147483646)
        FROM generate_series(1, num_hashes) i ORDER BY i);
    b := array(
        SELECT mod(textsim._draw(seed, 2 * i), 2147483647)
        FROM generate_series(1, num_hashes) i ORDER BY i);
    -- A text whose signature and buckets are computed again when the corpus is opened.
    made.stop_words := array(
        SELECT DISTINCT w.word COLLATE "C"
        FROM unnest(stop_words) s (body)
        CROSS JOIN LATERAL unnest(textsim.words(s.body)) w (word)
        ORDER BY 1);
    golden := textsim._signature(textsim._shingles_of_form(textsim._form(made,
        U&'The 3 QUICK brown foxes — naïve, ﬁne — jumped; '
            'Быстрая ЛИСА, ταχεία ΑΛΕΠΟΎΣ, 素早い狐が跳ぶ, '
            'चतुर लोमड़ी, الثعلب السريع, สุนัขจิ้งจอก, İstanbul’da 12½ km², e\0301te\0301 \+01F98A.'),
        unit, n), a, b);
    INSERT INTO textsim.corpus (
        name, unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe,
        stop_words, language, a, b, golden_signature, golden_buckets)
    VALUES (
        name, unit, n, threshold, recall, num_hashes, bands, rows, seed, 1,
        made.stop_words, language, a, b, golden,
        array(SELECT q.bucket FROM textsim._buckets(golden, bands, rows) q ORDER BY q.band))
    ON CONFLICT ON CONSTRAINT corpus_name_key DO NOTHING
    RETURNING id INTO corpus_id;
    IF corpus_id IS NULL THEN
        RAISE EXCEPTION 'corpus "%" exists already', name USING ERRCODE = 'duplicate_object';
    END IF;
    PERFORM textsim._create_storage(corpus_id);
END
$$;
COMMENT ON FUNCTION textsim.create_corpus(
    text, text, double precision, double precision, integer, bigint, integer, integer, text[], text)
    IS 'create a corpus; bands and rows follow from threshold and recall unless given';

CREATE FUNCTION textsim.drop_corpus(name text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._known(name);
BEGIN
    IF EXISTS (SELECT FROM textsim.source s WHERE s.corpus_id = c.id) THEN
        RAISE EXCEPTION 'corpus "%" has attached tables; detach them first', name
            USING ERRCODE = 'dependent_objects_still_exist';
    END IF;
    DELETE FROM textsim.corpus d WHERE d.id = c.id;
    PERFORM textsim._drop_storage(c.id);
END
$$;
COMMENT ON FUNCTION textsim.drop_corpus(text) IS 'remove a corpus with all its documents';
-- Putting a rebuilt corpus in the place of the one it was built from.

CREATE FUNCTION textsim._refuse_write() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the corpus was rebuilt while this was being written; repeat the transaction'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END
$$;
COMMENT ON FUNCTION textsim._refuse_write() IS 'turns away who writes to a corpus that was replaced';

CREATE FUNCTION textsim._replace_corpus(old integer, new integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old_name text := (SELECT c.name FROM textsim.corpus c WHERE c.id = old);
    new_name text := (SELECT c.name FROM textsim.corpus c WHERE c.id = new);
    moved textsim.source;
BEGIN
    -- Those of single corpora: the others come with the partitions.
    PERFORM textsim._grant_like(
        format('textsim.%I', part || '_' || old)::regclass,
        format('textsim.%I', part || '_' || new)::regclass)
    FROM unnest(ARRAY['document', 'band']) part;
    -- Who waits to write has computed signatures of the old kind: they must not get lost here.
    EXECUTE format(
        'CREATE TRIGGER replaced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON textsim.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION textsim._refuse_write()', 'document_' || old);
    UPDATE textsim.corpus c SET name = left(new_name, 190) || ' old' WHERE c.id = old;
    UPDATE textsim.corpus c
    SET name = old_name,
        origin = (SELECT coalesce(o.origin, o.id) FROM textsim.corpus o WHERE o.id = old)
    WHERE c.id = new;
    FOR moved IN
        UPDATE textsim.source s SET corpus_id = new WHERE s.corpus_id = old RETURNING s.*
    LOOP
        PERFORM textsim._make_trigger_function(moved);
    END LOOP;
    -- Whoever has them in hand cannot write any more: let them be taken again at once.
    UPDATE textsim.pending p SET corpus_id = new, lease_until = NULL WHERE p.corpus_id = old;
END
$$;
COMMENT ON FUNCTION textsim._replace_corpus(integer, integer)
    IS 'give a corpus the name, the attached tables and the pending changes of another';
