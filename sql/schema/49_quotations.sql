-- Quotations: whether the words of a text stand in a document, where, and what differs. textsim_db.compare.quotations
-- does the same, and says how a place is chosen.

-- The readings of a quotation: the normal forms of their pieces one after another, and the number of pieces of each. All
-- words are one piece; if it is divided, ellipses divide it, then also words in square brackets, which are the quoter's.
-- Too few or too many words are an error; a reading whose pieces together have too few words is left out.
CREATE OR REPLACE FUNCTION textsim._readings_of(
    c textsim.corpus, text text, shortest integer, OUT forms text[], OUT sizes integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    ellipses CONSTANT text := '\.{3,}|…|\. \. \.';
    cuts text;
    form text := textsim._form(c, text);
    words integer := cardinality(string_to_array(form, ' '));
    pieces text[];
BEGIN
    IF shortest NOT BETWEEN 1 AND 500 THEN
        RAISE EXCEPTION 'shortest is %; expected 1 to 500', shortest USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF words NOT BETWEEN shortest AND 500 THEN
        RAISE EXCEPTION 'the quotation has % words; expected % to 500', words, shortest
            USING ERRCODE = 'invalid_parameter_value', HINT = CASE WHEN words BETWEEN 1 AND shortest
                THEN 'shortest allows fewer, which are found only unaltered.' ELSE 'Quote words of a document.' END;
    END IF;
    forms := ARRAY[form];
    sizes := '{1}';
    FOREACH cuts IN ARRAY ARRAY[ellipses, ellipses || '|\[[^][]*\]'] LOOP
        CONTINUE WHEN text COLLATE "C" !~ cuts;
        pieces := array(
            SELECT f.form
            FROM regexp_split_to_table(text COLLATE "C", cuts) WITH ORDINALITY p (piece, place)
            CROSS JOIN LATERAL (SELECT textsim._form(c, p.piece) OFFSET 0) f (form)
            WHERE f.form <> '' ORDER BY p.place);
        IF cardinality(string_to_array(array_to_string(pieces, ' '), ' ')) >= shortest THEN
            forms := forms || pieces;
            sizes := sizes || cardinality(pieces);
        END IF;
    END LOOP;
END $$;

-- The best run of a document for a piece, if it has fewer than edits: its edits, the words before it and up to its end,
-- and the bounds of the runs that differ, four numbers each: in the piece, and in its place.
-- A cost is the edits in its high half, minus the start of the run in its low half, so of equals the latest start wins.
CREATE OR REPLACE FUNCTION textsim._align_piece(
    piece integer[], document integer[], INOUT edits integer, OUT first integer, OUT last integer, OUT runs integer[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    edit bigint := 4294967296;
    m integer := cardinality(piece);
    n integer := cardinality(document);
    costs bigint[] := array_fill(0::bigint, ARRAY[(m + 1) * (n + 1)], ARRAY[0]);
    at integer := 0;  -- the place in costs
    i integer;
    j integer;
    end_in_piece integer;
    end_in_document integer;
BEGIN
    FOR j IN 1..n LOOP
        costs[j] := -j;
    END LOOP;
    FOR i IN 1..m LOOP
        at := i * (n + 1);
        costs[at] := i * edit;
        FOR j IN 1..n LOOP
            at := at + 1;
            costs[at] := least(
                costs[at - n - 2] + CASE WHEN piece[i] = document[j] THEN 0 ELSE edit END,
                costs[at - n - 1] + edit, costs[at - 1] + edit);
        END LOOP;
    END LOOP;
    FOR j IN 1..n LOOP
        IF -(-costs[m * (n + 1) + j] >> 32) < edits THEN
            edits := -(-costs[m * (n + 1) + j] >> 32);
            first := -costs[m * (n + 1) + j] & (edit - 1);
            last := j;
        END IF;
    END LOOP;
    IF last IS NULL THEN
        RETURN;
    END IF;
    runs := '{}';
    i := m;
    j := last;
    end_in_piece := i;
    end_in_document := j;
    WHILE i > 0 LOOP
        at := i * (n + 1) + j;
        IF j > 0 AND piece[i] = document[j] AND costs[at] = costs[at - n - 2] THEN
            IF (i, j) <> (end_in_piece, end_in_document) THEN
                runs := ARRAY[i, end_in_piece, j - first, end_in_document - first] || runs;
            END IF;
            i := i - 1;
            j := j - 1;
            end_in_piece := i;
            end_in_document := j;
        ELSIF j > 0 AND piece[i] <> document[j] AND costs[at] = costs[at - n - 2] + edit THEN
            i := i - 1;
            j := j - 1;
        ELSIF costs[at] = costs[at - n - 1] + edit THEN
            i := i - 1;
        ELSE
            j := j - 1;
        END IF;
    END LOOP;
    IF (i, j) <> (end_in_piece, end_in_document) THEN
        runs := ARRAY[i, end_in_piece, j - first, end_in_document - first] || runs;
    END IF;
END $$;

-- The place of a piece in a document, as _align_piece() returns it; NULL if less than 70 % of the piece stands there.
-- With at most e edits, a place of m words has m - e words of the piece or more among at most m + e words, so only the
-- windows that have as many are aligned. A place begins and ends with a word of the piece, so it is in these windows.
CREATE OR REPLACE FUNCTION textsim._place_of(
    piece integer[], document integer[], OUT edits integer, OUT first integer, OUT last integer, OUT runs integer[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    m integer := cardinality(piece);
    most integer := 3 * m / 10;
    near record;
    aligned record;
BEGIN
    SELECT 0, p.place - 1, p.place - 1 + m, '{}'::integer[] INTO edits, first, last, runs
    FROM unnest(array_positions(document, piece[1])) p (place)
    WHERE document[p.place:p.place + m - 1] = piece ORDER BY p.place LIMIT 1;
    IF edits IS NOT NULL OR most = 0 THEN
        RETURN;
    END IF;
    FOR near IN
        SELECT min(s.first) AS first, max(s.last) AS last
        FROM (
            SELECT w.first, w.last, count(*) FILTER (WHERE w.is_apart) OVER (ORDER BY w.first) AS number
            FROM (
                SELECT g.first, g.last, g.first > lag(g.last) OVER (ORDER BY g.first) AS is_apart
                FROM (
                    SELECT d.place AS first, lead(d.place, m - most - 1) OVER (ORDER BY d.place) AS last
                    FROM unnest(document) WITH ORDINALITY d (word, place)
                    WHERE d.word IN (SELECT unnest(piece))
                ) g
                WHERE g.last - g.first < m + most
            ) w
        ) s
        GROUP BY s.number ORDER BY 1
    LOOP
        aligned := textsim._align_piece(piece, document[near.first:near.last], coalesce(edits, most + 1));
        IF aligned.last IS NOT NULL THEN
            edits := aligned.edits;
            first := near.first - 1 + aligned.first;
            last := near.first - 1 + aligned.last;
            runs := aligned.runs;
        END IF;
    END LOOP;
END $$;

-- The words of a document between two of its places, as a normal form.
CREATE OR REPLACE FUNCTION textsim._words_between(
    c textsim.corpus, word_ids integer[], normal_form text, first integer, last integer)
RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF first >= last THEN
        RETURN '';
    ELSIF word_ids IS NULL THEN
        RETURN array_to_string((string_to_array(normal_form, ' '))[first + 1:last], ' ');
    END IF;
    RETURN textsim._stored_form(c.id, word_ids[first + 1:last], NULL);
END $$;

-- The verdict on a quotation that is read as pieces; NULL if it is absent. words, numbers: those of all pieces.
CREATE OR REPLACE FUNCTION textsim._verdict_on_reading(
    c textsim.corpus, words text[], numbers integer[], lengths integer[], document integer[], word_ids integer[],
    normal_form text, OUT verdict text, OUT share double precision, OUT pieces jsonb, OUT differences jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    kinds CONSTANT text[] := array_remove(textsim._guard_kinds(), 'content');
    total integer := cardinality(numbers);
    edits integer := 0;
    in_text integer := 0;
    ends integer := 0;  -- the words of the document up to the end of the piece before
    place record;
    length integer;
    own text[];
    left_out text;
    k integer;
    last_of_run integer;
    low integer;
    high integer;
    before integer;
    after integer;
BEGIN
    pieces := '[]';
    differences := '[]';
    FOREACH length IN ARRAY lengths LOOP
        own := words[in_text + 1:in_text + length];
        -- A piece of fewer words stands in many texts by chance, so it counts as missing.
        SELECT * INTO place FROM textsim._place_of(
            CASE WHEN cardinality(lengths) = 1 OR length >= 3 THEN numbers[in_text + 1:in_text + length] END,
            document[ends + 1:]) p;
        IF place.edits IS NULL THEN
            edits := edits + length;
            differences := differences || jsonb_build_object(
                'in_text', in_text, 'quotation', array_to_string(own, ' '), 'in_document', NULL, 'document', '',
                'kinds', textsim._differing(kinds, c.guard_words, '{}', array_to_string(own, ' '), ''));
            pieces := pieces || jsonb_build_object('in_text', in_text, 'words', length, 'in_document', NULL,
                'words_in_document', 0, 'left_out', '', 'kinds', '[]'::jsonb);
        ELSE
            edits := edits + place.edits;
            left_out := CASE WHEN pieces = '[]' THEN ''
                ELSE textsim._words_between(c, word_ids, normal_form, ends, ends + place.first) END;
            pieces := pieces || jsonb_build_object('in_text', in_text, 'words', length,
                'in_document', ends + place.first, 'words_in_document', place.last - place.first,
                'left_out', left_out, 'kinds', textsim._differing(kinds, c.guard_words, '{}', '', left_out));
            FOR k IN 1..cardinality(place.runs) BY 4 LOOP
                last_of_run := place.runs[k + 1];
                before := least(2, place.runs[k] - coalesce(place.runs[k - 3], 0));
                after := least(2, coalesce(place.runs[k + 4], length) - last_of_run);
                low := ends + place.first + place.runs[k + 2];
                high := ends + place.first + place.runs[k + 3];
                -- At an end of the piece, the words next to the place are named.
                IF place.runs[k] = 0 THEN
                    low := greatest(ends, low - last_of_run);
                END IF;
                IF last_of_run = length THEN
                    high := least(cardinality(document), high + length - place.runs[k]);
                END IF;
                differences := differences || jsonb_build_object(
                    'in_text', in_text + place.runs[k],
                    'quotation', array_to_string(own[place.runs[k] + 1:last_of_run], ' '),
                    'in_document', low,
                    'document', textsim._words_between(c, word_ids, normal_form, low, high),
                    'kinds', textsim._differing(kinds, c.guard_words, '{}',
                        array_to_string(own[place.runs[k] - before + 1:last_of_run + after], ' '),
                        textsim._words_between(c, word_ids, normal_form, low - before, high + after)));
            END LOOP;
            ends := ends + place.last;
        END IF;
        in_text := in_text + length;
    END LOOP;
    IF 10 * edits > 3 * total THEN
        pieces := NULL;
        differences := NULL;
        RETURN;
    END IF;
    verdict := CASE WHEN edits > 0 THEN 'altered' WHEN cardinality(lengths) = 1 THEN 'exact' ELSE 'pieces' END;
    share := 1 - edits::double precision / total;
END $$;

-- The verdict on a quotation by one document: that of its best reading, of equals the first; NULL if it is absent.
CREATE OR REPLACE FUNCTION textsim._verdict_in_document(
    c textsim.corpus, forms text[], sizes integer[], word_ids integer[], normal_form text, OUT verdict text,
    OUT share double precision, OUT pieces jsonb, OUT differences jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    form text := array_to_string(forms, ' ');
    words text[] := string_to_array(form, ' ');
    lengths integer[] := array(
        SELECT cardinality(string_to_array(f.form, ' ')) FROM unnest(forms) WITH ORDINALITY f (form, place)
        ORDER BY f.place);
    own_lengths integer[];
    first integer := 0;  -- the words before the reading
    last integer;
    numbers integer[];
    document integer[];
    size integer;
    reading record;
BEGIN
    IF word_ids IS NOT NULL THEN
        numbers := textsim._stored_numbers(c.id, NULL, form);
        document := word_ids[:];
    ELSE
        -- Numbers of two texts may differ for a word that is not in the dictionary, so both are numbered together.
        numbers := array(
            SELECT dense_rank() OVER (ORDER BY u.word COLLATE "C")::integer
            FROM unnest(words || string_to_array(normal_form, ' ')) WITH ORDINALITY u (word, place)
            ORDER BY u.place);
        document := numbers[cardinality(words) + 1:];
    END IF;
    FOREACH size IN ARRAY sizes LOOP
        own_lengths := lengths[:size];
        lengths := lengths[size + 1:];
        last := first + (SELECT sum(l) FROM unnest(own_lengths) l);
        SELECT * INTO reading FROM textsim._verdict_on_reading(
            c, words[first + 1:last], numbers[first + 1:last], own_lengths, document, word_ids, normal_form) r;
        IF reading.share > coalesce(_verdict_in_document.share, 0)
            OR reading.verdict = 'exact' AND _verdict_in_document.verdict = 'pieces'
        THEN
            verdict := reading.verdict;
            share := reading.share;
            pieces := reading.pieces;
            differences := reading.differences;
        END IF;
        EXIT WHEN verdict = 'exact';
        first := last;
    END LOOP;
END $$;

-- The fingerprints by which documents are looked up that may have a quotation.
CREATE OR REPLACE FUNCTION textsim._fingerprints_of_quotation(c textsim.corpus, forms text[], part bigint)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF c.passages IS NULL THEN
        RAISE EXCEPTION 'corpus "%" has no passages, by which it finds the documents that may have a quotation', c.name
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format(
                'Name the key, or rebuild the corpus, such as: textsim rebuild %s --passages 5.', quote_ident(c.name));
    END IF;
    IF c.passages > ALL (array(SELECT cardinality(textsim._units(f.form, c.unit)) FROM unnest(forms) f (form))) THEN
        RAISE EXCEPTION 'corpus "%" finds only quotations with % % or more in a row', c.name, c.passages,
                textsim._unit_name(c.unit)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name the key of the document, or quote more words.';
    END IF;
    RETURN array(
        SELECT DISTINCT f.fingerprint
        FROM unnest(forms) q (form)
        CROSS JOIN LATERAL unnest(textsim._fingerprints_to_find(c, q.form, part)) f (fingerprint));
END $$;

-- The best verdict on a quotation; see quote(). It has another name for the key, which is also a column of the result.
CREATE OR REPLACE FUNCTION textsim._quote(corpus text, text text, own_key text, scope text, shortest integer)
RETURNS TABLE (verdict text, key text, share double precision, pieces jsonb, differences jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 1 SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
    part bigint := textsim._part_of(c, scope);
    fingerprints integer[];
    query record;
    candidate record;
    result record;
    documents integer := 0;
BEGIN
    PERFORM textsim._check_given('the text', text IS NOT NULL);
    PERFORM textsim._check_given('shortest', shortest IS NOT NULL);
    query := textsim._readings_of(c, text, shortest);
    IF own_key IS NULL THEN
        PERFORM textsim._warn_unindexed(c);
        fingerprints := textsim._fingerprints_of_quotation(c, query.forms, part);
    END IF;
    verdict := 'absent';
    pieces := '[]';
    differences := '[]';
    FOR candidate IN EXECUTE format($query$
        SELECT d.key, d.word_ids, d.normal_form FROM textsim.%I d
        WHERE %s AND ($3 IS NULL OR d.part = $3)%s
        ORDER BY d.key COLLATE "C"
        $query$, 'document_' || c.id, CASE WHEN own_key IS NOT NULL THEN 'd.key = $1' ELSE format(
            'd.id = ANY (array(SELECT p.document_id FROM textsim.%I p WHERE p.fingerprint = ANY ($2)))',
            'passage_' || c.id) END, textsim._alive(c, 'd'))
    USING own_key, fingerprints, part LOOP
        documents := documents + 1;
        SELECT * INTO result FROM textsim._verdict_in_document(
            c, query.forms, query.sizes, candidate.word_ids, candidate.normal_form) v;
        -- Of equal shares, an exact quotation counts before its pieces.
        IF result.share > coalesce(_quote.share, 0) OR (result.verdict = 'exact' AND _quote.verdict = 'pieces') THEN
            verdict := result.verdict;
            key := candidate.key;
            share := result.share;
            pieces := result.pieces;
            differences := result.differences;
        END IF;
        EXIT WHEN verdict = 'exact';
    END LOOP;
    IF own_key IS NOT NULL AND documents = 0 THEN
        RAISE EXCEPTION 'corpus "%" has no document "%"', c.name, own_key USING ERRCODE = 'no_data_found';
    END IF;
    RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION textsim.quote(
    corpus text, text text, key text DEFAULT NULL, scope text DEFAULT NULL, shortest integer DEFAULT 4)
RETURNS TABLE (verdict text, key text, share double precision, pieces jsonb, differences jsonb)
LANGUAGE sql STABLE PARALLEL SAFE COST 100000 ROWS 1
BEGIN ATOMIC
    SELECT q.verdict, q.key, q.share, q.pieces, q.differences FROM textsim._quote($1, $2, $3, $4, $5) q;
END;
COMMENT ON FUNCTION textsim.quote(text, text, text, text, integer)
    IS 'Returns one row: whether a quotation stands in a document, where, and what differs. The verdict is exact if its '
    'words stand in a row in the document; pieces if an ellipsis (..., …) or words in square brackets divide it, and '
    'each piece of three words or more stands there, in order; altered if a run of the document has at least 70 % of '
    'its words, in order; absent otherwise. share is 1 - edits / words of the quotation. pieces has the words of the '
    'quotation before each piece, its words, the words of the document before its place and in it, the words left out '
    'since the piece before, and their kinds. differences has the runs of words that differ, each with its kinds: '
    'numbers, negations, or guard words ("words"). With a key, the document alone is asked. Without, the corpus must '
    'have passages, and the best document is returned, of those that share a run of that many words with the '
    'quotation. In a scoped corpus, scope is required. Raises an error if no document has the key, or if the '
    'quotation has fewer than shortest words or more than 500. If fewer than four are allowed, such a quotation is '
    'exact or absent.';
