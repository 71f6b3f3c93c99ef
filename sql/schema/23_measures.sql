-- Measures of two texts. textsim_db.measures computes the same of their shingles, words or characters, to the last bit,
-- because a sum of whole numbers is exact, and any other sum is added in the order of Python.

-- The distinct shingles of two texts: those that both have, and those of each.
CREATE OR REPLACE FUNCTION textsim._shared_shingles(
    a text, b text, unit text, n integer,
    OUT shared double precision, OUT of_a double precision, OUT of_b double precision)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT textsim._count_shared(s.one, s.other), pg_catalog.cardinality(s.one), pg_catalog.cardinality(s.other)
    FROM (SELECT textsim.shingles(a, unit, n) AS one, textsim.shingles(b, unit, n) AS other) s;
END;

-- How often text a and text b have each of their words.
CREATE OR REPLACE FUNCTION textsim._word_counts(a text, b text) RETURNS TABLE (x bigint, y bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT count(*) FILTER (WHERE first), count(*) FILTER (WHERE NOT first)
    FROM (
        SELECT true AS first, pg_catalog.unnest(textsim.words(a)) COLLATE "C" AS word
        UNION ALL
        SELECT false AS first, pg_catalog.unnest(textsim.words(b)) COLLATE "C" AS word
    ) w
    GROUP BY word;
END;

-- Sums over the words of two texts, which have each word x and y times.
CREATE OR REPLACE FUNCTION textsim._sums(
    a text, b text, OUT products numeric, OUT squares_of_a numeric, OUT squares_of_b numeric,
    OUT differences double precision, OUT shared double precision)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(sum(w.x * w.y), 0), coalesce(sum(w.x * w.x), 0), coalesce(sum(w.y * w.y), 0),
        coalesce(sum(pg_catalog.abs(w.x - w.y)), 0), coalesce(sum(least(w.x, w.y)), 0)
    FROM textsim._word_counts(a, b) w;
END;

-- The least cost of turning the items of one array into the items of the other.
CREATE OR REPLACE FUNCTION textsim._edit_distance(
    one text[], other text[], insertion double precision, deletion double precision, substitution double precision)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    items text[] COLLATE "C" := other;
    -- costs[j] is the cost of turning the items of one, as far as they are read, into the first j - 1 of the other.
    costs double precision[];
    diagonal double precision;
    above double precision;
    least_cost double precision;
    item text COLLATE "C";
BEGIN
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

CREATE OR REPLACE FUNCTION textsim.jaccard(a text, b text, unit text, n integer) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN textsim._jaccard(textsim.shingles(a, unit, n), textsim.shingles(b, unit, n));
COMMENT ON FUNCTION textsim.jaccard(text, text, text, integer)
    IS 'Returns the Jaccard similarity of two texts without a corpus, 0 to 1: the distinct shingles that both have, '
    'divided by those that either has; 0 if neither has any. unit and n are as in shingles().';

-- Defaults of unit and n would make a call with a corpus and two texts ambiguous.
CREATE OR REPLACE FUNCTION textsim.jaccard(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN textsim.jaccard(a, b, 'word', 1);
COMMENT ON FUNCTION textsim.jaccard(text, text)
    IS 'Returns the Jaccard similarity of the distinct words of two texts, 0 to 1; 0 if neither has any.';

CREATE OR REPLACE FUNCTION textsim.containment(a text, b text, unit text DEFAULT 'word', n integer DEFAULT 1)
RETURNS double precision LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(s.shared / nullif(s.of_a, 0), 0) FROM textsim._shared_shingles(a, b, unit, n) s);
COMMENT ON FUNCTION textsim.containment(text, text, text, integer)
    IS 'Returns the share of the distinct shingles of text a that text b also has, 0 to 1; 0 if a '
    'has none. unit and n are as in shingles().';

CREATE OR REPLACE FUNCTION textsim.overlap(a text, b text, unit text DEFAULT 'word', n integer DEFAULT 1)
RETURNS double precision LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(s.shared / nullif(least(s.of_a, s.of_b), 0), 0) FROM textsim._shared_shingles(a, b, unit, n) s);
COMMENT ON FUNCTION textsim.overlap(text, text, text, integer)
    IS 'Returns the overlap coefficient of two texts, 0 to 1: the distinct shingles that both have, divided by the '
    'shingles of the text that has fewer; 0 if a text has none. unit and n are as in shingles().';

