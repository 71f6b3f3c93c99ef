-- How the clusters of tracked corpora obey judgements. A document that was judged the same as another, or different,
-- has a node of its own. The pairs that were judged different do not match, and the pairs of a group that was judged
-- the same do, with _similarity_of_same(). Whether a judged document is kept also depends on the clusters of the documents
-- that judgements connect it with, so all of these are examined together.
--
-- _with_judged, _judged_pairs, _store_matches and _place_judged are patterns, as 58 explains.

-- Whether a pair of documents of a corpus was judged the same or different.
CREATE OR REPLACE FUNCTION textsim._has_verdicts(corpus_origin integer) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM textsim.judgement j WHERE j.origin = corpus_origin AND j.verdict IN ('same', 'different'));
END $$;

-- Whether a document was judged the same as another, or different. Here, and in what judgements connect, stale ones
-- count, too: this only decides what is looked at.
CREATE OR REPLACE FUNCTION textsim._is_judged(corpus_origin integer, document_key text) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN EXISTS (
            SELECT FROM textsim.judgement j
            WHERE j.origin = corpus_origin AND j.a = document_key AND j.verdict IN ('same', 'different'))
        OR EXISTS (
            SELECT FROM textsim.judgement j
            WHERE j.origin = corpus_origin AND j.b = document_key AND j.verdict IN ('same', 'different'));
END $$;

-- The hash of the node of a judged document, which has no other document.
CREATE OR REPLACE FUNCTION textsim._judged_hash(document_id integer) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- No normal form has a colon.
    RETURN textsim._words_hash(NULL, 'judged: ' || document_id, NULL);
END $$;

-- Whether a document of a tracked corpus has a node: it has words, or is judged.
-- A text without words matches nothing, but it may be judged the same as another.
CREATE OR REPLACE FUNCTION textsim._has_node(corpus_origin integer, shingle_count integer, document_key text)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN shingle_count > 0 OR textsim._is_judged(corpus_origin, document_key);

-- The keys that pairs with these verdicts connect with the keys: also the given keys that are in such a pair.
CREATE OR REPLACE FUNCTION textsim._connected_keys(corpus_origin integer, keys text[], verdicts text[]) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    RETURN array(
        WITH RECURSIVE walk (key, is_in_pair) AS (
            SELECT unnest(keys) COLLATE "C", false
            UNION
            SELECT e.key, true FROM walk w CROSS JOIN LATERAL (
                SELECT j.b FROM textsim.judgement j
                WHERE j.origin = corpus_origin AND j.a = w.key AND j.verdict = ANY (verdicts)
                UNION ALL
                SELECT j.a FROM textsim.judgement j
                WHERE j.origin = corpus_origin AND j.b = w.key AND j.verdict = ANY (verdicts)
            ) e (key)
        )
        SELECT w.key::text FROM walk w WHERE w.is_in_pair);
END $$;

-- Nodes, and the nodes that judgements connect with their documents or with logged documents.
CREATE OR REPLACE FUNCTION textsim._with_judged(corpus_origin integer, nodes integer[], logged integer[])
RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    keys text[];
BEGIN
    IF NOT textsim._has_verdicts(corpus_origin) THEN
        RETURN nodes;
    END IF;
    keys := textsim._connected_keys(corpus_origin, array(
        SELECT r.key FROM textsim.removed r WHERE r.document_id = ANY (logged)
        UNION ALL
        SELECT d.key FROM textsim.document d
        WHERE d.id = ANY (logged || array(SELECT n.document_id FROM textsim.node n WHERE n.node = ANY (nodes)))
    ), '{same,different}');
    RETURN array(
        SELECT unnest(nodes)
        UNION
        SELECT o.node
        FROM (
            SELECT (SELECT n.node FROM textsim.node n WHERE n.document_id = d.id) AS node
            FROM textsim.document d WHERE d.key = ANY (keys)
        ) o
        WHERE o.node IS NOT NULL);
END $$;

