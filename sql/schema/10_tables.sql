-- The schema, and one row for each corpus: its configuration, complete, so that nothing about
-- a stored signature is left to a default of the code that reads it.

CREATE SCHEMA IF NOT EXISTS textsim;
COMMENT ON SCHEMA textsim IS 'near-duplicate text search (textsim-db)';

CREATE TABLE textsim.corpus (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    unit text NOT NULL CHECK (unit IN ('word', 'char')),
    shingle_length integer NOT NULL CHECK (shingle_length >= 1),
    threshold double precision NOT NULL CHECK (threshold > 0 AND threshold <= 1),
    recall double precision NOT NULL CHECK (recall > 0 AND recall <= 1),
    num_hashes integer NOT NULL CHECK (num_hashes >= 1),
    bands integer NOT NULL CHECK (bands >= 1),
    rows integer NOT NULL CHECK (rows >= 1),
    seed bigint NOT NULL CHECK (seed >= 0),
    recipe integer NOT NULL,
    stop_words text[] NOT NULL DEFAULT '{}',
    language text CHECK (language = 'auto'),
    stop_words_by_language jsonb NOT NULL DEFAULT '{}',
    a bigint[] NOT NULL,
    b bigint[] NOT NULL,
    golden_signature integer[] NOT NULL,
    golden_buckets bigint[] NOT NULL,
    origin integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (bands * rows <= num_hashes),
    CHECK (cardinality(a) = num_hashes AND cardinality(b) = num_hashes),
    CHECK (stop_words_by_language = '{}' OR language = 'auto' AND stop_words = '{}')
);
COMMENT ON TABLE textsim.corpus IS 'a named collection of documents with one configuration';
COMMENT ON COLUMN textsim.corpus.id IS 'number in the names of the partitions document_N and band_N';
COMMENT ON COLUMN textsim.corpus.name IS 'the name that users give';
COMMENT ON COLUMN textsim.corpus.unit IS 'what a shingle consists of: word or char';
COMMENT ON COLUMN textsim.corpus.shingle_length IS 'consecutive words or characters in a shingle';
COMMENT ON COLUMN textsim.corpus.threshold IS 'Jaccard similarity from which a candidate is a match';
COMMENT ON COLUMN textsim.corpus.recall IS 'probability that a pair at the threshold becomes a candidate';
COMMENT ON COLUMN textsim.corpus.num_hashes IS 'values in a signature';
COMMENT ON COLUMN textsim.corpus.bands IS 'buckets of a document';
COMMENT ON COLUMN textsim.corpus.rows IS 'signature values in a band';
COMMENT ON COLUMN textsim.corpus.seed IS 'seed of the coefficients';
COMMENT ON COLUMN textsim.corpus.recipe IS 'version of the way from text to buckets';
COMMENT ON COLUMN textsim.corpus.stop_words IS 'words, in normal form and order, that are left out of texts';
COMMENT ON COLUMN textsim.corpus.language
    IS 'auto: the language of each document is identified; NULL: it is not';
COMMENT ON COLUMN textsim.corpus.stop_words_by_language
    IS 'instead of stop_words: those left out of the texts of each language';
COMMENT ON COLUMN textsim.corpus.a IS 'factors of the hash functions (a * x + b) mod (2^31 - 1)';
COMMENT ON COLUMN textsim.corpus.b IS 'summands of the hash functions';
COMMENT ON COLUMN textsim.corpus.golden_signature IS 'signature of a fixed text, checked when the corpus is opened';
COMMENT ON COLUMN textsim.corpus.golden_buckets IS 'buckets of the same text';
COMMENT ON COLUMN textsim.corpus.origin
    IS 'the number that the corpus had before it was rebuilt; NULL where it never was';
COMMENT ON COLUMN textsim.corpus.created_at IS 'when the corpus was created';
