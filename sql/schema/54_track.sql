-- Tracked corpora: their matches and clusters stand in tables that stay current. Triggers on the documents log the
-- ids of changed documents, in the writer's transaction, and update_clusters() processes the log. Of all entries only
-- these have document_ids; their kind is cluster, or failed if they were set aside.

-- The tables, indexes and sequence that tracking adds to a corpus, with their statements; check compares them.
CREATE OR REPLACE FUNCTION textsim._tracking_relations(corpus_id integer)
RETURNS TABLE (kind text, name text, statement text)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 21 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
        SELECT 'table', format('%s_%s', p.pattern, corpus_id), format(
            'CREATE TABLE textsim.%I (LIKE textsim.%I INCLUDING ALL) INHERITS (textsim.corpus_table)',
            format('%s_%s', p.pattern, corpus_id), p.pattern)
        FROM unnest(ARRAY['node', 'match', 'crowded', 'member', 'cluster', 'cluster_alias', 'cluster_event', 'removed'])
            p (pattern);
    -- The definitions of indexes are written as the server prints them.
    RETURN QUERY
        SELECT 'index', format('%s_%s_%s', i.pattern, corpus_id, i.suffix), format(
            'CREATE %sINDEX %I ON textsim.%I USING btree (%s)', i.uniqueness,
            format('%s_%s_%s', i.pattern, corpus_id, i.suffix), format('%s_%s', i.pattern, corpus_id), i.columns)
        FROM (VALUES
            ('node', 'document', 'UNIQUE ', 'document_id'), ('node', 'node', '', 'node, document_id'),
            ('node', 'hash', '', 'words_hash'), ('match', 'a', 'UNIQUE ', 'a, b'), ('match', 'b', '', 'b, a'),
            ('crowded', 'node', 'UNIQUE ', 'node'),
            ('member', 'document', 'UNIQUE ', 'document_id'), ('member', 'cluster', '', 'cluster, document_id'),
            ('cluster', 'id', 'UNIQUE ', 'id'), ('cluster_alias', 'old', 'UNIQUE ', 'old'),
            ('cluster_alias', 'new', '', 'new'), ('cluster_event', 'id', 'UNIQUE ', 'id'),
            ('cluster_event', 'at', '', 'at'), ('removed', 'document', 'UNIQUE ', 'document_id'),
            ('removed', 'at', '', 'at'))
            i (pattern, suffix, uniqueness, columns);
    RETURN QUERY SELECT 'sequence', format('node_%s_id_seq', corpus_id), format(
        'CREATE SEQUENCE textsim.%I AS integer OWNED BY textsim.%I.node',
        format('node_%s_id_seq', corpus_id), 'node_' || corpus_id);
END $$;

-- The triggers on the documents of a tracked corpus, with their statements.
CREATE OR REPLACE FUNCTION textsim._tracking_triggers(corpus_id integer)
RETURNS TABLE (relation text, name text, statement text)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 4 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
        SELECT 'document_' || corpus_id, 'track_' || t.event, format(
            'CREATE TRIGGER %I %s %s ON textsim.%I %sFOR EACH STATEMENT EXECUTE FUNCTION textsim._log_documents(%L)',
            'track_' || t.event, t.moment, upper(t.event COLLATE "C"), 'document_' || corpus_id,
            'REFERENCING ' || t.tables, corpus_id)
        FROM (VALUES
            ('insert', 'AFTER', 'NEW TABLE AS new_documents '),
            ('update', 'AFTER', 'OLD TABLE AS old_documents NEW TABLE AS new_documents '),
            ('delete', 'AFTER', 'OLD TABLE AS old_documents '),
            ('truncate', 'BEFORE', NULL))
            t (event, moment, tables);
END $$;

