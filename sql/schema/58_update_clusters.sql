-- The clusters of tracked corpora are brought up to date: batches of logged documents go through these steps.
--
--     _logged_documents  take the ids of changed documents from the log
--     _move_to_nodes     take these documents out of their nodes, and give each the node of its words
--     _store_matches     compare new nodes with all others, and store their matches
--     _kept_groups       compute the clusters of the documents that may have changed theirs
--     _store_groups      give the clusters their ids, and write members and events
--
-- One session at a time updates a corpus. Writers do not wait for it, so a document may change at any moment. Its log
-- entry is committed with it, so a statement that sees no entry for a document sees it as it was processed. A document
-- that has an entry is left out, because it is processed again; a node is compared by a document without an entry.
--
-- A new copy joins the node of its shingles without a search only if the node has a document that was processed before,
-- and has no entry. Otherwise a match that appeared while the other copies were different would be missed. The
-- transaction that writes what follows from entries deletes them, by their ids, which are not in the order of commits.
--
-- An update does not search for the matches of a node that it knows. So _mend_tracked, and a rebuild, delete all nodes
-- and matches in the transaction that logs all documents. A rebuild moves clusters and events to the new ids of
-- documents. A document that is gone, but still a member, gets an id that no document has, so its entry removes it.
--
-- A cluster may be large, so its members are read only if they may go elsewhere. The others are its rest.
--
-- The functions that _tracking_functions() lists name the tables that are patterns for those of a tracked corpus. Each
-- tracked corpus has copies of these functions, which name its own tables, so their statements are planned once in a
-- session. The sizes of arrays and CTEs are guessed then, so a join could be a nested loop over thousands of rows, or
-- read a whole table. Therefore most of these functions forbid nested loops. They look rows up in an index by a subquery
-- or LATERAL, because EXISTS would become a join, and where they join, by `m.document_id = ANY (documents)`, too.

