-- Indexing pending changes from SQL, as a worker does: the rows of attached tables, and the ids of words.
-- Each step is its own transaction and can be repeated, so it needs no lease, and workers may run at the same time. In mode
-- inline a row can be removed without a log entry after it was read and before its document is added, so the rows are
-- read again after documents were added, here and in a worker.

-- Detach dropped tables and log changes that triggers missed.
CREATE OR REPLACE FUNCTION textsim._prepare_indexing(corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    removed bigint;
    source textsim.source;
    fault text;
BEGIN
    IF c.language IS NOT NULL THEN
        RAISE EXCEPTION 'corpus "%" identifies languages, and only a worker can do that', corpus
            USING ERRCODE = 'feature_not_supported', HINT = 'Run textsim worker.';
    END IF;
    FOR source IN SELECT * FROM textsim.source s WHERE s.corpus_id = c.id AND s.active ORDER BY s.id LOOP
        BEGIN
            removed := textsim._release_dropped(source.id);
            fault := textsim._source_fault(source);
            IF removed IS NOT NULL THEN
                RAISE WARNING 'table % was dropped: it is detached, and % removed',
                    source.relation, textsim._counted(removed, 'document');
            ELSIF fault IS NULL THEN
                PERFORM textsim._compare_changed(source.id);
            ELSE
                RAISE WARNING 'table % is not indexed: %', source.relation, fault;
            END IF;
        EXCEPTION
            WHEN insufficient_resources OR operator_intervention OR system_error OR transaction_rollback THEN
                RAISE;
            WHEN OTHERS THEN
                PERFORM textsim._warn_left(source.id, SQLERRM);
        END;
    END LOOP;
END $$;

-- The next log entries of one kind and source, with the place before them; NULL if none is ready. Sources in left_out
-- have had an error.
CREATE OR REPLACE FUNCTION textsim._pending_batch(
    corpus text, INOUT after bigint, left_out integer[], OUT entries bigint[], OUT kind text, OUT source_id integer,
    OUT keys text[])
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    usable integer[] := array(
        SELECT s.id FROM textsim.source s
        WHERE s.corpus_id = c.id AND s.active AND s.id <> ALL (left_out) AND textsim._source_fault(s) IS NULL);
    others integer[] := array(SELECT k.id FROM textsim.corpus k WHERE k.id <> c.id);
    kinds text[] := '{change,words}';
BEGIN
    LOOP
        SELECT array_agg(e.id), min(e.kind), min(e.source_id) INTO entries, kind, source_id
        FROM textsim._ready_entries(kinds, usable, others, after, 1000, true) e;
        EXIT WHEN entries IS NOT NULL OR kinds = '{compare}';
        -- Comparisons come last, because they may take long. Before that, look for entries whose transaction
        -- has committed after those of later entries.
        IF after = 0 THEN
            kinds := '{compare}';
        END IF;
        after := 0;
    END LOOP;
    after := coalesce(entries[1] - 1, 0);
    keys := array(
        SELECT DISTINCT k COLLATE "C" FROM textsim.pending p CROSS JOIN unnest(p.keys) k
        WHERE p.id = ANY (entries) ORDER BY 1);
END $$;

-- Raise a warning about a table that is left because of an error.
CREATE OR REPLACE FUNCTION textsim._warn_left(number integer, error text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RAISE WARNING 'table % is not indexed: %',
        (SELECT s.relation FROM textsim.source s WHERE s.id = number), error
        USING HINT = 'Its changes stay in the log. Mend the cause, and call index_pending again.';
END $$;

-- Lock an attached table against ALTER TABLE; an error if this role cannot index it.
CREATE OR REPLACE FUNCTION textsim._hold_source(number integer) RETURNS textsim.source
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    source textsim.source;
    fault text;
BEGIN
    SELECT * INTO source FROM textsim.source s WHERE s.id = number AND s.active;
    IF source.id IS NULL THEN
        RAISE EXCEPTION 'a table was detached while its changes were indexed'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call index_pending again.';
    END IF;
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', source.relation);
    fault := textsim._source_fault(source);
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot be indexed: %', source.relation, fault
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN source;
END $$;

-- In these statements OFFSET 0 makes the planner look up each key. Otherwise it may read a whole partitioned table,
-- because it does not see that a key leads to one partition.

-- A statement: the texts, scopes, expiries and faults of a table for the keys $1; NULL for a key without a row.
CREATE OR REPLACE FUNCTION textsim._rows_statement(source textsim.source) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN format($query$
    SELECT q.key, r.*
    FROM unnest($1) q (key) LEFT JOIN LATERAL (
        SELECT t.%3$I::text AS body, %5$s AS scope, %6$s AS expires_at, %8$s AS fault
        FROM %1$s t WHERE %4$s AND %2$s = q.key AND %7$s OFFSET 0
    ) r ON true
    $query$, source.relation, textsim._key_of(source, 't'), source.text_column,
    textsim._has_key(source, 't', 'q.key'), textsim._scope_of(source, 't'),
    textsim._expiry_of(source, 't'), textsim._has_document(source, 't'), textsim._row_fault(source, 't'));

CREATE OR REPLACE FUNCTION textsim._rows_of(source textsim.source, keys text[])
RETURNS TABLE (key text, body text, scope text, expires_at timestamptz, fault text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY EXECUTE textsim._rows_statement(source) USING keys;
END $$;

-- The keys of those documents that do not equal their rows; all of them if a row or a document cannot be compared.
-- The words of all documents are looked up at once: this takes half of the time of making each equal to its row. Rows
-- that are changed meanwhile are in the log.
CREATE OR REPLACE FUNCTION textsim._unequal_keys(source textsim.source, keys text[]) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_nestloop = off SET jit = off AS $$
DECLARE
    c textsim.corpus := (SELECT k FROM textsim.corpus k WHERE k.id = source.corpus_id);
    unequal text[];
BEGIN
    EXECUTE format($query$
        WITH stored AS MATERIALIZED (
            SELECT d.key, d.scope, d.expires_at, d.word_ids, d.normal_form FROM textsim.%1$I d
            WHERE d.key = ANY ($3) AND d.source_id = $2.id
        ), word AS MATERIALIZED (
            SELECT w.id, w.word FROM textsim.%2$I w
            WHERE w.id = ANY (array(SELECT DISTINCT i FROM stored s CROSS JOIN LATERAL unnest(s.word_ids) i))
        ), composed AS MATERIALIZED (
            SELECT s.key, string_agg(w.word, ' ' ORDER BY i.place) AS form
            FROM stored s CROSS JOIN LATERAL unnest(s.word_ids) WITH ORDINALITY i (id, place)
            JOIN word w ON w.id = i.id
            GROUP BY s.key
        )
        SELECT coalesce(array_agg(r.key), '{}')
        FROM textsim._rows_of($2, $3) r LEFT JOIN stored s ON s.key = r.key LEFT JOIN composed m ON m.key = r.key
        WHERE (s.key IS NOT NULL AND r.fault IS NULL AND r.scope IS NOT DISTINCT FROM s.scope
            AND r.expires_at IS NOT DISTINCT FROM s.expires_at
            AND textsim._form($1, r.body) COLLATE "C" = coalesce(s.normal_form, m.form, '')) IS NOT TRUE
        $query$, 'document_' || c.id, 'word_' || c.id)
    INTO unequal USING c, source, keys;
    RETURN unequal;
EXCEPTION
    WHEN insufficient_resources OR operator_intervention OR system_error OR transaction_rollback THEN
        RAISE;
    WHEN OTHERS THEN
        RETURN keys;
END $$;

-- The next keys for the comparison of a table; last is NULL at the end; is_left after an error, of which it warns.
-- For a page of the table, returns the keys of rows without an equal document. For a page of documents, returns the
-- keys without a row.
CREATE OR REPLACE FUNCTION textsim._next_page(
    number integer, of_documents boolean, after text, OUT keys text[], OUT last text, OUT is_left boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    source textsim.source;
    has_document text;
BEGIN
    source := textsim._hold_source(number);
    has_document := textsim._has_document(source, 't');
    is_left := false;
    IF of_documents THEN
        EXECUTE format($query$
            SELECT array_agg(d.key) FILTER (WHERE NOT EXISTS (
                    SELECT FROM %1$s t
                    WHERE %2$s AND %3$s OFFSET 0)),
                max(d.key)
            FROM (
                SELECT d.key FROM textsim.%4$I d
                WHERE d.source_id = $1 AND ($2 IS NULL OR d.key > $2) ORDER BY d.key LIMIT 1000
            ) d
            $query$, source.relation, textsim._has_key(source, 't', 'd.key'), has_document,
            'document_' || source.corpus_id)
        INTO keys, last USING number, after;
    ELSE
        EXECUTE format($query$
            SELECT array_agg(t.key ORDER BY t.number), (array_agg(t.key ORDER BY t.number DESC))[1]
            FROM (
                SELECT %2$s AS key, row_number() OVER (ORDER BY %4$s) AS number FROM %1$s t
                WHERE %3$s %5$s ORDER BY %4$s LIMIT 1000
            ) t
            $query$, source.relation, textsim._key_of(source, 't'), has_document, textsim._key_order(source, 't'),
            CASE WHEN after IS NOT NULL THEN 'AND ' || textsim._is_after(source, 't', '$1') END)
        INTO keys, last USING after;
    END IF;
    keys := coalesce(keys, '{}');
    IF NOT of_documents THEN
        keys := textsim._unequal_keys(source, keys);
    END IF;
EXCEPTION
    WHEN insufficient_resources OR operator_intervention OR system_error THEN
        RAISE;
    WHEN OTHERS THEN
        PERFORM textsim._warn_left(number, SQLERRM);
        is_left := true;
END $$;

-- Log that a document cannot be indexed, with the reason.
CREATE OR REPLACE FUNCTION textsim._set_aside(c textsim.corpus, source integer, key text, reason text) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    INSERT INTO textsim.pending (kind, corpus_id, source_id, keys, tries, error)
    VALUES ('failed', (c).id, source, ARRAY[key], 1, reason);
END;

-- Make a document equal to its row; owner is the source of the stored document: 0, no source; NULL, no document.
CREATE OR REPLACE FUNCTION textsim._index_row(
    c textsim.corpus, source integer, document_key text, body text, scope text, expires_at timestamptz, row_fault text,
    owner integer)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    fault text := coalesce(row_fault, textsim._document_fault(c, document_key, body, scope));
    other regclass := (
        SELECT s.relation FROM textsim.source s WHERE s.id = owner AND s.id <> source AND s.active);
    twin record;
BEGIN
    IF body IS NULL THEN
        PERFORM textsim._remove_document(c, source, document_key);
    ELSIF fault IS NOT NULL THEN
        PERFORM textsim._remove_document(c, source, document_key),
            textsim._set_aside(c, source, document_key, fault);
    ELSIF other IS NOT NULL THEN
        PERFORM textsim._set_aside(
            c, source, document_key, 'the corpus has this key from the table ' || other);
    ELSIF textsim._store_form(c, source, document_key, textsim._form(c, body), scope, expires_at) = 'twin' THEN
        PERFORM textsim._count_twins(c.id, 1);
        SELECT * INTO twin FROM textsim._twins(c, document_key, body, scope) LIMIT 1;
        PERFORM textsim._set_aside(c, source, document_key, format(
            'it matches document "%s" with similarity %s, and the corpus is unique',
            left(twin.key, 100), twin.similarity));
    END IF;
END $$;

-- Make documents equal to their rows, and log words that need ids. False if another transaction interfered, or an error
-- must be looked for in fewer keys; NULL after an error of the whole table, of which it warns.
CREATE OR REPLACE FUNCTION textsim._index_rows(number integer, keys text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    source textsim.source;
    c textsim.corpus;
    owners jsonb;
    changed record;
    digests jsonb := '{}';
BEGIN
    SELECT k.* INTO c FROM textsim.source s JOIN textsim.corpus k ON k.id = s.corpus_id
    WHERE s.id = number;
    -- Wait for other writers of the corpus while holding no lock. After that wait only briefly, because the
    -- holder of a lock may be waiting for this transaction. A worker does the same.
    PERFORM pg_advisory_xact_lock(hashtext('textsim-db writers'), c.id);
    PERFORM set_config('lock_timeout', '100ms', true);
    source := textsim._hold_source(number);
    DELETE FROM textsim.pending p
    WHERE (p.source_id = number OR p.source_id IS NULL AND p.corpus_id = c.id)
        AND p.kind = 'failed' AND p.keys[1] = ANY (_index_rows.keys);
    -- Lock the documents before reading the table, so that no transaction can write both in between.
    EXECUTE format($query$
        SELECT coalesce(jsonb_object_agg(d.key, coalesce(d.source_id, 0)), '{}')
        FROM (
            SELECT d.key, CASE WHEN true%2$s THEN d.source_id END AS source_id FROM textsim.%1$I d
            WHERE d.key = ANY ($1) ORDER BY d.key FOR UPDATE
        ) d
        $query$, 'document_' || c.id, textsim._alive(c, 'd')) INTO owners USING keys;
    FOR changed IN SELECT * FROM textsim._rows_of(source, keys) LOOP
        PERFORM textsim._index_row(
            c, number, changed.key, changed.body, changed.scope, changed.expires_at, changed.fault,
            (owners ->> changed.key)::integer);
        digests := digests || jsonb_build_object(changed.key, md5(changed::text));
    END LOOP;
    -- Read the rows again: a row that was written and removed before its document existed has left no log
    -- entry. A later writer of the row finds the document, or makes a log entry.
    IF EXISTS (SELECT FROM textsim._rows_of(source, keys) r WHERE md5(r::text) IS DISTINCT FROM digests ->> r.key) THEN
        RAISE EXCEPTION 'rows of table % have just been changed', source.relation
            USING ERRCODE = 'unique_violation';
    END IF;
    EXECUTE format($query$
        INSERT INTO textsim.pending (kind, corpus_id, keys)
        SELECT 'words', $2, array_agg(d.key) FROM textsim.%I d WHERE d.key = ANY ($1) AND %s
        HAVING count(*) > 0
        $query$, 'document_' || c.id, textsim._waits(c)) USING keys, c.id;
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR unique_violation THEN
        RETURN false;
    WHEN insufficient_resources OR operator_intervention OR system_error OR transaction_rollback THEN
        RAISE;
    WHEN syntax_error_or_access_rule_violation OR object_not_in_prerequisite_state THEN
        PERFORM textsim._warn_left(number, SQLERRM);
        RETURN NULL;
    WHEN OTHERS THEN
        IF cardinality(keys) = 1 THEN
            PERFORM textsim._set_aside(c, number, keys[1], SQLERRM);
        END IF;
        RETURN cardinality(keys) = 1;
END $$;

-- Add the words of documents to the dictionary; the transaction must write nothing else.
CREATE OR REPLACE FUNCTION textsim._add_words(corpus text, keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    -- Insert in the order of the hashes, so that two writers cannot deadlock.
    EXECUTE format($query$
        INSERT INTO textsim.%2$I (hash, word)
        SELECT DISTINCT ON (n.hash) n.hash, n.word
        FROM (
            SELECT hashtextextended(w.word COLLATE "C", 0) AS hash, w.word
            FROM textsim.%1$I d CROSS JOIN LATERAL unnest(string_to_array(d.normal_form, ' ')) w (word)
            WHERE d.key = ANY ($1) AND %3$s
        ) n
        WHERE NOT EXISTS (SELECT FROM textsim.%2$I k WHERE k.hash = n.hash)
        ORDER BY n.hash
        ON CONFLICT (hash) DO NOTHING
        $query$, 'document_' || c.id, 'word_' || c.id, textsim._waits(c)) USING keys;
END $$;

-- Replace the normal forms of documents by word ids.
CREATE OR REPLACE FUNCTION textsim._replace_normal_forms(corpus text, keys text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    waiting record;
BEGIN
    EXECUTE format($query$
        UPDATE textsim.%1$I d SET word_ids = w.ids, normal_form = NULL
        FROM (
            SELECT d.id, textsim._word_numbers_%2$s(d.normal_form) AS ids FROM textsim.%1$I d
            WHERE d.key = ANY ($1) AND %3$s FOR UPDATE SKIP LOCKED
        ) w
        WHERE d.id = w.id AND NOT 0 > ANY (w.ids)
        $query$, 'document_' || c.id, c.id, textsim._waits(c)) USING keys;
    FOR waiting IN EXECUTE format($query$
        SELECT d.key, (
            SELECT min(w.word)
            FROM unnest(string_to_array(d.normal_form, ' ')) w (word)
            JOIN textsim.%2$I k ON k.hash = hashtextextended(w.word COLLATE "C", 0)
                AND k.word <> w.word COLLATE "C"
        ) AS collision
        FROM textsim.%1$I d WHERE d.key = ANY ($1) AND %3$s
        $query$, 'document_' || c.id, 'word_' || c.id, textsim._waits(c)) USING keys
    LOOP
        IF waiting.collision IS NOT NULL THEN
            PERFORM textsim._set_aside(c, NULL, waiting.key, format(
                'the word "%s" has the same 64-bit hash as another word', left(waiting.collision, 40)));
        ELSE
            -- Another transaction has locked the document, and may roll back.
            INSERT INTO textsim.pending (kind, corpus_id, keys, lease_until)
            VALUES ('words', c.id, ARRAY[waiting.key], now() + interval '1 s');
        END IF;
    END LOOP;
END $$;

-- Keys by the hundred, each hundred for one transaction.
CREATE OR REPLACE FUNCTION textsim._hundreds(keys text[]) RETURNS SETOF text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT keys[first:first + 99] FROM generate_series(1, cardinality(keys), 100) first;
END;

-- Raise a notice about log entries that index_pending left.
CREATE OR REPLACE FUNCTION textsim._report_unfinished(corpus text) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    leased bigint := (
        SELECT sum(w.documents) FROM unnest('{change,compare,words}'::text[]) k (kind)
        CROSS JOIN LATERAL textsim._waiting(c.id, k.kind) w);
    refused bigint := (SELECT w.documents FROM textsim._waiting(c.id, 'failed') w);
BEGIN
    IF leased > 0 THEN
        RAISE NOTICE 'not done: %, which a worker processes, or whose table cannot be indexed',
            textsim._counted(leased, 'change') USING HINT = format('SELECT problems FROM textsim.status(%L)', corpus);
    END IF;
    IF refused > 0 THEN
        RAISE NOTICE 'set aside, with the errors in textsim.pending: %', textsim._counted(refused, 'document')
            USING HINT = 'SELECT keys, document_ids, error FROM textsim.pending WHERE kind = ''failed''';
    END IF;
END $$;

-- Make documents equal to their rows, a hundred in a transaction; is_left: whether an error of the table ended that.
-- A procedure with a SET clause cannot commit, so these procedures run with the caller's search_path. They
-- qualify each function and type, and use no operators and no CASE, because the search_path could replace them.
CREATE OR REPLACE PROCEDURE textsim._index_keys(source integer, keys text[], INOUT is_left boolean)
LANGUAGE plpgsql AS $$
DECLARE
    hundred pg_catalog.text[];
    single pg_catalog.text;
    is_done pg_catalog.bool;
BEGIN
    FOR hundred IN SELECT textsim._hundreds(keys) LOOP
        is_done := textsim._index_rows(source, hundred);
        COMMIT;
        IF NOT is_done THEN
            FOREACH single IN ARRAY hundred LOOP
                LOOP
                    is_done := textsim._index_rows(source, ARRAY[single]);
                    COMMIT;
                    EXIT WHEN is_done IS NOT FALSE;
                END LOOP;
                EXIT WHEN is_done IS NULL;
            END LOOP;
        END IF;
        is_left := is_done IS NULL;
        EXIT WHEN is_left;
    END LOOP;
END $$;

CREATE OR REPLACE PROCEDURE textsim.index_pending(corpus text)
LANGUAGE plpgsql AS $$
DECLARE
    batch pg_catalog.record;
    hundred pg_catalog.text[];
    page pg_catalog.record;
    of_documents pg_catalog.bool;
    is_left pg_catalog.bool;
    left_out pg_catalog.int4[];
BEGIN
    CALL textsim._check_no_transaction('index_pending');
    left_out := '{}';
    PERFORM textsim._prepare_indexing(corpus);
    COMMIT;
    SELECT 0::pg_catalog.int8 AS after INTO batch;
    LOOP
        SELECT * INTO batch FROM textsim._pending_batch(corpus, batch.after, left_out);
        COMMIT;
        EXIT WHEN batch.entries IS NULL;
        is_left := false;
        IF pg_catalog.texteq(batch.kind, 'words') THEN
            FOR hundred IN SELECT textsim._hundreds(batch.keys) LOOP
                PERFORM textsim._add_words(corpus, hundred);
                COMMIT;
                PERFORM textsim._replace_normal_forms(corpus, hundred);
                COMMIT;
            END LOOP;
        ELSIF pg_catalog.texteq(batch.kind, 'change') THEN
            CALL textsim._index_keys(batch.source_id, batch.keys, is_left);
        ELSE
            FOREACH of_documents IN ARRAY ARRAY[false, true] LOOP
                SELECT NULL::pg_catalog.text AS last INTO page;
                LOOP
                    SELECT * INTO page
                    FROM textsim._next_page(batch.source_id, of_documents, page.last);
                    COMMIT;
                    is_left := page.is_left;
                    EXIT WHEN page.last IS NULL OR is_left;
                    CALL textsim._index_keys(batch.source_id, page.keys, is_left);
                    EXIT WHEN is_left;
                END LOOP;
                EXIT WHEN is_left;
            END LOOP;
        END IF;
        IF is_left THEN
            left_out := pg_catalog.array_append(left_out, batch.source_id);
        ELSE
            PERFORM textsim._delete_entries(batch.entries);
        END IF;
        COMMIT;
    END LOOP;
    IF textsim._is_tracked(corpus) THEN
        CALL textsim.update_clusters(corpus);
    END IF;
    PERFORM textsim._report_unfinished(corpus);
END $$;
COMMENT ON PROCEDURE textsim.index_pending(text)
    IS 'Indexes the pending changes of a corpus and gives words their ids, as a worker does. Then it updates the '
    'clusters of the corpus, if it is tracked. It commits after each step, so call it outside a transaction block. '
    'Raises feature_not_supported if the corpus identifies languages, which only a worker can.';
