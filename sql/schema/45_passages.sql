-- Passages: runs of words that a text shares with documents. A document is found by its fingerprints, and its words
-- are compared then. textsim_db.sketch.fingerprints and textsim_db.compare.shared_runs do the same.
--
-- A window of shingles chooses the first in the order (class, high half of the value), the rightmost of equals. Classes
-- are frozen with the corpus, and all fingerprints depend on them. A writer of new documents stores their rows in
-- passage_N; triggers on document_N keep the rows of documents that change or are removed. A writer locks document_N,
-- then passage_N, then band_N; whatever locks several of them takes this order, or does not wait.

-- The distinct values that windows of width shingles choose: first by class, then by the high half, the rightmost of
-- equals. NULL stands for windows whose values all have class 10 or above.
-- An array has fewer than 2^27 elements of 8 bytes, so a number has room for the class (4 bits), the high half of a
-- value (32 bits) and the place (27 bits). Later places come first.
CREATE OR REPLACE FUNCTION textsim._choose(shingle_values bigint[], classes smallint[], width integer) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN array(
        SELECT DISTINCT CASE WHEN w.first >= 10::bigint << 59 THEN NULL
            ELSE shingle_values[134217728 - (w.first & 134217727)] END
        FROM (
            SELECT s.place, min((coalesce(s.class, 0)::bigint << 59) + (((s.value >> 32) + 2147483648) << 27)
                + 134217728 - s.place) OVER (ORDER BY s.place ROWS BETWEEN width - 1 PRECEDING AND CURRENT ROW) AS first
            FROM unnest(shingle_values, classes) WITH ORDINALITY s (value, class, place)
        ) w
        WHERE w.place >= width);
END $$;

