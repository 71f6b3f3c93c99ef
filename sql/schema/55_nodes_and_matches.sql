-- The nodes of a tracked corpus, their matches, and the clusters that matches make.

-- The hash of the words and the part of a document, given by its word ids or its normal form.
-- A copy that has word ids, of a document that is stored as text, gets a node of its own, and the two nodes match. So
-- do documents with the same shingles in another order.
CREATE OR REPLACE FUNCTION textsim._words_hash(word_ids integer[], form text, part bigint) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(
    sha256(coalesce(convert_to(form, 'UTF8'), array_send(word_ids))) || coalesce(int8send(part), '')
), 1, 16), 'hex')::uuid;

-- The documents of the first log entries, five thousand or more, or of one entry, which are deleted; NULL without any.
CREATE OR REPLACE FUNCTION textsim._logged_documents(corpus_id integer, entry_id bigint) RETURNS integer[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
-- The entries are read in the order of their index, whatever the statistics are.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off AS $$
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
    RETURN textsim._with_connected(corpus_id, documents);
END $$;

-- The documents of a tracked corpus whose clusters must be updated, some of them twice.
-- An array, because the planner guesses ten elements, and so looks for them in a hash table. It would guess that a long
-- log needs too large a table, and look through the whole log for each document.
CREATE OR REPLACE FUNCTION textsim._logged_ids(corpus_id integer) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN textsim._with_connected(corpus_id, array(
        SELECT unnest(p.document_ids) FROM textsim.pending p
        WHERE p.corpus_id = _logged_ids.corpus_id AND p.document_ids IS NOT NULL));
END $$;

-- The stored documents among these that have nodes, with their hashes; a judged document has that of its id.
CREATE OR REPLACE FUNCTION textsim._hashes_of(
    corpus_origin integer, documents integer[], OUT ids integer[], OUT hashes uuid[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    has_verdicts boolean := textsim._has_verdicts(corpus_origin);
BEGIN
    SELECT array_agg(d.id), array_agg(CASE
        WHEN has_verdicts AND textsim._is_judged(corpus_origin, d.key) THEN textsim._judged_hash(d.id)
        ELSE textsim._words_hash(d.word_ids, d.normal_form, d.part) END)
    FROM textsim.document d WHERE d.id = ANY (documents) AND textsim._has_node(corpus_origin, d.shingle_count, d.key)
    INTO ids, hashes;
END $$;

-- Take changed documents out of their nodes, and give the stored ones, with their hashes, new nodes.
-- nodes: those that lost or got a document; searched: those of them whose matches must be found;
-- old_nodes, old_firsts: the nodes before, and the first document of each;
-- neighbours, lost_firsts: the nodes that lost a match with a node that is gone, and its first document.
CREATE OR REPLACE FUNCTION textsim._move_to_nodes(
    c textsim.corpus, documents integer[], ids integer[], hashes uuid[], OUT nodes integer[], OUT searched integer[],
    OUT old_nodes integer[], OUT old_firsts integer[], OUT neighbours integer[], OUT lost_firsts integer[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- With how many earlier candidates a node is compared: half of them the earliest, which are most likely kept, and half
-- those that share most buckets.
-- Texts that fill in one template may all be candidates of each other. If each were compared with all others, and all
-- their matches were stored, the costs of a document would grow with their number.
CREATE OR REPLACE FUNCTION textsim._most_compared() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 200;

-- How many documents of a bucket are read, the earliest first, to find the candidates of a node.
CREATE OR REPLACE FUNCTION textsim._most_read() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1000;

-- The matches of nodes, found anew: pairs of nodes, the lower id first, and their similarities.
-- crowded: the nodes that were compared with some of their candidates only; full_nodes: those that have too many.
-- STABLE, so its statements see the same: the documents as they are when the log has no entries for them.
CREATE OR REPLACE FUNCTION textsim._find_matches(
    c textsim.corpus, threshold double precision, nodes integer[], OUT lefts integer[], OUT rights integer[],
    OUT similarities double precision[], OUT crowded integer[], OUT full_nodes integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    changed integer[] := textsim._logged_ids(c.id);
    candidates record;
BEGIN
    WITH searching AS MATERIALIZED (
        SELECT DISTINCT ON (n.node) n.node, d.id, d.shingle_count, d.part, d.guard,
            -- The documents with this guard, or one more than are looked for in the buckets.
            CASE WHEN d.guard IS NOT NULL THEN array(
                SELECT o.id FROM textsim.document o WHERE o.guard = d.guard
                LIMIT textsim._most_mates() + 1) END AS mates,
            textsim._in_part(textsim._buckets(d.signature, c.bands, c.rows), d.part) AS buckets
        FROM textsim.node n JOIN textsim.document d ON d.id = n.document_id
        WHERE n.node = ANY (nodes) AND d.id NOT IN (SELECT unnest(changed))
        ORDER BY n.node, d.id
    ), sought AS MATERIALIZED (
        -- In the order of the index, neighbours are looked up in the same pages.
        SELECT s.node, s.id, s.shingle_count, s.part, s.guard, q.bucket,
            CASE WHEN cardinality(s.mates) <= textsim._most_mates() THEN s.mates END AS mates
        FROM searching s CROSS JOIN LATERAL unnest(s.buckets) q (bucket) ORDER BY q.bucket
    ), meeting AS MATERIALIZED (
        SELECT s.node, s.id, s.shingle_count, s.part, s.guard, r.document_id, count(*) AS shared
        FROM sought s
        CROSS JOIN LATERAL (
            (SELECT r.document_id FROM textsim.band r WHERE r.bucket = s.bucket AND s.mates IS NULL
            ORDER BY r.document_id LIMIT textsim._most_read())
            UNION ALL
            SELECT r.document_id FROM textsim.band r WHERE r.bucket = s.bucket AND r.document_id = ANY (s.mates)) r
        WHERE r.document_id <> s.id
        GROUP BY s.node, s.id, s.shingle_count, s.part, s.guard, r.document_id
    ), candidate AS MATERIALIZED (
        SELECT DISTINCT ON (m.node, n.node)
            m.node, n.node AS other, m.id AS x, d.id AS y, m.shared, m.shingle_count + d.shingle_count AS shingles
        FROM meeting m
        CROSS JOIN LATERAL (
            SELECT n.node FROM textsim.node n WHERE n.document_id = m.document_id OFFSET 0) n
        CROSS JOIN LATERAL (
            SELECT d.id, d.shingle_count, d.part, d.guard
            FROM textsim.document d WHERE d.id = m.document_id OFFSET 0) d
        WHERE n.node <> m.node AND d.part IS NOT DISTINCT FROM m.part
            AND textsim._have_equal_guards(d.guard, m.guard)
            -- Looked up in a hash table. An anti-join could be a nested loop, because sizes are guessed.
            AND d.id NOT IN (SELECT unnest(changed))
            AND textsim._is_candidate(
                m.shared, m.shingle_count, d.shingle_count, CASE WHEN c.bands IS NULL THEN c.threshold END)
            AND textsim._may_reach(m.shingle_count, d.shingle_count, threshold)
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

-- The documents of nodes, and the representative of each; alone, a document represents itself. All nodes that may
-- change a cluster of these must be among them or outside, whose own documents are not returned.
-- Nodes are numbered in the order of their first documents.
-- If the first document of a node is kept, its copies are members of its cluster. Otherwise no copy is kept, but a
-- later copy may be nearer to a document that was kept meanwhile.
CREATE OR REPLACE FUNCTION textsim._group_nodes(
    c textsim.corpus, linkage text, nodes integer[], outside integer[] DEFAULT '{}', OUT documents integer[],
    OUT representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    numbered integer[];
    firsts integer[];
    links record;
    roots integer[];
    keys text[];  -- by numbered node: the key of its document, if that is judged
    apart_ends integer[];
    apart integer[];
BEGIN
    SELECT array_agg(f.node ORDER BY f.first), array_agg(f.first ORDER BY f.first)
    FROM (
        SELECT k.node, (
            SELECT n.document_id FROM textsim.node n WHERE n.node = k.node ORDER BY n.document_id LIMIT 1) AS first
        FROM unnest(nodes || outside) k (node)
    ) f
    WHERE f.first IS NOT NULL
    INTO numbered, firsts;
    IF numbered IS NULL THEN
        RETURN;
    END IF;
    WITH node AS MATERIALIZED (
        SELECT k.id, k.place::integer, k.id IN (SELECT unnest(outside)) AS is_outside
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
    )
    SELECT array_agg(l.x ORDER BY l.leads_outside) AS lefts, array_agg(l.y ORDER BY l.leads_outside) AS rights,
        array_agg(l.similarity ORDER BY l.leads_outside) AS similarities,
        count(*) FILTER (WHERE NOT l.leads_outside) AS deciding
    FROM link l
    INTO links;
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
    WITH node AS MATERIALIZED (
        SELECT k.id, k.first, k.root, k.place::integer
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
        WHERE keys[x.place] IS NULL
    )
    SELECT array_agg(o.document_id), array_agg(o.representative)
    FROM (
        SELECT DISTINCT ON (n.document_id)
            n.document_id,
            coalesce(p.first, r.first) AS representative
        FROM node k
        JOIN node r ON r.place = k.root
        JOIN textsim.node n ON n.node = k.id AND n.node = ANY (nodes)
        LEFT JOIN kept p ON p.id = k.id AND p.first < n.document_id
        ORDER BY n.document_id, p.similarity DESC, p.first
    ) o
    INTO documents, representatives;
END $$;
