-- The clusters of tracked corpora are brought up to date: batches of logged documents go through these steps.
--
--     _logged_documents  take the ids of changed documents from the log
--     _hashes_of         read the documents, and hash their words
--     _move_to_nodes     take these documents out of their nodes, and give each the node of its words
--     _lost_parts        single: find the parts into which clusters fall, because nodes are gone
--     _store_links       compare new nodes with all others, and store their matches
--     _kept_groups, _joined_groups or _complete_groups
--                        compute the clusters of the documents that may have changed theirs
--     _store_groups      give the clusters their ids, and write members and events
--
-- One session at a time updates a corpus. Writers do not wait for it, so a document may change at any moment. Its
-- log entry is committed with it. So a statement that sees no entry for a document sees it as it was processed, and a
-- document that has an entry is left out: it is processed again. A node without matches to search with is one that
-- has a document without an entry.
--
-- A cluster may be large, so its members are read only if they may go elsewhere. The others are its rest.
--
-- The functions from _hashes_of to _update_batch name the tables that are patterns for those of a tracked corpus. Each
-- tracked corpus has copies of these functions, which name its own tables, so their statements are planned once in a
-- session. The sizes of arrays and CTEs are guessed then. So a function forbids nested loops, and a subquery, or
-- LATERAL, looks rows up in an index.

-- Private functions

-- A copy that has word ids, of a document that is stored as text, gets a node of its own, and the two nodes match. So
-- do documents with the same shingles in another order.
CREATE FUNCTION textsim._words_hash(word_ids integer[], form text, scope text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(
    sha256(coalesce(convert_to(form, 'UTF8'), array_send(word_ids))) || convert_to(coalesce(scope, ''), 'UTF8')
), 1, 16), 'hex')::uuid;
COMMENT ON FUNCTION textsim._words_hash(integer[], text, text)
    IS 'the hash of the words and the scope of a document, given by its word ids or its normal form';

