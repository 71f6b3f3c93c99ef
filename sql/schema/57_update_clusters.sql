-- The clusters of tracked corpora are brought up to date: batches of logged documents go through these steps.
--
--     _logged_documents  take the ids of changed documents from the log
--     _set_hashes        read the documents, and hash their shingles
--     _move_to_nodes     give each document the node of its shingles, and find the nodes to search with
--     _find_matches      compare new nodes with all others
--     _connected_nodes   walk along the matches: only what is connected to a change can change
--     _group_nodes       compute the clusters of these nodes
--     _store_groups      give the clusters their ids, and write members and events
--
-- One session at a time updates a corpus. Writers do not wait for it, so a document may change at any moment. Its
-- log entry is committed with it. So a statement that sees no entry for a document sees it as it was processed, and a
-- document that has an entry is left out: it is processed again. A node without matches to search with is one that
-- has a document without an entry.
--
-- Each statement is planned when it is executed, so its plan fits the sizes of its arrays.

-- Private functions

CREATE FUNCTION textsim._set_hash(c textsim.corpus, word_ids integer[], form text, scope text) RETURNS uuid
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shingles text[] := textsim._shingles_of_form(
        coalesce(form, textsim._normal_form_of(word_ids)), c.unit, c.shingle_length);
BEGIN
    -- No shingle has a line break, and none is empty. Nobody can find two sets with one hash.
    RETURN encode(substr(sha256(convert_to(
        (SELECT string_agg(s, E'\n' ORDER BY s COLLATE "C") FROM unnest(shingles) s) || E'\n\n' || coalesce(scope, ''),
        'UTF8')), 1, 16), 'hex')::uuid;
END $$;
COMMENT ON FUNCTION textsim._set_hash(textsim.corpus, integer[], text, text)
    IS 'the hash of the shingles and the scope of a document, given by its word ids or its normal form';

