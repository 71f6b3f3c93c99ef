-- The nodes of a tracked corpus, and their matches.
--
-- A node is documents that are known to have the same shingles and part. Others that have them may be in other nodes,
-- which match at 1. An update knows copies by the hash of their words. The first update of many documents
-- (textsim_db/sync/build_clusters) knows them by their similarity, and stores no hash, so a later copy gets a node of its
-- own. So does a judged document (56).
--
-- A node is crowded if it has too many candidates, as texts of one template have, or a bucket of too many documents. Not
-- all its matches are stored, because the costs of a document would grow with their number. An update compares it with
-- _most_compared() earlier candidates: half of them the earliest, which are most likely kept, and half those that share
-- most buckets. The first update compares it with all, and stores the _most_compared() earliest matches.

-- The hash of the words and the part of a document, given by its word ids or its normal form.
-- A document that is stored as text has another hash than its copy that has word ids.
CREATE OR REPLACE FUNCTION textsim._words_hash(word_ids integer[], form text, part bigint) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(
    sha256(coalesce(convert_to(form, 'UTF8'), array_send(word_ids))) || coalesce(int8send(part), '')
), 1, 16), 'hex')::uuid;

-- The documents of the first log entries, which are deleted; NULL without any. entry_id: only this entry, and those that
-- this transaction has written after it.
CREATE OR REPLACE FUNCTION textsim._logged_documents(corpus_id integer, entry_id bigint) RETURNS integer[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
-- The entries are read in the order of their index, whatever the statistics are.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
DECLARE
    most CONSTANT integer := 5000;  -- documents of a full batch
    entry record;
    entries bigint[] := '{}';
    documents integer[];
BEGIN
    FOR entry IN
        SELECT p.id, p.document_ids, p.judged_keys FROM textsim.pending p
        WHERE p.kind = 'cluster' AND p.corpus_id = _logged_documents.corpus_id
            AND (entry_id IS NULL OR p.id = entry_id
                OR p.id > entry_id AND p.xmin = pg_current_xact_id()::xid)
        ORDER BY p.corpus_id, p.id
    LOOP
        entries := entries || entry.id;
        documents := documents || entry.document_ids || (textsim._judged_documents(corpus_id, entry.judged_keys)).ids;
        EXIT WHEN cardinality(documents) >= most;
    END LOOP;
    PERFORM textsim._delete_entries(entries);
    RETURN textsim._with_connected(corpus_id, documents);
END $$;

-- The documents of a tracked corpus whose clusters must be updated, also those that were set aside; some of them twice.
-- An array, because the planner guesses ten elements, and so looks for them in a hash table. It would guess that a long
-- log needs too large a table, and look through the whole log for each document.
CREATE OR REPLACE FUNCTION textsim._logged_ids(corpus_id integer) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN textsim._with_connected(corpus_id, array(
        SELECT unnest(p.document_ids) FROM textsim.pending p
        WHERE p.corpus_id = _logged_ids.corpus_id AND p.document_ids IS NOT NULL));
END $$;

-- Take changed documents out of their nodes, and give the stored ones new nodes; a judged document has one of its own.
--   changed: the nodes that lost or got a document, and those that may have followed a node that is gone
--   searched: the nodes whose matches must be found
--   old_nodes, old_firsts: the nodes that lost documents, and the first document that each had
CREATE OR REPLACE FUNCTION textsim._move_to_nodes(
    c textsim.corpus, documents integer[], OUT changed integer[], OUT searched integer[], OUT old_nodes integer[],
    OUT old_firsts integer[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    corpus_origin integer := textsim._origin(c);
    has_verdicts boolean := textsim._has_verdicts(corpus_origin);
    emptied record;
BEGIN
    old_nodes := array(SELECT DISTINCT n.node FROM textsim.node n WHERE n.document_id = ANY (documents));
    old_firsts := textsim._first_documents(old_nodes);
    DELETE FROM textsim.node n WHERE n.document_id = ANY (documents);
    WITH hashed AS MATERIALIZED (
        SELECT d.id, CASE
            WHEN has_verdicts AND textsim._is_judged(corpus_origin, d.key) THEN textsim._judged_hash(d.id)
            ELSE textsim._words_hash(d.word_ids, d.normal_form, d.part) END AS hash
        FROM textsim.document d
        WHERE d.id = ANY (documents) AND d.rejected IS NULL AND textsim._has_node(corpus_origin, d.shingle_count, d.key)
    ), node_of_hash AS MATERIALIZED (
        SELECT h.hash, coalesce(
            (SELECT n.node FROM textsim.node n WHERE n.words_hash = h.hash LIMIT 1),
            nextval('textsim.node_id_seq')) AS node
        FROM (SELECT d.hash FROM hashed d GROUP BY d.hash ORDER BY min(d.id)) h
    )
    INSERT INTO textsim.node (document_id, node, words_hash)
    SELECT d.id, n.node, d.hash FROM hashed d JOIN node_of_hash n ON n.hash = d.hash;
    IF old_nodes <> '{}' THEN
        emptied := textsim._remove_empty_nodes(old_nodes, old_firsts);
        changed := emptied.followers;
        searched := emptied.thinned;
    END IF;
    changed := changed || array(
        SELECT DISTINCT n.node FROM textsim.node n
        WHERE n.document_id = ANY (documents) OR n.node = ANY (old_nodes));
    -- The node of a document that was processed before, and has not changed since, has all its matches.
    searched := searched || array(
        SELECT k.node
        FROM (SELECT DISTINCT n.node FROM textsim.node n WHERE n.document_id = ANY (documents)) k
        WHERE (
            SELECT n.node FROM textsim.node n
            WHERE n.node = k.node AND n.document_id NOT IN (SELECT unnest(documents || textsim._logged_ids(c.id)))
            LIMIT 1) IS NULL
        EXCEPT SELECT unnest(searched));
END $$;

-- Remove the matches of the nodes that have no documents any more.
--   firsts: the first document that each node had
--   followers: the nodes with documents that may have followed one of them
--   thinned: the crowded nodes that lost many matches, and are compared again
CREATE OR REPLACE FUNCTION textsim._remove_empty_nodes(
    nodes integer[], firsts integer[], OUT followers integer[], OUT thinned integer[])
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    gone integer[] := array(
        SELECT k FROM unnest(nodes) k WHERE (SELECT n.node FROM textsim.node n WHERE n.node = k LIMIT 1) IS NULL);
    kept_gone record;
BEGIN
    SELECT array_agg(k.node) AS nodes, array_agg(k.first) AS firsts
    FROM unnest(nodes, firsts, textsim._are_kept(firsts)) k (node, first, is_kept)
    WHERE k.is_kept AND k.node IN (SELECT unnest(gone))
    INTO kept_gone;
    followers := coalesce(textsim._later_neighbours(kept_gone.nodes, kept_gone.firsts, false), '{}');
    DELETE FROM textsim.crowded k WHERE k.node = ANY (gone);
    WITH deleted AS (
        DELETE FROM textsim.match m WHERE m.a = ANY (gone) OR m.b = ANY (gone) RETURNING m.a, m.b
    ), counted AS (
        UPDATE textsim.crowded k SET lost = k.lost + l.lost
        FROM (SELECT n.node, count(*) AS lost FROM deleted d CROSS JOIN unnest(ARRAY[d.a, d.b]) n (node) GROUP BY 1) l
        WHERE k.node = l.node RETURNING k.node, k.lost
    )
    SELECT coalesce(array_agg(k.node), '{}') FROM counted k WHERE k.lost >= textsim._most_compared() / 2 INTO thinned;
END $$;

-- With how many earlier candidates a node is compared.
CREATE OR REPLACE FUNCTION textsim._most_compared() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 200;

-- How many documents of a bucket are read, the earliest first, to find the candidates of a node.
CREATE OR REPLACE FUNCTION textsim._most_read() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1000;

-- The candidates of nodes: pairs of documents, one of each node, and the number of shingles of each. Nodes meet the
-- documents of their buckets, and full nodes rank and choose among the earlier ones of these that are candidates.
--   full_nodes: the nodes with too many earlier candidates
--   cut: the nodes with a bucket that has too many documents
-- STABLE, so its statement sees the documents as they are when the log has no entries for them.
CREATE OR REPLACE FUNCTION textsim._find_candidates(
    c textsim.corpus, threshold double precision, nodes integer[], OUT xs integer[], OUT ys integer[],
    OUT shingles integer[], OUT full_nodes integer[], OUT cut integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    logged integer[] := textsim._logged_ids(c.id);
BEGIN
    WITH searching AS MATERIALIZED (
        SELECT DISTINCT ON (n.node) n.node, d.id, d.shingle_count, d.part, d.guard,
            textsim._mates(d.guard) AS mates,
            textsim._in_part(textsim._buckets(d.signature, c.bands, c.rows), d.part) AS buckets
        FROM textsim.node n JOIN textsim.document d ON d.id = n.document_id
        WHERE n.node = ANY (nodes) AND d.id NOT IN (SELECT unnest(logged))
        ORDER BY n.node, d.id
    ), sought AS MATERIALIZED (
        -- In the order of the index, neighbours are looked up in the same pages.
        SELECT s.node, s.id, s.shingle_count, s.part, s.guard, q.bucket, s.mates
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
            AND d.id NOT IN (SELECT unnest(logged))
            AND textsim._is_candidate(
                m.shared, m.shingle_count, d.shingle_count, CASE WHEN c.bands IS NULL THEN c.threshold END)
            AND textsim._may_reach(m.shingle_count, d.shingle_count, threshold)
        ORDER BY m.node, n.node, d.id
    ), counted AS MATERIALIZED (
        SELECT k.*, k.y < k.x AS is_earlier,
            count(*) FILTER (WHERE k.y < k.x) OVER (PARTITION BY k.node) > textsim._most_compared() AS is_full
        FROM candidate k
    ), ranked AS (
        SELECT k.node, k.other, k.x, k.y, k.shingles, least(
            row_number() OVER (PARTITION BY k.node ORDER BY k.y),
            row_number() OVER (PARTITION BY k.node ORDER BY k.shared DESC, k.y)) AS place
        FROM counted k WHERE k.is_full AND k.is_earlier
    ), chosen AS (
        SELECT r.node, r.other, r.x, r.y, r.shingles FROM ranked r WHERE r.place <= textsim._most_compared() / 2
        UNION ALL
        -- The later node of a pair decides.
        SELECT k.node, k.other, k.x, k.y, k.shingles FROM counted k
        WHERE CASE WHEN k.is_earlier THEN k.node ELSE k.other END NOT IN (SELECT f.node FROM counted f WHERE f.is_full)
    ), pair AS (
        SELECT DISTINCT ON (least(k.node, k.other), greatest(k.node, k.other)) k.x, k.y, k.shingles FROM chosen k
    )
    SELECT p.*, array(SELECT DISTINCT f.node FROM counted f WHERE f.is_full), array(
        SELECT s.node FROM searching s
        -- Few nodes meet as many documents as are read. CASE, because the buckets of all nodes would be read first.
        WHERE CASE WHEN s.node IN (
                SELECT m.node FROM meeting m GROUP BY m.node HAVING count(*) >= textsim._most_read() - 1)
            THEN EXISTS (
                SELECT FROM unnest(s.buckets) q (bucket)
                WHERE (
                    SELECT count(*) FROM (
                        SELECT FROM textsim.band r WHERE r.bucket = q.bucket LIMIT textsim._most_read() + 1) r
                ) > textsim._most_read()) END)
    FROM (SELECT array_agg(p.x), array_agg(p.y), array_agg(p.shingles) FROM pair p) p
    INTO xs, ys, shingles, full_nodes, cut;
END $$;

-- The matches of nodes, found anew, as judgements leave them: pairs of nodes, the lower id first, with their similarity.
-- crowded: the nodes that are; full_nodes: those of them that have too many earlier candidates.
-- STABLE, as _find_candidates is, so both see the same. It does not forbid nested loops, because a setting holds in the
-- functions that it calls, and few documents are looked up.
CREATE OR REPLACE FUNCTION textsim._find_matches(
    c textsim.corpus, threshold double precision, nodes integer[], OUT lefts integer[], OUT rights integer[],
    OUT similarities double precision[], OUT crowded integer[], OUT full_nodes integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    shingles_of_batch CONSTANT integer := 400000;  -- about as many are read at once
    candidates record;
    corpus_origin integer := textsim._origin(c);
BEGIN
    candidates := textsim._find_candidates(c, threshold, nodes);
    full_nodes := candidates.full_nodes;
    crowded := array(SELECT unnest(full_nodes) UNION SELECT unnest(candidates.cut));
    WITH batch AS (
        SELECT array_agg(b.x) AS xs, array_agg(b.y) AS ys
        FROM (
            SELECT p.x, p.y,
                sum(p.shingles) OVER (ORDER BY p.x, p.y ROWS UNBOUNDED PRECEDING) / shingles_of_batch AS number
            FROM unnest(candidates.xs, candidates.ys, candidates.shingles) p (x, y, shingles)
        ) b
        GROUP BY b.number
    )
    SELECT array_agg(least(o.node, o.other)), array_agg(greatest(o.node, o.other)), array_agg(o.similarity)
    FROM (
        SELECT (SELECT n.node FROM textsim.node n WHERE n.document_id = v.x) AS node,
            (SELECT n.node FROM textsim.node n WHERE n.document_id = v.y) AS other, v.similarity
        FROM batch b CROSS JOIN LATERAL textsim._verify_pairs(c, b.xs, b.ys, threshold) v
        OFFSET 0  -- so that each node is looked up once
    ) o
    INTO lefts, rights, similarities;
    IF textsim._has_verdicts(corpus_origin) THEN
        WITH judged AS MATERIALIZED (SELECT j.* FROM textsim._judged_pairs(corpus_origin, nodes) j)
        SELECT array_agg(m.a), array_agg(m.b), array_agg(m.similarity)
        FROM (
            SELECT f.a, f.b, f.similarity FROM unnest(lefts, rights, similarities) f (a, b, similarity)
            WHERE (f.a, f.b) NOT IN (SELECT j.a, j.b FROM judged j)
            UNION ALL
            SELECT DISTINCT j.a, j.b, textsim._similarity_of_same() FROM judged j WHERE j.is_same
        ) m
        INTO lefts, rights, similarities;
    END IF;
END $$;
