-- The table of issues, the corpus of their words without those of templates, and what may be said of a new issue.
CREATE TABLE issue (
    id bigint PRIMARY KEY,
    body text NOT NULL,
    is_open boolean NOT NULL DEFAULT true
);
SELECT textsim.create_corpus('issue', shingle => 'word:2', threshold => 0.1, recall => 1, boilerplate => 0.1);
SELECT textsim.attach('issue', 'issue', 'id', 'body', mode => 'inline');

-- The open issue that is most similar to an issue.
CREATE FUNCTION candidate(issue_id bigint) RETURNS TABLE (id bigint, similarity double precision)
LANGUAGE sql STABLE AS $$
    SELECT o.id, n.similarity
    FROM textsim.neighbours('issue', issue_id::text) n JOIN issue o ON o.id = n.key::bigint
    WHERE o.is_open ORDER BY n.similarity DESC, o.id LIMIT 1
$$;

-- The least similarity from which the wanted share of judged pairs is the same, counting two more as wrong, because
-- few judgements prove little; NULL if there is none.
CREATE FUNCTION least_similarity(wanted double precision) RETURNS double precision
LANGUAGE sql STABLE AS $$
    WITH judged AS (
        SELECT n.similarity, j.verdict = 'same' AS is_same
        FROM textsim.judgements('issue') j CROSS JOIN LATERAL textsim.neighbours('issue', j.a) n
        WHERE n.key = j.b AND j.verdict <> 'unsure'
    ), counted AS (
        SELECT similarity, count(*) OVER best AS pairs, count(*) FILTER (WHERE is_same) OVER best AS same
        FROM judged WINDOW best AS (ORDER BY similarity DESC)
    )
    SELECT min(similarity) FROM counted WHERE same >= wanted * (pairs + 2)
$$;
