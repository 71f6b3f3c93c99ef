-- Which texts of a list have twins, under locks that last until the end of the transaction, so that the statement that
-- writes the other texts meets no twin.
--
-- As in textsim_db.write.find_twins, each text is compared with the stored documents and with the earlier texts that stay
-- in. The document that a text would replace is not compared with this text, but with all others, because the texts that
-- stay in may be written in any order, or only some of them.

-- A text of a list, as its corpus would store it.
DO $do$ BEGIN
    CREATE TYPE textsim._listed_text AS (
        key text, form text, part bigint, guard bigint, shingle_count integer, buckets integer[]);
EXCEPTION WHEN duplicate_object THEN
END $do$;

-- Raise an error unless the list has a key of its own for each text, and each can be stored.
CREATE OR REPLACE FUNCTION textsim._check_list(c textsim.corpus, keys text[], bodies text[], scopes text[]) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    refused record;
BEGIN
    -- unnest() fills up a list that is too short with NULL.
    SELECT q.place, f.fault INTO refused
    FROM unnest(keys, bodies, scopes) WITH ORDINALITY q (key, body, scope, place)
    CROSS JOIN LATERAL (SELECT textsim._document_fault(c, q.key, q.body, q.scope) AS fault) f
    WHERE f.fault IS NOT NULL
    ORDER BY q.place LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'text % of the list: %', refused.place, refused.fault
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(q.place ORDER BY q.place) AS places, min(q.key) AS key INTO refused
    FROM unnest(keys) WITH ORDINALITY q (key, place)
    GROUP BY q.key COLLATE "C" HAVING count(*) > 1
    ORDER BY min(q.place) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'texts % and % of the list have the same key "%"',
            refused.places[1], refused.places[2], left(refused.key, 100)
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Leave one of the two out of the list: a row has one text.';
    END IF;
END $$;

-- For each text whether its document has these words already, and else the best match with the place of its row.
CREATE OR REPLACE FUNCTION textsim._stored_twins(c textsim.corpus, listed textsim._listed_text[])
RETURNS TABLE (place integer, is_unchanged boolean, key text, similarity double precision, version tid)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY EXECUTE format($query$
        SELECT t.place::integer, u.is_unchanged, m.key, m.similarity, d.ctid
        FROM unnest($1) WITH ORDINALITY t (key, form, part, guard, shingle_count, buckets, place)
        CROSS JOIN LATERAL (
            SELECT EXISTS (
                SELECT FROM textsim.%1$I s
                WHERE s.key = t.key AND s.part IS NOT DISTINCT FROM t.part AND t.form COLLATE "C"
                    = textsim._stored_form(($4).id, s.word_ids, s.normal_form)
                    -- To write it again makes it count for longer, for which it must have no twin.
                    AND $3 IS NULL
                OFFSET 0) AS is_unchanged
            OFFSET 0
        ) u
        LEFT JOIN LATERAL (
            SELECT s.key, s.similarity FROM textsim._search(
                $4, CASE WHEN u.is_unchanged THEN '{}' ELSE t.buckets END,
                NULL, t.form, NULL, t.shingle_count, t.key, $2, NULL, NULL, t.part, t.guard, with_rejected => true) s
            WHERE textsim._merges($4, t.key, t.form, s.key, NULL, s.similarity, t.guard, s.guard)
            LIMIT 1
        ) m ON true
        LEFT JOIN LATERAL (SELECT s.ctid FROM textsim.%1$I s WHERE s.key = m.key OFFSET 0) d ON true
        $query$, 'document_' || c.id)
    USING listed, c.threshold, c.keep_for, c;
END $$;

-- The best match of a text among candidates, given by their places; ties go to the first. shared: buckets, by text.
CREATE OR REPLACE FUNCTION textsim._best_listed(
    c textsim.corpus, listed textsim._listed_text[], place integer, candidates integer[], shared integer[])
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    own textsim._listed_text := listed[place];
    shingles text[] := textsim._shingles_in_any_order(own.form, c.unit, c.shingle_length);