-- The distinct values that the windows of a normal form choose, with NULL for the windows that choose none.
-- Schleimer, Wilkerson and Aiken, Winnowing: Local Algorithms for Document Fingerprinting, SIGMOD 2003.
CREATE OR REPLACE FUNCTION textsim._chosen_values(c textsim.corpus, form text) RETURNS bigint[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off  -- a plan from the time when no value was common is used when many are
AS $$
DECLARE
    n integer := greatest(3, c.passages / 2);
    width integer := c.passages - n + 1;
    shingle_values bigint[] := textsim._run_values(textsim._units(form, c.unit), n);
    chosen bigint[] := textsim._choose(shingle_values, NULL, width);
BEGIN
    -- If no chosen value is common, the classes would not change the choice.
    IF EXISTS (
        SELECT FROM unnest(chosen) v (value)
        WHERE EXISTS (SELECT FROM textsim.common k WHERE k.corpus_id = c.id AND k.of_passages AND k.value = v.value))
    THEN
        RETURN textsim._choose(shingle_values, array(
            SELECT (SELECT k.class FROM textsim.common k
                WHERE k.corpus_id = c.id AND k.of_passages AND k.value = s.value)
            FROM unnest(shingle_values) WITH ORDINALITY s (value, place)
            ORDER BY s.place), width);
    END IF;
    RETURN chosen;
END $$;

-- The distinct fingerprints of chosen values, in order.
CREATE OR REPLACE FUNCTION textsim._low_halves(chosen bigint[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN array(
        SELECT DISTINCT ((v << 32) >> 32)::integer FROM unnest(chosen) v WHERE v IS NOT NULL ORDER BY 1);
END $$;

-- The distinct fingerprints of a normal form in order: those of its windows; NULL in a corpus without passages.
CREATE OR REPLACE FUNCTION textsim._fingerprints(c textsim.corpus, form text) RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN CASE WHEN c.passages IS NOT NULL THEN textsim._low_halves(textsim._chosen_values(c, form)) END;
END $$;

-- The triggers on the documents of a corpus with passages, with the statements that create them.
CREATE OR REPLACE FUNCTION textsim._passage_triggers(c textsim.corpus)
RETURNS TABLE (relation text, name text, statement text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
        SELECT 'document_' || c.id, 'passage_' || t.event, format(
            'CREATE TRIGGER %I AFTER %s ON textsim.%I REFERENCING %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION textsim._change_passage_rows(%L)',
            'passage_' || t.event, upper(t.event COLLATE "C"), 'document_' || c.id, t.tables, c.id)
        FROM (VALUES
            ('update', 'OLD TABLE AS old_documents NEW TABLE AS new_documents'),
            ('delete', 'OLD TABLE AS old_documents'))
            t (event, tables)
        WHERE c.passages IS NOT NULL;
END $$;

-- Keep the fingerprints of the documents that a statement has changed or removed.
-- Writers store the rows of new documents. A writer that changes documents writes only the column fingerprints.
CREATE OR REPLACE FUNCTION textsim._change_passage_rows() RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    passage text := 'passage_' || TG_ARGV[0];
    rows_of CONSTANT text := 'SELECT f.fingerprint, d.id FROM %s d '
        'CROSS JOIN LATERAL unnest(textsim._in_part(d.fingerprints, d.part)) f (fingerprint) WHERE true';
    gone text := format(rows_of, 'old_documents');
    added text;
    changed integer[];
BEGIN
    IF TG_OP = 'UPDATE' THEN
        changed := array(
            SELECT o.id FROM old_documents o JOIN new_documents n ON n.id = o.id
            WHERE (o.fingerprints, o.part) IS DISTINCT FROM (n.fingerprints, n.part));
        IF changed = '{}' THEN
            RETURN NULL;
        END IF;
        gone := gone || ' AND d.id = ANY ($1)';
        added := format(rows_of, 'new_documents') || ' AND d.id = ANY ($1)';
        EXECUTE format('INSERT INTO textsim.%I (fingerprint, document_id) (%s) EXCEPT (%s)', passage, added, gone)
        USING changed;
        gone := format('(%s) EXCEPT (%s)', gone, added);
    END IF;
    EXECUTE format('DELETE FROM textsim.%I p USING (%s) g (fingerprint, id) '
        'WHERE p.fingerprint = g.fingerprint AND p.document_id = g.id', passage, gone)
    USING changed;
    RETURN NULL;
END $$;

-- The runs of b that are in a, and in no longer such run: their words, and the words before them in a and in b. Of
-- places in b that overlap, the first one is returned.
-- A slice of a stored array reads the whole array, so both are read once, before they are cut. Slices are made before
-- rows are hashed or sorted: otherwise each row takes a copy of the array along. A run at many places of the text is
-- compared at the first ten, so that the work stays linear on every input. Of a long document, the slices at every
-- width-th place are looked up first: each run has one of them, so only the words around them are compared.
CREATE OR REPLACE FUNCTION textsim._shared_runs(a integer[], b integer[], min_words integer)
RETURNS TABLE (words integer, in_a integer, in_b integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 5 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    n integer := least(greatest(3, min_words / 2), min_words);
    width integer := min_words - n + 1;
    skipped integer := 0;
    last_place integer;
BEGIN
    IF cardinality(b) > 500 THEN
        WITH slice_of_a AS MATERIALIZED (
            SELECT u.a[i:i + n - 1] AS words
            FROM (SELECT _shared_runs.a[:] OFFSET 0) u (a) CROSS JOIN generate_series(1, cardinality(u.a) - n + 1) i
        ),
        slice_of_b AS MATERIALIZED (
            SELECT j, u.b[j:j + n - 1] AS words
            FROM (SELECT _shared_runs.b[:] OFFSET 0) u (b)
            CROSS JOIN generate_series(1, cardinality(u.b) - n + 1, width) j
        )
        SELECT greatest(min(p.j) - width, 0), max(p.j) + min_words - 1 INTO skipped, last_place
        FROM slice_of_b p WHERE p.words IN (SELECT x.words FROM slice_of_a x);
        IF last_place IS NULL THEN
            RETURN;
        END IF;
        b := b[skipped + 1:last_place];
    END IF;
    RETURN QUERY WITH texts AS MATERIALIZED (SELECT _shared_runs.a[:] AS a, _shared_runs.b[:] AS b),
    window_of_b AS MATERIALIZED (
        SELECT j, t.b[j:j + min_words - 1] AS words
        FROM texts t CROSS JOIN generate_series(1, (SELECT cardinality(x.b) FROM texts x) - min_words + 1) j
    ),
    window_of_a AS MATERIALIZED (
        SELECT s.i, s.words FROM (
            SELECT w.i, w.words, row_number() OVER (PARTITION BY w.words ORDER BY w.i) AS place
            FROM (
                SELECT i, t.a[i:i + min_words - 1] AS words
                FROM texts t CROSS JOIN generate_series(1, (SELECT cardinality(x.a) FROM texts x) - min_words + 1) i
                OFFSET 0  -- each slice is made once
            ) w
            WHERE w.words IN (SELECT y.words FROM window_of_b y)
        ) s
        WHERE s.place <= 10
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
    SELECT s.words, s.i - 1, s.j - 1 + skipped
    FROM (
        SELECT m.words, m.i, m.j,
            lag(m.words) OVER w = m.words AND lag(m.i) OVER w = m.i AND lag(m.j + m.words) OVER w > m.j AS is_repeated
        FROM maximal m WINDOW w AS (ORDER BY m.j)
    ) s
    WHERE s.is_repeated IS NOT TRUE
    ORDER BY s.j;
END $$;

-- The units of a text as numbers: code points, or word ids with negative numbers for words that are not in the
-- dictionary. If the word ids are known, the form is NULL.
CREATE OR REPLACE FUNCTION textsim._unit_numbers(c textsim.corpus, form text, word_ids integer[] DEFAULT NULL)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF c.unit = 'char' THEN
        RETURN array(
            SELECT ascii(u.unit)
            FROM unnest(textsim._units(form, 'char')) WITH ORDINALITY u (unit, place)
            ORDER BY u.place);
    END IF;
    RETURN textsim._stored_numbers(c.id, word_ids, form);
END $$;

-- The _shared_runs() of a text with a document; the form may be NULL if the dictionary has all words of the text.
CREATE OR REPLACE FUNCTION textsim._runs_in_document(
    c textsim.corpus, numbers integer[], form text, word_ids integer[], normal_form text, least_words integer)
RETURNS TABLE (words integer, in_a integer, in_b integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 5 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    both_texts integer[];
BEGIN
    IF c.unit = 'char' OR word_ids IS NOT NULL THEN
        RETURN QUERY SELECT * FROM textsim._shared_runs(
            numbers, textsim._unit_numbers(c, normal_form, word_ids), least_words);
    ELSE
        -- Numbers of two texts may differ for a word that is not in the dictionary, so both are numbered together. A
        -- place of an array of text is found by reading the array up to it, and of an array of integers at once.
        both_texts := array(
            SELECT dense_rank() OVER (ORDER BY u.word COLLATE "C")::integer
            FROM unnest(string_to_array(concat(textsim._stored_form(c.id, numbers, form), ' ', normal_form), ' '))
                WITH ORDINALITY u (word, place)
            ORDER BY u.place);
        RETURN QUERY SELECT * FROM textsim._shared_runs(
            both_texts[:cardinality(numbers)], both_texts[cardinality(numbers) + 1:], least_words);
    END IF;
END $$;

-- The least words of a passage in a search; an error if the corpus has no passages or longer ones, or for a bad limit.
CREATE OR REPLACE FUNCTION textsim._check_passages(
    c textsim.corpus, min_words integer, max_documents integer DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF c.passages IS NULL THEN
        RAISE EXCEPTION 'corpus "%" has no passages', c.name
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = format('Rebuild it with passages, such as: textsim rebuild %s --passages 13.', c.name);
    END IF;
    IF min_words < c.passages THEN
        RAISE EXCEPTION 'corpus "%" finds passages of % % or more, and not of %',
            c.name, c.passages, CASE c.unit WHEN 'word' THEN 'words' ELSE 'characters' END, min_words
            USING ERRCODE = 'invalid_parameter_value', HINT = CASE WHEN c.passages > 4 THEN format(
                'For shorter ones, rebuild it, such as: textsim rebuild %s --passages %s.', c.name,
                greatest(min_words, 4)) ELSE 'No corpus finds shorter ones.' END;
    END IF;
    IF max_documents < 1 THEN
        RAISE EXCEPTION 'max_documents is %; expected 1 or more, or NULL for all', max_documents
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce(min_words, c.passages);
END $$;

-- The fingerprints by which passages are looked up in a part; a notice if windows choose none.
CREATE OR REPLACE FUNCTION textsim._fingerprints_to_find(c textsim.corpus, form text, part bigint) RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    chosen bigint[] := textsim._chosen_values(c, form);
BEGIN
    IF array_position(chosen, NULL) IS NOT NULL THEN
        RAISE NOTICE 'a run of the text is in very many documents of corpus "%", which are not searched for it', c.name
            USING HINT = 'textsim passages lists such runs. To find them, rebuild the corpus with common_passages.';
    END IF;
    RETURN textsim._in_part(textsim._low_halves(chosen), part);
END $$;

-- The passages that a text shares with the documents that have one of the fingerprints.
CREATE OR REPLACE FUNCTION textsim._passages_of_form(
    c textsim.corpus, fingerprints integer[], form text, least_words integer, part bigint)
RETURNS TABLE (key text, words integer, in_text integer, in_document integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    candidate record;
    numbers integer[];
BEGIN
    FOR candidate IN EXECUTE format($query$
        SELECT d.key, d.word_ids, d.normal_form
        FROM textsim.%1$I d
        WHERE d.id = ANY (array(SELECT p.document_id FROM textsim.%2$I p WHERE p.fingerprint = ANY ($1)))
            AND ($2 IS NULL OR d.part = $2)%3$s
        $query$, 'document_' || c.id, 'passage_' || c.id, textsim._alive(c, 'd'))
    USING fingerprints, part LOOP
        numbers := coalesce(numbers, textsim._unit_numbers(c, form));
        RETURN QUERY SELECT candidate.key, r.words, r.in_a, r.in_b FROM textsim._runs_in_document(
            c, numbers, form, candidate.word_ids, candidate.normal_form, least_words) r;
    END LOOP;
END $$;

-- The FROM clause of the fingerprints p that count, with the part d.part of their documents.
-- By chance, fingerprints of two parts have the same number. So they are counted by the parts of their documents.
CREATE OR REPLACE FUNCTION textsim._fingerprint_rows(c textsim.corpus) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format('textsim.%I p', 'passage_' || c.id)
    || CASE WHEN c.scoped OR textsim._alive(c, 'd') <> '' THEN
        format(' JOIN textsim.%I d ON d.id = p.document_id', 'document_' || c.id) || textsim._alive(c, 'd')
    ELSE ' CROSS JOIN (VALUES (NULL::bigint)) d (part)' END;

-- How many documents of a part have a fingerprint, counted up to a limit.
CREATE OR REPLACE FUNCTION textsim._count_documents_of(
    c textsim.corpus, fingerprint integer, part bigint, up_to bigint DEFAULT 100000)
RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    documents integer;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE p.fingerprint = $1%s LIMIT $3) s',
        textsim._fingerprint_rows(c), CASE WHEN c.scoped THEN ' AND d.part = $2' ELSE '' END)
    INTO documents USING fingerprint, part, up_to;
    RETURN documents;
END $$;

-- The fingerprints that more than max_documents documents of a part have.
CREATE OR REPLACE FUNCTION textsim._fingerprints_of_many(
    c textsim.corpus, fingerprints integer[], part bigint, max_documents integer)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN array(
        SELECT q.fingerprint FROM unnest(fingerprints) q (fingerprint)
        WHERE textsim._count_documents_of(c, q.fingerprint, part, max_documents::bigint + 1) > max_documents);
END $$;

-- The fingerprints that more than max_documents documents of a part have, each with its part.
CREATE OR REPLACE FUNCTION textsim._fingerprints_of_all(
    c textsim.corpus, max_documents integer, OUT fingerprints integer[], OUT parts bigint[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    EXECUTE format($query$
        SELECT coalesce(array_agg(m.fingerprint), '{}'), coalesce(array_agg(m.part), '{}') FROM (
            SELECT p.fingerprint, d.part FROM %s GROUP BY 1, 2 HAVING count(*) > $1) m
        $query$, textsim._fingerprint_rows(c)) INTO fingerprints, parts USING max_documents;
END $$;

-- The regions of one document: its runs, joined by gaps of at most gap words of both sides. textsim_db.compare.shared_runs
-- does the same. a, b: the units of the text and of the document.
CREATE OR REPLACE FUNCTION textsim._regions_of(a text[], b text[], runs jsonb, gap integer)
RETURNS TABLE (
    share double precision, in_text integer, words_in_text integer, in_document integer, words_in_document integer,
    passages jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 5 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    stretches jsonb[];
    stretch jsonb;
BEGIN
    -- A run begins a stretch if it begins more than gap words after the end of all runs before it.
    stretches := array(
        SELECT jsonb_agg(jsonb_build_object('words', d.words, 'in_text', d.i, 'in_document', d.j) ORDER BY d.i, d.j)
        FROM (
            SELECT t.*, count(*) FILTER (WHERE t.is_apart) OVER (PARTITION BY t.number ORDER BY t.j) AS stretch
            FROM (
                SELECT s.words, s.i, s.j, s.number, s.j - max(s.j + s.words) OVER (
                    PARTITION BY s.number ORDER BY s.j ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > gap AS is_apart
                FROM (
                    SELECT r.*, count(*) FILTER (WHERE r.is_apart) OVER (ORDER BY r.i, r.j) AS number
                    FROM (
                        SELECT x.words, x.in_text AS i, x.in_document AS j, x.in_text - max(x.in_text + x.words) OVER (
                            ORDER BY x.in_text, x.in_document ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                            ) > gap AS is_apart
                        FROM jsonb_to_recordset(runs) x (words integer, in_text integer, in_document integer)
                    ) r
                ) s
            ) t
        ) d
        GROUP BY d.number, d.stretch);
    IF cardinality(stretches) = 1 THEN
        passages := stretches[1];
        SELECT min(x.in_text), max(x.in_text + x.words) - min(x.in_text), min(x.in_document),
            max(x.in_document + x.words) - min(x.in_document)
        INTO in_text, words_in_text, in_document, words_in_document
        FROM jsonb_to_recordset(passages) x (words integer, in_text integer, in_document integer);
        SELECT 2 * sum(least(n.one, n.other))::double precision / (words_in_text + words_in_document) INTO share
        FROM (
            SELECT count(*) FILTER (WHERE u.is_of_text) AS one, count(*) FILTER (WHERE NOT u.is_of_text) AS other
            FROM (
                SELECT unnest(a[in_text + 1:in_text + words_in_text]) COLLATE "C" AS unit, true AS is_of_text
                UNION ALL
                SELECT unnest(b[in_document + 1:in_document + words_in_document]) COLLATE "C", false) u
            GROUP BY u.unit
        ) n;
        IF share >= 0.34 OR jsonb_array_length(passages) = 1 THEN
            RETURN NEXT;
            RETURN;
        END IF;
        -- With no gap left, each run is a region.
        stretches := CASE WHEN gap > 0 THEN stretches
            ELSE array(SELECT jsonb_build_array(r) FROM jsonb_array_elements(runs) r) END;
        gap := gap / 2;
    END IF;
    FOREACH stretch IN ARRAY stretches LOOP
        RETURN QUERY SELECT * FROM textsim._regions_of(a, b, stretch, gap);
    END LOOP;
END $$;

-- The characters of a text before a run of its words, and up to its end; textsim_db.text.word_places does the same.
-- The run ends with the shortest beginning of the text whose words begin with those up to the end of the run, and it is the
-- shortest end of this beginning whose words end with the run. Halving finds both, except next to signs: in "c++d", the
-- beginnings "c" and "c++d" begin with the word c, and "c++" does not. So 100 characters are tried one by one there.
CREATE OR REPLACE FUNCTION textsim._place_of_words(body text, words text[], first integer, last integer) RETURNS int4range
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    up_to_end text := array_to_string(words[:last], ' ') || ' ';
    run text;
    low integer := 0;
    high integer := length(body);
    middle integer;
    marks CONSTANT text := repeat('́', 30);  -- _capped() removes the marks that follow
    after integer;
    form text;
BEGIN
    WHILE low + 1 < high LOOP
        middle := (low + high) / 2;
        IF starts_with(textsim.normal_form(left(body, middle)) || ' ', up_to_end) THEN
            high := middle;
        ELSE
            low := middle;
        END IF;
    END LOOP;
    FOR shorter IN REVERSE high..greatest(high - 100, 1) LOOP
        form := textsim.normal_form(left(body, shorter)) || ' ';
        EXIT WHEN length(form) < length(up_to_end);
        IF starts_with(form, up_to_end) THEN
            high := shorter;
        END IF;
    END LOOP;
    after := high;
    FOR form, middle IN
        SELECT c.form, c.place
        FROM unnest(string_to_array(substr(body, high + 1, 1000), NULL)) WITH ORDINALITY c (form, place)
    LOOP
        IF textsim._capped(marks || form) = marks THEN
            after := high + middle;
        ELSE
            EXIT WHEN textsim._spaced_signs(form) <> '';  -- others are ignored
        END IF;
    END LOOP;
    body := left(body, high);
    -- The last character may make several words, such as the fraction in "½".
    run := ' ' || array_to_string((string_to_array(textsim.normal_form(body), ' '))[first:], ' ');
    low := 0;
    middle := high;
    WHILE low + 1 < middle LOOP
        IF right(' ' || textsim.normal_form(substr(body, (low + middle) / 2 + 1)), length(run)) = run THEN
            low := (low + middle) / 2;
        ELSE
            middle := (low + middle) / 2;
        END IF;
    END LOOP;
    FOR later IN low..least(low + 100, high - 1) LOOP
        form := ' ' || textsim.normal_form(substr(body, later + 1));
        EXIT WHEN length(form) < length(run);
        IF right(form, length(run)) = run THEN
            low := later;
        END IF;
    END LOOP;
    RETURN int4range(low, after);
END $$;

CREATE OR REPLACE FUNCTION textsim.passages(
    corpus text, text text, min_words integer DEFAULT NULL, max_results integer DEFAULT NULL, scope text DEFAULT NULL,
    max_documents integer DEFAULT NULL)
RETURNS TABLE (key text, words integer, in_text integer, in_document integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    least_words integer := textsim._check_passages(c, min_words, max_documents);
    part bigint;
    form text;
    rare integer[];
    of_many integer[];
BEGIN
    PERFORM textsim._check_search(c, NULL, max_results);
    IF text IS NULL THEN
        RETURN;
    END IF;
    part := textsim._part_of(c, scope);
    PERFORM textsim._warn_unindexed(c);
    form := textsim._form(c, text);
    rare := textsim._fingerprints_to_find(c, form, part);
    IF max_documents IS NOT NULL THEN
        of_many := textsim._fingerprints_of_many(c, rare, part, max_documents);
        IF of_many <> '{}' THEN
            RAISE NOTICE 'a run of the text is in more than % documents, which are not all compared', max_documents
                USING HINT = 'textsim passages lists such runs.';
            rare := array(SELECT unnest(rare) EXCEPT SELECT unnest(of_many));
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM textsim._passages_of_form(c, rare, form, least_words, part) p
    ORDER BY p.words DESC, p.key COLLATE "C", p.in_document LIMIT max_results;
END $$;
COMMENT ON FUNCTION textsim.passages(text, text, integer, integer, text, integer)
    IS 'Returns the passages that a text shares with documents, the longest first: runs of at least min_words words that '
    'are in no longer run of the document that the text has. in_text and in_document are the numbers of words before '
    'the passage. Words are those of the normal form, without the stop words of the corpus; if its shingles are '
    'characters, characters are counted instead. The corpus must have passages, which is the default of min_words and its '
    'least value. Every such run is found, unless all its shingles are in very many documents: a notice warns of it. If '
    'a run is at several places of the text, the first place is returned; at more than ten places, it may be returned in '
    'pieces. In a scoped corpus, scope is required. With max_documents, a run of the text that more documents have is not '
    'searched for: a notice warns that a passage in it may be missed. Raises an error if min_words is too small.';

CREATE OR REPLACE FUNCTION textsim.regions(
    corpus text, text text, gap integer DEFAULT 50, min_words integer DEFAULT NULL, max_results integer DEFAULT NULL,
    scope text DEFAULT NULL, max_documents integer DEFAULT NULL)
RETURNS TABLE (
    key text, share double precision, in_text integer, words_in_text integer, in_document integer,
    words_in_document integer, passages jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 10 SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    PERFORM textsim._check_search(c, NULL, max_results);
    IF (gap BETWEEN 0 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION 'gap is %; expected 0 to 10000', gap USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT d.key, r.*
        FROM (
            SELECT p.key, jsonb_agg(to_jsonb(p)) AS runs FROM textsim.passages($1, $2, $3, NULL, $4, $5) p GROUP BY p.key
        ) s
        JOIN textsim.%I d ON d.key = s.key
        CROSS JOIN LATERAL textsim._regions_of(
            $6, textsim._units(textsim._stored_form($7, d.word_ids, d.normal_form), $8), s.runs, $9) r
        ORDER BY r.words_in_text DESC, d.key COLLATE "C", r.in_document LIMIT $10
        $query$, 'document_' || c.id)
    USING corpus, text, min_words, scope, max_documents, textsim._units(textsim._form(c, text), c.unit), c.id, c.unit, gap,
        max_results;
END $$;
COMMENT ON FUNCTION textsim.regions(text, text, integer, integer, integer, text, integer)
    IS 'Returns the regions of documents that a text has in changed words, the longest first. A region joins the '
    'passages of a document while no gap between two of them has more than gap words, neither in the text nor in the '
    'document. If less than 0.34 of its words are equal, its gaps are made shorter. share is 2 * the words that both '
    'sides have / the words of both. Each passage that passages() returns is in one region, and the column passages '
    'has those of a region. The other arguments, and the errors, are those of passages(); gap is 0 to 10,000.';

CREATE OR REPLACE FUNCTION textsim.characters(corpus text, text text, in_document integer, words integer)
RETURNS int4range
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE COST 100000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    all_words text[] := string_to_array(textsim.normal_form(text), ' ');
    places integer[];
BEGIN
    IF c.unit = 'char' OR c.boilerplate IS NOT NULL OR c.stop_words_by_language <> '{}' THEN
        RAISE EXCEPTION 'corpus "%" has shingles of characters, boilerplate or stop words by language', c.name
            USING ERRCODE = 'feature_not_supported', HINT = 'Find the characters in Python, with corpus.characters().';
    END IF;
    places := array(
        SELECT w.place FROM unnest(all_words) WITH ORDINALITY w (word, place)
        WHERE w.word COLLATE "C" <> ALL (c.stop_words)
        ORDER BY w.place);
    IF in_document < 0 OR words < 1 OR in_document + words > cardinality(places) THEN
        RAISE EXCEPTION 'the text has % words, so it has no % words after %', cardinality(places), words, in_document
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Give the text of the document of which a passage or a quotation names the words.';
    END IF;
    RETURN textsim._place_of_words(text, all_words, places[in_document + 1], places[in_document + words]);
END $$;
COMMENT ON FUNCTION textsim.characters(text, text, integer, integer)
    IS 'Returns the characters of a text in which these words stand, as a range of the numbers of characters before them: '
    '[4,9) are substr(text, 5, 5). text is the text of a document, and in_document and words are those of a passage, or '
    'in_document and words_in_document of a piece of a quotation. Returns NULL if an argument is NULL. Raises an error '
    'if the text has fewer words, or if the corpus has shingles of characters, boilerplate or stop words by language.';

CREATE OR REPLACE FUNCTION textsim.shared_passages(
    corpus text, min_words integer DEFAULT NULL, max_documents integer DEFAULT NULL)
RETURNS TABLE (a text, b text, words integer, in_a integer, in_b integer)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._lock_corpus(corpus);
    least_words integer := textsim._check_passages(c, min_words, max_documents);
    common integer[];
    common_parts bigint[];
BEGIN
    PERFORM textsim._warn_unindexed(c);
    IF max_documents IS NOT NULL THEN
        SELECT f.fingerprints, f.parts INTO common, common_parts
        FROM textsim._fingerprints_of_all(c, max_documents) f;
        IF common <> '{}' THEN
            RAISE NOTICE 'left out fingerprints that more than % documents have: %', max_documents, cardinality(common);
        END IF;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT d.key, e.key, r.words, r.in_a, r.in_b
        FROM (
            SELECT DISTINCT x.document_id AS x, y.document_id AS y
            FROM textsim.%1$I x JOIN textsim.%1$I y
                ON y.fingerprint = x.fingerprint AND y.document_id > x.document_id
            WHERE NOT EXISTS (
                SELECT FROM unnest($3, $4) k (fingerprint, part)
                WHERE k.fingerprint = x.fingerprint AND (k.part IS NULL OR k.part = (
                    SELECT o.part FROM textsim.%2$I o WHERE o.id = x.document_id)))
        ) p
        JOIN textsim.%2$I d ON d.id = p.x
        JOIN textsim.%2$I e ON e.id = p.y
        CROSS JOIN LATERAL (SELECT textsim._unit_numbers($1, d.normal_form, d.word_ids) OFFSET 0) n (numbers)
        CROSS JOIN LATERAL textsim._runs_in_document(
            $1, n.numbers, d.normal_form, e.word_ids, e.normal_form, $2) r
        WHERE true%3$s
        $query$, 'passage_' || c.id, 'document_' || c.id, textsim._may_meet(c))
    USING c, least_words, common, common_parts;
END $$;
COMMENT ON FUNCTION textsim.shared_passages(text, integer, integer)
    IS 'Returns the passages of at least min_words words that documents of a corpus share, for all pairs of documents. '
    'in_a and in_b are the numbers of words before the passage. In a scoped corpus, both documents have the same '
    'scope. A header that many documents have makes a passage of every two of them. A run all of whose shingles are '
    'in very many documents is left out. With max_documents, documents are not compared because of a run that more '
    'documents have: a notice warns that a passage in such a run may be missed.';
