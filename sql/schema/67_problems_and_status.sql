-- The state of a corpus and its attached tables.

-- How many documents of a corpus, or tables if kind is compare, wait in the log; since when, and when the first lease
-- ends. Above ten thousand an estimate, in which a document counts once for each of its entries.
-- A monitoring system asks every few seconds, also while millions of changes wait. So this function reads at most
-- some thousand entries: the first ones, and a few in each fiftieth of the other ids. Only the index on corpus,
-- kind and id has the order of these statements: by another index, the planner would read all entries of other kinds.
-- The planner expects a ninth of the log, and would compile the statement, which takes longer than reading it.
CREATE OR REPLACE FUNCTION textsim._waiting(
    corpus_id integer, kind text, OUT documents bigint, OUT is_estimate boolean, OUT since timestamptz,
    OUT leased_until timestamptz)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    most constant integer := 10000;
    last constant bigint := 9223372036854775807;
    -- The id, and those in the log of corpora that are no more: an entry that was logged during a rebuild may have the id of
    -- the corpus that was replaced. One entry of each corpus is looked up, and the others are skipped.
    ids integer[] := corpus_id || array(
        WITH RECURSIVE logged (id) AS (
            SELECT min(p.corpus_id) FROM textsim.pending p
            UNION ALL
            SELECT (SELECT min(p.corpus_id) FROM textsim.pending p WHERE p.corpus_id > l.id)
            FROM logged l WHERE l.id IS NOT NULL
        )
        SELECT l.id FROM logged l
        WHERE l.id IS NOT NULL AND NOT EXISTS (SELECT FROM textsim.corpus c WHERE c.id = l.id));
    entry record;
    width bigint;
BEGIN
    documents := 0;
    FOR entry IN
        SELECT e.* FROM unnest(ids) i (id)
        CROSS JOIN LATERAL (
            SELECT p.id, p.source_id, p.created_at, p.lease_until,
                coalesce(cardinality(p.keys), cardinality(p.document_ids), 1) AS size
            FROM textsim.pending p
            WHERE (p.corpus_id, p.kind, p.id) > (i.id, _waiting.kind, 0)
                AND (p.corpus_id, p.kind, p.id) < (i.id, _waiting.kind, last)
            ORDER BY p.corpus_id, p.kind, p.id
        ) e
        WHERE i.id = _waiting.corpus_id
            OR (SELECT s.corpus_id FROM textsim.source s WHERE s.id = e.source_id) = _waiting.corpus_id
    LOOP
        documents := documents + entry.size;
        since := least(since, entry.created_at);
        leased_until := least(leased_until, entry.lease_until);
        EXIT WHEN documents > most;
    END LOOP;
    is_estimate := documents > most;
    IF is_estimate THEN
        width := (
            SELECT p.id - entry.id FROM textsim.pending p
            WHERE (p.corpus_id, p.kind, p.id) <= (_waiting.corpus_id, _waiting.kind, last)
            ORDER BY p.corpus_id DESC, p.kind DESC, p.id DESC LIMIT 1) / 50 + 1;
        documents := documents + (
            SELECT sum(CASE WHEN e.entries < 20 THEN e.size
                ELSE e.size * width / (e.last - entry.id - n.fiftieth * width) END)
            FROM generate_series(0, 49) n (fiftieth)
            CROSS JOIN LATERAL (
                SELECT count(*) AS entries, coalesce(sum(r.size), 0) AS size, max(r.id) AS last
                FROM (
                    SELECT p.id, coalesce(cardinality(p.keys), cardinality(p.document_ids), 1) AS size
                    FROM textsim.pending p
                    WHERE (p.corpus_id, p.kind, p.id)
                            > (_waiting.corpus_id, _waiting.kind, entry.id + n.fiftieth * width)
                        AND (p.corpus_id, p.kind, p.id)
                            <= (_waiting.corpus_id, _waiting.kind, entry.id + (n.fiftieth + 1) * width)
                    ORDER BY p.corpus_id, p.kind, p.id LIMIT 20
                ) r
            ) e);
    ELSIF documents > 1 AND kind NOT IN ('compare', 'failed') THEN
        -- A document may have several entries.
        documents := (
            SELECT count(DISTINCT coalesce(k.key, k.id::text) COLLATE "C")
            FROM unnest(ids) i (id)
            CROSS JOIN LATERAL (
                SELECT p.source_id, p.keys, p.document_ids FROM textsim.pending p
                WHERE (p.corpus_id, p.kind, p.id) > (i.id, _waiting.kind, 0)
                    AND (p.corpus_id, p.kind, p.id) < (i.id, _waiting.kind, last)
                ORDER BY p.corpus_id, p.kind, p.id
            ) e
            CROSS JOIN LATERAL ROWS FROM (unnest(e.keys), unnest(e.document_ids)) k (key, id)
            WHERE i.id = _waiting.corpus_id
                OR (SELECT s.corpus_id FROM textsim.source s WHERE s.id = e.source_id) = _waiting.corpus_id);
    END IF;
