-- Which clusters of a tracked corpus a batch of changed documents may change.

-- The nodes that have a document after the first document of a lost node, given for each, if that was kept.
-- No document follows a document that is not kept, or that is alone.
CREATE OR REPLACE FUNCTION textsim._nodes_after_kept(nodes integer[], lost_firsts integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- The nodes whose first documents are kept, among the nodes that match these nodes.
CREATE OR REPLACE FUNCTION textsim._kept_neighbours(nodes integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- The nodes whose documents may go to another representative, because an earlier node that they match has other
-- matches, another first document, or is kept otherwise; NULL if there are none besides these. walks: also the nodes
-- that follow those.
CREATE OR REPLACE FUNCTION textsim._followers(
    nodes integer[], documents integer[], representatives integer[], logged integer[], searched integer[],
    old_nodes integer[], old_firsts integer[], walks boolean)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- The documents whose clusters may have changed, and the rests of these clusters. changed: the nodes with
-- other documents or matches than before.
-- Whether a document is kept depends on earlier documents only. So the changed nodes are examined, and then the nodes
-- that follow a node that came out otherwise than stored. A long chain would take many rounds, so after some rounds all
-- that may follow are examined.
CREATE OR REPLACE FUNCTION textsim._kept_groups(
    c textsim.corpus, logged integer[], changed integer[], searched integer[], old_nodes integer[],
    old_firsts integer[], OUT documents integer[], OUT representatives integer[], OUT clusters bigint[],
    OUT rests integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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
