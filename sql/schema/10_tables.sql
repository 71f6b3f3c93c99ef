-- The schema textsim. The files run in the order of their numbers, and each uses only what stands before it, or what a
-- function looks up when it runs. Begin with the core:
--
--     base        10 tables, 11 and 12 what many functions check, 13 the begin of a step of an upgrade, 15 the rule of a
--                 match, 20 to 22 from a text to its buckets, 23 measures, 24 guards
--     core        30 search, 39 rejected texts, 40 write, 41 the functions of a corpus, 42 and 43 unique corpora,
--                 47 judgements, 48 results without copies, 50 to 53 create, forget and replace a corpus
--     passages    45 passages, 49 quotations
--     clusters    46 computed when somebody asks, 54 to 59 and 61 tracked: kept current in tables
--     tables      the user's tables that are attached: 60 the log of changes, 62 to 66 keys, triggers, refused tables,
--                 changes that triggers miss, attaching; 68 a worker in SQL; 44 merges that can be undone
--     operations  67 problems and status, 69 metrics, 70 rights, 80 the objects that must exist
--
-- Each corpus has tables of its own, document_N and others, where N is textsim.corpus.id. So a role gets rights to one
-- corpus, the planner has the statistics of one corpus, a rebuild fills new tables beside readers and swaps them in, and
-- a dropped corpus leaves no rows to vacuum. Each corpus also has functions of its own, _candidates_N and others, because
-- PL/pgSQL plans a statement that names its tables once in a session. A statement for any corpus is a text for EXECUTE,
-- which is planned in each call.

-- CREATE EXTENSION reads the whole file under the setting of the session.
DO $do$
BEGIN
    IF current_setting('standard_conforming_strings') = 'off' THEN
        RAISE EXCEPTION 'standard_conforming_strings is off, so the regular expressions of the schema would be misread'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'SET standard_conforming_strings = on; then install the schema. It works with either setting.';
    END IF;
END $do$;

CREATE SCHEMA IF NOT EXISTS textsim;

-- An upgrade runs these files again, beside clients that write. So a statement that locks a table against writers runs
-- only if what it makes is missing.
COMMENT ON SCHEMA textsim IS 'near-duplicate text search (textsim-db)';

-- Corpora. Each row has all settings, because no default may change the meaning of stored signatures.

-- The kinds of guards, in the order in which a corpus has them.
CREATE OR REPLACE FUNCTION textsim._guard_kinds() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{numbers,negations,words,content}'::text[];

CREATE TABLE IF NOT EXISTS textsim.corpus (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    unit text NOT NULL CHECK (unit IN ('word', 'char')),
    shingle_length integer NOT NULL CHECK (shingle_length >= 1),
    threshold double precision NOT NULL CHECK (threshold > 0 AND threshold <= 1),
    recall double precision NOT NULL CHECK (recall > 0 AND recall <= 1),
    num_hashes integer NOT NULL CHECK (num_hashes >= 2),
    bands integer CHECK (bands >= 1),
    rows integer CHECK (rows >= 2),
    seed bigint NOT NULL CHECK (seed >= 0),
    recipe integer NOT NULL,
    stop_words text[] NOT NULL DEFAULT '{}',
    language text CHECK (language = 'auto'),
    stop_words_by_language jsonb NOT NULL DEFAULT '{}',
    is_unique boolean NOT NULL DEFAULT false,
    unique_from double precision,
    scoped boolean NOT NULL DEFAULT false,
    keep_for interval CHECK (keep_for > '0'),
    boilerplate double precision CHECK (boilerplate > 0 AND boilerplate < 1),
    passages integer CHECK (passages BETWEEN 4 AND 1000),
    common_passages boolean NOT NULL DEFAULT false CHECK (passages IS NOT NULL OR NOT common_passages),
    guards text[] NOT NULL DEFAULT '{}' CHECK (guards <@ textsim._guard_kinds()),
    guard_words text[] NOT NULL DEFAULT '{}' CHECK (('words' = ANY (guards)) = (guard_words <> '{}')),
    base bigint NOT NULL CHECK (base >= 0),
    golden_signature integer[] NOT NULL,
    golden_buckets integer[] NOT NULL,
    origin integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_with jsonb NOT NULL DEFAULT '{}',
    guard_fillers text[] NOT NULL DEFAULT '{}',
    CHECK (bands * rows <= num_hashes),
    CHECK ((bands IS NULL) = (rows IS NULL) AND (bands IS NOT NULL OR recall = 1)),
    CHECK (stop_words_by_language = '{}' OR language = 'auto' AND stop_words = '{}'),
    CHECK (NOT is_unique OR stop_words_by_language = '{}'),
    CHECK (unique_from IS NULL OR is_unique AND unique_from > threshold AND unique_from <= 1),
    CHECK (boilerplate IS NULL OR unit = 'word')
);
-- The id that a corpus had before its first rebuild: locks and judgements outlast a rebuild.
CREATE OR REPLACE FUNCTION textsim._origin(c textsim.corpus) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(c.origin, c.id);  -- inlined, so the index below serves it
DO $do$ BEGIN
    IF to_regclass('textsim.corpus_origin') IS NULL THEN
        CREATE INDEX corpus_origin ON textsim.corpus (coalesce(origin, id));
    END IF;