END $$;

-- Whether an attached table must still be compared with its documents. A huge log must not make it slow.
CREATE OR REPLACE FUNCTION textsim._is_uncompared(source integer) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM textsim.pending p WHERE p.source_id = source AND p.kind = 'compare');
END $$;

-- Why the changes of an attached table wait although workers run, or for a role that nobody has by chance; or NULL.
-- The role of the caller decides nothing: what each running worker refuses does.
CREATE OR REPLACE FUNCTION textsim._refused_by_workers(source textsim.source) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    workers bigint;
    refusing bigint;
    fault text;
BEGIN
    SELECT count(*), count(r.fault), min(r.fault) INTO workers, refusing, fault
    FROM textsim.worker w
    LEFT JOIN LATERAL jsonb_to_recordset(w.faults) r (source_id integer, fault text) ON r.source_id = source.id
    WHERE textsim._age(w.reported_at) < interval '30 s';
    IF workers = 0 THEN
        fault := (
            SELECT 'row security hides rows of it; ' || textsim._who_sees_all_rows(c.oid)
            FROM pg_class c WHERE c.oid = source.relation AND c.relrowsecurity AND c.relforcerowsecurity);
    ELSIF refusing < workers THEN
        RETURN NULL;
    END IF;
    IF fault IS NOT NULL AND EXISTS (
        SELECT FROM textsim.pending p
        WHERE p.corpus_id = source.corpus_id AND p.kind IN ('change', 'compare') AND p.source_id = source.id)
    THEN
        RETURN 'its changes wait: ' || fault;
    END IF;
    RETURN NULL;
END $$;