-- Remove the events of a tracked corpus, and the keys of removed documents, that are older than they are kept.
CREATE OR REPLACE FUNCTION textsim._remove_old_events(number integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    kept_since timestamptz := (SELECT now() - t.keep_events FROM textsim.tracked t WHERE t.corpus_id = number);
BEGIN
    IF kept_since IS NOT NULL THEN
        EXECUTE format('DELETE FROM textsim.%I e WHERE e.at < $1', 'cluster_event_' || number) USING kept_since;
        EXECUTE format('DELETE FROM textsim.%I r WHERE r.at < $1', 'removed_' || number) USING kept_since;
    END IF;
END $$;

-- Log documents whose clusters must be updated, a thousand in each entry.
CREATE OR REPLACE FUNCTION textsim._log_ids(corpus_id integer, ids integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    INSERT INTO textsim.pending (kind, corpus_id, document_ids)
    SELECT 'cluster', _log_ids.corpus_id, array_agg(i.id ORDER BY i.place)
    FROM unnest(ids) WITH ORDINALITY i (id, place)
    GROUP BY (i.place - 1) / 1000
    ORDER BY (i.place - 1) / 1000;
END $$;

-- Log the documents of a tracked corpus that a statement has added, changed or removed.
-- An UPDATE that only replaces a text by its word ids, or changes the language, the source or the time of expiry,
-- changes no match.
CREATE OR REPLACE FUNCTION textsim._log_documents() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    ids integer[];
BEGIN
    CASE TG_OP
    WHEN 'INSERT' THEN
        ids := array(SELECT n.id FROM new_documents n WHERE n.rejected IS NULL ORDER BY n.id);
    WHEN 'DELETE' THEN
        ids := array(SELECT o.id FROM old_documents o ORDER BY o.id);
        -- Events name removed documents by their keys.
        EXECUTE format('INSERT INTO textsim.%I (document_id, key) '
            'SELECT o.id, o.key FROM old_documents o '
            'ON CONFLICT (document_id) DO UPDATE SET key = excluded.key, at = excluded.at',
            'removed_' || TG_ARGV[0]);
    WHEN 'UPDATE' THEN
        ids := array(
            SELECT o.id FROM old_documents o JOIN new_documents n ON n.id = o.id
            WHERE n.shingle_count <> o.shingle_count OR n.part IS DISTINCT FROM o.part
                OR n.signature <> o.signature
                OR NOT coalesce(n.word_ids = o.word_ids, n.normal_form = o.normal_form,
                    textsim._stored_form(TG_ARGV[0]::integer, n.word_ids, n.normal_form)
                        = textsim._stored_form(TG_ARGV[0]::integer, o.word_ids, o.normal_form))
            ORDER BY o.id);
    ELSE
        RAISE EXCEPTION 'corpus "%" is tracked, so its table cannot be truncated',
            (SELECT c.name FROM textsim.corpus c WHERE c.id = TG_ARGV[0]::integer)
            USING ERRCODE = 'object_in_use',
                HINT = 'Remove its documents, or call textsim.untrack first.';
    END CASE;
    PERFORM textsim._log_ids(TG_ARGV[0]::integer, ids);
    RETURN NULL;
END $$;

-- Lock the clusters of a corpus for an update; false if another session has the lock, and this one does not wait.
CREATE OR REPLACE FUNCTION textsim._lock_clusters(corpus_id integer, waits boolean DEFAULT true) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF NOT waits THEN
        RETURN pg_try_advisory_xact_lock(hashtext('textsim-db clusters'), corpus_id);
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('textsim-db clusters'), corpus_id);
    RETURN true;
END $$;

-- How a corpus is tracked; an error if it is not.
CREATE OR REPLACE FUNCTION textsim._tracking(c textsim.corpus) RETURNS textsim.tracked
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    tracking textsim.tracked;
BEGIN
    SELECT t.* INTO tracking FROM textsim.tracked t WHERE t.corpus_id = c.id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'corpus "%" is not tracked', c.name
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format(
                'To track it: textsim track %s, or SELECT textsim.track(%L).', c.name, c.name);
    END IF;
    RETURN tracking;
END $$;

CREATE OR REPLACE FUNCTION textsim._is_tracked(corpus text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN EXISTS (
    SELECT FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id WHERE c.name = corpus);

-- Create what tracking adds, with the rights that another tracked corpus, or the table of the documents, gives.
CREATE OR REPLACE FUNCTION textsim._create_tracking_relations(corpus_id integer, like_corpus integer) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    -- A role that may read or write the documents may do the same with their clusters.
    PERFORM textsim._create_relation(r.kind, r.name, r.statement, 'textsim.' || CASE WHEN like_corpus IS NULL
        THEN 'document_' || corpus_id ELSE regexp_replace(r.name, '[0-9]+$', like_corpus::text) END)
    FROM textsim._tracking_relations(corpus_id) r;
    -- One node may have most of the matches. The planner would expect as many for each node.
    EXECUTE format('ALTER TABLE textsim.%I ALTER a SET (n_distinct = -0.5), ALTER b SET (n_distinct = -0.5)',
        'match_' || corpus_id);
    EXECUTE format('ALTER TABLE textsim.%I ALTER key SET STATISTICS 0', 'removed_' || corpus_id);
    PERFORM textsim._grant_ids(corpus_id);
    PERFORM textsim._make_tracking_functions(corpus_id);
END $$;

-- The functions of a tracked corpus, with the statements that create them.
CREATE OR REPLACE FUNCTION textsim._tracking_functions(corpus_id integer) RETURNS TABLE (name text, statement text)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 25
BEGIN ATOMIC
    SELECT f.name, f.statement FROM textsim._functions_like(ARRAY[
        '_move_to_nodes', '_remove_empty_nodes', '_find_candidates', '_find_matches', '_with_judged',
        '_judged_pairs', '_store_matches', '_place_judged', '_first_documents', '_are_kept', '_later_neighbours',
        '_group_nodes', '_kept_groups', '_flows', '_continue_clusters', '_store_groups', '_end_clusters', '_update_batch',
        '_log_whole_clusters', '_mend_tracked'], $1) f;
END;

CREATE OR REPLACE FUNCTION textsim._make_tracking_functions(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM textsim._make_function(format('textsim.%I', f.name), f.statement)
    FROM textsim._tracking_functions(corpus_id) f;
END $$;

CREATE OR REPLACE FUNCTION textsim._drop_tracking(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    relation text;
    function regproc;
BEGIN
    DELETE FROM textsim.tracked t WHERE t.corpus_id = _drop_tracking.corpus_id;
    FOR function IN
        SELECT p.oid FROM pg_proc p JOIN textsim._tracking_functions(corpus_id) f ON f.name = p.proname
        WHERE p.pronamespace = 'textsim'::regnamespace
    LOOP
        EXECUTE format('DROP FUNCTION %s', function);
    END LOOP;
    FOR relation IN
        SELECT r.name FROM textsim._tracking_relations(corpus_id) r
        WHERE r.kind = 'table' AND to_regclass('textsim.' || r.name) IS NOT NULL
    LOOP
        EXECUTE format('DROP TABLE textsim.%I', relation);
    END LOOP;
    DELETE FROM textsim.pending p WHERE p.corpus_id = _drop_tracking.corpus_id AND p.document_ids IS NOT NULL;
END $$;

CREATE OR REPLACE FUNCTION textsim.track(
    corpus text, linkage text DEFAULT 'kept', threshold double precision DEFAULT NULL, mode text DEFAULT 'queue',
    keep_events interval DEFAULT '30 days')
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    object record;
    ids integer[];
BEGIN
    IF linkage IS DISTINCT FROM 'kept' THEN
        RAISE EXCEPTION 'linkage is %; tracked clusters have linkage kept only, and clusters() computes others on demand',
            quote_nullable(linkage) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM textsim._check_choice('mode', mode, 'queue', 'inline');
    IF NOT pg_try_advisory_xact_lock_shared(hashtextextended('textsim rebuild of corpus ' || c.id, 0))
        OR c.id <> (textsim._corpus(corpus)).id
    THEN
        RAISE EXCEPTION 'corpus "%" is being rebuilt; repeat the statement after the rebuild', corpus
            USING ERRCODE = 'object_in_use';
    END IF;
    threshold := textsim._check_threshold(c, threshold);
    IF threshold < c.threshold THEN
        RAISE EXCEPTION 'threshold is %; corpus "%" finds its matches from % on', threshold, corpus, c.threshold
            USING ERRCODE = 'invalid_parameter_value', HINT = 'textsim rebuild lowers the threshold of a corpus.';
    END IF;
    INSERT INTO textsim.tracked (corpus_id, linkage, threshold, mode, keep_events)
    VALUES (c.id, linkage, coalesce(threshold, c.threshold), 'queue', keep_events)
    ON CONFLICT (corpus_id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'corpus "%" is tracked already', corpus
            USING ERRCODE = 'duplicate_object',
                HINT = 'To track it otherwise, untrack it first: that removes the clusters.';
    END IF;
    PERFORM textsim._create_tracking_relations(c.id, NULL);
    -- This waits for writers. The next statement sees what they have written, and later writers log it.
    FOR object IN SELECT * FROM textsim._tracking_triggers(c.id) LOOP
        EXECUTE object.statement;
    END LOOP;
    EXECUTE format('SELECT array_agg(d.id ORDER BY d.id) FROM textsim.%I d', 'document_' || c.id) INTO ids;
    PERFORM textsim._log_ids(c.id, ids);
    -- From here on, because the documents of a large corpus are better processed in many transactions.
    UPDATE textsim.tracked t SET mode = track.mode WHERE t.corpus_id = c.id;
END $$;
COMMENT ON FUNCTION textsim.track(text, text, double precision, text, interval)
    IS 'Keeps the matches and clusters of a corpus in tables that stay current: members() and doubtful() read them. '
    'They obey judgements. A worker or update_clusters() computes them, first of all documents, and then, in mode '
    'queue, of each change. In mode inline the transaction that writes documents updates their clusters when it '
    'commits; such transactions wait for each other, and need the isolation level READ COMMITTED. linkage is kept: one '
    'document of a cluster is kept, and every other member matches it; documents are considered in the order in which '
    'they were added. Clusters of another linkage are not tracked; clusters() computes them on demand. threshold is '
    'the least similarity of a match, by default that of the corpus, and not lower. If a rebuild changes the threshold '
    'of the corpus, an equal or lower threshold follows it. Events are removed after the time keep_events; NULL keeps '
    'them. Raises an error if the corpus is tracked already, or for another linkage.';

CREATE OR REPLACE FUNCTION textsim.untrack(corpus text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    trigger record;
BEGIN
    PERFORM textsim._lock_relations(c.id);
    PERFORM textsim._tracking(c);
    FOR trigger IN SELECT t.relation, t.name FROM textsim._tracking_triggers(c.id) t LOOP
        IF to_regclass('textsim.' || trigger.relation) IS NOT NULL THEN
            EXECUTE format('DROP TRIGGER IF EXISTS %I ON textsim.%I', trigger.name, trigger.relation);
        END IF;
    END LOOP;
    PERFORM textsim._drop_tracking(c.id);
END $$;
COMMENT ON FUNCTION textsim.untrack(text)
    IS 'Ends the tracking of a corpus, and removes its matches, clusters and their history. The documents stay. '
    'Raises an error if the corpus is not tracked.';