END $do$;
COMMENT ON TABLE textsim.corpus
    IS 'The corpora: named collections of documents, each with its settings.';
COMMENT ON COLUMN textsim.corpus.id IS 'N in the names of the tables document_N and band_N';
COMMENT ON COLUMN textsim.corpus.name IS 'name that the user chose';
COMMENT ON COLUMN textsim.corpus.unit IS 'unit of the shingles: word or char';
COMMENT ON COLUMN textsim.corpus.shingle_length IS 'consecutive words or characters in a shingle';
COMMENT ON COLUMN textsim.corpus.threshold IS 'least Jaccard similarity of a match';
COMMENT ON COLUMN textsim.corpus.recall
    IS 'probability that a pair at the threshold is found; 1 in an exact corpus, which finds every pair';
COMMENT ON COLUMN textsim.corpus.num_hashes IS 'values in a signature';
COMMENT ON COLUMN textsim.corpus.bands
    IS 'bands, and so buckets of a document; NULL in an exact corpus';
COMMENT ON COLUMN textsim.corpus.rows IS 'signature values in a band; NULL in an exact corpus';
COMMENT ON COLUMN textsim.corpus.seed IS 'seed of the hash functions';
COMMENT ON COLUMN textsim.corpus.recipe IS 'version of the algorithm from text to buckets';
COMMENT ON COLUMN textsim.corpus.stop_words
    IS 'words that are removed from every text, in normal form, sorted';
COMMENT ON COLUMN textsim.corpus.language
    IS 'auto: the language of each document is identified; NULL: languages are not identified';
COMMENT ON COLUMN textsim.corpus.stop_words_by_language
    IS 'words that are removed from the texts of each language, if stop_words is empty';
COMMENT ON COLUMN textsim.corpus.is_unique
    IS 'true: no document may match another document of the corpus';
COMMENT ON COLUMN textsim.corpus.unique_from
    IS 'similarity from which a match is a twin, above the threshold; NULL: the threshold';
COMMENT ON COLUMN textsim.corpus.scoped
    IS 'true: each document has a scope, and documents of different scopes never meet';
COMMENT ON COLUMN textsim.corpus.keep_for
    IS 'how long a document counts after it was written; NULL: for ever';
COMMENT ON COLUMN textsim.corpus.boilerplate
    IS 'shingles that more than this share of the documents has are boilerplate; NULL: there is none';
COMMENT ON COLUMN textsim.corpus.passages
    IS 'every run of at least this many words that a text shares with a document is found; NULL: the corpus stores '
    'no fingerprints';
COMMENT ON COLUMN textsim.corpus.common_passages
    IS 'whether passages are found although all their shingles are common';
COMMENT ON COLUMN textsim.corpus.guards
    IS 'what two texts must share, besides being similar, to be merged: see create_corpus()';
COMMENT ON COLUMN textsim.corpus.guard_words IS 'the words of the guard words, in normal form, sorted';
COMMENT ON COLUMN textsim.corpus.guard_fillers
    IS 'words that the guard content leaves out besides its own list, in normal form, sorted; since revision 0002';
COMMENT ON COLUMN textsim.corpus.base IS 'seed of the first round of hashing, computed from seed';
COMMENT ON COLUMN textsim.corpus.golden_signature
    IS 'signature of a fixed text, computed again whenever the corpus is opened';