-- The pairs of a given and another node that were judged different, or are of one group that was judged the same.
CREATE OR REPLACE FUNCTION textsim._judged_pairs(corpus_origin integer, nodes integer[])
RETURNS TABLE (a integer, b integer, is_same boolean)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off SET jit = off AS $$
DECLARE
    documents integer[] := array(SELECT n.document_id FROM textsim.node n WHERE n.node = ANY (nodes));
    keys text[] := textsim._connected_keys(corpus_origin, array(
        SELECT d.key FROM textsim.document d WHERE d.id = ANY (documents)), '{same,different}');
    obeyed textsim.judgement[] := array(SELECT j FROM textsim._obeyed_judgements(corpus_origin, keys) j);
BEGIN
    RETURN QUERY
        WITH judged AS MATERIALIZED (
            SELECT d.key, d.part, d.id = ANY (documents) AS is_given, (
                SELECT n.node FROM textsim.node n
                -- A document that is judged while this update runs is still in the node of its copies.
                WHERE n.document_id = d.id AND n.words_hash = textsim._judged_hash(d.id)) AS node
            FROM textsim.document d WHERE d.key = ANY (keys)
        ), grouped AS MATERIALIZED (
            SELECT g.key, g.root FROM textsim._judged_groups(obeyed) g WHERE g.is_joined
        ), pair AS MATERIALIZED (
            SELECT j.a, j.b, false AS is_same FROM unnest(obeyed) j WHERE j.verdict = 'different'
            UNION ALL
            SELECT x.key, y.key, true FROM grouped x JOIN grouped y ON y.root = x.root AND x.key < y.key
        )
        SELECT least(x.node, y.node), greatest(x.node, y.node), p.is_same
        FROM pair p JOIN judged x ON x.key = p.a JOIN judged y ON y.key = p.b
        WHERE (x.is_given OR y.is_given) AND x.node <> y.node AND x.part IS NOT DISTINCT FROM y.part;
END $$;

-- Find and store the matches of nodes, and return how many are new.
CREATE OR REPLACE FUNCTION textsim._store_matches(c textsim.corpus, threshold double precision, nodes integer[])
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    found record;
    stored bigint;
BEGIN
    found := textsim._find_matches(c, threshold, nodes);
    INSERT INTO textsim.match (a, b, similarity, since)
    SELECT f.a, f.b, f.similarity,
        CASE WHEN NOT textsim._is_match(f.similarity, textsim._unique_from(c)) THEN now() END
    FROM unnest(found.lefts, found.rights, found.similarities) f (a, b, similarity)
    ON CONFLICT (a, b) DO NOTHING;
    GET DIAGNOSTICS stored = ROW_COUNT;
    DELETE FROM textsim.crowded k WHERE k.node = ANY (nodes);
    IF found.crowded <> '{}' THEN
        INSERT INTO textsim.crowded (node, is_full)
        SELECT f.node, f.node IN (SELECT unnest(found.full_nodes)) FROM unnest(found.crowded) f (node);
    END IF;
    RETURN stored;
END $$;

-- Give the judged documents that do not wait in the log nodes of their own, with their matches.
CREATE OR REPLACE FUNCTION textsim._place_judged(c textsim.corpus, threshold double precision) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
SET jit = off AS $$
DECLARE
    corpus_origin integer := textsim._origin(c);
    documents integer[] := array(
        SELECT d.id FROM textsim.document d
        WHERE d.key IN (
            SELECT unnest(ARRAY[j.a, j.b]) FROM textsim.judgement j
            WHERE j.origin = corpus_origin AND j.verdict IN ('same', 'different'))
            AND d.id NOT IN (SELECT unnest(textsim._logged_ids(c.id))));
BEGIN
    -- All clusters are computed after this, so it does not matter which nodes changed.
    PERFORM textsim._store_matches(c, threshold, (textsim._move_to_nodes(c, documents)).searched);
END $$;

