-- Which clusters of a tracked corpus a batch of changed documents may change.
--
-- Documents are considered in the order in which they were added. A document is kept if it matches no document that is
-- kept already; otherwise it follows the most similar one of those. Of the documents of a node, which have the same
-- shingles, only the first can be kept, and then the others follow it. So a node is kept if its first document is, which
-- depends on earlier nodes only.

-- The first document of each node, in the order of the nodes; NULL for a node without documents.
CREATE OR REPLACE FUNCTION textsim._first_documents(nodes integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
BEGIN
    RETURN array(
        SELECT (SELECT n.document_id FROM textsim.node n WHERE n.node = k.node ORDER BY n.document_id LIMIT 1)
        FROM unnest(nodes) WITH ORDINALITY k (node, place)
        ORDER BY k.place);
END $$;

-- Whether each document is kept, as clusters are stored: it represents its cluster, or is in none.
CREATE OR REPLACE FUNCTION textsim._are_kept(documents integer[]) RETURNS boolean[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
BEGIN
    RETURN array(
        SELECT coalesce((
            SELECT c.representative = d.id FROM textsim.cluster c WHERE c.id = (
                SELECT m.cluster FROM textsim.member m WHERE m.document_id = d.id)), true)
        FROM unnest(documents) WITH ORDINALITY d (id, place)
        ORDER BY d.place);
END $$;

-- The nodes that match a node and have a document after the one that is given for it. walks: also the nodes that match
-- those and have a document after their first, and so on.
CREATE OR REPLACE FUNCTION textsim._later_neighbours(nodes integer[], documents integer[], walks boolean)
RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
BEGIN
    RETURN array(
        WITH RECURSIVE walk (node, document_id, is_given) AS (
            SELECT k.node, k.document_id, true FROM unnest(nodes, documents) k (node, document_id)
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
                    WHERE n.node = o.node ORDER BY n.document_id DESC LIMIT 1) > w.document_id
            ) e
            WHERE w.is_given OR walks
        )
        SELECT DISTINCT w.node FROM walk w WHERE NOT w.is_given);
END $$;