COMMENT ON COLUMN textsim.corpus.golden_buckets IS 'buckets of the same text';
COMMENT ON COLUMN textsim.corpus.origin
    IS 'id that the corpus had before its first rebuild; NULL if it was never rebuilt';
COMMENT ON COLUMN textsim.corpus.created_at IS 'when the corpus was created or last rebuilt';
COMMENT ON COLUMN textsim.corpus.created_with
    IS 'the settings at that time, or since the last change by rebuild; check compares them. guard_lists is the version of '
    'the lists of guards by which its guards were computed';

-- A rebuild gives a corpus another id, but not another origin. So judgements need not move, and a session that
-- began before a rebuild finds them.
CREATE TABLE IF NOT EXISTS textsim.judgement (
    origin integer NOT NULL,  -- id that the corpus had before its first rebuild; its id if it was never rebuilt
    a text COLLATE "C" NOT NULL,  -- key of one document, which need not exist
    b text COLLATE "C" NOT NULL,  -- key of the other document; a < b in byte order
    verdict text NOT NULL CHECK (verdict IN ('same', 'different', 'unsure')),  -- same, different or unsure
    judged_by text NOT NULL DEFAULT current_user,  -- the role that judged the pair
    judged_at timestamptz NOT NULL DEFAULT now(),  -- when it did so
    note text CHECK (octet_length(note) BETWEEN 1 AND 10000),  -- why, or anything else; or NULL
    source text CHECK (octet_length(source) BETWEEN 1 AND 200),  -- the name of a person or a model; or NULL
    confidence double precision CHECK (confidence BETWEEN 0 AND 1),  -- how sure it is; or NULL
    hash_a uuid,  -- hash of the normal form of a that was judged; NULL: the judgement holds for any text
    hash_b uuid,  -- the same of b
    PRIMARY KEY (origin, a, b),
    CHECK (a < b AND octet_length(a) <= 1000 AND octet_length(b) <= 1000)
);
DO $do$ BEGIN
    IF to_regclass('textsim.judgement_b') IS NULL THEN
        CREATE INDEX judgement_b ON textsim.judgement (origin, b);
    END IF;
END $do$;
-- Keys, notes and sources in statistics would outlive the rows.
ALTER TABLE textsim.judgement ALTER a SET STATISTICS 0, ALTER b SET STATISTICS 0, ALTER note SET STATISTICS 0,
    ALTER source SET STATISTICS 0;
COMMENT ON TABLE textsim.judgement
    IS 'The judgements: what people said of pairs of documents. Row security shows those of corpora that the role '
    'may read.';

-- The tables of a corpus inherit from this one. So they depend on an extension that it belongs to: DROP EXTENSION
-- is refused, and with CASCADE it drops them.
CREATE TABLE IF NOT EXISTS textsim.corpus_table ();
COMMENT ON TABLE textsim.corpus_table
    IS 'Parent of the tables document_N and band_N, and of those of tracked corpora. It has no columns.';