CREATE FUNCTION textsim._logged_documents(corpus_id integer, entry_id bigint) RETURNS integer[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The entries are read in the order of their index, whatever the statistics are.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    entry record;
    entries bigint[] := '{}';
    documents integer[];
BEGIN
    FOR entry IN
        SELECT p.id, p.document_ids, p.judged_keys FROM textsim.pending p
        WHERE p.kind = 'cluster' AND p.corpus_id = _logged_documents.corpus_id
            AND (entry_id IS NULL OR p.id = entry_id)
        ORDER BY p.corpus_id, p.id
    LOOP
        entries := entries || entry.id;
        documents := documents || entry.document_ids || (textsim._judged_documents(corpus_id, entry.judged_keys)).ids;
        EXIT WHEN cardinality(documents) >= 5000;
    END LOOP;
    PERFORM textsim._delete_entries(entries);
    RETURN documents;
END $$;
COMMENT ON FUNCTION textsim._logged_documents(integer, bigint)
    IS 'the documents of the first log entries of a tracked corpus, five thousand or more, or those of one entry; the '
    'entries are deleted. NULL if there are none';

-- An array, because the planner guesses ten elements, and so looks for them in a hash table. It would guess that a long
-- log needs too large a table, and look through the whole log for each document.
CREATE FUNCTION textsim._logged_ids(corpus_id integer) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN array(
        SELECT unnest(p.document_ids) FROM textsim.pending p
        WHERE p.corpus_id = _logged_ids.corpus_id AND p.document_ids IS NOT NULL);
END $$;
COMMENT ON FUNCTION textsim._logged_ids(integer)
    IS 'the documents of a tracked corpus whose clusters must be updated, some of them twice';

CREATE FUNCTION textsim._hashes_of(
    corpus_origin integer, documents integer[], OUT ids integer[], OUT hashes uuid[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    has_verdicts boolean := textsim._has_verdicts(corpus_origin);
BEGIN
    SELECT array_agg(d.id), array_agg(CASE
        WHEN has_verdicts AND textsim._is_judged(corpus_origin, d.key) THEN textsim._judged_hash(d.id)
        ELSE textsim._words_hash(d.word_ids, d.normal_form, d.scope) END)
    FROM textsim.document d WHERE d.id = ANY (documents) AND textsim._has_node(corpus_origin, d.shingle_count, d.key)
    INTO ids, hashes;
END $$;
COMMENT ON FUNCTION textsim._hashes_of(integer, integer[])
    IS 'those of the documents that are stored and have nodes, and their hashes; the hash of a judged document, which '
    'has a node of its own, is that of its id';

CREATE FUNCTION textsim._move_to_nodes(
    c textsim.corpus, documents integer[], ids integer[], hashes uuid[], OUT nodes integer[], OUT searched integer[],
    OUT old_nodes integer[], OUT old_firsts integer[], OUT neighbours integer[], OUT lost_firsts integer[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    left_nodes integer[];  -- the nodes that are left without documents
    changed integer[];
BEGIN
    SELECT array_agg(o.node), array_agg(o.first)
    FROM (
        SELECT n.node, (
            SELECT f.document_id FROM textsim.node f WHERE f.node = n.node ORDER BY f.document_id LIMIT 1) AS first
        FROM textsim.node n WHERE n.document_id = ANY (documents) GROUP BY n.node
    ) o
    INTO old_nodes, old_firsts;
    IF old_nodes IS NOT NULL THEN
        DELETE FROM textsim.node n WHERE n.document_id = ANY (documents);
    END IF;
    WITH document AS MATERIALIZED (SELECT h.id, h.hash FROM unnest(ids, hashes) h (id, hash)),
    node AS MATERIALIZED (
        SELECT h.hash, coalesce(
            (SELECT n.node FROM textsim.node n WHERE n.words_hash = h.hash LIMIT 1),
            nextval('textsim.node_id_seq')) AS node
        FROM (SELECT d.hash FROM document d GROUP BY d.hash ORDER BY min(d.id)) h
    )
    INSERT INTO textsim.node (document_id, node, words_hash)
    SELECT d.id, n.node, d.hash FROM document d JOIN node n ON n.hash = d.hash;
    IF old_nodes IS NOT NULL THEN
        left_nodes := array(
            SELECT o FROM unnest(old_nodes) o
            WHERE (SELECT n.node FROM textsim.node n WHERE n.node = o LIMIT 1) IS NULL);
        WITH gone AS (
            DELETE FROM textsim.match m
            WHERE m.a = ANY (left_nodes) OR m.b = ANY (left_nodes)
            RETURNING m.a, m.b
        )
        SELECT array_agg(e.node), array_agg(o.first)
        FROM gone g CROSS JOIN LATERAL (VALUES (g.a, g.b), (g.b, g.a)) e (node, other)
        JOIN unnest(old_nodes, old_firsts) o (node, first) ON o.node = e.other
        WHERE e.node NOT IN (SELECT unnest(left_nodes))
        INTO neighbours, lost_firsts;
        DELETE FROM textsim.crowded k WHERE k.node = ANY (left_nodes);
    END IF;
    SELECT coalesce(array_agg(DISTINCT n.node), '{}') FROM textsim.node n
    WHERE n.document_id = ANY (documents) OR n.node = ANY (old_nodes)
    INTO nodes;
    -- The node of a document that was processed before, and has not changed since, has all its matches.
    changed := documents || textsim._logged_ids(c.id);
    SELECT coalesce(array_agg(k.node), '{}')
    FROM (SELECT DISTINCT n.node FROM textsim.node n WHERE n.document_id = ANY (documents)) k
    WHERE (
        SELECT n.node FROM textsim.node n
        WHERE n.node = k.node AND n.document_id NOT IN (SELECT unnest(changed)) LIMIT 1) IS NULL
    INTO searched;
    IF neighbours IS NOT NULL THEN
        UPDATE textsim.crowded k SET lost = k.lost + l.lost
        FROM (SELECT l.node, count(*) AS lost FROM unnest(neighbours) l (node) GROUP BY l.node) l
        WHERE k.node = l.node;
        -- A crowded node may have other matches than those that it has lost.
        WITH emptied AS (
            DELETE FROM textsim.crowded k
            WHERE k.node = ANY (neighbours) AND k.lost >= textsim._most_compared() / 2 RETURNING k.node
        )
        SELECT searched || array_agg(e.node) FROM emptied e WHERE e.node NOT IN (SELECT unnest(searched)) INTO searched;
    END IF;
END $$;
COMMENT ON FUNCTION textsim._move_to_nodes(textsim.corpus, integer[], integer[], uuid[])
    IS 'take changed documents out of their nodes, and give those that are stored their nodes; ids and hashes are '
    'those of the stored ones. nodes: the nodes that lost or got a document; searched: those of them whose matches '
    'must be found; old_nodes and old_firsts: the nodes before, and the first document of each; neighbours and '
    'lost_firsts: the nodes that lost a match, because a node is left without documents, and the first document of '
    'that node';

-- Texts that fill in one template may all be candidates of each other. If each were compared with all others, and all
-- their matches were stored, the costs of a document would grow with their number.
CREATE FUNCTION textsim._most_compared() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 200;
COMMENT ON FUNCTION textsim._most_compared()
    IS 'with how many earlier candidates a node of a tracked corpus is compared; half of them are the earliest, which '
    'are most likely kept, and half share most buckets with it';

CREATE FUNCTION textsim._most_read() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1000;
COMMENT ON FUNCTION textsim._most_read()
    IS 'how many documents of a bucket are read, the earliest first, to find the candidates of a node';

-- STABLE, so its statements see the same: the documents as they are when the log has no entries for them.
CREATE FUNCTION textsim._find_matches(
    c textsim.corpus, threshold double precision, nodes integer[],
    OUT lefts integer[], OUT rights integer[], OUT similarities double precision[], OUT crowded integer[],
    OUT full_nodes integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed integer[] := textsim._logged_ids(c.id);
    candidates record;
BEGIN
    WITH searching AS MATERIALIZED (
        SELECT DISTINCT ON (n.node) n.node, d.id, d.shingle_count, d.scope,
            textsim._in_scope(textsim._buckets(d.signature, c.bands, c.rows), d.scope) AS buckets
        FROM textsim.node n JOIN textsim.document d ON d.id = n.document_id
        WHERE n.node = ANY (nodes) AND d.id NOT IN (SELECT unnest(changed))
        ORDER BY n.node, d.id
    ), sought AS MATERIALIZED (
        -- In the order of the index, neighbours are looked up in the same pages.
        SELECT s.node, s.id, s.shingle_count, s.scope, q.bucket
        FROM searching s CROSS JOIN LATERAL unnest(s.buckets) q (bucket) ORDER BY q.bucket
    ), meeting AS MATERIALIZED (
        SELECT s.node, s.id, s.shingle_count, s.scope, r.document_id, count(*) AS shared
        FROM sought s
        CROSS JOIN LATERAL (
            SELECT r.document_id FROM textsim.band r WHERE r.bucket = s.bucket
            ORDER BY r.document_id LIMIT textsim._most_read()) r
        WHERE r.document_id <> s.id
        GROUP BY s.node, s.id, s.shingle_count, s.scope, r.document_id
    ), candidate AS MATERIALIZED (
        SELECT DISTINCT ON (m.node, n.node)
            m.node, n.node AS other, m.id AS x, d.id AS y, m.shared, m.shingle_count + d.shingle_count AS shingles
        FROM meeting m
        CROSS JOIN LATERAL (
            SELECT n.node FROM textsim.node n WHERE n.document_id = m.document_id OFFSET 0) n
        CROSS JOIN LATERAL (
            SELECT d.id, d.shingle_count, d.scope FROM textsim.document d WHERE d.id = m.document_id OFFSET 0) d
        WHERE n.node <> m.node AND d.scope IS NOT DISTINCT FROM m.scope
            -- Looked up in a hash table. An anti-join could be a nested loop, because sizes are guessed.
            AND d.id NOT IN (SELECT unnest(changed))
            AND textsim._is_candidate(
                m.shared, m.shingle_count, d.shingle_count, CASE WHEN c.bands IS NULL THEN c.threshold END)
            AND least(m.shingle_count, d.shingle_count)::double precision
                / greatest(m.shingle_count, d.shingle_count) >= threshold
        ORDER BY m.node, n.node, d.id
    )
    SELECT array_agg(k.node) AS nodes, array_agg(k.other) AS others, array_agg(k.x) AS xs, array_agg(k.y) AS ys,
        array_agg(k.shared) AS shared, array_agg(k.shingles) AS shingles, array(
            SELECT s.node FROM searching s
            -- Few nodes meet as many documents as are read. CASE, because the buckets of all nodes would be read first.
            WHERE CASE WHEN s.node IN (
                    SELECT m.node FROM meeting m GROUP BY m.node HAVING count(*) >= textsim._most_read() - 1)
                THEN EXISTS (
                    SELECT FROM unnest(s.buckets) q (bucket)
                    WHERE (
                        SELECT count(*) FROM (
                            SELECT FROM textsim.band r WHERE r.bucket = q.bucket LIMIT textsim._most_read() + 1) r
                    ) > textsim._most_read()) END) AS cut
    FROM candidate k
    INTO candidates;
    full_nodes := array(
        SELECT k.node FROM unnest(candidates.nodes, candidates.xs, candidates.ys) k (node, x, y)
        WHERE k.y < k.x GROUP BY k.node HAVING count(*) > textsim._most_compared());
    crowded := array(SELECT unnest(full_nodes) UNION SELECT unnest(candidates.cut));
    IF full_nodes <> '{}' THEN
        SELECT array_agg(k.node) AS nodes, array_agg(k.other) AS others, array_agg(k.x) AS xs, array_agg(k.y) AS ys,
            array_agg(k.shared) AS shared, array_agg(k.shingles) AS shingles
        FROM (
            SELECT k.*, 2 * least(
                row_number() OVER (PARTITION BY k.node, k.y < k.x ORDER BY k.y),
                row_number() OVER (PARTITION BY k.node, k.y < k.x ORDER BY k.shared DESC, k.y)) AS place
            FROM unnest(
                candidates.nodes, candidates.others, candidates.xs, candidates.ys, candidates.shared,
                candidates.shingles) k (node, other, x, y, shared, shingles)
        ) k
        -- The later node of a pair decides.
        WHERE k.y < k.x AND k.place <= textsim._most_compared()
            OR CASE WHEN k.y < k.x THEN k.node ELSE k.other END NOT IN (SELECT unnest(full_nodes))
        INTO candidates;
    END IF;
    WITH pair AS (
        SELECT DISTINCT ON (least(k.node, k.other), greatest(k.node, k.other))
            k.x, k.y, k.shingles
        FROM unnest(candidates.nodes, candidates.others, candidates.xs, candidates.ys, candidates.shingles)
            k (node, other, x, y, shingles)
    ), batch AS (
        SELECT array_agg(b.x) AS xs, array_agg(b.y) AS ys
        FROM (
            SELECT p.x, p.y,
                sum(p.shingles) OVER (ORDER BY p.x, p.y ROWS UNBOUNDED PRECEDING) / 400000 AS number
            FROM pair p
        ) b
        GROUP BY b.number
    )
    SELECT array_agg(least(o.x, o.y)), array_agg(greatest(o.x, o.y)), array_agg(o.similarity)
    FROM (
        SELECT (SELECT n.node FROM textsim.node n WHERE n.document_id = v.x) AS x,
            (SELECT n.node FROM textsim.node n WHERE n.document_id = v.y) AS y, v.similarity
        FROM batch b CROSS JOIN LATERAL textsim._verify_pairs(c, b.xs, b.ys, threshold) v
        OFFSET 0  -- so that each node is looked up once
    ) o
    INTO lefts, rights, similarities;
END $$;
COMMENT ON FUNCTION textsim._find_matches(textsim.corpus, double precision, integer[])
    IS 'the matches of nodes, found anew from their documents: pairs of nodes, the lower id first, and the similarity '
    'of each. crowded: those of the nodes that were compared with some of their earlier candidates only; full_nodes: '
    'those of them that have more earlier candidates than are compared';

CREATE FUNCTION textsim._connected_nodes(seeds integer[]) RETURNS integer[]
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
    WITH RECURSIVE walk AS (
        SELECT unnest(seeds) AS node
        UNION
        SELECT e.node FROM walk w CROSS JOIN LATERAL (
            SELECT m.b FROM textsim.match m WHERE m.a = w.node
            UNION ALL SELECT m.a FROM textsim.match m WHERE m.b = w.node
        ) e (node)
    )
    SELECT array_agg(w.node) FROM walk w
    INTO nodes;
    RETURN nodes;
END $$;
COMMENT ON FUNCTION textsim._connected_nodes(integer[])
    IS 'the nodes that matches lead to from these nodes, and these nodes';

-- Nodes are numbered in the order of their first documents, for linkage complete in the order of keys, as by Python.
-- If the first document of a node is kept, its copies are members of its cluster. Otherwise no copy is kept, but a
-- later copy may be nearer to a document that was kept meanwhile.
CREATE FUNCTION textsim._group_nodes(
    c textsim.corpus, linkage text, nodes integer[], outside integer[] DEFAULT '{}',
    OUT documents integer[], OUT representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    numbered integer[];
    firsts integer[];
    links record;
    roots integer[];
    keys text[];  -- by numbered node: the key of its document, if that is judged
    apart_ends integer[];
    apart integer[];
BEGIN
    SELECT array_agg(f.node ORDER BY f.key, f.first), array_agg(f.first ORDER BY f.key, f.first)
    FROM (
        SELECT k.node, (
            SELECT n.document_id FROM textsim.node n WHERE n.node = k.node ORDER BY n.document_id LIMIT 1) AS first,
            CASE WHEN linkage = 'complete' THEN (
                SELECT min((SELECT d.key FROM textsim.document d WHERE d.id = n.document_id) COLLATE "C")
                FROM textsim.node n WHERE n.node = k.node) END AS key
        FROM unnest(nodes || outside) k (node)
    ) f
    WHERE f.first IS NOT NULL
    INTO numbered, firsts;
    IF numbered IS NULL THEN
        RETURN;
    END IF;
    WITH node AS MATERIALIZED (
        SELECT k.id, k.place::integer, k.id IN (SELECT unnest(outside)) AS is_outside,
            linkage = 'complete' AND coalesce((
                SELECT r.is_full FROM textsim.crowded r WHERE r.node = k.id), false) AS is_full
        FROM unnest(numbered) WITH ORDINALITY k (id, place)
    ), link AS (
        SELECT least(x.place, y.place) AS x, greatest(x.place, y.place) AS y, m.similarity,
            CASE WHEN x.place > y.place THEN x.is_outside ELSE y.is_outside END AS leads_outside
        FROM (
            -- Most nodes have many matches with later nodes only.
            SELECT m.* FROM textsim.match m WHERE m.b = ANY (nodes)
            UNION ALL
            SELECT m.* FROM textsim.match m
            WHERE outside <> '{}' AND m.a = ANY (nodes) AND m.b NOT IN (SELECT unnest(nodes))
        ) m
        JOIN node x ON x.id = m.a JOIN node y ON y.id = m.b
        -- A full node has more matches than are stored. So it is in no complete cluster, except with its copies, and
        -- with a node that was judged the same.
        WHERE x.is_full = y.is_full AND (NOT x.is_full OR m.similarity = 1) OR m.similarity = 2
    )
    SELECT array_agg(l.x ORDER BY l.leads_outside) AS lefts, array_agg(l.y ORDER BY l.leads_outside) AS rights,
        array_agg(l.similarity ORDER BY l.leads_outside) AS similarities,
        count(*) FILTER (WHERE NOT l.leads_outside) AS deciding
    FROM link l
    INTO links;
    IF linkage = 'single' THEN
        SELECT l.roots INTO roots FROM textsim._single_linkage(
            links.lefts, links.rights, links.similarities, cardinality(numbered)) l;
    ELSIF linkage = 'complete' AND links.lefts IS NOT NULL THEN
        SELECT l.roots INTO roots FROM textsim._complete_linkage(
            links.lefts, links.rights, links.similarities, cardinality(numbered)) l;
    ELSE
        IF textsim._has_verdicts(coalesce(c.origin, c.id)) THEN
            keys := array(
                SELECT (
                    SELECT d.key FROM textsim.document d
                    WHERE d.id = f.id AND textsim._is_judged(coalesce(c.origin, c.id), d.key))
                FROM unnest(firsts) WITH ORDINALITY f (id, place) ORDER BY f.place);
            SELECT a.* INTO apart_ends, apart
            FROM textsim._apart(c.name, keys, links.lefts, links.rights, links.similarities) a;
        END IF;
        -- A node outside stays kept: a judgement may keep it apart from an earlier node that it matches. But a later
        -- copy of that earlier node may go to it.
        SELECT l.roots INTO roots FROM textsim._kept_linkage(
            links.lefts[:links.deciding], links.rights[:links.deciding], links.similarities[:links.deciding],
            array(SELECT generate_series(1, cardinality(numbered))), apart_ends, apart) l;
    END IF;
    WITH node AS MATERIALIZED (
        SELECT k.id, k.first, k.root, k.place::integer, min(k.first) OVER (PARTITION BY k.root) AS lowest
        FROM unnest(numbered, firsts, roots) WITH ORDINALITY k (id, first, root, place)
    ), kept AS MATERIALIZED (
        SELECT x.id, y.first, l.similarity
        FROM (
            SELECT unnest(links.lefts) AS x, unnest(links.rights) AS y, unnest(links.similarities) AS similarity
            UNION ALL SELECT unnest(links.rights), unnest(links.lefts), unnest(links.similarities)
        ) l
        JOIN node x ON x.place = l.x AND x.root <> x.place
        JOIN node y ON y.place = l.y AND y.root = y.place
        -- A judged document goes where its judgements allow.
        WHERE linkage = 'kept' AND keys[x.place] IS NULL
    )
    SELECT array_agg(o.document_id), array_agg(o.representative)
    FROM (
        SELECT DISTINCT ON (n.document_id)
            n.document_id,
            coalesce(p.first, CASE WHEN linkage = 'kept' THEN r.first ELSE k.lowest END) AS representative
        FROM node k
        JOIN node r ON r.place = k.root
        JOIN textsim.node n ON n.node = k.id AND n.node = ANY (nodes)
        LEFT JOIN kept p ON p.id = k.id AND p.first < n.document_id
        ORDER BY n.document_id, p.similarity DESC, p.first
    ) o
    INTO documents, representatives;
END $$;
COMMENT ON FUNCTION textsim._group_nodes(textsim.corpus, text, integer[], integer[])
    IS 'the documents of nodes, and the representative of the cluster of each; alone, a document represents itself. '
    'All nodes that may change a cluster of these must be among them, or outside: these take part, but their own '
    'documents are not returned';

-- No document follows a document that is not kept, or that is alone.
CREATE FUNCTION textsim._nodes_after_kept(nodes integer[], lost_firsts integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
BEGIN
    WITH kept AS MATERIALIZED (
        SELECT l.first
        FROM (SELECT DISTINCT unnest(lost_firsts)) l (first)
        WHERE l.first = (
            SELECT c.representative FROM textsim.cluster c WHERE c.id = (
                SELECT m.cluster FROM textsim.member m WHERE m.document_id = l.first))
    )
    SELECT array_agg(DISTINCT k.node) FROM unnest(nodes, lost_firsts) k (node, first)
    WHERE k.first IN (SELECT o.first FROM kept o)
        AND (
            SELECT n.document_id FROM textsim.node n
            WHERE n.node = k.node ORDER BY n.document_id DESC LIMIT 1) > k.first
    INTO nodes;
    RETURN nodes;
END $$;
COMMENT ON FUNCTION textsim._nodes_after_kept(integer[], integer[])
    IS 'those of the nodes that have a document after the first document of a lost node, given for each of them, and '
    'only if that document was kept';

CREATE FUNCTION textsim._kept_neighbours(nodes integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
BEGIN
    SELECT coalesce(array_agg(f.node), '{}')
    FROM (
        SELECT o.node, (
            SELECT n.document_id FROM textsim.node n WHERE n.node = o.node ORDER BY n.document_id LIMIT 1) AS first
        FROM (
            SELECT m.b FROM textsim.match m WHERE m.a = ANY (nodes)
            UNION SELECT m.a FROM textsim.match m WHERE m.b = ANY (nodes)
            EXCEPT SELECT unnest(nodes)
        ) o (node)
    ) f
    WHERE coalesce((
        SELECT c.representative = f.first FROM textsim.cluster c WHERE c.id = (
            SELECT m.cluster FROM textsim.member m WHERE m.document_id = f.first)), true)
    INTO nodes;
    RETURN nodes;
END $$;
COMMENT ON FUNCTION textsim._kept_neighbours(integer[])
    IS 'the nodes whose first documents are kept, among the nodes that match these nodes';

CREATE FUNCTION textsim._followers(
    nodes integer[], documents integer[], representatives integer[], logged integer[],
    searched integer[], old_nodes integer[], old_firsts integer[], walks boolean)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    followers integer[];
BEGIN
    WITH RECURSIVE changed AS MATERIALIZED (
        SELECT f.node, least(f.first, o.first) AS since
        FROM (
            SELECT k.node, (
                SELECT n.document_id FROM textsim.node n WHERE n.node = k.node ORDER BY n.document_id LIMIT 1
            ) AS first
            FROM unnest(nodes) k (node)
        ) f
        LEFT JOIN unnest(old_nodes, old_firsts) o (node, first) ON o.node = f.node
        LEFT JOIN unnest(documents, representatives) g (document_id, representative) ON g.document_id = f.first
        WHERE f.node IN (SELECT unnest(searched)) OR f.first IN (SELECT unnest(logged)) OR f.first <> o.first
            OR (g.representative = f.first) <> coalesce((
                SELECT c.representative = f.first FROM textsim.cluster c WHERE c.id = (
                    SELECT m.cluster FROM textsim.member m WHERE m.document_id = f.first)), true)
    ), walk (node, since, is_changed) AS (
        SELECT h.node, h.since, true FROM changed h
        UNION
        SELECT e.node, e.first, false
        FROM walk w CROSS JOIN LATERAL (
            SELECT o.node, (
                SELECT n.document_id FROM textsim.node n
                WHERE n.node = o.node ORDER BY n.document_id LIMIT 1) AS first
            FROM (
                SELECT m.b FROM textsim.match m WHERE m.a = w.node
                UNION ALL SELECT m.a FROM textsim.match m WHERE m.b = w.node
            ) o (node)
            WHERE (
                SELECT n.document_id FROM textsim.node n
                WHERE n.node = o.node ORDER BY n.document_id DESC LIMIT 1) > w.since
        ) e
        WHERE w.is_changed OR walks
    )
    SELECT array_agg(DISTINCT w.node) FROM walk w WHERE w.node NOT IN (SELECT unnest(nodes))
    INTO followers;
    RETURN followers;
END $$;
COMMENT ON FUNCTION textsim._followers(
    integer[], integer[], integer[], integer[], integer[], integer[], integer[], boolean)
    IS 'the nodes whose documents may go to another representative, because a node that they match, and that has an '
    'earlier document, has other matches or another first document, or its first document is kept now, or no longer; '
    'NULL if there are none besides these nodes. walks: also the nodes that follow those, and so on';

-- Whether a document is kept depends on earlier documents only. So the changed nodes are examined, and then the nodes
-- that follow those that came out otherwise than stored. A long chain would take many rounds, so after some rounds all
-- that may follow are examined.
CREATE FUNCTION textsim._kept_groups(
    c textsim.corpus, logged integer[], changed integer[], searched integer[], old_nodes integer[],
    old_firsts integer[], OUT documents integer[], OUT representatives integer[], OUT clusters bigint[],
    OUT rests integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    nodes integer[] := '{}';
    followers integer[] := array(SELECT DISTINCT unnest(changed));
    round integer := 0;
BEGIN
    LOOP
        round := round + 1;
        nodes := textsim._with_judged(coalesce(c.origin, c.id), nodes || followers, logged);
        SELECT g.* INTO documents, representatives FROM textsim._group_nodes(
            c, 'kept', nodes, textsim._kept_neighbours(nodes)) g;
        followers := textsim._followers(
            nodes, documents, representatives, logged, searched, old_nodes, old_firsts, round > 8);
        EXIT WHEN followers IS NULL;
    END LOOP;
    -- The documents that others go to are kept, so each represents itself.
    SELECT documents || array_agg(r), representatives || array_agg(r) INTO documents, representatives
    FROM (SELECT unnest(representatives) EXCEPT SELECT unnest(documents)) k (r);
    -- If the representative of a cluster is no longer kept, all its members are among the documents.
    SELECT array_agg(k.id), array_agg(k.representative)
    FROM textsim.cluster k
    LEFT JOIN unnest(documents, representatives) g (document_id, representative) ON g.document_id = k.representative
    WHERE k.id = ANY (array(SELECT m.cluster FROM textsim.member m WHERE m.document_id = ANY (documents || logged)))
        AND CASE WHEN g.document_id IS NULL THEN k.representative NOT IN (SELECT unnest(logged))
            ELSE g.representative = k.representative END
        AND (
            SELECT m.document_id FROM textsim.member m
            WHERE m.cluster = k.id AND m.document_id NOT IN (SELECT unnest(documents || logged)) LIMIT 1) IS NOT NULL
    INTO clusters, rests;
END $$;
COMMENT ON FUNCTION textsim._kept_groups(textsim.corpus, integer[], integer[], integer[], integer[], integer[])
    IS 'linkage kept: the documents whose clusters may have changed, the representative of each, and the rests of '
    'their clusters with theirs. changed: the nodes with other documents or matches than before';

-- From each end of a lost match a walk begins, and all walks make a step at a time. Walks that meet are one. As soon
-- as at most one walk of a cluster has nodes left to go to, the nodes that it has not met are the rest of the cluster,
-- and the walks that came to their end are the parts that fall away. A long chain would take many steps, so what is
-- not decided after some steps is walked as a whole.
CREATE FUNCTION textsim._lost_parts(
    c textsim.corpus, logged integer[], neighbours integer[], OUT documents integer[], OUT parts integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    ends integer[];  -- by walk: the node where it began
    clusters bigint[];  -- by walk: the cluster of this node
    roots integer[];  -- by walk: the first walk of those that have met
    resting integer[] := '{}';  -- the walks that stopped, because their cluster was decided
    -- By node met: its id, and the walk that met it.
    nodes integer[];
    walks integer[];
    -- By node met in the last step: the same.
    front integer[];
    front_walks integer[];
    -- By meeting: the two walks.
    lefts integer[] := '{}';
    rights integer[] := '{}';
    step record;
    walked record;
BEGIN
    WITH known AS MATERIALIZED (
        SELECT f.node, f.cluster
        FROM (
            SELECT k.node, (SELECT m.cluster FROM textsim.member m WHERE m.document_id = (
                SELECT n.document_id FROM textsim.node n
                WHERE n.node = k.node AND n.document_id NOT IN (SELECT unnest(logged)) LIMIT 1)) AS cluster
            FROM unnest(neighbours) k (node)
        ) f
        WHERE f.cluster IS NOT NULL
    )
    SELECT array_agg(e.node), array_agg(e.cluster)
    FROM (
        SELECT k.node, k.cluster, count(*) OVER (PARTITION BY k.cluster) AS ends
        FROM known k
        -- A node that matches another end needs no walk of its own.
        WHERE (
            SELECT m.a FROM textsim.match m
            WHERE m.b = k.node AND m.a IN (SELECT o.node FROM known o) LIMIT 1) IS NULL
    ) e
    WHERE e.ends > 1
    INTO ends, clusters;
    IF ends IS NULL THEN
        RETURN;
    END IF;
    roots := array(SELECT generate_series(1, cardinality(ends)));
    nodes := ends;
    walks := roots;
    front := ends;
    front_walks := roots;
    FOR number IN 1 .. 12 LOOP
        WITH met AS MATERIALIZED (SELECT n.node, n.walk FROM unnest(nodes, walks) n (node, walk)),
        reached AS MATERIALIZED (
            SELECT DISTINCT f.walk, e.node
            FROM unnest(front, front_walks) f (node, walk) CROSS JOIN LATERAL (
                SELECT m.b FROM textsim.match m WHERE m.a = f.node
                UNION ALL SELECT m.a FROM textsim.match m WHERE m.b = f.node
            ) e (node)
        ), fresh AS MATERIALIZED (
            SELECT r.node, min(r.walk) AS walk FROM reached r
            WHERE r.node NOT IN (SELECT m.node FROM met m) GROUP BY r.node
        ), meeting AS (
            SELECT DISTINCT r.walk AS x, o.walk AS y
            FROM reached r
            JOIN (SELECT * FROM met UNION ALL SELECT * FROM fresh) o ON o.node = r.node AND o.walk <> r.walk
        )
        SELECT f.*, l.*
        FROM (SELECT array_agg(f.node) AS nodes, array_agg(f.walk) AS walks FROM fresh f) f
        CROSS JOIN (SELECT array_agg(g.x) AS lefts, array_agg(g.y) AS rights FROM meeting g) l
        INTO step;
        nodes := nodes || step.nodes;
        walks := walks || step.walks;
        lefts := lefts || step.lefts;
        rights := rights || step.rights;
        SELECT l.roots INTO roots FROM textsim._single_linkage(
            lefts, rights, array_fill(1::double precision, ARRAY[cardinality(lefts)]), cardinality(ends)) l;
        -- A cluster is undecided while two of its walks go on.
        WITH going AS MATERIALIZED (
            SELECT f.node, f.walk, w.root, w.cluster
            FROM unnest(step.nodes, step.walks) f (node, walk)
            JOIN unnest(roots, clusters) WITH ORDINALITY w (root, cluster, walk) ON w.walk = f.walk
        ), decided AS MATERIALIZED (
            SELECT g.cluster FROM going g GROUP BY g.cluster HAVING count(DISTINCT g.root) = 1
        )
        SELECT array_agg(g.node) FILTER (WHERE d.cluster IS NULL), array_agg(g.walk) FILTER (WHERE d.cluster IS NULL),
            resting || array_agg(DISTINCT g.walk) FILTER (WHERE d.cluster IS NOT NULL)
        INTO front, front_walks, resting
        FROM going g LEFT JOIN decided d ON d.cluster = g.cluster;
        EXIT WHEN front IS NULL;
    END LOOP;
    WITH walk AS MATERIALIZED (
        SELECT w.walk, w.root, w.cluster FROM unnest(roots, clusters) WITH ORDINALITY w (root, cluster, walk)
    ), open AS MATERIALIZED (SELECT w.root FROM walk w WHERE w.walk IN (SELECT unnest(resting))),
    fallen AS MATERIALIZED (
        SELECT n.node, w.root
        FROM unnest(nodes, walks) n (node, walk) JOIN walk w ON w.walk = n.walk
        WHERE w.root NOT IN (SELECT o.root FROM open o)
            AND w.cluster IN (SELECT v.cluster FROM walk v GROUP BY v.cluster HAVING count(DISTINCT v.root) > 1)
            AND w.cluster NOT IN (SELECT v.cluster FROM walk v WHERE v.walk IN (SELECT unnest(front_walks)))
    )
    SELECT array_agg(o.document_id), array_agg(o.part)
    FROM (
        SELECT n.document_id, min(n.document_id) OVER (PARTITION BY f.root) AS part
        FROM fallen f JOIN textsim.node n ON n.node = f.node AND n.node = ANY (array(SELECT f.node FROM fallen f))
    ) o
    INTO documents, parts;
    IF front IS NOT NULL THEN
        walked := textsim._group_nodes(c, 'single', textsim._connected_nodes(array(
            SELECT w.node FROM unnest(ends, clusters) w (node, cluster)
            WHERE w.cluster IN (SELECT clusters[f] FROM unnest(front_walks) f))));
        documents := documents || walked.documents;
        parts := parts || walked.representatives;
    END IF;
END $$;
COMMENT ON FUNCTION textsim._lost_parts(textsim.corpus, integer[], integer[])
    IS 'linkage single: the documents of the parts that fall away from clusters, and the first document of the part '
    'of each. neighbours: the nodes that lost a match; new matches must not be stored yet';

-- The pieces are the rests of clusters, the parts that fall away, new nodes, and nodes of one document. The matches of
-- new nodes join them. The number of a piece is the id of the cluster, or else minus the first document.
CREATE FUNCTION textsim._joined_groups(
    logged integer[], nodes integer[], searched integer[], lost integer[], lost_parts integer[],
    OUT documents integer[], OUT representatives integer[], OUT clusters bigint[], OUT rests integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    links record;
    -- By node that takes part: its piece.
    piece record;
    -- By document: its piece.
    pieces bigint[];
    -- By place of a piece in the order of their first documents: its number, its first document, and the place of the
    -- first piece that it is joined with.
    numbers bigint[];
    firsts integer[];
    roots integer[];
BEGIN
    SELECT array_agg(l.a) AS lefts, array_agg(l.b) AS rights
    FROM (
        SELECT m.a, m.b FROM textsim.match m WHERE m.a = ANY (searched)
        UNION ALL
        SELECT m.a, m.b FROM textsim.match m WHERE m.b = ANY (searched) AND m.a NOT IN (SELECT unnest(searched))
    ) l
    INTO links;
    SELECT array_agg(f.node) AS nodes, array_agg(coalesce(
        -z.part::bigint, (SELECT m.cluster FROM textsim.member m WHERE m.document_id = f.old), -f.first)) AS numbers
    FROM (
        SELECT k.node, (
            SELECT n.document_id FROM textsim.node n WHERE n.node = k.node ORDER BY n.document_id LIMIT 1) AS first, (
            SELECT n.document_id FROM textsim.node n
            WHERE n.node = k.node AND n.document_id NOT IN (SELECT unnest(logged))
            ORDER BY n.document_id LIMIT 1) AS old
        FROM (SELECT unnest(nodes) UNION SELECT unnest(links.lefts) UNION SELECT unnest(links.rights)) k (node)
    ) f
    LEFT JOIN unnest(lost, lost_parts) z (document_id, part) ON z.document_id = f.old
    INTO piece;
    WITH piece AS MATERIALIZED (SELECT p.node, p.number FROM unnest(piece.nodes, piece.numbers) p (node, number))
    SELECT array_agg(o.document_id), array_agg(o.number)
    FROM (
        SELECT z.document_id, -z.part::bigint AS number FROM unnest(lost, lost_parts) z (document_id, part)
        UNION
        SELECT n.document_id, p.number FROM piece p JOIN textsim.node n ON n.node = p.node
        WHERE n.node = ANY (array(SELECT p.node FROM piece p WHERE p.number < 0))
        UNION
        SELECT n.document_id, p.number FROM piece p JOIN textsim.node n ON n.node = p.node
        WHERE n.document_id = ANY (logged)
    ) o
    INTO documents, pieces;
    WITH given AS MATERIALIZED (SELECT unnest(documents) UNION SELECT unnest(logged))
    SELECT array_agg(r.id), array_agg(r.first)
    FROM (
        SELECT c.id, (
            SELECT m.document_id FROM textsim.member m
            WHERE m.cluster = c.id AND m.document_id NOT IN (SELECT * FROM given)
            ORDER BY m.document_id LIMIT 1) AS first
        FROM textsim.cluster c
        WHERE c.id = ANY (array(
            SELECT n FROM unnest(piece.numbers) n WHERE n > 0
            UNION SELECT m.cluster FROM textsim.member m WHERE m.document_id = ANY (documents || logged)))
    ) r
    WHERE r.first IS NOT NULL
    INTO clusters, rests;
    SELECT array_agg(p.number ORDER BY p.first), array_agg(p.first ORDER BY p.first) INTO numbers, firsts
    FROM (
        SELECT o.number, min(o.first) AS first
        FROM (
            SELECT d.number, d.document_id FROM unnest(documents, pieces) d (document_id, number)
            UNION ALL SELECT r.id, r.first FROM unnest(clusters, rests) r (id, first)
        ) o (number, first)
        GROUP BY o.number
    ) p;
    WITH node AS MATERIALIZED (
        SELECT p.node, n.place::integer
        FROM unnest(piece.nodes, piece.numbers) p (node, number)
        JOIN unnest(numbers) WITH ORDINALITY n (number, place) ON n.number = p.number
    )
    SELECT l.roots INTO roots
    FROM (
        SELECT array_agg(x.place) AS lefts, array_agg(y.place) AS rights,
            array_agg(1::double precision) AS similarities
        FROM unnest(links.lefts, links.rights) k (a, b) JOIN node x ON x.node = k.a JOIN node y ON y.node = k.b
    ) j
    CROSS JOIN LATERAL textsim._single_linkage(
        j.lefts, j.rights, j.similarities, coalesce(cardinality(numbers), 0)) l;
    WITH joined AS MATERIALIZED (
        SELECT n.number, firsts[n.root] AS representative FROM unnest(numbers, roots) n (number, root)
    )
    SELECT d.ids, d.representatives, r.representatives INTO documents, representatives, rests
    FROM (
        SELECT array_agg(d.id ORDER BY d.place) AS ids, array_agg(j.representative ORDER BY d.place) AS representatives
        FROM unnest(documents, pieces) WITH ORDINALITY d (id, number, place) JOIN joined j ON j.number = d.number
    ) d
    CROSS JOIN (
        SELECT array_agg(j.representative ORDER BY k.place) AS representatives
        FROM unnest(clusters) WITH ORDINALITY k (id, place) JOIN joined j ON j.number = k.id
    ) r;
END $$;
COMMENT ON FUNCTION textsim._joined_groups(integer[], integer[], integer[], integer[], integer[])
    IS 'linkage single: the documents whose clusters may have changed, the representative of each, and the rests of '
    'their clusters with theirs. lost and lost_parts: the documents of parts that fall away, and the part of each';

CREATE FUNCTION textsim._with_clusters(nodes integer[], logged integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    documents integer[] := array(
        SELECT (
            SELECT n.document_id FROM textsim.node n
            WHERE n.node = k.node AND n.document_id NOT IN (SELECT unnest(logged)) LIMIT 1)
        FROM unnest(nodes) k (node));
BEGIN
    RETURN array(
        SELECT unnest(nodes)
        UNION
        SELECT o.node
        FROM (
            SELECT (SELECT n.node FROM textsim.node n WHERE n.document_id = m.document_id) AS node
            FROM textsim.member m
            WHERE m.cluster = ANY (array(
                SELECT m.cluster FROM textsim.member m WHERE m.document_id = ANY (documents || logged)))
        ) o
        WHERE o.node IS NOT NULL);
END $$;
COMMENT ON FUNCTION textsim._with_clusters(integer[], integer[])
    IS 'nodes, and those of all members of their clusters and of the clusters of logged documents, as the last update '
    'has left them';

-- A judgement may cut one of two copies from a node, and then the other copy is no copy of it. So both ends are needed.
CREATE FUNCTION textsim._with_judged_clusters(corpus_origin integer, nodes integer[], logged integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    size integer;
BEGIN
    nodes := textsim._with_clusters(nodes, logged);
    WHILE textsim._has_verdicts(corpus_origin) AND cardinality(nodes) IS DISTINCT FROM size LOOP
        size := cardinality(nodes);
        nodes := textsim._with_clusters(textsim._with_judged(corpus_origin, nodes, logged), logged);
    END LOOP;
    RETURN nodes;
END $$;
COMMENT ON FUNCTION textsim._with_judged_clusters(integer, integer[], integer[])
    IS 'nodes, and all that clusters and judgements connect with them';

CREATE FUNCTION textsim._touching_nodes(nodes integer[], walks boolean) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
-- Each round looks its nodes up in the indexes.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN array(
        -- Whether a node is full is looked up once, although many of its neighbours are in the walk.
        WITH RECURSIVE walk (node, of_full) AS (
            SELECT unnest(nodes), NULL::boolean
            UNION
            SELECT e.node, w.is_full
            FROM (
                SELECT w.node, w.of_full, coalesce((
                    SELECT r.is_full FROM textsim.crowded r WHERE r.node = w.node), false) AS is_full
                FROM walk w WHERE w.of_full IS NULL OR walks
            ) w
            CROSS JOIN LATERAL (
                SELECT m.b FROM textsim.match m WHERE NOT w.is_full AND m.a = w.node
                UNION ALL SELECT m.a FROM textsim.match m WHERE NOT w.is_full AND m.b = w.node
                UNION ALL SELECT m.b FROM textsim.match m WHERE w.is_full AND m.a = w.node AND m.similarity = 1
                UNION ALL SELECT m.a FROM textsim.match m WHERE w.is_full AND m.b = w.node AND m.similarity = 1
            ) e (node)
            WHERE w.of_full IS NULL OR w.of_full = w.is_full
        )
        SELECT w.node FROM walk w
        WHERE w.of_full = coalesce((SELECT r.is_full FROM textsim.crowded r WHERE r.node = w.node), false));
END $$;
COMMENT ON FUNCTION textsim._touching_nodes(integer[], boolean)
    IS 'the nodes that may be in a complete cluster with one of these nodes, because they match it, and neither of the '
    'two is full, or both are copies and full. walks: also the nodes that touch those, and so on';

CREATE FUNCTION textsim._regrouped_nodes(documents integer[], representatives integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
BEGIN
    RETURN array(
        SELECT DISTINCT (SELECT n.node FROM textsim.node n WHERE n.document_id = o.document_id)
        FROM (
            SELECT g.document_id, min(g.old) OVER n <> max(g.old) OVER n OR min(g.new) OVER o <> max(g.new) OVER o AS is_other
            FROM (
                SELECT g.document_id, g.representative AS new, coalesce(m.cluster, -g.document_id) AS old
                FROM unnest(documents, representatives) g (document_id, representative)
                LEFT JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
            ) g
            WINDOW n AS (PARTITION BY g.new), o AS (PARTITION BY g.old)
        ) o
        WHERE o.is_other);
END $$;
COMMENT ON FUNCTION textsim._regrouped_nodes(integer[], integer[])
    IS 'the nodes of documents whose cluster has other members than before; the representatives are those of the new '
    'clusters';

-- Which links a cluster is made of depends on its own members only. So two clusters can be computed apart, unless parts
-- of both would merge. The changed clusters are computed with all clusters that they touch. If a touched cluster comes
-- out otherwise than stored, the clusters that it touches are computed too. A long chain would take many rounds, so
-- after some rounds all that may change are computed.
CREATE FUNCTION textsim._complete_groups(
    c textsim.corpus, logged integer[], changed integer[], neighbours integer[],
    OUT documents integer[], OUT representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
DECLARE
    origin integer := coalesce(c.origin, c.id);
    -- If a node is gone that a judgement cut from one of two copies, the two are copies now.
    nodes integer[] := textsim._with_judged_clusters(origin, array(
        SELECT DISTINCT unnest(changed || CASE WHEN textsim._has_verdicts(origin) THEN neighbours END)), logged);
    regrouped integer[] := nodes;
    fresh integer[] := nodes;
    touched integer[];
    round integer := 0;
BEGIN
    LOOP
        round := round + 1;
        touched := array(
            SELECT unnest(textsim._with_judged_clusters(
                origin, textsim._touching_nodes(fresh, round > 4), logged))
            EXCEPT SELECT unnest(nodes));
        EXIT WHEN round > 1 AND touched = '{}';
        nodes := nodes || touched;
        SELECT g.* INTO documents, representatives FROM textsim._group_nodes(c, 'complete', nodes) g;
        fresh := array(
            SELECT unnest(textsim._regrouped_nodes(documents, representatives)) EXCEPT SELECT unnest(regrouped));
        EXIT WHEN fresh = '{}';
        regrouped := regrouped || fresh;
    END LOOP;
    SELECT array_agg(g.document_id), array_agg(g.representative) INTO documents, representatives
    FROM unnest(documents, representatives) g (document_id, representative)
    WHERE (SELECT n.node FROM textsim.node n WHERE n.document_id = g.document_id) IN (SELECT unnest(regrouped));
END $$;
COMMENT ON FUNCTION textsim._complete_groups(textsim.corpus, integer[], integer[], integer[])
    IS 'linkage complete: the documents whose clusters may have changed, and the representative of each. changed: the '
    'nodes with other documents or matches than before; neighbours: the nodes that lost a match, because a node is left '
    'without documents';

-- The heir of an old cluster is the new cluster that has its representative, or else most of its members. A new
-- cluster keeps, of the clusters whose heir it is, the id of the largest, or of the oldest of these.
CREATE FUNCTION textsim._store_groups(
    documents integer[], representatives integer[], clusters bigint[], rests integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
AS $$
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
COMMENT ON FUNCTION textsim._store_groups(integer[], integer[], bigint[], integer[])
    IS 'store the clusters of documents, given by the representative of each, or NULL for a document that is gone. '
    'clusters and rests: the clusters that have members besides these, and the representative of those';

CREATE FUNCTION textsim._are_alone(documents integer[], nodes integer[]) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    are_alone boolean;
BEGIN
    SELECT (SELECT count(*) FROM textsim.node n WHERE n.node = ANY (nodes)) = cardinality(nodes)
        AND NOT EXISTS (SELECT FROM textsim.member m WHERE m.document_id = ANY (documents))
    INTO are_alone;
    RETURN are_alone;
END $$;
COMMENT ON FUNCTION textsim._are_alone(integer[], integer[])
    IS 'whether each of the nodes has one document, and none of the documents has a cluster';

CREATE FUNCTION textsim._update_batch(
    c textsim.corpus, linkage text, threshold double precision, logged integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    corpus_origin integer := coalesce(c.origin, c.id);
    hashed record;
    moved record;
    lost record;
    grouped record;
    gone integer[];
    matches bigint;
BEGIN
    hashed := textsim._hashes_of(corpus_origin, logged);
    moved := textsim._move_to_nodes(c, logged, hashed.ids, hashed.hashes);
    IF linkage = 'single' THEN
        lost := textsim._lost_parts(c, logged, array(SELECT DISTINCT unnest(moved.neighbours)));
    END IF;
    matches := textsim._store_links(c, threshold, moved.searched);
    IF matches = 0 AND moved.old_nodes IS NULL AND textsim._are_alone(logged, moved.nodes) THEN
        -- The documents are new, and no other document is like them.
        RETURN;
    END IF;
    CASE linkage
    WHEN 'kept' THEN
        grouped := textsim._kept_groups(
            c, logged, moved.nodes || textsim._nodes_after_kept(moved.neighbours, moved.lost_firsts), moved.searched,
            moved.old_nodes, moved.old_firsts);
    WHEN 'single' THEN
        grouped := textsim._joined_groups(logged, moved.nodes, moved.searched, lost.documents, lost.parts);
    WHEN 'complete' THEN
        SELECT g.documents, g.representatives, NULL::bigint[] AS clusters, NULL::integer[] AS rests INTO grouped
        FROM textsim._complete_groups(c, logged, moved.nodes || moved.searched, moved.neighbours) g;
    END CASE;
    -- A document that is gone, or has no words, is in no cluster.
    gone := array(SELECT unnest(logged) EXCEPT SELECT unnest(grouped.documents));
    PERFORM textsim._store_groups(
        gone || grouped.documents, array_fill(NULL::integer, ARRAY[cardinality(gone)]) || grouped.representatives,
        grouped.clusters, grouped.rests);
END $$;
COMMENT ON FUNCTION textsim._update_batch(textsim.corpus, text, double precision, integer[])
    IS 'bring the clusters of a corpus up to date with changed documents';

CREATE FUNCTION textsim._update_clusters(
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
SET jit = off
AS $$
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
        RETURN 0;
    END IF;
    logged := array(SELECT DISTINCT unnest(logged));
    -- A document that was set aside has another try.
    DELETE FROM textsim.pending p WHERE p.kind = 'failed' AND p.corpus_id = c.id AND p.document_ids <@ logged;
    EXECUTE format('SELECT textsim.%I($1, $2, $3, $4)', '_update_batch_' || c.id)
    USING c, tracking.linkage, tracking.threshold, logged;
    RETURN cardinality(logged);
END $$;
COMMENT ON FUNCTION textsim._update_clusters(text, boolean, bigint)
    IS 'bring the clusters of a tracked corpus up to date with some log entries, or with one, and return the number '
    'of documents; 0 if the log has no entries, or if the caller does not wait and another session updates them';

CREATE FUNCTION textsim._is_inline(corpus_id integer) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM textsim.tracked t WHERE t.corpus_id = _is_inline.corpus_id AND t.mode = 'inline');
END $$;
COMMENT ON FUNCTION textsim._is_inline(integer)
    IS 'whether the transaction that writes documents of a corpus updates their clusters';

-- The writers of an attached table may have no right to write the tables of the corpus.
CREATE FUNCTION textsim._update_at_commit() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM textsim._update_clusters(c.name, true, NEW.id)
    FROM textsim.corpus c JOIN textsim.tracked t ON t.corpus_id = c.id WHERE c.id = NEW.corpus_id;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION textsim._update_at_commit()
    IS 'update the clusters of documents that this transaction has logged';

CREATE CONSTRAINT TRIGGER update_at_commit AFTER INSERT ON textsim.pending DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.kind = 'cluster' AND textsim._is_inline(NEW.corpus_id))
EXECUTE FUNCTION textsim._update_at_commit();

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
    'the role may write. A worker does the same. It commits after each five thousand documents, so call it outside '
    'a transaction block. If it is interrupted, the next call goes on. Raises an error if the corpus is not tracked.';
