-- Results without copies: of documents in order of rank, those that may not be merged with one of higher rank. All are
-- compared with each other, exactly, so no copy is missed. textsim_db.distinct() does the same in memory.

-- A query for the matches among documents, given by their ids in order ($1): pairs of places. $2: the corpus, $3: the
-- threshold, $4: whether only documents with equal guards match. Only shingles that several documents have are counted:
-- a bit each, 1024 in a bit string: more bits take longer to set, fewer longer to compare. has_numbers: whether all
-- documents have word ids.
CREATE OR REPLACE FUNCTION textsim._matches_among(c textsim.corpus, has_numbers boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format($query$
    WITH document AS MATERIALIZED (
        SELECT o.number::integer AS number, d.shingle_count, d.word_ids, d.normal_form,
            dense_rank() OVER (ORDER BY d.part, CASE WHEN $4 THEN d.guard END) AS kind
        FROM unnest($1) WITH ORDINALITY o (id, number)
        CROSS JOIN LATERAL (SELECT * FROM textsim.%1$I d WHERE d.id = o.id OFFSET 0) d
    ), shared AS MATERIALIZED (
        SELECT d.kind, (row_number() OVER ())::integer AS place, array_agg(d.number) AS owners
        FROM document d CROSS JOIN LATERAL %2$s
        GROUP BY d.kind, %3$s HAVING count(*) > 1
    ), chunk AS MATERIALIZED (
        SELECT o.kind, o.number, o.place / %4$s AS chunk, bit_or(set_bit(z.zeros, o.place %% %4$s, 1)) AS bits
        FROM (SELECT s.kind, unnest(s.owners) AS number, s.place FROM shared s) o
        CROSS JOIN (SELECT repeat('0', %4$s)::varbit AS zeros OFFSET 0) z
        GROUP BY 1, 2, 3
    )
    SELECT p.x, p.y, r.similarity
    FROM (
        SELECT x.number AS x, y.number AS y, sum(bit_count(x.bits & y.bits))::bigint AS shared
        FROM chunk x JOIN chunk y ON y.kind = x.kind AND y.chunk = x.chunk AND x.number < y.number
        GROUP BY 1, 2
    ) p
    JOIN document d ON d.number = p.x
    JOIN document e ON e.number = p.y
    CROSS JOIN LATERAL (SELECT textsim._ratio(p.shared, d.shingle_count, e.shingle_count) AS similarity OFFSET 0) r
    WHERE textsim._is_match(r.similarity, $3)
    ORDER BY p.y, r.similarity DESC, p.x
    $query$, 'document_' || c.id,
    CASE WHEN has_numbers THEN format('textsim._triples(d.word_ids, %s) t', c.shingle_length)
        ELSE 'textsim._shingle_texts($2, d.word_ids, d.normal_form) t (shingle)' END,
    CASE WHEN has_numbers THEN 't.x, t.y, t.z' ELSE 't.shingle COLLATE "C"' END, 1024);

CREATE OR REPLACE FUNCTION textsim.distinct_of(
    corpus text, keys text[], max_results integer DEFAULT NULL, threshold double precision DEFAULT NULL,
    guards boolean DEFAULT true, missing text DEFAULT 'refuse')
RETURNS TABLE (key text, rank integer, copies text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    ranked record;  -- arrays with a member for each key, in order of rank
    kept_by integer[];  -- by place: the place of the document that is kept
    ids integer[];  -- by place: the id of a document that is compared with the others
    sharing integer[];  -- the ids of documents that share enough rows with another one
    least double precision;  -- the lowest similarity of a copy
    absent text;
    pair record;
BEGIN
    PERFORM textsim._check_given('keys', keys IS NOT NULL), textsim._check_given('a key', array_position(keys, NULL) IS NULL),
        textsim._check_given('guards', guards IS NOT NULL), textsim._check_choice('missing', missing, 'refuse', 'keep'),
        textsim._check_search(c, NULL, max_results);
    threshold := textsim._check_threshold(NULL, threshold);
    c.unique_from := coalesce(threshold, c.unique_from);
    EXECUTE format($query$
        SELECT array_agg(k.key ORDER BY k.rank) AS keys, array_agg(k.rank ORDER BY k.rank) AS ranks,
            array_agg(d.id ORDER BY k.rank) AS ids, array_agg(d.guard ORDER BY k.rank) AS guards,
            bool_and(d.word_ids IS NOT NULL) FILTER (WHERE d.id IS NOT NULL) AS have_ids
        FROM (
            SELECT u.key COLLATE "C" AS key, min(u.rank)::integer AS rank
            FROM unnest($1) WITH ORDINALITY u (key, rank) GROUP BY 1
        ) k
        LEFT JOIN textsim.%I d ON d.key = k.key COLLATE "default"%s
        $query$, 'document_' || c.id, textsim._alive(c, 'd'))
    INTO ranked USING keys;
    absent := ranked.keys[array_position(ranked.ids, NULL)];
    IF absent IS NOT NULL AND missing = 'refuse' THEN
        RAISE EXCEPTION 'corpus "%" has no document %', c.name, quote_literal(left(absent, 100)) ||
            CASE WHEN EXISTS (SELECT FROM textsim.source s WHERE s.corpus_id = c.id AND s.active)
                THEN '; if its row stands, it waits for textsim worker, or for textsim.index_pending()' ELSE '' END
            USING ERRCODE = 'no_data_found',
                HINT = 'With missing => ''keep'', a key without a document is a result of its own.';
    END IF;
    kept_by := array(SELECT generate_series(1, cardinality(ranked.keys)));
    least := CASE WHEN guards THEN textsim._unique_from(c) ELSE coalesce(threshold, c.threshold) END;
    ids := ranked.ids;
    -- In an exact corpus only documents with equal guards that share enough rows at this threshold are compared.
    IF c.bands IS NULL AND least >= c.threshold THEN
        EXECUTE format($query$
            WITH prefix AS MATERIALIZED (
                SELECT d.id, d.shingle_count, d.guard, unnest(d.signature[:textsim._count_rows(d.shingle_count, $2)]) AS value
                FROM textsim.%I d WHERE d.id = ANY ($1)
            )
            SELECT array_agg(pair.id)
            FROM (
                SELECT unnest(ARRAY[x.id, y.id]) AS id
                FROM prefix x JOIN prefix y ON y.value = x.value AND x.id < y.id
                WHERE NOT $3 OR x.guard IS NOT DISTINCT FROM y.guard
                GROUP BY x.id, x.shingle_count, y.id, y.shingle_count
                HAVING count(*) >= textsim._needed_rows(x.shingle_count, y.shingle_count, $2)
            ) pair
            $query$, 'document_' || c.id)
        INTO sharing USING ids, least, guards;
        ids := array(SELECT CASE WHEN u.id = ANY (sharing) THEN u.id END FROM unnest(ids) WITH ORDINALITY u (id, place)
            ORDER BY u.place);
    END IF;
    IF cardinality(array_remove(ids, NULL)) > 1 THEN
        FOR pair IN EXECUTE textsim._matches_among(c, ranked.have_ids AND c.unit = 'word' AND c.shingle_length <= 3)
            USING ids, c, least, guards
        LOOP
            -- Of the kept documents the most similar comes first.
            IF kept_by[pair.x] = pair.x AND kept_by[pair.y] = pair.y AND (NOT guards OR textsim._merges(
                    c, ranked.keys[pair.y], NULL, ranked.keys[pair.x], NULL, pair.similarity, ranked.guards[pair.y],
                    ranked.guards[pair.x])) THEN
                kept_by[pair.y] := pair.x;
            END IF;
        END LOOP;
    END IF;
    RETURN QUERY
        SELECT ranked.keys[k.kept], ranked.ranks[k.kept],
            coalesce(array_agg(ranked.keys[k.place] ORDER BY k.place) FILTER (WHERE k.place <> k.kept), '{}')
        FROM unnest(kept_by) WITH ORDINALITY k (kept, place)
        GROUP BY k.kept ORDER BY k.kept LIMIT max_results;
END $$;
COMMENT ON FUNCTION textsim.distinct_of(text, text[], integer, double precision, boolean, text)
    IS 'Returns the documents of keys in order of rank without copies, which are documents that may be merged with one of '
    'higher rank: the key, its rank (the place of the key in keys, from 1), and the keys of its copies. A copy belongs to the '
    'most similar document that is kept. All are compared with each other, exactly; no other document is looked at. '
    'max_results: how many are returned at most, after copies are left out. threshold: the lowest similarity of a copy, '
    'by default that of a twin; it may be lower than that of the corpus. guards: if it is false, a copy is any match, '
    'whatever guards or judgements say. A key that comes again counts once. missing: refuse, which raises no_data_found for '
    'a key without a document, or keep, which returns such a key as a result of its own. In a scoped corpus only '
    'documents of one scope are copies.';