-- The part of a corpus that documents of a scope belong to: the number by which all but the interface knows the scope.
-- textsim_db.text.hashing computes the same. SHA-256, because a user may choose the name of a scope, and must not be
-- able to find one that has the number of another.
CREATE OR REPLACE FUNCTION textsim._part(scope text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
-- These functions are immutable, so the expression can be inlined, and generate a column; convert_to() is not.
RETURN ('x' || encode(substr(sha256(decode(replace(scope COLLATE "C", E'\\', E'\\\\'), 'escape')), 1, 8), 'hex'))
    ::bit(64)::bigint;

-- Words, documents and their band rows. Each corpus has its own tables word_N, document_N and band_N, which take their
-- columns, comments and rights from these three patterns.
CREATE TABLE IF NOT EXISTS textsim.word (
    -- hashtextextended(word, 0); it is unique, not the word, because a B-tree accepts only 2,700 bytes
    hash bigint NOT NULL,
    id integer NOT NULL,  -- id of the word in document.word_ids
    word text NOT NULL,  -- word in normal form
    -- Every writer of the corpus may insert here. A row with the wrong hash would block the word of that hash.
    CONSTRAINT word_hash_check CHECK (hash = hashtextextended(word, 0))
);
COMMENT ON TABLE textsim.word
    IS 'Pattern of the tables word_N, the dictionaries: an id for each word of the documents of one corpus. It has no '
    'rows.';

CREATE TABLE IF NOT EXISTS textsim.document (
    id integer NOT NULL,  -- id of the document in the band rows
    shingle_count integer NOT NULL,  -- number of distinct shingles
    expires_at timestamptz,  -- from this time on the document no longer counts, and will be removed; NULL: never
    source_id integer,  -- the attached table of the document; NULL if it was added directly
    -- whether the document was stored although it matches others of a unique corpus, because the user forced it
    forced boolean NOT NULL DEFAULT false,
    -- how many records textsim dedupe --add has taken for this document, itself included; NULL: one
    cluster_size integer,
    key text NOT NULL,  -- key that the user chose
    -- ISO 639 code, und if undetermined; NULL until a worker identifies the language, or if the corpus does not
    -- identify languages
    language text,
    -- the part of a scoped corpus that the document belongs to, as its user names it; NULL in another corpus
    scope text CHECK (octet_length(scope) <= 200),
    -- the number of the scope: the first 8 bytes of its SHA-256 hash; documents of different parts never meet
    part bigint GENERATED ALWAYS AS (textsim._part(scope)) STORED,
    -- the hash of the words that the guards of the corpus count; documents with different guards are never merged.
    -- NULL without guards
    guard bigint,
    -- ids of the words of the normal form, in order; NULL until a worker has given all words ids, and in a corpus of
    -- characters
    word_ids integer[],
    -- num_hashes values of 16 bits, or in an exact corpus integer[], the low 32 bits of the smallest shingle
    -- values; empty for a text without words
    signature smallint[] NOT NULL,
    fingerprints integer[],  -- the distinct fingerprints, in order; NULL in a corpus without passages
    normal_form text,  -- the normal form if word_ids is NULL
    counted_keys bigint[],  -- the records of cluster_size without the document, by the hashes that their keys have as scopes
    rejected text,  -- why the document was rejected: it only keeps its twins out, and counts nowhere else; or NULL
    -- Exactly one of the two columns holds the words of the document.
    CHECK ((word_ids IS NULL) <> (normal_form IS NULL))
);
-- Arrays of random numbers do not compress.
ALTER TABLE textsim.document ALTER COLUMN word_ids SET STORAGE EXTERNAL;
ALTER TABLE textsim.document ALTER COLUMN signature SET STORAGE EXTERNAL;
ALTER TABLE textsim.document ALTER COLUMN fingerprints SET STORAGE EXTERNAL;
COMMENT ON TABLE textsim.document
    IS 'Pattern of the tables document_N, which hold the documents of one corpus each. It has no '
    'rows.';

CREATE TABLE IF NOT EXISTS textsim.band (
    -- hash of the band's signature values: the low 32 bits of hash_array_extended, seeded with the number of the
    -- band. In an exact corpus: a value of the signature. In a scoped corpus: # the low 32 bits of document.part
    bucket integer NOT NULL,
    document_id integer NOT NULL  -- a document that has this bucket
);
COMMENT ON TABLE textsim.band
    IS 'Pattern of the tables band_N, which hold the buckets of the documents of one corpus each. It '
    'has no rows.';

-- Only a corpus with passages has a table passage_N. Writers store the rows of new documents; triggers on document_N
-- change the rows of stored ones.
CREATE TABLE IF NOT EXISTS textsim.passage (
    -- a fingerprint of document.fingerprints; in a scoped corpus # the low 32 bits of document.part
    fingerprint integer NOT NULL,
    document_id integer NOT NULL  -- a document that has this fingerprint
);
COMMENT ON TABLE textsim.passage
    IS 'Pattern of the tables passage_N, which hold the fingerprints of the documents of one corpus each. It has no '
    'rows.';

-- Shingles that many documents have come last in a prefix, and in a window of a passage.
CREATE TABLE IF NOT EXISTS textsim.common (
    corpus_id integer NOT NULL REFERENCES textsim.corpus ON DELETE CASCADE,  -- the corpus that has learned the shingle
    value bigint NOT NULL,  -- the shingle value
    -- logarithm to base 2 of the number of documents with the shingle, in a sample; shingles of passages from
    -- class 10 on are no fingerprints
    class smallint NOT NULL CHECK (class > 0),
    -- whether it is a shingle of passages; otherwise it is one of the measure
    of_passages boolean NOT NULL DEFAULT false CHECK (NOT of_passages OR class < 16),
    PRIMARY KEY (corpus_id, of_passages, value)
);
COMMENT ON TABLE textsim.common
    IS 'The common shingles of exact corpora and of passages, learned by the first load or by a rebuild.';

CREATE TABLE IF NOT EXISTS textsim.boilerplate (
    -- the corpus that has learned its boilerplate
    corpus_id integer PRIMARY KEY REFERENCES textsim.corpus ON DELETE CASCADE,
    shingle_values bigint[] NOT NULL  -- values of the shingles whose words are removed from every text
);
COMMENT ON TABLE textsim.boilerplate IS 'The boilerplate of corpora, learned by a rebuild.';

-- Tracked corpora: their matches and clusters are kept up to date. Each tracked corpus has its own tables, such as
-- match_N, which take their columns and comments from these patterns.
CREATE TABLE IF NOT EXISTS textsim.tracked (
    corpus_id integer PRIMARY KEY REFERENCES textsim.corpus ON DELETE CASCADE,  -- the tracked corpus
    linkage text NOT NULL CHECK (linkage = 'kept'),  -- how matches make clusters
    threshold double precision NOT NULL CHECK (threshold > 0 AND threshold <= 1),  -- least similarity of a match
    -- queue: a worker updates the clusters; inline: the transaction that writes documents updates them
    mode text NOT NULL CHECK (mode IN ('queue', 'inline')),
    keep_events interval CHECK (keep_events > '0')  -- how long events are kept; NULL: as long as the corpus is tracked
);
COMMENT ON TABLE textsim.tracked
    IS 'The tracked corpora, whose clusters are kept up to date.';

CREATE TABLE IF NOT EXISTS textsim.node (
    document_id integer NOT NULL,  -- the document
    node integer NOT NULL,  -- id of its node
    -- the first half of a SHA-256 hash of the words and the part; NULL if all documents were clustered at once,
    -- and later copies get a node of their own
    words_hash uuid
);
COMMENT ON TABLE textsim.node
    IS 'Pattern of the tables node_N: the documents of a tracked corpus that have words. The documents of a node are '
    'known to have the same shingles and part. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.match (
    a integer NOT NULL,  -- the node with the lower id
    b integer NOT NULL,  -- the node with the higher id
    similarity double precision NOT NULL,  -- exact similarity of their documents; 2 if they were judged the same
    since timestamptz,  -- when an update found the match, if it is below unique_from of a unique corpus
    CHECK (a < b AND (similarity > 0 AND similarity <= 1 OR similarity = 2))
);
COMMENT ON TABLE textsim.match
    IS 'Pattern of the tables match_N: the matches of a tracked corpus, as pairs of nodes. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.crowded (
    node integer NOT NULL,  -- id of the node
    -- whether it has more earlier candidates than count; otherwise a bucket has more documents than are read
    is_full boolean NOT NULL,
    lost integer NOT NULL DEFAULT 0  -- how many matches it has lost since it was compared; if they are many, it is compared again
);
COMMENT ON TABLE textsim.crowded
    IS 'Pattern of the tables crowded_N: the nodes of a tracked corpus with too many candidates, so not all their '
    'matches are stored. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.member (
    document_id integer NOT NULL,  -- the document
    cluster bigint NOT NULL  -- id of its cluster
);
COMMENT ON TABLE textsim.member
    IS 'Pattern of the tables member_N: the documents of the clusters of a tracked corpus. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.cluster (
    id bigint NOT NULL,  -- id of the cluster, never used again
    representative integer NOT NULL,  -- the document that is kept
    size integer NOT NULL,  -- number of its members
    CHECK (size > 1)
);
COMMENT ON TABLE textsim.cluster
    IS 'Pattern of the tables cluster_N: the clusters of a tracked corpus. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.cluster_alias (
    old bigint NOT NULL,  -- id of a cluster that is no more
    new bigint NOT NULL  -- id of the cluster that it is part of now, also if that one was merged later
);
COMMENT ON TABLE textsim.cluster_alias
    IS 'Pattern of the tables cluster_alias_N: the clusters that became part of others. It has no rows.';

