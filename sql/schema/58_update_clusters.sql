-- The clusters of tracked corpora are brought up to date: batches of logged documents go through these steps.
--
--     _logged_documents  take the ids of changed documents from the log
--     _hashes_of         read the documents, and hash their words
--     _move_to_nodes     take these documents out of their nodes, and give each the node of its words
--     _store_links       compare new nodes with all others, and store their matches
--     _kept_groups       compute the clusters of the documents that may have changed theirs
--     _store_groups      give the clusters their ids, and write members and events
--
-- One session at a time updates a corpus. Writers do not wait for it, so a document may change at any moment. Its
-- log entry is committed with it. So a statement that sees no entry for a document sees it as it was processed, and a
-- document that has an entry is left out: it is processed again. A node without matches to search with is one that
-- has a document without an entry.
--
-- A cluster may be large, so its members are read only if they may go elsewhere. The others are its rest.
--
-- The functions that _tracking_functions() lists name the tables that are patterns for those of a tracked corpus. Each
-- tracked corpus has copies of these functions, which name its own tables, so their statements are planned once in a
-- session. The sizes of arrays and CTEs are guessed then. So a function forbids nested loops, and a subquery, or
-- LATERAL, looks rows up in an index.

-- Store the clusters of documents, given by the representative of each, NULL for a document that is gone. clusters,
-- rests: the clusters that have further members, and their representatives.
-- The heir of an old cluster is the new cluster that has its representative, or else most of its members. A new
-- cluster keeps, of the clusters whose heir it is, the id of the largest, or of the oldest of these.
CREATE OR REPLACE FUNCTION textsim._store_groups(
    documents integer[], representatives integer[], clusters bigint[], rests integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    -- By new cluster: its id, its representative and its size, and whether the id is new.
    ids bigint[];
    roots integer[];
    sizes integer[];
    are_new boolean[];
    -- By old cluster: its id, and the id of its heir, or NULL.
    old_ids bigint[];
    heirs bigint[];
    scattered bigint[];  -- the clusters whose rests do not go to their heirs
    alone integer[];  -- the documents that remain of clusters
BEGIN
    WITH given AS MATERIALIZED (
        SELECT g.document_id, g.root FROM unnest(documents, representatives) g (document_id, root)
    ), old AS MATERIALIZED (
        SELECT m.cluster, g.document_id, g.root
        FROM given g JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
    ), known AS MATERIALIZED (
        SELECT c.id, c.representative, c.size FROM textsim.cluster c
        WHERE c.id = ANY (array(SELECT o.cluster FROM old o) || clusters)
    ), rest AS MATERIALIZED (
        SELECT k.id, r.root, k.size - count(o.document_id) AS members,
            bool_or(o.document_id = k.representative) IS NOT TRUE AS is_main
        FROM unnest(clusters, rests) r (id, root) JOIN known k ON k.id = r.id LEFT JOIN old o ON o.cluster = k.id
        GROUP BY k.id, r.root, k.size HAVING k.size > count(o.document_id)
    ), cluster AS MATERIALIZED (
        SELECT p.root, sum(p.members)::integer AS size
        FROM (
            SELECT g.root, 1 FROM given g WHERE g.root IS NOT NULL UNION ALL SELECT r.root, r.members FROM rest r
        ) p (root, members)
        GROUP BY p.root HAVING sum(p.members) > 1
    ), part AS MATERIALIZED (
        SELECT p.id, p.size, n.root, sum(p.members) AS members, bool_or(p.is_main) AS is_main
        FROM (
            SELECT k.id, k.size, o.root, 1 AS members, o.document_id = k.representative AS is_main
            FROM old o JOIN known k ON k.id = o.cluster
            UNION ALL SELECT k.id, k.size, r.root, r.members, r.is_main FROM rest r JOIN known k ON k.id = r.id
        ) p
        LEFT JOIN cluster n ON n.root = p.root
        GROUP BY p.id, p.size, n.root
    ), heir AS MATERIALIZED (
        SELECT DISTINCT ON (p.id) p.id, p.size, p.root FROM part p
        ORDER BY p.id, p.root IS NULL, p.is_main DESC, p.members DESC, p.root
    ), kept_id AS (
        SELECT DISTINCT ON (h.root) h.root, h.id FROM heir h
        WHERE h.root IS NOT NULL ORDER BY h.root, h.size DESC, h.id
    ), numbered AS MATERIALIZED (
        SELECT coalesce(i.id, nextval('textsim.cluster_id_seq')) AS id, k.root, k.size, i.id IS NULL AS is_new
        FROM cluster k LEFT JOIN kept_id i ON i.root = k.root
    )
    SELECT n.*, h.*, r.*
    FROM (
        SELECT array_agg(n.id), array_agg(n.root), array_agg(n.size), array_agg(n.is_new) FROM numbered n
    ) n
    CROSS JOIN (
        SELECT array_agg(h.id), array_agg(n.id) FROM heir h LEFT JOIN numbered n ON n.root = h.root
    ) h
    CROSS JOIN (
        SELECT array_agg(r.id) FILTER (WHERE k.root IS DISTINCT FROM h.root),
            array_agg(r.root) FILTER (WHERE k.root IS NULL)
        FROM rest r JOIN heir h ON h.id = r.id LEFT JOIN cluster k ON k.root = r.root
    ) r
    INTO ids, roots, sizes, are_new, old_ids, heirs, scattered, alone;
    IF scattered IS NOT NULL THEN
        -- Each of their documents goes to another cluster, which is an event.
        SELECT documents || array_agg(m.document_id), representatives || array_agg(r.root)
        FROM textsim.member m JOIN unnest(clusters, rests) r (id, root) ON r.id = m.cluster
        WHERE m.cluster = ANY (scattered) AND m.document_id NOT IN (SELECT unnest(documents))
        INTO documents, representatives;
        SELECT array_agg(r.id), array_agg(r.root) INTO clusters, rests
        FROM unnest(clusters, rests) r (id, root) WHERE r.id NOT IN (SELECT unnest(scattered));
        PERFORM textsim._store_groups(documents, representatives, clusters, rests);
        RETURN;
    END IF;
    documents := documents || alone;
    representatives := representatives || array_fill(NULL::integer, ARRAY[coalesce(cardinality(alone), 0)]);
    -- A document that goes to the heir of its cluster has no event of its own.
    WITH cluster AS MATERIALIZED (SELECT k.id, k.root, k.is_new FROM unnest(ids, roots, are_new) k (id, root, is_new)),
    heir AS MATERIALIZED (SELECT h.old, h.new FROM unnest(old_ids, heirs) h (old, new)),
    move AS MATERIALIZED (
        SELECT g.document_id, m.cluster AS old, k.id AS new, k.is_new
        FROM unnest(documents, representatives) g (document_id, root)
        LEFT JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
        LEFT JOIN cluster k ON k.root = g.root
        LEFT JOIN heir h ON h.old = m.cluster
        WHERE k.id IS DISTINCT FROM coalesce(h.new, m.cluster)
    )
    INSERT INTO textsim.cluster_event (id, what, cluster, document_id, other)
    SELECT nextval('textsim.cluster_id_seq'), o.what, o.cluster, o.document_id, o.other
    FROM (
        SELECT 1 AS step, 'created' AS what, k.id AS cluster, NULL::integer AS document_id, NULL::bigint AS other
        FROM cluster k WHERE k.is_new
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
        SELECT g.document_id, k.id
        FROM unnest(documents, representatives) g (document_id, root)
        LEFT JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
        LEFT JOIN unnest(ids, roots) k (id, root) ON k.root = g.root
        WHERE k.id IS DISTINCT FROM m.cluster
    ), gone AS (
        DELETE FROM textsim.member m USING move v WHERE m.document_id = v.document_id AND v.id IS NULL
            AND m.document_id = ANY (documents)
    )
    INSERT INTO textsim.member AS m (document_id, cluster)
    SELECT v.document_id, v.id FROM move v WHERE v.id IS NOT NULL
    ON CONFLICT (document_id) DO UPDATE SET cluster = excluded.cluster;
    SELECT array_agg(h.old), array_agg(h.new) INTO old_ids, heirs
    FROM unnest(old_ids, heirs) h (old, new) WHERE h.new IS DISTINCT FROM h.old;
    IF old_ids IS NOT NULL THEN
        UPDATE textsim.member m SET cluster = h.new FROM unnest(old_ids, heirs) h (old, new)
        WHERE m.cluster = h.old AND m.cluster = ANY (old_ids);
        DELETE FROM textsim.cluster c WHERE c.id = ANY (old_ids);
        WITH heir AS MATERIALIZED (
            SELECT h.old, h.new FROM unnest(old_ids, heirs) h (old, new) WHERE h.new IS NOT NULL
        ), renewed AS (
            UPDATE textsim.cluster_alias a SET new = h.new FROM heir h WHERE a.new = h.old AND a.new = ANY (old_ids)
        )
        INSERT INTO textsim.cluster_alias (old, new) SELECT h.old, h.new FROM heir h;
    END IF;
    INSERT INTO textsim.cluster AS c (id, representative, size)
    SELECT k.id, k.root, k.size FROM unnest(ids, roots, sizes) k (id, root, size)
    ON CONFLICT (id) DO UPDATE SET representative = excluded.representative, size = excluded.size
    WHERE (c.representative, c.size) <> (excluded.representative, excluded.size);
END $$;

-- Bring the clusters of a corpus up to date with changed documents.
CREATE OR REPLACE FUNCTION textsim._update_batch(
    c textsim.corpus, threshold double precision, logged integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    corpus_origin integer := coalesce(c.origin, c.id);
    hashed record;
    moved record;
    grouped record;
    gone integer[];
    matches bigint;
BEGIN
    hashed := textsim._hashes_of(corpus_origin, logged);
    moved := textsim._move_to_nodes(c, logged, hashed.ids, hashed.hashes);
    matches := textsim._store_links(c, threshold, moved.searched);
    IF matches = 0 AND moved.old_nodes IS NULL
        AND (SELECT count(*) FROM textsim.node n WHERE n.node = ANY (moved.nodes)) = cardinality(moved.nodes)
        AND NOT EXISTS (SELECT FROM textsim.member m WHERE m.document_id = ANY (logged))
    THEN
        -- The documents are new, and no other document is like them.
        RETURN;
    END IF;
    grouped := textsim._kept_groups(
        c, logged, moved.nodes || textsim._nodes_after_kept(moved.neighbours, moved.lost_firsts), moved.searched,
        moved.old_nodes, moved.old_firsts);
    -- A document that is gone, or has no words, is in no cluster.
    gone := array(SELECT unnest(logged) EXCEPT SELECT unnest(grouped.documents));
    PERFORM textsim._store_groups(
        gone || grouped.documents, array_fill(NULL::integer, ARRAY[cardinality(gone)]) || grouped.representatives,
        grouped.clusters, grouped.rests);
END $$;

-- Update the clusters with some log entries, or one; how many documents: 0 if none are logged, or another session
-- updates them and this one does not wait.
CREATE OR REPLACE FUNCTION textsim._update_clusters(
    corpus text, waits boolean DEFAULT true, entry_id bigint DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
-- A worker forbids these joins, because its own statements read few rows.
SET enable_hashjoin = on
SET enable_mergejoin = on
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
        c := textsim._required_corpus(corpus);
        IF NOT textsim._lock_clusters(c.id, waits) THEN
            RETURN 0;
        END IF;
        EXIT WHEN c.id = (SELECT k.id FROM textsim.corpus k WHERE k.name = corpus);
    END LOOP;
    tracking := textsim._tracking(c);
    logged := textsim._logged_documents(c.id, entry_id);
    IF logged IS NULL OR logged = '{}' THEN
        PERFORM textsim._remove_old_events(c.id);
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

-- Update the clusters of documents that this transaction has logged.
-- The writers of an attached table may have no right to write the tables of the corpus.
CREATE OR REPLACE FUNCTION textsim._update_at_commit() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM textsim._update_clusters(c.name, true, NEW.id)
    FROM textsim.corpus c JOIN textsim.tracked t ON t.corpus_id = c.id WHERE c.id = NEW.corpus_id;
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
