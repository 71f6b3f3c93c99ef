-- The schema and its tables.

CREATE SCHEMA IF NOT EXISTS textsim;
COMMENT ON SCHEMA textsim IS 'near-duplicate text search (textsim-db)';

-- Corpora. Each row is a complete configuration: the code that reads a stored signature fills in no
-- defaults.

CREATE TABLE textsim.corpus (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    unit text NOT NULL CHECK (unit IN ('word', 'char')),
    shingle_length integer NOT NULL CHECK (shingle_length >= 1),
    threshold double precision NOT NULL CHECK (threshold > 0 AND threshold <= 1),
    recall double precision NOT NULL CHECK (recall > 0 AND recall <= 1),
    num_hashes integer NOT NULL CHECK (num_hashes >= 2),
    bands integer NOT NULL CHECK (bands >= 1),
    rows integer NOT NULL CHECK (rows >= 2),
    seed bigint NOT NULL CHECK (seed >= 0),
    recipe integer NOT NULL,
    stop_words text[] NOT NULL DEFAULT '{}',
    language text CHECK (language = 'auto'),
    stop_words_by_language jsonb NOT NULL DEFAULT '{}',
    base bigint NOT NULL CHECK (base >= 0),
    golden_signature smallint[] NOT NULL,
    golden_buckets integer[] NOT NULL,
    origin integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (bands * rows <= num_hashes),
    CHECK (stop_words_by_language = '{}' OR language = 'auto' AND stop_words = '{}')
);
COMMENT ON TABLE textsim.corpus IS 'a named collection of documents with one configuration';
COMMENT ON COLUMN textsim.corpus.id IS 'number in the names of the tables document_N and band_N';
COMMENT ON COLUMN textsim.corpus.name IS 'the name that users give';
COMMENT ON COLUMN textsim.corpus.unit IS 'what a shingle consists of: word or char';
COMMENT ON COLUMN textsim.corpus.shingle_length IS 'consecutive words or characters in a shingle';
COMMENT ON COLUMN textsim.corpus.threshold IS 'Jaccard similarity from which a candidate is a match';
COMMENT ON COLUMN textsim.corpus.recall IS 'probability that a pair at the threshold becomes a candidate';
COMMENT ON COLUMN textsim.corpus.num_hashes IS 'values in a signature';
COMMENT ON COLUMN textsim.corpus.bands IS 'buckets of a document';
COMMENT ON COLUMN textsim.corpus.rows IS 'signature values in a band';
COMMENT ON COLUMN textsim.corpus.seed IS 'seed of the hash functions';
COMMENT ON COLUMN textsim.corpus.recipe IS 'version of the way from text to buckets';
COMMENT ON COLUMN textsim.corpus.stop_words IS 'words, in normal form and order, that are left out of texts';
COMMENT ON COLUMN textsim.corpus.language
    IS 'auto: the language of each document is identified; NULL: it is not';
COMMENT ON COLUMN textsim.corpus.stop_words_by_language
    IS 'instead of stop_words: the words that are left out of the texts of each language';
COMMENT ON COLUMN textsim.corpus.base IS 'seed of the first round of hashing; it follows from seed';
COMMENT ON COLUMN textsim.corpus.golden_signature IS 'signature of a fixed text, checked when the corpus is opened';
COMMENT ON COLUMN textsim.corpus.golden_buckets IS 'buckets of the same text';
COMMENT ON COLUMN textsim.corpus.origin
    IS 'the number that the corpus had before it was rebuilt; NULL if it never was';
COMMENT ON COLUMN textsim.corpus.created_at IS 'when the corpus was created';

-- The dictionary: one integer for each word, shared by all corpora. Unique on the hash and not
-- on the word, because a B-tree refuses entries over 2,700 bytes, and words can be longer.
CREATE TABLE textsim.word (
    hash bigint NOT NULL,
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    word text NOT NULL,
    CONSTRAINT word_hash_key UNIQUE (hash),
    -- Every writer may insert here: a row under the hash of another word would keep that word out.
    CONSTRAINT word_hash_check CHECK (hash = hashtextextended(word, 0))
);
COMMENT ON TABLE textsim.word IS 'the dictionary of all corpora; ids are never reused or changed';
COMMENT ON COLUMN textsim.word.hash IS 'hashtextextended(word, 0)';
COMMENT ON COLUMN textsim.word.id IS 'number of the word in document.word_ids';
COMMENT ON COLUMN textsim.word.word IS 'a word of the normal form';

-- Documents and their band rows. Each corpus has a table document_N and a table band_N of its own. These
-- two are their patterns: they have the columns, comments and rights, and no rows.
CREATE TABLE textsim.document (
    id integer NOT NULL,
    shingle_count integer NOT NULL,
    source_id integer,
    key text NOT NULL,
    language text,
    word_ids integer[],
    signature smallint[] NOT NULL,
    normal_form text,
    -- The column that is not NULL has the words of the document.
    CHECK ((word_ids IS NULL) <> (normal_form IS NULL))
);
-- Arrays of random numbers do not compress: an attempt costs time and saves nothing.
ALTER TABLE textsim.document ALTER COLUMN word_ids SET STORAGE EXTERNAL;
ALTER TABLE textsim.document ALTER COLUMN signature SET STORAGE EXTERNAL;
COMMENT ON TABLE textsim.document IS 'pattern of the tables document_N; it has no rows';
COMMENT ON COLUMN textsim.document.id IS 'number of the document in the band rows';
COMMENT ON COLUMN textsim.document.shingle_count IS 'distinct shingles';
COMMENT ON COLUMN textsim.document.source_id IS 'the attached table that the document comes from';
COMMENT ON COLUMN textsim.document.key IS 'the key that the user chose';
COMMENT ON COLUMN textsim.document.language
    IS 'ISO 639 code, und if undetermined; NULL until a worker identifies it, or if none does';