-- One for all corpora, so the id of a cluster is never used again, even if a corpus is untracked and tracked again.
CREATE SEQUENCE IF NOT EXISTS textsim.cluster_id_seq AS bigint;
COMMENT ON SEQUENCE textsim.cluster_id_seq IS 'ids of the clusters and events of all tracked corpora';

CREATE TABLE IF NOT EXISTS textsim.cluster_event (
    id bigint NOT NULL,  -- id of the event; an event that is committed later has a higher id
    at timestamptz NOT NULL DEFAULT now(),  -- when the clusters were brought up to date
    -- created: the cluster is new. joined: the document is a member from now on, and of the cluster other no
    -- longer. left: the document is a member of no cluster. split: members went to the new cluster other.
    -- merged: all members left are members of the cluster other. ended: it has no members, and no heir
    what text NOT NULL CHECK (what IN ('created', 'joined', 'left', 'split', 'merged', 'ended')),
    cluster bigint NOT NULL,  -- id of the cluster
    document_id integer,  -- the document that joined or left
    other bigint,  -- the other cluster, if the event concerns two
    CHECK ((what IN ('joined', 'left')) = (document_id IS NOT NULL)),
    CHECK (what = 'joined' OR (what IN ('split', 'merged')) = (other IS NOT NULL))
);
COMMENT ON TABLE textsim.cluster_event
    IS 'Pattern of the tables cluster_event_N: what happened to the clusters of a tracked corpus. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.removed (
    document_id integer NOT NULL,  -- id that the document had
    key text NOT NULL,  -- its key
    at timestamptz NOT NULL DEFAULT now()  -- when it was removed
);
COMMENT ON TABLE textsim.removed
    IS 'Pattern of the tables removed_N: the removed documents of a tracked corpus, which events name. It has no rows.';

