-- Documents of tracked corpora that the next update computes anew, after damage or a rebuild. _log_whole_clusters and
-- _mend_tracked are patterns, as 58 explains.

-- Log documents, all of a cluster in one entry: if their nodes are gone, some of a cluster would lose its id.
CREATE OR REPLACE FUNCTION textsim._log_whole_clusters(corpus_id integer, ids integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    INSERT INTO textsim.pending (kind, corpus_id, document_ids)
    SELECT 'cluster', corpus_id, array_agg(p.id ORDER BY p.id)
    FROM (
        SELECT o.id, (min(o.place) OVER (
            PARTITION BY o.cluster, CASE WHEN o.cluster IS NULL THEN o.id END) - 1) / 1000 AS entry
        FROM (
            SELECT i.id, m.cluster, row_number() OVER (ORDER BY m.cluster, i.id) AS place
            FROM (SELECT DISTINCT unnest(ids) AS id) i LEFT JOIN textsim.member m ON m.document_id = i.id
        ) o
    ) p
    GROUP BY p.entry ORDER BY p.entry;
END $$;

-- Remove the nodes and matches of a tracked corpus, mend its rows of clusters, and log all documents, so that the next
-- update computes all anew, with the same ids.
CREATE OR REPLACE FUNCTION textsim._mend_tracked(corpus_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    documents integer[];
    updated bigint;
BEGIN
    PERFORM textsim._lock_clusters(corpus_id);
    DELETE FROM textsim.match;
    DELETE FROM textsim.node;
    DELETE FROM textsim.crowded;
    -- The id of a cluster outlives the loss of its row, or of all its members.
    INSERT INTO textsim.member (document_id, cluster)
    SELECT c.representative, c.id FROM textsim.cluster c
    WHERE NOT EXISTS (SELECT FROM textsim.member m WHERE m.cluster = c.id)
        AND EXISTS (SELECT FROM textsim.document d WHERE d.id = c.representative)
    ON CONFLICT (document_id) DO NOTHING;
    DELETE FROM textsim.cluster c WHERE NOT EXISTS (SELECT FROM textsim.member m WHERE m.cluster = c.id);
    DELETE FROM textsim.member m
    WHERE m.cluster > coalesce(pg_sequence_last_value('textsim.cluster_id_seq'), 0)
        OR EXISTS (SELECT FROM textsim.cluster_alias a WHERE a.old = m.cluster)
        AND NOT EXISTS (SELECT FROM textsim.cluster c WHERE c.id = m.cluster);
    INSERT INTO textsim.cluster (id, representative, size)
    SELECT m.cluster, min(m.document_id), greatest(count(*), 2) FROM textsim.member m
    WHERE NOT EXISTS (SELECT FROM textsim.cluster c WHERE c.id = m.cluster) GROUP BY m.cluster;
    UPDATE textsim.cluster c SET size = m.size
    FROM (SELECT m.cluster, count(*) AS size FROM textsim.member m GROUP BY m.cluster HAVING count(*) > 1) m
    WHERE m.cluster = c.id AND c.size <> m.size;
    DELETE FROM textsim.cluster_alias a WHERE a.new = a.old;
    INSERT INTO textsim.cluster_alias (old, new)
    SELECT e.cluster, e.other FROM textsim.cluster_event e WHERE e.what = 'merged' ON CONFLICT (old) DO NOTHING;
    DELETE FROM textsim.cluster_alias a USING textsim.cluster c WHERE c.id = a.old;
    -- Damaged aliases may lead in a circle.
    FOR round IN 1..100 LOOP
        UPDATE textsim.cluster_alias a SET new = n.new FROM textsim.cluster_alias n WHERE n.old = a.new;
        GET DIAGNOSTICS updated = ROW_COUNT;
        EXIT WHEN updated = 0;
    END LOOP;
    documents := array(SELECT d.id FROM textsim.document d UNION SELECT m.document_id FROM textsim.member m);
    PERFORM textsim._log_whole_clusters(corpus_id, documents);
    RETURN cardinality(documents);
END $$;

-- Let a rebuilt corpus be tracked as the corpus that it replaces: clusters, aliases and events move to the new ids of
-- documents, and all documents are logged.
-- A document that is gone, but still has a member row or an event, gets an id that no document has.
CREATE OR REPLACE FUNCTION textsim._move_tracking(old integer, new integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    old_ids integer[];
    new_ids integer[];
    documents integer[];
    moved record;
    trigger text;
BEGIN
    UPDATE textsim.tracked t
    SET corpus_id = n.id,
        threshold = CASE WHEN t.threshold = o.threshold THEN n.threshold ELSE greatest(t.threshold, n.threshold) END
    FROM textsim.corpus o, textsim.corpus n
    WHERE t.corpus_id = old AND o.id = old AND n.id = new;
    DELETE FROM textsim.pending p WHERE p.corpus_id = old AND p.document_ids IS NOT NULL;
    EXECUTE format($query$
        SELECT array_agg(u.id), array_agg(coalesce(n.id, nextval(%6$L)::integer))
        FROM (
            SELECT m.document_id AS id FROM textsim.%3$I m
            UNION SELECT c.representative FROM textsim.%4$I c
            UNION SELECT e.document_id FROM textsim.%5$I e WHERE e.document_id IS NOT NULL
        ) u
        LEFT JOIN textsim.%1$I o ON o.id = u.id
        LEFT JOIN textsim.%2$I n ON n.key = o.key
        $query$, 'document_' || old, 'document_' || new, 'member_' || old, 'cluster_' || old,
        'cluster_event_' || old, format('textsim.document_%s_id_seq', new))
    INTO old_ids, new_ids;
    EXECUTE format('INSERT INTO textsim.%I (old, new) SELECT a.old, a.new FROM textsim.%I a',
        'cluster_alias_' || new, 'cluster_alias_' || old);
    FOR moved IN
        SELECT * FROM (VALUES ('member', 'document_id', 'cluster'), ('cluster', 'representative', 'id, size'),
            ('cluster_event', 'document_id', 'id, at, what, cluster, other'), ('removed', 'document_id', 'key, at'))
            t (pattern, document, others)
    LOOP
        EXECUTE format('INSERT INTO textsim.%1$I (%3$I, %4$s) SELECT i.new, %4$s FROM textsim.%2$I o '
            'LEFT JOIN unnest($1, $2) i (was, new) ON i.was = o.%3$I WHERE i.new IS NOT NULL OR o.%3$I IS NULL',
            format('%s_%s', moved.pattern, new), format('%s_%s', moved.pattern, old), moved.document, moved.others)
        USING old_ids, new_ids;
    END LOOP;
    FOR trigger IN SELECT t.statement FROM textsim._tracking_triggers(new) t LOOP
        EXECUTE trigger;
    END LOOP;
    EXECUTE format('SELECT array_agg(d.id) FROM textsim.%I d', 'document_' || new) INTO documents;
    EXECUTE format('SELECT textsim.%I($1, $2)', '_log_whole_clusters_' || new)
    USING new, coalesce(documents || new_ids, documents, '{}');
END $$;
