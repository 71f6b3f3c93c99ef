-- Measures of two texts. textsim_db.measures computes the same from their shingles or words.

CREATE OR REPLACE FUNCTION textsim.containment(a text, b text, unit text DEFAULT 'word', n integer DEFAULT 1)
RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE pg_catalog.cardinality(s.one)
        WHEN 0 THEN 0
        ELSE (
            SELECT count(*) FROM pg_catalog.unnest(s.one) x
            JOIN pg_catalog.unnest(s.other) y ON x COLLATE "C" = y COLLATE "C"
        )::double precision / pg_catalog.cardinality(s.one)
    END
    FROM (SELECT textsim.shingles(a, unit, n) AS one, textsim.shingles(b, unit, n) AS other) s;
END;
COMMENT ON FUNCTION textsim.containment(text, text, text, integer)
    IS 'Returns the share of the distinct shingles of text a that text b also has, 0 to 1; 0 if a '
    'has none. unit and n are as in shingles().';

CREATE OR REPLACE FUNCTION textsim.cosine_similarity(a text, b text) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH counted AS (
        SELECT count(*) FILTER (WHERE first)::double precision AS x,
            count(*) FILTER (WHERE NOT first)::double precision AS y
        FROM (
            SELECT true AS first, pg_catalog.unnest(textsim.words(a)) COLLATE "C" AS word
            UNION ALL
            SELECT false AS first, pg_catalog.unnest(textsim.words(b)) COLLATE "C" AS word
        ) w
        GROUP BY word
    )
    -- The sums are exact: whole numbers in double precision.
    SELECT least(
        coalesce(sum(x * y) / nullif(pg_catalog.sqrt(sum(x * x) * sum(y * y)), 0), 0), 1)
    FROM counted;
END;
COMMENT ON FUNCTION textsim.cosine_similarity(text, text)
    IS 'Returns the cosine similarity of the word counts of two texts, 0 to 1; 0 if a text has no '
    'words.';

CREATE OR REPLACE FUNCTION textsim.levenshtein_words(
    a text, b text, insertion double precision DEFAULT 1, deletion double precision DEFAULT 1,
    substitution double precision DEFAULT 1)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    one text[] COLLATE "C" := textsim.words(a);
    other text[] COLLATE "C" := textsim.words(b);
    -- costs[j] is the cost of turning the words of a, as far as they are read, into the first j - 1 words of b.
    costs double precision[];
    diagonal double precision;
    above double precision;
    least_cost double precision;
    word text COLLATE "C";
BEGIN
    IF NOT (insertion >= 0 AND deletion >= 0 AND substitution >= 0
            AND greatest(insertion, deletion, substitution) <= 2147483648) THEN
        RAISE EXCEPTION 'costs are %, % and %; expected 0 to 2^31', insertion, deletion, substitution
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF cardinality(one)::bigint * cardinality(other) > 25000000 THEN
        RAISE EXCEPTION 'texts of % and % words are too long to be compared word by word in SQL',
            cardinality(one), cardinality(other)
            USING ERRCODE = 'program_limit_exceeded',
                HINT = 'Compare long texts in Python, with textsim_db.measures.levenshtein.';
    END IF;
    costs := ARRAY(SELECT j * insertion FROM generate_series(0, cardinality(other)) j);
    FOREACH word IN ARRAY one LOOP
        diagonal := costs[1];
        least_cost := diagonal + deletion;
        costs[1] := least_cost;
        FOR j IN 1 .. cardinality(other) LOOP
            above := costs[j + 1];
            IF word <> other[j] THEN
                diagonal := diagonal + substitution;
            END IF;
            least_cost := least(diagonal, above + deletion, least_cost + insertion);
            costs[j + 1] := least_cost;
            diagonal := above;
        END LOOP;
    END LOOP;
    RETURN costs[cardinality(other) + 1];
END $$;
COMMENT ON FUNCTION textsim.levenshtein_words(
    text, text, double precision, double precision, double precision)
    IS 'Returns the least cost of turning the words of text a into the words of text b. The edits '
    'are insertions, deletions and substitutions of words, each at the given cost. Raises '
    'program_limit_exceeded if the product of the two word counts is above 25 million.';