-- The documents of nodes, and the representative of each; alone, a document represents itself.
-- All nodes that may change a cluster of these must be among them or outside. The nodes outside are kept, and their own
-- documents are not returned. linkage is kept; clients of version 0.1.0 name it.
CREATE OR REPLACE FUNCTION textsim._group_nodes(
    c textsim.corpus, linkage text, nodes integer[], outside integer[] DEFAULT '{}', OUT documents integer[],
    OUT representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    -- By place of a node in the order in which nodes are considered:
    ordered integer[];  -- its id
    firsts integer[];  -- its first document
    are_outside boolean[];  -- whether it is outside
    keys text[];  -- the key of its document, if that was judged
    roots integer[];  -- the place of the kept node that it follows; its own if it is kept
    -- By match: earlier and later, the places of its nodes, and similarities.
    matches record;
    -- The nodes that were judged different, as _apart() returns them.
    apart_ends integer[];
    apart integer[];
BEGIN
    SELECT array_agg(k.node ORDER BY k.first), array_agg(k.first ORDER BY k.first),
        array_agg(k.node IN (SELECT unnest(outside)) ORDER BY k.first)
    FROM unnest(nodes || outside, textsim._first_documents(nodes || outside)) k (node, first)
    WHERE k.first IS NOT NULL
    INTO ordered, firsts, are_outside;
    IF ordered IS NULL THEN
        RETURN;
    END IF;
    WITH placed AS MATERIALIZED (
        SELECT o.id, o.place::integer FROM unnest(ordered) WITH ORDINALITY o (id, place)
    )
    SELECT array_agg(least(x.place, y.place)) AS earlier, array_agg(greatest(x.place, y.place)) AS later,
        array_agg(m.similarity) AS similarities
    FROM (
        -- Most nodes have many matches with later nodes only.
        SELECT m.* FROM textsim.match m WHERE m.b = ANY (nodes)
        UNION ALL
        SELECT m.* FROM textsim.match m
        WHERE outside <> '{}' AND m.a = ANY (nodes) AND m.b NOT IN (SELECT unnest(nodes))
    ) m
    JOIN placed x ON x.id = m.a JOIN placed y ON y.id = m.b
    INTO matches;
    IF textsim._has_verdicts(textsim._origin(c)) THEN
        keys := array(
            SELECT (
                SELECT d.key FROM textsim.document d
                WHERE d.id = f.id AND textsim._is_judged(textsim._origin(c), d.key))
            FROM unnest(firsts) WITH ORDINALITY f (id, place) ORDER BY f.place);
        SELECT a.* INTO apart_ends, apart
        FROM textsim._apart(c.name, keys, matches.earlier, matches.later, matches.similarities) a;
    END IF;
    -- A node outside stays kept, also if it matches an earlier kept node: a judgement may keep the two apart. So
    -- matches whose later node is outside do not decide.
    SELECT l.roots INTO roots
    FROM (
        SELECT array_agg(m.earlier) AS earlier, array_agg(m.later) AS later, array_agg(m.similarity) AS similarities
        FROM unnest(matches.earlier, matches.later, matches.similarities) m (earlier, later, similarity)
        WHERE NOT are_outside[m.later]
    ) m
    CROSS JOIN LATERAL textsim._kept_linkage(
        m.earlier, m.later, m.similarities, array(SELECT generate_series(1, cardinality(ordered))), apart_ends, apart) l;
    -- A document follows the most similar of the nodes that were kept before it was added. So a later copy may be
    -- nearer to a document that was kept meanwhile. A judged document follows where its judgements allow.
    WITH placed AS MATERIALIZED (
        SELECT o.id, o.first, o.root, o.place
        FROM unnest(ordered, firsts, roots) WITH ORDINALITY o (id, first, root, place)
    ), nearby AS MATERIALIZED (
        SELECT x.id, y.first, m.similarity
        FROM (
            SELECT unnest(matches.earlier) AS x, unnest(matches.later) AS y, unnest(matches.similarities) AS similarity
            UNION ALL SELECT unnest(matches.later), unnest(matches.earlier), unnest(matches.similarities)
        ) m
        JOIN placed x ON x.place = m.x AND x.root <> x.place
        JOIN placed y ON y.place = m.y AND y.root = y.place
        WHERE keys[x.place] IS NULL
    ), choice AS (
        SELECT DISTINCT ON (n.document_id) n.document_id, coalesce(p.first, r.first) AS representative
        FROM placed k
        JOIN placed r ON r.place = k.root
        JOIN textsim.node n ON n.node = k.id AND n.node = ANY (nodes)
        LEFT JOIN nearby p ON p.id = k.id AND p.first < n.document_id
        ORDER BY n.document_id, p.similarity DESC, p.first
    )
    SELECT array_agg(o.document_id), array_agg(o.representative) FROM choice o INTO documents, representatives;
END $$;

-- The documents whose clusters may have changed, and the representative of each. The changed nodes are grouped first,
-- and then the nodes that follow a node that came out otherwise than stored.
--   changed: the nodes with other documents or matches than before; searched: those of them whose matches were found
--   old_nodes, old_firsts: the nodes that lost documents, and their first documents before
--   clusters, cluster_representatives: the clusters of these documents that have other members, too
CREATE OR REPLACE FUNCTION textsim._kept_groups(
    c textsim.corpus, logged integer[], changed integer[], searched integer[], old_nodes integer[],
    old_firsts integer[], OUT documents integer[], OUT representatives integer[], OUT clusters bigint[],
    OUT cluster_representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    most_rounds CONSTANT integer := 8;  -- after these, as in a long chain, all nodes that may follow are grouped
    nodes integer[] := '{}';
    followers integer[] := array(SELECT DISTINCT unnest(changed));
    neighbours integer[];
    firsts integer[];
    followed record;
    round integer := 0;
BEGIN
    LOOP
        round := round + 1;
        nodes := textsim._with_judged(textsim._origin(c), nodes || followers, logged);
        neighbours := array(
            (SELECT m.b FROM textsim.match m WHERE m.a = ANY (nodes)
            UNION SELECT m.a FROM textsim.match m WHERE m.b = ANY (nodes))
            EXCEPT SELECT unnest(nodes));
        SELECT g.* INTO documents, representatives FROM textsim._group_nodes(c, 'kept', nodes, array(
            SELECT k.node
            FROM unnest(neighbours, textsim._are_kept(textsim._first_documents(neighbours))) k (node, is_kept)
            WHERE k.is_kept)) g;
        -- If a node has other matches, another first document, or is kept otherwise than before, the documents after
        -- its first one, now or before, may follow it otherwise.
        firsts := textsim._first_documents(nodes);
        SELECT array_agg(k.node) AS nodes, array_agg(least(k.first, o.first)) AS firsts
        FROM unnest(nodes, firsts, textsim._are_kept(firsts)) k (node, first, was_kept)
        LEFT JOIN unnest(old_nodes, old_firsts) o (node, first) ON o.node = k.node
        LEFT JOIN unnest(documents, representatives) g (document_id, representative) ON g.document_id = k.first
        WHERE k.node IN (SELECT unnest(searched)) OR k.first IN (SELECT unnest(logged)) OR k.first <> o.first
            OR (g.representative = k.first) <> k.was_kept
        INTO followed;
        followers := array(
            SELECT unnest(textsim._later_neighbours(followed.nodes, followed.firsts, round > most_rounds))
            EXCEPT SELECT unnest(nodes));
        EXIT WHEN followers = '{}';
    END LOOP;
    -- The documents that others follow are kept, so each represents itself.
    SELECT documents || array_agg(k.id), representatives || array_agg(k.id) INTO documents, representatives
    FROM (SELECT unnest(representatives) EXCEPT SELECT unnest(documents)) k (id);
    -- If the representative of a cluster is no longer kept, all its members are among the documents.
    SELECT array_agg(o.id), array_agg(o.representative)
    FROM textsim.cluster o
    LEFT JOIN unnest(documents, representatives) g (document_id, representative) ON g.document_id = o.representative
    WHERE o.id = ANY (array(SELECT m.cluster FROM textsim.member m WHERE m.document_id = ANY (documents || logged)))
        -- The representative stays,
        AND coalesce(g.representative = o.representative, o.representative NOT IN (SELECT unnest(logged)))
        -- and there are other members.
        AND (
            SELECT m.document_id FROM textsim.member m
            WHERE m.cluster = o.id AND m.document_id NOT IN (SELECT unnest(documents || logged)) LIMIT 1) IS NOT NULL
    INTO clusters, cluster_representatives;
END $$;