-- The stored documents that a judgement of two keys concerns, and whether none is missing.
CREATE OR REPLACE FUNCTION textsim._judged_documents(
    corpus_id integer, keys text[], OUT ids integer[], OUT are_all boolean)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- A contradiction changes the matches of a whole group.
    concerned text[] := array(
        SELECT unnest(keys) UNION SELECT unnest(textsim._connected_keys(
            (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = corpus_id), keys, '{same}')));
BEGIN
    EXECUTE format('SELECT array_agg(d.id) FROM textsim.%I d WHERE d.key = ANY ($1)', 'document_' || corpus_id)
    INTO ids USING concerned;
    are_all := cardinality(ids) = cardinality(concerned);
END $$;

-- Documents that changed, and those of their groups: a judgement among these may be stale now, or hold again. A pair
-- judged different of two groups concerns the changed document only.
CREATE OR REPLACE FUNCTION textsim._with_connected(corpus_id integer, documents integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    corpus_origin integer := (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = corpus_id);
    keys text[];
BEGIN
    IF documents <> '{}' AND textsim._has_verdicts(corpus_origin) THEN
        EXECUTE format($query$
            SELECT array_agg(k.key)
            FROM (SELECT d.id, d.key FROM textsim.%I d UNION ALL SELECT r.document_id, r.key FROM textsim.%I r) k
            WHERE k.id = ANY ($1) AND k.key IN (
                SELECT j.a FROM textsim.judgement j WHERE j.origin = $2 AND j.verdict = 'same'
                UNION ALL SELECT j.b FROM textsim.judgement j WHERE j.origin = $2 AND j.verdict = 'same')
            $query$, 'document_' || corpus_id, 'removed_' || corpus_id)
        INTO keys USING documents, corpus_origin;
        documents := documents || (textsim._judged_documents(corpus_id, keys)).ids;
    END IF;
    RETURN documents;
END $$;

-- Log the documents of a tracked corpus whose clusters a judgement may change.
-- The roles that judge may have no right to lock the corpus.
CREATE OR REPLACE FUNCTION textsim._log_judged() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    judged textsim.judgement := coalesce(NEW, OLD);
    concerned record;
    corpus_id integer;
BEGIN
    -- Until this transaction ends, no rebuilt corpus replaces the corpus: it would not see the judgement.
    PERFORM FROM textsim.corpus c WHERE textsim._origin(c) = judged.origin FOR SHARE;
    FOR corpus_id IN
        SELECT t.corpus_id FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id
        WHERE textsim._origin(c) = judged.origin
    LOOP
        concerned := textsim._judged_documents(corpus_id, ARRAY[judged.a, judged.b]);
        PERFORM textsim._log_ids(corpus_id, concerned.ids);
        IF concerned.are_all IS NOT TRUE THEN
            -- Another transaction may have added the document, and may end before this one. So the update looks again.
            INSERT INTO textsim.pending (kind, corpus_id, document_ids, judged_keys)
            VALUES ('cluster', corpus_id, '{}', ARRAY[judged.a, judged.b]);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

DO $do$ BEGIN
    IF (SELECT count(*) FROM pg_trigger t
        WHERE t.tgrelid = 'textsim.judgement'::regclass AND t.tgname IN ('log_new', 'log_changed')) < 2
    THEN
        CREATE OR REPLACE TRIGGER log_new AFTER INSERT OR DELETE ON textsim.judgement
        FOR EACH ROW EXECUTE FUNCTION textsim._log_judged();
        CREATE OR REPLACE TRIGGER log_changed AFTER UPDATE ON textsim.judgement
        FOR EACH ROW
        -- The server prints a comparison of rows in another way after a restore.
        WHEN (OLD.verdict <> NEW.verdict OR OLD.hash_a IS DISTINCT FROM NEW.hash_a
            OR OLD.hash_b IS DISTINCT FROM NEW.hash_b)
        EXECUTE FUNCTION textsim._log_judged();
    END IF;
END $do$;
