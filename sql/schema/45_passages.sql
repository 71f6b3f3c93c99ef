-- Passages: runs of words that a text shares with documents. A document is found by its fingerprints, and its words
-- are compared then. textsim_db.sketch.fingerprints and textsim_db.compare.shared_runs do the same.

-- Private functions

-- Schleimer, Wilkerson and Aiken, Winnowing: Local Algorithms for Document Fingerprinting, SIGMOD 2003.
CREATE FUNCTION textsim._fingerprints(c textsim.corpus, form text) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n integer := greatest(3, c.passages / 2);
    width integer := c.passages - n + 1;
    shingle_values bigint[] := CASE WHEN c.passages IS NOT NULL THEN textsim._shingle_values(form, 'word', n) END;
BEGIN
    IF c.passages IS NULL THEN
        RETURN NULL;
    END IF;
    -- A text with fewer words than a passage has no window. An array has fewer than 2^27 elements of 8 bytes, so a
    -- number has room for the high half of a value and the place. Later places come first.
    RETURN array(
        SELECT DISTINCT ((shingle_values[134217728 - (w.first & 134217727)] << 32) >> 32)::integer
        FROM (
            SELECT s.place, min(((s.value >> 32) << 27) + 134217728 - s.place) OVER (
                ORDER BY s.place ROWS BETWEEN width - 1 PRECEDING AND CURRENT ROW) AS first
            FROM unnest(shingle_values) WITH ORDINALITY s (value, place)
        ) w
        WHERE w.place >= width
        ORDER BY 1);
END $$;
COMMENT ON FUNCTION textsim._fingerprints(textsim.corpus, text)
    IS 'the distinct fingerprints of a normal form, in order: of each window of as many words as a passage has, the low '
    'half of the shingle value whose high half is the smallest, the rightmost of equals; NULL in a corpus without '
    'passages';

