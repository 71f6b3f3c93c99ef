// The statements of the page; those that a reader sees are plain calls.

export const CREATE_TYPED = "CREATE TABLE typed (id int PRIMARY KEY, body text NOT NULL)";
export const EMPTY_TYPED = "TRUNCATE typed";
export const TYPE = "INSERT INTO typed SELECT id, body FROM unnest($1::text[]) WITH ORDINALITY AS t (body, id)";
export const DROP = "SELECT textsim.drop_corpus(name) FROM textsim.corpus WHERE name = 'texts'";
export const CREATE = "SELECT textsim.create_corpus('texts', shingle => $1, threshold => $2, recall => $3)";
export const ADD = "SELECT textsim.add('texts', id::text, body) FROM typed";

export const STEPS = "SELECT id, body, string_to_array(textsim.normal_form(body), ' ') AS words FROM typed ORDER BY id;";
// No public function returns shingles or buckets, so no reader sees this one.
export const SKETCHES = `SELECT textsim._shingles_of_form(textsim._form(c, t.body), c.unit, c.shingle_length) AS shingles,
    (textsim._sketched(c, textsim._form(c, t.body), NULL)).buckets
FROM typed t CROSS JOIN textsim.corpus c WHERE c.name = 'texts' ORDER BY t.id`;
export const CANDIDATES = `SELECT t.id AS a, c.key AS b, c.shared
FROM typed t CROSS JOIN LATERAL textsim.candidates('texts', t.body) c WHERE t.id < c.key::int;`;
export const PAIRS = "SELECT a, b, similarity FROM textsim.pairs('texts');";
export const SIMILARITIES = `SELECT a.id AS a, b.id AS b, textsim.jaccard('texts', a.body, b.body) AS similarity
FROM typed a JOIN typed b ON a.id < b.id;`;
export const CLUSTERS = "SELECT key, cluster, weakest FROM textsim.clusters('texts');";

export const UNIQUE = `CREATE TABLE note (id int PRIMARY KEY, body text NOT NULL);
SELECT textsim.create_corpus('notes', shingle => 'word:2', threshold => 0.6, recall => 1, is_unique => true);
SELECT textsim.attach('notes', 'note', 'id', 'body');`;
export const FIRST_NOTES = `INSERT INTO note VALUES
    (1, 'Anna moved to Kiel in May and works in the harbour office'),
    (2, 'The office closes at five on Fridays'),
    (3, 'Orders above fifty need a second signature')`;
export const NOTES = "SELECT id, body FROM note ORDER BY id";
export const NEW_NOTE = "INSERT INTO note SELECT coalesce(max(id), 0) + 1, $1 FROM note";
export const CHANGE_NOTE = "UPDATE note SET body = $2 WHERE id = $1";
export const REMOVE_NOTE = "DELETE FROM note WHERE id = $1";
