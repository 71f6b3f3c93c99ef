-- The listings of a shop, a corpus for each field, and what a listing is to the others.
CREATE TABLE listing (
    id bigint PRIMARY KEY,
    title text NOT NULL,
    description text NOT NULL,
    price numeric NOT NULL
);
-- Titles that differ in a number or in one of these words are variants of a product.
SELECT textsim.create_corpus('title', shingle => 'word:1', threshold => 0.6, recall => 1,
    guards => '{numbers,words}', guard_words => '{black,white,red,green,blue,left,right,used}');
SELECT textsim.create_corpus('description', shingle => 'word:2', threshold => 0.4, recall => 1);
SELECT textsim.attach('title', 'listing', 'id', 'title', mode => 'inline');
SELECT textsim.attach('description', 'listing', 'id', 'description', mode => 'inline');

CREATE FUNCTION similar_listings(listing_id bigint) RETURNS TABLE (id bigint, title text, what text)
LANGUAGE sql STABLE AS $$
    SELECT o.id, o.title, CASE
        WHEN t.differs <> '{}' THEN 'variant'
        WHEN d.key IS NOT NULL AND abs(o.price - own.price) <= 0.1 * own.price THEN 'same'
        ELSE 'doubtful' END
    FROM listing own
    CROSS JOIN LATERAL textsim.neighbours('title', own.id::text) t
    JOIN listing o ON o.id = t.key::bigint
    LEFT JOIN textsim.neighbours('description', own.id::text) d ON d.key = t.key
    WHERE own.id = listing_id
    ORDER BY t.similarity DESC, o.id
$$;