COMMENT ON COLUMN textsim.document.word_ids IS 'the words of the normal form, in order';
COMMENT ON COLUMN textsim.document.signature
    IS 'num_hashes values, the low 16 bits of each; empty for a text without words';
COMMENT ON COLUMN textsim.document.normal_form
    IS 'instead of word_ids, until a worker has given the words ids; NULL after that';

CREATE TABLE textsim.band (
    bucket integer NOT NULL,
    document_id integer NOT NULL
);
COMMENT ON TABLE textsim.band IS 'pattern of the tables band_N; it has no rows';
COMMENT ON COLUMN textsim.band.bucket
    IS 'low 32 bits of hash_array_extended of a band''s signature values, seeded by the band';
COMMENT ON COLUMN textsim.band.document_id IS 'the document that is in the bucket';

-- Attached tables, and the log of their changes.
CREATE TABLE textsim.source (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    corpus_id integer NOT NULL REFERENCES textsim.corpus,
    relation regclass NOT NULL,
    key_column name NOT NULL,
    key_type regtype NOT NULL,
    text_column name NOT NULL,
    mode text NOT NULL CHECK (mode IN ('queue', 'inline')),
    active boolean NOT NULL DEFAULT false,
    shape text[] NOT NULL DEFAULT '{}',
    attached_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT source_corpus_relation_key UNIQUE (corpus_id, relation)
);
COMMENT ON TABLE textsim.source
    IS 'the attached tables, and the detached ones, whose documents keep the id';
COMMENT ON COLUMN textsim.source.id IS 'number in the name of the trigger function _changes_N';
COMMENT ON COLUMN textsim.source.corpus_id IS 'the corpus that indexes the rows';
COMMENT ON COLUMN textsim.source.relation IS 'the attached table';
COMMENT ON COLUMN textsim.source.key_column IS 'the column that gives the keys of the documents';
COMMENT ON COLUMN textsim.source.key_type IS 'the type of the key column, or the base type of its domain';
COMMENT ON COLUMN textsim.source.text_column IS 'the column that gives the texts';
COMMENT ON COLUMN textsim.source.mode
    IS 'queue: a worker indexes what changed; inline: the transaction that changes it does';
COMMENT ON COLUMN textsim.source.active
    IS 'whether the table is attached: its triggers have been seen in place';
COMMENT ON COLUMN textsim.source.shape
    IS 'files of the table and state of its triggers when it was last compared with its documents';
COMMENT ON COLUMN textsim.source.attached_at IS 'when the table was attached';

-- An append-only log: an upsert for each key would make transactions of the users wait for each
-- other. It has no foreign keys, because they would lock rows in those transactions.
CREATE TABLE textsim.pending (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    corpus_id integer NOT NULL,
    source_id integer,
    keys text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz,
    tries integer NOT NULL DEFAULT 0,
    error text,
    -- Writers of any corpus write here, and a row that no worker can process would stop all workers.
    CHECK (corpus_id > 0 AND tries BETWEEN 0 AND 1000),
    CHECK (source_id IS NOT NULL OR keys IS NOT NULL),
    CHECK (array_ndims(keys) = 1 AND array_position(keys, NULL) IS NULL)
);
CREATE INDEX pending_comparison ON textsim.pending (source_id) WHERE keys IS NULL AND error IS NULL;
CREATE INDEX pending_error ON textsim.pending (corpus_id) WHERE error IS NOT NULL;
ALTER TABLE textsim.pending ALTER COLUMN keys SET STORAGE EXTERNAL;
-- Rows live briefly: without frequent vacuum, each look-up would read the dead rows again.
ALTER TABLE textsim.pending SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE textsim.pending IS 'changes that a worker has to index: one row for each';
COMMENT ON COLUMN textsim.pending.id IS 'number in the log';
COMMENT ON COLUMN textsim.pending.corpus_id IS 'the corpus in which to index it';
COMMENT ON COLUMN textsim.pending.source_id
    IS 'the table in which rows changed; NULL: the words of stored documents need ids';
COMMENT ON COLUMN textsim.pending.keys IS 'the keys that changed; NULL: any key of the table';
COMMENT ON COLUMN textsim.pending.created_at IS 'start of the transaction that changed them';
COMMENT ON COLUMN textsim.pending.lease_until IS 'a worker is processing the row until then';
COMMENT ON COLUMN textsim.pending.tries IS 'how often a worker has leased it';
COMMENT ON COLUMN textsim.pending.error IS 'why it was set aside; NULL if it was not';

CREATE SEQUENCE textsim.last_notice AS bigint MINVALUE 0;
COMMENT ON SEQUENCE textsim.last_notice IS 'milliseconds of the last NOTIFY, to limit their rate';