CREATE FUNCTION textsim._logged_documents(corpus_id integer, entry_id bigint) RETURNS integer[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The entries are read in the order of their index, whatever the statistics are.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    entry record;
    entries bigint[] := '{}';
    documents integer[];
BEGIN
    FOR entry IN
        SELECT p.id, p.document_ids FROM textsim.pending p
        WHERE p.kind = 'cluster' AND p.corpus_id = _logged_documents.corpus_id
            AND (entry_id IS NULL OR p.id = entry_id)
        ORDER BY p.corpus_id, p.id
    LOOP
        entries := entries || entry.id;
        documents := documents || entry.document_ids;
        EXIT WHEN cardinality(documents) >= 1000;
    END LOOP;
    PERFORM textsim._delete_entries(entries);
    RETURN documents;
END $$;
COMMENT ON FUNCTION textsim._logged_documents(integer, bigint)
    IS 'the documents of the first log entries of a tracked corpus, a thousand or more, or those of one entry; the '
    'entries are deleted. NULL if there are none';

-- A function of its own, because _move_to_nodes has settings, and words are looked up by nested loops.
CREATE FUNCTION textsim._set_hashes(
    c textsim.corpus, documents integer[], OUT ids integer[], OUT hashes uuid[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($query$
        SELECT array_agg(d.id), array_agg(textsim._set_hash($2, d.word_ids, d.normal_form, d.scope))
        FROM textsim.%I d WHERE d.id = ANY ($1) AND d.shingle_count > 0
        $query$, 'document_' || c.id) INTO ids, hashes USING documents, c;
END $$;
COMMENT ON FUNCTION textsim._set_hashes(textsim.corpus, integer[])
    IS 'those of the documents that are stored and have words, and their hashes';

CREATE FUNCTION textsim._move_to_nodes(
    c textsim.corpus, documents integer[], ids integer[], hashes uuid[], OUT searched integer[],
    OUT seeds integer[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The sizes of CTEs are guessed, and a nested loop over two large ones would not end.
SET enable_nestloop = off
AS $$
DECLARE
    old_nodes integer[];
    new_nodes integer[];
    empty_nodes integer[];
    neighbours integer[];
BEGIN
    EXECUTE format('SELECT array_agg(DISTINCT n.node) FROM textsim.%I n WHERE n.document_id = ANY ($1)',
        'node_' || c.id) INTO old_nodes USING documents;
    EXECUTE format($query$
        DELETE FROM textsim.%I n
        WHERE n.document_id = ANY ($1)
            AND (n.document_id, n.set_hash) NOT IN (SELECT h.id, h.hash FROM unnest($2, $3) h (id, hash))
        $query$, 'node_' || c.id) USING documents, ids, hashes;
    EXECUTE format($query$
        WITH document AS MATERIALIZED (SELECT h.id, h.hash FROM unnest($1, $2) h (id, hash)),
        node AS MATERIALIZED (
            SELECT h.hash, coalesce(
                (SELECT n.node FROM textsim.%1$I n WHERE n.set_hash = h.hash LIMIT 1), nextval(%2$L)) AS node
            FROM (SELECT DISTINCT d.hash FROM document d) h
        )
        INSERT INTO textsim.%1$I (document_id, node, set_hash)
        SELECT d.id, n.node, d.hash FROM document d JOIN node n ON n.hash = d.hash
        ON CONFLICT (document_id) DO NOTHING
        $query$, 'node_' || c.id, format('textsim.node_%s_id_seq', c.id)) USING ids, hashes;
    EXECUTE format($query$
        SELECT coalesce(array_agg(DISTINCT n.node), '{}') FROM textsim.%I n WHERE n.document_id = ANY ($1)
        $query$, 'node_' || c.id) INTO new_nodes USING documents;
    EXECUTE format($query$
        SELECT coalesce(array_agg(o), '{}') FROM unnest($1) o
        WHERE NOT EXISTS (SELECT FROM textsim.%I n WHERE n.node = o)
        $query$, 'node_' || c.id) INTO empty_nodes USING old_nodes;
    EXECUTE format($query$
        WITH gone AS (DELETE FROM textsim.%I m WHERE m.a = ANY ($1) OR m.b = ANY ($1) RETURNING m.a, m.b)
        SELECT array_agg(g.a) || array_agg(g.b) FROM gone g
        $query$, 'match_' || c.id) INTO neighbours USING empty_nodes;
    seeds := array(
        (SELECT unnest(old_nodes) UNION SELECT unnest(new_nodes) UNION SELECT unnest(neighbours))
        EXCEPT SELECT unnest(empty_nodes));
    -- The node of a document that was processed before, and has not changed since, has all its matches.
    EXECUTE format($query$
        WITH changed AS MATERIALIZED (
            SELECT unnest($2) AS id
            UNION SELECT unnest(p.document_ids) FROM textsim.pending p
            WHERE p.corpus_id = $3 AND p.document_ids IS NOT NULL
        )
        SELECT array(
            SELECT unnest($1)
            EXCEPT SELECT n.node FROM textsim.%I n
            WHERE n.node = ANY ($1) AND n.document_id NOT IN (SELECT k.id FROM changed k))
        $query$, 'node_' || c.id) INTO searched USING new_nodes, documents, c.id;
END $$;
COMMENT ON FUNCTION textsim._move_to_nodes(textsim.corpus, integer[], integer[], uuid[])
    IS 'give changed documents their nodes, and remove the matches of nodes without documents. ids and hashes: the '
    'documents that are stored, and their hashes; searched: the nodes whose matches must be found; seeds: the nodes '
    'from which clusters may have changed';

-- STABLE and one statement: it sees the documents as they are when the log has no entries for them.
CREATE FUNCTION textsim._find_matches(c textsim.corpus, threshold double precision, nodes integer[])
RETURNS TABLE (a integer, b integer, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY EXECUTE format($query$
        WITH changed AS MATERIALIZED (
            SELECT unnest(p.document_ids) AS id FROM textsim.pending p
            WHERE p.corpus_id = $1.id AND p.document_ids IS NOT NULL
        ), searching AS MATERIALIZED (
            SELECT DISTINCT ON (n.node) n.node, d.id, d.shingle_count, d.scope,
                textsim._in_scope(textsim._buckets(d.signature, $1.bands, $1.rows), d.scope) AS buckets
            FROM textsim.%1$I n JOIN textsim.%2$I d ON d.id = n.document_id
            WHERE n.node = ANY ($3) AND d.id NOT IN (SELECT k.id FROM changed k)
            ORDER BY n.node, d.id
        ), meeting AS (
            SELECT s.node, s.id, s.shingle_count, s.scope, r.document_id, count(*) AS shared
            FROM searching s CROSS JOIN LATERAL unnest(s.buckets) q (bucket)
            JOIN textsim.%3$I r ON r.bucket = q.bucket AND r.document_id <> s.id
            GROUP BY s.node, s.id, s.shingle_count, s.scope, r.document_id
        ), candidate AS MATERIALIZED (
            SELECT DISTINCT ON (least(m.node, n.node), greatest(m.node, n.node))
                m.id AS x, d.id AS y, m.shingle_count + d.shingle_count AS shingles
            FROM meeting m
            JOIN textsim.%1$I n ON n.document_id = m.document_id AND n.node <> m.node
            JOIN textsim.%2$I d ON d.id = m.document_id
            WHERE d.scope IS NOT DISTINCT FROM m.scope
                -- Looked up in a hash table. An anti-join could be a nested loop, because sizes are guessed.
                AND d.id NOT IN (SELECT k.id FROM changed k)
                AND textsim._is_candidate(
                    m.shared, m.shingle_count, d.shingle_count, CASE WHEN $1.bands IS NULL THEN $1.threshold END)
                AND least(m.shingle_count, d.shingle_count)::double precision
                    / greatest(m.shingle_count, d.shingle_count) >= $2
        ), batch AS (
            SELECT array_agg(b.x) AS xs, array_agg(b.y) AS ys
            FROM (
                SELECT k.x, k.y,
                    sum(k.shingles) OVER (ORDER BY k.x, k.y ROWS UNBOUNDED PRECEDING) / 400000 AS number
                FROM candidate k
            ) b
            GROUP BY b.number
        )
        SELECT least(x.node, y.node), greatest(x.node, y.node), v.similarity
        FROM batch b CROSS JOIN LATERAL textsim._verify_pairs($1, b.xs, b.ys, $2) v
        JOIN textsim.%1$I x ON x.document_id = v.x
        JOIN textsim.%1$I y ON y.document_id = v.y
        $query$, 'node_' || c.id, 'document_' || c.id, 'band_' || c.id)
    USING c, threshold, nodes;
END $$;
COMMENT ON FUNCTION textsim._find_matches(textsim.corpus, double precision, integer[])
    IS 'the matches of nodes with all nodes, found anew from their documents';

CREATE FUNCTION textsim._connected_nodes(corpus_id integer, seeds integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
-- Each round looks its nodes up in the indexes.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    nodes integer[];
BEGIN
    EXECUTE format($query$
        WITH RECURSIVE walk AS (
            SELECT unnest($1) AS node
            UNION
            SELECT e.node FROM walk w CROSS JOIN LATERAL (
                SELECT m.b FROM textsim.%1$I m WHERE m.a = w.node
                UNION ALL SELECT m.a FROM textsim.%1$I m WHERE m.b = w.node
            ) e (node)
        )
        SELECT array_agg(w.node) FROM walk w
        $query$, 'match_' || corpus_id) INTO nodes USING seeds;
    RETURN nodes;
END $$;
COMMENT ON FUNCTION textsim._connected_nodes(integer, integer[])
    IS 'the nodes that matches lead to from these nodes, and these nodes';

-- Nodes are numbered in the order of their first documents. If the first document of a node is kept, its copies are
-- members of its cluster. Otherwise no copy is kept, but a later copy may be nearer to a document that was kept
-- meanwhile.
CREATE FUNCTION textsim._group_nodes(
    corpus_id integer, linkage text, nodes integer[], OUT documents integer[], OUT representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
-- The sizes of CTEs are guessed, and a nested loop over two large ones would not end.
SET enable_nestloop = off
AS $$
DECLARE
    firsts integer[];
    links record;
    roots integer[];
BEGIN
    EXECUTE format($query$
        SELECT array_agg(f.node ORDER BY f.first), array_agg(f.first ORDER BY f.first)
        FROM (
            SELECT n.node, min(n.document_id) AS first FROM textsim.%I n WHERE n.node = ANY ($1) GROUP BY n.node
        ) f
        $query$, 'node_' || corpus_id) INTO nodes, firsts USING nodes;
    IF nodes IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format($query$
        WITH node AS MATERIALIZED (SELECT k.id, k.place::integer FROM unnest($1) WITH ORDINALITY k (id, place))
        SELECT array_agg(x.place) AS lefts, array_agg(y.place) AS rights, array_agg(m.similarity) AS similarities
        FROM textsim.%I m JOIN node x ON x.id = m.a JOIN node y ON y.id = m.b
        WHERE m.a = ANY ($1)
        $query$, 'match_' || corpus_id) INTO links USING nodes;
    IF linkage = 'single' THEN
        SELECT l.roots INTO roots FROM textsim._single_linkage(
            links.lefts, links.rights, links.similarities, cardinality(nodes)) l;
    ELSE
        SELECT l.roots INTO roots FROM textsim._kept_linkage(
            links.lefts, links.rights, links.similarities, array(SELECT generate_series(1, cardinality(nodes)))) l;
    END IF;
    EXECUTE format($query$
        WITH node AS MATERIALIZED (
            SELECT k.id, k.first, k.root, k.place::integer
            FROM unnest($1, $2, $3) WITH ORDINALITY k (id, first, root, place)
        ), kept AS MATERIALIZED (
            SELECT x.id, y.first, l.similarity
            FROM (
                SELECT l.x, l.y, l.similarity FROM unnest($4, $5, $6) l (x, y, similarity)
                UNION ALL SELECT l.y, l.x, l.similarity FROM unnest($4, $5, $6) l (x, y, similarity)
            ) l
            JOIN node x ON x.place = l.x AND x.root <> x.place
            JOIN node y ON y.place = l.y AND y.root = y.place
            WHERE $7 = 'kept'
        )
        SELECT array_agg(o.document_id), array_agg(o.representative)
        FROM (
            SELECT DISTINCT ON (n.document_id) n.document_id, coalesce(p.first, r.first) AS representative
            FROM node k
            JOIN node r ON r.place = k.root
            JOIN textsim.%I n ON n.node = k.id AND n.node = ANY ($1)
            LEFT JOIN kept p ON p.id = k.id AND p.first < n.document_id
            ORDER BY n.document_id, p.similarity DESC, p.first
        ) o
        $query$, 'node_' || corpus_id)
    INTO documents, representatives
    USING nodes, firsts, roots, links.lefts, links.rights, links.similarities, linkage;
END $$;
COMMENT ON FUNCTION textsim._group_nodes(integer, text, integer[])
    IS 'the documents of connected nodes, and the representative of the cluster of each; alone, a document '
    'represents itself';

-- The heir of an old cluster is the new cluster that has its representative, or else most of its members. A new
-- cluster keeps, of the clusters whose heir it is, the id of the largest, or of the oldest of these.
CREATE FUNCTION textsim._store_groups(corpus_id integer, documents integer[], representatives integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The sizes of CTEs are guessed, and a nested loop over two large ones would not end.
SET enable_nestloop = off
AS $$
DECLARE
    sequence text := format('textsim.cluster_%s_id_seq', corpus_id);
    -- By new cluster: its id, its representative and its size, and whether the id is new.
    ids bigint[];
    roots integer[];
    sizes integer[];
    are_new boolean[];
    -- By old cluster: its id, and the id of its heir, or NULL.
    old_ids bigint[];
    heirs bigint[];
BEGIN
    EXECUTE format($query$
        WITH given AS MATERIALIZED (SELECT g.document_id, g.root FROM unnest($1, $2) g (document_id, root)),
        cluster AS MATERIALIZED (
            SELECT g.root, count(*) AS size FROM given g WHERE g.root IS NOT NULL GROUP BY g.root HAVING count(*) > 1
        ), part AS MATERIALIZED (
            SELECT o.id, o.size, k.root, count(*) AS members, bool_or(g.document_id = o.representative) AS is_main
            FROM given g
            JOIN textsim.%1$I m ON m.document_id = g.document_id AND m.document_id = ANY ($1)
            JOIN textsim.%2$I o ON o.id = m.cluster AND o.id = ANY (array(
                SELECT a.cluster FROM textsim.%1$I a WHERE a.document_id = ANY ($1)))
            LEFT JOIN cluster k ON k.root = g.root
            GROUP BY o.id, o.size, k.root
        ), heir AS MATERIALIZED (
            SELECT DISTINCT ON (p.id) p.id, p.size, p.root FROM part p
            ORDER BY p.id, p.root IS NULL, p.is_main DESC, p.members DESC, p.root
        ), kept_id AS (
            SELECT DISTINCT ON (h.root) h.root, h.id FROM heir h
            WHERE h.root IS NOT NULL ORDER BY h.root, h.size DESC, h.id
        ), numbered AS MATERIALIZED (
            SELECT coalesce(i.id, nextval($3)) AS id, k.root, k.size, i.id IS NULL AS is_new
            FROM cluster k LEFT JOIN kept_id i ON i.root = k.root
        )
        SELECT n.*, h.*
        FROM (
            SELECT array_agg(n.id), array_agg(n.root), array_agg(n.size), array_agg(n.is_new) FROM numbered n
        ) n
        CROSS JOIN (
            SELECT array_agg(h.id), array_agg(n.id) FROM heir h LEFT JOIN numbered n ON n.root = h.root
        ) h
        $query$, 'member_' || corpus_id, 'cluster_' || corpus_id)
    INTO ids, roots, sizes, are_new, old_ids, heirs USING documents, representatives, sequence;
    -- A document that goes to the heir of its cluster has no event of its own.
    EXECUTE format($query$
        WITH cluster AS MATERIALIZED (SELECT k.id, k.root, k.is_new FROM unnest($3, $4, $5) k (id, root, is_new)),
        heir AS MATERIALIZED (SELECT h.old, h.new FROM unnest($6, $7) h (old, new)),
        move AS MATERIALIZED (
            SELECT g.document_id, m.cluster AS old, k.id AS new, k.is_new
            FROM unnest($1, $2) g (document_id, root)
            LEFT JOIN textsim.%1$I m ON m.document_id = g.document_id AND m.document_id = ANY ($1)
            LEFT JOIN cluster k ON k.root = g.root
            LEFT JOIN heir h ON h.old = m.cluster
            WHERE k.id IS DISTINCT FROM coalesce(h.new, m.cluster)
        )
        INSERT INTO textsim.%2$I (id, what, cluster, document_id, other)
        SELECT nextval($8), o.what, o.cluster, o.document_id, o.other
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
        ) o
        $query$, 'member_' || corpus_id, 'cluster_event_' || corpus_id)
    USING documents, representatives, ids, roots, are_new, old_ids, heirs, sequence;
    EXECUTE format($query$
        WITH move AS MATERIALIZED (
            SELECT g.document_id, k.id
            FROM unnest($1, $2) g (document_id, root)
            LEFT JOIN textsim.%1$I m ON m.document_id = g.document_id AND m.document_id = ANY ($1)
            LEFT JOIN unnest($3, $4) k (id, root) ON k.root = g.root
            WHERE k.id IS DISTINCT FROM m.cluster
        ), gone AS (
            DELETE FROM textsim.%1$I m USING move v WHERE m.document_id = v.document_id AND v.id IS NULL
        )
        INSERT INTO textsim.%1$I AS m (document_id, cluster)
        SELECT v.document_id, v.id FROM move v WHERE v.id IS NOT NULL
        ON CONFLICT (document_id) DO UPDATE SET cluster = excluded.cluster
        $query$, 'member_' || corpus_id) USING documents, representatives, ids, roots;
    EXECUTE format('DELETE FROM textsim.%I c USING unnest($1, $2) h (old, new) '
        'WHERE c.id = h.old AND h.new IS DISTINCT FROM h.old', 'cluster_' || corpus_id) USING old_ids, heirs;
    EXECUTE format($query$
        INSERT INTO textsim.%I AS c (id, representative, size)
        SELECT k.id, k.root, k.size FROM unnest($1, $2, $3) k (id, root, size)
        ON CONFLICT (id) DO UPDATE SET representative = excluded.representative, size = excluded.size
        WHERE (c.representative, c.size) <> (excluded.representative, excluded.size)
        $query$, 'cluster_' || corpus_id) USING ids, roots, sizes;
    EXECUTE format($query$
        WITH heir AS MATERIALIZED (
            SELECT h.old, h.new FROM unnest($1, $2) h (old, new) WHERE h.new <> h.old
        ), renewed AS (
            UPDATE textsim.%1$I a SET new = h.new FROM heir h WHERE a.new = h.old
        )
        INSERT INTO textsim.%1$I (old, new) SELECT h.old, h.new FROM heir h
        $query$, 'cluster_alias_' || corpus_id) USING old_ids, heirs;
END $$;
COMMENT ON FUNCTION textsim._store_groups(integer, integer[], integer[])
    IS 'store the clusters of documents, given by the representative of each, or NULL for a document that is gone; '
    'the documents of each cluster are complete, before and after';

CREATE FUNCTION textsim._update_clusters(
    corpus text, waits boolean DEFAULT true, entry_id bigint DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- Plans that are forbidden cost so much that each statement would be compiled, which takes half a second.
SET jit = off
AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
    tracking textsim.tracked;
    logged integer[];
    hashed record;
    moved record;
    grouped record;
    gone integer[];
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'clusters cannot be updated at the isolation level %',
            current_setting('transaction_isolation')
            USING ERRCODE = 'feature_not_supported',
                HINT = 'SET default_transaction_isolation = ''read committed''';
    END IF;
    -- The statements after the lock see what its last holder has committed.
    IF NOT textsim._lock_clusters(c.id, waits) THEN
        RETURN 0;
    END IF;
    tracking := textsim._tracking(c);
    logged := textsim._logged_documents(c.id, entry_id);
    IF logged IS NULL THEN
        RETURN 0;
    END IF;
    logged := array(SELECT DISTINCT unnest(logged));
    hashed := textsim._set_hashes(c, logged);
    moved := textsim._move_to_nodes(c, logged, hashed.ids, hashed.hashes);
    EXECUTE format('INSERT INTO textsim.%I (a, b, similarity) SELECT f.a, f.b, f.similarity '
        'FROM textsim._find_matches($1, $2, $3) f ON CONFLICT (a, b) DO NOTHING', 'match_' || c.id)
    USING c, tracking.threshold, moved.searched;
    grouped := textsim._group_nodes(c.id, tracking.linkage, textsim._connected_nodes(c.id, moved.seeds));
    -- A document that is gone, or has no words, is in no cluster.
    gone := array(SELECT unnest(logged) EXCEPT SELECT unnest(grouped.documents));
    PERFORM textsim._store_groups(
        c.id, gone || grouped.documents, array_fill(NULL::integer, ARRAY[cardinality(gone)]) || grouped.representatives);
    RETURN cardinality(logged);
END $$;
COMMENT ON FUNCTION textsim._update_clusters(text, boolean, bigint)
    IS 'bring the clusters of a tracked corpus up to date with some log entries, or with one, and return the number '
    'of documents; 0 if the log has no entries, or if the caller does not wait and another session updates them';

CREATE FUNCTION textsim._tracked_corpora(corpus text) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
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
COMMENT ON FUNCTION textsim._tracked_corpora(text)
    IS 'the corpus with a name; an error if it is not tracked; NULL: the names of all tracked corpora that the '
    'current role may write';

-- Public functions

-- A procedure with a SET clause cannot commit, so this one runs with the caller's search_path. It qualifies each
-- function, and uses no operators, because the search_path could replace them.
CREATE PROCEDURE textsim.update_clusters(corpus text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    name pg_catalog.text;
    updated pg_catalog.int4;
BEGIN
    FOREACH name IN ARRAY textsim._tracked_corpora(corpus) LOOP
        LOOP
            updated := textsim._update_clusters(name);
            COMMIT;
            EXIT WHEN pg_catalog.int4eq(updated, 0);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE textsim.update_clusters(text)
    IS 'Brings the clusters of a tracked corpus up to date with its documents, or those of all tracked corpora that '
    'the role may write. A worker does the same. It commits after each thousand documents, so call it outside a '
    'transaction block. If it is interrupted, the next call goes on. Raises an error if the corpus is not tracked.';
