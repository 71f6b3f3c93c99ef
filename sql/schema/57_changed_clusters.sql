-- Which clusters of a tracked corpus a batch of changed documents may change.
--
-- Documents are considered in the order in which they were added. A document is kept if it matches no document that is
-- kept already; otherwise it goes to the most similar one of those. Of the documents of a node, which have the same
-- shingles, only the first can be kept, and then the others go to it. So a node is kept if its first document is, which
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

-- The nodes that match a node and have a document after the one in `since` for it. walks: also the nodes that match
-- those and have a document after their first, and so on.
CREATE OR REPLACE FUNCTION textsim._later_neighbours(nodes integer[], since integer[], walks boolean)
RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
BEGIN
    RETURN array(
        WITH RECURSIVE walk (node, since, is_given) AS (
            SELECT k.node, k.since, true FROM unnest(nodes, since) k (node, since)
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
    keys text[];  -- the key of its document, if that was judged
    kept integer[];  -- the place of the kept node that it goes to; its own if it is kept
    -- By match: earlier and later, the places of its nodes, and similarities; by match whose later node is outside:
    -- the same, as outer_earlier, outer_later and outer_similarities.
    matches record;
    -- The nodes that were judged different, as _apart() returns them.
    apart_ends integer[];
    apart integer[];
BEGIN
    SELECT array_agg(k.node ORDER BY k.first), array_agg(k.first ORDER BY k.first)
    FROM unnest(nodes || outside, textsim._first_documents(nodes || outside)) k (node, first)
    WHERE k.first IS NOT NULL
    INTO ordered, firsts;
    IF ordered IS NULL THEN
        RETURN;
    END IF;
    WITH node AS MATERIALIZED (
        SELECT o.id, o.place::integer, o.id IN (SELECT unnest(outside)) AS is_outside
        FROM unnest(ordered) WITH ORDINALITY o (id, place)
    ), match AS (
        SELECT least(x.place, y.place) AS earlier, greatest(x.place, y.place) AS later, m.similarity,
            CASE WHEN x.place > y.place THEN x.is_outside ELSE y.is_outside END AS is_outer
        FROM (
            -- Most nodes have many matches with later nodes only.
            SELECT m.* FROM textsim.match m WHERE m.b = ANY (nodes)
            UNION ALL
            SELECT m.* FROM textsim.match m
            WHERE outside <> '{}' AND m.a = ANY (nodes) AND m.b NOT IN (SELECT unnest(nodes))
        ) m
        JOIN node x ON x.id = m.a JOIN node y ON y.id = m.b
    )
    SELECT array_agg(m.earlier) FILTER (WHERE NOT m.is_outer) AS earlier,
        array_agg(m.later) FILTER (WHERE NOT m.is_outer) AS later,
        array_agg(m.similarity) FILTER (WHERE NOT m.is_outer) AS similarities,
        array_agg(m.earlier) FILTER (WHERE m.is_outer) AS outer_earlier,
        array_agg(m.later) FILTER (WHERE m.is_outer) AS outer_later,
        array_agg(m.similarity) FILTER (WHERE m.is_outer) AS outer_similarities
    FROM match m
    INTO matches;
    IF textsim._has_verdicts(coalesce(c.origin, c.id)) THEN
        keys := array(
            SELECT (
                SELECT d.key FROM textsim.document d
                WHERE d.id = f.id AND textsim._is_judged(coalesce(c.origin, c.id), d.key))
            FROM unnest(firsts) WITH ORDINALITY f (id, place) ORDER BY f.place);
        SELECT a.* INTO apart_ends, apart
        FROM textsim._apart(
            c.name, keys, matches.earlier || matches.outer_earlier, matches.later || matches.outer_later,
            matches.similarities || matches.outer_similarities) a;
    END IF;
    -- A node outside stays kept, also if it matches an earlier kept node: a judgement may keep the two apart. So
    -- matches whose later node is outside do not decide.
    SELECT l.roots INTO kept FROM textsim._kept_linkage(
        matches.earlier, matches.later, matches.similarities,
        array(SELECT generate_series(1, cardinality(ordered))), apart_ends, apart) l;
    -- A document goes to the most similar of the nodes that were kept before it was added. So a later copy may be
    -- nearer to a document that was kept meanwhile. A judged document goes where its judgements allow.
    WITH node AS MATERIALIZED (
        SELECT o.id, o.first, o.kept, o.place
        FROM unnest(ordered, firsts, kept) WITH ORDINALITY o (id, first, kept, place)
    ), nearby AS MATERIALIZED (
        SELECT x.id, y.first, m.similarity
        FROM (
            SELECT unnest(matches.earlier) AS x, unnest(matches.later) AS y, unnest(matches.similarities) AS similarity
            UNION ALL SELECT unnest(matches.later), unnest(matches.earlier), unnest(matches.similarities)
            UNION ALL
            SELECT unnest(matches.outer_earlier), unnest(matches.outer_later), unnest(matches.outer_similarities)
        ) m
        JOIN node x ON x.place = m.x AND x.kept <> x.place
        JOIN node y ON y.place = m.y AND y.kept = y.place
        WHERE keys[x.place] IS NULL
    ), choice AS (
        SELECT DISTINCT ON (n.document_id) n.document_id, coalesce(p.first, r.first) AS representative
        FROM node k
        JOIN node r ON r.place = k.kept
        JOIN textsim.node n ON n.node = k.id AND n.node = ANY (nodes)
        LEFT JOIN nearby p ON p.id = k.id AND p.first < n.document_id
        ORDER BY n.document_id, p.similarity DESC, p.first
    )
    SELECT array_agg(o.document_id), array_agg(o.representative) FROM choice o INTO documents, representatives;
END $$;

-- Which of these nodes later nodes may follow otherwise than before: those that have other matches, another first
-- document, or are kept otherwise. since: for each the first document after which others may follow it otherwise.
-- documents, representatives: how the documents of the nodes are grouped now; old_nodes, old_firsts: the nodes that
-- lost documents, and their first documents before.
CREATE OR REPLACE FUNCTION textsim._followed_otherwise(
    nodes integer[], documents integer[], representatives integer[], logged integer[], searched integer[],
    old_nodes integer[], old_firsts integer[], OUT ids integer[], OUT since integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    firsts integer[] := textsim._first_documents(nodes);
BEGIN
    SELECT array_agg(k.node), array_agg(least(k.first, o.first))
    FROM unnest(nodes, firsts, textsim._are_kept(firsts)) k (node, first, was_kept)
    LEFT JOIN unnest(old_nodes, old_firsts) o (node, first) ON o.node = k.node
    LEFT JOIN unnest(documents, representatives) g (document_id, representative) ON g.document_id = k.first
    WHERE k.node IN (SELECT unnest(searched)) OR k.first IN (SELECT unnest(logged)) OR k.first <> o.first
        OR (g.representative = k.first) <> k.was_kept
    INTO ids, since;
END $$;

-- The documents whose clusters may have changed, and the representative of each; clusters: those that have other
-- members, too, and cluster_representatives: theirs. changed: the nodes with other documents or matches than before.
-- The changed nodes are grouped first, and then the nodes that follow a node that came out otherwise than stored. A
-- long chain would take many rounds, so after some rounds all that may follow are grouped.
CREATE OR REPLACE FUNCTION textsim._kept_groups(
    c textsim.corpus, logged integer[], changed integer[], searched integer[], old_nodes integer[],
    old_firsts integer[], OUT documents integer[], OUT representatives integer[], OUT clusters bigint[],
    OUT cluster_representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    nodes integer[] := '{}';
    followers integer[] := array(SELECT DISTINCT unnest(changed));
    neighbours integer[];
    followed record;
    round integer := 0;
BEGIN
    LOOP
        round := round + 1;
        nodes := textsim._with_judged(coalesce(c.origin, c.id), nodes || followers, logged);
        neighbours := array(
            SELECT m.b FROM textsim.match m WHERE m.a = ANY (nodes)
            UNION SELECT m.a FROM textsim.match m WHERE m.b = ANY (nodes)
            EXCEPT SELECT unnest(nodes));
        SELECT g.* INTO documents, representatives FROM textsim._group_nodes(c, 'kept', nodes, array(
            SELECT k.node
            FROM unnest(neighbours, textsim._are_kept(textsim._first_documents(neighbours))) k (node, is_kept)
            WHERE k.is_kept)) g;
        followed := textsim._followed_otherwise(
            nodes, documents, representatives, logged, searched, old_nodes, old_firsts);
        followers := array(
            SELECT unnest(textsim._later_neighbours(followed.ids, followed.since, round > 8))
            EXCEPT SELECT unnest(nodes));
        EXIT WHEN followers = '{}';
    END LOOP;
    -- The documents that others go to are kept, so each represents itself.
    SELECT documents || array_agg(k.id), representatives || array_agg(k.id) INTO documents, representatives
    FROM (SELECT unnest(representatives) EXCEPT SELECT unnest(documents)) k (id);
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
    INTO clusters, cluster_representatives;
END $$;
