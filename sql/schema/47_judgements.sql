-- Judgements: what people say of pairs of documents. They are kept by key, so they survive every change of the
-- documents. A role that may write the documents of a corpus may judge; a role that may read them may read the
-- judgements.

-- Whether this role has a right on the documents of the corpus with an origin.
CREATE OR REPLACE FUNCTION textsim._has_right(corpus_origin integer, privilege text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM textsim.corpus c
        WHERE textsim._origin(c) = corpus_origin
            AND has_table_privilege(to_regclass('textsim.document_' || c.id), privilege));
END $$;

-- The origin of the corpus with a name; an error unless this role has the right on its documents.
CREATE OR REPLACE FUNCTION textsim._judged_origin(corpus text, privilege text) RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    IF NOT textsim._has_right(textsim._origin(c), privilege) THEN
        RAISE EXCEPTION 'permission denied for the judgements of corpus "%"', corpus
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN textsim._origin(c);
END $$;

-- Two keys in byte order; an error if no two documents can have them.
CREATE OR REPLACE FUNCTION textsim._ordered_pair(a text, b text, OUT lower text, OUT higher text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fault text := CASE
        WHEN a IS NULL OR b IS NULL THEN 'a key is NULL'
        WHEN a = b THEN 'it has the same key twice'
        WHEN greatest(octet_length(a), octet_length(b)) > 1000 THEN 'a key is longer than 1,000 bytes' END;
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'the pair (%, %) names no two documents: %',
            quote_nullable(left(a, 100)), quote_nullable(left(b, 100)), fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    lower := least(a COLLATE "C", b COLLATE "C");
    higher := greatest(a COLLATE "C", b COLLATE "C");
END $$;

-- The judgements of a corpus, and whether each is stale, as _is_stale() decides. keys: only those of two of these keys.
-- Each text is looked up and hashed once, also if a caller forbids nested loops.
CREATE OR REPLACE FUNCTION textsim._judgements(corpus_origin integer, keys text[])
RETURNS TABLE (judged textsim.judgement, is_stale boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    corpus_id integer := (SELECT max(c.id) FROM textsim.corpus c WHERE textsim._origin(c) = corpus_origin);
BEGIN
    -- A statement that is executed knows the number of the keys.
    RETURN QUERY EXECUTE format($query$
        WITH judgement AS MATERIALIZED (
            SELECT j AS judged, j.a, j.b, j.hash_a, j.hash_b FROM textsim.judgement j
            WHERE j.origin = $1 AND ($2 IS NULL OR j.a = ANY ($2) AND j.b = ANY ($2))
        ), document AS MATERIALIZED (
            SELECT k.key, (
                SELECT textsim._form_hash(coalesce(d.normal_form, textsim._normal_form_of_%1$s(d.word_ids), ''))
                FROM textsim.%2$I d WHERE d.key = k.key COLLATE "default") AS hash  -- the index has this collation
            FROM (
                SELECT j.a FROM judgement j WHERE j.hash_a IS NOT NULL
                UNION SELECT j.b FROM judgement j WHERE j.hash_b IS NOT NULL) k (key)
        )
        SELECT j.judged, textsim._has_changed(j.judged, x.hash, y.hash)
        FROM judgement j LEFT JOIN document x ON x.key = j.a LEFT JOIN document y ON y.key = j.b
        $query$, corpus_id, 'document_' || corpus_id)
    USING corpus_origin, keys;
END $$;

-- The judgements that are obeyed: same and different ones that are not stale. keys: as in _judgements().
CREATE OR REPLACE FUNCTION textsim._obeyed_judgements(corpus_origin integer, keys text[] DEFAULT NULL)
RETURNS SETOF textsim.judgement
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000
BEGIN ATOMIC
    SELECT (j.judged).* FROM textsim._judgements(corpus_origin, keys) j
    WHERE NOT j.is_stale AND (j.judged).verdict <> 'unsure';
END;

-- The keys of groups, the number of their group, and whether no pair of it was judged different. obeyed: all judgements
-- of whole groups.
CREATE OR REPLACE FUNCTION textsim._judged_groups(obeyed textsim.judgement[])
RETURNS TABLE (key text, root integer, is_joined boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT j.a, j.b, j.verdict FROM unnest(obeyed) j
    ), document AS MATERIALIZED (
        SELECT k.key, row_number() OVER (ORDER BY k.key)::integer AS number
        FROM (
            SELECT j.a FROM judged j WHERE j.verdict = 'same' UNION SELECT j.b FROM judged j WHERE j.verdict = 'same'
        ) k (key)
    ), link AS (
        SELECT array_agg(x.number) AS xs, array_agg(y.number) AS ys, array_agg(1::double precision) AS ones
        FROM judged j JOIN document x ON x.key = j.a JOIN document y ON y.key = j.b
        WHERE j.verdict = 'same'
    ), grouped AS MATERIALIZED (
        SELECT d.key, r.root
        FROM link l
        CROSS JOIN LATERAL textsim._single_linkage(
            l.xs, l.ys, l.ones, (SELECT count(*)::integer FROM document)) c
        CROSS JOIN LATERAL unnest(c.roots) WITH ORDINALITY r (root, number)
        JOIN document d ON d.number = r.number
        WHERE l.xs IS NOT NULL
    ), contradicted AS MATERIALIZED (
        SELECT x.root FROM judged j JOIN grouped x ON x.key = j.a JOIN grouped y ON y.key = j.b
        WHERE j.verdict = 'different' AND x.root = y.root
    )
    SELECT g.key::text, g.root, g.root NOT IN (SELECT d.root FROM contradicted d) FROM grouped g;
END $$;

-- The shortest chain of pairs judged the same between two keys of a group; of several, that with the lowest first keys.
CREATE OR REPLACE FUNCTION textsim._chain(obeyed textsim.judgement[], a text, b text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    nexts jsonb := jsonb_build_object(b, NULL);  -- each key that was reached, and the next key on the way to b
    frontier jsonb := nexts;
    chain text[] := ARRAY[a];
BEGIN
    WHILE NOT nexts ? a AND frontier <> '{}' LOOP
        SELECT coalesce(jsonb_object_agg(n.key, n.next), '{}') INTO frontier
        FROM (
            SELECT l.key, min(l.next COLLATE "C") AS next
            FROM jsonb_object_keys(frontier) f (key)
            JOIN (
                SELECT j.a, j.b FROM unnest(obeyed) j WHERE j.verdict = 'same'
                UNION ALL
                SELECT j.b, j.a FROM unnest(obeyed) j WHERE j.verdict = 'same'
            ) l (next, key) ON l.next = f.key
            WHERE NOT nexts ? l.key
            GROUP BY l.key
        ) n;
        nexts := nexts || frontier;
    END LOOP;
    WHILE a <> b LOOP
        a := nexts ->> a;
        chain := chain || a;
    END LOOP;
    RETURN chain;
END $$;

CREATE OR REPLACE FUNCTION textsim._different_pairs(corpus text) RETURNS TABLE (a text, b text)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    RETURN QUERY
        SELECT j.a::text, j.b::text FROM textsim._obeyed_judgements(textsim._origin(c)) j
        WHERE j.verdict = 'different';
END $$;

-- The pairs that a chain of pairs judged the same connects, unless a pair of the group was judged different.
CREATE OR REPLACE FUNCTION textsim._same_pairs(corpus text, language text, part bigint) RETURNS TABLE (a text, b text)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    RETURN QUERY EXECUTE format($query$
        WITH document AS MATERIALIZED (
            SELECT d.key, g.root, d.part
            FROM textsim._judged_groups(array(SELECT j FROM textsim._obeyed_judgements($1) j)) g
            JOIN textsim.%I d ON d.key = g.key
            WHERE g.is_joined AND ($2 IS NULL OR d.language = $2) AND ($3 IS NULL OR d.part = $3)%s
        )
        SELECT d.key, e.key
        FROM document d JOIN document e ON e.root = d.root AND e.part IS NOT DISTINCT FROM d.part
        WHERE d.key COLLATE "C" < e.key
        $query$, 'document_' || c.id, textsim._alive(c, 'd'))
    USING textsim._origin(c), language, part;
END $$;

CREATE OR REPLACE FUNCTION textsim.judge(
    corpus text, a text, b text, verdict text, note text DEFAULT NULL, replaces text DEFAULT NULL,
    source text DEFAULT NULL, confidence double precision DEFAULT NULL, hashes uuid[] DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- The lock keeps the corpus from being dropped.
    c textsim.corpus := textsim._lock_corpus(corpus);
    corpus_origin integer := textsim._judged_origin(corpus, 'INSERT');
    pair record;
    stored textsim.judgement;
    scopes_differ boolean;
    are_given boolean := hashes IS NOT NULL;
    is_renewed boolean;  -- the same is said of the texts of today
BEGIN
    PERFORM textsim._check_choice('verdict', verdict, 'same', 'different', 'unsure');
    PERFORM textsim._check_choice('replaces', coalesce(replaces, 'same'), 'same', 'different', 'unsure');
    note := nullif(note, '');
    source := nullif(source, '');
    confidence := textsim._decimal_of(confidence);
    SELECT p.* INTO pair FROM textsim._ordered_pair(a, b) p;
    EXECUTE format('SELECT count(DISTINCT d.part) > 1 FROM textsim.%I d WHERE d.key = ANY ($1)', 'document_' || c.id)
    INTO scopes_differ USING ARRAY[a, b];
    IF scopes_differ THEN
        RAISE EXCEPTION 'the pair (%, %) cannot be judged: its documents have different scopes',
            quote_literal(pair.lower), quote_literal(pair.higher)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF hashes IS NULL THEN
        hashes := ARRAY[
            textsim._document_hash(corpus_origin, pair.lower), textsim._document_hash(corpus_origin, pair.higher)];
    ELSIF pair.lower <> a THEN
        hashes := ARRAY[hashes[2], hashes[1]];
    END IF;
    LOOP
        SELECT j.* INTO stored FROM textsim.judgement j
        WHERE j.origin = corpus_origin AND j.a = pair.lower AND j.b = pair.higher FOR UPDATE;
        is_renewed := NOT are_given AND stored.verdict = verdict AND textsim._is_stale(stored);
        IF stored.verdict = verdict AND NOT is_renewed AND (note IS NULL OR note = stored.note)
            AND (source IS NULL OR source = stored.source)
            AND (confidence IS NULL OR confidence = stored.confidence)
            AND (NOT are_given OR (hashes[1], hashes[2]) IS NOT DISTINCT FROM (stored.hash_a, stored.hash_b))
        THEN
            RETURN false;
        END IF;
        IF stored.verdict IS DISTINCT FROM replaces AND is_renewed IS NOT TRUE THEN
            RAISE EXCEPTION 'the pair (%, %) %', quote_literal(pair.lower), quote_literal(pair.higher),
                CASE WHEN stored.verdict IS NULL THEN 'is not judged, so there is no judgement to replace'
                    ELSE format('was judged %s by %s at %s%s; to replace that judgement, name its verdict as replaces',
                        stored.verdict, stored.judged_by, date_trunc('second', stored.judged_at),
                        CASE WHEN stored.verdict = verdict THEN ', with another note, source, confidence or text' ELSE '' END)
                    END
                USING ERRCODE = 'restrict_violation';
        END IF;
        IF stored.verdict IS NULL THEN
            INSERT INTO textsim.judgement (origin, a, b, verdict, note, source, confidence, hash_a, hash_b)
            VALUES (
                corpus_origin, pair.lower, pair.higher, verdict, note, source, confidence, hashes[1], hashes[2])
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE textsim.judgement j
            SET verdict = judge.verdict, judged_by = current_user, judged_at = now(),
                note = coalesce(judge.note, CASE WHEN is_renewed THEN j.note END),
                source = judge.source, confidence = judge.confidence, hash_a = hashes[1], hash_b = hashes[2]
            WHERE j.origin = corpus_origin AND j.a = pair.lower AND j.b = pair.higher;
        END IF;
        -- Another session may have judged the pair meanwhile.
        IF FOUND THEN
            RETURN true;
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION textsim.judge(text, text, text, text, text, text, text, double precision, uuid[])
    IS 'Records what a person or a model says of two documents: verdict is same, different or unsure. Tracked clusters '
    'obey it; clusters() and duplicates() do if judgements is true. The documents are named by their keys, and need not '
    'exist. If the words of one change later, the judgement is stale: it stays and is listed, but nothing obeys it until '
    'the pair is judged again. Of a document that does not exist, it holds for any text. source says who or what judges, in up to 200 bytes, and '
    'confidence how sure that is, from 0 to 1. A pair has one judgement. If the pair was judged otherwise, or the note, '
    'source or confidence differs, raises restrict_violation, unless replaces names the stored verdict: so nobody '
    'replaces a judgement that they have not seen. Returns false if the judgement is stored already. hashes '
    'are those of the texts that were judged, as judgements() returns them, by default those of the present texts; with '
    '''{NULL,NULL}'' the judgement holds for any texts. Raises an error if both keys are equal, or if both documents '
    'exist and have different scopes.';

CREATE OR REPLACE FUNCTION textsim.unjudge(corpus text, a text, b text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    pair record;
    corpus_origin integer := textsim._judged_origin(corpus, 'DELETE');
BEGIN
    SELECT p.* INTO pair FROM textsim._ordered_pair(a, b) p;
    DELETE FROM textsim.judgement j
    WHERE j.origin = corpus_origin AND j.a = pair.lower AND j.b = pair.higher;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION textsim.unjudge(text, text, text)
    IS 'Removes the judgement of two documents. Returns false if there is none.';

CREATE OR REPLACE FUNCTION textsim.judgements(corpus text)
RETURNS TABLE (
    a text, b text, verdict text, judged_by text, judged_at timestamptz, note text, source text,
    confidence double precision, hash_a uuid, hash_b uuid, is_stale boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    corpus_origin integer := textsim._judged_origin(corpus, 'SELECT');
BEGIN
    RETURN QUERY
        SELECT j.a::text, j.b::text, j.verdict, j.judged_by, j.judged_at, j.note, j.source, j.confidence,
            j.hash_a, j.hash_b, s.is_stale
        FROM textsim._judgements(corpus_origin, NULL) s CROSS JOIN LATERAL (SELECT (s.judged).*) j ORDER BY j.a, j.b;
END $$;
COMMENT ON FUNCTION textsim.judgements(text)
    IS 'Returns the judgements of a corpus: two keys, a < b in byte order, the verdict, the role that judged the '
    'pair, when it did so, its note, source and confidence, the hashes of the texts that were judged, and whether one of '
    'the texts has changed since.';

CREATE OR REPLACE FUNCTION textsim.contradictions(corpus text) RETURNS TABLE (a text, b text, chain text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    corpus_origin integer := textsim._judged_origin(corpus, 'SELECT');
    obeyed textsim.judgement[] := array(SELECT j FROM textsim._obeyed_judgements(corpus_origin) j);
BEGIN
    RETURN QUERY
        WITH document AS MATERIALIZED (
            SELECT g.key, g.root FROM textsim._judged_groups(obeyed) g WHERE NOT g.is_joined
        )
        SELECT j.a::text, j.b::text, textsim._chain(obeyed, j.a, j.b)
        FROM unnest(obeyed) j JOIN document d ON d.key = j.a JOIN document e ON e.key = j.b AND e.root = d.root
        WHERE j.verdict = 'different'
        ORDER BY j.a, j.b;
END $$;
COMMENT ON FUNCTION textsim.contradictions(text)
    IS 'Returns the contradictions among the judgements of a corpus: each pair (a, b) that was judged different '
    'although a chain of pairs judged the same connects it. chain has the keys of a shortest chain, from a to b. '
    'clusters() and duplicates() obey the different verdict, and none of the same verdicts of these documents and '
    'of those connected with them, until one of the judgements is replaced or removed.';
