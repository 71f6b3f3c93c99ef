-- The table of facts, with a vector of your model for each, and the corpus that compares their words.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE fact (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body text NOT NULL,
    embedding vector(256) NOT NULL
);
CREATE INDEX ON fact USING hnsw (embedding vector_cosine_ops);
SELECT textsim.create_corpus('fact', shingle => 'char:4', threshold => 0.5, recall => 1,
    guards => '{numbers,negations}');
SELECT textsim.attach('fact', 'fact', 'id', 'body', mode => 'inline');

CREATE FUNCTION similar_facts(fact_id bigint, least_cosine double precision DEFAULT 0.7)
RETURNS TABLE (id bigint, body text, similarity double precision, cosine double precision, differs text[])
LANGUAGE sql STABLE AS $$
    WITH words AS (
        SELECT n.key::bigint AS id, n.similarity FROM textsim.neighbours('fact', fact_id::text) n
    ), nearest AS MATERIALIZED (
        SELECT f.id, f.embedding <=> (SELECT m.embedding FROM fact m WHERE m.id = fact_id) AS distance
        FROM fact f ORDER BY distance LIMIT 20
    ), meaning AS (
        SELECT n.id, 1 - n.distance AS cosine FROM nearest n
        WHERE n.id <> fact_id AND 1 - n.distance >= least_cosine
    )
    SELECT id, f.body, w.similarity, m.cosine, textsim.differs('fact', fact_id::text, id::text)
    FROM words w FULL JOIN meaning m USING (id) JOIN fact f USING (id)
    ORDER BY w.similarity DESC NULLS LAST, m.cosine DESC
$$;
