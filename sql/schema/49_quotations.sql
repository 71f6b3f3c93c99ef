-- Quotations: whether the words of a text stand in a document, where, and what differs. textsim_db.compare.quotations
-- does the same, and says how a place is chosen.

-- The readings of a quotation: of each its pieces, which have a text and its normal form. All words are one piece; if it is
-- divided, ellipses divide it, then also words in square brackets, which are the quoter's. Then [T]he is one word, by soft
-- hyphens, which end no word. Too few or too many words are an error; a reading whose pieces together have too few words
-- is left out.
CREATE OR REPLACE FUNCTION textsim._readings_of(c textsim.corpus, text text, shortest integer) RETURNS jsonb[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    ellipses CONSTANT text := E'\\.{3,}|…|\\. \\. \\.';
    part_of_word CONSTANT text := replace(E'\\[(L+)\\](?=L)|(?<=L)\\[(L+)\\]', 'L', '[A-Za-zÀ-ʯͰ-ԯ]');
    cuts text;
    divided text;
    words integer;
    reading jsonb;
    readings jsonb[];
BEGIN
    IF shortest NOT BETWEEN 1 AND 500 THEN
        RAISE EXCEPTION 'shortest is %; expected 1 to 500', shortest USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR cuts, divided IN VALUES
        (NULL, text), (ellipses, text),
        (ellipses || E'|\\[[^][]*\\]', regexp_replace(text COLLATE "C", part_of_word, chr(173) || E'\\1\\2' || chr(173), 'g'))
    LOOP
        CONTINUE WHEN divided COLLATE "C" !~ cuts AND divided = text;
        SELECT jsonb_agg(jsonb_build_object('text', p.text, 'form', f.form) ORDER BY p.place),
            sum(cardinality(string_to_array(f.form, ' '))) INTO reading, words
        FROM regexp_split_to_table(divided COLLATE "C", coalesce(cuts, '$.')) WITH ORDINALITY p (text, place)
        CROSS JOIN LATERAL (SELECT textsim._form(c, p.text) OFFSET 0) f (form)
        WHERE f.form <> '';
        words := coalesce(words, 0);
        IF cuts IS NULL AND words NOT BETWEEN shortest AND 500 THEN
            RAISE EXCEPTION 'the quotation has % words; expected % to 500', words, shortest
                USING ERRCODE = 'invalid_parameter_value', HINT = CASE WHEN words BETWEEN 1 AND shortest
                    THEN 'shortest allows fewer, which are found only unaltered.' ELSE 'Quote words of a document.' END;
        END IF;
        IF words >= shortest THEN
            readings := readings || reading;
        END IF;
    END LOOP;
    RETURN readings;
END $$;

-- The signs of a text in order, and the words before each; textsim_db.text.distinctions.symbols does the same.
-- Punctuation that may decide is replaced by symbols, and the words between two symbols are counted. The classes of regular
-- expressions know only ASCII, so other spaces are replaced, and other characters beside a plus are split as words are.
CREATE OR REPLACE FUNCTION textsim._signs_of(c textsim.corpus, body text, OUT signs text[], OUT words_before integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    marked text COLLATE "C" := translate(
        body, E'%‰*/\\&@\u0085\u2028\u2029\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A'
        '\u202F\u205F\u3000', E'⠁⠂⠃⠄⠅⠆⠇\n\n\n' || repeat(' ', 16));
    apart text;
    found text;
BEGIN
    SELECT E'\\s[:punct:]' || coalesce(string_agg(DISTINCT u.beside, '') FILTER (WHERE textsim._split(u.beside) = ' '), '')
    INTO apart
    FROM regexp_matches(marked, E'([^\\x01-\\x7F]?)\\++([^\\x01-\\x7F]?)', 'g') m CROSS JOIN unnest(m) u (beside);
    marked := regexp_replace(marked, '(?<=[0-9])[-‐‑‒–—―−](?=[0-9])', '⠈', 'g');
    marked := regexp_replace(marked, '−(?=[0-9])', '-', 'g');  -- of a word, as is the end of "c++"
    marked := regexp_replace(marked, format(E'(?<=[^%1$s0-9])\\++(?![^%1$s]|\\+)', apart), '', 'g');
    marked := regexp_replace(marked, E'(?<=[^\\s-])-(?=-*([ \\t]+([^\\s]|$)|[]),.;:!?"''…[]|$))', '⠈', 'g');
    marked := regexp_replace(marked, E'(?<=[0-9])\\.(?=[0-9])|(?<![^\\s([])\\.(?=[0-9])', '⠉', 'g');
    marked := regexp_replace(marked, '(?<=[0-9]),(?=[0-9])', '⠊', 'g');
    marked := regexp_replace(marked, '(?<=[0-9]):(?=[0-9])', '⠋', 'g');
    found := replace(textsim._symbols(marked), ' ', '');
    signs := string_to_array(translate(found, '⠁⠂⠃⠄⠅⠆⠇⠈⠉⠊⠋−', E'%‰*/\\&@-.,:-'), NULL);
    words_before := array(
        SELECT sum(cardinality(string_to_array(textsim._form(c, p.text), ' '))) OVER (ORDER BY p.place)
        FROM unnest(string_to_array(translate(marked, found, repeat(left(found, 1), length(found))), left(found, 1)))
            WITH ORDINALITY p (text, place)
        ORDER BY p.place);
END $$;

-- The fewest edits of a run of words for a piece, if there are fewer than edits, and the words up to the end of the first
-- such run. Bit i of a number stands for the step of the costs from word i to the next word of the piece, of 62 words at
-- once. Myers, A fast bit-vector algorithm for approximate string matching based on dynamic programming, JACM 1999.
CREATE OR REPLACE FUNCTION textsim._fewest_edits(
    piece integer[], words integer[], INOUT edits integer, OUT last integer)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ones CONSTANT bigint := (1::bigint << 62) - 1;
    m CONSTANT integer := cardinality(piece);
    cost integer := m;
    first_places integer[] := array(
        SELECT min(w.place) OVER (PARTITION BY w.word)::integer
        FROM unnest(piece) WITH ORDINALITY w (word, place) ORDER BY w.place);
    places bigint[];  -- of each word of the piece, by its first place, the bits of its places in the block
    place integer;
    highest integer;
    -- The costs of the block that rise and fall by one, down the piece and along the document; then below the block.
    down_rises bigint;
    down_falls bigint;
    rises bigint;
    falls bigint;
    rises_below bigint[] := array_fill(0::bigint, ARRAY[cardinality(words)]);
    falls_below bigint[] := rises_below;
    equal bigint;
    equal_or_falls bigint;
BEGIN
    words := array(
        SELECT coalesce(p.place, 0)
        FROM unnest(words) WITH ORDINALITY w (word, place)
        LEFT JOIN (SELECT DISTINCT * FROM unnest(piece, first_places)) p (word, place) USING (word)
        ORDER BY w.place);
    FOR before IN 0..m - 1 BY 62 LOOP
        highest := least(62, m - before) - 1;
        places := array_fill(0::bigint, ARRAY[m + 1], ARRAY[0]);
        FOR i IN 0..highest LOOP
            place := first_places[before + i + 1];
            places[place] := places[place] | (1::bigint << i);
        END LOOP;
        down_rises := ones;
        down_falls := 0;
        FOR j IN 1..cardinality(words) LOOP
            equal := places[words[j]];
            equal_or_falls := equal | down_falls;
            equal := equal | falls_below[j];
            equal := (((equal & down_rises) + down_rises) # down_rises) | equal;
            rises := down_falls | (~(equal | down_rises) & ones);
            falls := down_rises & equal;
            equal := (falls << 1) | falls_below[j];
            down_falls := (rises << 1) | rises_below[j];
            rises_below[j] := (rises >> highest) & 1;
            falls_below[j] := (falls >> highest) & 1;
            down_rises := (equal | ~(equal_or_falls | down_falls)) & ones;
            down_falls := down_falls & equal_or_falls;
            IF before + 62 >= m THEN
                cost := cost + rises_below[j] - falls_below[j];
                IF cost < edits THEN
                    edits := cost;
                    last := j;
                    EXIT WHEN edits = 1;  -- a run without edits is found before
                END IF;
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- The words before the best run of a document for a piece that ends at a word with these edits, and the bounds of the runs
-- that differ, four numbers each: in the piece, and in its place.
-- A cost is the edits in its high half, minus the start of the run in its low half, so of equals the latest start wins.
CREATE OR REPLACE FUNCTION textsim._align_piece(
    piece integer[], document integer[], edits integer, last integer, OUT first integer, OUT runs integer[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    edit CONSTANT bigint := 4294967296;
    m integer := cardinality(piece);
    -- At each word of the piece, low to high words more of the document have been read.
    low integer := last - m - edits;
    high integer := last - m + edits;
    width integer := high - low + 3;  -- no path enters the first and the last column
    costs bigint[] := array_fill(1000000 * edit, ARRAY[(m + 1) * width], ARRAY[0]);
    at integer;  -- the place in costs
    -- The columns of a row between which a path may pass that ends with these edits: at a distance from the column of the
    -- end, it needs as many more edits.
    leftmost integer := 1;
    rightmost integer := 2 * edits + 1;
    word integer;
    i integer;
    j integer;
    end_in_piece integer;
    end_in_document integer;
BEGIN
    FOR j IN low..high LOOP
        costs[j - low + 1] := -greatest(j, 0);
    END LOOP;
    FOR i IN 1..m LOOP
        leftmost := greatest(leftmost - 1, 1);
        at := i * width + leftmost - 1;
        word := piece[i];
        FOR j IN i + low + leftmost - 1..i + high LOOP
            at := at + 1;
            costs[at] := least(
                costs[at - width] + CASE WHEN word = document[j] THEN 0 ELSE edit END,
                costs[at - width + 1] + edit, costs[at - 1] + edit);
            EXIT WHEN at > i * width + rightmost AND costs[at] > (edits - abs(j - i - last + m)) * edit;
        END LOOP;
        rightmost := at - i * width;
        WHILE costs[i * width + leftmost] > (edits - abs(leftmost - edits - 1)) * edit LOOP
            leftmost := leftmost + 1;
        END LOOP;
        WHILE costs[i * width + rightmost] > (edits - abs(rightmost - edits - 1)) * edit LOOP
            rightmost := rightmost - 1;
        END LOOP;
    END LOOP;
    i := m;
    j := last;
    first := -costs[i * width + j - i - low + 1] & (edit - 1);
    runs := '{}';
    end_in_piece := i;
    end_in_document := j;
    WHILE i > 0 LOOP
        at := i * width + j - i - low + 1;
        IF j > 0 AND piece[i] = document[j] AND costs[at] = costs[at - width] THEN
            IF (i, j) <> (end_in_piece, end_in_document) THEN
                runs := ARRAY[i, end_in_piece, j - first, end_in_document - first] || runs;
            END IF;
            i := i - 1;
            j := j - 1;
            end_in_piece := i;
            end_in_document := j;
        ELSIF j > 0 AND piece[i] <> document[j] AND costs[at] = costs[at - width] + edit THEN
            i := i - 1;
            j := j - 1;
        ELSIF costs[at] = costs[at - width + 1] + edit THEN
            i := i - 1;
        ELSE
            j := j - 1;
        END IF;
    END LOOP;
    IF (i, j) <> (end_in_piece, end_in_document) THEN
        runs := ARRAY[i, end_in_piece, j - first, end_in_document - first] || runs;
    END IF;
END $$;

-- The place of a piece in a document: its edits, the words before it and up to its end, and the runs that differ, as
-- _align_piece() returns them; NULL if less than 70 % of the piece stands there.
-- An edit destroys at most two of the m - 1 pairs of neighbouring words of a piece. So with at most e edits, a run of the
-- document has at most m + e words, and at least m - 1 - 2e of these pairs. Only such runs are compared. A run counts a pair
-- at most as often as the piece has it. Jokinen and Ukkonen, Two algorithms for approximate string matching in static texts,
-- MFCS 1991.
CREATE OR REPLACE FUNCTION textsim._place_of(
    piece integer[], document integer[], OUT edits integer, OUT first integer, OUT last integer, OUT runs integer[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    m integer := cardinality(piece);
    most integer := 3 * m / 10;
    part record;
    best record;
BEGIN
    SELECT 0, p.place - 1, p.place - 1 + m, '{}'::integer[] INTO edits, first, last, runs
    FROM (SELECT document[:] AS words OFFSET 0) d  -- a slice of the argument would copy it all
    CROSS JOIN unnest(array_positions(d.words, piece[1])) p (place)
    WHERE d.words[p.place:p.place + m - 1] = piece ORDER BY p.place LIMIT 1;
    IF edits IS NOT NULL OR (most > 0) IS NOT TRUE THEN
        RETURN;
    END IF;
    FOR part IN
        SELECT greatest(min(s.first), 1) AS first, least(max(s.next) + m + most - 2, cardinality(document)) AS last
        FROM (
            SELECT w.first, w.next, count(*) FILTER (WHERE w.is_apart) OVER (ORDER BY w.first) AS number
            FROM (
                SELECT r.first, r.next, r.first - lag(r.next) OVER (ORDER BY r.first) >= m + most AS is_apart
                FROM (
                    SELECT b.first, lead(b.first) OVER (ORDER BY b.first) AS next,
                        sum(sum(b.pairs)) OVER (ORDER BY b.first) AS pairs
                    FROM (
                        SELECT d.place, lag(d.place, p.number) OVER (PARTITION BY d.word, d.next ORDER BY d.place) AS earlier
                        FROM unnest(document, document[2:]) WITH ORDINALITY d (word, next, place)
                        JOIN (
                            SELECT w.word, w.next, count(*)::integer
                            FROM unnest(piece, piece[2:]) w (word, next) GROUP BY w.word, w.next
                        ) p (word, next, number) USING (word, next)
                    ) d
                    CROSS JOIN LATERAL (VALUES
                        (greatest(d.place - m - most + 2, d.earlier + 1)::integer, 1), (d.place::integer + 1, -1)
                    ) b (first, pairs)
                    GROUP BY b.first
                ) r
                WHERE r.pairs >= m - 1 - 2 * most AND r.next > 1
            ) w
        ) s
        GROUP BY s.number ORDER BY 1
    LOOP
        best := textsim._fewest_edits(piece, document[part.first:part.last], coalesce(edits, most + 1));
        IF best.last IS NOT NULL THEN
            edits := best.edits;
            last := part.first - 1 + best.last;
            EXIT WHEN edits = 1;
        END IF;
    END LOOP;
    IF edits IS NOT NULL THEN
        SELECT a.first, a.runs INTO first, runs FROM textsim._align_piece(piece, document, edits, last) a;
    END IF;
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

-- The kinds of the words that differ between two runs: numerals, units if both have one, and the guards, which are compared
-- with the words around the runs, too.
CREATE OR REPLACE FUNCTION textsim._quotation_kinds(c textsim.corpus, form text, other_form text, run text, other_run text)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF form = other_form AND run = other_run THEN
        RETURN '{}';
    END IF;
    RETURN textsim._differing(array_remove(textsim._guard_kinds(), 'content'), c.guard_words, '{}', form, other_form)
        || array(
            SELECT n.kind
            FROM (VALUES ('numerals', textsim._word_list('numerals')), ('units', textsim._word_list('compared_units')))
                n (kind, names)
            CROSS JOIN LATERAL (
                SELECT array_agg(DISTINCT w.word) FILTER (WHERE w.is_first) AS one,
                    array_agg(DISTINCT w.word) FILTER (WHERE NOT w.is_first) AS other
                FROM (
                    SELECT unnest(string_to_array(run, ' ')) COLLATE "C" AS word, true AS is_first
                    UNION ALL SELECT unnest(string_to_array(other_run, ' ')) COLLATE "C", false) w
                WHERE w.word = ANY (string_to_array(n.names, '|'))
            ) s
            WHERE CASE n.kind WHEN 'units' THEN s.one <> s.other ELSE s.one IS DISTINCT FROM s.other END
            ORDER BY n.kind);
END $$;

-- The verdict on a reading of a quotation by a document; NULL if it is absent. signs, words_before: those of the original
-- text of the document, as _signs_of() returns them, or NULL.
CREATE OR REPLACE FUNCTION textsim._verdict_on_reading(
    c textsim.corpus, reading jsonb, word_ids integer[], normal_form text, signs text[], words_before integer[],
    OUT verdict text, OUT share double precision, OUT pieces jsonb, OUT differences jsonb)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    forms text[] := array(SELECT p.piece ->> 'form' FROM jsonb_array_elements(reading) WITH ORDINALITY p (piece, n) ORDER BY n);
    words text[] := string_to_array(array_to_string(forms, ' '), ' ');
    numbers integer[];
    document integer[] := word_ids[:];
    edits integer := 0;
    in_text integer := 0;
    ends integer := 0;  -- the words of the document up to the end of the piece before
    own text[];
    length integer;
    place record;
    left_out text;
    theirs text;
    has_signs boolean;
    k integer;
    around text[];
    words_before_around integer;
    last_of_run integer;
    low integer;
    high integer;
    before integer;
    after integer;
BEGIN
    IF word_ids IS NOT NULL THEN
        numbers := textsim._stored_numbers(c.id, NULL, array_to_string(forms, ' '));
    ELSE
        -- Numbers of two texts may differ for a word that is not in the dictionary, so a word of the document has the number
        -- that the quotation gives it, or 0.
        numbers := array(
            SELECT min(u.place) OVER (PARTITION BY u.word COLLATE "C")::integer
            FROM unnest(words) WITH ORDINALITY u (word, place)
            ORDER BY u.place);
        document := array(
            SELECT coalesce(q.number, 0)
            FROM unnest(string_to_array(normal_form, ' ')) WITH ORDINALITY u (word, place)
            LEFT JOIN (SELECT DISTINCT * FROM unnest(words, numbers)) q (word, number)
                ON q.word = u.word COLLATE "C"
            ORDER BY u.place);
    END IF;
    pieces := '[]';
    differences := '[]';
    FOR number IN 1..cardinality(forms) LOOP
        own := string_to_array(forms[number], ' ');
        length := cardinality(own);
        -- A piece of fewer words stands in many texts by chance, so it counts as missing.
        SELECT * INTO place FROM textsim._place_of(
            CASE WHEN cardinality(forms) = 1 OR length >= 3 THEN numbers[in_text + 1:in_text + length] END,
            document[ends + 1:]) p;
        edits := edits + coalesce(place.edits, length);
        EXIT WHEN 10 * edits > 3 * cardinality(words);
        IF place.edits IS NULL THEN
            differences := differences || jsonb_build_object(
                'in_text', in_text, 'quotation', forms[number], 'in_document', NULL, 'document', '',
                'kinds', textsim._quotation_kinds(c, forms[number], '', forms[number], ''));
            pieces := pieces || jsonb_build_object('in_text', in_text, 'words', length, 'in_document', NULL,
                'words_in_document', 0, 'left_out', '', 'kinds', '[]'::jsonb);
        ELSE
            left_out := CASE WHEN pieces = '[]' THEN ''
                ELSE textsim._words_between(c, word_ids, normal_form, ends, ends + place.first) END;
            pieces := pieces || jsonb_build_object('in_text', in_text, 'words', length,
                'in_document', ends + place.first, 'words_in_document', place.last - place.first,
                'left_out', left_out, 'kinds', textsim._quotation_kinds(c, '', left_out, '', left_out));
            IF place.runs <> '{}' THEN
                -- At an end of the piece, the words next to the place are named.
                words_before_around := greatest(ends, ends + place.first - length);
                around := string_to_array(textsim._words_between(c, word_ids, normal_form, words_before_around,
                    least(cardinality(document), ends + place.last + length)), ' ');
            END IF;
            FOR k IN 1..cardinality(place.runs) BY 4 LOOP
                last_of_run := place.runs[k + 1];
                before := least(2, place.runs[k] - coalesce(place.runs[k - 3], 0));
                after := least(2, coalesce(place.runs[k + 4], length) - last_of_run);
                low := ends + place.first + place.runs[k + 2];
                high := ends + place.first + place.runs[k + 3];
                IF place.runs[k] = 0 THEN
                    low := greatest(ends, low - last_of_run);
                END IF;
                IF last_of_run = length THEN
                    high := least(cardinality(document), high + length - place.runs[k]);
                END IF;
                left_out := array_to_string(own[place.runs[k] + 1:last_of_run], ' ');
                theirs := array_to_string(around[low - words_before_around + 1:high - words_before_around], ' ');
                differences := differences || jsonb_build_object(
                    'in_text', in_text + place.runs[k], 'quotation', left_out, 'in_document', low, 'document', theirs,
                    'kinds', textsim._quotation_kinds(
                        c, array_to_string(own[place.runs[k] - before + 1:last_of_run + after], ' '),
                        array_to_string(around[low - words_before_around - before + 1:high - words_before_around + after],
                            ' '), left_out, theirs));
            END LOOP;
            -- The words of a text without other words are its signs.
            IF place.edits = 0 AND words_before[cardinality(words_before)] > 0 THEN
                left_out := array_to_string((textsim._signs_of(c, reading -> number - 1 ->> 'text')).signs, ' ');
                -- In "50 % of the rent", the sign belongs to the number: a quotation may leave out the signs before its
                -- first word and after its last word, if this word has no digit.
                SELECT bool_or(coalesce(t.signs, '') = left_out), max(t.signs) FILTER (WHERE t.is_whole)
                INTO has_signs, theirs
                FROM (
                    SELECT x.left_out + y.left_out = 0 AS is_whole, string_agg(s.sign, ' ' ORDER BY s.place) FILTER (WHERE
                        s.before BETWEEN ends + place.first + x.left_out AND ends + place.last - y.left_out) AS signs
                    FROM generate_series(0, CASE WHEN own[1] ~ '[0-9]' THEN 0 ELSE 1 END) x (left_out)
                    CROSS JOIN generate_series(0, CASE WHEN own[length] ~ '[0-9]' THEN 0 ELSE 1 END) y (left_out)
                    LEFT JOIN unnest(signs, words_before) WITH ORDINALITY s (sign, before, place) ON true
                    GROUP BY x.left_out, y.left_out
                ) t;
                theirs := coalesce(theirs, '');
                IF NOT has_signs THEN
                    differences := differences || jsonb_build_object(
                        'in_text', in_text, 'quotation', left_out, 'in_document', ends + place.first, 'document', theirs,
                        'kinds', ARRAY['symbols']);
                END IF;
            END IF;
            ends := ends + place.last;
        END IF;
        in_text := in_text + length;
    END LOOP;
    IF 10 * edits > 3 * in_text THEN
        pieces := NULL;
        differences := NULL;
        RETURN;
    END IF;
    verdict := CASE WHEN edits > 0 THEN 'altered' WHEN cardinality(forms) = 1 THEN 'exact' ELSE 'pieces' END;
    share := 1 - edits::double precision / in_text;
END $$;

-- The fingerprints by which documents are looked up that may have a quotation.
CREATE OR REPLACE FUNCTION textsim._fingerprints_of_quotation(c textsim.corpus, readings jsonb[], part bigint)
RETURNS integer[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    forms text[] := array(
        SELECT p ->> 'form' FROM unnest(readings) r CROSS JOIN LATERAL jsonb_array_elements(r) p);
BEGIN
    IF c.passages IS NULL THEN
        RAISE EXCEPTION 'corpus "%" has no passages, by which it finds the documents that may have a quotation', c.name
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format(
                'Name the key, or rebuild the corpus, such as: textsim rebuild %s --passages 5.', quote_ident(c.name));
    END IF;
    IF c.passages > ALL (array(SELECT cardinality(textsim._units(f.form, c.unit)) FROM unnest(forms) f (form))) THEN
        RAISE EXCEPTION 'corpus "%" finds only quotations with % % or more in a row', c.name, c.passages,
                CASE c.unit WHEN 'word' THEN 'words' ELSE 'characters' END
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name the key of the document, or quote more words.';
    END IF;
    RETURN array(
        SELECT DISTINCT f.fingerprint
        FROM unnest(forms) q (form)
        CROSS JOIN LATERAL unnest(textsim._fingerprints_to_find(c, q.form, part)) f (fingerprint));
END $$;

CREATE OR REPLACE FUNCTION textsim.quote(
    corpus text, text text, OUT verdict text, INOUT key text DEFAULT NULL, scope text DEFAULT NULL,
    shortest integer DEFAULT 4, original text DEFAULT NULL, OUT share double precision, OUT pieces jsonb,
    OUT differences jsonb)
RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 100000 ROWS 1 SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    part bigint := textsim._part_of(c, scope);
    fingerprints integer[];
    readings jsonb[];
    signs record;
    found record;
BEGIN
    PERFORM textsim._check_given('the text', text IS NOT NULL);
    PERFORM textsim._check_given('shortest', shortest IS NOT NULL);
    readings := textsim._readings_of(c, text, shortest);
    signs := textsim._signs_of(c, original);
    IF key IS NULL THEN
        PERFORM textsim._warn_unindexed(c);
        fingerprints := textsim._fingerprints_of_quotation(c, readings, part);
    END IF;
    EXECUTE format($query$
        SELECT v.*, d.key, d.word_ids, d.normal_form
        FROM textsim.%I d CROSS JOIN unnest($4) WITH ORDINALITY r (reading, place)
        CROSS JOIN LATERAL textsim._verdict_on_reading($5, r.reading, d.word_ids, d.normal_form, $6, $7) v
        WHERE %s AND ($3 IS NULL OR d.part = $3)%s
        ORDER BY v.share DESC NULLS LAST, v.verdict <> 'exact', d.key COLLATE "C", r.place
        LIMIT 1
        $query$, 'document_' || c.id, CASE WHEN key IS NOT NULL THEN 'd.key = $1' ELSE format(
            'd.id = ANY (array(SELECT p.document_id FROM textsim.%I p WHERE p.fingerprint = ANY ($2)))',
            'passage_' || c.id) END, textsim._alive(c, 'd'))
    INTO found USING key, fingerprints, part, readings, c, signs.signs, signs.words_before;
    IF key IS NOT NULL AND found.key IS NULL THEN
        RAISE EXCEPTION 'corpus "%" has no document "%"', c.name, key USING ERRCODE = 'no_data_found';
    END IF;
    IF found.verdict IS NULL THEN
        RETURN QUERY SELECT 'absent', NULL::text, NULL::double precision, '[]'::jsonb, '[]'::jsonb;
        RETURN;
    END IF;
    IF original IS NOT NULL
        AND textsim._form(c, original) <> textsim._stored_form(c.id, found.word_ids, found.normal_form)
    THEN
        RAISE EXCEPTION 'the original has other words than document "%"', found.key
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT found.verdict, found.key, found.share, found.pieces, found.differences;
END $$;
COMMENT ON FUNCTION textsim.quote(text, text, text, text, integer, text)
    IS 'Returns one row: whether a quotation stands in a document, where, and what differs. The verdict is exact if its '
    'words stand in a row in the document; pieces if an ellipsis (..., …) or words in square brackets divide it, and '
    'each piece of three words or more stands there, in order; altered if a run of the document has at least 70 % of '
    'its words, in order; absent otherwise. share is 1 - edits / words of the quotation. pieces has the words of the '
    'quotation before each piece, its words, the words of the document before its place and in it, the words left out '
    'since the piece before, and their kinds. differences has the runs of words that differ, each with its kinds: '
    'numbers, negations, guard words ("words"), numerals or units. original is the text of the document, because a '
    'corpus stores only words: with it, the signs of an unaltered piece are compared, too, such as % and <, and the '
    'kind of such a difference is symbols. With a key, the document alone is asked. Without, the corpus must '
    'have passages, and the best document is returned, of those that share a run of that many words with the '
    'quotation. In a scoped corpus, scope is required. Raises an error if no document has the key, or if the '
    'quotation has fewer than shortest words or more than 500. If fewer than four are allowed, such a quotation is '
    'exact or absent.';