-- The reasons why changes of an attached table are missed or wait, for any role that indexes it.
CREATE OR REPLACE FUNCTION textsim._source_problems(source textsim.source) RETURNS SETOF text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT 'it was dropped, and its documents are still there: textsim worker, textsim reconcile or '
        'textsim.index_pending removes them' AS problem
    WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = source.relation)
    UNION ALL
    SELECT f.problem
    FROM pg_class c CROSS JOIN LATERAL (
        VALUES (textsim._unlogged_fault(c.oid)),
            (textsim._table_fault(source) || '; once that is mended, detach the table and attach it again')
    ) f (problem)
    WHERE c.oid = source.relation AND f.problem IS NOT NULL
        AND NOT EXISTS (SELECT FROM textsim._renamed_columns(source))
    UNION ALL
    SELECT format('its column "%s" is now named "%s", and writes to the table fail until textsim.attach with replace => true '
        'attaches it anew under the new name', r.column_name, r.new_name)
    FROM textsim._renamed_columns(source) r
    UNION ALL
    SELECT 'it has become a partition: changes through its parent are missed; detach it and attach it '
        'again' AS problem
    FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid
    WHERE c.oid = source.relation AND c.relispartition
        AND t.tgname = textsim._trigger_name(source.id, 'insert') AND (t.tgtype & 1) = 0
    UNION ALL
    SELECT format('its column "%s" is not the column that was attached: changes are missed; detach the '
        'table and attach it again', a.attname)
    FROM pg_attribute a
    JOIN pg_trigger t
        ON t.tgrelid = a.attrelid AND t.tgname = textsim._trigger_name(source.id, 'update')
            -- A trigger for statements finds the columns by their names.
            AND (t.tgtype & 1) = 1
    WHERE a.attrelid = source.relation AND a.attname = ANY (textsim._columns(source))
        AND NOT EXISTS (
            SELECT FROM pg_depend d
            WHERE d.classid = 'pg_trigger'::regclass AND d.objid = t.oid
                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
                AND d.refobjsubid = a.attnum)
    UNION ALL
    SELECT format('its column "%s" is of type %s, but it was attached with the type %s; detach the table and '
        'attach it again', a.attname, format_type(a.atttypid, a.atttypmod), k.type)
    FROM unnest(source.key_columns, source.key_types) k (name, type)
    JOIN pg_attribute a ON a.attrelid = source.relation AND a.attname = k.name AND NOT a.attisdropped
    WHERE textsim._base_type(a.atttypid) <> k.type
    UNION ALL
    SELECT format('its trigger %I does not exist: changes are missed; detach the table and attach it again',
        textsim._trigger_name(source.id, e.event))
    FROM pg_class c CROSS JOIN textsim._trigger_events(source) e (event)
    WHERE c.oid = source.relation AND NOT EXISTS (
        SELECT FROM pg_trigger t
        WHERE t.tgrelid = c.oid AND t.tgname = textsim._trigger_name(source.id, e.event)
            AND t.tgfoid = textsim._trigger_function(source.id))
    UNION ALL
    SELECT format('its trigger %I is disabled: changes are missed until ALTER TABLE %s ENABLE TRIGGER %I',
        t.tgname, t.tgrelid::regclass, t.tgname)
    FROM textsim._partitions(source.relation) p (oid) JOIN pg_trigger t ON t.tgrelid = p.oid
    WHERE t.tgfoid = textsim._trigger_function(source.id) AND t.tgenabled NOT IN ('O', 'A')
    UNION ALL
    SELECT r.fault FROM textsim._refused_by_workers(source) r (fault) WHERE r.fault IS NOT NULL
    UNION ALL
    -- The triggers of a table come with it from a dump of another database, where the id was of another table.
    SELECT format('table %1$s, which is not attached, has its trigger %2$I, which does nothing there but warn; DROP '
        'TRIGGER %2$I ON %1$s', t.tgrelid::regclass, t.tgname)
    FROM pg_depend d JOIN pg_trigger t ON t.oid = d.objid
    WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = textsim._trigger_function(source.id)
        AND d.classid = 'pg_trigger'::regclass
        AND t.tgrelid NOT IN (SELECT p.oid FROM textsim._partitions(source.relation) p (oid))
    UNION ALL
    SELECT format('it was attached as "%s", and this name now belongs to another table, which is not indexed: detach '
        'this table and attach the other one', array_to_string(source.attached_as, '.'))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = source.attached_as[1] AND c.relname = source.attached_as[2] AND c.oid <> source.relation;
END;

-- Why a worker compares an attached table with its documents, or NULL.
-- A restore, VACUUM FULL and CLUSTER give every table another file, so this is no problem by itself.
CREATE OR REPLACE FUNCTION textsim._unseen_changes(source textsim.source) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE WHEN EXISTS (SELECT FROM pg_class c WHERE c.oid = source.relation)
        AND source.shape <> textsim._shape(source)
        -- A table without one of its columns cannot be compared.
        AND NOT EXISTS (SELECT FROM textsim._renamed_columns(source))
        -- The log may already ask for a comparison, for example from the trigger on TRUNCATE.
        AND NOT textsim._is_uncompared(source.id)
    THEN 'it may have changed in a way that triggers miss, such as a restore, VACUUM FULL, a new partition or a '
        'disabled trigger: textsim worker, textsim reconcile or textsim.index_pending compares it with its documents'
    END;

-- The tables that still have words of forgotten documents: of a corpus that waits for a rebuild, or that was replaced.
CREATE OR REPLACE FUNCTION textsim._forgotten_words(c textsim.corpus, OUT is_replaced boolean, OUT note text)
RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT k.id <> c.id, format(CASE WHEN k.id = c.id
            THEN 'words of forgotten documents (%s) go with the next rebuild: textsim rebuild'
            ELSE 'words of forgotten documents (%s) are left in word_%s, because a transaction may read the replaced '
                'corpus: textsim worker drops it when the transaction has ended' END, sum(f.documents), k.id)
    FROM textsim.forgotten f JOIN textsim.corpus k ON k.id = f.corpus_id
    WHERE textsim._origin(k) = textsim._origin(c)
    GROUP BY k.id ORDER BY k.id;