CREATE TABLE IF NOT EXISTS textsim.forgotten (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the id of the request
    corpus_id integer NOT NULL REFERENCES textsim.corpus ON DELETE CASCADE,  -- the corpus of the documents
    requested_at timestamptz NOT NULL DEFAULT now(),  -- when they were forgotten
    documents bigint NOT NULL,  -- how many they were
    -- the corpus that is being built without their words, and will replace this one, or has replaced it; NULL if there
    -- is none
    rebuild integer
);
DO $do$ BEGIN
    IF to_regclass('textsim.forgotten_corpus') IS NULL THEN
        CREATE INDEX forgotten_corpus ON textsim.forgotten (corpus_id);
    END IF;
END $do$;
COMMENT ON TABLE textsim.forgotten
    IS 'The requests to forget whose words are in a dictionary: in that of the corpus until it is rebuilt, and then in '
    'that of the replaced corpus until it is dropped. Row security shows those of corpora that the role may read.';

-- Searches hide expired documents, so their removal can wait until two looks agree, and a clock that is ahead for a
-- moment removes nothing.
CREATE TABLE IF NOT EXISTS textsim.expiry_look (
    corpus_id integer PRIMARY KEY REFERENCES textsim.corpus ON DELETE CASCADE,  -- the corpus of the documents
    at timestamptz NOT NULL  -- when a worker looked: the documents that had expired then are removed by a later look
);
COMMENT ON TABLE textsim.expiry_look
    IS 'When a worker first looked for expired documents of a corpus, since it last removed some.';

-- Attached tables, and the log of their changes.
CREATE TABLE IF NOT EXISTS textsim.source (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- N in the name of the trigger function _changes_N
    corpus_id integer NOT NULL REFERENCES textsim.corpus,  -- the corpus that the table is attached to
    relation regclass NOT NULL,  -- the attached table
    key_columns name[] NOT NULL,  -- the columns whose values are joined to the documents' keys
    key_types regtype[] NOT NULL,  -- types of the key columns; for a domain, its base type
    text_column name NOT NULL,  -- the column of the texts
    scope_column name,  -- the column of the documents' scopes; NULL if the corpus is not scoped
    -- the column of the times from which the rows count for as long as the corpus keeps documents; or NULL
    time_column name,
    expires_column name,  -- the column of the times from which the rows no longer count; or NULL
    row_filter text,  -- the condition on a row that has a document; the function _filter_N computes it; NULL: every row
    filter_columns name[] NOT NULL DEFAULT '{}',  -- the columns of the condition: the parameters of _filter_N
    filter_types text[] NOT NULL DEFAULT '{}',  -- the types of these parameters
    -- queue: a worker indexes changes; inline: the transaction that makes a change indexes it
    mode text NOT NULL CHECK (mode IN ('queue', 'inline')),
    active boolean NOT NULL DEFAULT false,  -- true while the table is attached
    -- files of the table and state of its triggers when it was last compared with its documents
    shape text[] NOT NULL DEFAULT '{}',
    attached_at timestamptz NOT NULL DEFAULT now(),  -- when the table was attached
    attached_as name[] NOT NULL DEFAULT '{}',  -- the schema and the name of the table when it was attached
    CONSTRAINT source_corpus_relation_key UNIQUE (corpus_id, relation),
    CHECK (cardinality(key_columns) > 0 AND cardinality(key_types) = cardinality(key_columns)),
    CHECK (time_column IS NULL OR expires_column IS NULL)
);
COMMENT ON TABLE textsim.source
    IS 'The attached tables. A detached table keeps its row, and with it the id in its documents.';