CREATE FUNCTION textsim._passage_triggers(c textsim.corpus)
RETURNS TABLE (relation text, name text, statement text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
        SELECT 'document_' || c.id, 'passage_' || t.event, format(
            'CREATE TRIGGER %I AFTER %s ON textsim.%I REFERENCING %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION textsim._write_passage_rows(%L)',
            'passage_' || t.event, upper(t.event), 'document_' || c.id, t.tables, c.id)
        FROM (VALUES
            ('insert', 'NEW TABLE AS new_documents'),
            ('update', 'OLD TABLE AS old_documents NEW TABLE AS new_documents'),
            ('delete', 'OLD TABLE AS old_documents'))
            t (event, tables)
        WHERE c.passages IS NOT NULL;
END $$;
COMMENT ON FUNCTION textsim._passage_triggers(textsim.corpus)
    IS 'the triggers on the documents of a corpus with passages, with the statements that create them';

CREATE FUNCTION textsim._passage_rows(documents text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN format($query$
        SELECT f.fingerprint # s.hash, d.id
        FROM %s d
        CROSS JOIN LATERAL (SELECT textsim._scope_hash(d.scope) OFFSET 0) s (hash)  -- computed once a document
        CROSS JOIN LATERAL unnest(d.fingerprints) f (fingerprint)
        WHERE true$query$, documents);
END $$;
COMMENT ON FUNCTION textsim._passage_rows(text)
    IS 'a query for the rows that documents have in passage_N, to which a condition may be appended';

-- The writers of documents write only the column fingerprints.
CREATE FUNCTION textsim._write_passage_rows() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    old_rows text := textsim._passage_rows('old_documents');
    new_rows text := textsim._passage_rows('new_documents');
    gone text := old_rows;
    added text := new_rows;
    changed integer[];
BEGIN
    IF TG_OP = 'UPDATE' THEN
        changed := array(
            SELECT o.id FROM old_documents o JOIN new_documents n ON n.id = o.id
            WHERE (o.fingerprints, o.scope) IS DISTINCT FROM (n.fingerprints, n.scope));
        IF changed = '{}' THEN
            RETURN NULL;
        END IF;
        old_rows := old_rows || ' AND d.id = ANY ($1)';
        new_rows := new_rows || ' AND d.id = ANY ($1)';
        gone := format('(%s) EXCEPT (%s)', old_rows, new_rows);
        added := format('(%s) EXCEPT (%s)', new_rows, old_rows);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        EXECUTE format('DELETE FROM textsim.%I p USING (%s) g (fingerprint, id) '
            'WHERE p.fingerprint = g.fingerprint AND p.document_id = g.id', 'passage_' || TG_ARGV[0], gone)
        USING changed;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        EXECUTE format('INSERT INTO textsim.%I (fingerprint, document_id) %s', 'passage_' || TG_ARGV[0], added)
        USING changed;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION textsim._write_passage_rows()
    IS 'store the fingerprints of the documents that a statement has added, changed or removed';

-- A slice of a stored array reads the whole array, so both are read once, before they are cut. A run at many places of
-- the text is compared at the first ten, so that the work stays linear on every input.
CREATE FUNCTION textsim._shared_runs(a anyarray, b anyarray, min_words integer)
RETURNS TABLE (words integer, in_a integer, in_b integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH texts AS MATERIALIZED (SELECT _shared_runs.a[:] AS a, _shared_runs.b[:] AS b),
    window_of_a AS MATERIALIZED (
        SELECT s.i, s.words FROM (
            SELECT w.i, w.words, row_number() OVER (PARTITION BY w.words ORDER BY w.i) AS place
            FROM (
                SELECT i, t.a[i:i + min_words - 1] AS words
                FROM texts t CROSS JOIN generate_series(1, (SELECT cardinality(x.a) FROM texts x) - min_words + 1) i
            ) w
        ) s
        WHERE s.place <= 10
    ),
    window_of_b AS MATERIALIZED (
        SELECT j, t.b[j:j + min_words - 1] AS words
        FROM texts t CROSS JOIN generate_series(1, (SELECT cardinality(x.b) FROM texts x) - min_words + 1) j
    ),
    run AS (
        SELECT count(*)::integer + min_words - 1 AS words, min(s.i) AS i, min(s.j) AS j
        FROM (
            SELECT x.i, y.j, x.i - row_number() OVER (PARTITION BY x.i - y.j ORDER BY x.i) AS island
            FROM window_of_a x JOIN window_of_b y ON x.words = y.words
        ) s
        GROUP BY s.i - s.j, s.island
    ),
    longest AS (SELECT DISTINCT ON (r.j) r.words, r.i, r.j FROM run r ORDER BY r.j, r.words DESC, r.i),
    maximal AS (
        SELECT m.words, m.i, m.j
        FROM (
            SELECT l.words, l.i, l.j, max(l.j + l.words) OVER (
                ORDER BY l.j ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier_end
            FROM longest l
        ) m
        WHERE m.j + m.words > coalesce(m.earlier_end, 0)
    )
    SELECT s.words, s.i - 1, s.j - 1
    FROM (
        SELECT m.words, m.i, m.j,
            lag(m.words) OVER w = m.words AND lag(m.i) OVER w = m.i AND lag(m.j + m.words) OVER w > m.j AS is_repeated
        FROM maximal m WINDOW w AS (ORDER BY m.j)
    ) s
    WHERE s.is_repeated IS NOT TRUE
    ORDER BY s.j;
END $$;
COMMENT ON FUNCTION textsim._shared_runs(anyarray, anyarray, integer)
    IS 'the runs of b, of at least min_words words, that are in a, and in no longer such run: how many words, and how many '
    'words stand before it in a and in b. Of places in b that overlap, the first one of a run is returned';

CREATE FUNCTION textsim._check_passages(c textsim.corpus, min_words integer) RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF c.id IS NOT NULL AND c.passages IS NULL THEN
        RAISE EXCEPTION 'corpus "%" has no passages', c.name
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Rebuild it with passages, such as: textsim rebuild --passages 13.';
    END IF;
    IF min_words < c.passages THEN
        RAISE EXCEPTION 'min_words is %; expected % or more, the passages of corpus "%"', min_words, c.passages, c.name
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Shorter runs would be found by chance.';
    END IF;
    RETURN coalesce(min_words, c.passages);
END $$;
COMMENT ON FUNCTION textsim._check_passages(textsim.corpus, integer)
    IS 'the least words of a passage in a search, by default those of the corpus; an error if the corpus has no passages, '
    'or only longer ones';

-- Public functions

CREATE FUNCTION textsim.passages(
    corpus text, text text, min_words integer DEFAULT NULL, max_results integer DEFAULT NULL,
    scope text DEFAULT NULL, max_documents integer DEFAULT NULL)
RETURNS TABLE (key text, words integer, in_text integer, in_document integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    least_words integer := textsim._check_passages(c, min_words);
    form text;
    fingerprints integer[];
    rare integer[];
BEGIN
    PERFORM textsim._check_search(c, NULL, max_results);
    IF max_documents < 1 THEN
        RAISE EXCEPTION 'max_documents is %; expected 1 or more, or NULL for all', max_documents
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF c.id IS NULL OR text IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._check_scope(c, scope), textsim._warn_unindexed(c);
    form := textsim._form(c, text);
    fingerprints := textsim._in_scope(textsim._fingerprints(c, form), scope);
    rare := fingerprints;
    IF max_documents IS NOT NULL THEN
        EXECUTE format($query$
            SELECT array_agg(q.fingerprint) FROM unnest($1) q (fingerprint)
            WHERE (SELECT count(*) FROM (
                SELECT FROM textsim.%I p WHERE p.fingerprint = q.fingerprint LIMIT $2::bigint + 1) s) <= $2
            $query$, 'passage_' || c.id) INTO rare USING fingerprints, max_documents;
        IF cardinality(fingerprints) > coalesce(cardinality(rare), 0) THEN
            RAISE NOTICE 'a part of the text is in more than % documents, which are not all compared', max_documents;
        END IF;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT d.key, r.words, r.in_a, r.in_b
        FROM textsim.%1$I d
        CROSS JOIN LATERAL (
            SELECT s.* FROM textsim._shared_runs($2, d.word_ids, $3) s WHERE d.word_ids IS NOT NULL
            UNION ALL
            SELECT s.* FROM textsim._shared_runs($4, string_to_array(d.normal_form, ' '), $3) s
            WHERE d.normal_form IS NOT NULL
        ) r
        WHERE d.id = ANY (array(SELECT p.document_id FROM textsim.%2$I p WHERE p.fingerprint = ANY ($1)))
            AND ($5 IS NULL OR d.scope = $5)%3$s
        ORDER BY r.words DESC, d.key COLLATE "C", r.in_b
        LIMIT $6
        $query$, 'document_' || c.id, 'passage_' || c.id, textsim._alive(c, 'd'))
    USING rare, textsim._word_numbers(form), least_words, string_to_array(form, ' '), scope, max_results;
END $$;
COMMENT ON FUNCTION textsim.passages(text, text, integer, integer, text, integer)
    IS 'Returns the passages that a text shares with documents, the longest first: runs of at least min_words words that '
    'are in no longer run of the document that the text has. in_text and in_document are the numbers of words before '
    'the passage. Words are those of the normal form, without the stop words of the corpus. The corpus must have '
    'passages, which is the default of min_words and its least value: every such run is found. If a run is at several '
    'places of the text, the first place is returned; at more than ten places, it may be returned in parts. In a scoped '
    'corpus, scope is required. With max_documents, a part of the text that more documents have '
    'is not searched for: a notice warns that a passage in it may be missed. Raises an error if min_words is too small.';

CREATE FUNCTION textsim.containing(
    corpus text, text text, threshold double precision, max_results integer DEFAULT NULL,
    language text DEFAULT NULL, scope text DEFAULT NULL)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    form text := textsim._form(c, text, textsim._check_language(c, language));
    shingles text[];
BEGIN
    PERFORM textsim._check_passages(c, NULL), textsim._check_search(c, NULL, max_results),
        textsim._check_given('the threshold', threshold IS NOT NULL);
    IF NOT (threshold > 0 AND threshold <= 1) THEN
        RAISE EXCEPTION 'threshold is %; expected above 0, at most 1', threshold
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF c.id IS NULL OR form IS NULL THEN
        RETURN;
    END IF;
    PERFORM textsim._check_scope(c, scope), textsim._warn_unindexed(c);
    IF cardinality(string_to_array(form, ' ')) BETWEEN 1 AND c.passages - 1 THEN
        RAISE WARNING 'the text has % words, and only documents that share % words in a row with it are found in '
            'corpus "%"', cardinality(string_to_array(form, ' ')), c.passages, c.name;
    END IF;
    shingles := textsim._shingles_of_form(form, c.unit, c.shingle_length);
    RETURN QUERY EXECUTE format($query$
        SELECT s.key, s.similarity
        FROM (
            SELECT d.key, textsim._count_shared($2, textsim._shingles_of_form(
                coalesce(d.normal_form, textsim._normal_form_of(d.word_ids)), $3, $4))::double precision
                / cardinality($2) AS similarity
            FROM textsim.%1$I d
            WHERE d.id = ANY (array(SELECT p.document_id FROM textsim.%2$I p WHERE p.fingerprint = ANY ($1)))
                AND ($5 IS NULL OR d.scope = $5) AND ($6 IS NULL OR d.language = $6)%3$s
        ) s
        WHERE s.similarity >= $7
        ORDER BY s.similarity DESC, s.key COLLATE "C"
        LIMIT $8
        $query$, 'document_' || c.id, 'passage_' || c.id, textsim._alive(c, 'd'))
    USING textsim._in_scope(textsim._fingerprints(c, form), scope), shingles, c.unit, c.shingle_length, scope, language,
        threshold, max_results;
END $$;
COMMENT ON FUNCTION textsim.containing(text, text, double precision, integer, text, text)
    IS 'Returns the documents that contain a text or a part of it, and the exact share of its shingles that each document '
    'has (similarity), best first. threshold is the least share. The corpus must have passages: a document that shares '
    'no passage with the text is not found, whatever its share. The other arguments are as in matches().';