END;

-- Objects of a corpus that do not belong to the owner of the schema, one for each other owner.
CREATE OR REPLACE FUNCTION textsim._owner_problems(c textsim.corpus) RETURNS TABLE (object text, problem text)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT min(o.name), format('belongs to %s, and the schema textsim to %s, so that writes fail: as a superuser, '
        'SELECT textsim.set_owner(%L)', o.owner::regrole, n.nspowner::regrole, n.nspowner::regrole)
    FROM pg_namespace n
    CROSS JOIN LATERAL (
        SELECT r.oid::regclass::text, r.relowner
        FROM unnest(string_to_array(textsim._corpus_patterns(), '|')) p (pattern)
        JOIN pg_class r ON r.oid = to_regclass(format('textsim.%I', p.pattern || '_' || c.id))
        UNION ALL
        SELECT f.oid::regprocedure::text, f.proowner
        FROM textsim.source s JOIN pg_proc f ON f.oid = textsim._trigger_function(s.id)
        WHERE s.corpus_id = c.id
    ) o (name, owner)
    WHERE n.nspname = 'textsim' AND o.owner <> n.nspowner
    GROUP BY o.owner, n.nspowner;
END;

-- Which sessions have waited for five seconds with a lock of a corpus, or for one, and who holds what they wait for.
CREATE OR REPLACE FUNCTION textsim._blockers(c textsim.corpus) RETURNS SETOF text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    first_id constant integer := textsim._origin(c);
    tables oid[];
