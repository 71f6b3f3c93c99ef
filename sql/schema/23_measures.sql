-- Measures of two texts. textsim_db.measures computes the same of their shingles, words or characters, to the last bit,
-- because a sum of whole numbers is exact, and any other sum is added in the order of Python.

-- How often text a and text b have each of their words.
CREATE OR REPLACE FUNCTION textsim._word_counts(a text, b text) RETURNS TABLE (x bigint, y bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT count(*) FILTER (WHERE first), count(*) FILTER (WHERE NOT first)
    FROM (
        SELECT true AS first, pg_catalog.unnest(string_to_array(textsim.normal_form(a), ' ')) COLLATE "C" AS word
        UNION ALL
        SELECT false AS first, pg_catalog.unnest(string_to_array(textsim.normal_form(b), ' ')) COLLATE "C" AS word
    ) w
    GROUP BY word;
END;

-- The L_r distance of the word counts of two texts.
CREATE OR REPLACE FUNCTION textsim._lr_norm(a text, b text, r double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    differences bigint[];
    largest double precision;
BEGIN
    -- NaN is greater than every number.
    IF NOT (r >= 1 AND (r <= 2::double precision ^ 53 OR r = 'Infinity')) THEN
        RAISE EXCEPTION 'r is %; expected 1 or more', r USING ERRCODE = 'invalid_parameter_value';
    END IF;
    differences := ARRAY(SELECT abs(w.x - w.y) FROM textsim._word_counts(a, b) w WHERE w.x <> w.y ORDER BY 1);
    largest := coalesce(differences[cardinality(differences)], 0);
    IF largest = 0 OR r = 'Infinity' THEN
        RETURN largest;
    END IF;
    -- power() raises an error if it underflows. So small a term does not change a sum that has the term 1.
    RETURN largest * power((
        SELECT sum(CASE WHEN r * ln(d / largest) > -700 THEN power(d / largest, r) ELSE 0 END ORDER BY d)
        FROM unnest(differences) d), 1 / r);
END $$;

CREATE OR REPLACE FUNCTION textsim.measure(
    measure text, a text, b text, unit text DEFAULT 'word', n integer DEFAULT 1, r double precision DEFAULT 2)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    counts record;
    shared double precision;
    of_a double precision;
    of_b double precision;
BEGIN
    IF measure IN ('jaccard', 'containment', 'overlap', 'dice') THEN
        IF unit NOT IN ('word', 'char') THEN
            RAISE EXCEPTION 'unit is "%"; expected "word" or "char"', unit
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF n NOT BETWEEN 1 AND 1000 THEN
            RAISE EXCEPTION 'shingle length is %; expected 1 to 1000', n
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        SELECT textsim._count_shared(s.one, s.other), cardinality(s.one), cardinality(s.other) INTO shared, of_a, of_b
        FROM (
            SELECT textsim._shingles_of_form(textsim.normal_form(a), unit, n) AS one,
                textsim._shingles_of_form(textsim.normal_form(b), unit, n) AS other
        ) s;
        RETURN coalesce(CASE measure
            WHEN 'jaccard' THEN shared / nullif(of_a + of_b - shared, 0)
            WHEN 'containment' THEN shared / nullif(of_a, 0)
            WHEN 'overlap' THEN shared / nullif(least(of_a, of_b), 0)
            ELSE 2 * shared / nullif(of_a + of_b, 0) END, 0);
    END IF;
    IF unit <> 'word' OR n <> 1 THEN
        RAISE EXCEPTION 'measure "%" counts words; only those of sets compare other shingles', measure
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT coalesce(sum(w.x * w.y), 0) AS products, coalesce(sum(abs(w.x - w.y)), 0)::double precision AS differences,
        coalesce(sum(w.x * w.x), 0) AS squares_of_a, coalesce(sum(w.y * w.y), 0) AS squares_of_b,
        coalesce(sum(least(w.x, w.y)), 0)::double precision AS shared
    INTO counts FROM textsim._word_counts(a, b) w;
    CASE measure
    WHEN 'jaccard_of_counts' THEN
        RETURN coalesce(counts.shared / nullif(counts.shared + counts.differences, 0), 0);
    WHEN 'cosine_similarity' THEN
        RETURN least(coalesce(counts.products::double precision
            / nullif(sqrt((counts.squares_of_a * counts.squares_of_b)::double precision), 0), 0), 1);
    WHEN 'cosine_distance' THEN
        -- The arc cosine is inaccurate for small angles. degrees() would divide, where Python multiplies.
        RETURN CASE WHEN counts.products > 0 THEN
            atan2(sqrt((counts.squares_of_a * counts.squares_of_b - counts.products * counts.products)::double precision),
                counts.products::double precision) * (180::double precision / pi())
            ELSE 90 END;
    WHEN 'euclidean' THEN
        RETURN sqrt((counts.squares_of_a + counts.squares_of_b - 2 * counts.products)::double precision);
    WHEN 'manhattan' THEN
        RETURN counts.differences;
    WHEN 'lr_norm' THEN
        RETURN textsim._lr_norm(a, b, r);
    ELSE
        RAISE EXCEPTION 'there is no measure "%"', measure USING ERRCODE = 'invalid_parameter_value', HINT =
            'The measures are jaccard, containment, overlap, dice, jaccard_of_counts, cosine_similarity, '
            'cosine_distance, euclidean, manhattan and lr_norm; levenshtein() is a function of its own.';
    END CASE;
END $$;
COMMENT ON FUNCTION textsim.measure(text, text, text, text, integer, double precision)
    IS 'Returns a measure of two texts, by its name, without a corpus. Of the distinct shingles of the texts, 0 to 1, with unit '
    'and n as in shingles(), by default words: jaccard, those that both have, divided by those that either has; '
    'containment, the share of those of a that b also has; overlap, those that both have, divided by those of the text '
    'that has fewer; dice, twice those that both have, divided by the sum of those of each. Of how often each text has '
    'its words: jaccard_of_counts, the sum of the smaller counts, divided by the sum of the larger counts; '
    'cosine_similarity; cosine_distance, the angle, 0 to 90 degrees; euclidean and manhattan, distances; lr_norm, the '
    'sum of the differences to the power of r, to the power of 1/r, where r is 1 or more, and infinity gives the largest '
    'difference. A text without words has the similarity 0, and the angle 90, to every text.';

CREATE OR REPLACE FUNCTION textsim.levenshtein(
    a text, b text, insertion double precision DEFAULT 1, deletion double precision DEFAULT 1,
    substitution double precision DEFAULT 1, unit text DEFAULT 'char')
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    one text[] COLLATE "C" := CASE unit WHEN 'char' THEN string_to_array(a, NULL)
        ELSE string_to_array(textsim.normal_form(a), ' ') END;
    items text[] COLLATE "C" := CASE unit WHEN 'char' THEN string_to_array(b, NULL)
        ELSE string_to_array(textsim.normal_form(b), ' ') END;
    -- costs[j] is the cost of turning the items of a, as far as they are read, into the first j - 1 of b.
    costs double precision[];
    diagonal double precision;
    above double precision;
    least_cost double precision;
    item text COLLATE "C";
BEGIN
    PERFORM textsim._check_choice('unit', unit, 'word', 'char');
    IF NOT (insertion >= 0 AND deletion >= 0 AND substitution >= 0
            AND greatest(insertion, deletion, substitution) <= 2147483648) THEN
        RAISE EXCEPTION 'costs are %, % and %; expected 0 to 2^31', insertion, deletion, substitution
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF cardinality(one)::bigint * cardinality(items) > 25000000 THEN
        RAISE EXCEPTION 'texts of % and % items are too long to be compared item by item in SQL',
            cardinality(one), cardinality(items)
            USING ERRCODE = 'program_limit_exceeded',
                HINT = 'Compare long texts in Python, with textsim_db.measures.levenshtein.';
    END IF;
    costs := ARRAY(SELECT j * insertion FROM generate_series(0, cardinality(items)) j);
    FOREACH item IN ARRAY one LOOP
        diagonal := costs[1];
        least_cost := diagonal + deletion;
        costs[1] := least_cost;
        FOR j IN 1 .. cardinality(items) LOOP
            above := costs[j + 1];
            IF item <> items[j] THEN
                diagonal := diagonal + substitution;
            END IF;
            least_cost := least(diagonal, above + deletion, least_cost + insertion);
            costs[j + 1] := least_cost;
            diagonal := above;
        END LOOP;
    END LOOP;
    RETURN costs[cardinality(items) + 1];
END $$;
COMMENT ON FUNCTION textsim.levenshtein(text, text, double precision, double precision, double precision, text)
    IS 'Returns the least cost of turning text a into text b. The edits are insertions, deletions and substitutions of '
    'characters, each at the given cost; with unit => ''word'', of words of the normal forms. The characters are those of '
    'the texts, not of their normal forms. Raises program_limit_exceeded if the product of the two lengths is above 25 '
    'million.';