-- An append-only log, so that users' transactions never wait for each other: there are no rows that two of
-- them would update, and no foreign keys, which would lock rows.
CREATE TABLE IF NOT EXISTS textsim.pending (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the id of the entry; ids are not in the order of the commits
    -- change: rows of an attached table changed; deleted when they are indexed. compare: a whole table must be
    -- compared with its documents; deleted after the comparison. words: the words of stored documents need ids;
    -- deleted when they have ids. cluster: documents of a tracked corpus changed; deleted when its clusters are
    -- up to date. failed: set aside, because it cannot be indexed; a retry gives it its kind back, and an
    -- indexed change of the same key deletes it
    kind text NOT NULL,
    corpus_id integer NOT NULL,  -- the corpus of the documents
    source_id integer,  -- the attached table; NULL in words and cluster, and in failed if it was one of them
    keys text[],  -- the keys of rows or documents; NULL in compare and cluster, and in failed if it was one of them
    -- the ids of the changed or removed documents in cluster, and in failed if it was cluster; else NULL
    document_ids integer[],
    -- the two keys of a judgement in cluster, if a document that it concerns was not found then; else NULL
    judged_keys text[],
    created_at timestamptz NOT NULL DEFAULT now(),  -- start of the transaction that made the change
    lease_until timestamptz,  -- until this time one worker processes the entry
    tries integer NOT NULL DEFAULT 0,  -- how often workers have leased the entry
    error text,  -- why an entry of the kind failed was set aside
    -- Writers of any corpus write here, and a row that no worker can process would stop all workers.
    CHECK (corpus_id > 0 AND tries BETWEEN 0 AND 1000),
    CHECK (CASE kind
        WHEN 'change' THEN source_id IS NOT NULL AND keys IS NOT NULL
        WHEN 'compare' THEN source_id IS NOT NULL AND keys IS NULL
        WHEN 'words' THEN source_id IS NULL AND keys IS NOT NULL
        WHEN 'cluster' THEN document_ids IS NOT NULL
        WHEN 'failed' THEN source_id IS NOT NULL OR keys IS NOT NULL OR document_ids IS NOT NULL
        ELSE false END),
    CHECK (document_ids IS NULL OR kind IN ('cluster', 'failed') AND source_id IS NULL AND keys IS NULL),
    CHECK (judged_keys IS NULL OR document_ids IS NOT NULL),
    CHECK ((kind = 'failed') = (error IS NOT NULL)),
    CHECK (array_ndims(keys) = 1 AND array_position(keys, NULL) IS NULL),
    CHECK (array_ndims(document_ids) = 1 AND array_position(document_ids, NULL) IS NULL)
);
DO $do$
DECLARE
    missing record;
BEGIN
    FOR missing IN
        SELECT i.* FROM (VALUES
            -- The order in which workers claim entries. Entries for clusters, and entries that were set aside, are not
            -- in their way.
            ('pending_ready', $$(id) WHERE kind NOT IN ('failed', 'cluster')$$),
            ('pending_corpus', '(corpus_id, kind, id)'),
            -- A hash, because a key that is too long for a document has no room in another index.
            ('pending_failed', $$USING hash ((keys[1])) WHERE kind = 'failed'$$),
            ('pending_compare', $$(source_id) WHERE kind = 'compare'$$)) i (name, definition)
        WHERE to_regclass('textsim.' || i.name) IS NULL
    LOOP
        EXECUTE format('CREATE INDEX %I ON textsim.pending %s', missing.name, missing.definition);
    END LOOP;
    IF EXISTS (
        SELECT FROM pg_attribute a
        WHERE a.attrelid = 'textsim.pending'::regclass AND a.attname IN ('keys', 'document_ids') AND a.attstorage <> 'e')
    THEN
        ALTER TABLE textsim.pending ALTER keys SET STORAGE EXTERNAL, ALTER document_ids SET STORAGE EXTERNAL;
    END IF;