BEGIN
    IF NOT EXISTS (SELECT FROM pg_locks l WHERE l.waitstart < clock_timestamp() - interval '5 s') THEN
        RETURN;
    END IF;
    tables := textsim._tables_of(c.id)::oid[];
    RETURN QUERY
    WITH lock AS MATERIALIZED (
        SELECT l.*, CASE l.locktype
            WHEN 'relation' THEN l.mode <> 'AccessShareLock' AND l.relation = ANY (tables)
            WHEN 'advisory' THEN l.objsubid = 2 AND (
                l.objid::bigint = c.id AND l.classid::bigint IN (
                    hashtext('textsim-db clusters')::bigint & 4294967295,
                    hashtext('textsim-db writers')::bigint & 4294967295)
                OR l.objid::bigint = first_id
                    AND l.classid::bigint = hashtext('textsim-db unique corpus')::bigint & 4294967295
                OR l.classid::bigint IN (
                    (hashtext('textsim-db buckets') # first_id)::bigint & 4294967295,
                    (hashtext('textsim-db parts') # first_id)::bigint & 4294967295))
            ELSE false END AS is_of_corpus
        FROM pg_locks l
        WHERE l.database IS NULL OR l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    ), waiting AS (
        SELECT w.*, clock_timestamp() - w.waitstart AS waited
        FROM lock w
        WHERE NOT w.granted AND w.waitstart < clock_timestamp() - interval '5 s'
            AND EXISTS (SELECT FROM lock o WHERE o.pid = w.pid AND o.is_of_corpus)
    )
    SELECT format('session %s has waited for %s s for %s', w.pid, round(extract(epoch FROM w.waited)),
        CASE WHEN 0 = ANY (pg_blocking_pids(w.pid)) THEN 'a prepared transaction, which pg_prepared_xacts lists'
            ELSE 'session ' || array_to_string(pg_blocking_pids(w.pid), ', ') END)
    FROM waiting w ORDER BY w.waitstart;
END $$;

-- Why a corpus or its tables cannot be written, why changes are missed, and what workers left because of an error.
CREATE OR REPLACE FUNCTION textsim._corpus_problems(c textsim.corpus) RETURNS SETOF text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY SELECT o.object || ' ' || o.problem FROM textsim._owner_problems(c) o;
    RETURN QUERY
        SELECT format('table %s: %s', s.relation, p.problem)
        FROM textsim.source s CROSS JOIN LATERAL textsim._source_problems(s) p (problem)
        WHERE s.corpus_id = c.id AND s.active
        ORDER BY s.id, p.problem;
    RETURN QUERY
        SELECT DISTINCT format('table %1$s: it is not indexed, although it has the name of an attached table that was '
            'dropped: attach it; if it should not be indexed, detach it then', r.oid::regclass)
        FROM textsim.source s
        JOIN pg_namespace n ON n.nspname = s.attached_as[1]
        JOIN pg_class r ON r.relnamespace = n.oid AND r.relname = s.attached_as[2]
        WHERE s.corpus_id = c.id AND NOT s.active
            AND NOT EXISTS (SELECT FROM pg_class o WHERE o.oid = s.relation)
            AND NOT EXISTS (SELECT FROM textsim.source a WHERE a.corpus_id = c.id AND a.relation = r.oid);
    RETURN QUERY
        SELECT DISTINCT f.fault || '; a worker tries again'
        FROM textsim.worker w
        CROSS JOIN LATERAL jsonb_to_recordset(w.faults) f (corpus_id integer, source_id integer, fault text)
        WHERE f.corpus_id = c.id AND f.source_id IS NULL AND textsim._age(w.reported_at) < interval '30 s'
        ORDER BY 1;
    RETURN QUERY SELECT b FROM textsim._blockers(c) b;
END $$;

-- Why results of a corpus may be wrong: what a search warns of, one row for each table, and what mends it.
CREATE OR REPLACE FUNCTION textsim._search_warnings(c textsim.corpus)
RETURNS TABLE (relation regclass, warning text, remedy text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp
-- Each search calls it, and a huge log must not make it slow.
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    RETURN QUERY
        SELECT s.relation, CASE WHEN f.has_triggers
                THEN format('table %s is not completely indexed in corpus "%s": results may be missing', s.relation, c.name)
                ELSE format('changes of table %s are missed in corpus "%s": a trigger was dropped or is disabled',
                    s.relation, c.name) END,
            CASE WHEN f.has_triggers THEN format('Run textsim worker, or: CALL textsim.index_pending(%L)', c.name)
                ELSE format('What mends it: SELECT problems FROM textsim.status(%L)', c.name) END
        FROM textsim.source s
        CROSS JOIN LATERAL (
            SELECT NOT EXISTS (SELECT FROM pg_class r WHERE r.oid = s.relation) OR 4 <= (
                SELECT count(*) FROM pg_trigger t
                WHERE t.tgrelid = s.relation AND t.tgenabled IN ('O', 'A')
                    AND starts_with(t.tgname::text, textsim._trigger_name(s.id, ''))
                    AND t.tgname <> textsim._trigger_name(s.id, 'columns'))) f (has_triggers)
        WHERE s.corpus_id = c.id AND s.active AND (NOT f.has_triggers OR EXISTS (
            SELECT FROM textsim.pending p WHERE p.source_id = s.id AND p.kind = 'compare'));
END $$;

-- Raise these warnings.
CREATE OR REPLACE FUNCTION textsim._warn_unindexed(c textsim.corpus) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    w record;
BEGIN
    FOR w IN SELECT * FROM textsim._search_warnings(c) LOOP
        RAISE WARNING '%', w.warning USING HINT = w.remedy;
    END LOOP;
END $$;

-- About how many rows a table and its partitions have.
CREATE OR REPLACE FUNCTION textsim._estimated_rows(relation regclass) RETURNS bigint
LANGUAGE sql STABLE STRICT PARALLEL SAFE
-- As the planner does: rows in a page, as ANALYZE counted them, times the current pages.
RETURN (
    SELECT sum(pg_relation_size(c.oid) / 8192
        * CASE WHEN c.relpages > 0 THEN c.reltuples / c.relpages ELSE 10 END)
    FROM textsim._partitions(relation) p (oid) JOIN pg_class c ON c.oid = p.oid
    WHERE c.relkind = 'r');

-- The scopes of a corpus, or one of them, with the numbers of their documents and of those that are stored as text.
CREATE OR REPLACE FUNCTION textsim._scopes(corpus text, of_scope text)
RETURNS TABLE (scope text, indexed bigint, as_text bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    IF NOT c.scoped THEN
        RAISE EXCEPTION 'corpus "%" is not scoped', corpus
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Create a corpus with scoped => true.';
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT d.scope, count(*), count(*) FILTER (WHERE %s) FROM textsim.%I d WHERE %s%s '
        'GROUP BY d.scope ORDER BY count(*) DESC, d.scope COLLATE "C"', textsim._waits(c), 'document_' || c.id,
        CASE WHEN of_scope IS NULL THEN 'true' ELSE 'd.part = $1' END, textsim._alive(c, 'd'))
    USING textsim._part(of_scope);
END $$;

-- How many documents a corpus has, or another of its tables; above ten thousand an estimate from some 1,000 pages.
-- The pages of the sample stay the same, so the estimate of a corpus that does not change stays the same, too. The
-- planner's estimate would count the space of updated documents as documents until the next ANALYZE.
--
-- An error at the end of a block gives back the locks of the block, and variables keep their values. Otherwise a
-- statement about a thousand corpora would hold locks of all their tables and indexes.
CREATE OR REPLACE FUNCTION textsim._count_documents(
    c textsim.corpus, pattern text DEFAULT 'document', OUT documents bigint, OUT is_estimate boolean)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    relation text := format('%s_%s', pattern, c.id);
    condition text := CASE pattern WHEN 'document' THEN textsim._alive(c, 'd') END;
    pages bigint := pg_relation_size('textsim.' || relation) / current_setting('block_size')::integer;
    share double precision := 100.0 * 1000 / greatest(pages, 1000);
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM textsim.%I d WHERE true%s LIMIT 10001) s',
        relation, condition) INTO documents;
    is_estimate := documents > 10000;
    IF is_estimate THEN
        EXECUTE format('SELECT greatest($1, 100 / $2 * count(*)) FROM textsim.%I d '
            'TABLESAMPLE SYSTEM ($2) REPEATABLE (1) WHERE true%s', relation, condition)
        INTO documents USING documents, share;
    END IF;
    RAISE SQLSTATE 'FREED';
EXCEPTION WHEN SQLSTATE 'FREED' THEN
    RETURN;
END $$;

-- The number of rows without a document plus documents without a row; an estimate for tables over 8 MB.
CREATE OR REPLACE FUNCTION textsim._differing_rows(source textsim.source, OUT rows bigint)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    documents regclass := format('textsim.%I', 'document_' || source.corpus_id);
    readable boolean := textsim._source_fault(source) IS NULL;
    alive text := (SELECT textsim._alive(c, 'd') FROM textsim.corpus c WHERE c.id = source.corpus_id);
    is_small boolean := (
        SELECT sum(pg_relation_size(p.oid)) < 8388608 FROM textsim._partitions(source.relation) p (oid));
    share double precision;
BEGIN
    IF readable AND is_small THEN
        EXECUTE format($query$
            SELECT (
                SELECT count(*) FROM %1$s t
                WHERE %3$s
                    AND NOT EXISTS (SELECT FROM %4$s d WHERE d.key = %2$s%5$s)
            ) + (
                SELECT count(*) FROM %4$s d
                WHERE d.source_id = $1%5$s AND NOT EXISTS (
                    SELECT FROM %1$s t WHERE %2$s = d.key AND %3$s)
            )
            $query$, source.relation, textsim._key_of(source, 't'), textsim._has_document(source, 't'), documents,
            alive)
        INTO rows USING source.id;
        RETURN;
    END IF;
    -- The share of the source in a sample of the documents' pages.
    EXECUTE format('SELECT avg((d.source_id IS NOT DISTINCT FROM $1)::integer) FROM %s d TABLESAMPLE SYSTEM ($2)',
        documents)
    INTO share USING source.id, least(100, 100.0 * 300 * 8192 / greatest(pg_relation_size(documents), 1));
    rows := abs(coalesce(textsim._estimated_rows(source.relation), 0)
        - textsim._estimated_rows(documents) * coalesce(share, 0));
END $$;

CREATE OR REPLACE FUNCTION textsim.status(corpus text)
RETURNS TABLE (
    indexed bigint, pending bigint, is_estimate boolean, oldest_pending timestamptz,
    pending_age interval, failed bigint, problems text[], as_text bigint, saved_by_ids bigint,
    linkage text, tracked_threshold double precision, outdated bigint, outdated_since timestamptz,
    crowded bigint, indexed_is_estimate boolean, notes text[])
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE COST 10000 ROWS 1
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    compared bigint;
BEGIN
    BEGIN
        compared := (
            SELECT sum(textsim._differing_rows(s)) FROM textsim.source s
            WHERE s.corpus_id = c.id AND s.active AND textsim._is_uncompared(s.id));
        SELECT d.documents, d.is_estimate INTO indexed, indexed_is_estimate FROM textsim._count_documents(c) d;
        SELECT coalesce(sum(w.documents) FILTER (WHERE w.is_change), 0) + coalesce(compared, 0),
            coalesce(sum(w.documents) FILTER (WHERE w.kind = 'words' AND NOT w.is_change), 0),
            min(w.since) FILTER (WHERE w.is_change OR w.kind = 'compare'),
            bool_or(w.is_estimate) OR compared IS NOT NULL
        INTO pending, as_text, oldest_pending, is_estimate
        FROM (
            -- A document whose words have no ids is complete: it is stored as text, and searches find it. Its log entry
            -- only asks for ids, which save space. In a corpus that identifies languages a worker must still find its
            -- language.
            SELECT k.kind, w.*, k.kind = 'change' OR k.kind = 'words' AND c.language IS NOT NULL AS is_change
            FROM unnest('{change,compare,words}'::text[]) k (kind)
            CROSS JOIN LATERAL textsim._waiting(c.id, k.kind) w
        ) w;
        -- An array has a header of 24 bytes, and 4 bytes for each word. A hundred documents are measured.
        EXECUTE format($query$
            SELECT greatest(0, $2 * coalesce(avg(
                pg_column_size(d.normal_form) - 24 - 4 * cardinality(string_to_array(d.normal_form, ' '))), 0))
            FROM (
                SELECT p.keys[1] AS key FROM textsim.pending p
                WHERE (p.corpus_id, p.kind, p.id) > ($1, 'words', 0)
                    AND (p.corpus_id, p.kind, p.id) < ($1, 'words', 9223372036854775807)
                ORDER BY p.corpus_id, p.kind, p.id LIMIT 100
            ) w
            JOIN textsim.%I d ON d.key = w.key
            WHERE d.word_ids IS NULL
            $query$, 'document_' || c.id) INTO saved_by_ids USING c.id, as_text;
        failed := (SELECT w.documents FROM textsim._waiting(c.id, 'failed') w);
        pending_age := textsim._age(oldest_pending);
        problems := array(SELECT textsim._corpus_problems(c));
        notes := array(
            SELECT format('table %s: %s', s.relation, textsim._unseen_changes(s)) FROM textsim.source s
            WHERE s.corpus_id = c.id AND s.active AND textsim._unseen_changes(s) IS NOT NULL
            ORDER BY s.id) || array(SELECT f.note FROM textsim._forgotten_words(c) f);
        SELECT t.linkage, t.threshold INTO linkage, tracked_threshold FROM textsim.tracked t WHERE t.corpus_id = c.id;
        SELECT w.documents, w.since INTO outdated, outdated_since FROM textsim._waiting(c.id, 'cluster') w;
        crowded := 0;
        IF linkage IS NOT NULL THEN
            EXECUTE format('SELECT count(*) FROM textsim.%I', 'crowded_' || c.id) INTO crowded;
        END IF;
        -- As in _count_documents: the locks are given back.
        RAISE SQLSTATE 'FREED';
    EXCEPTION WHEN SQLSTATE 'FREED' THEN
    END;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION textsim.status(text)
    IS 'Returns one row: the numbers of documents indexed, pending and failed, and the problems of the corpus and its attached tables. '
    'oldest_pending is the time of the oldest pending change, and pending_age is its age. If the clock was set back, that '
    'time may be still to come, and then the age is how far ahead it is. Above ten thousand the '
    'numbers are estimates, so that the answer takes milliseconds: see indexed_is_estimate for indexed, and '
    'is_estimate for pending and as_text. pending is an estimate too while a table is compared with its documents. '
    'as_text is the number of documents in the log that are stored as text: they are complete, and textsim worker or '
    'index_pending() gives their words ids, which saves about saved_by_ids bytes. It also counts documents that were '
    'removed since. linkage and tracked_threshold say how the corpus is tracked, and are NULL if it is not. outdated '
    'is the number of documents that have changed since its clusters were updated, the first of them at '
    'outdated_since. crowded is the number of texts that have too many candidates, of which not all count, as '
    'members() says. notes name the tables that a worker will compare with their documents, such as after a restore, and where words '
    'of forgotten documents are left.';
