-- The matches and clusters of tracked corpora, by the keys of documents. Documents that changed since the last update
-- have the clusters that they had then.

-- The rows of members(), of all clusters or of that of a document.
-- The documents come first: untrack() locks them first, too.
CREATE OR REPLACE FUNCTION textsim._members(corpus text, of_key text)
RETURNS TABLE (key text, cluster bigint, representative text, similarity double precision, crowded boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    of_cluster text := CASE WHEN of_key IS NOT NULL THEN format(
        ' AND m.cluster = (SELECT o.cluster FROM textsim.%I e JOIN textsim.%I o ON o.document_id = e.id '
        'WHERE e.key = $1%s)', 'document_' || c.id, 'member_' || c.id, textsim._alive(c, 'e')) END;
BEGIN
    PERFORM textsim._tracking(c);
    RETURN QUERY EXECUTE format($query$
        SELECT d.key, m.cluster, r.key, (
            SELECT CASE WHEN n.node = o.node THEN 1 ELSE (
                SELECT s.similarity FROM textsim.%4$I s
                WHERE s.a = least(n.node, o.node) AND s.b = greatest(n.node, o.node)
                    AND s.similarity < textsim._similarity_of_same()) END
            FROM textsim.%5$I o WHERE o.document_id = r.id),
            k.node IS NOT NULL
        FROM textsim.%1$I d
        JOIN textsim.%2$I m ON m.document_id = d.id
        JOIN textsim.%3$I c ON c.id = m.cluster
        LEFT JOIN textsim.%1$I r ON r.id = c.representative%7$s
        LEFT JOIN textsim.%5$I n ON n.document_id = m.document_id
        LEFT JOIN textsim.%6$I k ON k.node = n.node
        WHERE true%8$s%9$s
        $query$, 'document_' || c.id, 'member_' || c.id, 'cluster_' || c.id, 'match_' || c.id, 'node_' || c.id,
        'crowded_' || c.id, textsim._alive(c, 'r'), textsim._alive(c, 'd'), of_cluster)
    USING of_key;
END $$;

-- The stored matches of documents that have not expired. Documents of one node match at 1.
CREATE OR REPLACE FUNCTION textsim._match_pairs(corpus text) RETURNS TABLE (a text, b text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    PERFORM textsim._tracking(c);
    RETURN QUERY EXECUTE format($query$
        SELECT least(d.key COLLATE "C", e.key), greatest(d.key COLLATE "C", e.key), p.similarity
        FROM textsim.%1$I d
        JOIN (
            SELECT x.document_id AS x, y.document_id AS y, m.similarity
            FROM textsim.%3$I m JOIN textsim.%2$I x ON x.node = m.a JOIN textsim.%2$I y ON y.node = m.b
            WHERE m.similarity < textsim._similarity_of_same()
            UNION ALL
            SELECT x.document_id, y.document_id, 1
            FROM textsim.%2$I x JOIN textsim.%2$I y ON y.node = x.node AND y.document_id > x.document_id
        ) p ON p.x = d.id
        JOIN textsim.%1$I e ON e.id = p.y
        WHERE true%4$s%5$s
        $query$, 'document_' || c.id, 'node_' || c.id, 'match_' || c.id, textsim._alive(c, 'd'),
        textsim._alive(c, 'e'));
END $$;

CREATE OR REPLACE FUNCTION textsim.members(corpus text, key text DEFAULT NULL)
RETURNS TABLE (key text, cluster bigint, representative text, similarity double precision, crowded boolean)
LANGUAGE sql STABLE PARALLEL SAFE COST 10000 ROWS 1000
BEGIN ATOMIC
    SELECT m.key, m.cluster, m.representative, m.similarity, m.crowded FROM textsim._members($1, $2) m;
END;
COMMENT ON FUNCTION textsim.members(text, text)
    IS 'Returns the documents of the clusters of a tracked corpus: key, the id of the cluster, the key of the document '
    'that represents it, which is the one to keep, and the exact similarity to that document. The similarity is NULL '
    'if the two documents were judged the same: judgements are obeyed, as in clusters() with judgements. crowded says '
    'that the document has too many candidates, as texts of one template have. At most 200 earlier '
    'ones count, so its cluster may be incomplete. With key, only the cluster of this document is returned, and no other one is '
    'read. A document without a match has no row, and neither has a document that has expired. If the representative has '
    'expired, it is NULL until clusters are updated. Raises an error if the corpus is not tracked.';

-- It compares all documents, unless the tables of a tracked corpus have the matches. These have no siblings.
CREATE OR REPLACE FUNCTION textsim.doubtful(
    corpus text, scope text DEFAULT NULL, max_results integer DEFAULT 100, siblings boolean DEFAULT false)
RETURNS TABLE (a text, b text, similarity double precision, differs text[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._lock_corpus(corpus);
    part bigint := CASE WHEN scope IS NOT NULL THEN textsim._part_of(c, scope) END;
    has_siblings boolean := siblings AND c.guards <> '{}';
    are_stored boolean := NOT has_siblings AND EXISTS (
        SELECT FROM textsim.tracked t WHERE t.corpus_id = c.id AND t.threshold <= c.threshold);
BEGIN
    PERFORM textsim._check_search(c, NULL, max_results);
    IF c.unique_from IS NULL AND NOT has_siblings THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        WITH same AS MATERIALIZED (
            SELECT g.key, g.root
            FROM textsim._judged_groups(array(
                SELECT j FROM textsim._obeyed_judgements(textsim._origin($1)) j)) g
            WHERE g.is_joined)
        SELECT f.a, f.b, f.similarity, textsim._differs(
            $1, textsim._stored_form(($1).id, f.word_ids, f.normal_form), f.guard, f.b, f.other_guard)
        FROM (
            SELECT p.a, p.b, p.similarity, d.word_ids, d.normal_form, d.guard, e.guard AS other_guard
            FROM %1$s p JOIN textsim.%2$I d ON d.key = p.a JOIN textsim.%2$I e ON e.key = p.b
            WHERE textsim._is_match(p.similarity, ($1).threshold) AND ($3 IS NULL OR d.part = $3)
                AND CASE WHEN textsim._have_equal_guards(d.guard, e.guard)
                    THEN NOT textsim._is_match(p.similarity, textsim._unique_from($1)) ELSE $4 END
                AND NOT EXISTS (
                    SELECT FROM textsim.judgement j
                    WHERE j.origin = textsim._origin($1) AND j.a = p.a AND j.b = p.b
                        AND NOT textsim._is_stale(j))
                -- A chain of pairs that were judged the same answers for its ends.
                AND (p.a, p.b) NOT IN (
                    SELECT x.key, y.key FROM same x JOIN same y ON y.root = x.root)
            ORDER BY p.similarity DESC, p.a COLLATE "C", p.b COLLATE "C" LIMIT $5
        ) f
        ORDER BY f.similarity DESC, f.a COLLATE "C", f.b COLLATE "C"
        $query$, CASE WHEN are_stored THEN 'textsim._match_pairs(($1).name)'
            ELSE 'textsim._pairs(($1).name, NULL, NULL, $2, NOT $4)' END, 'document_' || c.id)
    USING c, scope, part, has_siblings, max_results;
END $$;
COMMENT ON FUNCTION textsim.doubtful(text, text, integer, boolean)
    IS 'Returns the pairs that nobody has judged and that a person or a model may look at, best first: matches of a '
    'unique corpus below its unique_from, and with siblings also matches whose guards differ (differs says in what). A '
    'judgement takes a pair off the list, and so does a chain of pairs that were judged the same. If the corpus is '
    'tracked at its threshold, they are the stored matches, as of the last update; otherwise, and for '
    'siblings, they are the pairs of pairs().';

CREATE OR REPLACE FUNCTION textsim.cluster_events(corpus text, after bigint DEFAULT 0)
RETURNS TABLE (id bigint, at timestamptz, what text, cluster bigint, key text, other bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    PERFORM textsim._tracking(c);
    RETURN QUERY EXECUTE format($query$
        SELECT e.id, e.at, e.what, e.cluster, coalesce(d.key, r.key), e.other
        FROM textsim.%I e
        LEFT JOIN textsim.%I d ON d.id = e.document_id
        LEFT JOIN textsim.%I r ON r.document_id = e.document_id
        WHERE e.id > $1 ORDER BY e.id
        $query$, 'cluster_event_' || c.id, 'document_' || c.id, 'removed_' || c.id) USING coalesce(after, 0);
END $$;
COMMENT ON FUNCTION textsim.cluster_events(text, bigint)
    IS 'Returns what happened to the clusters of a tracked corpus, in order: the id of the event, when the clusters '
    'were updated, what happened, the id of the cluster, the key of the document, and the other cluster. what is '
    'created; joined: the document is a member from now on, and of the cluster other no longer; left; split: members '
    'went to the new cluster other; merged: the members are members of the cluster other; or ended. after is the id of '
    'the last event that was read. Ids are in the order of commits, so no event comes later with a lower id. Events '
    'are kept for the time keep_events of track(). Raises an error if the corpus is not tracked.';