BEGIN
    RETURN QUERY
        SELECT listed[p].key, m.similarity
        FROM unnest(candidates) p
        CROSS JOIN LATERAL (
            SELECT CASE WHEN listed[p].form COLLATE "C" = own.form THEN 1
                ELSE textsim._ratio(textsim._count_shared(
                    shingles, textsim._shingles_in_any_order(listed[p].form, c.unit, c.shingle_length)),
                    own.shingle_count, listed[p].shingle_count) END AS similarity
            OFFSET 0  -- computed once
        ) m
        WHERE textsim._merges(
                c, own.key, own.form, listed[p].key, listed[p].form, m.similarity, own.guard, listed[p].guard)
            AND textsim._is_candidate(shared[p], listed[p].shingle_count, own.shingle_count,
                CASE WHEN c.bands IS NULL THEN c.threshold END)
            AND textsim._may_reach(listed[p].shingle_count, own.shingle_count, c.threshold)
        ORDER BY m.similarity DESC, p LIMIT 1;
END $$;

-- The texts that have twins, with the document or earlier text that matches best; of a document the place of its row.
-- A chain has the texts that stay in and have one bucket. An entry is a bucket of a text, as often as the text has
-- it; only buckets that are there twice have entries. Without chains, many texts that match the first one would be
-- compared with each other.
CREATE OR REPLACE FUNCTION textsim._list_twins(c textsim.corpus, listed textsim._listed_text[])
RETURNS TABLE (key text, standing text, similarity double precision, version tid)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- Arrays, not records of arrays: only a variable of its own gives its members without a copy of the array.
    -- By text: whether its document stays as it is, and the stored document that matches it best.
    are_unchanged boolean[];
    stored_keys text[];
    stored_similarities double precision[];
    stored_versions tid[];
    -- By text: the last text that met it, and how many buckets the two share.
    last_visits integer[] := array_fill(0, ARRAY[cardinality(listed)]);
    shared integer[] := last_visits;
    -- By entry, in the order of the texts.
    texts integer[];
    buckets integer[];
    previous_entries integer[];
    last_entries integer[];  -- by bucket: the last entry of its chain
    next_entry integer := 1;
    first_entry integer;
    other integer;
    candidates integer[];
    best record;
BEGIN
    SELECT array_agg(t.is_unchanged ORDER BY t.place), array_agg(t.key ORDER BY t.place),
        array_agg(t.similarity ORDER BY t.place), array_agg(t.version ORDER BY t.place)
    INTO are_unchanged, stored_keys, stored_similarities, stored_versions
    FROM textsim._stored_twins(c, listed) t;
    SELECT coalesce(array_agg(e.place ORDER BY e.place, e.bucket), '{}'),
        coalesce(array_agg(e.bucket ORDER BY e.place, e.bucket), '{}')
    INTO texts, buckets
    FROM (
        SELECT s.place, dense_rank() OVER (ORDER BY s.bucket, s.part, s.guard) AS bucket
        FROM (
            SELECT t.place, t.part, t.guard, b AS bucket, count(*) OVER (PARTITION BY b, t.part, t.guard) AS entries
            FROM unnest(listed) WITH ORDINALITY t (key, form, part, guard, shingle_count, buckets, place)
            CROSS JOIN LATERAL unnest(t.buckets) b
        ) s
        WHERE s.entries > 1
    ) e;
    -- The buckets are numbered from 1, so there are no more than entries.
    previous_entries := array_fill(0, ARRAY[cardinality(texts)]);
    last_entries := previous_entries;
    FOR place IN 1..cardinality(listed) LOOP
        candidates := '{}';
        first_entry := next_entry;
        WHILE texts[next_entry] = place LOOP
            other := last_entries[buckets[next_entry]];
            WHILE other > 0 LOOP
                IF last_visits[texts[other]] < place THEN
                    last_visits[texts[other]] := place;
                    shared[texts[other]] := 0;
                    candidates := candidates || texts[other];
                END IF;
                shared[texts[other]] := shared[texts[other]] + 1;
                other := previous_entries[other];
            END LOOP;
            next_entry := next_entry + 1;
        END LOOP;
        -- The stored document stands for a text that changes nothing.
        CONTINUE WHEN are_unchanged[place];
        key := listed[place].key;
        standing := stored_keys[place];
        similarity := stored_similarities[place];
        version := stored_versions[place];
        IF candidates <> '{}' THEN
            SELECT b.* INTO best FROM textsim._best_listed(c, listed, place, candidates, shared) b;
            IF best.similarity > coalesce(similarity, 0) THEN
                standing := best.key;
                similarity := best.similarity;
                version := NULL;
            END IF;
        END IF;
        IF standing IS NOT NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        FOR i IN first_entry..next_entry - 1 LOOP
            previous_entries[i] := last_entries[buckets[i]];
            last_entries[buckets[i]] := i;
        END LOOP;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION textsim.twins_of(corpus text, keys text[], texts text[], scopes text[] DEFAULT NULL)