CREATE OR REPLACE FUNCTION textsim.dice(a text, b text, unit text DEFAULT 'word', n integer DEFAULT 1)
RETURNS double precision LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(2 * s.shared / nullif(s.of_a + s.of_b, 0), 0) FROM textsim._shared_shingles(a, b, unit, n) s);
COMMENT ON FUNCTION textsim.dice(text, text, text, integer)
    IS 'Returns the Dice coefficient of two texts, 0 to 1: twice the distinct shingles that both have, divided by the '
    'sum of the shingles of each; 0 if neither has any. unit and n are as in shingles().';

CREATE OR REPLACE FUNCTION textsim.jaccard_of_counts(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(s.shared / nullif(s.shared + s.differences, 0), 0) FROM textsim._sums(a, b) s);
COMMENT ON FUNCTION textsim.jaccard_of_counts(text, text)
    IS 'Returns the Jaccard similarity of the word counts of two texts, 0 to 1: the sum of the smaller counts, divided '
    'by the sum of the larger counts; 0 if neither has words.';

CREATE OR REPLACE FUNCTION textsim.cosine_similarity(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT least(coalesce(s.products::double precision / nullif(pg_catalog.sqrt(
    (s.squares_of_a * s.squares_of_b)::double precision), 0), 0), 1) FROM textsim._sums(a, b) s);
COMMENT ON FUNCTION textsim.cosine_similarity(text, text)
    IS 'Returns the cosine similarity of the word counts of two texts, 0 to 1; 0 if a text has no words.';

CREATE OR REPLACE FUNCTION textsim.cosine_distance(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
-- The arc cosine is inaccurate for small angles. degrees() would divide, where Python multiplies.
RETURN (SELECT CASE WHEN s.products > 0 THEN pg_catalog.atan2(pg_catalog.sqrt(
    (s.squares_of_a * s.squares_of_b - s.products * s.products)::double precision), s.products::double precision)
    * (180::double precision / pg_catalog.pi()) ELSE 90 END FROM textsim._sums(a, b) s);
COMMENT ON FUNCTION textsim.cosine_distance(text, text)
    IS 'Returns the angle between the word counts of two texts, 0 to 90 degrees; 90 if they share no word.';

CREATE OR REPLACE FUNCTION textsim.euclidean(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT pg_catalog.sqrt((s.squares_of_a + s.squares_of_b - 2 * s.products)::double precision)
    FROM textsim._sums(a, b) s);
COMMENT ON FUNCTION textsim.euclidean(text, text)
    IS 'Returns the Euclidean distance of the word counts of two texts, 0 or more.';

CREATE OR REPLACE FUNCTION textsim.manhattan(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT s.differences FROM textsim._sums(a, b) s);
COMMENT ON FUNCTION textsim.manhattan(text, text)
    IS 'Returns the sum of the differences of the word counts of two texts, 0 or more.';

CREATE OR REPLACE FUNCTION textsim.lr_norm(a text, b text, r double precision) RETURNS double precision
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
COMMENT ON FUNCTION textsim.lr_norm(text, text, double precision)
    IS 'Returns the L_r distance of the word counts of two texts: the sum of the differences to the power of r, to the '
    'power of 1/r. r is 1 or more; infinity gives the largest difference.';

CREATE OR REPLACE FUNCTION textsim.levenshtein(
    a text, b text, insertion double precision DEFAULT 1, deletion double precision DEFAULT 1,
    substitution double precision DEFAULT 1)
RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN textsim._edit_distance(
    pg_catalog.string_to_array(a, NULL), pg_catalog.string_to_array(b, NULL), insertion, deletion, substitution);
COMMENT ON FUNCTION textsim.levenshtein(text, text, double precision, double precision, double precision)
    IS 'Returns the least cost of turning text a into text b. The edits are insertions, deletions and substitutions of '
    'characters, each at the given cost. The characters are those of the texts, not of their normal forms. Raises '
    'program_limit_exceeded if the product of the two lengths is above 25 million.';

CREATE OR REPLACE FUNCTION textsim.levenshtein_words(
    a text, b text, insertion double precision DEFAULT 1, deletion double precision DEFAULT 1,
    substitution double precision DEFAULT 1)
RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN textsim._edit_distance(textsim.words(a), textsim.words(b), insertion, deletion, substitution);
COMMENT ON FUNCTION textsim.levenshtein_words(
    text, text, double precision, double precision, double precision)
    IS 'Returns the least cost of turning the words of text a into the words of text b. The edits '
    'are insertions, deletions and substitutions of words, each at the given cost. Raises '
    'program_limit_exceeded if the product of the two word counts is above 25 million.';