-- How many documents go from an old cluster, or from none, to the cluster of a representative, or to none. have_main:
-- whether these have the representative of the old cluster. The arguments are those of _store_groups().
CREATE OR REPLACE FUNCTION textsim._flows(
    documents integer[], representatives integer[], clusters bigint[], cluster_representatives integer[],
    OUT old_ids bigint[], OUT targets integer[], OUT sizes bigint[], OUT have_main boolean[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off AS $$
BEGIN
    WITH given AS MATERIALIZED (
        SELECT g.document_id, g.representative, m.cluster
        FROM unnest(documents, representatives) g (document_id, representative)
        LEFT JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
    ), old AS MATERIALIZED (
        SELECT c.id, c.representative, c.size FROM textsim.cluster c
        WHERE c.id = ANY (array(SELECT g.cluster FROM given g WHERE g.cluster IS NOT NULL) || clusters)
    ), flow (cluster, representative, size, has_main) AS (
        SELECT o.id, g.representative, count(*), bool_or(g.document_id = o.representative)
        FROM given g LEFT JOIN old o ON o.id = g.cluster
        GROUP BY o.id, g.representative
        UNION ALL
        -- The rest of a cluster stays with its representative.
        SELECT o.id, r.representative, o.size - count(g.document_id),
            bool_or(g.document_id = o.representative) IS NOT TRUE
        FROM unnest(clusters, cluster_representatives) r (id, representative)
        JOIN old o ON o.id = r.id LEFT JOIN given g ON g.cluster = o.id
        GROUP BY o.id, r.representative, o.size HAVING o.size > count(g.document_id)
    )
    SELECT array_agg(f.cluster), array_agg(f.representative), array_agg(f.size), array_agg(f.has_main) FROM flow f
    INTO old_ids, targets, sizes, have_main;
END $$;

-- By new cluster: ids, kept, its representative, sizes, and are_new. By old cluster: old_ids, and heirs, the id of the
-- cluster that continues it, or NULL. The arguments are those of _store_groups().
-- One new cluster continues an old one: the one with its representative, or else with most of its members. If it
-- continues several, it takes the id of the largest; of equals, the oldest.
CREATE OR REPLACE FUNCTION textsim._continue_clusters(
    documents integer[], representatives integer[], clusters bigint[], cluster_representatives integer[],
    OUT ids bigint[], OUT kept integer[], OUT sizes integer[], OUT are_new boolean[], OUT old_ids bigint[],
    OUT heirs bigint[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    flows record;
BEGIN
    flows := textsim._flows(documents, representatives, clusters, cluster_representatives);
    WITH flow (cluster, representative, size, has_main) AS MATERIALIZED (
        SELECT * FROM unnest(flows.old_ids, flows.targets, flows.sizes, flows.have_main)
    ), new AS MATERIALIZED (
        SELECT f.representative, sum(f.size)::integer AS size
        FROM flow f WHERE f.representative IS NOT NULL GROUP BY f.representative HAVING sum(f.size) > 1
    ), heir AS MATERIALIZED (  -- of each old cluster
        SELECT DISTINCT ON (f.cluster) f.cluster, f.cluster_size, n.representative
        FROM (SELECT f.*, sum(f.size) OVER (PARTITION BY f.cluster) AS cluster_size FROM flow f) f
        LEFT JOIN new n ON n.representative = f.representative
        WHERE f.cluster IS NOT NULL
        ORDER BY f.cluster, n.representative IS NULL, f.has_main DESC, f.size DESC, n.representative
    ), taken AS (  -- the old cluster whose id a new one takes
        SELECT DISTINCT ON (h.representative) h.representative, h.cluster
        FROM heir h WHERE h.representative IS NOT NULL
        ORDER BY h.representative, h.cluster_size DESC, h.cluster
    ), identified AS MATERIALIZED (
        SELECT coalesce(t.cluster, nextval('textsim.cluster_id_seq')) AS id, n.representative, n.size,
            t.cluster IS NULL AS is_new
        FROM new n LEFT JOIN taken t ON t.representative = n.representative
    )
    SELECT n.*, o.*
    FROM (SELECT array_agg(i.id), array_agg(i.representative), array_agg(i.size), array_agg(i.is_new) FROM identified i) n
    CROSS JOIN (
        SELECT array_agg(h.cluster), array_agg(i.id)
        FROM heir h LEFT JOIN identified i ON i.representative = h.representative) o
    INTO ids, kept, sizes, are_new, old_ids, heirs;
END $$;

-- Store the clusters of documents, given by the representative of each, NULL for a document that is in no node.
-- clusters, cluster_representatives: those that have other members, too, which stay with their representatives.
CREATE OR REPLACE FUNCTION textsim._store_groups(
    documents integer[], representatives integer[], clusters bigint[], cluster_representatives integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    stored record;
    -- By document that goes to another cluster: documents, and from_ids and to_ids, the clusters; NULL for none.
    moves record;
BEGIN
    stored := textsim._continue_clusters(documents, representatives, clusters, cluster_representatives);
    -- If all others leave a representative, it is in no cluster.
    SELECT documents || array_agg(k.id), representatives || array_agg(NULL::integer) INTO documents, representatives
    FROM (
        SELECT unnest(cluster_representatives)
        EXCEPT SELECT unnest(documents) EXCEPT SELECT unnest(stored.kept)
    ) k (id);
    SELECT array_agg(g.document_id) AS documents, array_agg(m.cluster) AS from_ids, array_agg(n.id) AS to_ids
    FROM unnest(documents, representatives) g (document_id, representative)
    LEFT JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
    LEFT JOIN unnest(stored.ids, stored.kept) n (id, representative) ON n.representative = g.representative
    WHERE n.id IS DISTINCT FROM m.cluster
    INTO moves;
    WITH new AS MATERIALIZED (SELECT n.id, n.is_new FROM unnest(stored.ids, stored.are_new) n (id, is_new)),
    heir AS MATERIALIZED (SELECT h.old, h.new FROM unnest(stored.old_ids, stored.heirs) h (old, new)),
    move AS MATERIALIZED (
        SELECT m.document_id, m.old, m.new, n.is_new
        FROM unnest(moves.documents, moves.from_ids, moves.to_ids) m (document_id, old, new)
        LEFT JOIN new n ON n.id = m.new
        -- A document that goes to the heir of its cluster has no event of its own.
        LEFT JOIN heir h ON h.old = m.old AND h.new = m.new
        WHERE h.old IS NULL
    )
    INSERT INTO textsim.cluster_event (id, what, cluster, document_id, other)
    SELECT nextval('textsim.cluster_id_seq'), o.what, o.cluster, o.document_id, o.other
    FROM (
        SELECT 1 AS step, 'created' AS what, n.id AS cluster, NULL::integer AS document_id, NULL::bigint AS other
        FROM new n WHERE n.is_new
        UNION ALL
        SELECT DISTINCT 2, 'split', m.old, NULL::integer, m.new
        FROM move m WHERE m.is_new AND m.old IS NOT NULL
        UNION ALL
        SELECT 3, CASE WHEN m.new IS NULL THEN 'left' ELSE 'joined' END, coalesce(m.new, m.old), m.document_id,
            CASE WHEN m.new IS NOT NULL THEN m.old END
        FROM move m
        UNION ALL
        SELECT 4, CASE WHEN h.new IS NULL THEN 'ended' ELSE 'merged' END, h.old, NULL, h.new
        FROM heir h WHERE h.new IS DISTINCT FROM h.old
        ORDER BY step, cluster, document_id, other
    ) o;
    WITH move AS MATERIALIZED (
        SELECT m.document_id, m.new FROM unnest(moves.documents, moves.to_ids) m (document_id, new)
    ), gone AS (
        DELETE FROM textsim.member m USING move v
        WHERE m.document_id = v.document_id AND v.new IS NULL AND m.document_id = ANY (moves.documents)
    )
    INSERT INTO textsim.member AS m (document_id, cluster)
    SELECT v.document_id, v.new FROM move v WHERE v.new IS NOT NULL
    ON CONFLICT (document_id) DO UPDATE SET cluster = excluded.cluster;
    PERFORM textsim._end_clusters(array_agg(h.old), array_agg(h.new))
    FROM unnest(stored.old_ids, stored.heirs) h (old, new)
    WHERE h.new IS DISTINCT FROM h.old;
    INSERT INTO textsim.cluster AS c (id, representative, size)
    SELECT n.id, n.representative, n.size
    FROM unnest(stored.ids, stored.kept, stored.sizes) n (id, representative, size)
    ON CONFLICT (id) DO UPDATE SET representative = excluded.representative, size = excluded.size
    WHERE (c.representative, c.size) <> (excluded.representative, excluded.size);
END $$;

-- Remove clusters; the members and aliases of each become those of its heir, if it has one.
CREATE OR REPLACE FUNCTION textsim._end_clusters(clusters bigint[], heirs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
BEGIN
    UPDATE textsim.member m SET cluster = h.new FROM unnest(clusters, heirs) h (old, new)
    WHERE m.cluster = h.old AND m.cluster = ANY (clusters);
    DELETE FROM textsim.cluster c WHERE c.id = ANY (clusters);
    UPDATE textsim.cluster_alias a SET new = h.new FROM unnest(clusters, heirs) h (old, new)
    WHERE a.new = h.old AND a.new = ANY (clusters) AND h.new IS NOT NULL;
    INSERT INTO textsim.cluster_alias (old, new)
    SELECT h.old, h.new FROM unnest(clusters, heirs) h (old, new) WHERE h.new IS NOT NULL;
END $$;

-- Bring the clusters of a corpus up to date with changed documents.
CREATE OR REPLACE FUNCTION textsim._update_batch(c textsim.corpus, threshold double precision, logged integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    moved record;
    matches bigint;
    grouped record;
    gone integer[];
BEGIN
    moved := textsim._move_to_nodes(c, logged);
    matches := textsim._store_matches(c, threshold, moved.searched);
    IF matches = 0 AND moved.old_nodes = '{}'
        AND (SELECT count(*) FROM textsim.node n WHERE n.node = ANY (moved.changed)) = cardinality(moved.changed)
        AND NOT EXISTS (SELECT FROM textsim.member m WHERE m.document_id = ANY (logged))
    THEN
        -- The documents are new, and no other document is like them.
        RETURN;
    END IF;
    grouped := textsim._kept_groups(
        c, logged, moved.changed, moved.searched, moved.old_nodes, moved.old_firsts);
    -- A document that is gone, or has no words, is in no cluster.
    gone := array(SELECT unnest(logged) EXCEPT SELECT unnest(grouped.documents));
    PERFORM textsim._store_groups(
        gone || grouped.documents, array_fill(NULL::integer, ARRAY[cardinality(gone)]) || grouped.representatives,
        grouped.clusters, grouped.cluster_representatives);
END $$;

-- Update the clusters with some log entries, or one; how many documents: 0 if none are logged, or another session
-- updates them and this one does not wait.
CREATE OR REPLACE FUNCTION textsim._update_clusters(
    corpus text, waits boolean DEFAULT true, entry_id bigint DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
-- A worker forbids these joins, because its own statements read few rows.
SET enable_hashjoin = on SET enable_mergejoin = on
-- Plans that are forbidden cost so much that each statement would be compiled, which takes half a second.
SET jit = off AS $$
DECLARE
    c textsim.corpus;
    tracking textsim.tracked;
    logged integer[];
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'clusters cannot be updated at the isolation level %',
            current_setting('transaction_isolation')
            USING ERRCODE = 'feature_not_supported',
                HINT = 'SET default_transaction_isolation = ''read committed''';
    END IF;
    -- The statements after the lock see what its last holder has committed, which may be a rebuilt corpus.
    LOOP
        c := textsim._corpus(corpus);
        IF NOT textsim._lock_clusters(c.id, waits) THEN
            RETURN 0;
        END IF;
        EXIT WHEN c.id = (SELECT k.id FROM textsim.corpus k WHERE k.name = corpus);
    END LOOP;
    tracking := textsim._tracking(c);
    logged := textsim._logged_documents(c.id, entry_id);
    PERFORM textsim._remove_old_events(c.id);
    IF logged IS NULL OR logged = '{}' THEN
        RETURN 0;
    END IF;
    logged := array(SELECT DISTINCT unnest(logged));
    -- A document that was set aside has another try.
    DELETE FROM textsim.pending p WHERE p.kind = 'failed' AND p.corpus_id = c.id AND p.document_ids <@ logged;
    EXECUTE format('SELECT textsim.%I($1, $2, $3)', '_update_batch_' || c.id)
    USING c, tracking.threshold, logged;
    RETURN cardinality(logged);
END $$;

-- Whether the transaction that writes documents of a corpus updates their clusters.
CREATE OR REPLACE FUNCTION textsim._is_inline(corpus_id integer) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM textsim.tracked t WHERE t.corpus_id = _is_inline.corpus_id AND t.mode = 'inline');
END $$;

-- Update the clusters of the documents that this transaction has logged. Its first entry does so for all its entries.
-- The writers of an attached table may have no right to write the tables of the corpus.
CREATE OR REPLACE FUNCTION textsim._update_at_commit() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM textsim._update_clusters(c.name, true, NEW.id)
    FROM textsim.corpus c JOIN textsim.tracked t ON t.corpus_id = c.id
    WHERE c.id = NEW.corpus_id AND EXISTS (SELECT FROM textsim.pending p WHERE p.id = NEW.id);
    RETURN NULL;
END $$;

DO $do$ BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_trigger t WHERE t.tgrelid = 'textsim.pending'::regclass AND t.tgname = 'update_at_commit')
    THEN
        CREATE CONSTRAINT TRIGGER update_at_commit AFTER INSERT ON textsim.pending DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.kind = 'cluster' AND textsim._is_inline(NEW.corpus_id))
        EXECUTE FUNCTION textsim._update_at_commit();
    END IF;
END $do$;

-- The tracked corpus with a name, or an error; for NULL, all tracked corpora that the current role may write.
CREATE OR REPLACE FUNCTION textsim._tracked_corpora(corpus text) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF corpus IS NOT NULL THEN
        PERFORM textsim._tracking(textsim._corpus(corpus));
        RETURN ARRAY[corpus];
    END IF;
    RETURN array(
        SELECT c.name FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id
        WHERE has_table_privilege(to_regclass('textsim.node_' || c.id), 'UPDATE')
        ORDER BY c.id);
END $$;

-- A procedure with a SET clause cannot commit, so this one runs with the caller's search_path. It qualifies each
-- function, and uses no operators, because the search_path could replace them.
CREATE OR REPLACE PROCEDURE textsim.update_clusters(corpus text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    name pg_catalog.text;
    updated pg_catalog.int4;
    fault pg_catalog.text;
BEGIN
    CALL textsim._check_no_transaction('update_clusters');
    FOREACH name IN ARRAY textsim._tracked_corpora(corpus) LOOP
        LOOP
            BEGIN
                updated := textsim._update_clusters(name);
            EXCEPTION
                WHEN insufficient_resources OR operator_intervention OR system_error OR transaction_rollback THEN
                    RAISE;
                WHEN OTHERS THEN
                    IF corpus IS NOT NULL THEN
                        RAISE;
                    END IF;
                    fault := pg_catalog.format('clusters of corpus %s are not updated: %s', name, SQLERRM);
                    RAISE WARNING '%', fault;
                    updated := 0;
            END;
            COMMIT;
            EXIT WHEN pg_catalog.int4eq(updated, 0);
        END LOOP;
    END LOOP;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION '%', fault USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END $$;
COMMENT ON PROCEDURE textsim.update_clusters(text)
    IS 'Brings the clusters of a tracked corpus up to date with its documents, or those of all tracked corpora that '
    'the role may write. A worker does the same. It commits after each five thousand documents, so call it outside '
    'a transaction block. If it is interrupted, the next call goes on. A corpus that fails stops no other, and the '
    'error comes at the end. Raises an error if the corpus is not tracked.';
