-- Results without copies: of documents in order of rank, those that may not be merged with one of higher rank. All are
-- compared with each other, exactly, so no copy is missed. textsim_db.distinct() does the same in memory.

-- A query for the matches among the documents of _distinct_N: pairs of places. Only shingles that several documents have are
-- counted: a bit each, 1024 in a bit string: more bits take longer to set, fewer longer to compare. has_numbers: whether all
-- documents have word ids, which are compared if shingles have up to three words.
CREATE OR REPLACE FUNCTION textsim._matches_among(c textsim.corpus, has_numbers boolean) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN format($query$
    WITH shared AS MATERIALIZED (
        SELECT o.kind, (row_number() OVER ())::integer AS place, array_agg(o.number::integer) AS owners
        FROM unnest(ids, ranked.kinds) WITH ORDINALITY o (id, kind, number)
        CROSS JOIN LATERAL (SELECT * FROM textsim.%1$I d WHERE d.id = o.id OFFSET 0) d
        CROSS JOIN LATERAL %2$s
        GROUP BY o.kind, %3$s HAVING count(*) > 1
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
    CROSS JOIN LATERAL (SELECT textsim._ratio(
        p.shared, ranked.shingle_counts[p.x], ranked.shingle_counts[p.y]) AS similarity OFFSET 0) r
    WHERE textsim._is_match(r.similarity, lowest)
    ORDER BY p.y, r.similarity DESC, p.x
    $query$, 'document_' || c.id,
    CASE WHEN has_numbers THEN format('textsim._triples(d.word_ids, %s) t', least(c.shingle_length, 3))
        ELSE 'textsim._shingle_texts(c, d.word_ids, d.normal_form) t (shingle)' END,
    CASE WHEN has_numbers THEN 't.x, t.y, t.z' ELSE 't.shingle COLLATE "C"' END, 1024);

-- The function of a corpus that returns the documents of keys in order of rank without copies. lowest: the lowest similarity
-- of a copy. has_rows: whether the rows of documents show which ones may be that similar, as in an exact corpus from its
-- threshold on. The statements are planned once, because this takes longer than to compare ten documents.
CREATE OR REPLACE FUNCTION textsim._distinct_template() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $template$
CREATE OR REPLACE FUNCTION textsim._distinct_{id}(
    c textsim.corpus, keys text[], lowest double precision, guards boolean, missing text, has_rows boolean)
RETURNS TABLE (key text, rank integer, copies text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    ranked record;  -- arrays with a member for each key, in order of rank; only documents of one kind are compared
    kept_by integer[];  -- by place: the place of the document that is kept
    ids integer[];  -- by place: the id of a document that is compared with the others
    absent text;
    matches refcursor;
    pair record;
BEGIN
    SELECT array_agg(r.key) AS keys, array_agg(r.rank) AS ranks, array_agg(r.id) AS ids, array_agg(r.guard) AS guards,
        array_agg(coalesce(r.shingle_count, 0)) AS shingle_counts, array_agg(r.kind) AS kinds,
        c.unit = 'word' AND c.shingle_length <= 3 AND bool_and(r.has_ids OR r.id IS NULL) AS have_numbers
    INTO ranked
    FROM (
        SELECT k.key, k.rank, d.*, dense_rank() OVER (ORDER BY d.part, CASE WHEN guards THEN d.guard END)::integer AS kind
        FROM (
            SELECT u.key COLLATE "C" AS key, min(u.rank)::integer AS rank
            FROM unnest(keys) WITH ORDINALITY u (key, rank) GROUP BY 1
        ) k
        LEFT JOIN LATERAL (
            SELECT d.id, d.guard, d.part, d.shingle_count, d.word_ids IS NOT NULL AS has_ids FROM textsim.document_{id} d
            WHERE d.key = k.key COLLATE "default"{alive} OFFSET 0
        ) d ON true
        ORDER BY k.rank
    ) r;
    absent := ranked.keys[array_position(ranked.ids, NULL)];
    IF absent IS NOT NULL AND missing = 'refuse' THEN
        RAISE EXCEPTION 'corpus "%" has no document %', c.name, quote_literal(left(absent, 100)) ||
            CASE WHEN EXISTS (SELECT FROM textsim.source s WHERE s.corpus_id = c.id AND s.active)
                THEN '; if its row stands, it waits for textsim worker, or for textsim.index_pending()' ELSE '' END
            USING ERRCODE = 'no_data_found',
                HINT = 'With missing => ''keep'', a key without a document is a result of its own.';
    END IF;
    kept_by := array(SELECT generate_series(1, cardinality(ranked.keys)));
    ids := ranked.ids;
    IF has_rows THEN
        WITH prefix AS MATERIALIZED (
            SELECT o.place, o.kind, unnest(d.signature[:textsim._count_rows(d.shingle_count, lowest)]) AS value
            FROM unnest(ids, ranked.kinds) WITH ORDINALITY o (id, kind, place)
            CROSS JOIN LATERAL (SELECT d.shingle_count, d.signature FROM textsim.document_{id} d WHERE d.id = o.id OFFSET 0) d
        ), pair AS MATERIALIZED (
            SELECT x.place AS x, y.place AS y
            FROM prefix x JOIN prefix y ON y.value = x.value AND y.kind = x.kind AND x.place < y.place
            GROUP BY 1, 2
            HAVING count(*) >= textsim._needed_rows(
                ranked.shingle_counts[x.place], ranked.shingle_counts[y.place], lowest)
        )
        SELECT array_agg(CASE WHEN u.place IN (SELECT p.x FROM pair p UNION ALL SELECT p.y FROM pair p) THEN u.id END
            ORDER BY u.place)
        INTO ids FROM unnest(ids) WITH ORDINALITY u (id, place);
    END IF;
    IF cardinality(array_remove(ids, NULL)) > 1 THEN
        IF ranked.have_numbers THEN
            OPEN matches FOR {matches_by_numbers};
        ELSE
            OPEN matches FOR {matches_by_texts};
        END IF;
        LOOP
            FETCH matches INTO pair;
            EXIT WHEN NOT FOUND;
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
        GROUP BY k.kept ORDER BY k.kept;
END $$;
$template$;

CREATE OR REPLACE FUNCTION textsim.distinct_of(
    corpus text, keys text[], max_results integer DEFAULT NULL, threshold double precision DEFAULT NULL,
    guards boolean DEFAULT true, missing text DEFAULT 'refuse')
RETURNS TABLE (key text, rank integer, copies text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    lowest double precision;
BEGIN
    PERFORM textsim._check_given('keys', keys IS NOT NULL), textsim._check_given('a key', array_position(keys, NULL) IS NULL),
        textsim._check_given('guards', guards IS NOT NULL), textsim._check_choice('missing', missing, 'refuse', 'keep'),
        textsim._check_search(c, NULL, max_results);
    threshold := textsim._check_threshold(NULL, threshold);
    c.unique_from := coalesce(threshold, c.unique_from);
    lowest := CASE WHEN guards THEN textsim._unique_from(c) ELSE coalesce(threshold, c.threshold) END;
    RETURN QUERY EXECUTE format('SELECT * FROM textsim.%I($1, $2, $3, $4, $5, $6) LIMIT $7', '_distinct_' || c.id)
        USING c, keys, lowest, guards, missing, c.bands IS NULL AND lowest >= c.threshold, max_results;
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
