-- Which clusters of a tracked corpus a batch of changed documents may change, for each linkage.

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

-- Linkage kept: the documents whose clusters may have changed, and the rests of these clusters. changed: the nodes with
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

-- Linkage single: the documents of the parts that fall away from clusters, and the first document of each part.
-- neighbours: the nodes that lost a match; new matches must not be stored yet.
-- From each end of a lost match a walk begins, and all walks make a step at a time. Walks that meet are one. As soon
-- as at most one walk of a cluster has nodes left to go to, the nodes that it has not met are the rest of the cluster,
-- and the walks that came to their end are the parts that fall away. A long chain would take many steps, so what is
-- not decided after some steps is walked as a whole.
CREATE OR REPLACE FUNCTION textsim._lost_parts(
    c textsim.corpus, logged integer[], neighbours integer[], OUT documents integer[], OUT parts integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- Linkage single: the documents whose clusters may have changed, and the rests of these clusters. lost, lost_parts: the
-- documents that fall away, and their parts.
-- The pieces are the rests of clusters, the parts that fall away, new nodes, and nodes of one document. The matches of
-- new nodes join them. The number of a piece is the id of the cluster, or else minus the first document.
CREATE OR REPLACE FUNCTION textsim._joined_groups(
    logged integer[], nodes integer[], searched integer[], lost integer[], lost_parts integer[],
    OUT documents integer[], OUT representatives integer[], OUT clusters bigint[], OUT rests integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- Nodes, and all nodes of their stored clusters and of those of logged documents.
CREATE OR REPLACE FUNCTION textsim._with_clusters(nodes integer[], logged integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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

-- Nodes, and all that clusters and judgements connect with them.
-- A judgement may cut one of two copies from a node, and then the other copy is no copy of it. So both ends are needed.
CREATE OR REPLACE FUNCTION textsim._with_judged_clusters(corpus_origin integer, nodes integer[], logged integer[])
RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
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

-- The nodes that may be in a complete cluster with one of these, because they match it and neither of the two is full,
-- or both are full copies. walks: also the nodes that touch those, and so on.
CREATE OR REPLACE FUNCTION textsim._touching_nodes(nodes integer[], walks boolean) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
-- Each round looks its nodes up in the indexes.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
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

-- The nodes of documents whose cluster has other members than before.
CREATE OR REPLACE FUNCTION textsim._regrouped_nodes(documents integer[], representatives integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
BEGIN
    RETURN array(
        SELECT DISTINCT (SELECT n.node FROM textsim.node n WHERE n.document_id = o.document_id)
        FROM (
            SELECT g.document_id,
                min(g.old) OVER n <> max(g.old) OVER n OR min(g.new) OVER o <> max(g.new) OVER o AS is_other
            FROM (
                SELECT g.document_id, g.representative AS new, coalesce(m.cluster, -g.document_id) AS old
                FROM unnest(documents, representatives) g (document_id, representative)
                LEFT JOIN textsim.member m ON m.document_id = g.document_id AND m.document_id = ANY (documents)
            ) g
            WINDOW n AS (PARTITION BY g.new), o AS (PARTITION BY g.old)
        ) o
        WHERE o.is_other);
END $$;

-- Linkage complete: the documents whose clusters may have changed. changed: the nodes with other documents or matches
-- than before; neighbours: the nodes that lost a match with a node that is gone.
-- Which links a cluster is made of depends on its own members only. So two clusters can be computed apart, unless parts
-- of both would merge. The changed clusters are computed with all clusters that they touch. If a touched cluster comes
-- out otherwise than stored, the clusters that it touches are computed too. A long chain would take many rounds, so
-- after some rounds all that may change are computed.
CREATE OR REPLACE FUNCTION textsim._complete_groups(
    c textsim.corpus, logged integer[], changed integer[], neighbours integer[], OUT documents integer[],
    OUT representatives integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
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