RETURNS TABLE (key text, standing text, similarity double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._required_unique(corpus);
    listed textsim._listed_text[];
    twin record;  -- arrays with a member for each text that has a twin
    stands boolean;
BEGIN
    PERFORM textsim._check_list(c, keys, texts, scopes);
    IF keys IS NULL OR keys = '{}' THEN
        RETURN;
    END IF;
    listed := array(
        SELECT ROW(q.key, f.form, s.part, s.guard, s.shingle_count, s.buckets)::textsim._listed_text
        FROM unnest(keys, texts, scopes) WITH ORDINALITY q (key, body, scope, place)
        CROSS JOIN LATERAL (SELECT textsim._form(c, q.body) AS form OFFSET 0) f  -- computed once
        CROSS JOIN LATERAL textsim._sketched(c, f.form, textsim._part(q.scope)) s
        ORDER BY q.place);
    -- The statement that writes the texts locks these buckets once more.
    PERFORM textsim._lock_buckets(c.id, array(
        SELECT DISTINCT b
        FROM unnest(listed) t
        CROSS JOIN LATERAL unnest(textsim._buckets_to_lock(c, t.buckets, t.shingle_count, t.guard)) b),
        array(SELECT DISTINCT t.part FROM unnest(listed) t), 2);
    LOOP
        -- A later statement than the locks: its snapshot has what their last holders have written.
        SELECT array_agg(t.key) AS keys, array_agg(t.standing) AS standing,
            array_agg(t.similarity) AS similarities,
            coalesce(array_agg(t.standing) FILTER (WHERE t.version IS NOT NULL), '{}') AS stored,
            coalesce(array_agg(t.version) FILTER (WHERE t.version IS NOT NULL), '{}') AS versions
        INTO twin FROM textsim._list_twins(c, listed) t;
        -- Wait for transactions that change or remove the documents, and look again if one has.
        EXECUTE format($query$
            SELECT count(*) = (SELECT count(DISTINCT k COLLATE "C") FROM unnest($1) k)
            FROM (SELECT d.ctid FROM textsim.%I d WHERE d.key = ANY ($1) ORDER BY d.key FOR SHARE) l
            WHERE l.ctid = ANY ($2)
            $query$, 'document_' || c.id)
        INTO stands USING twin.stored, twin.versions;
        EXIT WHEN stands;
    END LOOP;
    RETURN QUERY SELECT * FROM unnest(twin.keys, twin.standing, twin.similarities);
END $$;
COMMENT ON FUNCTION textsim.twins_of(text, text[], text[], text[])
    IS 'Returns which texts of a list have a twin in a unique corpus: the key of the text, and the most similar '
    'document (standing), which is stored or stands earlier in the list. Two that were judged different are no '
    'twins. A text whose only twins are left out '
    'themselves stays in. The stored document of a text''s own key is no twin. The buckets of all texts are locked '
    'until the end of the transaction, so a statement that writes the other texts meets no twin. Raises an '
    'error if the corpus is not unique, if the isolation level is not READ COMMITTED, if a key or text is NULL, if two '
    'texts have the same key, or if the numbers of keys and texts differ. Returns no rows if both are NULL. In a '
    'scoped corpus, scopes has the scope of each text.';
