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
    a bigint[] NOT NULL,
    b bigint[] NOT NULL,
    golden_signature integer[] NOT NULL,
    golden_buckets bigint[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (bands * rows <= num_hashes),
    CHECK (cardinality(a) = num_hashes AND cardinality(b) = num_hashes)
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
COMMENT ON COLUMN textsim.corpus.a IS 'factors of the hash functions (a * x + b) mod (2^31 - 1)';
COMMENT ON COLUMN textsim.corpus.b IS 'summands of the hash functions';
COMMENT ON COLUMN textsim.corpus.golden_signature IS 'signature of a fixed text, checked when the corpus is opened';
COMMENT ON COLUMN textsim.corpus.golden_buckets IS 'buckets of the same text';
COMMENT ON COLUMN textsim.corpus.created_at IS 'when the corpus was created';
-- The dictionary: one integer for each word, shared by all corpora. Unique on the hash and not
-- on the word, because a B-tree refuses entries over 2,700 bytes and words can be that long.

CREATE TABLE textsim.word (
    hash bigint NOT NULL,
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    word text NOT NULL,
    CONSTRAINT word_hash_key UNIQUE (hash)
);
COMMENT ON TABLE textsim.word IS 'the dictionary of all corpora; ids are never reused or changed';
COMMENT ON COLUMN textsim.word.hash IS 'hashtextextended(word, 0)';
COMMENT ON COLUMN textsim.word.id IS 'what stands for the word in document.word_ids';
COMMENT ON COLUMN textsim.word.word IS 'a word of the normal form';
-- Documents and their band rows, one partition a corpus. The partitions carry the indexes
-- (see 40_storage.sql): there the corpus is a constant, and would only make each entry longer.

CREATE SEQUENCE textsim.document_id AS bigint;
COMMENT ON SEQUENCE textsim.document_id IS 'ids of documents, over all corpora';

CREATE TABLE textsim.document (
    corpus_id integer NOT NULL,
    shingle_count integer NOT NULL,
    id bigint NOT NULL,
    key text NOT NULL,
    word_ids integer[] NOT NULL,
    signature integer[] NOT NULL
) PARTITION BY LIST (corpus_id);
-- Arrays of random numbers do not compress; trying to costs more than it saves.
ALTER TABLE textsim.document ALTER COLUMN word_ids SET STORAGE EXTERNAL;
ALTER TABLE textsim.document ALTER COLUMN signature SET STORAGE EXTERNAL;
COMMENT ON TABLE textsim.document IS 'documents: their words in order and their MinHash signature';
COMMENT ON COLUMN textsim.document.corpus_id IS 'the corpus that the document belongs to';
COMMENT ON COLUMN textsim.document.shingle_count IS 'distinct shingles';
COMMENT ON COLUMN textsim.document.id IS 'what band rows refer to';
COMMENT ON COLUMN textsim.document.key IS 'the key that the user chose';
COMMENT ON COLUMN textsim.document.word_ids IS 'the words of the normal form, in order';
COMMENT ON COLUMN textsim.document.signature IS 'num_hashes values; none for a text without words';

CREATE TABLE textsim.band (
    corpus_id integer NOT NULL,
    band smallint NOT NULL,
    bucket bigint NOT NULL,
    document_id bigint NOT NULL
) PARTITION BY LIST (corpus_id);
COMMENT ON TABLE textsim.band IS 'the LSH buckets of each document: who shares one is a candidate';
COMMENT ON COLUMN textsim.band.corpus_id IS 'the corpus that the document belongs to';
COMMENT ON COLUMN textsim.band.band IS 'number of the band, from 0';
COMMENT ON COLUMN textsim.band.bucket IS 'hash_array_extended of the band''s signature values, seeded by the band';
COMMENT ON COLUMN textsim.band.document_id IS 'the document that is in the bucket';
-- Making and dropping the partitions of a corpus. Private: called by the functions and clients
-- that create and drop corpora.

CREATE FUNCTION textsim._create_storage(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
BEGIN
    -- Created apart and attached: CREATE TABLE ... PARTITION OF would wait for every reader of
    -- every other corpus. Documents of up to some 1,500 words stay in their row, so that a
    -- look-up reads one page.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.document INCLUDING ALL) WITH (toast_tuple_target = 8160)',
        document_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', document_table, 'documents of one corpus');
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (id)', document_table || '_id', document_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (key)', document_table || '_key', document_table);
    EXECUTE format('CREATE TABLE textsim.%I (LIKE textsim.band INCLUDING ALL)', band_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', band_table, 'band rows of one corpus');
    EXECUTE format(
        'CREATE INDEX %I ON textsim.%I (band, bucket, document_id)',
        band_table || '_bucket', band_table);
    EXECUTE format(
        'ALTER TABLE textsim.document ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        document_table, corpus_id);
    EXECUTE format(
        'ALTER TABLE textsim.band ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        band_table, corpus_id);
END
$$;
COMMENT ON FUNCTION textsim._create_storage(integer) IS 'create the partitions of a corpus';

CREATE FUNCTION textsim._drop_storage(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('DROP TABLE textsim.%I', format('band_%s', corpus_id));
    EXECUTE format('DROP TABLE textsim.%I', format('document_%s', corpus_id));
END
$$;
COMMENT ON FUNCTION textsim._drop_storage(integer) IS 'drop the partitions of a corpus';