END $do$;
ALTER TABLE textsim.pending ALTER keys SET STATISTICS 0, ALTER judged_keys SET STATISTICS 0, ALTER error SET STATISTICS 0;
ALTER INDEX textsim.pending_failed ALTER COLUMN 1 SET STATISTICS 0;
-- Rows live briefly. Frequent vacuum keeps look-ups from reading many dead rows.
ALTER TABLE textsim.pending SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE textsim.pending IS 'The log of changes that wait to be indexed.';

CREATE TABLE IF NOT EXISTS textsim.merged_row (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the id of the entry; a later merge of a key has a higher id
    origin integer NOT NULL,  -- the first id of the corpus, which a rebuild keeps
    relation regclass NOT NULL,  -- the attached table
    run bigint NOT NULL,  -- the id of the first entry of the run
    merged_at timestamptz NOT NULL DEFAULT clock_timestamp(),  -- when the row was merged
    merged_by name NOT NULL DEFAULT current_user,  -- the role that merged it, and that alone can bring it back
    key text NOT NULL,  -- the key of the row
    kept text NOT NULL,  -- the key of the row that is kept in its place
    similarity double precision NOT NULL,  -- their exact similarity at that time
    old_row jsonb NOT NULL,  -- the whole row before: the text of each column
    new_row jsonb  -- the row as the statement left it; NULL if it is gone
);
DO $do$ BEGIN
    IF to_regclass('textsim.merged_row_key') IS NULL THEN
        CREATE INDEX merged_row_key ON textsim.merged_row USING hash (key);
        CREATE INDEX merged_row_kept ON textsim.merged_row USING hash (kept);
    END IF;
END $do$;
ALTER TABLE textsim.merged_row ALTER key SET STATISTICS 0, ALTER kept SET STATISTICS 0, ALTER old_row SET STATISTICS 0,
    ALTER new_row SET STATISTICS 0;
COMMENT ON TABLE textsim.merged_row
    IS 'The rows that merge() took out of attached tables and unmerge() has not brought back. Row security shows a row '
    'to the role that merged it, and to roles that may read the whole table.';

-- A worker writes its row every few seconds. It removes rows that were not written for ten minutes, and when it starts,
-- those of ended processes of its machine. Nothing depends on these rows: they are for people, and reach a standby.
CREATE TABLE IF NOT EXISTS textsim.worker (
    id uuid PRIMARY KEY,  -- random id of the worker
    host text NOT NULL,  -- name of its machine
    process integer NOT NULL,  -- its process id on that machine
    started_at timestamptz NOT NULL DEFAULT now(),  -- time of its first report
    reported_at timestamptz NOT NULL DEFAULT now(),  -- time of its last report
    claimed_at timestamptz,  -- when it last looked for log entries; NULL if it never did
    wrote_at timestamptz,  -- end of its last write; NULL if it never wrote
    step text NOT NULL,  -- what it is doing, or waits for
    step_began_at timestamptz NOT NULL,  -- since when it has been doing that
    error text,  -- its last error; NULL if it had none
    failed_at timestamptz,  -- time of its last error
    written bigint NOT NULL DEFAULT 0,  -- how many documents it has added, replaced, removed or given word ids
    set_aside bigint NOT NULL DEFAULT 0,  -- how many documents it has set aside
    expired bigint NOT NULL DEFAULT 0,  -- how many expired documents it has removed
    clustered bigint NOT NULL DEFAULT 0,  -- how many changed documents it has brought into the tracked clusters
    retries bigint NOT NULL DEFAULT 0,  -- how many errors it has had after which it tried again
    -- what it leaves until it tries again, with the reasons: a list of objects with the keys corpus_id and fault, and
    -- source_id if its role must not index this table
    faults jsonb NOT NULL DEFAULT '[]'
);
COMMENT ON TABLE textsim.worker IS 'The running workers, and what each has reported of its progress.';
