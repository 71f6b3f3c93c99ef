-- The answers of a cache, the corpus that knows their questions, and the function that looks one up.
CREATE TABLE answer (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question text NOT NULL,
    body text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
);
SELECT textsim.create_corpus('questions', shingle => 'word:1', threshold => 0.5, recall => 1, is_unique => true,
    guards => '{content}', keep_for => '1 day');
SELECT textsim.attach('questions', 'answer', 'id', 'question', 'inline', time_column => 'made_at');

CREATE FUNCTION cached(asked text) RETURNS SETOF answer LANGUAGE sql STABLE AS $$
    SELECT a.* FROM textsim.matches('questions', asked) m JOIN answer a ON a.id = m.key::bigint
    WHERE m.differs = '{}' ORDER BY m.similarity DESC LIMIT 1
$$;
