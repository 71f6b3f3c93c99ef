-- From text to normal form, words and shingles. textsim_db.text computes the same, bit for bit. The sets of code points
-- in 20 decide which signs belong to a word.

-- A text ready for NFKC: broken words are joined, all code points are assigned, and runs of marks are short.
-- Spaces replace unassigned code points, because versions of Unicode normalise only assigned ones alike. Runs
-- of marks are capped, because NFKC sorts them in quadratic time.
CREATE OR REPLACE FUNCTION textsim._prepared(body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    -- Most texts have no hyphen; to look for it costs much less than a regular expression.
    WHEN octet_length(body) = length(body) AND strpos(body, '-') = 0 THEN body
    WHEN octet_length(body) = length(body) THEN textsim._joined(body)
    ELSE textsim._capped(textsim._spaced_signs(textsim._joined(body)))
END;

-- The normal form of a prepared text; a separator at its beginning or end becomes a space.
CREATE OR REPLACE FUNCTION textsim._form_of_piece(body text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF octet_length(body) = length(body) THEN
        body := lower(body COLLATE "C");
        IF (strpos(body, '-') = 0 AND strpos(body, '+') = 0 AND strpos(body, '#') = 0)
            OR body !~ '[a-z][+#]|-[0-9]'
        THEN
            RETURN regexp_replace(body, '[^a-z0-9]+', ' ', 'g');
        END IF;
    ELSE
        body := textsim._without_marks(textsim._fold(normalize(body, NFKC)));
        IF body !~ '[^ ][+#]|[-−][0-9]' THEN
            RETURN textsim._split(body);
        END IF;
    END IF;
    RETURN textsim._split_signed(body);
END $$;

-- The normal form of a long text, computed in pieces so that a statement can be cancelled.
-- A text without words has its symbols as words.
CREATE OR REPLACE FUNCTION textsim._form_of_pieces(body text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- A slice of a bytea is one copy. For a slice of a text, the server counts characters from the beginning.
    bytes bytea := convert_to(body, 'UTF8');
    size integer := octet_length(bytes);
    start integer := 0;
    stop integer;
    piece text := '';
    form text;
    unfinished text := '';
    forms text[] := '{}';
    symbols text[] := '{}';
    after_space boolean := true;
BEGIN
    WHILE start < size LOOP
        -- A text without a place to be cut is taken as a whole; doubling keeps the time linear.
        stop := least(start + greatest(65536, octet_length(unfinished)), size);
        WHILE stop < size AND get_byte(bytes, stop) & 192 = 128 LOOP
            stop := stop + 1;
        END LOOP;
        piece := unfinished || convert_from(substr(bytes, start + 1, stop - start), 'UTF8');
        start := stop;
        IF start < size THEN
            unfinished := coalesce(textsim._unfinished(piece), piece);
            piece := left(piece, length(piece) - length(unfinished));
        END IF;
        piece := textsim._prepared(piece);
        form := textsim._form_of_piece(piece);
        IF after_space THEN
            form := ltrim(form);
        END IF;
        IF form <> '' THEN
            after_space := right(form, 1) = ' ';
            forms := forms || form;
        ELSIF forms = '{}' THEN
            symbols := symbols || textsim._symbols(normalize(piece, NFKC));
        END IF;
    END LOOP;
    IF forms = '{}' THEN
        forms := symbols;
    END IF;
    -- Trim only the last piece: trimming takes eight bytes of memory a byte, and the server allows 1 GB.
    forms[cardinality(forms)] := rtrim(forms[cardinality(forms)]);
    RETURN array_to_string(forms, '');
END $$;

-- The normal form of a text without boilerplate and the stop words of the corpus, or of a language in it.
CREATE OR REPLACE FUNCTION textsim._form(c textsim.corpus, body text, language text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    left_out text[] := c.stop_words;
    form text;
BEGIN
    IF body IS NULL THEN
        RETURN NULL;
    END IF;
    IF c.stop_words_by_language <> '{}' THEN
        IF language IS NULL THEN
            RAISE EXCEPTION 'corpus "%" removes stop words by language, and SQL cannot identify the '
                'language of a text', c.name
                USING ERRCODE = 'feature_not_supported',
                    HINT = 'Pass the language if the function takes it. Otherwise use Python or the '
                        'command textsim, or attach a table in mode queue.';
        END IF;
        left_out := array(SELECT jsonb_array_elements_text(c.stop_words_by_language -> language));
    END IF;
    IF cardinality(left_out) = 0 THEN
        form := textsim.normal_form(body);
    ELSE
        form := array_to_string(array(
            SELECT w.word FROM unnest(string_to_array(textsim.normal_form(body), ' ')) WITH ORDINALITY w (word, place)
            WHERE NOT EXISTS (  -- hashed; <> ALL would compare with each word
                SELECT FROM unnest(left_out) s (word) WHERE s.word = w.word COLLATE "C")
            ORDER BY w.place), ' ');
    END IF;
    IF c.boilerplate IS NULL THEN
        RETURN form;
    END IF;
    RETURN (  -- without the words of shingles that are boilerplate
        SELECT coalesce(string_agg(s.word, ' ' ORDER BY s.place), '')
        FROM (
            SELECT w.word, w.place, bool_or(w.value IN (
                    SELECT unnest(b.shingle_values) FROM textsim.boilerplate b WHERE b.corpus_id = c.id)) OVER (
                ORDER BY w.place ROWS BETWEEN c.shingle_length - 1 PRECEDING AND CURRENT ROW) AS is_left_out
            FROM ROWS FROM (
                unnest(string_to_array(form, ' ')), unnest(textsim._shingle_values(form, 'word', c.shingle_length))
            ) WITH ORDINALITY w (word, value, place)
        ) s
        WHERE s.is_left_out IS NOT TRUE);
END $$;

-- The distinct runs of n units, in order of first appearance; one run of all units if there are fewer than n.
CREATE OR REPLACE FUNCTION textsim._shingles_of(units text[], n integer, separator text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg(s.shingle ORDER BY s.place), '{}')
    FROM (
        SELECT g.shingle, min(g.place) AS place
        FROM (
            SELECT u.place, string_agg(u.unit, separator) OVER (
                ORDER BY u.place ROWS BETWEEN CURRENT ROW AND n - 1 FOLLOWING
            ) AS shingle
            FROM unnest(units) WITH ORDINALITY u (unit, place)
        ) g
        WHERE g.place <= greatest(cardinality(units) - n + 1, 1)
        GROUP BY g.shingle COLLATE "C", g.shingle
    ) s;
END;

-- The units of a normal form: its words, or its characters without the spaces between words of spaceless scripts.
CREATE OR REPLACE FUNCTION textsim._units(form text, unit text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE unit WHEN 'word' THEN string_to_array(form, ' ')
    ELSE string_to_array(textsim._without_spaces(form), NULL) END;

-- The runs of n characters of a normal form, in any order and repeated, or all of them if there are fewer.
-- A place in a text of more than one byte a character is found by reading the text up to it, so the text is cut into
-- pieces of n characters, once from each of its first n places. No normal form has the character _.
CREATE OR REPLACE FUNCTION textsim._char_runs(form text, n integer) RETURNS SETOF text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT unnest(CASE
        WHEN length(f.body) < n THEN array_remove(ARRAY[f.body], '')
        WHEN n > 100 THEN textsim._shingles_of(string_to_array(f.body, NULL), n, '')
        ELSE string_to_array(rtrim(regexp_replace(
            substr(f.body, i, (length(f.body) - i + 1) / n * n) COLLATE "C", format('.{%s}', n), '\&_', 'g'), '_'), '_')
        END)
    FROM (SELECT textsim._without_spaces(form) AS body OFFSET 0) f
    CROSS JOIN LATERAL generate_series(1, CASE WHEN length(f.body) < n OR n > 100 THEN 1 ELSE n END) i;
END;

CREATE OR REPLACE FUNCTION textsim._shingles_of_form(form text, unit text, n integer) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN textsim._shingles_of(textsim._units(form, unit), n, CASE unit WHEN 'word' THEN ' ' ELSE '' END);
END $$;

-- The same in any order, which takes less time for characters.
CREATE OR REPLACE FUNCTION textsim._shingles_in_any_order(form text, unit text, n integer) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF unit = 'word' THEN
        RETURN textsim._shingles_of(string_to_array(form, ' '), n, ' ');
    END IF;
    RETURN array(SELECT DISTINCT r COLLATE "C" FROM textsim._char_runs(form, n) r);
END $$;

CREATE OR REPLACE FUNCTION textsim.normal_form(text text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    prepared pg_catalog.text;
    form pg_catalog.text;
BEGIN
    IF octet_length(text) > 65536 THEN
        RETURN textsim._form_of_pieces(text);
    END IF;
    prepared := textsim._prepared(text);
    form := btrim(textsim._form_of_piece(prepared));
    RETURN CASE WHEN form = '' THEN rtrim(textsim._symbols(normalize(prepared, NFKC))) ELSE form END;
END $$;
COMMENT ON FUNCTION textsim.normal_form(text)
    IS 'Returns the normal form of a text: words in lower case, joined by single spaces, after Unicode NFKC (version '
    '13.0). Punctuation is dropped, a word that a hyphen breaks at the end of a line is joined, and each decimal digit '
    'is an ASCII digit. A text without words has its symbols as words.';
