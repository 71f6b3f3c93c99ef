-- Candidates by an indexed join, and matches verified exactly. textsim_db.read.search does the same.

-- The normal form of a document. Each corpus has its own _normal_form_of_N and _word_numbers_N, over its dictionary.
CREATE OR REPLACE FUNCTION textsim._normal_form_of(word_ids integer[]) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off  -- a plan from the time when the dictionary was empty is used when it is full
AS $$
BEGIN
    RETURN (
        -- Each word is looked up, also if a caller forbids nested loops: a join would read the dictionary then.
        SELECT coalesce(string_agg((SELECT w.word FROM textsim.word w WHERE w.id = u.id), ' ' ORDER BY u.place), '')
        FROM unnest(word_ids) WITH ORDINALITY u (id, place));
END $$;

-- The word ids of a normal form, with a negative number for each word that is not in the dictionary.
CREATE OR REPLACE FUNCTION textsim._word_numbers(form text) RETURNS integer[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off  -- a plan from the time when the dictionary was empty is used when it is full
AS $$
DECLARE
    ids integer[] := array(
        SELECT (  -- each word is looked up, also by a plan from the time when the dictionary was empty
            SELECT w.id FROM textsim.word w
            WHERE w.hash = hashtextextended(u.word COLLATE "C", 0) AND w.word = u.word COLLATE "C")
        FROM unnest(string_to_array(form, ' ')) WITH ORDINALITY u (word, place)
        ORDER BY u.place);
BEGIN
    IF array_position(ids, NULL) IS NULL THEN
        RETURN ids;
    END IF;
    RETURN array(
        SELECT coalesce(u.id, -dense_rank() OVER (ORDER BY u.word COLLATE "C"))
        FROM unnest(string_to_array(form, ' '), ids) WITH ORDINALITY u (word, id, place)
        ORDER BY u.place);
END $$;

-- The stored words of a document of a corpus, one of which is NULL, as a normal form.
CREATE OR REPLACE FUNCTION textsim._stored_form(corpus_id integer, word_ids integer[], form text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF form IS NULL THEN
        EXECUTE format('SELECT textsim._normal_form_of_%s($1)', corpus_id) INTO form USING word_ids;
    END IF;
    RETURN form;
END $$;

-- The stored words of a document of a corpus, one of which is NULL, as numbers; see _word_numbers().
CREATE OR REPLACE FUNCTION textsim._stored_numbers(corpus_id integer, word_ids integer[], form text) RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF word_ids IS NULL THEN
        EXECUTE format('SELECT textsim._word_numbers_%s($1)', corpus_id) INTO word_ids USING form;
    END IF;
    RETURN word_ids;
END $$;

-- The shingles of n words, for n up to 3; columns past n, or past the end of the text, are NULL.
CREATE OR REPLACE FUNCTION textsim._triples(numbers integer[], n integer)
RETURNS TABLE (x integer, y integer, z integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT t.x, t.y, t.z
    FROM unnest(numbers, CASE WHEN n > 1 THEN numbers[2:] END, CASE WHEN n > 2 THEN numbers[3:] END)
        t (x, y, z)
    LIMIT greatest(cardinality(numbers) - n + 1, 1);
END;

-- The shingles of a document as texts, in any order and repeated; equal shingles of two documents are equal texts.
-- Word shingles consist of the ids of the words. A word without an id has = before it, so no word looks like an id.
CREATE OR REPLACE FUNCTION textsim._shingle_texts(c textsim.corpus, word_ids integer[], form text) RETURNS SETOF text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT r.run
    FROM textsim._char_runs(form, c.shingle_length) r (run)
    WHERE c.unit = 'char'
    UNION ALL
    SELECT array_to_string(w.ids[i:i + c.shingle_length - 1], ' ')
    FROM (SELECT array(SELECT unnest(word_ids)) AS ids OFFSET 0) w  -- a slice of the parameter would copy it all
    CROSS JOIN generate_series(1, greatest(cardinality(w.ids) - c.shingle_length + 1, 1)) i
    WHERE c.unit = 'word' AND word_ids IS NOT NULL
    UNION ALL
    SELECT s.shingle
    FROM unnest(textsim._shingles_of(array(
        SELECT CASE WHEN u.number > 0 THEN u.number::text ELSE '=' || u.word END
        FROM unnest(string_to_array(form, ' '), textsim._stored_numbers(c.id, NULL, form))
            WITH ORDINALITY u (word, number, place)
        ORDER BY u.place), c.shingle_length, ' ')) s (shingle)
    WHERE c.unit = 'word' AND word_ids IS NULL;
END;

-- Whether two sets of this number of shingles surely have no room in one tsvector. A character has a byte or
-- more, and the id of a word may have ten digits.
CREATE OR REPLACE FUNCTION textsim._is_long(shingles integer, unit text, n integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN shingles::bigint * n * CASE unit WHEN 'word' THEN 11 ELSE 1 END > 500000;

-- The distinct shingles of a document; NULL if a union of two such sets might have no room in a tsvector.
-- The union of two sets is a concatenation of tsvectors, which merges two sorted lists in one pass.
CREATE OR REPLACE FUNCTION textsim._shingle_set(c textsim.corpus, word_ids integer[], form text) RETURNS tsvector
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$  -- a plan for each document takes longer than its shingles
BEGIN
    IF c.unit = 'word' AND word_ids IS NOT NULL THEN
        -- An id has at most ten digits.
        RETURN CASE WHEN c.shingle_length <= 180 AND 11 * c.shingle_length::bigint * cardinality(word_ids) <= 500000 THEN
            array_to_tsvector(array(SELECT s FROM textsim._shingle_texts(c, word_ids, NULL) s)) END;
    END IF;
    RETURN (
        SELECT CASE WHEN max(octet_length(s.shingle)) < 2047 AND sum(octet_length(s.shingle)) < 500000
            THEN array_to_tsvector(array_agg(s.shingle)) END
        FROM (SELECT DISTINCT t COLLATE "C" AS shingle FROM textsim._shingle_texts(c, word_ids, form) t) s);
END $$;

-- The documents of a corpus that are similar to the given buckets and words, best first. threshold: NULL, any similarity
-- above 0, as nearest() returns it. of_siblings, with_rejected: as in _candidates_N().
CREATE OR REPLACE FUNCTION textsim._search(
    c textsim.corpus, own_buckets integer[], own_values bigint[], own_form text, own_ids integer[], own_count integer,
    own_key text, threshold double precision, max_results integer, of_language text, of_part bigint,
    of_guard bigint DEFAULT NULL, of_siblings boolean DEFAULT false, with_rejected boolean DEFAULT false)
RETURNS TABLE (key text, similarity double precision, guard bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    d record;
    least_score CONSTANT double precision := coalesce(threshold, 1e-9);
    edge CONSTANT text := CASE c.unit WHEN 'word' THEN ' ' ELSE '' END;
    has_numbers CONSTANT boolean := c.unit = 'word' AND c.shingle_length <= 3;
    own_shingles text[];
    own_runs text[];
    body text;
    shared bigint;
    keys text[] := '{}';
    scores double precision[] := '{}';
    guards bigint[] := '{}';
    score double precision;
    -- of the last result, if there are as many as are wanted; nearest() compares all its candidates
    last_score double precision;
    has_candidates boolean := true;
BEGIN
    -- Most texts have no candidate, and to plan the comparison takes as long as to sketch a text. So the band table is
    -- asked first; not for a stored document, which shares its buckets with itself, nor for nearest(), which may compare
    -- all documents.
    IF own_key IS NULL AND threshold IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM textsim.%I b WHERE b.bucket = ANY ($1))', 'band_' || c.id)
        INTO has_candidates USING own_buckets;
    END IF;
    IF NOT has_candidates THEN
        RETURN;
    END IF;
    own_count := coalesce(own_count, textsim._count_shingles(own_form, own_values, c.unit, c.shingle_length));
    -- Only word shingles up to 3 are compared by word ids, and only with documents that have them. To look for each
    -- shingle in a short text takes a quarter of the time of its shingles. A single shingle may be shorter than others,
    -- and begin one.
    FOR d IN EXECUTE format(
            'SELECT k.*, ' || CASE WHEN has_numbers THEN 'k.normal_form'
                ELSE 'coalesce(k.normal_form, textsim._normal_form_of_%1$s(k.word_ids))' END || ' AS form '
            'FROM textsim._candidates_%1$s($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $12) k '
            'WHERE textsim._may_reach(k.shingle_count, $2, $11)', c.id)
        USING own_buckets, own_count, own_key, threshold, of_language, of_part, of_guard, own_form, of_siblings,
            with_rejected, least_score, max_results
    LOOP
        EXIT WHEN d.most_similar < last_score;
        IF d.form IS NULL THEN
            shared := (
                SELECT count(*) FROM (
                    SELECT * FROM textsim._triples(coalesce(own_ids, d.own_numbers), c.shingle_length)
                    INTERSECT SELECT * FROM textsim._triples(d.word_ids, c.shingle_length)) t);
        ELSE
            IF own_runs IS NULL THEN
                own_form := textsim._stored_form(c.id, own_ids, own_form);
                own_shingles := textsim._shingles_in_any_order(own_form, c.unit, c.shingle_length);
                own_runs := array(SELECT edge || s || edge FROM unnest(own_shingles) s);
            END IF;
            body := edge || CASE c.unit WHEN 'char' THEN textsim._without_spaces(d.form) ELSE d.form END || edge;
            shared := CASE WHEN own_count = 1 OR own_count::bigint * length(body) > 300000
                THEN textsim._count_shared(own_shingles,
                    textsim._shingles_in_any_order(d.form, c.unit, c.shingle_length))
                ELSE (SELECT count(*) FROM unnest(own_runs) s WHERE strpos(body COLLATE "C", s) > 0) END;
        END IF;
        score := textsim._ratio(shared, own_count, d.shingle_count);
        CONTINUE WHEN score < last_score OR NOT textsim._is_match(score, least_score);
        keys := keys || d.key;
        scores := scores || score;
        guards := guards || d.guard;
        IF threshold IS NOT NULL AND cardinality(scores) >= max_results THEN
            last_score := (SELECT s FROM unnest(scores) s ORDER BY s DESC OFFSET max_results - 1 LIMIT 1);
        END IF;
    END LOOP;
    IF keys <> '{}' THEN
        RETURN QUERY
            SELECT m.key, m.similarity, m.guard FROM unnest(keys, scores, guards) m (key, similarity, guard)
            ORDER BY m.similarity DESC, m.key COLLATE "C"
            LIMIT max_results;
    END IF;
END $$;

-- The guards that differ between a text, given by its normal form and its guard, and a document.
CREATE OR REPLACE FUNCTION textsim._differs(
    c textsim.corpus, form text, guard bigint, other_key text, other_guard bigint)
RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    other_form text;
BEGIN
    IF textsim._have_equal_guards(guard, other_guard) THEN
        RETURN '{}';
    END IF;
    IF cardinality(c.guards) = 1 THEN
        RETURN c.guards;
    END IF;
    EXECUTE format(
        'SELECT coalesce(d.normal_form, textsim._normal_form_of_%1$s(d.word_ids)) '
        'FROM textsim.document_%1$s d WHERE d.key = $1', c.id)
    INTO other_form USING other_key;
    RETURN textsim._differing(c.guards, c.guard_words, c.guard_fillers, form, other_form);
END $$;

-- The threshold of a search; a warning with the share that is found if it is lower than that of the corpus, or if
-- bands and rows find few pairs.
CREATE OR REPLACE FUNCTION textsim._search_threshold(c textsim.corpus, threshold double precision)
RETURNS double precision
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    threshold := textsim._check_threshold(c, threshold);
    IF threshold < c.threshold THEN
        RAISE WARNING
            'threshold % is below %, the threshold of corpus "%": % %% of the documents at % are found',
            threshold, c.threshold, c.name,
            round(least(99.9, 100 * textsim._pair_recall(threshold, c.bands, c.rows))::numeric, 1), threshold
            USING HINT = 'textsim rebuild lowers the threshold of a corpus.';
    ELSE
        PERFORM textsim._warn_of_misses(c, coalesce(threshold, c.threshold));
    END IF;
    RETURN coalesce(threshold, c.threshold);
END $$;

-- A query for the ids of documents that share buckets, and how many, in all parts or in one; of documents that may be
-- merged also their guard, so that texts of one template do not all meet.
CREATE OR REPLACE FUNCTION textsim._meetings(c textsim.corpus, part bigint, for_merges boolean DEFAULT false)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format($query$
    SELECT x.document_id AS x, y.document_id AS y, count(*) AS shared
    FROM %1$s x JOIN %1$s y ON y.bucket = x.bucket AND x.document_id < y.document_id%2$s
    GROUP BY x.document_id, y.document_id
    $query$,
    format(CASE
        -- The band rows have no index on their documents, so the signatures give the buckets.
        WHEN part IS NOT NULL THEN $query$(
            SELECT q.bucket, d.id AS document_id, d.guard
            FROM textsim.%2$I d
            CROSS JOIN LATERAL unnest(
                textsim._in_part(textsim._buckets(d.signature, %3$L, %4$L), d.part)) q (bucket)
            WHERE d.part = %5$L)$query$
        WHEN for_merges AND c.guards <> '{}' THEN $query$(
            SELECT r.bucket, r.document_id, d.guard
            FROM textsim.%1$I r JOIN textsim.%2$I d ON d.id = r.document_id)$query$
        ELSE 'textsim.%1$I' END, 'band_' || c.id, 'document_' || c.id, c.bands, c.rows, part),
    CASE WHEN for_merges AND c.guards <> '{}' THEN ' AND y.guard = x.guard' ELSE '' END);

-- The matches among pairs of ids of documents, with their exact similarity.
-- STABLE, so that it sees the documents that the calling statement sees.
CREATE OR REPLACE FUNCTION textsim._verify_pairs(
    c textsim.corpus, xs integer[], ys integer[], threshold double precision)
RETURNS TABLE (x integer, y integer, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY EXECUTE format($query$
        WITH candidate AS MATERIALIZED (
            SELECT p.x, p.y,
                d.word_ids = e.word_ids OR d.normal_form = e.normal_form AS is_copy
            FROM unnest($1, $2) p (x, y)
            JOIN textsim.%1$I d ON d.id = p.x
            JOIN textsim.%1$I e ON e.id = p.y
        ),
        -- A document may be in many pairs; its shingles are made once.
        document AS MATERIALIZED (
            SELECT d.id, d.word_ids, d.normal_form, d.shingle_count,
                CASE WHEN NOT textsim._is_long(d.shingle_count, $3, $4) THEN
                    textsim._shingle_set($6, d.word_ids, d.normal_form) END AS shingles
            FROM textsim.%1$I d
            WHERE d.id IN (
                SELECT p.x FROM candidate p WHERE p.is_copy IS NOT TRUE
                UNION SELECT p.y FROM candidate p WHERE p.is_copy IS NOT TRUE)
        ),
        pair AS MATERIALIZED (
            SELECT p.x, p.y, d.shingle_count AS x_count, e.shingle_count AS y_count,
                d.shingle_count + e.shingle_count - length(d.shingles || e.shingles) AS shared
            FROM candidate p JOIN document d ON d.id = p.x JOIN document e ON e.id = p.y
            WHERE p.is_copy IS NOT TRUE
        ),
        -- The other pairs have a long document. The shingles of all their documents are grouped in one pass, and the
        -- owners of a shingle are the documents that have it, a bit each.
        long_document AS MATERIALIZED (
            SELECT n.*, set_bit(repeat('0', n.documents)::"bit", n.number, 1) AS owner
            FROM (
                SELECT d.id, d.word_ids, d.normal_form, (row_number() OVER ())::integer - 1 AS number,
                    (count(*) OVER ())::integer AS documents
                FROM document d
                WHERE d.id IN (
                    SELECT p.x FROM pair p WHERE p.shared IS NULL UNION SELECT p.y FROM pair p WHERE p.shared IS NULL)
            ) n
        ),
        owned AS MATERIALIZED (
            SELECT s.owners, count(*) AS shingles
            FROM (
                SELECT bit_or(d.owner) AS owners
                FROM long_document d
                CROSS JOIN LATERAL textsim._shingle_texts($6, d.word_ids, d.normal_form) t (shingle)
                GROUP BY t.shingle COLLATE "C"
            ) s
            GROUP BY s.owners
        )
        SELECT m.x, m.y, m.similarity
        FROM (
            SELECT p.x, p.y, 1::double precision AS similarity FROM candidate p WHERE p.is_copy
            UNION ALL (
                SELECT p.x, p.y, textsim._ratio(
                    coalesce(p.shared, (
                        SELECT sum(o.shingles)::bigint FROM owned o
                        WHERE get_bit(o.owners, d.number) = 1 AND get_bit(o.owners, e.number) = 1), 0),
                    p.x_count, p.y_count)
                FROM pair p LEFT JOIN long_document d ON d.id = p.x LEFT JOIN long_document e ON e.id = p.y
                OFFSET 0  -- computed once, not in WHERE and SELECT
            )
        ) m
        WHERE textsim._is_match(m.similarity, $5)
        $query$, 'document_' || c.id)
    USING xs, ys, c.unit, c.shingle_length, threshold, c;
END $$;

-- The pairs of pairs(); or for_merges, only those whose guards are equal.
CREATE OR REPLACE FUNCTION textsim._pairs(
    corpus text, threshold double precision, language text, scope text, for_merges boolean)
RETURNS TABLE (a text, b text, similarity double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._lock_corpus(corpus);
    part bigint := CASE WHEN scope IS NOT NULL THEN textsim._part_of(c, scope) END;
    batch record;
BEGIN
    PERFORM textsim._warn_unindexed(c);
    threshold := textsim._search_threshold(c, threshold);
    FOR batch IN EXECUTE format($query$
        WITH pair AS MATERIALIZED (
            SELECT p.x, p.y, min(p.x) OVER (PARTITION BY p.y) AS first, d.shingle_count AS x_count,
                e.shingle_count AS y_count,
                textsim._is_long(greatest(d.shingle_count, e.shingle_count), $4, $5) AS is_long
            FROM (%1$s) p
            JOIN textsim.%2$I d ON d.id = p.x
            JOIN textsim.%2$I e ON e.id = p.y
            WHERE ($1 IS NULL OR d.language = $1 AND e.language = $1)
                AND textsim._is_candidate(p.shared, d.shingle_count, e.shingle_count, $2)
                AND textsim._may_reach(d.shingle_count, e.shingle_count, $3)%3$s
        ),
        -- The pairs of two blocks of long documents are verified at once, so the shingles of a document are made once
        -- for each block that it meets.
        block AS (
            SELECT o.id, sum(o.shingles) OVER (ORDER BY o.first, o.id ROWS UNBOUNDED PRECEDING) / 4000000 AS number
            FROM (
                SELECT u.id, min(u.first) AS first, min(u.shingles) AS shingles
                FROM (
                    SELECT p.x AS id, p.x AS first, p.x_count AS shingles FROM pair p WHERE p.is_long
                    UNION ALL SELECT p.y, p.first, p.y_count FROM pair p WHERE p.is_long
                ) u
                GROUP BY u.id
            ) o
        )
        SELECT array_agg(n.x) AS xs, array_agg(n.y) AS ys
        FROM (
            -- The first partner of y is often the same in all pairs of a cluster. So these stand together, and the
            -- shingles of a document are made once for many of its pairs.
            SELECT p.x, p.y, -1 AS x_block, sum(p.x_count + p.y_count) OVER (
                ORDER BY p.first, p.x, p.y ROWS UNBOUNDED PRECEDING) / 2000000 AS number
            FROM pair p WHERE NOT p.is_long
            UNION ALL
            SELECT p.x, p.y, a.number, b.number
            FROM pair p JOIN block a ON a.id = p.x JOIN block b ON b.id = p.y WHERE p.is_long
        ) n
        GROUP BY n.x_block, n.number
        $query$, textsim._meetings(c, part, for_merges), 'document_' || c.id,
            textsim._may_meet(c))
        USING textsim._check_language(c, language), CASE WHEN c.bands IS NULL THEN c.threshold END,
            threshold, c.unit, c.shingle_length
    LOOP
        RETURN QUERY EXECUTE format($query$
            SELECT least(d.key COLLATE "C", e.key), greatest(d.key COLLATE "C", e.key), v.similarity
            FROM textsim._verify_pairs($1, $2, $3, $4) v
            JOIN textsim.%1$I d ON d.id = v.x
            JOIN textsim.%1$I e ON e.id = v.y
            $query$, 'document_' || c.id)
        USING c, batch.xs, batch.ys, threshold;
    END LOOP;
END $$;

-- Up to how many documents of a part, or of a corpus without parts, nearest() compares with a text without a look-up.
CREATE OR REPLACE FUNCTION textsim._few_documents(is_exact boolean) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE WHEN is_exact THEN 30 ELSE 1000 END;

-- Whether nearest() compares a text with all documents of a part, or of a corpus without parts. Expired ones count.
CREATE OR REPLACE FUNCTION textsim._compares_all(corpus_id integer, part bigint, is_exact boolean) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    documents bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM textsim.%I d%s LIMIT $2 + 1) s',
        'document_' || corpus_id, CASE WHEN part IS NOT NULL THEN ' WHERE d.part = $1' END)
    INTO documents USING part, textsim._few_documents(is_exact);
    RETURN documents <= textsim._few_documents(is_exact);
END $$;

CREATE OR REPLACE FUNCTION textsim.candidates(
    corpus text, text text, language text DEFAULT NULL, scope text DEFAULT NULL)
RETURNS TABLE (key text, shared integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, text, textsim._check_language(c, language));
    shingle_values bigint[] := textsim._query_values(c, form);
    part bigint;
BEGIN
    IF form IS NULL THEN
        RETURN;
    END IF;
    part := textsim._part_of(c, scope);
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY EXECUTE format($query$
        SELECT d.key, f.shared::integer
        FROM (
            SELECT b.document_id, count(*) AS shared
            FROM unnest($1) q (bucket) JOIN textsim.%I b ON b.bucket = q.bucket
            GROUP BY b.document_id
            HAVING count(*) >= textsim._least_needed_rows($3, $4)
        ) f
        JOIN textsim.%I d ON d.id = f.document_id
        WHERE ($2 IS NULL OR d.language = $2) AND ($5 IS NULL OR d.part = $5)
            AND textsim._is_candidate(f.shared, d.shingle_count, $3, $4)%s
        ORDER BY f.shared DESC, d.key COLLATE "C"
        $query$, 'band_' || c.id, 'document_' || c.id, textsim._alive(c, 'd'))
    USING textsim._stored_buckets(c, textsim._signature(c, shingle_values), part), language,
        cardinality(shingle_values), CASE WHEN c.bands IS NULL THEN c.threshold END, part;
END $$;
COMMENT ON FUNCTION textsim.candidates(text, text, text, text)
    IS 'Returns the documents that share a bucket with a text, and how many buckets (shared), most '
    'first. In an exact corpus they share as many as the sizes of both texts require. Nothing is '
    'verified: matches() returns the documents that are similar. A part of a long document shares few '
    'buckets with it: in an exact corpus a text of n shingles and a document of more than n / threshold are '
    'never candidates. With language, only documents in '
    'this language are returned. In a scoped corpus, scope is required, and only its documents are found.';

CREATE OR REPLACE FUNCTION textsim.matches(
    corpus text, text text, threshold double precision DEFAULT NULL, max_results integer DEFAULT NULL,
    language text DEFAULT NULL, scope text DEFAULT NULL)
RETURNS TABLE (key text, similarity double precision, differs text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, text, textsim._check_language(c, language));
    shingle_values bigint[] := textsim._query_values(c, form);
    own_guard bigint := textsim._guard(c.guards, c.guard_words, c.guard_fillers, form);
    part bigint;
BEGIN
    PERFORM textsim._check_search(c, threshold, max_results);
    IF form IS NULL THEN
        RETURN;
    END IF;
    part := textsim._part_of(c, scope);
    PERFORM textsim._warn_unindexed(c);
    threshold := textsim._search_threshold(c, threshold);
    RETURN QUERY
        SELECT s.key, s.similarity, textsim._differs(c, form, own_guard, s.key, s.guard)
        FROM textsim._search(
            c, textsim._stored_buckets(c, textsim._signature(c, shingle_values, threshold), part), shingle_values, form,
            NULL, CASE WHEN c.bands IS NULL THEN cardinality(shingle_values) END, NULL, threshold, max_results,
            language, part) s;
END $$;
COMMENT ON FUNCTION textsim.matches(text, text, double precision, integer, text, text)
    IS 'Returns the documents similar to a text and their exact similarity, best first. An exact corpus (recall 1) '
    'finds every one; any other corpus finds the share recall of those at its threshold, and more of those above it. '
    'In a corpus with guards, differs names those that differ: a sibling, which is not merged with the text. threshold is '
    'the least similarity, by default the threshold of the corpus. Below that, some matches are '
    'not found: a warning says which share is found, and an exact corpus raises an error. max_results '
    'limits the rows before the conditions of the caller; by default all that are found are returned, however many. '
    'With language, only documents in this language are returned. In a scoped corpus, scope is '
    'required, and only its documents are found. The server computes the shingles of the text in each search: a text '
    'of a million words takes many seconds, so search for it from Python. Python calls this search query().';

CREATE OR REPLACE FUNCTION textsim.nearest(
    corpus text, text text, k integer DEFAULT 10, language text DEFAULT NULL, scope text DEFAULT NULL)
RETURNS TABLE (key text, similarity double precision, differs text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, text, textsim._check_language(c, language));
    shingle_values bigint[] := textsim._query_values(c, form);
    own_guard bigint := textsim._guard(c.guards, c.guard_words, c.guard_fillers, form);
    part bigint;
BEGIN
    IF k IS NULL OR k < 1 THEN
        RAISE EXCEPTION 'k is %; expected 1 or more', coalesce(k::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF form IS NULL THEN
        RETURN;
    END IF;
    part := textsim._part_of(c, scope);
    IF c.bands IS NOT NULL AND NOT textsim._compares_all(c.id, part, false) THEN
        RAISE EXCEPTION 'corpus "%" is not exact: its bands find no documents far below its threshold, and it has more '
            'than % documents to compare with the text', corpus, textsim._few_documents(false)
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Make a corpus for this search with recall => 1 and a threshold of 0.5 or less.';
    END IF;
    PERFORM textsim._warn_unindexed(c);
    RETURN QUERY
        SELECT s.key, s.similarity, textsim._differs(c, form, own_guard, s.key, s.guard)
        FROM textsim._search(
            c, CASE WHEN c.bands IS NULL THEN  -- all shingles of the text are looked up
                textsim._in_part(array(SELECT ((x << 32) >> 32)::integer FROM unnest(shingle_values) x), part) ELSE '{}' END,
            shingle_values, form, NULL, CASE WHEN c.bands IS NULL THEN cardinality(shingle_values) END, NULL, NULL, k,
            language, part) s
        WHERE form <> '';  -- a text without words is similar to none
END $$;
COMMENT ON FUNCTION textsim.nearest(text, text, integer, text, text)
    IS 'Returns the k documents that are most similar to a text, and their exact similarity, best first, without a '
    'threshold. In a corpus or a scope of at most 30 documents it compares all with the text. In a larger exact corpus '
    'it looks the text up by the rarest shingles of each document: the lower its threshold, the more of them. Every '
    'document from its threshold on is found. Below it, it compares the k + 30 documents that share the most of these '
    'shingles, and misses others. In a corpus that is not exact it compares all of at most 1,000 documents, and refuses '
    'more. There are fewer than k rows if no others are found. differs, language and scope are as in matches().';

CREATE OR REPLACE FUNCTION textsim.differs(corpus text, a text, b text) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    kinds text[];
BEGIN
    EXECUTE format(
        'SELECT textsim._differs($1, textsim._stored_form($2, d.word_ids, d.normal_form), d.guard, e.key, e.guard) '
        'FROM textsim.%1$I d JOIN textsim.%1$I e ON e.key = $4 WHERE d.key = $3', 'document_' || c.id)
    INTO kinds USING c, c.id, a, b;
    RETURN kinds;
END $$;
COMMENT ON FUNCTION textsim.differs(text, text, text)
    IS 'Returns the guards of the corpus that differ between two documents, given by their keys: such documents are '
    'never merged, however similar they are. It is empty if all are equal, and NULL if one of the two documents is not '
    'there.';

CREATE OR REPLACE FUNCTION textsim.neighbours(
    corpus text, INOUT key text, threshold double precision DEFAULT NULL, max_results integer DEFAULT NULL,
    language text DEFAULT NULL, OUT similarity double precision, OUT differs text[])
RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    d record;
BEGIN
    PERFORM textsim._check_search(c, threshold, max_results), textsim._check_language(c, language);
    IF key IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._warn_unindexed(c);
    threshold := textsim._search_threshold(c, threshold);
    EXECUTE format(
        'SELECT d.id, d.normal_form, d.word_ids, d.shingle_count, d.part, d.guard, '
            'textsim._in_part(textsim._buckets(d.signature, $2, $3), d.part) AS buckets '
        'FROM textsim.%I d WHERE d.key = $1%s', 'document_' || c.id, textsim._alive(c, 'd'))
    INTO d USING key, c.bands, c.rows;
    -- No error, because in a LATERAL join a row that is not indexed yet must not end the statement.
    IF d.id IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT s.key, s.similarity, textsim._differs(
            c, CASE WHEN c.guards <> '{}' THEN textsim._stored_form(c.id, d.word_ids, d.normal_form) END, d.guard,
            s.key, s.guard)
        FROM textsim._search(
            c, CASE WHEN c.bands IS NULL THEN d.buckets[1:textsim._count_rows(d.shingle_count, threshold)]
                ELSE d.buckets END,
            NULL, d.normal_form, d.word_ids, d.shingle_count, key, threshold, max_results, language,
            d.part) s;
END $$;
COMMENT ON FUNCTION textsim.neighbours(text, text, double precision, integer, text)
    IS 'Returns the documents similar to the document with this key, without itself, best first. A key is a text: '
    'write a number as id::text. Of two similar documents each is a neighbour of the other; duplicates() lists which '
    'to remove. differs, threshold, max_results and language are as in matches(). Returns no rows if no document has '
    'the key. In a scoped corpus, only documents of its scope are found.';

-- VOLATILE, as all functions that list a whole corpus: a rebuild may replace the corpus while they wait.
CREATE OR REPLACE FUNCTION textsim.pairs(
    corpus text, threshold double precision DEFAULT NULL, language text DEFAULT NULL, scope text DEFAULT NULL)
RETURNS TABLE (a text, b text, similarity double precision)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1000
BEGIN ATOMIC
    SELECT p.a, p.b, p.similarity FROM textsim._pairs($1, $2, $3, $4, false) p;
END;
COMMENT ON FUNCTION textsim.pairs(text, double precision, text, text)
    IS 'Returns the pairs of similar documents with their exact similarity. An exact corpus (recall 1) finds every '
    'pair; any other corpus finds the share recall of the pairs at its threshold, and more of those above it. Each '
    'pair is listed once, with a < b in byte order. threshold is as in matches(). If language is set, both documents '
    'are in this language. In a scoped corpus, both have the same scope; with scope, only its pairs are '
    'returned.';
